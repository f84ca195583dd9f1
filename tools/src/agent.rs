//! Agent: a sub-agent does a task and its last answer comes back.
//!
//! The sub-agent itself is run through a port. Here its report becomes a result, and its text is
//! made safe: it comes from a model that may have read anything, so it must not pass for the
//! harness or for a person.

use std::sync::Arc;

use ennead_runtime::{
    agent_text::made_safe,
    ports::{AgentOrder, AgentPlace, AgentReport, AgentStatus, ToolContext},
    tool::{Access, Concurrency, ToolErrorKind, ToolNote, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    built_in::{BuiltIn, BuiltInCall},
    declared::{millis, number},
};

mod worktree;

use worktree::{Changed, HeldWorktree, WorktreeRequest};

/// Set, no agent works in the background.
const NO_BACKGROUND: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

pub(crate) struct Agent;

/// A task for a sub-agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentInput {
    /// The task in three to five words.
    description: String,
    /// Everything the agent needs to know; it sees nothing else of this conversation.
    prompt: String,
    /// Which agent; `general-purpose` if left out.
    subagent_type: Option<String>,
    /// Which model; that of this conversation if left out.
    model: Option<String>,
    /// `worktree`: the agent works in a git worktree of its own, on a branch of its own. It begins at
    /// the remote's default branch (without one, at `HEAD`) and has none of your uncommitted changes.
    /// Both stay if it changed something there; otherwise they are removed, and files that git
    /// ignores are lost with them. Not for an agent that works in a worktree itself.
    isolation: Option<Isolation>,
    /// `true`: the call returns at once, and the agent works in the background; you are notified when it ends, so do
    /// not wait for it in a loop. An agent in a worktree is waited for, and so is one that another agent starts.
    run_in_background: Option<bool>,
}

/// What keeps a sub-agent apart.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Isolation {
    Worktree,
}

impl BuiltIn for Agent {
    type Input = AgentInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "Agent",
            "Gives a task to a sub-agent with a context of its own and returns its \
                last answer. Several calls in one message run side by side. Say in the prompt all \
                it needs to know and what it shall report.",
            input_schema,
        )
        .with_concurrency(Concurrency::Together { max: 5 })
        .with_access(Access::Free)
        .with_output_cap(100_000)
    }

    async fn call(call: BuiltInCall<AgentInput>, context: ToolContext) -> ToolOutcome {
        // It would have nothing to do, and never say that it has ended.
        if call.input.prompt.trim().is_empty() {
            return ToolOutcome::failed(ToolErrorKind::InvalidInput, "The prompt is empty.");
        }
        let Some(agents) = context.agents.clone() else {
            let why = "Sub-agents cannot be started here: the limit of nesting is reached.";
            return ToolOutcome::failed(ToolErrorKind::LimitReached, why);
        };
        let start = context.clock.elapsed();
        let BuiltInCall { id, input, hidden, .. } = call;
        let AgentInput { description, prompt, subagent_type, model, isolation, run_in_background } =
            input;
        let held = match isolation {
            None => None,
            Some(Isolation::Worktree) => {
                let (call, base) = (id.clone(), agents.worktree_base());
                let wanted = WorktreeRequest { call, base, hidden };
                match HeldWorktree::new(&context, wanted).await {
                    Ok(held) => Some(held),
                    Err(why) => {
                        let why =
                            format!("The agent was not started: it cannot have a worktree: {why}");
                        return ToolOutcome::failed(ToolErrorKind::Failed, why);
                    }
                }
            }
        };
        let mut order = AgentOrder::new(id, description.clone(), prompt.clone());
        (order.agent_type, order.model) = (subagent_type.clone(), model);
        order.worktree = held.as_ref().map(|it| AgentPlace::new(it.workspace(), it.hold()));
        order.in_background = match number(&context, NO_BACKGROUND) {
            Some(_) => Some(false),
            // What the type says holds, whatever the call says.
            None => run_in_background.filter(|it| *it),
        };
        let report = agents.spawn(order).await;
        let Some(status) = report.status else {
            let outcome = launched(&report, &description, &prompt);
            // An interrupt from now on leaves this result: the agent goes on.
            context.committed.set(outcome.clone());
            return outcome;
        };
        let ms = millis(context.clock.elapsed().saturating_sub(start));
        let changed = match held {
            None => None,
            Some(held) => held.end(is_over(status, report.head.is_some())).await,
        };
        let mut outcome = answer(status, &report.text);
        if outcome.error.is_none() {
            let mut result = json!({
                "status": "completed",
                "agentId": report.agent,
                "agentType": subagent_type.as_deref().unwrap_or("general-purpose"),
                "content": [{"type": "text", "text": outcome.text}],
                "totalToolUseCount": report.n_tool_uses,
                "totalDurationMs": ms,
                "totalTokens": report.usage.total(),
                "usage": report.usage,
                "prompt": prompt,
            });
            if let Some(Changed { path, branch }) = &changed {
                result["worktreePath"] = path.as_str().into();
                result["worktreeBranch"] = branch.as_str().into();
            }
            outcome = outcome.with_structured(&result);
        }
        if let Some(Changed { path, branch }) = changed {
            let kept = format!("\n\n[What it changed is in the worktree {path}, branch {branch}.]");
            outcome.text.push_str(&kept);
        }
        if let Some(agent) = report.agent.as_ref().filter(|_| report.can_go_on) {
            let trailer =
                format!("\n\n[The id of the agent is {agent}. SendMessage has it go on.]");
            outcome.text.push_str(&trailer);
        }
        if let Some(agent) = report.agent {
            outcome.notes.push(ToolNote::AgentEnded { agent, head: report.head });
        }
        outcome
    }
}

