//! SendMessage: the model instructs a sub-agent that works in the background, or has one that has ended go on.

use std::{fmt::Write as _, sync::Arc};

use ennead_runtime::{
    ports::{
        ToolContext,
        messages::{AgentMessage, Delivered, MAX_MESSAGE_BYTES, Undelivered},
    },
    tool::{Access, Concurrency, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::built_in::{BuiltIn, BuiltInCall};

/// Milliseconds that an agent may take to begin.
const START_MS: u64 = 120_000;

/// Sends a message to a sub-agent.
pub(crate) struct SendMessage;

/// Input of the tool `SendMessage`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageForAgent {
    /// The id of the agent.
    to: String,
    /// What the agent is to know or to do.
    message: String,
}

impl BuiltIn for SendMessage {
    type Input = MessageForAgent;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "SendMessage",
            "Sends a message to an agent, by its id. One that works in the background reads it before its next step. One \
                that has ended goes on with it in the background, and knows all that it did before; you are \
                notified when it ends.",
            input_schema,
        )
        .with_concurrency(Concurrency::Alone)
        .with_access(Access::Free)
        .with_output_cap(32_000)
        .with_timeout_ms(START_MS)
    }

    async fn call(call: BuiltInCall<MessageForAgent>, context: ToolContext) -> ToolOutcome {
        let BuiltInCall { id, input: MessageForAgent { to, message }, .. } = call;
        if message.trim().is_empty() {
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, "The message is empty.");
        }
        if MAX_MESSAGE_BYTES < message.len() {
            let why = format!(
                "The message has {} bytes; {MAX_MESSAGE_BYTES} are the most.",
                message.len()
            );
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, why);
        }
        let Some(agents) = context.agents.clone() else {
            return undelivered(&Undelivered::NotHere, &context);
        };
        let outcome = match agents.send(AgentMessage::new(id, to.as_str(), message)).await {
            Ok(delivered) => received(&to, &delivered),
            Err(why) => return undelivered(&why, &context),
        };
        // It has the message, whatever becomes of the turn.
        context.committed.set(outcome.clone());
        outcome
    }
}

/// The answer for an agent that has the message.
fn received(agent: &str, delivered: &Delivered) -> ToolOutcome {
    let text = match delivered {
        Delivered::GoesOn { .. } => format!(
            "The agent {agent} goes on in the background with your message. You are notified when it ends, with its \
             answer; go on with other work or end your turn meanwhile."
        ),
        _ => format!("The agent {agent} is at work and reads your message before its next step."),
    };
    let result = json!({"success": true, "agentId": agent, "message": text});
    ToolOutcome::ok(text.as_str()).with_structured(&result)
}

/// The answer where no agent has the message; of an agent that is not known, with those there are.
fn undelivered(why: &Undelivered, context: &ToolContext) -> ToolOutcome {
    let kind = match why {
        Undelivered::Limit { .. } | Undelivered::TooMany => ToolErrorKind::LimitReached,
        Undelivered::Unclear => ToolErrorKind::Interrupted,
        _ => ToolErrorKind::Failed,
    };
    let mut text = match why {
        Undelivered::Unclear => format!("The message may not have arrived: {why}."),
        _ => format!("The message was not sent: {why}."),
    };
    if let Undelivered::Unknown { .. } | Undelivered::IsType { .. } = why {
        let host = context.processes.as_ref().and_then(|it| it.agents());
        let running = host.map(|it| it.running()).unwrap_or_default();
        text.push_str(if running.is_empty() { " None is at work." } else { " At work:" });
        for it in running {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}: `{}`", it.agent, it.description);
        }
    }
    ToolOutcome::failed(kind, text)
        .with_structured(&json!({"success": false, "code": why.code(), "message": why.to_string()}))
}
