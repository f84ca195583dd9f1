//! A git worktree of its own for a sub-agent, so that what it changes stays apart until somebody
//! takes it over.
//!
//! It lies below the workspace, in `.claude/worktrees`: a sub-agent has no right that its parent has
//! not. It begins at the remote's default branch, or at the present commit where there is none, on a
//! new branch. It is locked while the sub-agent works. After an orderly end it is removed if nothing
//! was changed in it; whatever was changed stays. After any other end it stays as it is, since the
//! sub-agent may still write to it. Files that git ignores are lost when it is removed, so there is
//! no worktree below another one: it would be such a file.

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind, Write},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use ennead_runtime::{digest::Digest, ids::ToolUseId, ports::ToolContext};
use thiserror::Error;

/// Below the workspace.
const DIRECTORY: [&str; 2] = [".claude", "worktrees"];

/// Names that are tried; calls of one conversation hardly ever share their ids.
const MAX_NAMES: u32 = 100;

/// Why there is no worktree. The text is for the model that asked.
#[derive(Debug, Error)]
pub(crate) enum WorktreeError {
    #[error("git cannot be run: {0}")]
    NoGit(#[source] io::Error),
    #[error("git {command}: {said}")]
    Git { command: String, said: String },
    #[error("{}: {cause}", path.display())]
    Directory { path: PathBuf, cause: io::Error },
    #[error("{}: this is not a directory, or it is a link", .0.display())]
    NoDirectory(PathBuf),
    #[error("this agent works in a worktree already; leave out isolation")]
    Nested,
    #[error("there are {MAX_NAMES} worktrees of this name")]
    NoName,
    #[error("whoever was to make it is gone")]
    Gone,
}

/// A worktree that is locked.
#[derive(Debug)]
pub(crate) struct Worktree {
    repository: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) branch: String,
    /// The place in it that is to the worktree what the workspace is to the repository.
    pub(crate) workspace: PathBuf,
    base: String,
}

/// A worktree that stays: something was changed in it, or may yet be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: String,
    pub(crate) branch: String,
}

impl Worktree {
    /// Makes one. Blocking.
    fn make(workspace: &Path, seed: Digest) -> Result<Self, WorktreeError> {
        if is_in_worktree(workspace) || workspace.canonicalize().is_ok_and(|it| is_in_worktree(&it))
        {
            return Err(WorktreeError::Nested);
        }
        let below = git(workspace, ["rev-parse", "--show-prefix"])?;
        let base = ["refs/remotes/origin/HEAD", "HEAD"].map(|it| {
            let commit = format!("{it}^{{commit}}");
            git(workspace, ["rev-parse", "--verify", "--quiet", commit.as_str()])
        });
        let [remote, head] = base;
        let base = remote.or(head)?;
        // The repository may have brought links, which would lead out of the workspace.
        let directory = real_directory(workspace, DIRECTORY)?;
        ignore_all(&directory)?;
        for n in 0..MAX_NAMES {
            let suffix = if n == 0 { String::new() } else { format!("-{n}") };
            let name = format!("agent-{}{suffix}", &seed.to_string()[..16]);
            let (path, branch) = (directory.join(&name), format!("worktree-{name}"));
            let reference = format!("refs/heads/{branch}");
            let is_taken = fs::symlink_metadata(&path).is_ok()
                || git(workspace, ["rev-parse", "--verify", "--quiet", reference.as_str()]).is_ok();
            if is_taken {
                continue;
            }
            let add = ["worktree", "add", "--quiet", "--lock", "-b", &branch].map(OsStr::new);
            git(workspace, add.into_iter().chain([path.as_os_str(), OsStr::new(&base)]))?;
            let repository = workspace.to_owned();
            let mut made = Self { repository, workspace: path.clone(), path, branch, base };
            // The base may lack the place, or have a file or a link there.
            let inside = real_directory(&made.path, below.split('/').filter(|it| !it.is_empty()));
            match inside {
                Ok(inside) => made.workspace = inside,
                Err(why) => {
                    let _nothing_changed = made.give_up();
                    return Err(why);
                }
            }
            return Ok(made);
        }
        Err(WorktreeError::NoName)
    }

    /// Unlocks it, and removes it with its branch if nothing was changed in it. Blocking. What
    /// cannot be found out counts as a change.
    fn give_up(&self) -> Option<Changed> {
        let is_unchanged = self.is_unchanged();
        self.unlock();
        let remove = ["worktree", "remove"].map(OsStr::new).into_iter();
        // Without force: git looks once more whether anything would be lost.
        let is_removed = is_unchanged
            && git(&self.repository, remove.chain([self.path.as_os_str()])).is_ok()
            // Only while it is what it was.
            && git(&self.repository, ["update-ref", "-d", &self.reference(), &self.base]).is_ok();
        (!is_removed).then(|| self.stays())
    }

