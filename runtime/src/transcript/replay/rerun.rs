//! One turn, walked again: its effects are carried out by reading what came of them.

use std::{collections::VecDeque, sync::Arc};

use super::{
    ReplayError, StoredTexts,
    line::{LineRef, SealedLine, shown},
    recorded_inputs::RecordedInputs,
};
use crate::{
    catalogue::Catalogue,
    hook::HookEvent,
    run::{Run, conversation::Conversation},
    step::Step,
    step9_stop_check::RunBudget,
    transcript::entry::{Line, RecordKind, Repeated, StepDetail},
    turn::{
        Effect, Turn, TurnInput,
        effect::{Append, HistoryUpdate, TurnReport},
    },
};

pub(super) struct Rerun<'a> {
    conversation: &'a mut Conversation,
    turn: Turn,
    told: RecordedInputs<'a>,
    asked: VecDeque<Effect>,
    report: Option<TurnReport>,
}

impl<'a> Rerun<'a> {
    /// # Errors
    ///
    /// [`ReplayError::NotStored`] when what was known about models is not at hand.
    pub(super) fn new(
        conversation: &'a mut Conversation,
        run: &Run,
        lines: &'a [&'a SealedLine<'a>],
        stored: StoredTexts<'a>,
    ) -> Result<Self, ReplayError> {
        if let Some(catalogue) = catalogue(lines, stored)? {
            conversation.memory.catalogue = Arc::new(catalogue);
        }
        let used = lines.iter().find_map(|it| match &super::window::record(it)?.what {
            RecordKind::TurnStep { detail: StepDetail::State { used, .. }, .. } => Some(*used),
            _ => None,
        });
        let budget = RunBudget { used: used.unwrap_or(0), max: None };
        let turn = Turn::new(conversation.turn(run, budget));
        let layers = conversation.memory.layers.as_ref().map(Repeated::digest);
        let told = RecordedInputs::new(lines, stored, conversation.facts.clone(), layers);
        let asked = VecDeque::from([Effect::Next(Step::SettingsResolution)]);
        Ok(Self { conversation, turn, told, asked, report: None })
    }

    /// Gives the report of a turn that reached its end.
    pub(super) fn walk(&mut self) -> Result<Option<TurnReport>, ReplayError> {
        // Where the lines end the turn ended; what it asked for then was not answered any more.
        while !self.told.is_over() {
            if let Some(mode) = self.told.mode() {
                let at = self.told.at();
                let effects = self.turn.handle(at, TurnInput::ModeChanged(mode));
                self.carry_out(effects)?;
                continue;
            }
            let turn = &self.turn;
            self.asked.retain(|it| match it {
                // One that was judged anew is answered by nobody.
                Effect::ConsultPolicy(question) | Effect::AskPermission(question) => {
                    turn.is_open(question)
                }
                _ => true,
            });
            // Calls run side by side; which has ended is told by the line that comes next.
            let is_due = |it: &Effect| match it {
                Effect::ExecuteTool { call, .. } => self.told.is_about(&call.id),
                _ => true,
            };
            let due = self.asked.iter().position(is_due);
            let Some(asked) = due.and_then(|it| self.asked.remove(it)) else { break };
            self.stop_if_asked(&asked);
            let Some(input) = self.told.answer(asked, &self.turn)? else { continue };
            let at = self.told.at();
            let effects = self.turn.handle(at, input);
            self.carry_out(effects)?;
        }
        if self.told.is_over() || self.report.is_some() {
            return Ok(self.report.take());
        }
        let found = self.told.rest().map(|it| (it.number, shown(&it.line)));
        let (line, found) = found.unwrap_or_default();
        let (step, expected) = (self.turn.step(), String::new());
        Err(ReplayError::Differs { line, step, expected, found })
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Result<(), ReplayError> {
        let mut waiting = VecDeque::from(effects);
        loop {
            while let Some(effect) = waiting.pop_front() {
                match effect {
                    Effect::Append(append) => waiting.extend(self.compare(*append)?),
                    Effect::Finish(mut report) => {
                        if let Some(append) = report.append.take() {
                            waiting.extend(self.compare(*append)?);
                        }
                        self.report = Some(*report);
                    }
                    Effect::Tell(_) => {}
                    asked => self.asked.push_back(asked),
                }
            }
            // Lines that wait for company are compared at once, so that it is known which line an
            // input is for.
            match self.turn.take_lines() {
                Some(append) => waiting.extend(self.compare(*append)?),
                None => return Ok(()),
            }
        }
    }

    /// Holds lines against the file; they count as recorded.
    fn compare(&mut self, append: Append) -> Result<Vec<Effect>, ReplayError> {
        let mut written = Vec::new();
        for line in &append.lines {
            match (self.told.compare(line, self.turn.step())?, line) {
                (true, Line::Conversation(line)) => written.push(line.message.id.clone()),
                (true, Line::Harness(record)) => {
                    self.conversation.memory.overrides.note(&record.what);
                }
                (false, _) => {}
            }
        }
        for said in append.said {
            let (HistoryUpdate::Message(message)
            | HistoryUpdate::Compacted { summary: message, .. }) = &said;
            if written.contains(&message.id) {
                self.conversation.said(said);
            }
        }
        // What comes of this bears the time of the next line, and not of those that are recorded.
        let at = self.told.at();
        Ok(self.turn.handle(at, TurnInput::Recorded { ticket: append.ticket }))
    }

    /// Somebody asked for the end when a mark says so.
    fn stop_if_asked(&mut self, asked: &Effect) {
        let n_before = match asked {
            Effect::Next(Step::StopCheck) => 0,
            Effect::RunHooks(firing) if firing.event == HookEvent::Stop => firing.handlers.len(),
            _ => return,
        };
        let mark = self.told.ahead(n_before).is_some_and(|it| match it.line {
            LineRef::Conversation(line) => line
                .message
                .blocks
                .iter()
                .any(|it| *it.kind() == crate::block::BlockKind::StopRequest),
            LineRef::Harness(_) => false,
        });
        if mark {
            // Only remembered; nothing comes of it yet.
            let at = self.told.at();
            self.turn.handle(at, TurnInput::StopRequested);
        }
    }
}

/// What was known about models when the turn was taken, if that is new.
fn catalogue(
    lines: &[&SealedLine<'_>],
    stored: StoredTexts<'_>,
) -> Result<Option<Catalogue>, ReplayError> {
    let models = lines.iter().find_map(|it| match &super::window::record(it)?.what {
        RecordKind::TurnStep { detail: StepDetail::Settings { models, .. }, .. } => {
            Some((it.number, models.as_ref()?))
        }
        _ => None,
    });
    let Some((line, models)) = models else { return Ok(None) };
    let models = super::text_of(models, line, stored)?;
    Ok(serde_json::from_str(&models).ok())
}
