//! What a session goes on with, folded from its lines one after another.
//!
//! The session that writes the lines folds them as well: what a turn recorded holds when the turn is given
//! up, and a later opening of the session comes to the same.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{UsageTotals, seen_files::SeenFiles, skills::SkillCalls, tasks::Tasks};
use crate::{
    run::RunEnd,
    step4_context_shapers::recorded_view::RecordedView,
    tokens::{Anchor, Estimate, Tokens},
    transcript::entry::{ConversationLine, Line, MessageRecord, Record, RecordKind, StepDetail},
};

/// The lines so far, but for the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedState {
    pub(crate) used: UsageTotals,
    pub(crate) tasks: Tasks,
    pub(crate) skills: SkillCalls,
    pub(crate) files: SeenFiles,
    pub(crate) view: RecordedView,
    /// The last reported size of a request.
    pub(crate) anchor: Option<Anchor>,
    /// The model of the last answer, and what its provider reported.
    answered: Option<(Arc<str>, Tokens)>,
    /// From how many messages on there is a summary again; 0 when none waits.
    pub(crate) summary_pause: usize,
    /// How the last run ended.
    pub(super) last_end: Option<RunEnd>,
    /// Messages for the agent that its conversation does not show yet, oldest first.
    pub(crate) unread: Vec<MessageRecord>,
}

impl RecordedState {
    /// Takes in a line.
    pub(crate) fn add(&mut self, line: &Line) {
        match line {
            Line::Harness(record) => self.note(record),
            Line::Conversation(line) => self.add_message(line),
        }
    }

    pub(super) fn note(&mut self, record: &Record) {
        self.used.note(record);
        self.files.note(&record.what);
        match &record.what {
            RecordKind::RunEnd { reason, .. } => self.last_end = RunEnd::read(reason),
            RecordKind::View(change) => self.view.note(change),
            RecordKind::Shaper { waits: Some(messages), .. } => self.summary_pause = messages.get(),
            RecordKind::AgentMessage(message) => self.unread.push(message.clone()),
            RecordKind::TurnStep { detail: StepDetail::Model { anchor: Some(it), .. }, .. } => {
                let (by_class, by_chars) = *it;
                let estimated = Estimate::recorded(by_class, by_chars);
                let answered = self.answered.clone();
                self.anchor =
                    answered.map(|(model, reported)| Anchor { model, reported, estimated });
            }
            _ => {}
        }
    }

    pub(super) fn add_message(&mut self, line: &ConversationLine) {
        self.used.add_message(line);
        self.tasks.note(line);
        self.skills.note(line);
        self.unread.retain(|it| it.message != line.message.id);
        if line.boundary.is_some() {
            self.files.forget_touched();
            self.view.compacted();
            self.anchor = None;
            self.summary_pause = 0;
        }
        if let Some(answer) = &line.answer {
            let model = answer.signed_by().cloned().unwrap_or_else(|| "".into());
            self.answered = Some((model, answer.usage.total()));
        }
    }
}
