//! The notes that types of sub-agents keep from one session to the next: where they lie, and the start of their index.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    run::agent_types::{AgentMemory, AgentType},
    step1_settings_resolution::trust::Trust,
    step3_context_assembly::source5_auto_memory::index_start,
};
use ennead_tools::source_file::Root;

use super::source_files::SessionDirs;

/// Bytes of an index that are read; fewer are shown.
const MAX_READ: u64 = 64 * 1024;

/// Where a type of sub-agent keeps its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentNotes {
    /// The directory out of which no link leads: the working directory, or the user's configuration.
    root: PathBuf,
    /// The directory of the notes below it.
    below: PathBuf,
    /// Whether they are the project's, and what it may say is not known to be wanted.
    is_untrusted: bool,
}

impl AgentNotes {
    /// Returns where agents of this type keep their notes; `None`: they keep none.
    pub(crate) fn of(kind: &AgentType, dirs: &SessionDirs) -> Option<Self> {
        let plain = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
        let name: String = kind.name.chars().map(plain).collect();
        let (root, folder) = match kind.memory? {
            AgentMemory::Project => (&dirs.workspace, ".claude/agent-memory"),
            AgentMemory::Local => (&dirs.workspace, ".claude/agent-memory-local"),
            AgentMemory::User => (&dirs.config, "agent-memory"),
            // One that this does not know is kept nowhere.
            _ => return None,
        };
        let is_of_project = *root == dirs.workspace;
        Some(Self {
            root: root.clone(),
            below: Path::new(folder).join(name),
            is_untrusted: is_of_project && dirs.trust == Trust::Untrusted,
        })
    }

    /// Returns the directory of the notes.
    pub(crate) fn directory(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Reads the start of the index. What cannot be read says nothing. Blocks.
    pub(crate) fn index(&self) -> Option<String> {
        if self.is_untrusted {
            return None;
        }
        let root = Root::open(&self.root).ok()?;
        let opened = root.open_file(&self.below.join("MEMORY.md")).ok()?;
        let mut bytes = Vec::new();
        opened.into_file().take(MAX_READ).read_to_end(&mut bytes).ok()?;
        Some(index_start(&String::from_utf8_lossy(&bytes)).to_owned())
    }
}
