//! Files for a new worktree that git does not bring: those that `.worktreeinclude` names, in the
//! syntax of `.gitignore`, and git ignores.
//!
//! Only files below the workspace, and none that the caller may not read: its agent gets nothing
//! that it could not have got there.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::ports::ToolContext;

use super::{
    WorktreeError,
    git::{Git, GitError},
    real_directory,
};
use crate::{
    blocking::{Stop, stoppable},
    hidden::Hidden,
    source_file::{MAX_TEXT, Root},
};

/// In the top directory of the repository.
const NAME: &str = ".worktreeinclude";

/// What a name may begin with without another meaning.
const HERE: &str = "./";

/// Files that are copied at most.
pub(super) const MAX_FILES: usize = 10_000;

/// Bytes that are copied at most.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// Copies what is named and ignored from the workspace of `context` to the same place in the
/// worktree, `to`. What is there already stays.
pub(super) async fn copy(
    git: &Git,
    context: &ToolContext,
    to: &Path,
    hidden: &Arc<[String]>,
) -> Result<(), WorktreeError> {
    let from = PathBuf::from(&*context.workspace);
    let top = PathBuf::from(git.run(&from, ["rev-parse", "--show-toplevel"]).await?);
    let Some(list) = list(&top) else { return Ok(()) };
    // git would follow a link of that name; what it reads is what was read here.
    let directory = &*context.temporary;
    let temporary = |cause| WorktreeError::Directory { path: directory.into(), cause };
    let mut patterns = tempfile::NamedTempFile::new_in(directory).map_err(temporary)?;
    patterns.write_all(&list).map_err(temporary)?;
    let named = format!("--exclude-from={}", patterns.path().display());
    let look = ["ls-files", "--others", "--ignored", &named, "-z"];
    let named = git.run(&from, look).await?;
    let ignored = ignored(git, &from, &named).await?;
    let place = to.to_owned();
    let placed = move |_: &Stop| names(&ignored).filter(|it| has_place(&place, it)).collect();
    let placed: Result<String, _> = stoppable(context, placed).await;
    // What is not ignored there, too, would count as a change.
    let files = self::ignored(git, to, &placed.map_err(|_| WorktreeError::Gone)?).await?;
    let names: Vec<String> = names(&files).map(|it| it.trim_end_matches('\0').to_owned()).collect();
    if MAX_FILES < names.len() {
        return Err(WorktreeError::TooMuchIncluded);
    }
    if names.is_empty() {
        return Ok(());
    }
    let (to, hidden) = (to.to_owned(), Hidden::new(hidden));
    let copied = stoppable(context, move |stop| copy_all(&names, &from, &to, &hidden, stop)).await;
    copied.unwrap_or(Err(WorktreeError::Gone))
}

/// What the file of that name holds, if it is one and no link.
fn list(top: &Path) -> Option<Vec<u8>> {
    let opened = Root::open(top).ok()?.open_file(Path::new(NAME)).ok()?;
    let is_link = opened.real.file_name() != Some(OsStr::new(NAME));
    (!is_link).then(|| opened.read(MAX_TEXT).ok()).flatten()
}

/// The names with their ends, NUL.
fn names(all: &str) -> impl Iterator<Item = &str> {
    all.split_inclusive('\0')
}

/// Whether there are directories only, or nothing yet, on the way to a name. The base of the branch
/// may have a file or a link there.
fn has_place(to: &Path, name: &str) -> bool {
    let mut path = to.to_owned();
    let above = name.rsplit_once('/').map_or("", |(above, _)| above);
    for part in above.split('/').filter(|it| !it.is_empty()) {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(it) if it.is_dir() => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            _ => return false,
        }
    }
    true
}

/// Those of the names that git ignores. Names end with NUL.
async fn ignored(git: &Git, directory: &Path, names: &str) -> Result<String, WorktreeError> {
    if names.is_empty() {
        return Ok(String::new());
    }
    let temporary = &*git.context().temporary;
    let failed = |cause| WorktreeError::Directory { path: temporary.into(), cause };
    let mut input = tempfile::tempfile_in(temporary).map_err(failed)?;
    // A name could begin with what git takes for an instruction, like `:!`.
    let written: String = self::names(names).flat_map(|it| [HERE, it]).collect();
    input.write_all(written.as_bytes()).and_then(|()| input.rewind()).map_err(failed)?;
    match git.run_on(directory, ["check-ignore", "-z", "--stdin"], input).await {
        // It ignores none of them.
        Err(GitError::Failed { code: Some(1), .. }) => Ok(String::new()),
        found => Ok(self::names(&found?).map(|it| it.strip_prefix(HERE).unwrap_or(it)).collect()),
    }
}

fn copy_all(
    names: &[String],
    from: &Path,
    to: &Path,
    hidden: &Hidden,
    stop: &Stop,
) -> Result<(), WorktreeError> {
    let Ok(root) = Root::open(from) else { return Ok(()) };
    let real = root.real();
    let mut left = MAX_BYTES;
    for name in names {
        if stop.is_set() {
            return Err(GitError::Interrupted.into());
        }
        if hidden.hides(&from.join(name)) || hidden.hides(&real.join(name)) {
            continue;
        }
        // Gone meanwhile, a link, or not to be read: left out, as by the one that looks there.
        let Ok(source) = root.open_file(Path::new(name)) else { continue };
        if source.real != real.join(name) {
            continue;
        }
        let source = source.into_file();
        let Ok(found) = source.metadata() else { continue };
        let Some(rest) = left.checked_sub(found.len()) else {
            return Err(WorktreeError::TooMuchIncluded);
        };
        left = rest;
        let (above, file) = name.rsplit_once('/').unwrap_or(("", name));
        let above = real_directory(to, above.split('/').filter(|it| !it.is_empty()))?;
        let path = above.join(file);
        copy_one(source, &path, found.permissions().mode())
            .map_err(|cause| WorktreeError::Directory { path, cause })?;
    }
    Ok(())
}

fn copy_one(mut source: File, path: &Path, mode: u32) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(mut file) => io::copy(&mut source, &mut file).map(drop),
    }
}
