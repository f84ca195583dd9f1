//! The working directory as a short tree, for the model to know where it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ennead_runtime::step7_permission_gate::path_rule::PathPattern;

use super::file_states::PathState;

/// Lines of a tree.
const MAX_LINES: usize = 80;

/// Entries of a directory below the top that are shown.
const MAX_BELOW: usize = 10;

/// Entries of one directory that are looked at.
const MAX_ENTRIES: usize = 2_000;

/// Characters of a name that are shown.
const MAX_NAME: usize = 80;

/// Directories that are named and not looked into: what is in them is made by programs.
const CLOSED: &[&str] = &["node_modules", "target", "dist", "build", "__pycache__", "vendor"];

/// A tree, and what it was read from.
pub(super) struct PlaceTree {
    /// An entry in each line.
    pub(super) text: String,
    /// The directories that were listed, each with its state before; `None` where one could not be listed whole.
    pub(super) directories: Option<Vec<(PathBuf, PathState)>>,
}

/// Lists the entries of a directory and of those right below it, one a line; names that begin with a dot are left out,
/// and so is what `hidden` covers. Links are not followed.
pub(super) fn tree(top: &Path, hidden: Option<&PathPattern>) -> PlaceTree {
    let (mut lines, mut directories) = (Vec::new(), Some(Vec::new()));
    let mut listed = |directory: PathBuf, max: usize| {
        let found = listed(&directory, hidden, max);
        match (&mut directories, found.state) {
            (Some(all), Some(state)) => all.push((directory, state)),
            (all, _) => *all = None,
        }
        (found.entries, found.n_more)
    };
    let (entries, n_more) = listed(top.to_owned(), MAX_LINES);
    'all: for TreeEntry { name, is_directory } in entries {
        if MAX_LINES <= lines.len() {
            lines.push("…".to_owned());
            break;
        }
        lines.push(line("", &name, is_directory));
        if !is_directory || CLOSED.contains(&name.as_str()) {
            continue;
        }
        let (below, n_more) = listed(top.join(&name), MAX_BELOW);
        for it in below {
            if MAX_LINES <= lines.len() {
                lines.push("…".to_owned());
                break 'all;
            }
            lines.push(line("  ", &it.name, it.is_directory));
        }
        if 0 < n_more {
            lines.push(format!("  … {n_more} more"));
        }
    }
    if 0 < n_more {
        lines.push(format!("… {n_more} more"));
    }
    PlaceTree { text: lines.join("\n"), directories }
}

struct TreeEntry {
    name: String,
    is_directory: bool,
}

/// The entries of a directory.
#[derive(Default)]
struct TreeEntries {
    /// The first by name.
    entries: Vec<TreeEntry>,
    /// How many more there are among those that were looked at.
    n_more: usize,
    /// The state of the directory before; `None` where it could not be listed whole.
    state: Option<PathState>,
}

/// Lists the entries of a directory, `max` at most.
fn listed(directory: &Path, hidden: Option<&PathPattern>, max: usize) -> TreeEntries {
    let state = fs::metadata(directory).ok().map(|it| PathState::of(&it));
    let Ok(entries) = fs::read_dir(directory) else { return TreeEntries::default() };
    let mut is_whole = true;
    let shown = entries.take(MAX_ENTRIES).filter_map(|it| {
        let read = it.and_then(|it| it.file_type().map(|kind| (it, kind.is_dir())));
        is_whole &= read.is_ok();
        let (it, is_directory) = read.ok()?;
        // A name that is not a text could not be used by the model.
        let name = it.file_name().into_string().ok()?;
        let is_hidden = hidden.is_some_and(|hidden| hidden.matches(&it.path().to_string_lossy()));
        (!name.starts_with('.') && !is_hidden).then_some(TreeEntry { name, is_directory })
    });
    let mut shown: Vec<TreeEntry> = shown.collect();
    shown.sort_by(|left, right| left.name.cmp(&right.name));
    let n_more = shown.len().saturating_sub(max);
    shown.truncate(max);
    TreeEntries { entries: shown, n_more, state: state.filter(|_| is_whole) }
}

fn line(indent: &str, name: &str, is_directory: bool) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    let slash = if is_directory { "/" } else { "" };
    format!("{indent}{name}{slash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: CTX-3
    #[test]
    fn tree_is_short_sorted_and_bounded_and_follows_no_link() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        for directory in ["src/deep", "node_modules/x", ".git"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for file in ["b\n.txt", "secret.key", "src/deep/c.rs"] {
            fs::write(path(file), "").unwrap();
        }
        for i in 0..15 {
            fs::write(path(&format!("src/{i:02}.rs")), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", path("link")).unwrap();
        let hidden = PathPattern::hidden(&[format!("/{}", path("secret.key").display())]);
        let shown = tree(top.path(), Some(&hidden)).text;
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..5], ["b.txt", "link", "node_modules/", "src/", "  00.rs"]);
        assert_eq!(lines[14..], ["  … 6 more"]);
        for i in 0..500 {
            fs::write(path(&format!("more{i}")), "").unwrap();
        }
        let shown = tree(top.path(), None).text;
        assert!(shown.lines().count() <= MAX_LINES + 3, "{shown}");
        assert!(tree(top.path(), None).directories.is_some());
        let missing = tree(&path("missing"), None);
        assert_eq!((&*missing.text, missing.directories), ("", None));
    }
}
