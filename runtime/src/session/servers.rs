//! MCP servers that were starting when the session was opened: their tools join with the next turn,
//! and what is wrong with them is published and on record.

use std::sync::Arc;

use super::{
    Machine, Now, SessionEffect,
    recorder::{PendingLines, WriteOrigin},
    run::{ActiveRun, Phase, record},
};
use crate::{
    event::Event,
    ids::RunId,
    time::Timestamp,
    tool::ToolSpec,
    transcript::entry::{Line, RecordKind},
};

impl Machine {
    /// Handles that a server has answered, or cannot be reached. The notice about it waits for the next run when none
    /// is under way, since records belong to runs, or when the last record of the run is on its way.
    pub(super) fn server_answered(
        &mut self,
        now: Now,
        tools: Vec<Arc<ToolSpec>>,
        notes: Vec<Arc<str>>,
    ) {
        self.joining.extend(tools);
        let is_open = |it: &&ActiveRun| !matches!(it.phase, Phase::Ending(_));
        let Some(active) = self.active.as_deref().filter(is_open) else {
            return self.alerts.extend(notes);
        };
        if notes.is_empty() {
            return;
        }
        let lines = notes.iter().map(|what| alert(now.at, &active.run.id, what)).collect();
        let published = notes.into_iter().map(|what| SessionEffect::Publish(Event::Alert { what }));
        self.effects.extend(published);
        let lines = PendingLines { lines, stored: Vec::new(), title: None, sync: false };
        self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
    }
}

/// Makes the record of something that an operator should look at, of a run and none of its turns.
pub(super) fn alert(at: Timestamp, run: &RunId, what: &str) -> Line {
    record(at, run, RecordKind::Alert { what: what.into() })
}
