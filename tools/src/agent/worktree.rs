//! A git worktree of its own for a sub-agent, so that what it changes stays apart until somebody
//! takes it over.
//!
//! It lies below the workspace, in `.claude/worktrees`: a sub-agent has no right that its parent has
//! not. It begins at the remote's default branch, or at the present commit where there is none or
//! `worktree.baseRef` is `head`, on a new branch. It is locked while the sub-agent works. After an
//! orderly end it is removed if nothing was changed in it; whatever was changed stays, unlocked.
//! After any other end it stays as it is, since the sub-agent may still write to it; once it
//! cannot, the next one that is made removes it or unlocks it. Files that git ignores are lost when it
//! is removed, so none is made below another one: it would be such a file. One that has a repository
//! or a worktree in it all the same stays.

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind, Write},
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ennead_runtime::{
    digest::Digest,
    ids::ToolUseId,
    ports::{ToolContext, WorkGuard},
    step1_settings_resolution::WorktreeBase,
};
use thiserror::Error;
use tokio::time::Instant;

use crate::hosted::hosted;

mod checkout;
mod gc;
mod git;
mod include;
mod lock;
mod unsaved;

use checkout::Site;
use git::Git;
pub(crate) use git::GitError;
use lock::Claim;

/// Directory of all worktrees, below the workspace.
const DIRECTORY: [&str; 2] = [".claude", "worktrees"];

/// Names that are tried; calls of one conversation hardly ever share their ids.
const MAX_NAMES: u32 = 100;

/// For how long a call begins to look after worktrees that others left before it makes its own.
/// With one that it has begun with it comes to an end.
const MAX_SWEEP: Duration = Duration::from_secs(20);

/// Why there is no worktree. The text is for the model that asked.
#[derive(Debug, Error)]
pub(crate) enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {cause}", path.display())]
    Directory { path: PathBuf, cause: io::Error },
    #[error("{}: this is not a directory, or it is a link", .0.display())]
    NoDirectory(PathBuf),
    #[error("this agent works in a worktree already; leave out isolation")]
    Nested,
    #[error("there are {MAX_NAMES} worktrees of this name")]
    NoName,
    #[error(
        ".worktreeinclude names more than {} files or {} bytes",
        include::MAX_FILES,
        include::MAX_BYTES
    )]
    TooMuchIncluded,
    #[error("whoever was to make it is gone")]
    Gone,
}

/// What a worktree is made from.
#[derive(Clone, Debug)]
pub(crate) struct WorktreeRequest {
    /// The call that wants it.
    pub(crate) call: ToolUseId,
    /// Where its branch begins.
    pub(crate) base: WorktreeBase,
    /// What the caller may not read is not copied for its agent.
    pub(crate) hidden: Arc<[String]>,
}

/// A worktree that stays: something was changed in it, or may yet be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: String,
    pub(crate) branch: String,
}

/// A worktree that is locked and somebody's.
#[derive(Debug)]
struct Worktree {
    site: Site,
    /// The place in it that is to the worktree what the workspace is to the repository.
    workspace: PathBuf,
    base: String,
    claim: Claim,
}

impl Worktree {
    async fn make(context: ToolContext, wanted: WorktreeRequest) -> Result<Self, WorktreeError> {
        let workspace = PathBuf::from(&*context.workspace);
        if is_in_worktree(&workspace)
            || workspace.canonicalize().is_ok_and(|it| is_in_worktree(&it))
        {
            return Err(WorktreeError::Nested);
        }
        let git = Git::new(context.clone());
        let below = git.run(&workspace, ["rev-parse", "--show-prefix"]).await?;
        let base = base(&git, &workspace, wanted.base).await?;
        // The repository may have brought links, which would lead out of the workspace.
        let directory = real_directory(&workspace, DIRECTORY)?;
        ignore_all(&directory)?;
        gc::sweep(&git, &workspace, &directory, Instant::now() + MAX_SWEEP).await;
        let seed = Digest::of(format!("{} {}", context.session, wanted.call).as_bytes());
        for n in 0..MAX_NAMES {
            let suffix = if n == 0 { String::new() } else { format!("-{n}") };
            let name = format!("agent-{}{suffix}", &seed.to_string()[..16]);
            let site = Site::new(&workspace, &directory, &name);
            let claim = Claim::make(&site.path).map_err(|cause| {
                let path = site.path.clone();
                WorktreeError::Directory { path, cause }
            })?;
            let Some(claim) = claim else { continue };
            // Whatever git still does, the directory is ours until it is over.
            let git = git.holding(claim.clone());
            if site.has_branch(&git).await {
                let _ours_and_empty = fs::remove_dir(&site.path);
                continue;
            }
            let mut made = Self { workspace: site.path.clone(), site, base, claim };
            if let Err(why) = made.fill(&git, &context, &below, &wanted.hidden).await {
                // After an interrupt git does nothing more; the next sweep does this then.
                made.site.discard(&git, Some(&made.base)).await;
                return Err(why);
            }
            return Ok(made);
        }
        Err(WorktreeError::NoName)
    }

