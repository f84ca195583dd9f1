//! Files that calls have read or changed, as a transcript has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{ToolName, ToolUseId},
    run::conversation::MAX_EDITED,
    tool::ToolNote,
    transcript::entry::{RecordKind, Stored},
};

/// The files so far, and the calls that may see another one. What a call noted is read where its record
/// holds it; a list of more than 1 KiB lies next to the transcript and is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenFiles {
    /// Calls without an end, with their tools.
    calls: BTreeMap<ToolUseId, ToolName>,
    /// Those since the last compaction.
    pub(crate) touched: Arc<BTreeSet<String>>,
    /// Those that each tool saw last, with their number, the latest last.
    latest: BTreeMap<ToolName, Vec<(u64, String)>>,
    n_seen: u64,
}

impl SeenFiles {
    pub(super) fn note(&mut self, what: &RecordKind) {
        match what {
            RecordKind::ToolIntent { call, tool, .. } => {
                self.calls.insert(call.clone(), tool.clone());
            }
            RecordKind::ToolEnd { call, notes, .. } => {
                let tool = self.calls.remove(call);
                let Some((tool, Stored::Text(notes))) = tool.zip(notes.as_ref()) else { return };
                let notes: Vec<ToolNote> = serde_json::from_str(notes).unwrap_or_default();
                for note in notes {
                    if let ToolNote::FileSeen { path, .. } = note {
                        self.note_seen(&tool, path);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_seen(&mut self, tool: &ToolName, path: String) {
        self.n_seen += 1;
        let latest = self.latest.entry(tool.clone()).or_default();
        latest.retain(|(_, it)| *it != path);
        latest.push((self.n_seen, path.clone()));
        let n_more = latest.len().saturating_sub(MAX_EDITED);
        latest.drain(..n_more);
        if !self.touched.contains(&path) {
            Arc::make_mut(&mut self.touched).insert(path);
        }
    }

    /// Forgets what was touched: what is for these files is due again after a compaction.
    pub(super) fn forget_touched(&mut self) {
        self.touched = Arc::default();
    }

    /// Returns the files that were changed last, the latest last. `changes` says of a tool whether it does.
    pub(crate) fn edited(&self, changes: impl Fn(&ToolName) -> bool) -> Vec<String> {
        let of_changes = self.latest.iter().filter(|(tool, _)| changes(tool));
        let mut all: Vec<&(u64, String)> = of_changes.flat_map(|(_, files)| files).collect();
        all.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
        let mut edited: Vec<String> = Vec::with_capacity(MAX_EDITED);
        for (_, path) in all {
            if edited.len() < MAX_EDITED && !edited.contains(path) {
                edited.push(path.clone());
            }
        }
        edited.reverse();
        edited
    }
}
