//! Runs, turns and steps in order, and what was said in them.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Evidence, Verified, Violation, ViolationKind,
    calls::{Calls, text},
    chain::Sealed,
    forked::Before,
    run::{Last, Run, SeenSources, stop},
};
use crate::{
    block::Block,
    digest::Digest,
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Role},
    step::Step,
    step5_model_call::FailureClass,
    step9_stop_check::{RunBudget, check_stop_condition},
    transcript::entry::{ConversationLine, Line, Record, RecordKind, StepDetail},
};

/// The shapers, cheapest first.
const SHAPERS: [&str; 5] =
    ["budget_reduction", "snip", "microcompact", "context_collapse", "auto_compact"];

struct SequenceChecker<'a> {
    evidence: &'a Evidence<'a>,
    said: Vec<Arc<Message>>,
    ids: BTreeSet<EntryId>,
    run: Option<Run>,
    /// Calls without a result in the lines of another program.
    open_before: BTreeSet<ToolUseId>,
    /// A boundary whose summary has not come yet.
    summary_due: bool,
    runs: u64,
    turns: u64,
    calls: u64,
}

#[derive(Default)]
pub(super) struct Turn {
    /// The last step on record, 1 to 8.
    step: u8,
    attempts: u32,
    compactions: u32,
    boundaries: u32,
    fired: u32,
    shaper: (Option<u32>, usize),
    answered: bool,
    refused: u64,
    calls: Calls,
}

pub(super) fn check(
    before: Before,
    lines: Vec<Sealed>,
    evidence: &Evidence<'_>,
    verified: &mut Verified,
) -> Result<(), Violation> {
    let mut story = SequenceChecker {
        evidence,
        open_before: before.open_calls(),
        said: before.said,
        ids: BTreeSet::new(),
        run: None,
        summary_due: false,
        runs: 0,
        turns: 0,
        calls: 0,
    };
    for id in before.ids {
        if !story.ids.insert(id.clone()) {
            return Err(Violation { line: 1, what: ViolationKind::DoubledId { id } });
        }
    }
    let last = lines.last().map_or(0, |line| line.number);
    for Sealed { number, line, prev } in lines {
        let wrong = |what| Violation { line: number, what };
        match line {
            Line::Conversation(line) => story.said(&line).map_err(wrong)?,
            Line::Harness(record) => {
                story.record(&record, prev).map_err(wrong)?;
                (evidence.also)(&record, &story.said)
                    .map_err(|why| wrong(ViolationKind::Other { why }))?;
            }
        }
    }
    if story.run.is_some() {
        return Err(Violation { line: last, what: ViolationKind::NoEnd });
    }
    (verified.runs, verified.turns, verified.calls) = (story.runs, story.turns, story.calls);
    Ok(())
}