/// The answer for an agent that works in the background.
fn launched(report: &AgentReport, description: &str, prompt: &str) -> ToolOutcome {
    let agent = report.agent.as_ref().map(|it| it.as_str()).unwrap_or_default();
    let text = format!(
        "The agent {agent} works in the background. You are notified when it ends, with its answer; go on with \
         other work or end your turn meanwhile."
    );
    ToolOutcome::ok(text).with_structured(&json!({
        "status": "async_launched",
        "agentId": agent,
        "description": description,
        "prompt": prompt,
        "outputFile": report.text,
    }))
}

/// Whether the agent is known to do nothing any longer. One that was stopped or cut off may have
/// tools that still work, and one that crashed left no head.
fn is_over(status: AgentStatus, has_head: bool) -> bool {
    match status {
        AgentStatus::Completed | AgentStatus::Refused => true,
        AgentStatus::Failed => has_head,
        _ => false,
    }
}

/// What the parent reads. The text of an agent before it was cut off is an answer, with a note.
fn answer(status: AgentStatus, text: &str) -> ToolOutcome {
    let final_text = made_safe(text.trim_end());
    let failed = |kind, what: &str| {
        let text =
            if final_text.is_empty() { what.to_owned() } else { format!("{what}: {final_text}") };
        ToolOutcome::failed(kind, text)
    };
    let cut_off = |kind, why: &str| {
        if final_text.is_empty() {
            failed(kind, &format!("The agent {why} before it said anything"))
        } else {
            ToolOutcome::ok(format!(
                "{final_text}\n\n[Cut off: the agent {why}. Its work may be unfinished.]"
            ))
        }
    };
    match status {
        AgentStatus::Completed if final_text.is_empty() => {
            ToolOutcome::ok("(the agent ended without an answer)")
        }
        AgentStatus::Completed => ToolOutcome::ok(final_text),
        AgentStatus::Cut => cut_off(ToolErrorKind::LimitReached, "reached a limit"),
        AgentStatus::Stalled => cut_off(ToolErrorKind::Failed, "made no progress"),
        AgentStatus::Cancelled => failed(ToolErrorKind::Interrupted, "The agent was stopped"),
        AgentStatus::Refused => failed(ToolErrorKind::LimitReached, "The agent was not started"),
        _ => failed(ToolErrorKind::Failed, "Agent terminated early due to an error"),
    }
}

#[cfg(test)]
mod tests;
