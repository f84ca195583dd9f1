//! Files for a new worktree that git does not bring: those that `.worktreeinclude` names, in the
//! syntax of `.gitignore`, and git ignores.
//!
//! Only files below the workspace, and none that the caller may not read: its agent gets nothing
//! that it could not have got there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::ports::ToolContext;
use rustix::fs::OFlags;

use super::{
    WorktreeError,
    git::{Git, GitError},
    real_directory,
};
use crate::{
    blocking::{Stop, stoppable},
    hidden::Hidden,
};

/// In the top directory of the repository.
const NAME: &str = ".worktreeinclude";

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
    let list = top.join(NAME);
    if !fs::symlink_metadata(&list).is_ok_and(|it| it.is_file()) {
        return Ok(());
    }
    let named = format!("--exclude-from={}", list.display());
    let look = ["ls-files", "--others", "--ignored", &named, "-z"];
    let named = git.run(&from, look).await?;
    let ignored = ignored(git, &from, &named).await?;
    // What is not ignored there, too, would count as a change.
    let files = self::ignored(git, to, &ignored).await?;
    let names = files.split('\0').filter(|it| !it.is_empty()).map(str::to_owned);
    let names: Vec<String> = names.collect();
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

/// Those of the names that git ignores. Names end with NUL.
async fn ignored(git: &Git, directory: &Path, names: &str) -> Result<String, WorktreeError> {
    if names.is_empty() {
        return Ok(String::new());
    }
    let temporary = |cause| WorktreeError::Directory { path: std::env::temp_dir(), cause };
    let mut input = tempfile::tempfile().map_err(temporary)?;
    input.write_all(names.as_bytes()).and_then(|()| input.rewind()).map_err(temporary)?;
    match git.run_on(directory, ["check-ignore", "-z", "--stdin"], input).await {
        // It says so by failing without a word.
        Err(GitError::Failed { said, .. }) if said.is_empty() => Ok(String::new()),
        found => Ok(found?),
    }
}

fn copy_all(
    names: &[String],
    from: &Path,
    to: &Path,
    hidden: &Hidden,
    stop: &Stop,
) -> Result<(), WorktreeError> {
    let real = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let mut left = MAX_BYTES;
    for name in names {
        if stop.is_set() {
            return Err(GitError::Interrupted.into());
        }
        if hidden.hides(&from.join(name)) || hidden.hides(&real.join(name)) {
            continue;
        }
        let path = from.join(name);
        // Gone meanwhile, a link, or not to be read: left out, as by whoever looks there.
        let Ok(source) = open(&path) else { continue };
        let Ok(found) = source.metadata() else { continue };
        if !found.is_file() {
            continue;
        }
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

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn copy_one(mut source: File, path: &Path, mode: u32) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(mut file) => io::copy(&mut source, &mut file).map(drop),
    }
}
