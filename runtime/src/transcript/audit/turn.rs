//! One turn: its steps in order, and what the records between them say.

use super::{Evidence, ViolationKind, calls::Calls};
use crate::{
    message::Message,
    step::Step,
    step5_model_call::FailureClass,
    transcript::entry::{RecordKind, SidechainHead, StepDetail},
};

/// The shapers, cheapest first.
const SHAPERS: [&str; 5] =
    ["budget_reduction", "snip", "microcompact", "context_collapse", "auto_compact"];

/// A turn that has no end yet.
#[derive(Default)]
pub(super) struct TurnCheck {
    /// The last step on record, 1 to 8.
    pub(super) step: u8,
    attempts: u32,
    compactions: u32,
    classifications: u32,
    for_hooks: u32,
    syntheses: u32,
    boundaries: u32,
    fired: u32,
    shaper: (Option<u32>, usize),
    pub(super) answered: bool,
    refused: u64,
    pub(super) calls: Calls,
}

impl TurnCheck {
    /// Makes a turn that continues with the calls of an earlier answer, if there is one.
    pub(super) fn carrying(answer: Option<&Message>) -> Self {
        let mut turn = Self::default();
        if let Some(answer) = answer {
            turn.calls.ask(answer);
        }
        turn
    }

    /// Takes the record of a step.
    pub(super) fn step(
        &mut self,
        number: u8,
        step: Step,
        detail: &StepDetail,
    ) -> Result<(), ViolationKind> {
        if number != self.step + 1 || step.number() != number {
            return Err(ViolationKind::WrongStep { expected: self.step + 1, found: number });
        }
        self.step = number;
        let same = |of, recorded: u32, counted: u64| {
            let recorded = u64::from(recorded);
            if recorded == counted {
                Ok(())
            } else {
                Err(ViolationKind::WrongCount { of, recorded, counted })
            }
        };
        let n_calls = self.calls.len();
        match (number, detail) {
            (1, StepDetail::Settings { .. }) | (3, StepDetail::Context { .. }) => {}
            (2, StepDetail::State { .. }) => {}
            (4, StepDetail::Shaping { fired, .. }) => {
                same("shapers fired", *fired, self.fired.into())?;
            }
            (5, StepDetail::Model { attempts, outcome, .. }) => {
                same("model attempts", *attempts, self.attempts.into())?;
                // What the output ceiling cut for good is kept where something of it is left.
                let is_kept_cut = outcome == FailureClass::MaxOutput.code() && self.answered;
                if (outcome == "ok") != self.answered && !is_kept_cut {
                    return Err(ViolationKind::WrongAnswer);
                }
            }
            (6, StepDetail::Dispatch { calls, refused }) => {
                same("calls", *calls, n_calls)?;
                self.refused = u64::from(*refused);
            }
            (7, StepDetail::Gate { allowed, .. }) => {
                if self.calls.undecided() > self.refused
                    && let Some(call) = self.calls.first_undecided()
                {
                    return Err(ViolationKind::NoDecision { call: call.clone() });
                }
                same("calls allowed", *allowed, self.calls.allowed())?;
            }
            (8, StepDetail::Execution { succeeded, failed }) => {
                self.all_answered()?;
                same("calls failed", *failed, self.calls.failed())?;
                same("calls succeeded", *succeeded, n_calls - self.calls.failed())?;
            }
            (9, StepDetail::Stop { .. }) => self.all_answered()?,
            (2..=8, StepDetail::Nothing { .. }) if number < 6 || n_calls == 0 => {}
            _ => return Err(ViolationKind::WrongDetail),
        }
        Ok(())
    }

    /// Checks whether the turn may end before its ninth step, at this one.
    pub(super) fn end(&self, at_step: Option<Step>) -> Result<(), ViolationKind> {
        self.all_answered()?;
        let at = at_step.map_or(self.step, Step::number);
        if at == self.step || at == self.step + 1 {
            Ok(())
        } else {
            Err(ViolationKind::WrongStep { expected: self.step + 1, found: at })
        }
    }

