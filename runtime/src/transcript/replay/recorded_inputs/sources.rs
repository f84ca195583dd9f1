//! What the sources of the context held, and what of it the model was shown at once.

use std::sync::Arc;

use super::{super::texts::text_of, RecordedInputs, ReplayError};
use crate::{
    message::MessageKind,
    step::Step,
    step3_context_assembly::{SourceMarks, SourceTexts, SourcesLook},
    transcript::{
        entry::{RecordKind, StepDetail},
        replay::{
            line::{LineRef, SealedLine},
            window::record,
        },
    },
    turn::effect::HistoryUpdate,
};

impl RecordedInputs<'_> {
    /// The texts of the sources; `None` where the file ends before the record that holds them.
    pub(super) fn sources(&self, step: Step) -> Result<Option<SourceTexts>, ReplayError> {
        // What they show the model at once is in front of their record, and so is what a look found.
        let is_look = |it: &SealedLine<'_>| {
            record(it).is_some_and(|it| matches!(it.what, RecordKind::SourcesSeen { .. }))
        };
        let is_before = |it: &&&SealedLine<'_>| history_update(it).is_some() || is_look(it);
        let n_shown = self.rest_of_lines().iter().take_while(is_before).count();
        let Some(line) = self.ahead(n_shown).filter(|_| !self.is_over()) else { return Ok(None) };
        let unrecorded = ReplayError::Unrecorded { line: line.number, step, what: "the sources" };
        let Some(RecordKind::TurnStep { detail: StepDetail::Context { texts, .. }, .. }) =
            record(line).map(|it| &it.what)
        else {
            return Err(unrecorded);
        };
        let texts = text_of(texts, line.number, self.stored)?;
        serde_json::from_str(&texts).map(Some).map_err(|_| unrecorded)
    }

    /// Takes what the last lines show the model, where the file ends before the record of the sources that
    /// it is from. Nothing where other lines are left.
    pub(in crate::transcript::replay) fn take_torn(&mut self) -> Vec<HistoryUpdate> {
        let updates: Option<Vec<HistoryUpdate>> =
            self.rest_of_lines().iter().map(|it| history_update(it)).collect();
        if updates.is_some() {
            self.next = self.lines.len();
        }
        updates.unwrap_or_default()
    }

    /// What a look at the sources found, if that was not as before.
    pub(super) fn sources_look(&self, step: Step) -> Result<SourcesLook, ReplayError> {
        match self.ahead(0).and_then(record).map(|it| &it.what) {
            Some(RecordKind::SourcesSeen { seen }) => {
                let seen = self.json(seen, "the sources", step)?;
                Ok(SourcesLook::Found(seen, SourceMarks(Arc::default())))
            }
            _ => Ok(SourcesLook::Unchanged),
        }
    }
}

/// What a line shows the model of its context, or records of that.
fn history_update(line: &SealedLine<'_>) -> Option<HistoryUpdate> {
    match line.line() {
        LineRef::Conversation(it) if it.message.kind == MessageKind::Meta => {
            Some(HistoryUpdate::Message(Arc::clone(&it.message)))
        }
        LineRef::Harness(it) => match &it.what {
            RecordKind::ContextAppended { part } => Some(HistoryUpdate::ContextShown(part.clone())),
            _ => None,
        },
        LineRef::Conversation(_) => None,
    }
}
