//! A git worktree of its own for a sub-agent, so that what it changes stays apart until somebody
//! takes it over.
//!
//! It lies below the workspace, in `.claude/worktrees`: a sub-agent has no right that its parent has
//! not. It begins at the remote's default branch, or at the present commit where there is none, on a
//! new branch. It is locked while the sub-agent works, and removed behind it if nothing was changed.
//! Whatever was changed stays.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ennead_runtime::{digest::Digest, ids::ToolUseId, ports::ToolContext};
use thiserror::Error;

/// Below the workspace.
const DIRECTORY: &str = ".claude/worktrees";

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
    #[error("there are {MAX_NAMES} worktrees of this name")]
    NoName,
    #[error("whoever was to make it is gone")]
    Gone,
}

/// A worktree that is locked. Given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Worktree {
    repository: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) branch: String,
    /// The place in it that is to the worktree what the workspace is to the repository.
    pub(crate) workspace: PathBuf,
    base: String,
}

/// A worktree in which something was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: String,
    pub(crate) branch: String,
}

impl Worktree {
    /// Makes one. Blocking.
    fn make(workspace: &Path, seed: Digest) -> Result<Self, WorktreeError> {
        let below = git(workspace, ["rev-parse", "--show-prefix"])?;
        let base = ["refs/remotes/origin/HEAD", "HEAD"].map(|it| {
            let commit = format!("{it}^{{commit}}");
            git(workspace, ["rev-parse", "--verify", "--quiet", commit.as_str()])
        });
        let [remote, head] = base;
        let base = remote.or(head)?;
        let directory = workspace.join(DIRECTORY);
        let cannot = |cause| WorktreeError::Directory { path: directory.clone(), cause };
        fs::create_dir_all(&directory).map_err(cannot)?;
        let ignored = directory.join(".gitignore");
        if !ignored.exists() {
            // Nothing in here is part of the repository around it.
            fs::write(&ignored, "*\n").map_err(cannot)?;
        }
        for n in 0..MAX_NAMES {
            let suffix = if n == 0 { String::new() } else { format!("-{n}") };
            let name = format!("agent-{}{suffix}", &seed.to_string()[..16]);
            let (path, branch) = (directory.join(&name), format!("worktree-{name}"));
            let reference = format!("refs/heads/{branch}");
            let is_taken = path.exists()
                || git(workspace, ["rev-parse", "--verify", "--quiet", reference.as_str()]).is_ok();
            if is_taken {
                continue;
            }
            let add = ["worktree", "add", "--quiet", "--lock", "-b", &branch].map(OsStr::new);
            git(workspace, add.into_iter().chain([path.as_os_str(), OsStr::new(&base)]))?;
            let inside = match below.trim_end_matches('/') {
                "" => path.clone(),
                below => path.join(below),
            };
            // A place that the base does not have.
            fs::create_dir_all(&inside).map_err(cannot)?;
            let repository = workspace.to_owned();
            return Ok(Self { repository, path, branch, workspace: inside, base });
        }
        Err(WorktreeError::NoName)
    }

    /// Unlocks it, and removes it if nothing was changed in it. Blocking. What cannot be found out
    /// counts as a change.
    fn give_up(&self) -> Option<Changed> {
        let (repository, path) = (self.repository.as_path(), self.path.as_os_str());
        let status = ["status", "--porcelain", "--untracked-files=all"];
        let is_clean = git(&self.path, status).is_ok_and(|it| it.is_empty());
        let is_at_base = git(&self.path, ["rev-parse", "HEAD"]).is_ok_and(|it| it == self.base);
        let worktree = |what: &'static str| ["worktree", what].map(OsStr::new);
        let _locked = git(repository, worktree("unlock").into_iter().chain([path]));
        // Without force: git looks once more whether anything would be lost.
        let is_removed = is_clean
            && is_at_base
            && git(repository, worktree("remove").into_iter().chain([path])).is_ok();
        if is_removed {
            let _stays = git(repository, ["branch", "--quiet", "-D", self.branch.as_str()]);
            return None;
        }
        Some(Changed { path: self.path.display().to_string(), branch: self.branch.clone() })
    }
}