    /// Counts a compaction after an answer that the provider refused for its length.
    pub(super) fn compact(&mut self) -> Result<(), ViolationKind> {
        self.boundaries += 1;
        if self.boundaries == 2 { Err(ViolationKind::SecondCompaction) } else { Ok(()) }
    }

    fn all_answered(&self) -> Result<(), ViolationKind> {
        match self.calls.first_open() {
            Some(call) => Err(ViolationKind::NoResult { call: call.clone() }),
            None => Ok(()),
        }
    }

    /// Holds a shaper stage against the one before it.
    fn stage(&mut self, stage: &str, attempt: Option<u32>) -> Result<(), ViolationKind> {
        if !matches!(self.step, 3 | 4) {
            return Err(ViolationKind::OutOfPlace);
        }
        if let Some(place) = SHAPERS.iter().position(|it| *it == stage) {
            if self.shaper.0 == attempt && place < self.shaper.1 {
                return Err(ViolationKind::ShaperOrder);
            }
            self.shaper = (attempt, place);
        }
        Ok(())
    }

    /// Counts a call of the model: the first of a turn has no cause.
    fn attempt(
        &mut self,
        attempt: u32,
        purpose: &str,
        has_no_cause: bool,
    ) -> Result<(), ViolationKind> {
        let n = match purpose {
            "turn" => &mut self.attempts,
            "classification" => &mut self.classifications,
            "hook" => &mut self.for_hooks,
            "synthesis" => &mut self.syntheses,
            _ => &mut self.compactions,
        };
        *n += 1;
        let n = *n;
        let is_in_place = match purpose {
            "classification" => self.step == 6,
            // Before a prompt is answered, at the gate, after a call and before the end.
            "hook" => matches!(self.step, 1 | 6..=8),
            // When calls have run.
            "synthesis" => self.step == 7,
            _ => matches!(self.step, 3 | 4),
        };
        if !is_in_place {
            return Err(ViolationKind::OutOfPlace);
        }
        // Counted within its purpose, or over all calls of the turn.
        let aside = self.classifications + self.for_hooks + self.syntheses;
        let of_all = self.attempts + self.compactions + aside;
        let counts = attempt == n || attempt == of_all;
        if !counts || (purpose == "turn" && (n == 1) != has_no_cause) {
            return Err(ViolationKind::WrongAttempt);
        }
        Ok(())
    }

    /// Takes a record between two steps.
    pub(super) fn record(
        &mut self,
        what: &RecordKind,
        evidence: &Evidence<'_>,
    ) -> Result<(), ViolationKind> {
        match what {
            RecordKind::ShapersPassed { stages, .. } => {
                for it in stages {
                    self.stage(&it.stage, None)?;
                }
            }
            RecordKind::Shaper { stage, fired, attempt, .. } => {
                self.fired += u32::from(*fired && attempt.is_none());
                self.stage(stage, *attempt)?;
            }
            RecordKind::ModelAttempt { attempt, purpose, cause, .. } => {
                self.attempt(*attempt, purpose, cause.is_none())?;
            }
            RecordKind::Permission { call, tool, digest, input, decision, .. } => {
                self.calls.decide(call, tool, *digest, input.as_ref(), decision, evidence)?;
            }
            RecordKind::ToolIntent { call, tool, digest, .. } => {
                self.calls.intend(call, tool, *digest)?;
            }
            RecordKind::ToolEnd { call, error, sidechain, .. } => {
                self.calls.end(call, *error)?;
                let others = sidechain.iter().flat_map(|it| &it.others);
                sidechain.iter().chain(others).try_for_each(|it| vouched(Some(it), evidence))?;
            }
            RecordKind::Hook { sidechain, .. } => vouched(sidechain.as_ref(), evidence)?,
            _ => {}
        }
        Ok(())
    }
}

/// Holds the transcript of a sub-agent against the head that a record names.
fn vouched(named: Option<&SidechainHead>, evidence: &Evidence<'_>) -> Result<(), ViolationKind> {
    match named {
        Some(named) if (evidence.sidechain)(named) == Some(false) => {
            Err(ViolationKind::WrongSidechain)
        }
        _ => Ok(()),
    }
}
