//! The working directory between calls: kept inside the workspace, set back outside.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ennead_runtime::{ports::ToolContext, tool::ToolNote};

use super::Start;
use crate::own_file;

/// Bytes of a path that are read. The system has none that is longer.
const MAX_PATH: u64 = 4096;

/// Returns where the next command starts: the kept directory, or the workspace if that is gone, or what is left above
/// it.
pub(super) fn start(context: &ToolContext) -> Start {
    let workspace = Path::new(&*context.workspace);
    let kept = context.memory.cwd.as_deref().map(Path::new);
    let lost = kept.is_some_and(|kept| !kept.is_dir());
    let path = kept
        .filter(|kept| kept.is_dir())
        .or_else(|| workspace.ancestors().find(|path| path.is_dir()))
        .unwrap_or(Path::new("/"));
    Start { path: path.to_owned(), lost }
}

/// What the session and the model receive about where the shell ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CwdChange {
    pub(super) note: Option<ToolNote>,
    pub(super) notice: Option<String>,
}

/// Looks at where the shell ended; an empty or missing file means that it did not say.
pub(super) fn after(start: &Start, cwd_file: &Path, context: &ToolContext) -> CwdChange {
    let content = own_file::read(cwd_file, MAX_PATH).unwrap_or_default();
    let content = String::from_utf8_lossy(&content);
    let ended = content.strip_suffix('\n').filter(|path| Path::new(path).is_dir());
    let kept = context.memory.cwd.as_deref().unwrap_or(&context.workspace);
    let note = |path: &str| (path != kept).then(|| ToolNote::CwdChanged { path: path.to_owned() });
    match ended {
        Some(ended) if is_same(Path::new(ended), &start.path) && !start.lost => {
            CwdChange::default()
        }
        Some(ended) if is_in_workspace(Path::new(ended), context) => {
            CwdChange { note: note(ended), notice: None }
        }
        None if !start.lost => CwdChange::default(),
        // Outside, or its directory has vanished.
        _ => CwdChange {
            note: note(&context.workspace),
            notice: Some(format!("Shell cwd was reset to {}", context.workspace)),
        },
    }
}

fn is_same(ended: &Path, start: &Path) -> bool {
    fs::canonicalize(start).is_ok_and(|start| start == ended)
}

fn is_in_workspace(path: &Path, context: &ToolContext) -> bool {
    let further = context.additional_directories.iter().map(String::as_str);
    std::iter::once(&*context.workspace)
        .chain(further)
        .filter_map(|directory| fs::canonicalize(directory).ok())
        .any(|directory: PathBuf| path.starts_with(directory))
}
