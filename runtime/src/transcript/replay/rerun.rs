//! One turn, walked again: its effects are carried out by reading what came of them.

use std::{collections::VecDeque, sync::Arc};

use super::{
    ReplayError, StoredTexts,
    line::{LineRef, SealedLine, excerpt},
    recorded_inputs::RecordedInputs,
};
use crate::{
    catalogue::Catalogue,
    hook::{HookAction, HookEvent, HookHandler},
    step::Step,
    step9_stop_check::RunBudget,
    time::Timestamp,
    tool::ToolSpec,
    transcript::entry::{Line, RecordKind, Repeated, StepDetail, Stored},
    turn::{
        Effect, Turn, TurnInput, TurnSetup,
        effect::{Append, HistoryUpdate, TurnReport},
    },
};

pub(super) struct Rerun<'a> {
    turn: Turn,
    inputs: RecordedInputs<'a>,
    asked: VecDeque<Effect>,
    report: Option<TurnReport>,
    appends: Vec<(Timestamp, Append)>,
    has_verified: bool,
}

/// A turn that was walked again.
pub(super) struct Walked {
    /// The report, if it reached its end.
    pub(super) report: Option<TurnReport>,
    /// What it had recorded, as far as the file has it, and when.
    pub(super) appends: Vec<(Timestamp, Append)>,
    /// Whether it fired hooks that have agents verify.
    pub(super) has_verified: bool,
}

impl<'a> Rerun<'a> {
    pub(super) fn new(
        mut setup: TurnSetup,
        lines: &'a [&'a SealedLine<'a>],
        stored: StoredTexts<'a>,
    ) -> Self {
        let used = lines.iter().find_map(|it| match &super::window::record(it)?.what {
            RecordKind::TurnStep { detail: StepDetail::State { used, .. }, .. } => Some(*used),
            _ => None,
        });
        setup.budget = RunBudget { used: used.unwrap_or(0), max: None };
        let layers = setup.memory.layers.as_ref().map(Repeated::digest);
        let inputs = RecordedInputs::new(lines, stored, Arc::clone(&setup.facts), layers);
        let asked = VecDeque::from([Effect::Next(Step::SettingsResolution)]);
        Self {
            turn: Turn::new(setup).without_bodies(),
            inputs,
            asked,
            report: None,
            appends: Vec::new(),
            has_verified: false,
        }
    }

    /// Walks the turn as far as its lines go.
    pub(super) fn walk(mut self) -> Result<Walked, ReplayError> {
        // Where the lines end the turn ended; what it asked for then was not answered any more.
        while !self.inputs.is_over() {
            if let Some(effects) = self.mode_set() {
                self.carry_out(effects)?;
                continue;
            }
            let turn = &self.turn;
            self.asked.retain(|it| match it {
                // One that was judged anew has no answer.
                Effect::ConsultPolicy(question) | Effect::AskPermission(question) => {
                    turn.is_open(question)
                }
                _ => true,
            });
            // Calls run side by side; which has ended is in the line that comes next.
            let is_due = |it: &Effect| match it {
                Effect::ExecuteTool { call, .. } => self.inputs.is_about(&call.id),
                _ => true,
            };
            let due = self.asked.iter().position(is_due);
            let Some(asked) = due.and_then(|it| self.asked.remove(it)) else { break };
            self.stop_if_asked(&asked);
            let reads_sources = matches!(asked, Effect::ReadSources);
            let Some(input) = self.inputs.answer(asked, &self.turn)? else {
                if reads_sources {
                    self.take_torn();
                }
                continue;
            };
            let at = self.inputs.timestamp();
            let effects = self.turn.handle(at, input);
            self.carry_out(effects)?;
        }
        if self.inputs.is_over() || self.report.is_some() {
            let Self { report, appends, has_verified, .. } = self;
            return Ok(Walked { report, appends, has_verified });
        }
        let found = self.inputs.rest().map(|it| (it.number, excerpt(&it.line())));
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
                    Effect::Publish(_) | Effect::WatchFiles(_) => {}
                    Effect::RunHooks(firing) => {
                        let is_agent = |it: &HookHandler| matches!(it.action, HookAction::Agent(_));
                        self.has_verified |= firing.handlers.iter().any(is_agent);
                        self.asked.push_back(Effect::RunHooks(firing));
                    }
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
        let mut ticket = self.hold_against_file(append)?;
        let mut left = Vec::new();
        // The mode may have changed before it was known that a question is recorded; what is recorded later
        // covers that, too.
        if self.turn.consults_next() {
            for _ in 0..self.inputs.n_modes_before_consulting(self.turn.mode()) {
                for effect in self.mode_set().unwrap_or_default() {
                    match effect {
                        Effect::Append(append) => ticket = self.hold_against_file(*append)?,
                        other => left.push(other),
                    }
                }
            }
        }
        // What comes of this bears the time of the next line, and not of those that are recorded.
        let at = self.inputs.timestamp();
        left.extend(self.turn.handle(at, TurnInput::Recorded { ticket }));
        Ok(left)
    }

