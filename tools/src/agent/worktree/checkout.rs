//! What git knows of one worktree: its place, its branch, its state, how it goes.
//!
//! A checkout whose owner is gone is looked at as well as that of a call.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use super::{
    git::{Git, GitError},
    unsaved,
};

/// Once for what is in it, and once for the lock.
const REMOVE_LOCKED: &[&str] = &["remove", "--force", "--force"];

/// One worktree and its branch.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// A directory of the repository, outside of the worktree.
    pub(super) repository: PathBuf,
    pub(super) path: PathBuf,
    pub(super) branch: String,
}

impl Site {
    /// Makes the site of this name in a directory of worktrees.
    pub(super) fn new(repository: &Path, directory: &Path, name: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            path: directory.join(name),
            branch: format!("worktree-{name}"),
        }
    }

    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Returns whether the branch exists.
    pub(super) async fn has_branch(&self, git: &Git) -> bool {
        let reference = self.reference();
        let look = ["rev-parse", "--verify", "--quiet", &reference];
        git.run(&self.repository, look).await.is_ok()
    }

    /// Checks `base` out, on the new branch, locked for `reason`.
    pub(super) async fn fill(&self, git: &Git, base: &str, reason: &str) -> Result<(), GitError> {
        let add = ["worktree", "add", "--quiet", "--lock", "--reason", reason, "-b", &self.branch];
        let add = add.map(OsStr::new).into_iter();
        git.run(&self.repository, add.chain([self.path.as_os_str(), OsStr::new(base)])).await?;
        Ok(())
    }

    /// Replaces the reason of the lock.
    pub(super) async fn lock_again(&self, git: &Git, reason: &str) -> Result<(), GitError> {
        self.of_worktree(git, &["unlock"]).await?;
        self.of_worktree(git, &["lock", "--reason", reason]).await
    }

    /// Leaves it to the one that looks after the repository.
    pub(super) async fn unlock(&self, git: &Git) {
        let _locked = self.of_worktree(git, &["unlock"]).await;
    }

    /// Returns the commit that it is at, if its files are those of the commit, its branch exists, too, and it holds no
    /// other repository. What cannot be found out counts as a change.
    pub(super) async fn clean_at(&self, git: &Git) -> Option<String> {
        // Without its link to the repository, git would speak of the one around it.
        let top = git.run(&self.path, ["rev-parse", "--show-toplevel"]).await.ok()?;
        if Path::new(&top).canonicalize().ok()? != self.path.canonicalize().ok()? {
            return None;
        }
        let reference = self.reference();
        let heads = ["rev-parse", "HEAD", &reference, "--symbolic-full-name", "HEAD"];
        let heads = git.run(&self.path, heads).await.ok()?;
        let [head, tip, on] = heads.lines().collect::<Vec<_>>().try_into().ok()?;
        if head != tip || on != reference {
            return None;
        }
        let is_clean = self.is_clean(git).await && !unsaved::threatens(git, &self.path).await;
        is_clean.then(|| head.to_owned())
    }

    async fn is_clean(&self, git: &Git) -> bool {
        let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"];
        git.run(&self.path, status).await.is_ok_and(|it| it.is_empty())
    }

    /// Returns whether another branch or a tag holds this commit of its branch.
    pub(super) async fn is_held_elsewhere(&self, git: &Git, commit: &str) -> bool {
        let own = format!("--exclude={}", self.branch);
        let list = ["rev-list", "--max-count=1", commit, "--not"].into_iter();
        let others = [own.as_str(), "--branches", "--remotes", "--tags"];
        git.run(&self.repository, list.chain(others)).await.is_ok_and(|it| it.is_empty())
    }

    /// Removes it with its branch, which is at `commit`, when it was found to be clean. It is locked
    /// until it is gone: where this fails or is cut off, the next sweep finds it.
    pub(super) async fn remove(&self, git: &Git, commit: &str) -> bool {
        // With force, for the lock, git does not look once more.
        self.is_clean(git).await
            && self.of_worktree(git, REMOVE_LOCKED).await.is_ok()
            && self.forget(git, commit).await
    }

    /// Removes a checkout in which no sub-agent was started.
    pub(super) async fn discard(&self, git: &Git, base: Option<&str>) {
        let _not_one_yet = self.of_worktree(git, REMOVE_LOCKED).await;
        // If git has removed it, or it holds something, this does nothing.
        let _gone = fs::remove_dir(&self.path);
        if let Some(base) = base {
            self.forget(git, base).await;
        }
    }

    /// Removes the branch while it is at `commit`.
    async fn forget(&self, git: &Git, commit: &str) -> bool {
        let reference = self.reference();
        git.run(&self.repository, ["update-ref", "-d", &reference, commit]).await.is_ok()
    }

    async fn of_worktree(&self, git: &Git, command: &[&str]) -> Result<(), GitError> {
        let command = ["worktree"].iter().chain(command).map(|it| OsStr::new(*it));
        git.run(&self.repository, command.chain([self.path.as_os_str()])).await.map(drop)
    }
}
