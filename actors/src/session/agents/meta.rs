//! What lies next to the transcript of a sub-agent: `agent-<id>.meta.json`.

use std::{path::Path, sync::Arc};

use ennead_runtime::{
    ids::{AgentId, RunId, ToolUseId},
    ports::messages::KnownAgent,
};
use serde::{Deserialize, Serialize};

use crate::ports::transcript_store::TranscriptStore;

/// What `isolation` says of an agent in a worktree.
const WORKTREE: &str = "worktree";

/// What is written about a sub-agent when it begins. Of a file that cannot be read, nothing is known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_type: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_id: Option<ToolUseId>,
    /// The run of its call, where that has other sub-agents, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part_of: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_agent_id: Option<AgentId>,
    /// The model that its call asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// What its type is, for a comparison when it is to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) definition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) isolation: Option<String>,
}

impl AgentMeta {
    /// Reads what lies next to this transcript. Blocks.
    pub(super) fn read(store: &dyn TranscriptStore, transcript: &Path) -> Self {
        let meta = store.read(&transcript.with_extension("meta.json")).unwrap_or_default();
        serde_json::from_slice(&meta).unwrap_or_default()
    }

    /// Notes whether it works in a worktree.
    pub(super) fn isolated(self, in_worktree: bool) -> Self {
        Self { isolation: in_worktree.then(|| WORKTREE.to_owned()), ..self }
    }

    /// Returns the text of the file.
    pub(super) fn to_text(&self) -> Arc<str> {
        // All of it is text, so it can be written.
        serde_json::to_string(self).unwrap_or_default().into()
    }

    /// Returns what the rules need to know; `None` where there is no such agent.
    pub(super) fn known(self) -> Option<KnownAgent> {
        Some(KnownAgent {
            agent_type: self.agent_type?,
            definition: self.definition,
            description: self.description.unwrap_or_default(),
            model: self.model,
            parent: self.parent_agent_id,
            in_worktree: self.isolation.as_deref() == Some(WORKTREE),
        })
    }
}
