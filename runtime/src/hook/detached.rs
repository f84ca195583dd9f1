//! Handlers that are started and not waited for (`async`): what they answer is read when they have ended.
//!
//! What was to be decided is decided by then, so of an answer only the texts for the model and for the user count.

use super::{
    HandlerEnd, HandlerOutput, HookEvent, HookVerdict, OnFailure, WatchReach, read_answer,
};
use crate::ids::EntryId;

/// Milliseconds that a handler which is not waited for may take, whatever limit it names.
pub(crate) const MAX_DETACHED_MS: u64 = 3_600_000;

/// Whether what fires a handler waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookWait {
    /// Its answer is waited for, unless the first line of its output says otherwise.
    #[default]
    Waited,
    /// It is started, and what fires it goes on (`async`).
    Detached,
    /// The same, and with exit code 2 it has a session at rest go on (`asyncRewake`).
    Rewaking,
}

/// A handler that was not waited for, and has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedHook {
    /// The event that it ran for.
    pub event: HookEvent,
    /// What ran, as records have it.
    pub handler: String,
    /// How it ended, and what it left.
    pub output: HandlerOutput,
    /// The file that it ran for, where it ran for one.
    pub file: Option<String>,
    /// Which files its answer may have watched.
    pub reach: WatchReach,
    /// Whether it has a session at rest go on when it ends with exit code 2.
    pub rewakes: bool,
    /// The message that shows the model what it adds, where one is on record.
    pub shows: Option<EntryId>,
}

impl EndedHook {
    /// Returns whether it asks for the attention of the model.
    pub(crate) fn asks(&self) -> bool {
        self.rewakes && self.output.ended == HandlerEnd::Exited(2)
    }

    /// Returns what it answered: texts for the model, for the user, and what went wrong.
    pub(crate) fn verdict(&self) -> HookVerdict {
        if self.asks() {
            let text = match self.output.stderr.trim() {
                "" => "it ended with exit code 2 and gave no reason",
                stderr => stderr,
            };
            let context = vec![text.to_owned()];
            return HookVerdict { additional_context: context, ..HookVerdict::default() }.capped();
        }
        // What no handler of these may say is not looked at, so the first rules read them as the last ones do.
        let mut read = read_answer(self.event, &self.output, OnFailure::Ignore, false, 0).verdict;
        read.watching(self.reach);
        // Of other events it would come too late: what they name is watched from when they have ended.
        let watches = read.watches.filter(|_| self.event == HookEvent::FileChanged);
        HookVerdict {
            additional_context: read.additional_context,
            messages: read.messages,
            errors: read.errors,
            overlong: read.overlong,
            watches,
            ..HookVerdict::default()
        }
    }
}

/// Returns whether a first line of output says that its handler is not to be waited for, and with which limit in
/// milliseconds from then on.
pub fn says_detached(line: &[u8]) -> Option<Option<u64>> {
    let object: serde_json::Map<_, _> = serde_json::from_slice(line).ok()?;
    let limit = object.get("asyncTimeout").and_then(serde_json::Value::as_u64);
    let is_said = object.get("async").and_then(serde_json::Value::as_bool) == Some(true);
    is_said.then_some(limit.map(|it| it.clamp(1, MAX_DETACHED_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str, rewakes: bool) -> EndedHook {
        let output = HandlerOutput::new(HandlerEnd::Exited(code), stdout.into(), stderr.into(), 1);
        let (event, handler) = (HookEvent::PreToolUse, "h".into());
        let (file, reach) = (None, WatchReach::Nothing);
        EndedHook { event, handler, output, file, reach, rewakes, shows: None }
    }

    // REQ: HKS-1, HKS-4
    #[test]
    fn texts_of_what_was_not_waited_for_count_and_decisions_do_not() {
        let answer = r#"{"continue":false,"decision":"block","reason":"no","systemMessage":"m",
            "hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",
            "updatedInput":{},"additionalContext":"c"}}"#;
        let verdict = ended(0, answer, "", false).verdict();
        let expected = HookVerdict {
            additional_context: vec!["c".into()],
            messages: vec!["m".into()],
            ..HookVerdict::default()
        };
        assert_eq!(verdict, expected);
        assert_eq!(ended(2, "", "no", false).verdict(), HookVerdict::default());
        assert_eq!(ended(2, "", "look\n", true).verdict().additional_context, ["look"]);
        assert_eq!(ended(1, "", "broken", true).verdict().errors.len(), 1);
    }

    // REQ: HKS-1
    #[test]
    fn first_line_says_whether_it_is_waited_for() {
        for (line, said) in [
            (r#"{"async":true}"#, Some(None)),
            (r#" {"async":true,"asyncTimeout":1500} "#, Some(Some(1500))),
            (r#"{"async":true,"asyncTimeout":9999999999}"#, Some(Some(MAX_DETACHED_MS))),
            (r#"{"async":true,"asyncTimeout":0}"#, Some(Some(1))),
            (r#"{"async":true,"asyncTimeout":"x"}"#, Some(None)),
            (r#"{"async":false}"#, None),
            (r#"{"async":"true"}"#, None),
            (r#"[true]"#, None),
            ("async", None),
        ] {
            assert_eq!(says_detached(line.as_bytes()), said, "{line}");
        }
    }
}
