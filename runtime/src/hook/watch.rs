//! Files whose changes fire hooks.

use super::HookHandler;

/// Files that are watched for one session at most.
pub(crate) const MAX_WATCHED: usize = 64;

/// Bytes of the path of a watched file at most.
pub(crate) const MAX_WATCHED_PATH: usize = 1024;

/// A file that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    /// Its path; absolute where it is watched, else as a hook gave it.
    pub path: String,
    /// Where it may lie, by whom it is watched for.
    pub reach: WatchReach,
}

/// What has become of a watched file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    /// Its content is another one.
    Change,
    /// It is there, and was not.
    Add,
    /// It was there, and is not.
    Unlink,
}

impl FileChangeKind {
    /// Returns the word that hooks know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Add => "add",
            Self::Unlink => "unlink",
        }
    }
}

/// A change of a watched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The absolute path of the file.
    pub path: String,
    /// What has become of it.
    pub kind: FileChangeKind,
}

/// Which files the answer of a handler may have watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchReach {
    /// None: it may only restrict, or it is not known whose it is.
    #[default]
    Nothing,
    /// Those of the workspace.
    Workspace,
    /// Every file, wherever it is.
    Anywhere,
}

impl WatchReach {
    /// Returns what the answer of this handler may have watched.
    pub fn of(handler: &HookHandler) -> Self {
        match handler.scope.is_of_repository() {
            _ if handler.only_restricts => Self::Nothing,
            true => Self::Workspace,
            false => Self::Anywhere,
        }
    }
}

/// Why a file is not watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotWatched {
    /// The path is none from the root.
    #[error("`{0}` is not watched: it is not an absolute path")]
    Relative(String),
    /// The path is too long.
    #[error("`{0}…` is not watched: its path has over {MAX_WATCHED_PATH} bytes")]
    TooLong(String),
    /// A repository names it, and it is not in the workspace.
    #[error(
        "`{0}` is not watched: a hook of the repository may watch files of the workspace alone"
    )]
    Outside(String),
    /// A handler named it that may have nothing watched.
    #[error("`{0}` is not watched: that needs trust in the workspace")]
    Untrusted(String),
    /// As many as may be are watched.
    #[error(
        "`{0}`, and what follows it, is not watched: {MAX_WATCHED} files are watched for hooks"
    )]
    TooMany(String),
}