/// A worktree for the time of a call. Dropped before its end, it is given up behind whatever still
/// works there.
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
            // Made while nobody waits any longer, it is given up at once.
            let context = kept;
            Worktree::make(&workspace, seed).map(|it| Self { worktree: Some(it), context })
        });
        made.await.unwrap_or(Err(WorktreeError::Gone))
    }

    /// Where the sub-agent is to work.
    pub(crate) fn workspace(&self) -> Option<String> {
        self.worktree.as_ref().map(|it| it.workspace.display().to_string())
    }

    /// The sub-agent has ended.
    pub(crate) async fn end(mut self) -> Option<Changed> {
        let worktree = self.worktree.take()?;
        let hold = self.context.hold.clone();
        let ended = tokio::task::spawn_blocking(move || {
            let _kept_until_done = hold;
            worktree.give_up()
        });
        ended.await.ok().flatten()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(worktree) = self.worktree.take() else { return };
        let hold = self.context.hold.clone();
        let give_up = move || {
            let _kept_until_done = hold;
            let _changed = worktree.give_up();
        };
        // Where the runtime is gone, the worktree stays.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let _done = runtime.spawn_blocking(give_up);
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
mod tests {
    use super::*;
    use crate::test_support::World;

    /// A workspace with one commit, and a directory in it.
    fn repository() -> World {
        let world = World::new();
        let run = |arguments: &[&str]| git(&world.root, arguments).unwrap();
        run(&["init", "--quiet", "--initial-branch", "main"]);
        run(&["config", "user.email", "nobody@test"]);
        run(&["config", "user.name", "nobody"]);
        fs::create_dir(world.root.join("below")).unwrap();
        fs::write(world.root.join("below/file"), "text").unwrap();
        fs::write(world.root.join(".gitignore"), "built\n").unwrap();
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "first"]);
        world
    }

    fn held(world: &World, call: &str) -> Result<Held, WorktreeError> {
        block_on(Held::new(&world.context, &call.into()))
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Whatever works on is waited for.
        let done = runtime.block_on(work);
        drop(runtime);
        done
    }

    /// Worktrees beside the first one, and branches beside the first one.
    fn left(world: &World) -> (usize, usize) {
        let n = |arguments: &[&str]| git(&world.root, arguments).unwrap().lines().count();
        (n(&["worktree", "list"]) - 1, n(&["branch", "--list"]) - 1)
    }

    // REQ: AGT-1
    #[test]
    fn worktree_without_a_change_is_removed_with_its_branch() {
        let world = repository();
        let held = held(&world, "a").unwrap();
        let workspace = held.workspace().unwrap();
        assert!(workspace.starts_with(&*world.context.workspace));
        assert_eq!(fs::read_to_string(format!("{workspace}/below/file")).unwrap(), "text");
        assert_eq!(left(&world), (1, 1));
        // What git ignores is no change, and the repository around it sees nothing of it.
        fs::write(format!("{workspace}/built"), "x").unwrap();
        assert_eq!(git(&world.root, ["status", "--porcelain"]).unwrap(), "");
        assert_eq!(block_on(held.end()), None);
        assert_eq!((left(&world), Path::new(&workspace).exists()), ((0, 0), false));
    }

    // REQ: AGT-1
    #[test]
    fn whatever_was_changed_stays() {
        type Change = fn(&Path);
        let changes: [Change; 3] = [
            |it| fs::write(it.join("new"), "x").unwrap(),
            |it| fs::write(it.join("below/file"), "other").unwrap(),
            |it| {
                fs::write(it.join("new"), "x").unwrap();
                git(it, ["add", "."]).unwrap();
                git(it, ["commit", "--quiet", "-m", "second"]).unwrap();
            },
        ];
        for change in changes {
            let world = repository();
            let held = held(&world, "a").unwrap();
            let path = held.workspace().unwrap();
            change(Path::new(&path));
            let changed = block_on(held.end()).unwrap();
            assert_eq!(changed.path, path);
            assert!(changed.branch.starts_with("worktree-agent-"), "{}", changed.branch);
            assert_eq!(left(&world), (1, 1));
        }
    }

    // REQ: AGT-1
    #[test]
    fn each_call_has_its_own_also_under_one_name() {
        let world = repository();
        let all =
            [held(&world, "a").unwrap(), held(&world, "a").unwrap(), held(&world, "b").unwrap()];
        let paths: std::collections::BTreeSet<_> = all.iter().map(Held::workspace).collect();
        assert_eq!((paths.len(), left(&world)), (3, (3, 3)));
    }

    // REQ: AGT-1
    #[test]
    fn call_that_is_dropped_leaves_nothing_but_changes() {
        let world = repository();
        let dropped = || async { drop(Held::new(&world.context, &"a".into()).await.unwrap()) };
        block_on(dropped());
        assert_eq!(left(&world), (0, 0));
        block_on(async {
            let held = Held::new(&world.context, &"a".into()).await.unwrap();
            fs::write(format!("{}/new", held.workspace().unwrap()), "x").unwrap();
        });
        assert_eq!(left(&world), (1, 1));
    }

    // REQ: AGT-1
    #[test]
    fn agent_in_a_directory_of_a_repository_works_in_the_same_one() {
        let mut world = repository();
        let below = world.root.join("below");
        world.context.workspace = below.to_str().unwrap().into();
        let held = held(&world, "a").unwrap();
        let workspace = held.workspace().unwrap();
        assert!(Path::new(&workspace).starts_with(&below), "{workspace}");
        assert_eq!(fs::read_to_string(format!("{workspace}/file")).unwrap(), "text");
    }

    // REQ: AGT-1
    #[test]
    fn default_branch_of_the_remote_comes_before_the_present_commit() {
        let world = repository();
        git(&world.root, ["update-ref", "refs/remotes/origin/main", "HEAD"]).unwrap();
        let remote = ["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"];
        git(&world.root, remote).unwrap();
        fs::write(world.root.join("below/file"), "later").unwrap();
        git(&world.root, ["commit", "--quiet", "-a", "-m", "second"]).unwrap();
        let held = held(&world, "a").unwrap();
        let file = format!("{}/below/file", held.workspace().unwrap());
        assert_eq!(fs::read_to_string(file).unwrap(), "text");
    }

    // REQ: AGT-1
    #[test]
    fn without_a_repository_or_a_commit_there_is_none_and_it_is_said_why() {
        let world = World::new();
        let error = held(&world, "a").unwrap_err().to_string();
        assert!(error.contains("not a git repository"), "{error}");
        git(&world.root, ["init", "--quiet"]).unwrap();
        assert!(matches!(held(&world, "a"), Err(WorktreeError::Git { .. })));
    }
}
