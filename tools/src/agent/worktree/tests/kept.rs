//! Work that git does not report as a change. Built under `#[cfg(test)]` only.

use super::*;

type Change = fn(&Path);

/// Makes a change in a worktree. It stays, after an orderly end and after any other.
fn check(change: Change) {
    for is_over in [true, false] {
        let world = repository();
        let held = held(&world, "a").unwrap();
        let path = PathBuf::from(held.workspace());
        change(&path);
        assert_eq!(git(&path, ["status", "--porcelain"]), "", "git sees no change");
        block_on(held.end(is_over)).unwrap();
        let _next = super::held(&world, "next").unwrap();
        assert!(path.join("below/file").exists(), "{is_over}");
    }
}

fn commit_in(repository: &Path) {
    let [name, is, email, address] = ["-c", "user.name=nobody", "-c", "user.email=nobody@test"];
    let commit = [name, is, email, address, "commit", "--quiet", "--allow-empty", "-m", "work"];
    git(repository, commit);
}

// REQ: AGT-1
#[test]
fn worktree_with_another_worktree_below_it_stays() {
    let changes: [Change; 2] = [
        |it| {
            git(it, ["worktree", "add", "--quiet", "-b", "feature", "built/feature"]);
            fs::write(it.join("built/feature/new"), "x").unwrap();
        },
        // Only the list of worktrees tells.
        |it| {
            git(it, ["worktree", "add", "--quiet", "--detach", "built/feature"]);
            fs::remove_file(it.join("built/feature/.git")).unwrap();
        },
    ];
    changes.into_iter().for_each(check);
}

// REQ: AGT-1
#[test]
fn worktree_with_a_repository_below_it_stays() {
    let changes: [Change; 3] = [
        |it| {
            git(it, ["init", "--quiet", "built/deep/repository"]);
            commit_in(&it.join("built/deep/repository"));
        },
        |it| drop(git(it, ["clone", "--quiet", "--bare", ".", "built/bare"])),
        // Around files of the outer one.
        |it| {
            git(it, ["init", "--quiet", "below"]);
            commit_in(&it.join("below"));
        },
    ];
    changes.into_iter().for_each(check);
}

// REQ: AGT-1
#[test]
fn change_of_a_file_that_git_is_told_not_to_look_at_stays() {
    let changes: [Change; 2] = [
        |it| {
            git(it, ["update-index", "--assume-unchanged", "below/file"]);
            fs::write(it.join("below/file"), "other").unwrap();
        },
        |it| {
            // Otherwise newer versions of git look at files that are there nevertheless.
            git(it, ["config", "sparse.expectFilesOutsideOfPatterns", "true"]);
            git(it, ["config", "core.sparseCheckout", "true"]);
            git(it, ["update-index", "--skip-worktree", "below/file"]);
            fs::write(it.join("below/file"), "other").unwrap();
        },
    ];
    changes.into_iter().for_each(check);
}

// REQ: AGT-1
#[test]
fn file_that_is_left_out_and_not_there_is_no_change() {
    let world = repository();
    let held = held(&world, "a").unwrap();
    let path = PathBuf::from(held.workspace());
    git(&path, ["update-index", "--skip-worktree", "below/file"]);
    fs::remove_file(path.join("below/file")).unwrap();
    assert_eq!(block_on(held.end(true)), None);
}

// REQ: AGT-1
#[test]
fn change_stays_where_git_is_set_to_ignore_what_files_look_like() {
    for is_changed in [false, true] {
        let world = repository();
        git(&world.root, ["config", "core.ignoreStat", "true"]);
        let held = held(&world, "a").unwrap();
        let path = PathBuf::from(held.workspace());
        if is_changed {
            fs::write(path.join("below/file"), "other").unwrap();
        }
        assert_eq!(block_on(held.end(true)).is_some(), is_changed);
        assert_eq!(path.exists(), is_changed);
    }
}
