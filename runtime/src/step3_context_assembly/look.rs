//! A later look at the sources: what it is to look at, and what it found.
//!
//! The first reading of a session is [`SourceTexts`](super::SourceTexts). From then on files may change,
//! and files of directories below the working directory come into play when the model reads there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{InstructionFile, PathRule};

/// Directories below the working directory whose instructions are looked for, at most.
pub(crate) const MAX_NESTED: usize = 256;

/// What to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcesOrder {
    /// Directories below the working directory in which a file was read, relative to it, sorted.
    pub directories: Vec<String>,
    /// Files whose present content is wanted; absolute, without links.
    pub files: Vec<String>,
    /// Patterns of the instruction files that settings leave out.
    pub excludes: Arc<[String]>,
    /// Whether a compaction has taken away what the model knew of the work under way.
    pub restores: bool,
    /// What the last look gave; `None`: there was none.
    pub marks: Option<SourceMarks>,
}

/// The state of everything that a look depended on. Only the one who looks can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMarks(pub Arc<[SourceMark]>);

/// A path, and its state: modification time in nanoseconds, size, inode; `None`: nothing is there.
pub type SourceMark = (String, Option<(i128, u64, u64)>);

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcesLook {
    /// Everything is as it was at the marks of the order.
    Unchanged,
    /// What is there now, and the state of everything that it depends on.
    Found(Box<SourcesSeen>, SourceMarks),
}

/// What the sources hold that may change while a session lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcesSeen {
    /// Instruction files that hold from the start, in the order the model reads them.
    pub instructions: Vec<InstructionFile>,
    /// Rules with a `paths` header, those of nested directories included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_rules: Vec<PathRule>,
    /// Instruction files of the directories that the order names, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<InstructionFile>,
    /// The files that the order names, those that can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<FileContent>,
    /// What runs in the background, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
}

/// The present content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// Absolute path of the file.
    pub path: String,
    /// Its beginning, as much of it as was read.
    pub text: String,
    /// Whether the file goes on after that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// Returns the directories below `workspace` in which one of these files lies, those between included, relative to it
/// and sorted; at most [`MAX_NESTED`].
pub(crate) fn nested_directories<'a>(
    workspace: &[&str],
    files: impl IntoIterator<Item = &'a String>,
) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    for file in files {
        let below = workspace.iter().find_map(|it| {
            file.strip_prefix(it.trim_end_matches('/')).and_then(|it| it.strip_prefix('/'))
        });
        let Some(below) = below else { continue };
        for (at, _) in below.match_indices('/') {
            if found.len() < MAX_NESTED {
                found.insert(below[..at].to_owned());
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: CTX-2
    #[test]
    fn every_directory_between_the_workspace_and_a_file_that_was_read_counts() {
        let files = ["/w/a/b/x.rs", "/w/y.rs", "/real/a/c/z", "/elsewhere/a/q", "/workshop/d/x"];
        let files = files.map(str::to_owned);
        assert_eq!(nested_directories(&["/w", "/real"], &files), ["a", "a/b", "a/c"]);
        let many: Vec<String> = (0..1_000).map(|i| format!("/w/{i}/x")).collect();
        assert_eq!(nested_directories(&["/w"], &many).len(), MAX_NESTED);
    }
}
