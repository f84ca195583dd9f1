//! What one handler answered.
//!
//! Two failures are kept apart: the hook fails (a visible error, no decision, unless its settings
//! say that failing denies), or the harness cannot run it (a PreToolUse call is denied).

mod field;
mod specific;

use std::borrow::Cow;

use serde_json::{Map, Value};

use field::{boolean, text};

use super::{HookDecision, HookEvent, HookPermission, HookVerdict, OnFailure, WatchReach};
use crate::{digest::Digest, ids::AgentId};

/// Bytes of standard output that are read where other sessions wait: well under a millisecond of work.
const IN_PLACE: usize = 32 << 10;

/// How a handler ended, and what it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerOutput {
    /// How the handler ended.
    pub ended: HandlerEnd,
    /// Text of its standard output.
    pub stdout: String,
    /// Text of its standard error.
    pub stderr: String,
    /// Wall-clock time of the handler, in milliseconds.
    pub duration_ms: u64,
    /// The object in its standard output, where somebody has read it before.
    pub read: ReadBefore,
    /// The agent that verified, and the head of its transcript.
    pub sidechain: Option<(AgentId, Digest)>,
}

/// What is in an output, as far as it was read where no session waits. Of equal outputs it is equal.
#[derive(Clone, Debug, Default)]
pub struct ReadBefore(Option<Option<Map<String, Value>>>);

impl PartialEq for ReadBefore {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReadBefore {}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerEnd {
    /// The handler exited with this code.
    Exited(i32),
    /// It was killed for taking too long.
    TimedOut,
    /// A signal killed it, or it could not be started.
    Crashed,
    /// It was not run: what fires it was started by this very handler (HKS-3).
    Cycle,
    /// It is a server, and what it answered is not an answer: a status that is not a success, a text that is not a JSON
    /// object.
    Unusable,
    /// It was not run: its condition (`if`) does not hold for this call.
    Unmet,
    /// It asks a model, which is still to be done; the output is what the model is asked.
    ForModel,
    /// It was started and is not waited for.
    Detached,
    /// It was not to be waited for, and as many of those as may were at work already.
    Crowded,
    /// The harness did not run it: its queue was full, its runner crashed, it is shutting down.
    Refused,
}

impl HandlerOutput {
    /// Makes the output of a handler that ended this way after this many milliseconds.
    pub fn new(ended: HandlerEnd, stdout: String, stderr: String, duration_ms: u64) -> Self {
        let read = ReadBefore::default();
        Self { ended, stdout, stderr, duration_ms, read, sidechain: None }
    }

    /// Returns whether it is short enough to be read where other sessions wait.
    pub fn is_short(&self) -> bool {
        self.stdout.len() <= IN_PLACE
    }

    /// Reads its standard output, which takes time with its length.
    #[must_use]
    pub fn read(self) -> Self {
        Self { read: ReadBefore(Some(json(&self.stdout))), ..self }
    }

    fn object(&self) -> Option<Cow<'_, Map<String, Value>>> {
        match &self.read.0 {
            Some(object) => object.as_ref().map(Cow::Borrowed),
            None => json(&self.stdout).map(Cow::Owned),
        }
    }

    /// Makes the output that represents a handler whose condition does not hold.
    pub fn unmet() -> Self {
        Self::new(HandlerEnd::Unmet, String::new(), String::new(), 0)
    }

    /// Makes the output that represents a handler that the harness could not run.
    pub fn refused(why: &str) -> Self {
        Self::new(HandlerEnd::Refused, String::new(), why.into(), 0)
    }
}

impl HandlerEnd {
    /// Returns the exit code; `None` unless it ended by itself.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            HandlerEnd::Exited(code) => Some(code),
            HandlerEnd::TimedOut
            | HandlerEnd::Crashed
            | HandlerEnd::Cycle
            | HandlerEnd::Unusable
            | HandlerEnd::Unmet
            | HandlerEnd::ForModel
            | HandlerEnd::Detached
            | HandlerEnd::Crowded
            | HandlerEnd::Refused => None,
        }
    }

    /// Reads what a record has: the exit code, or the code of another end.
    pub(crate) fn read(exit: Option<i32>, code: &str) -> Self {
        let others = [
            HandlerEnd::TimedOut,
            HandlerEnd::Cycle,
            HandlerEnd::Unusable,
            HandlerEnd::Unmet,
            HandlerEnd::Detached,
            HandlerEnd::Crowded,
            HandlerEnd::Refused,
        ];
        let other = || others.into_iter().find(|it| it.code() == code);
        exit.map(HandlerEnd::Exited).or_else(other).unwrap_or(HandlerEnd::Crashed)
    }

    /// Returns the code that records use.
    pub fn code(self) -> &'static str {
        match self {
            HandlerEnd::Exited(_) => "exited",
            HandlerEnd::TimedOut => "timed_out",
            HandlerEnd::Crashed => "crashed",
            HandlerEnd::Cycle => "cycle",
            HandlerEnd::Unusable => "unusable",
            HandlerEnd::Unmet => "unmet",
            HandlerEnd::ForModel => "for_model",
            HandlerEnd::Detached => "detached",
            HandlerEnd::Crowded => "crowded",
            HandlerEnd::Refused => "refused",
        }
    }
}

