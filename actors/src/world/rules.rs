//! Reads `.claude/rules/**/*.md`: rules that hold from the start, and rules with a
//! `paths` header that wait for a matching file to be read.

pub(super) mod header;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use ennead_tools::source_file::{ReadError, Root, open_chosen};

/// Directories below `rules/` that are looked into; links can make a tree endless.
const MAX_DEPTH: usize = 16;

/// Entries of one directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Lists the rule files below a directory, sorted by path. Links are followed, but none that leads out of `within`;
/// each real directory is entered once.
pub(super) fn files_below(rules: &Path, within: Option<&Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(rules, within, MAX_DEPTH, &mut BTreeSet::new(), &mut found);
    found.sort();
    found
}

fn walk(
    directory: &Path,
    within: Option<&Path>,
    depth: usize,
    seen: &mut BTreeSet<PathBuf>,
    found: &mut Vec<PathBuf>,
) {
    let Ok(real) = directory.canonicalize() else { return };
    if depth == 0 || within.is_some_and(|it| !real.starts_with(it)) || !seen.insert(real) {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    // The order of a listing is the file system's; which of two links to a directory is entered
    // must not depend on it.
    let mut paths: Vec<PathBuf> = entries.flatten().map(|it| it.path()).take(MAX_ENTRIES).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, within, depth - 1, seen, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            found.push(path);
        }
    }
}

/// Reads the text of one of these files: a regular one, and none that a link shows out of `within`.
pub(super) fn text_of(
    path: &Path,
    within: Option<&Root>,
    max_bytes: u64,
) -> Result<String, ReadError> {
    let opened = match within {
        Some(root) => root.open_file(root.name_of(path).ok_or(ReadError::Missing)?)?,
        None => open_chosen(path)?,
    };
    String::from_utf8(opened.read(max_bytes)?).map_err(|_| ReadError::NotText)
}

/// Splits a rule into its globs and its text without the header. `None`: it holds from the start. A header that cannot
/// be read is not a header; a rule that is there is better than one that is lost.
pub(super) fn read(text: &str) -> (Option<Vec<String>>, &str) {
    let Some((header, body)) = split(text) else { return (None, text) };
    (header::globs(header).filter(|it| !it.is_empty()), body)
}

/// Splits a text into what is between two lines of `---` at the start, and what follows.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, globs: Option<&[&str]>, body: &str) {
        let (found, rest) = read(text);
        let found = found.as_ref().map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((found.as_deref(), rest), (globs, body), "{text:?}");
    }

    // REQ: CTX-1
    #[test]
    fn header_names_the_globs_as_a_list_or_a_text() {
        check(
            "---\npaths:\n  - src/**\n  - \"*.{a,b}\"\n---\nx",
            Some(&["src/**", "*.{a,b}"]),
            "x",
        );
        check(
            "---\npaths: a/*, *.{ts,tsx}\nmore: 1\n---\nx\n",
            Some(&["a/*", "*.{ts,tsx}"]),
            "x\n",
        );
        check("---\r\npaths: a\r\n---\r\nx", Some(&["a"]), "x");
    }

    // REQ: CTX-1
    #[test]
    fn rule_without_globs_holds_from_the_start() {
        check("x", None, "x");
        check("---\nname: n\n---\nx", None, "x");
        check("---\npaths: []\n---\nx", None, "x");
        check("---\n: [bad\n---\nx", None, "x");
        check("---\nno end", None, "---\nno end");
        check("--- x\n---\n", None, "--- x\n---\n");
    }
}
