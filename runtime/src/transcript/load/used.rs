//! What a transcript says was used: the sums with which a session goes on.
//!
//! The conversations of sub-agents are not loaded; what they used is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    catalogue::Money,
    cost::CostLedger,
    lease::Spent,
    run::RunEnd,
    step::Step,
    step5_model_call::{model_name::is_same, purpose::Purpose},
    time::Timestamp,
    tokens::{Learned, Tokens, Usage},
    transcript::entry::{ConversationLine, Record, RecordKind, StepDetail},
};

/// Of one file; of a session, without its sub-agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotals {
    /// When the first record was written: that of a sub-agent is written when it has been started.
    pub began: Option<Timestamp>,
    /// Turns begun; one that the tree of agents refused its first model call is none.
    pub turns: u64,
    /// Reported by the model attempts.
    pub usage: Usage,
    /// The same by what came of the calls, and what they cost.
    pub cost: CostLedger,
    /// Milliseconds from the beginnings of runs to their ends. A run that has no end is over with
    /// its last record.
    pub worked_ms: u64,
    /// The model that was asked first, if it ever answered.
    pub model: Option<Arc<str>>,
    /// When the model last answered.
    pub last_answer_at: Option<Timestamp>,
    /// Money spent since the last compaction.
    pub since_compaction: Money,
    /// Compactions that were made.
    pub compactions: u64,
    /// Model calls that failed.
    pub failed_calls: u32,
    /// Model calls that were under way when their process ended, without the one that is
    /// [under way](Self::lost_calls) at the end of the file.
    lost_calls: u32,
    /// The estimate for the request of the present turn, until an answer to it is on record.
    begun: Option<Tokens>,
    /// Calls without a reported usage, as their worst case.
    in_doubt: Spent,
    /// Whether a model was asked in the present turn.
    has_asked: bool,
    /// The latest record of a run that has not ended.
    latest: Option<Timestamp>,
    /// Whether the last call was one of another model.
    is_other_model: bool,
    /// How far off estimates were for the models that answered.
    pub(crate) learned: Learned,
    /// The model of the last answer, and the input that its provider reported.
    answered: Option<(Arc<str>, Tokens)>,
}

impl UsageTotals {
    /// Returns these sums as part of those of a tree. Of a call that was lost only the size of its request is known.
    pub fn spent(&self) -> Spent {
        let calls = Spent { turns: self.turns, ..self.cost.own_accounts().total().into() };
        calls + self.in_doubt + self.begun.map(lost).unwrap_or_default()
    }

    /// Counts the model calls that were in flight when their process ended. One that had failed and waited for its next
    /// attempt counts as well: the record does not distinguish them.
    pub(crate) fn lost_calls(&self) -> u32 {
        self.lost_calls.saturating_add(u32::from(self.begun.is_some()))
    }

    /// Returns what its calls cost, for the ledger of its parent. They are named by the model that answered first,
    /// where no record names another.
    #[must_use]
    pub fn ledger(self) -> CostLedger {
        self.cost.named(self.model.as_deref().unwrap_or("unknown"))
    }

    pub(super) fn note(&mut self, record: &Record) {
        self.began.get_or_insert(record.at);
        self.cost.note(&record.what);
        self.note_time(record);
        match &record.what {
            RecordKind::TurnStep { step: Step::SettingsResolution, .. } => {
                self.turns += 1;
                self.has_asked = false;
            }
            RecordKind::TurnStep { detail: StepDetail::Shaping { tokens, .. }, .. } => {
                self.begun = Some(*tokens);
            }
            RecordKind::TurnStep { detail, .. } => {
                self.begun = None;
                self.learn(detail);
            }
            RecordKind::RunStart { .. } | RecordKind::RunEnd { .. } => self.loses_call(),
            RecordKind::TurnEnd { in_doubt: Some(call), .. } => {
                self.begun = None;
                self.in_doubt = self.in_doubt + Spent::from(*call);
            }
            RecordKind::TurnEnd { reason, .. } => {
                // Any other end was one in order: what waited for the call let it go.
                if reason == RunEnd::Crashed.code() {
                    self.loses_call()
                } else {
                    self.begun = None
                }
                let was_refused = reason == RunEnd::TreeLimit.code() && !self.has_asked;
                self.turns -= u64::from(was_refused).min(self.turns);
            }
            RecordKind::ModelAttempt { usage, in_doubt, model, outcome, cost, purpose, .. } => {
                self.failed_calls = self.failed_calls.saturating_add(u32::from(outcome != "ok"));
                self.since_compaction = self.since_compaction + cost.unwrap_or_default();
                self.has_asked = true;
                self.begun =
                    self.begun.filter(|_| outcome != "ok" || purpose != Purpose::Turn.name());
                self.in_doubt = self.in_doubt + in_doubt.map(Spent::from).unwrap_or_default();
                self.usage = self.usage + *usage;
                self.is_other_model = model.is_some();
            }
            _ => {}
        }
    }