/// What one handler means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// The verdict of this handler alone.
    pub verdict: HookVerdict,
}

impl HookAnswer {
    /// Restricts the answer to that of a handler that may only restrict: an allow, a title and words of the user's count
    /// for nothing, and a call whose input it wants changed is asked about. What an input allows cannot be compared with what another one
    /// does, so every change counts as one that widens.
    #[must_use]
    pub(crate) fn restricting(mut self) -> Self {
        let verdict = &mut self.verdict;
        (verdict.title, verdict.initial_message) = (None, None);
        let allowed = verdict.decision.take_if(|it| matches!(it, HookDecision::Allow { .. }));
        let changed = verdict.updated_input.take();
        let allowed =
            allowed.is_some() || verdict.permission.take_if(|it| it.denies.is_none()).is_some();
        if changed.is_some() {
            let reason = "a hook of the repository wants to change the input of this call, which \
                needs trust in the workspace";
            let ask = HookDecision::Ask { reason: reason.into() };
            verdict.decision.get_or_insert(ask);
        } else if allowed {
            let why = "a hook of the repository allowed a call, which needs trust in the workspace \
                and did not count";
            verdict.errors.push(why.into());
        }
        self
    }

    /// Notes which files the handler may have watched.
    #[must_use]
    pub(crate) fn watching(mut self, reach: WatchReach) -> Self {
        self.verdict.watching(reach);
        self
    }

    /// Returns the effect of the answer in a word, for the hook trace.
    pub fn effect(&self) -> &'static str {
        let verdict = &self.verdict;
        match &verdict.decision {
            _ if verdict.stop.is_some() => "stop",
            Some(HookDecision::Deny { .. }) => "deny",
            Some(HookDecision::Ask { .. }) => "ask",
            Some(HookDecision::Defer { .. }) => "defer",
            _ if verdict.permission.as_ref().is_some_and(|it| it.denies.is_some()) => "deny",
            _ if verdict.permission.is_some() => "allow",
            _ if verdict.block_reason.is_some() => "block",
            _ if verdict.updated_input.is_some() => "input",
            _ if verdict.updated_output.is_some() || verdict.updated_mcp_output.is_some() => {
                "output"
            }
            Some(HookDecision::Allow { .. }) => "allow",
            None if !verdict.errors.is_empty() => "error",
            None if verdict.initial_message.is_some() => "context",
            None if !verdict.additional_context.is_empty() => "context",
            None => "none",
        }
    }
}

/// Reads what a handler answered, by this revision of the rules. `fail_closed` is the setting `hooks.fail_closed`.
pub fn read_answer(
    event: HookEvent,
    output: &HandlerOutput,
    on_failure: OnFailure,
    fail_closed: bool,
    revision: u32,
) -> HookAnswer {
    let failed = |why: String| failed(event, why, on_failure, fail_closed);
    let name = event.name();
    let verdict = match output.ended {
        HandlerEnd::Refused => {
            let why = format!("a {name} hook could not be run");
            let mut verdict = match event {
                HookEvent::PreToolUse => blocked(event, why.clone()),
                _ => HookVerdict::default(),
            };
            verdict.errors.push(why);
            verdict
        }
        HandlerEnd::TimedOut => {
            failed(format!("a {name} hook was stopped after {} ms", output.duration_ms))
        }
        HandlerEnd::Crashed => {
            failed(format!("a {name} hook crashed{}", first_line(&output.stderr)))
        }
        HandlerEnd::Unusable => {
            failed(format!("a {name} hook gave no usable answer{}", first_line(&output.stderr)))
        }
        HandlerEnd::Unmet | HandlerEnd::Detached | HandlerEnd::ForModel => HookVerdict::default(),
        // It could not have decided anything.
        HandlerEnd::Crowded => {
            let why = format!("a {name} hook was not run: {}", output.stderr);
            HookVerdict { errors: vec![why], ..HookVerdict::default() }
        }
        HandlerEnd::Cycle => failed(format!(
            "a {name} hook was not run again by what it had started itself{}",
            first_line(&output.stderr)
        )),
        HandlerEnd::Exited(code) => match (code, output.object()) {
            (2, object) => exit_two(event, object.as_deref(), &output.stderr, revision),
            (_, Some(object)) => fields(event, &object, revision).unwrap_or_else(|why| {
                failed(format!("the answer of a {name} hook is not valid: {why}"))
            }),
            (0, None) if event.reads_plain_text() && !output.stdout.trim().is_empty() => {
                let context = vec![output.stdout.trim().to_owned()];
                HookVerdict { additional_context: context, ..HookVerdict::default() }
            }
            (0, None) => HookVerdict::default(),
            (code, None) => {
                let stderr = first_line(&output.stderr);
                failed(format!("a {name} hook failed with exit code {code}{stderr}"))
            }
        },
    };
    HookAnswer { verdict: verdict.capped() }
}

