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
    run::{Last, RunCheck, SeenSources},
};
use crate::{
    block::Block,
    digest::Digest,
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Role},
    step9_stop_check::StopState,
    transcript::{
        entry::{ConversationLine, Record, RecordKind},
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
    /// Those of the runs that have ended.
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
            Entry::Harness(records) => {
                for record in records {
                    checker.record(record, prev).map_err(wrong)?;
                    (evidence.also)(record).map_err(|why| wrong(ViolationKind::Other { why }))?;
                }
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
        if let Some(run) = &mut self.run {
            run.shown(&message.id);
        }
        let turn = self.run.as_mut().and_then(|run| run.turn.as_mut());
        if let Some(boundary) = &line.boundary {
            return match turn {
                Some(turn) if boundary.trigger == "reactive" => turn.compact(),
                _ => Ok(()),
            };
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
                self.answered(message);
            }
            (Role::Assistant, ..) => return Err(ViolationKind::OutOfPlace),
            (_, MessageKind::ToolResults, Some(turn)) => {
                for (id, _, is_error) in message.blocks.iter().filter_map(Block::as_tool_result) {
                    turn.calls.answer(id, is_error)?;
                }
            }
            _ => self.answer_open_before(message)?,
        }
        self.stop.note(message);
        self.has_said = true;
        Ok(())
    }

    /// A message for the agent was received in the run under way.
    fn received(&mut self, record: &Record, message: EntryId) -> Result<(), ViolationKind> {
        let run = self.run.as_mut().ok_or(ViolationKind::OutsideRun)?;
        if record.run != run.id || record.turn != 0 {
            return Err(ViolationKind::WrongTurn);
        }
        run.messages.insert(message);
        Ok(())
    }

    /// Outside a turn nothing is open that a result could answer, but for what another program left
    /// open.
    fn answer_open_before(&mut self, message: &Message) -> Result<(), ViolationKind> {
        for (call, ..) in message.blocks.iter().filter_map(Block::as_tool_result) {
            if !self.open_before.remove(call) {
                return Err(ViolationKind::UnknownCall { call: call.clone() });
            }
        }
        Ok(())
    }

    /// The model has answered in the turn under way.
    fn answered(&mut self, answer: &Arc<Message>) {
        self.last_answer = Some(Arc::clone(answer));
        let n_calls = answer.tool_uses().count() as u64;
        self.calls += n_calls;
        if let Some(run) = &mut self.run {
            run.carried = None;
            run.has_called |= n_calls != 0;
        }
    }

    fn record(&mut self, record: &Record, prev: Digest) -> Result<(), ViolationKind> {
        if self.summary_due && !matches!(record.what, RecordKind::Repair { .. }) {
            return Err(ViolationKind::NoSummary);
        }
        match &record.what {
            RecordKind::RunStart { prompt, setup, .. } => {
                return self.start(record, prompt, text(setup, self.evidence)?);
            }
            RecordKind::Repair { .. }
            | RecordKind::Alert { .. }
            | RecordKind::Shell(_)
            | RecordKind::BackgroundAgent(_) => return Ok(()),
            RecordKind::AgentMessage(it) => return self.received(record, it.message.clone()),
            // Between runs, or between the turns of one.
            RecordKind::Mode(_) if record.turn == 0 => return Ok(()),
            // Hooks run before the run begins and after it has ended, too.
            RecordKind::Hook { .. } if record.run.is_none() || self.run.is_none() => return Ok(()),
            _ => {}
        }
        let Some(run) = &mut self.run else { return Err(ViolationKind::OutsideRun) };
        if record.run != run.id {
            return Err(ViolationKind::WrongTurn);
        }
        match &record.what {
            RecordKind::RunResumed { setup, .. } => {
                text(setup, self.evidence)?;
                run.resumed(self.last_answer.clone())
            }
            RecordKind::RunEnd { reason, turns, head, .. } => {
                if record.turn != 0 {
                    return Err(ViolationKind::WrongTurn);
                }
                run.end(reason, *turns)?;
                if *head != Some(prev) {
                    return Err(ViolationKind::WrongHead);
                }
                self.turns += u64::from(run.turns);
                self.run = None;
                Ok(())
            }
            _ => run.record(record, &self.stop, self.evidence),
        }
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
            used_early: 0,
            has_called: false,
            turns: 0,
            turn: None,
            last: Last::NoTurn,
            seen: SeenSources::default(),
            carried: None,
            messages: BTreeSet::new(),
        });
        Ok(())
    }
}