    /// Nothing came of the call under way, if there was one, and nothing will.
    fn loses_call(&mut self) {
        if let Some(tokens) = self.begun.take() {
            self.lost_calls = self.lost_calls.saturating_add(1);
            self.in_doubt = self.in_doubt + lost(tokens);
        }
    }

    pub(super) fn add_message(&mut self, line: &ConversationLine) {
        if line.boundary.is_some() {
            self.since_compaction = Money::default();
            self.compactions = self.compactions.saturating_add(1);
        }
        if line.answer.is_some() {
            self.last_answer_at = Some(line.at);
        }
        if let Some(answer) = &line.answer {
            let model = answer.signed_by().cloned();
            self.answered = model.map(|it| (it, answer.usage.context()));
        }
        if let Some(answer) = &line.answer
            && self.model.is_none()
            && !self.is_other_model
        {
            self.model = answer.signed_by().cloned();
        }
    }

    /// As the turn did that recorded the step.
    fn learn(&mut self, detail: &StepDetail) {
        if let StepDetail::Model { estimated: Some(estimated), .. } = detail
            && let Some((model, reported)) = &self.answered
        {
            self.learned.learn(model, |it| is_same(model, it), *estimated, *reported);
        }
    }

    fn note_time(&mut self, record: &Record) {
        let before = match record.what {
            RecordKind::RunStart { .. } => record.at,
            _ => match self.latest {
                Some(latest) => latest,
                None => return,
            },
        };
        // A clock that was put back does not move here.
        let at = before.max(record.at);
        self.worked_ms = self.worked_ms.saturating_add(at.0 - before.0);
        self.latest = (!matches!(record.what, RecordKind::RunEnd { .. })).then_some(at);
    }
}

