//! The classes themselves: what a command needs at least.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a command needs at least. Smaller ones are freer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CommandClass {
    /// It changes no file, process, network peer or setting.
    ReadOnly,
    /// Its changes stay in the workspace and can be taken back.
    WorkspaceWrite,
    /// Everything else, and what is not known or cannot be read.
    Dangerous,
}

impl CommandClass {
    /// Returns the name that transcripts use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Dangerous => "dangerous",
        }
    }
}

impl fmt::Display for CommandClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