impl SequenceChecker<'_> {
    fn said(&mut self, line: &ConversationLine) -> Result<(), ViolationKind> {
        let message = &line.message;
        if !self.ids.insert(message.id.clone()) {
            return Err(ViolationKind::DoubledId { id: message.id.clone() });
        }
        if line.parent.as_ref().is_some_and(|it| *it == message.id || !self.ids.contains(it)) {
            return Err(ViolationKind::UnknownParent);
        }
        if self.summary_due != (message.kind == MessageKind::CompactSummary) {
            return Err(ViolationKind::NoSummary);
        }
        self.summary_due = line.boundary.is_some();
        if message.kind == MessageKind::Prompt && self.run.is_some() {
            return Err(ViolationKind::OutOfPlace);
        }
        let turn = self.run.as_mut().and_then(|run| run.turn.as_mut());
        if let Some(boundary) = &line.boundary {
            if let Some(turn) = turn
                && boundary.trigger == "reactive"
            {
                turn.boundaries += 1;
                if turn.boundaries == 2 {
                    return Err(ViolationKind::SecondCompaction);
                }
            }
            return Ok(());
        }
        if self.said.is_empty() && message.kind != MessageKind::Prompt {
            return Err(ViolationKind::NoPrompt);
        }
        match (message.role, message.kind, turn) {
            (Role::Assistant, _, Some(turn)) if turn.step == 4 || turn.step == 5 => {
                if turn.answered {
                    return Err(ViolationKind::WrongAnswer);
                }
                turn.answered = true;
                turn.calls.ask(message);
                let n_calls = message.tool_uses().count() as u64;
                self.calls += n_calls;
                if let Some(run) = &mut self.run {
                    run.has_called |= n_calls != 0;
                }
            }
            (Role::Assistant, ..) => return Err(ViolationKind::OutOfPlace),
            (_, MessageKind::ToolResults, Some(turn)) => {
                for (id, _, is_error) in message.blocks.iter().filter_map(Block::as_tool_result) {
                    turn.calls.answer(id, is_error)?;
                }
            }
            _ => {
                // Outside a turn nothing is open that a result could answer, but for what another
                // program left open.
                for (call, ..) in message.blocks.iter().filter_map(Block::as_tool_result) {
                    if !self.open_before.remove(call) {
                        return Err(ViolationKind::UnknownCall { call: call.clone() });
                    }
                }
            }
        }
        self.said.push(message.clone());
        Ok(())
    }

    fn record(&mut self, record: &Record, prev: Digest) -> Result<(), ViolationKind> {
        if self.summary_due && !matches!(record.what, RecordKind::Repair { .. }) {
            return Err(ViolationKind::NoSummary);
        }
        match &record.what {
            RecordKind::RunStart { prompt, setup, .. } => {
                return self.start(record, prompt, text(setup, self.evidence)?);
            }
            RecordKind::Repair { .. } | RecordKind::Alert { .. } | RecordKind::Shell { .. } => {
                return Ok(());
            }
            // Hooks run before the run begins and after it has ended, too.
            RecordKind::Hook { .. } if record.run.is_none() || self.run.is_none() => return Ok(()),
            _ => {}
        }
        let Some(run) = &mut self.run else { return Err(ViolationKind::OutsideRun) };
        if record.run != run.id {
            return Err(ViolationKind::WrongTurn);
        }
        if let RecordKind::RunEnd { reason, turns, head, .. } = &record.what {
            if record.turn != 0 {
                return Err(ViolationKind::WrongTurn);
            }
            run.end(reason, *turns)?;
            if *head != Some(prev) {
                return Err(ViolationKind::WrongHead);
            }
            self.run = None;
            return Ok(());
        }
        if let RecordKind::TurnStep { number: 1, .. } = record.what
            && run.turn.is_none()
        {
            if !matches!(run.last, Last::NoTurn | Last::GoOn) {
                return Err(ViolationKind::OutOfPlace);
            }
            run.turns += 1;
            run.turn = Some(Turn::default());
            self.turns += 1;
        }
        let (turns, used) = (run.turns, &mut run.used);
        let Some(turn) = &mut run.turn else {
            return match &record.what {
                RecordKind::TurnEnd { reason, at_step, .. } => {
                    // It ended before its first step was on record.
                    if at_step.is_some_and(|it| it != Step::SettingsResolution) {
                        let found = at_step.map_or(0, Step::number);
                        return Err(ViolationKind::WrongStep { expected: 1, found });
                    }
                    if record.turn == run.turns + 1 {
                        run.turns += 1;
                        self.turns += 1;
                    }
                    run.last = Last::Early(reason.clone());
                    Ok(())
                }
                RecordKind::TurnStep { number, .. } => {
                    Err(ViolationKind::WrongStep { expected: 1, found: *number })
                }
                // Steps 1 to 3 may leave records before that of step 1.
                RecordKind::Hook { .. } | RecordKind::Path { .. } => Ok(()),
                _ => Err(ViolationKind::OutOfPlace),
            };
        };
        if record.turn != turns {
            return Err(ViolationKind::WrongTurn);
        }
        match &record.what {
            RecordKind::TurnStep { number, step, detail } => {
                turn.step(*number, *step, detail)?;
                // What sub-agents used comes on top.
                if let StepDetail::State { used: recorded, .. } = detail
                    && (*recorded < *used || *used < *recorded && !run.has_called)
                {
                    let (recorded, counted) = (*recorded, *used);
                    return Err(ViolationKind::WrongCount { of: "tokens used", recorded, counted });
                }
                run.told.tell(detail, self.evidence)?;
                if *number == 9 {
                    let budget = RunBudget { used: *used, max: run.max_tokens };
                    let decision = check_stop_condition(&self.said, budget);
                    run.last = stop(detail, decision)?;
                    run.turn = None;
                }
            }
            RecordKind::TurnEnd { reason, at_step, .. } => {
                if let Some(call) = turn.calls.first_open() {
                    return Err(ViolationKind::NoResult { call: call.clone() });
                }
                let at = at_step.map_or(turn.step, Step::number);
                if at != turn.step && at != turn.step + 1 {
                    return Err(ViolationKind::WrongStep { expected: turn.step + 1, found: at });
                }
                run.last = Last::Early(reason.clone());
                run.turn = None;
            }
            RecordKind::ModelAttempt { usage, .. } => {
                *used = used.saturating_add(usage.total().0);
                turn.record(&record.what, self.evidence)?;
            }
            other => turn.record(other, self.evidence)?,
        }
        Ok(())
    }

    fn start(
        &mut self,
        record: &Record,
        prompt: &EntryId,
        setup: String,
    ) -> Result<(), ViolationKind> {
        if self.run.is_some() {
            return Err(ViolationKind::RunInRun);
        }
        if record.turn != 0 {
            return Err(ViolationKind::WrongTurn);
        }
        let asked = self.said.iter().rev().find(|message| message.id == *prompt);
        if !asked.is_some_and(|message| message.role == Role::User) {
            return Err(ViolationKind::NoPrompt);
        }
        self.runs += 1;
        self.run = Some(Run {
            id: record.run.clone(),
            max_tokens: (self.evidence.run_budget)(&setup),
            used: 0,
            has_called: false,
            turns: 0,
            turn: None,
            last: Last::NoTurn,
            told: SeenSources::default(),
        });
        Ok(())
    }
}

impl Turn {
    fn step(&mut self, number: u8, step: Step, detail: &StepDetail) -> Result<(), ViolationKind> {
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
            (5, StepDetail::Model { attempts, outcome }) => {
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

    fn record(&mut self, what: &RecordKind, evidence: &Evidence<'_>) -> Result<(), ViolationKind> {
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
                let n = if purpose == "turn" { &mut self.attempts } else { &mut self.compactions };
                *n += 1;
                if !matches!(self.step, 3 | 4) {
                    return Err(ViolationKind::OutOfPlace);
                }
                // Counted within its purpose, or over all calls of the turn.
                let n = *n;
                let counts = *attempt == n || *attempt == self.attempts + self.compactions;
                if !counts || (purpose == "turn" && (n == 1) != cause.is_none()) {
                    return Err(ViolationKind::WrongAttempt);
                }
            }
            RecordKind::Permission { call, tool, digest, input, decision, .. } => {
                self.calls.decide(call, tool, *digest, input.as_ref(), decision, evidence)?;
            }
            RecordKind::ToolIntent { call, tool, digest, .. } => {
                self.calls.intend(call, tool, *digest)?;
            }
            RecordKind::ToolEnd { call, error, sidechain, .. } => {
                self.calls.end(call, *error, sidechain.as_ref(), evidence)?;
            }
            _ => {}
        }
        Ok(())
    }
}
