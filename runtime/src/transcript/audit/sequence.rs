//! Runs, turns and steps in order, and the messages in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Evidence, Verified, Violation, ViolationKind,
    calls::text,
    chain::Sealed,
    forked::Before,
    run::{Last, RunCheck, SeenSources, stop},
    turn::TurnCheck,
};
use crate::{
    block::Block,
    digest::Digest,
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Role},
    step::Step,
    step9_stop_check::{RunBudget, StopState},
    transcript::{
        entry::{ConversationLine, Record, RecordKind, StepDetail},
        read::Entry,
    },
};

struct SequenceChecker<'a> {
    evidence: &'a Evidence<'a>,
    /// What the stop check knows of all messages.
    stop: StopState,
    has_said: bool,
    /// The lines so far; who speaks, if it is a message.
    ids: BTreeMap<EntryId, Option<Role>>,
    run: Option<RunCheck>,
    /// Calls without a result in the lines of another program.
    open_before: BTreeSet<ToolUseId>,
    /// The last answer of the model.
    last_answer: Option<Arc<Message>>,
    /// A boundary whose summary has not come yet.
    summary_due: bool,
    runs: u64,
    turns: u64,
    calls: u64,
}

pub(super) fn check(
    before: Before,
    lines: Vec<Sealed<'_>>,
    evidence: &Evidence<'_>,
    verified: &mut Verified,
) -> Result<(), Violation> {
    let mut checker = SequenceChecker {
        evidence,
        open_before: before.open_calls(),
        stop: StopState::default(),
        has_said: !before.messages.is_empty(),
        ids: BTreeMap::new(),
        run: None,
        last_answer: None,
        summary_due: false,
        runs: 0,
        turns: 0,
        calls: 0,
    };
    for id in before.ids {
        if checker.ids.insert(id.clone(), None).is_some() {
            return Err(Violation { line: 1, what: ViolationKind::DoubledId { id } });
        }
    }
    for message in &before.messages {
        checker.stop.note(message);
        checker.ids.insert(message.id.clone(), Some(message.role));
    }
    let last = lines.last().map_or(0, |line| line.number);
    for Sealed { number, entry, prev } in lines {
        let wrong = |what| Violation { line: number, what };
        match entry {
            Entry::Conversation { line, .. } => checker.check_message(line).map_err(wrong)?,
            Entry::Harness(record) => {
                checker.record(record, prev).map_err(wrong)?;
                (evidence.also)(record).map_err(|why| wrong(ViolationKind::Other { why }))?;
            }
            // The chain has none of these.
            Entry::Other { .. } => return Err(wrong(ViolationKind::UnknownRecord)),
        }
    }
    if checker.run.is_some() {
        return Err(Violation { line: last, what: ViolationKind::NoEnd });
    }
    (verified.runs, verified.turns, verified.calls) = (checker.runs, checker.turns, checker.calls);
    Ok(())
}

impl SequenceChecker<'_> {
    fn check_message(&mut self, line: &ConversationLine) -> Result<(), ViolationKind> {
        let message = &line.message;
        let role = line.boundary.is_none().then_some(message.role);
        if self.ids.insert(message.id.clone(), role).is_some() {
            return Err(ViolationKind::DoubledId { id: message.id.clone() });
        }
        if line.parent.as_ref().is_some_and(|it| *it == message.id || !self.ids.contains_key(it)) {
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
        if !self.has_said && message.kind != MessageKind::Prompt {
            return Err(ViolationKind::NoPrompt);
        }
        match (message.role, message.kind, turn) {
            (Role::Assistant, _, Some(turn)) if turn.step == 4 || turn.step == 5 => {
                if turn.answered {
                    return Err(ViolationKind::WrongAnswer);
                }
                turn.answered = true;
                turn.calls.ask(message);
                self.last_answer = Some(Arc::clone(message));
                if let Some(run) = &mut self.run {
                    run.carried = None;
                }
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
        self.stop.note(message);
        self.has_said = true;
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
            // Between runs, or between the turns of one.
            RecordKind::Mode { .. } if record.turn == 0 => return Ok(()),
            // Hooks run before the run begins and after it has ended, too.
            RecordKind::Hook { .. } if record.run.is_none() || self.run.is_none() => return Ok(()),
            _ => {}
        }
        let Some(run) = &mut self.run else { return Err(ViolationKind::OutsideRun) };
        if record.run != run.id {
            return Err(ViolationKind::WrongTurn);
        }
        if let RecordKind::RunResumed { setup, .. } = &record.what {
            text(setup, self.evidence)?;
            return run.resumed(self.last_answer.clone());
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
            run.turn = Some(TurnCheck::carrying(run.carried.as_deref()));
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
                RecordKind::Hook { .. } | RecordKind::Path { .. } | RecordKind::Links { .. } => {
                    Ok(())
                }
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
                if *number == 7 {
                    run.carried = None;
                }
                run.seen.check(detail, self.evidence)?;
                if *number == 9 {
                    let budget = RunBudget { used: *used, max: run.max_tokens };
                    let decision = self.stop.decision(budget);
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
        if self.ids.get(prompt) != Some(&Some(Role::User)) {
            return Err(ViolationKind::NoPrompt);
        }
        self.runs += 1;
        self.run = Some(RunCheck {
            id: record.run.clone(),
            max_tokens: (self.evidence.run_budget)(&setup),
            used: 0,
            has_called: false,
            turns: 0,
            turn: None,
            last: Last::NoTurn,
            seen: SeenSources::default(),
            carried: None,
        });
        Ok(())
    }
}