/// The verdict of a handler that failed, which denies where that was asked for.
pub(super) fn failed(
    event: HookEvent,
    why: String,
    on_failure: OnFailure,
    fail_closed: bool,
) -> HookVerdict {
    if fail_closed || on_failure == OnFailure::Block {
        let mut verdict = blocked(event, format!("{why}, and its failing denies"));
        verdict.errors.push(why);
        verdict
    } else {
        HookVerdict { errors: vec![why], ..HookVerdict::default() }
    }
}

/// Exit 2 blocks whatever the output says. A reason in the output counts only if the output blocks.
fn exit_two(
    event: HookEvent,
    object: Option<&Map<String, Value>>,
    stderr: &str,
    revision: u32,
) -> HookVerdict {
    let fields_given = object.and_then(|it| fields(event, it, revision).ok()).unwrap_or_default();
    let blocks = matches!(fields_given.decision, Some(HookDecision::Deny { .. }))
        || fields_given.block_reason.is_some();
    if blocks {
        return HookVerdict { updated_input: None, ..fields_given };
    }
    // Questions are answered by the fields of an answer alone.
    if event == HookEvent::PermissionRequest {
        let stderr = first_line(stderr);
        let why = format!("a {} hook ended with exit code 2{stderr}", event.name());
        return HookVerdict { errors: vec![why], ..HookVerdict::default() };
    }
    let reason = match stderr.trim() {
        "" => format!("a {} hook blocked without a reason", event.name()),
        stderr => stderr.to_owned(),
    };
    let blocked = blocked(event, reason);
    HookVerdict {
        decision: blocked.decision,
        block_reason: blocked.block_reason,
        updated_input: None,
        errors: fields_given.errors.into_iter().chain(blocked.errors).collect(),
        ..fields_given
    }
}

fn blocked(event: HookEvent, reason: String) -> HookVerdict {
    match event {
        HookEvent::PreToolUse => {
            HookVerdict { decision: Some(HookDecision::Deny { reason }), ..HookVerdict::default() }
        }
        HookEvent::PermissionRequest => {
            let answer = HookPermission { denies: Some(reason), ..HookPermission::default() };
            HookVerdict { permission: Some(answer), ..HookVerdict::default() }
        }
        event if event.can_block() => {
            HookVerdict { block_reason: Some(reason), ..HookVerdict::default() }
        }
        _ => HookVerdict { errors: vec![reason], ..HookVerdict::default() },
    }
}

fn json(stdout: &str) -> Option<Map<String, Value>> {
    let text = stdout.trim_start();
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn first_line(stderr: &str) -> String {
    stderr.lines().find(|it| !it.trim().is_empty()).map(|it| format!(": {it}")).unwrap_or_default()
}

/// Applies the fields of an answer, or says which one does not fit.
fn fields(
    event: HookEvent,
    object: &Map<String, Value>,
    revision: u32,
) -> Result<HookVerdict, String> {
    let mut verdict = HookVerdict::default();
    if boolean(object, "continue")? == Some(false) {
        let reason = text(object, "stopReason")?;
        verdict.stop = Some(reason.unwrap_or_else(|| format!("a {} hook said so", event.name())));
    }
    verdict.messages.extend(text(object, "systemMessage")?);
    let reason = text(object, "reason")?;
    match text(object, "decision")?.as_deref() {
        None => {}
        Some("block") => {
            let reason = reason.unwrap_or_else(|| format!("blocked by a {} hook", event.name()));
            let blocked = blocked(event, reason);
            verdict.decision = blocked.decision;
            verdict.block_reason = blocked.block_reason;
            verdict.errors.extend(blocked.errors);
        }
        Some("approve") if event == HookEvent::PreToolUse => {
            verdict.decision = Some(HookDecision::Allow { reason: reason.unwrap_or_default() });
        }
        Some("approve") => {}
        Some(other) => return Err(format!("`decision` is `{other}`")),
    }
    match object.get("hookSpecificOutput") {
        None | Some(Value::Null) => {}
        Some(Value::Object(specific)) => specific::apply(event, specific, &mut verdict, revision)?,
        Some(_) => return Err("`hookSpecificOutput` is no object".into()),
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests;