    /// Makes it ready for somebody to be sent there.
    async fn fill(
        &mut self,
        git: &Git,
        context: &ToolContext,
        below: &str,
        hidden: &Arc<[String]>,
    ) -> Result<(), WorktreeError> {
        self.site.fill(git, &self.base, gc::BEING_MADE).await?;
        // The base may lack the place, or have a file or a link there.
        let below = below.split('/').filter(|it| !it.is_empty());
        self.workspace = real_directory(&self.site.path, below)?;
        include::copy(git, context, &self.workspace, hidden).await?;
        Ok(self.site.lock_again(git, gc::IN_USE).await?)
    }

    /// Removes it with its branch if nothing was changed in it, and unlocks it otherwise.
    async fn give_up(&self, git: &Git) -> Option<Changed> {
        let git = git.holding(self.claim.clone());
        if self.site.clean_at(&git).await.is_none_or(|it| it != self.base) {
            self.site.unlock(&git).await;
            return Some(self.stays());
        }
        (!self.site.remove(&git, &self.base).await).then(|| self.stays())
    }

    fn stays(&self) -> Changed {
        Changed { path: self.site.path.display().to_string(), branch: self.site.branch.clone() }
    }
}

/// The commit at which a branch is to begin.
async fn base(git: &Git, workspace: &Path, base: WorktreeBase) -> Result<String, GitError> {
    let find = async |name: &str| {
        let commit = format!("{name}^{{commit}}");
        git.run(workspace, ["rev-parse", "--verify", &commit]).await
    };
    if base == WorktreeBase::Fresh
        && let Ok(commit) = find("refs/remotes/origin/HEAD").await
    {
        return Ok(commit);
    }
    find("HEAD").await
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

/// Nothing in the directory is part of the repository around it. What is in the place of
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

/// A worktree for the time of a call.
#[derive(Debug)]
pub(crate) struct HeldWorktree {
    worktree: Worktree,
    context: ToolContext,
}

impl HeldWorktree {
    /// Makes one for the sub-agent of a call.
    pub(crate) async fn new(
        context: &ToolContext,
        wanted: WorktreeRequest,
    ) -> Result<Self, WorktreeError> {
        let made = hosted(context.clone(), |context| Worktree::make(context, wanted));
        let worktree = made.await.unwrap_or(Err(WorktreeError::Gone))?;
        Ok(Self { worktree, context: context.clone() })
    }

    /// Returns the directory in which the sub-agent works.
    pub(crate) fn workspace(&self) -> String {
        self.worktree.workspace.display().to_string()
    }

    /// Keeps the worktree its own. For the one that may still work there when the call is gone.
    pub(crate) fn hold(&self) -> WorkGuard {
        WorkGuard::new(self.worktree.claim.clone())
    }

    /// Ends the use of the worktree. The sub-agent has ended for sure if `is_over`; otherwise it may still work, and
    /// the worktree stays locked until it is found that no process works in it.
    pub(crate) async fn end(self, is_over: bool) -> Option<Changed> {
        let Self { worktree, context } = self;
        let stays = worktree.stays();
        if !is_over {
            return Some(stays);
        }
        let ended = hosted(context, |context| async move {
            let git = Git::new(context);
            worktree.give_up(&git).await
        });
        ended.await.unwrap_or(Some(stays))
    }
}

#[cfg(test)]
mod tests;
