//! Tests of worktrees. Built under `#[cfg(test)]` only.

use std::{process::Command, sync::Arc};

use super::*;
use crate::test_support::{Switch, World, block_on};

mod ended;
mod gc;
mod include;
mod kept;

/// What git says, without the end of the line.
fn git<const N: usize>(directory: &Path, arguments: [&str; N]) -> String {
    let printed = Command::new("git").arg("-C").arg(directory).args(arguments).output().unwrap();
    assert!(printed.status.success(), "{arguments:?}: {printed:?}");
    String::from_utf8(printed.stdout).unwrap().trim_end().to_owned()
}

/// A workspace with one commit, and a directory in it.
fn repository() -> World {
    let world = World::new();
    git(&world.root, ["init", "--quiet", "--initial-branch", "main"]);
    git(&world.root, ["config", "user.email", "nobody@test"]);
    git(&world.root, ["config", "user.name", "nobody"]);
    fs::create_dir(world.root.join("below")).unwrap();
    fs::write(world.root.join("below/file"), "text").unwrap();
    fs::write(world.root.join(".gitignore"), "built\n").unwrap();
    commit_all(&world.root, "first");
    world
}

fn commit_all(directory: &Path, message: &str) {
    git(directory, ["add", "."]);
    git(directory, ["commit", "--quiet", "-m", message]);
}

fn wanted(call: &str) -> WorktreeRequest {
    WorktreeRequest { call: call.into(), base: WorktreeBase::Fresh, hidden: Arc::default() }
}

fn held(world: &World, call: &str) -> Result<HeldWorktree, WorktreeError> {
    block_on(HeldWorktree::new(&world.context, wanted(call)))
}

/// Worktrees in addition to the first one, and branches in addition to the first one.
fn left(world: &World) -> (usize, usize) {
    let n = |arguments: [&str; 2]| git(&world.root, arguments).lines().count();
    (n(["worktree", "list"]) - 1, n(["branch", "--list"]) - 1)
}

// REQ: AGT-1
#[test]
fn worktree_without_a_change_is_removed_with_its_branch() {
    let world = repository();
    let held = held(&world, "a").unwrap();
    let workspace = held.workspace();
    assert!(workspace.starts_with(&*world.context.workspace));
    assert_eq!(fs::read_to_string(format!("{workspace}/below/file")).unwrap(), "text");
    assert_eq!(left(&world), (1, 1));
    // What git ignores is not a change, and the repository around it sees nothing of it.
    fs::write(format!("{workspace}/built"), "x").unwrap();
    assert_eq!(git(&world.root, ["status", "--porcelain"]), "");
    assert_eq!(block_on(held.end(true)), None);
    assert_eq!((left(&world), Path::new(&workspace).exists()), ((0, 0), false));
}

// REQ: AGT-1
#[test]
fn whatever_was_changed_stays() {
    type Change = fn(&Path);
    let changes: [Change; 6] = [
        |it| fs::write(it.join("new"), "x").unwrap(),
        |it| fs::write(it.join("below/file"), "other").unwrap(),
        |it| {
            fs::write(it.join("new"), "x").unwrap();
            commit_all(it, "second");
        },
        // Its branch is ahead, its present commit is not.
        |it| {
            git(it, ["commit", "--quiet", "--allow-empty", "-m", "second"]);
            git(it, ["checkout", "--quiet", "--detach", "HEAD~"]);
        },
        |it| drop(git(it, ["checkout", "--quiet", "--detach"])),
        // What git says there is said of the repository around it.
        |it| fs::remove_file(it.join(".git")).unwrap(),
    ];
    for change in changes {
        let world = repository();
        let held = held(&world, "a").unwrap();
        let path = held.workspace();
        change(Path::new(&path));
        let changed = block_on(held.end(true)).unwrap();
        assert_eq!(changed.path, path);
        assert!(changed.branch.starts_with("worktree-agent-"), "{}", changed.branch);
        assert_eq!(left(&world), (1, 1));
    }
}

// REQ: AGT-1
#[test]
fn each_call_has_its_own_also_under_one_name() {
    let world = repository();
    let all = [held(&world, "a").unwrap(), held(&world, "a").unwrap(), held(&world, "b").unwrap()];
    let paths: std::collections::BTreeSet<_> = all.iter().map(HeldWorktree::workspace).collect();
    assert_eq!((paths.len(), left(&world)), (3, (3, 3)));
}

/// Whether the one worktree is locked.
fn is_locked(world: &World) -> bool {
    let list = git(&world.root, ["worktree", "list", "--porcelain"]);
    list.lines().any(|it| it.starts_with("locked"))
}

// REQ: AGT-1
#[test]
fn worktree_is_locked_while_its_agent_may_work_and_unlocked_when_it_is_handed_over() {
    let world = repository();
    let held = held(&world, "a").unwrap();
    assert!(is_locked(&world));
    fs::write(Path::new(&held.workspace()).join("new"), "x").unwrap();
    block_on(held.end(true)).unwrap();
    assert_eq!((left(&world), is_locked(&world)), ((1, 1), false));
}

