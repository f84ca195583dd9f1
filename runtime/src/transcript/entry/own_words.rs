//! Which records hold nothing that came from outside.

use std::borrow::Cow;

use super::{PassedStage, Record, RecordKind, StepDetail, Stored};

impl Record {
    /// Returns whether the record holds only numbers, digests and fixed words, so that no secret can be in it. About
    /// half of the lines of a turn do.
    ///
    /// `false` where a type does not show it.
    pub fn is_in_own_words(&self) -> bool {
        match &self.what {
            RecordKind::TurnStep { detail, .. } => match detail {
                StepDetail::State { .. }
                | StepDetail::Context { texts: Stored::At(_) | Stored::Again(_), .. }
                | StepDetail::Shaping { .. }
                | StepDetail::Dispatch { .. }
                | StepDetail::Gate { .. }
                | StepDetail::Execution { .. }
                | StepDetail::Stop { reason: None, .. } => true,
                StepDetail::Model { outcome, .. } => outcome == "ok",
                // One that was read from a file owns its text.
                StepDetail::Nothing { nothing } => matches!(nothing, Cow::Borrowed(_)),
                StepDetail::Settings { .. }
                | StepDetail::Context { .. }
                | StepDetail::Stop { .. } => false,
            },
            RecordKind::ModelAttempt {
                cause: None,
                provider: None,
                model: None,
                message: None,
                unsaid: None,
                cache_drop: None,
                purpose,
                outcome,
                ..
            } => purpose == "turn" && outcome == "ok",
            RecordKind::ShapersPassed { stages, .. } => {
                stages.iter().all(PassedStage::is_in_own_words)
            }
            _ => false,
        }
    }
}

impl PassedStage {
    fn is_in_own_words(&self) -> bool {
        // One that was read from a file owns its texts.
        matches!((&self.stage, &self.why), (Cow::Borrowed(_), Cow::Borrowed(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        digest::Digest,
        step::Step,
        time::Timestamp,
        tokens::{Tokens, Usage},
    };

    fn step(detail: StepDetail) -> RecordKind {
        RecordKind::TurnStep { number: 1, step: Step::StopCheck, detail }
    }

    fn attempt(outcome: &str, message: Option<&str>) -> RecordKind {
        RecordKind::ModelAttempt {
            attempt: 1,
            purpose: "turn".into(),
            cause: None,
            provider: None,
            model: None,
            streamed: true,
            max_tokens: 1,
            request: Digest::default(),
            request_bytes: 1,
            outcome: outcome.into(),
            message: message.map(str::to_owned),
            retry_after_ms: None,
            status: None,
            usage: Usage::default(),
            in_doubt: None,
            cost: None,
            first_token_ms: None,
            duration_ms: 1,
            parked_ms: None,
            unsaid: None,
            cache_drop: None,
        }
    }

    fn passed(why: Cow<'static, str>) -> RecordKind {
        let stages = vec![PassedStage { stage: "snip".into(), why }];
        RecordKind::ShapersPassed { tokens: Tokens(1), stages }
    }

    // REQ: SES-8
    #[test]
    fn record_with_a_text_from_outside_is_not_in_own_words() {
        let context = |texts| StepDetail::Context { texts, sizes: [0; 9], tokens: Tokens(1) };
        let stopped = |reason| StepDetail::Stop { done: true, reason };
        let model = |outcome: &str| StepDetail::Model {
            attempts: 1,
            outcome: outcome.into(),
            estimated: None,
            anchor: None,
        };
        for (what, expected) in [
            (step(StepDetail::State { messages: 1, session_retries: 0, used: 0 }), true),
            (step(StepDetail::Gate { allowed: 1, denied: 0 }), true),
            (step(context(Stored::Again(Digest::default()))), true),
            (step(context(Stored::Text("words".into()))), false),
            (step(stopped(None)), true),
            (step(stopped(Some("words".into()))), false),
            (step(model("ok")), true),
            (step(model("words")), false),
            (attempt("ok", None), true),
            (attempt("words", None), false),
            (attempt("ok", Some("words")), false),
            (passed("no pressure".into()), true),
            (passed("words".to_owned().into()), false),
            (RecordKind::Alert { what: "words".into() }, false),
        ] {
            let record = Record { at: Timestamp(1), run: None, turn: 1, what, shares_line: false };
            assert_eq!(record.is_in_own_words(), expected, "{record:?}");
        }
    }
}