/// What is known of a call of which nothing is on record but the size of its request.
fn lost(tokens: Tokens) -> Spent {
    Spent { tokens, ..Spent::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::transcript::{
        load::lines,
        read::{Entry, read_line},
    };

    fn line(at: u64, mut fields: Value) -> String {
        fields["type"] = "ennead".into();
        fields["v"] = 1.into();
        fields["at"] = at.into();
        format!("{fields}\n")
    }

    fn start(at: u64) -> String {
        let fields = json!({"kind": "run_start", "run": "r", "prompt": "p", "origin": "user",
            "stream": "0", "setup": {"text": "{}"}, "first": false});
        line(at, fields)
    }

    fn end(at: u64) -> String {
        let fields = json!({"kind": "run_end", "run": "r", "reason": "no_pending_tools", "turns": 1,
            "usage": {}});
        line(at, fields)
    }

    fn attempt(at: u64, cost: Option<u64>) -> String {
        let fields = json!({"kind": "model_attempt", "run": "r", "turn": 1, "attempt": 1,
            "purpose": "turn", "outcome": "ok", "streamed": true, "max_tokens": 9, "request_bytes": 9, "usage": {"input_tokens": 5},
            "cost": cost, "first_token_ms": null, "duration_ms": 1,
            "request": crate::digest::Digest::of(b"request")});
        line(at, fields)
    }

    fn read(lines: &[String]) -> UsageTotals {
        let text = lines.concat();
        let mut used = UsageTotals::default();
        for line in lines::split(text.as_bytes(), &mut Vec::new()) {
            let read = read_line(&line.text).unwrap_or_else(|it| panic!("{it:?}: {}", line.text));
            let Entry::Harness(records) = read.entry else { panic!("{}", line.text) };
            records.iter().for_each(|it| used.note(it));
        }
        used
    }

    // REQ: AGT-7, SES-4
    #[test]
    fn time_is_that_of_runs_also_of_one_without_an_end() {
        let used =
            read(&[start(100), attempt(150, None), end(180), start(500), attempt(507, None)]);
        assert_eq!(used.worked_ms, 87);
        // Put back by an hour in the middle of a run.
        let used = read(&[start(4_000_000), attempt(400_000, None), end(400_100)]);
        assert_eq!(used.worked_ms, 0);
    }

    // REQ: AGT-7, SES-4
    #[test]
    fn usage_and_cost_are_those_of_the_attempts() {
        let used = read(&[start(1), attempt(2, Some(7)), attempt(3, None), end(4)]);
        let total = used.cost.own_accounts().total();
        assert_eq!((used.usage.input_tokens, total.usage), (10, used.usage));
        assert_eq!((total.cost, total.unpriced), (Money(7), 1));
    }

    fn turn(at: u64) -> String {
        let fields = json!({"kind": "turn_step", "run": "r", "turn": 1, "number": 1,
            "step": "settings_resolution", "detail": {"nothing": "n"}});
        line(at, fields)
    }

    fn ended(at: u64, reason: &str, in_doubt: Value) -> String {
        let mut fields = json!({"kind": "turn_end", "run": "r", "turn": 1, "reason": reason,
            "at_step": "model_call"});
        if !in_doubt.is_null() {
            fields["in_doubt"] = in_doubt;
        }
        line(at, fields)
    }

    // REQ: AGT-7, SES-4
    #[test]
    fn turns_are_those_in_which_a_model_could_be_asked() {
        let refused = || ended(9, "tree_limit", Value::Null);
        let in_doubt = json!({"tokens": 50, "cost": 7});
        let cases = [
            (vec![turn(2), attempt(3, None)], 1),
            (vec![turn(2), ended(3, "interrupted", Value::Null)], 1),
            (vec![turn(2), refused()], 0),
            (vec![turn(2), attempt(3, None), refused()], 1),
            // Its time was over while the model was asked.
            (vec![turn(2), ended(9, "tree_limit", in_doubt)], 1),
            (vec![turn(2), attempt(3, None), turn(4), refused()], 1),
        ];
        for (mut lines, turns) in cases {
            lines.insert(0, start(1));
            assert_eq!(read(&lines).spent().turns, turns, "{lines:?}");
        }
    }

    fn shaped(at: u64) -> String {
        let fields = json!({"kind": "turn_step", "run": "r", "turn": 1, "number": 4,
            "step": "context_shaping", "detail": {"tokens": 30, "fired": 0, "remaining": 9}});
        line(at, fields)
    }

    // REQ: AGT-7, SES-4
    #[test]
    fn call_under_way_when_its_process_ended_counts_once_with_its_request() {
        let cases = [
            (vec![shaped(3)], 1),
            (vec![shaped(3), ended(4, "crashed", Value::Null), end(5)], 1),
            (vec![shaped(3), end(5)], 1),
            (vec![shaped(3), start(5)], 1),
            (vec![shaped(3), attempt(4, None)], 0),
            (vec![shaped(3), ended(4, "interrupted", Value::Null), end(5)], 0),
            (vec![shaped(3), ended(4, "crashed", json!({"tokens": 0, "cost": 0})), end(5)], 0),
        ];
        for (mut lines, lost) in cases {
            lines.splice(0..0, [start(1), turn(2)]);
            let used = read(&lines);
            let reported = used.usage.total().0;
            assert_eq!(used.lost_calls(), lost, "{lines:?}");
            let spent = u64::from(lost) * 30 + reported;
            assert_eq!(used.spent().tokens.0, spent, "{lines:?}");
        }
    }

    // REQ: AGT-7, SES-4
    #[test]
    fn call_in_doubt_counts_as_its_worst_case_for_the_tree_alone() {
        let in_doubt = json!({"tokens": 50, "cost": 7});
        let lines = [start(10), turn(11), attempt(12, Some(4)), ended(13, "interrupted", in_doubt)];
        let used = read(&lines);
        let spent =
            Spent { turns: 1, tokens: crate::tokens::Tokens(55), money: Money(11), unpriced: 0 };
        assert_eq!((used.spent(), used.began), (spent, Some(Timestamp(10))));
        assert_eq!(used.cost.own_accounts().total().cost, Money(4));
    }
}
