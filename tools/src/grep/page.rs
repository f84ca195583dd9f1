//! What of all that was found is shown, and the totals.
//!
//! Holds only what is shown, so a search with millions of matches takes no memory for them.

use ennead_runtime::tool::ToolOutcome;
use serde_json::json;

use super::Mode;

/// Entries shown when no limit is asked for.
const DEFAULT_LIMIT: u64 = 250;

/// Characters of all entries: below the cap of the tool, with room for the notices.
const MAX_CHARS: usize = 19_500;

/// Counts over everything that was searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Lines with a match.
    pub(super) n_lines: u64,
    /// Matches; counted only where they are shown one by one.
    pub(super) n_matches: Option<u64>,
    /// Files with a match.
    pub(super) n_files: u64,
    /// Files that were searched.
    pub(super) n_searched: u64,
    /// Files left out as binary.
    pub(super) n_binary: u64,
    /// Files and directories that could not be read.
    pub(super) n_unreadable: u64,
}

/// A window on a sequence of lines or paths.
#[derive(Debug)]
pub(super) struct ResultPage {
    offset: u64,
    /// `None` means no limit.
    limit: Option<u64>,
    n_entries: u64,
    shown: Vec<String>,
    n_chars: usize,
    full: bool,
}

impl ResultPage {
    /// Makes an empty page. `head_limit` 0 means no limit.
    pub(super) fn new(offset: u64, head_limit: Option<u64>) -> Self {
        let limit = Some(head_limit.unwrap_or(DEFAULT_LIMIT)).filter(|limit| *limit > 0);
        Self { offset, limit, n_entries: 0, shown: Vec::new(), n_chars: 0, full: false }
    }

    /// Takes the next entry, which is made only if it is shown.
    pub(super) fn push(&mut self, entry: impl FnOnce() -> String) {
        let at = self.n_entries;
        self.n_entries += 1;
        let inside = at >= self.offset
            && self.limit.is_none_or(|limit| at - self.offset < limit)
            && !self.full;
        if !inside {
            return;
        }
        let entry = entry();
        let n_chars = entry.chars().count() + 1;
        // One entry is shown even if it alone is too long, so that paging gets on.
        if self.n_chars + n_chars > MAX_CHARS && !self.shown.is_empty() {
            self.full = true;
            return;
        }
        self.n_chars += n_chars;
        self.shown.push(entry);
    }

    /// Makes the outcome of the search.
    pub(super) fn finish(self, mode: Mode, totals: Totals) -> ToolOutcome {
        let mut text = self.shown.join("\n");
        let end = self.offset + self.shown.len() as u64;
        if self.n_entries == 0 {
            text.push_str("No matches found");
        } else if self.shown.is_empty() {
            text.push_str(&format!("No entries at this offset (there are {})", self.n_entries));
        } else if end < self.n_entries {
            text.push_str(&format!(
                "\n\n(showing entries {} to {end} of {}; continue with offset={end})",
                self.offset + 1,
                self.n_entries
            ));
        }
        text.push_str(&format!("\n\n{}", totals.in_words()));
        let lists_files = mode == Mode::FilesWithMatches;
        let mut result = json!({
            "mode": mode,
            "numFiles": if lists_files { self.shown.len() as u64 } else { totals.n_files },
            "filenames": if lists_files { self.shown.as_slice() } else { &[] },
            "numMatches": totals.n_matches.unwrap_or(totals.n_lines),
            "totalFiles": totals.n_files,
            "totalLines": totals.n_lines,
            "filesSearched": totals.n_searched,
        });
        if !lists_files {
            result["content"] = self.shown.join("\n").into();
            result["numLines"] = self.shown.len().into();
        }
        if end < self.n_entries {
            result["appliedLimit"] = self.shown.len().into();
        }
        if self.offset > 0 {
            result["appliedOffset"] = self.offset.into();
        }
        ToolOutcome::ok(text).with_structured(&result)
    }
}

impl Totals {
    /// Always in the same words, the plural included, so that they can be searched for.
    fn in_words(self) -> String {
        let mut notices = String::new();
        if self.n_binary > 0 {
            notices.push_str(&format!("({} binary files left out)\n", self.n_binary));
        }
        if self.n_unreadable > 0 {
            notices.push_str(&format!("({} paths could not be read)\n", self.n_unreadable));
        }
        let matches = match self.n_matches {
            Some(n_matches) => format!("{n_matches} matches on "),
            None => String::new(),
        };
        format!(
            "{notices}Found {matches}{} matching lines in {} files ({} files searched).",
            self.n_lines, self.n_files, self.n_searched
        )
    }
}
