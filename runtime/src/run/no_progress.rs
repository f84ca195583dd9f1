//! Notices a run that goes in circles: the same call with the same result, the same denial.
//!
//! The counts run over all turns of a run, and nothing else reads them. They
//! hold digests, not texts, and are made again from the transcript by counting once more.

use std::collections::BTreeMap;

use crate::{digest::Digest, tool::ToolCall};

/// Equal calls with equal results at which the model gets a reminder.
pub(crate) const REMIND_AT: u32 = 3;
/// Equal calls with equal results at which the run ends with `no_progress`.
pub(crate) const END_AT: u32 = 5;
/// Equal denials in a row at which the run ends.
pub(crate) const DENIALS_IN_A_ROW: u32 = 3;
/// Denials in a run at which it ends.
pub(crate) const DENIALS_IN_A_RUN: u32 = 20;

/// Counts calls with their results. One per run; an empty one at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProgressWatch {
    seen: BTreeMap<(Digest, Digest), u32>,
}

/// What a repetition leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The run makes progress.
    Fine,
    /// Give the model this notice.
    Remind(String),
    /// End the run with `no_progress`.
    End,
}

impl NoProgressWatch {
    /// Notes a call that has run, and the digest of what the model reads of its result.
    ///
    /// `polls` is the tool's own word (`ToolSpec::polls`) that asking again is its purpose; such
    /// calls are not counted. The model gets one reminder, at [`REMIND_AT`].
    pub fn note(&mut self, call: &ToolCall, result: Digest, polls: bool) -> Repetition {
        if polls {
            return Repetition::Fine;
        }
        let count = self.seen.entry((call.action(), result)).or_default();
        *count = count.saturating_add(1);
        match *count {
            END_AT.. => Repetition::End,
            REMIND_AT => Repetition::Remind(reminder(call)),
            _ => Repetition::Fine,
        }
    }
}

fn reminder(call: &ToolCall) -> String {
    format!(
        "{} has now been called {REMIND_AT} times with the same input and gave the same result \
         each time. Calling it again will not help: use the result, change the input, or say what \
         is in the way. After {END_AT} times the run ends.",
        call.name
    )
}

/// Counts denials. One per run; an empty one at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenialWatch {
    last: Option<Digest>,
    in_a_row: u32,
    in_all: u32,
}

/// Why denials end a run. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialEnd {
    /// The same call was denied [`DENIALS_IN_A_ROW`] times in a row.
    Repeated,
    /// [`DENIALS_IN_A_RUN`] calls were denied.
    TooMany,
}

impl DenialEnd {
    /// Returns the code, as in transcripts.
    pub(crate) fn code(self) -> &'static str {
        match self {
            DenialEnd::Repeated => "repeated_denials",
            DenialEnd::TooMany => "too_many_denials",
        }
    }
}

impl DenialWatch {
    /// Notes a denied call, in the order of the calls.
    pub(crate) fn count_denial(&mut self, call: &ToolCall) -> Option<DenialEnd> {
        let action = call.action();
        self.in_a_row = if self.last == Some(action) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(action);
        self.in_all = self.in_all.saturating_add(1);
        if DENIALS_IN_A_ROW <= self.in_a_row {
            Some(DenialEnd::Repeated)
        } else if DENIALS_IN_A_RUN <= self.in_all {
            Some(DenialEnd::TooMany)
        } else {
            None
        }
    }

    /// Notes an allowed call: it ends the row, not the count of the run.
    pub(crate) fn end_row(&mut self) {
        self.last = None;
        self.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: usize, input: &str) -> ToolCall {
        ToolCall { id: id.to_string().into(), name: "Bash".into(), input: input.into() }
    }

    /// `f` fine, `r` reminded, `e` ended, one letter per (input, result).
    #[track_caller]
    fn check(polls: bool, calls: &[(&str, &str)], log: &str) {
        let mut watch = NoProgressWatch::default();
        let answers: String = calls
            .iter()
            .enumerate()
            .map(|(i, (input, result))| {
                match watch.note(&call(i, input), Digest::of(result.as_bytes()), polls) {
                    Repetition::Fine => 'f',
                    Repetition::Remind(text) => {
                        assert!(text.contains("Bash"), "{text}");
                        'r'
                    }
                    Repetition::End => 'e',
                }
            })
            .collect();
        assert_eq!(answers, log);
    }

    // REQ: TRN-12
    #[test]
    fn third_equal_call_is_pointed_out_and_the_fifth_ends_the_run() {
        check(false, &[("a", "1"); 6], "ffrfee");
    }

    // REQ: TRN-12
    #[test]
    fn equal_calls_count_across_others_in_between() {
        let (a, b) = (("a", "1"), ("b", "1"));
        check(false, &[a, b, a, b, a], "ffffr");
    }

    // REQ: TRN-12
    #[test]
    fn another_result_is_progress() {
        check(false, &[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4"), ("a", "5")], "fffff");
    }

    // REQ: TRN-12
    #[test]
    fn polling_tools_are_exempt() {
        check(true, &[("a", "1"); 6], "ffffff");
    }

    /// `.` represents an allowed call, another letter for a denied one; gives the place of the end.
    #[track_caller]
    fn check_denials(calls: &str, end: Option<(usize, DenialEnd)>) {
        let mut watch = DenialWatch::default();
        let found = calls.split("").filter(|it| !it.is_empty()).enumerate().find_map(|(i, it)| {
            if it == "." {
                watch.end_row();
                return None;
            }
            watch.count_denial(&call(i, it)).map(|end| (i, end))
        });
        assert_eq!(found, end);
    }

    // REQ: PRM-7
    #[test]
    fn three_equal_denials_in_a_row_end_the_run() {
        check_denials("aa", None);
        check_denials("aaa", Some((2, DenialEnd::Repeated)));
        check_denials("aabaa", None);
        check_denials("aa.aa", None);
        check_denials("baaa", Some((3, DenialEnd::Repeated)));
    }

    // REQ: PRM-7
    #[test]
    fn twenty_denials_end_the_run() {
        check_denials(&"ab".repeat(9), None);
        check_denials(&format!("{}a", "ab".repeat(9)), None);
        check_denials(&"ab".repeat(10), Some((19, DenialEnd::TooMany)));
        check_denials(&"ab.".repeat(10), Some((28, DenialEnd::TooMany)));
    }
}
