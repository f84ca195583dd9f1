//! Worktrees whose owner is gone. Built under `#[cfg(test)]` only.

use super::*;

/// A worktree whose call ended without a word.
fn abandoned(world: &World, call: &str) -> PathBuf {
    held(world, call).unwrap().workspace().into()
}

/// What the next call that makes one finds and leaves in addition to its own: worktrees, branches.
fn left_by_the_next(world: &World) -> (usize, usize) {
    let _next = held(world, "next").unwrap();
    let (worktrees, branches) = left(world);
    (worktrees - 1, branches - 1)
}

// REQ: AGT-1
#[test]
fn worktree_whose_owner_is_gone_is_removed_when_the_next_one_is_made() {
    let world = repository();
    abandoned(&world, "a");
    let stays = block_on(held(&world, "b").unwrap().end(false)).unwrap();
    assert_eq!((left(&world), Path::new(&stays.path).exists()), ((1, 1), true));
    assert_eq!(left_by_the_next(&world), (0, 0));
}

// REQ: AGT-1
#[test]
fn worktree_in_which_somebody_may_still_work_stays() {
    let world = repository();
    let held = held(&world, "a").unwrap();
    let at_work = held.hold();
    let workspace = held.workspace();
    block_on(held.end(false)).unwrap();
    assert_eq!(left_by_the_next(&world), (1, 1));
    assert!(Path::new(&workspace).join("below/file").exists());
    drop(at_work);
    assert_eq!(left_by_the_next(&world), (0, 0));
}

// REQ: AGT-1
#[test]
fn what_an_agent_did_that_was_cut_off_is_kept_and_unlocked() {
    type Change = fn(&Path);
    let changes: [Change; 4] = [
        |it| fs::write(it.join("new"), "x").unwrap(),
        |it| fs::write(it.join("below/file"), "other").unwrap(),
        |it| {
            fs::write(it.join("new"), "x").unwrap();
            commit_all(it, "second");
        },
        |it| drop(git(it, ["checkout", "--quiet", "--detach"])),
    ];
    for change in changes {
        let world = repository();
        change(&abandoned(&world, "a"));
        for _ in 0..2 {
            let next = held(&world, "next").unwrap();
            assert_eq!(left(&world), (2, 2));
            let list = git(&world.root, ["worktree", "list", "--porcelain"]);
            assert_eq!(list.matches("\nlocked").count(), 1, "{list}");
            assert_eq!(block_on(next.end(true)), None);
        }
    }
}

// REQ: AGT-1
#[test]
fn commit_that_another_branch_holds_is_not_lost_with_the_worktree() {
    for is_held in [false, true] {
        let world = repository();
        let workspace = abandoned(&world, "a");
        git(&workspace, ["commit", "--quiet", "--allow-empty", "-m", "second"]);
        if is_held {
            git(&workspace, ["branch", "kept"]);
        }
        let expected = if is_held { (0, 1) } else { (1, 1) };
        assert_eq!(left_by_the_next(&world), expected);
    }
}

// REQ: AGT-1
#[test]
fn what_was_handed_over_and_what_others_made_is_not_touched() {
    let world = repository();
    let held = held(&world, "a").unwrap();
    let workspace = held.workspace();
    fs::write(Path::new(&workspace).join("new"), "x").unwrap();
    block_on(held.end(true)).unwrap();
    fs::remove_file(Path::new(&workspace).join("new")).unwrap();
    for (name, reason) in [("mine", super::super::gc::IN_USE), ("agent-x", "mine")] {
        let path = world.path(&format!(".claude/worktrees/{name}"));
        let add = ["worktree", "add", "--quiet", "--lock", "--reason", reason, &path, "-b", name];
        git(&world.root, add);
    }
    assert_eq!(left_by_the_next(&world), (3, 3));
}

// REQ: AGT-1
#[test]
fn what_was_left_half_made_is_removed_whatever_is_in_it() {
    let world = repository();
    let path = world.path(".claude/worktrees/agent-0");
    let reason = super::super::gc::BEING_MADE;
    git(&world.root, ["branch", "worktree-agent-0"]);
    let add = ["worktree", "add", "--quiet", "--no-checkout", &path, "worktree-agent-0"];
    git(&world.root, add);
    git(&world.root, ["worktree", "lock", "--reason", reason, &path]);
    fs::create_dir_all(world.root.join(".claude/worktrees/agent-1")).unwrap();
    assert_eq!(left_by_the_next(&world), (0, 0));
    assert_eq!(fs::read_dir(world.root.join(".claude/worktrees")).unwrap().count(), 2);
}

/// A git that does all but a command with these words in this order.
fn all_but(world: &World, words: [&str; 3]) -> ToolContext {
    use std::os::unix::fs::PermissionsExt;

    let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    let real = String::from_utf8(real).unwrap();
    let programs = world.root.with_file_name("programs");
    fs::create_dir(&programs).unwrap();
    let refuse = format!("case \"$* \" in *'{} '*) exit 1;; esac", words.join("'*'"));
    let script = format!("#!/bin/sh\n{refuse}\nexec '{}' \"$@\"\n", real.trim_end());
    fs::write(programs.join("git"), script).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.display());
    let mut context = world.context.clone();
    context.env = [("PATH".to_owned(), path)].into();
    context
}

// REQ: AGT-1
#[test]
fn worktree_that_could_not_be_removed_is_removed_when_the_next_one_is_made() {
    for is_over in [true, false] {
        let world = repository();
        let context = all_but(&world, ["worktree", "remove", "--force"]);
        let held = block_on(HeldWorktree::new(&context, wanted("a"))).unwrap();
        block_on(held.end(is_over)).unwrap();
        let second = block_on(HeldWorktree::new(&context, wanted("b"))).unwrap();
        assert_eq!(left(&world), (2, 2));
        drop(second);
        assert_eq!(left_by_the_next(&world), (0, 0));
    }
}

// REQ: AGT-1
#[test]
fn worktrees_are_found_by_a_git_that_lists_lines_only() {
    let mut world = repository();
    abandoned(&world, "a");
    world.context = all_but(&world, ["worktree", "list", "-z"]);
    assert_eq!(left_by_the_next(&world), (0, 0));
}

// REQ: AGT-1
#[test]
fn sweep_whose_time_is_over_leaves_the_rest_to_the_next_one() {
    let world = repository();
    abandoned(&world, "a");
    let git = Git::new(world.context.clone());
    let directory = world.root.join(".claude/worktrees");
    let sweep = async |time| {
        let until = Instant::now() + time;
        super::super::gc::sweep(&git, &world.root, &directory, until).await;
    };
    block_on(sweep(Duration::ZERO));
    assert_eq!((left(&world), is_locked(&world)), ((1, 1), true));
    block_on(sweep(MAX_SWEEP));
    assert_eq!(left(&world), (0, 0));
}