    /// Whether its files, its present commit and its branch are what they were.
    fn is_unchanged(&self) -> bool {
        let reference = self.reference();
        let heads = ["rev-parse", "HEAD", &reference, "--symbolic-full-name", "HEAD"];
        let expected = format!("{0}\n{0}\n{reference}", self.base);
        // Without its link to the repository, git would speak of the one around it.
        let top = git(&self.path, ["rev-parse", "--show-toplevel"]);
        let is_itself = top.is_ok_and(|it| {
            let own = self.path.canonicalize();
            own.is_ok_and(|own| Path::new(&it).canonicalize().is_ok_and(|it| it == own))
        });
        let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"];
        is_itself
            && git(&self.path, heads).is_ok_and(|it| it == expected)
            && git(&self.path, status).is_ok_and(|it| it.is_empty())
    }

    /// Leaves it to whoever looks after the repository. Blocking.
    fn unlock(&self) {
        let unlock = ["worktree", "unlock"].map(OsStr::new).into_iter();
        let _locked = git(&self.repository, unlock.chain([self.path.as_os_str()]));
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    fn stays(&self) -> Changed {
        Changed { path: self.path.display().to_string(), branch: self.branch.clone() }
    }
}

/// Whether a path lies in a directory of worktrees.
fn is_in_worktree(path: &Path) -> bool {
    let parts = path.components().collect::<Vec<_>>();
    let directory = DIRECTORY.map(|it| Component::Normal(OsStr::new(it)));
    parts.windows(directory.len()).any(|it| it == directory)
}

/// Goes down from `root`, through directories only, and makes those that are missing.
fn real_directory<'a>(
    root: &Path,
    below: impl IntoIterator<Item = &'a str>,
) -> Result<PathBuf, WorktreeError> {
    let mut path = root.to_owned();
    for part in below {
        path.push(part);
        match fs::create_dir(&path) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(WorktreeError::Directory { path, cause });
            }
            _ if fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) => (),
            _ => return Err(WorktreeError::NoDirectory(path)),
        }
    }
    Ok(path)
}

/// Nothing in the directory is part of the repository around it. Whatever stands in the place of
/// the file stays, a link too.
fn ignore_all(directory: &Path) -> Result<(), WorktreeError> {
    let path = directory.join(".gitignore");
    let made = fs::File::create_new(&path).and_then(|mut it| it.write_all(b"*\n"));
    match made {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
            Err(WorktreeError::Directory { path, cause })
        }
        _ => Ok(()),
    }
}

/// A worktree for the time of a call. Dropped before its end, it is unlocked and stays: somebody
/// may still work there.
#[derive(Debug)]
pub(crate) struct Held {
    worktree: Option<Worktree>,
    context: ToolContext,
}

impl Held {
    /// Makes one for the sub-agent of a call.
    pub(crate) async fn new(
        context: &ToolContext,
        call: &ToolUseId,
    ) -> Result<Self, WorktreeError> {
        let workspace = PathBuf::from(&*context.workspace);
        let seed = Digest::of(format!("{} {call}", context.session).as_bytes());
        let kept = context.clone();
        let made = tokio::task::spawn_blocking(move || {
            let context = kept;
            let made = Worktree::make(&workspace, seed)?;
            if context.cancel.is_cancelled() {
                // Nobody was sent there.
                let _nothing_changed = made.give_up();
                return Err(WorktreeError::Gone);
            }
            Ok(Self { worktree: Some(made), context })
        });
        made.await.unwrap_or(Err(WorktreeError::Gone))
    }

    /// Where the sub-agent is to work.
    pub(crate) fn workspace(&self) -> Option<String> {
        self.worktree.as_ref().map(|it| it.workspace.display().to_string())
    }

    /// The sub-agent has ended, for sure if `is_over`; otherwise it may still work, and the
    /// worktree stays.
    pub(crate) async fn end(mut self, is_over: bool) -> Option<Changed> {
        let worktree = self.worktree.take()?;
        let stays = worktree.stays();
        let hold = self.context.hold.clone();
        let ended = tokio::task::spawn_blocking(move || {
            let _kept_until_done = hold;
            if is_over {
                return worktree.give_up();
            }
            worktree.unlock();
            Some(worktree.stays())
        });
        ended.await.unwrap_or(Some(stays))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(worktree) = self.worktree.take() else { return };
        let hold = self.context.hold.clone();
        let unlock = move || {
            let _kept_until_done = hold;
            worktree.unlock();
        };
        // Where the runtime is gone, it stays locked.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let _done = runtime.spawn_blocking(unlock);
        }
    }
}

/// What git says, without the end of the line. No hook of the repository is run, and nothing that
/// the environment says about another repository counts.
fn git<A: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, WorktreeError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory);
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(arguments).stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.output().map_err(WorktreeError::NoGit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let command = command.get_args().skip(6).map(OsStr::to_string_lossy).collect::<Vec<_>>();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(WorktreeError::Git { command: command.join(" "), said })
}

#[cfg(test)]
mod tests;