// REQ: AGT-1
#[test]
fn call_that_is_interrupted_before_anybody_was_sent_leaves_nothing() {
    let mut world = repository();
    let switch = Switch::default();
    switch.cancel();
    world.context.cancel = Arc::new(switch);
    assert!(matches!(held(&world, "a"), Err(WorktreeError::Git(GitError::Interrupted))));
    assert_eq!(left(&world), (0, 0));
}

// REQ: AGT-1
#[test]
fn there_is_no_worktree_below_another_one() {
    let mut world = repository();
    let outer = held(&world, "a").unwrap();
    world.context.workspace = outer.workspace().into();
    let error = held(&world, "b").unwrap_err();
    assert!(matches!(error, WorktreeError::Nested), "{error}");
    world.context.workspace = format!("{}/below", outer.workspace()).into();
    assert!(matches!(held(&world, "b"), Err(WorktreeError::Nested)));
    assert_eq!(left(&world), (1, 1));
}

// REQ: AGT-1
#[cfg(unix)]
#[test]
fn links_that_the_repository_brings_are_not_followed() {
    use std::os::unix::fs::symlink;

    for link in [".claude", ".claude/worktrees"] {
        let world = repository();
        let outside = world.root.with_file_name("outside");
        fs::create_dir(&outside).unwrap();
        let link = world.root.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&outside, &link).unwrap();
        let error = held(&world, "a").unwrap_err();
        assert!(matches!(&error, WorktreeError::NoDirectory(it) if *it == link), "{error}");
        assert_eq!((fs::read_dir(&outside).unwrap().count(), left(&world)), (0, (0, 0)));
    }
    let world = repository();
    let outside = world.root.with_file_name("outside");
    fs::create_dir_all(world.root.join(".claude/worktrees")).unwrap();
    symlink(&outside, world.root.join(".claude/worktrees/.gitignore")).unwrap();
    let _held = held(&world, "a").unwrap();
    assert!(!outside.exists());
}

// REQ: AGT-1
#[test]
fn worktree_without_the_place_of_the_caller_is_given_up() {
    let mut world = repository();
    git(&world.root, ["update-ref", "refs/remotes/origin/HEAD", "HEAD"]);
    // A file in the remote's branch, a directory in the present commit.
    fs::create_dir_all(world.root.join("moved")).unwrap();
    fs::rename(world.root.join("below/file"), world.root.join("moved/file")).unwrap();
    fs::create_dir_all(world.root.join("below/file")).unwrap();
    world.context.workspace = world.path("below/file").into();
    let error = held(&world, "a").unwrap_err();
    assert!(matches!(error, WorktreeError::NoDirectory(_)), "{error}");
    assert_eq!(left(&world), (0, 0));
}

// REQ: AGT-1
#[test]
fn agent_in_a_directory_of_a_repository_works_in_the_same_one() {
    let mut world = repository();
    let below = world.root.join("below");
    world.context.workspace = below.to_str().unwrap().into();
    let held = held(&world, "a").unwrap();
    let workspace = held.workspace();
    assert!(Path::new(&workspace).starts_with(&below), "{workspace}");
    assert_eq!(fs::read_to_string(format!("{workspace}/file")).unwrap(), "text");
}

// REQ: AGT-1
#[test]
fn default_branch_of_the_remote_comes_before_the_present_commit_unless_that_is_asked_for() {
    let world = repository();
    git(&world.root, ["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let remote = ["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"];
    git(&world.root, remote);
    fs::write(world.root.join("below/file"), "later").unwrap();
    git(&world.root, ["commit", "--quiet", "-a", "-m", "second"]);
    let held = held(&world, "a").unwrap();
    let file = format!("{}/below/file", held.workspace());
    assert_eq!(fs::read_to_string(file).unwrap(), "text");
    let wanted = WorktreeRequest { base: WorktreeBase::Head, ..wanted("b") };
    let held = block_on(HeldWorktree::new(&world.context, wanted)).unwrap();
    let file = format!("{}/below/file", held.workspace());
    assert_eq!(fs::read_to_string(file).unwrap(), "later");
}

// REQ: AGT-1
#[test]
fn without_a_repository_or_a_commit_there_is_none_and_it_is_said_why() {
    let world = World::new();
    let error = held(&world, "a").unwrap_err().to_string();
    assert!(error.contains("not a git repository"), "{error}");
    git(&world.root, ["init", "--quiet"]);
    let error = held(&world, "a").unwrap_err().to_string();
    assert_eq!(error, "git rev-parse --verify HEAD^{commit}: fatal: Needed a single revision");
}

// REQ: AGT-1
#[test]
fn environment_cannot_speak_of_another_repository() {
    let mut world = repository();
    let names = git(&world.root, ["rev-parse", "--local-env-vars"]);
    let names = names.lines().filter(|it| !it.starts_with("GIT_CONFIG"));
    world.context.env = names.map(|it| (it.to_owned(), "/nowhere".to_owned())).collect();
    assert!(world.context.env.iter().any(|(name, _)| name == "GIT_OBJECT_DIRECTORY"));
    assert_eq!(block_on(held(&world, "a").unwrap().end(true)), None);
    assert_eq!(left(&world), (0, 0));
}
