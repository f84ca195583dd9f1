//! What the server keeps of a session in addition to its transcript: how it was asked for, and what its
//! runs used. One file each, replaced as a whole.

use std::{
    fs, io,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{
    catalogue::Money,
    ids::{SessionId, TenantId},
    permission::PermissionMode,
    time::Timestamp,
    tokens::Usage,
};
use serde::{Deserialize, Serialize};

use super::tokens::is_name;
use crate::groundwork::files;

/// Bytes of such a file at most; the text after the system prompt is the longest part.
const MAX_FILE: u64 = 256 * 1024;

/// How a session was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: SessionId,
    pub(crate) tenant: TenantId,
    pub(crate) title: Option<Box<str>>,
    /// Below the directory of the tenant.
    pub(crate) directory: Box<str>,
    pub(crate) model: Option<Box<str>>,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) max_turns: Option<NonZeroU32>,
    /// Follows the system prompt.
    pub(crate) system: Option<Box<str>>,
    pub(crate) created_at: Timestamp,
}

/// What all runs of a session used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) turns: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: Money,
    /// Whether the cost leaves out calls whose price is not known.
    pub(crate) is_partial: bool,
}

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) record: Record,
    #[serde(default)]
    pub(crate) totals: Totals,
    /// When something last happened in it; `None` in files of earlier versions.
    #[serde(default)]
    pub(crate) last_used_at: Option<Timestamp>,
    /// The model that answered its last run.
    #[serde(default)]
    pub(crate) last_model: Option<Arc<str>>,
}

/// The paths of what a server keeps, all below one directory.
#[derive(Clone, Debug)]
pub(crate) struct StatePaths {
    state: PathBuf,
}

impl StatePaths {
    pub(crate) fn new(state: PathBuf) -> Self {
        Self { state }
    }

    /// Returns the directory itself.
    pub(crate) fn top(&self) -> &Path {
        &self.state
    }

    /// Returns the path of what tenants have used today.
    pub(crate) fn spent(&self) -> PathBuf {
        self.state.join("spent.json")
    }

    fn records(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Returns the path of what is kept of a session.
    pub(crate) fn record(&self, tenant: &TenantId, id: &SessionId) -> PathBuf {
        self.records().join(tenant.as_str()).join(format!("{id}.json"))
    }

    /// Returns the directory of a session's runs.
    pub(crate) fn runs(&self, tenant: &TenantId, id: &SessionId) -> PathBuf {
        self.records().join(tenant.as_str()).join(format!("{id}.runs.jsonl"))
    }

    /// Returns the directory of a tenant's transcripts.
    pub(crate) fn transcripts(&self, tenant: &TenantId) -> PathBuf {
        self.state.join("transcripts").join(tenant.as_str())
    }

    /// Returns the path of a session's transcript.
    pub(crate) fn transcript(&self, tenant: &TenantId, id: &SessionId) -> PathBuf {
        self.transcripts(tenant).join(format!("{id}.jsonl"))
    }

    /// Writes what is kept of a session.
    pub(crate) fn save(&self, saved: &Saved) -> io::Result<()> {
        let text = serde_json::to_vec(saved)?;
        files::write_whole(&self.record(&saved.record.tenant, &saved.record.id), &text).map(drop)
    }

    /// Reads what is kept of all sessions, in any order. A file that cannot be read, or whose content is
    /// of another session than its name says, is left out, and the log has it.
    pub(crate) fn load(&self) -> io::Result<Vec<Saved>> {
        let mut found = Vec::new();
        for tenant in directory(&self.records())? {
            for file in directory(&tenant)? {
                let name = file.file_name().and_then(|it| it.to_str()).unwrap_or_default();
                if name.ends_with(".runs.jsonl") || !name.ends_with(".json") {
                    continue;
                }
                match read(&file) {
                    Some(saved) if self.record(&saved.record.tenant, &saved.record.id) == file => {
                        found.push(saved);
                    }
                    _ => tracing::error!(file = %file.display(), "not the record of a session"),
                }
            }
        }
        Ok(found)
    }
}

fn read(file: &Path) -> Option<Saved> {
    let length = fs::symlink_metadata(file).ok().filter(|it| it.is_file())?.len();
    let text = (length <= MAX_FILE).then(|| fs::read(file).ok())??;
    let saved: Saved = serde_json::from_slice(&text).ok()?;
    is_name(saved.record.tenant.as_str()).then_some(saved)
}

fn directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(path) {
        Ok(found) => found.map(|it| it.map(|it| it.path())).collect(),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
