//! Hooks that are code of the embedder.
//!
//! They take part in the order of hooks as commands do, and what they reply is read by the same rules:
//! the reply is turned into the JSON that a command would have printed.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ennead_runtime::{
    hook::{HandlerEnd, HandlerOutput, HookEvent, HookHandler},
    ports::BoxFuture,
    saturating::Saturating as _,
};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::world::clock::{TimeSource, within};

/// Hooks by the names that the settings of the options give them.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Arc<BTreeMap<String, Arc<dyn Hook>>>);

impl Hooks {
    pub(crate) fn new(hooks: BTreeMap<String, Arc<dyn Hook>>) -> Self {
        Self(Arc::new(hooks))
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A hook that runs in this process, where a command would be started.
///
/// A panic counts as a crash of the hook. Dropping the future cancels it: when the turn is interrupted,
/// and when it takes longer than its limit. It must not block its thread.
///
/// A function from [`HookInput`] to a future of a [`HookReply`] is a hook:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use ennead::{
///     Endpoint, SessionOptions,
///     permission::{HookEvent, HookInput, HookReply},
/// };
///
/// let guard = |call: HookInput| async move {
///     match call.input()["command"].as_str() {
///         Some(command) if command.contains("deploy") => HookReply::deny("people deploy here"),
///         _ => HookReply::proceed(),
///     }
/// };
/// let options = SessionOptions::new(".", Endpoint::simulated())
///     .hook(HookEvent::PreToolUse, "Bash", Duration::from_secs(5), Arc::new(guard))?;
/// # Ok::<(), ennead::OptionError>(())
/// ```
pub trait Hook: Send + Sync {
    /// Returns what the session does about one event.
    fn run(&self, input: HookInput) -> BoxFuture<'static, HookReply>;
}

impl<F, R> Hook for F
where
    F: Fn(HookInput) -> R + Send + Sync,
    R: Future<Output = HookReply> + Send + 'static,
{
    fn run(&self, input: HookInput) -> BoxFuture<'static, HookReply> {
        self(input).boxed()
    }
}

/// The input of a hook: what a command reads on its standard input.
#[derive(Clone, Debug, PartialEq)]
pub struct HookInput {
    event: HookEvent,
    json: Value,
}

impl HookInput {
    /// Returns the event that fired.
    pub fn event(&self) -> HookEvent {
        self.event
    }

    /// Returns the name of the called tool; `None` for an event that is not about a tool.
    pub fn tool(&self) -> Option<&str> {
        self.json["tool_name"].as_str()
    }

    /// Returns the input of the call; `null` for an event that is not about a tool.
    pub fn input(&self) -> &Value {
        &self.json["tool_input"]
    }

    /// Returns all of the input, as a command would read it.
    pub fn json(&self) -> &Value {
        &self.json
    }
}

/// What a hook wants.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReply {
    decision: Option<(&'static str, String)>,
    context: Option<String>,
    input: Option<Value>,
    stop: Option<String>,
    failure: Option<String>,
    json: Option<Value>,
}

impl HookReply {
    /// Makes a reply that decides nothing: what would happen without the hook happens.
    #[must_use]
    pub fn proceed() -> Self {
        Self { decision: None, context: None, input: None, stop: None, failure: None, json: None }
    }

    /// Makes the reply of what a command would print: an object with the fields of the hook protocol. It replaces
    /// everything else of the reply.
    #[must_use]
    pub fn json(printed: Value) -> Self {
        Self { json: Some(printed), ..Self::proceed() }
    }

    /// Makes a reply that lets a call run which no deny rule forbids. For `PreToolUse` only.
    #[must_use]
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { decision: Some(("allow", reason.into())), ..Self::proceed() }
    }

    /// Makes a reply that has the approver asked. For `PreToolUse` only.
    #[must_use]
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: Some(("ask", reason.into())), ..Self::proceed() }
    }

    /// Makes a reply that denies a call, or blocks what another event is about: the end of a run (`Stop`) or a
    /// compaction. The model reads the reason.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: Some(("deny", reason.into())), ..Self::proceed() }
    }

    /// Ends the run for this reason.
    #[must_use]
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { stop: Some(reason.into()), ..Self::proceed() }
    }

    /// Makes a reply of a hook that could not do its work. It counts as a command that exits with 1: an error is shown,
    /// and nothing is decided unless settings say that failing denies.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), ..Self::proceed() }
    }

    /// Adds a text that the model reads.
    #[must_use]
    pub fn context(self, text: impl Into<String>) -> Self {
        Self { context: Some(text.into()), ..self }
    }

    /// Replaces the input of the call, which is checked again. For `PreToolUse` only.
    #[must_use]
    pub fn input(self, input: Value) -> Self {
        Self { input: Some(input), ..self }
    }

    /// Returns the reply as a command would have printed it.
    fn printed(self, event: HookEvent) -> Value {
        if let Some(json) = self.json {
            return json;
        }
        let mut specific = json!({ "hookEventName": event.name() });
        let mut printed = json!({});
        match (self.decision, event) {
            (None, _) => {}
            (Some((decision, reason)), HookEvent::PreToolUse) => {
                specific["permissionDecision"] = decision.into();
                specific["permissionDecisionReason"] = reason.into();
            }
            (Some(("deny", reason)), _) => {
                printed["decision"] = "block".into();
                printed["reason"] = reason.into();
            }
            // There is nothing to allow or to ask about.
            (Some(_), _) => {}
        }
        if let Some(context) = self.context {
            specific["additionalContext"] = context.into();
        }
        if let Some(input) = self.input {
            specific["updatedInput"] = input;
        }
        if let Some(stop) = self.stop {
            printed["continue"] = false.into();
            printed["stopReason"] = stop.into();
        }
        printed["hookSpecificOutput"] = specific;
        printed
    }
}

/// Runs a hook of this process, for as long as its handler may take.
pub(crate) async fn run(
    hooks: &Hooks,
    name: &str,
    handler: &HookHandler,
    event: HookEvent,
    input: &str,
    TimeSource { clock, timer }: TimeSource<'_>,
) -> HandlerOutput {
    let Some(hook) = hooks.0.get(name) else {
        return HandlerOutput::refused("this process has no such hook");
    };
    let json = serde_json::from_str(input).unwrap_or_default();
    let started = clock.elapsed();
    let limit = Duration::from_millis(handler.timeout_ms);
    let reply = within(timer, limit, hook.run(HookInput { event, json })).await;
    let took = clock.elapsed().saturating_sub(started);
    let duration_ms = u64::saturating(took.as_millis());
    let (ended, stdout, stderr) = match reply {
        Some(HookReply { failure: Some(why), .. }) => (HandlerEnd::Exited(1), String::new(), why),
        Some(reply) => (HandlerEnd::Exited(0), reply.printed(event).to_string(), String::new()),
        None => (HandlerEnd::TimedOut, String::new(), format!("no answer within {limit:?}")),
    };
    HandlerOutput::new(ended, stdout, stderr, duration_ms)
}

#[cfg(test)]
mod tests;
