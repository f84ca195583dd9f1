//! What would be lost with a worktree that `git status` does not speak of: changes of files that
//! git is configured not to look at, and repositories of their own within it.
//!
//! The files themselves are looked at, in addition to what git knows of the worktree. What
//! cannot be found out counts as lost.

use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use super::git::Git;
use crate::blocking::{Stop, stoppable};

/// Files and directories of a worktree that are looked at. One with more of them stays.
const MAX_ENTRIES: usize = 1_000_000;

/// What makes a directory a repository without a worktree, as far as git itself looks.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];

/// Returns whether something would be lost with the worktree at `path`.
pub(super) async fn threatens(git: &Git, path: &Path) -> bool {
    let Ok(files) = git.run(path, ["ls-files", "-v", "--stage", "-z"]).await else { return true };
    let Ok(list) = git.run(path, ["worktree", "list", "--porcelain"]).await else { return true };
    // Repositories of submodules; they stay there when their files are gone.
    let Ok(modules) = git.run(path, ["rev-parse", "--git-path", "modules"]).await else {
        return true;
    };
    let root = path.to_owned();
    let look = move |stop: &Stop| {
        fs::symlink_metadata(root.join(modules)).is_ok()
            || has_worktree_below(&root, &list)
            || files.split('\0').any(|it| is_file_changed_unseen(&root, it))
            || holds_repository(&root, MAX_ENTRIES, stop).unwrap_or(true)
    };
    stoppable(git.context(), look).await.unwrap_or(true)
}

/// Whether git lists a worktree below `root`, its files may be gone or not.
fn has_worktree_below(root: &Path, list: &str) -> bool {
    let Ok(root) = root.canonicalize() else { return true };
    let mut paths = list.lines().filter_map(|it| it.strip_prefix("worktree ")).map(Path::new);
    paths.any(|it| {
        let real = it.canonicalize();
        let path = real.as_deref().unwrap_or(it);
        path != root && path.starts_with(&root)
    })
}

/// Whether a file of the index may differ from it without a word of git. `file` is a line of
/// `git ls-files -v --stage`: a tag, the mode, the object, the stage, a tab, the name.
fn is_file_changed_unseen(root: &Path, file: &str) -> bool {
    let Some((of, name)) = file.split_once('\t') else { return !file.is_empty() };
    let is_submodule = of.split(' ').nth(1) == Some("160000");
    // Lower case: assumed to be unchanged.
    if is_submodule || of.starts_with(|it: char| it.is_ascii_lowercase()) {
        return true;
    }
    // Not to be there. A name that was not UTF-8 is not the name of the file.
    of.starts_with('S')
        && (name.contains(char::REPLACEMENT_CHARACTER) || !is_missing(&root.join(name)))
}

fn is_missing(path: &Path) -> bool {
    let missing =
        |it: io::Error| matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    fs::symlink_metadata(path).is_err_and(missing)
}

/// Whether there is a repository below `root`, or more than `most` entries.
fn holds_repository(root: &Path, most: usize, stop: &Stop) -> io::Result<bool> {
    let (mut directories, mut left) = (vec![root.to_owned()], most);
    while let Some(directory) = directories.pop() {
        let mut missing = BARE.len();
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if left == 0 || stop.is_set() {
                return Ok(true);
            }
            left -= 1;
            let (name, is_directory) = (entry.file_name(), entry.file_type()?.is_dir());
            // The one of the worktree itself is a file.
            if name == ".git" && (is_directory || directory != root) {
                return Ok(true);
            }
            missing -= usize::from(BARE.iter().any(|it| name == **it));
            if is_directory {
                directories.push(entry.path());
            }
        }
        if missing == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, block_on};

    // REQ: AGT-1
    #[test]
    fn too_much_to_look_at_counts_as_a_repository() {
        let world = World::new();
        for name in ["a", "below/b", "below/c"] {
            world.file(name, "text");
        }
        for (most, expected) in [(4, false), (3, true)] {
            let root = world.root.clone();
            let look = move |stop: &Stop| holds_repository(&root, most, stop).unwrap();
            assert_eq!(block_on(stoppable(&world.context, look)).unwrap(), expected, "{most}");
        }
    }
}