    /// Holds lines against the file and keeps those that it has. Returns their ticket.
    fn hold_against_file(&mut self, mut append: Append) -> Result<u64, ReplayError> {
        let (recorded_at, mut written, mut n_written) = (self.inputs.timestamp(), Vec::new(), 0);
        let mut has_withdrawn = false;
        for line in &append.lines {
            if self.inputs.compare(line, self.turn.step())? {
                n_written += 1;
                let record = line.record().map(|it| &it.what);
                has_withdrawn |= matches!(record, Some(RecordKind::PromptWithdrawn { .. }));
                if let Line::Conversation(line) = line {
                    written.push(line.message.id.clone());
                }
            }
        }
        append.lines.truncate(n_written);
        append.updates.retain(|updates| {
            let id = match updates {
                HistoryUpdate::Message(it) | HistoryUpdate::Compacted { summary: it, .. } => &it.id,
                HistoryUpdate::ContextShown(part) => &part.entry,
                HistoryUpdate::Withdrawn(_) => return has_withdrawn,
                HistoryUpdate::RunBegun(_) => return 0 < n_written,
            };
            written.contains(id)
        });
        let ticket = append.ticket;
        self.appends.push((recorded_at, append));
        Ok(ticket)
    }

    /// Puts the session into the mode that it was put into at this point, if it was.
    fn mode_set(&mut self) -> Option<Vec<Effect>> {
        let (mode, at) = (self.inputs.mode()?, self.inputs.timestamp());
        Some(self.turn.handle(at, TurnInput::ModeChanged(mode)))
    }

    /// Takes in what the last lines show the model, where the record of the sources is lost.
    fn take_torn(&mut self) {
        let (at, updates) = (self.inputs.timestamp(), self.inputs.take_torn());
        if !updates.is_empty() {
            let (lines, stored) = (Vec::new(), Vec::new());
            let append = Append {
                lines,
                stored,
                title: None,
                ticket: 0,
                sync: false,
                is_awaited: false,
                updates,
            };
            self.appends.push((at, append));
        }
    }

    /// Somebody asked for the end when a mark says so.
    fn stop_if_asked(&mut self, asked: &Effect) {
        let n_before = match asked {
            Effect::Next(Step::StopCheck) => 0,
            Effect::RunHooks(firing)
                if matches!(
                    firing.event,
                    HookEvent::Stop | HookEvent::SubagentStop | HookEvent::StopFailure
                ) =>
            {
                self.inputs.n_before_hooks() + firing.handlers.len()
            }
            _ => return,
        };
        let mark = self.inputs.ahead(n_before).is_some_and(|it| match it.line() {
            LineRef::Conversation(line) => line
                .message
                .blocks
                .iter()
                .any(|it| *it.kind() == crate::block::BlockKind::StopRequest),
            LineRef::Harness(_) => false,
        });
        if mark {
            // Only remembered; nothing comes of it yet.
            let at = self.inputs.timestamp();
            self.turn.handle(at, TurnInput::StopRequested);
        }
    }
}

/// Returns what was known about models when the turn was taken, if that is new.
///
/// # Errors
///
/// [`ReplayError::NotStored`] when it is not at hand.
pub(super) fn catalogue(
    lines: &[&SealedLine<'_>],
    stored: StoredTexts<'_>,
) -> Result<Option<Catalogue>, ReplayError> {
    let Some((line, SettingsFound { models: Some(models), .. })) = settings(lines) else {
        return Ok(None);
    };
    let models = super::texts::text_of(models, line, stored)?;
    Ok(serde_json::from_str(&models).ok())
}

/// Returns the tools that joined before the turn.
///
/// # Errors
///
/// [`ReplayError::NotStored`] when they are not at hand, [`ReplayError::Unrecorded`] when they are not a list
/// of tools.
pub(super) fn joined_tools(
    lines: &[&SealedLine<'_>],
    stored: StoredTexts<'_>,
) -> Result<Option<Vec<Arc<ToolSpec>>>, ReplayError> {
    let Some((line, SettingsFound { tools: Some(tools), .. })) = settings(lines) else {
        return Ok(None);
    };
    let tools = super::texts::text_of(tools, line, stored)?;
    let (step, what) = (Step::SettingsResolution, "the tools that joined");
    let unrecorded = |_| ReplayError::Unrecorded { line, step, what };
    serde_json::from_str(&tools).map(Some).map_err(unrecorded)
}

/// What a turn found with its settings that was not known before.
struct SettingsFound<'a> {
    models: Option<&'a Stored>,
    tools: Option<&'a Stored>,
}

/// The same, with the number of its line.
fn settings<'a>(lines: &[&SealedLine<'a>]) -> Option<(u64, SettingsFound<'a>)> {
    lines.iter().find_map(|it| match &super::window::record(it)?.what {
        RecordKind::TurnStep { detail: StepDetail::Settings { models, tools, .. }, .. } => {
            let (models, tools) = (models.as_ref(), tools.as_ref());
            Some((it.number, SettingsFound { models, tools }))
        }
        _ => None,
    })
}
