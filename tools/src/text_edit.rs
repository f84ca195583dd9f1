//! One text of a file is replaced by another, as Edit and MultiEdit do it.
//!
//! Matches on text without carriage returns and writes back what was not matched byte by byte.

use std::ops::Range;

use ennead_runtime::{
    step3_context_assembly::source8_tool_results::unescape_harness_marks, tool::FileSeen,
};

use crate::{
    built_in::AtPath,
    files::{Loaded, MAX_FILE_BYTES, normal, splice},
    output::{cut_line, push_numbered},
    paths::{Directory, OpenError, split},
};

/// Lines around the change in the snippet that the model is shown.
const SNIPPET_CONTEXT: usize = 4;

/// Lines of the snippet.
pub(crate) const MAX_SNIPPET_LINES: usize = 60;

/// What the model reads of an edited file that somebody else has changed, too.
pub(crate) const OTHER_CHANGES: &str =
    "\nThe file has also other changes that were made since it was read.\n";

/// What is to be replaced by what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextEdit<'a> {
    /// The text to replace; not empty.
    pub(crate) old: &'a str,
    /// The text in its place.
    pub(crate) new: &'a str,
    /// Every occurrence is replaced; without it there may be one.
    pub(crate) replace_all: bool,
}

/// A text after an edit.
#[derive(Debug)]
pub(crate) struct Edited {
    /// The whole text, with its own line ends and byte order mark.
    pub(crate) text: String,
    /// How many occurrences were replaced; at least one.
    pub(crate) n_places: usize,
    /// Where the first new text lies in the normal form of `text`.
    pub(crate) first: Range<usize>,
}

/// Why a text is not edited. The messages are for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// Both texts are the same.
    #[error("No change: old_string and new_string are the same.")]
    NoChange,
    /// The text does not occur.
    #[error("The text to replace was not found in the file.")]
    NotFound,
    /// The text occurs more than once, and not all occurrences are to be replaced.
    #[error(
        "The text to replace occurs {0} times in the file. Take in more lines around it to \
         make it unique, or set replace_all."
    )]
    Ambiguous(usize),
    /// The edited text would be longer than tools read.
    #[error("The file would have more than {MAX_FILE_BYTES} bytes.")]
    TooLarge,
}

impl TextEdit<'_> {
    /// Fails if the edit changes nothing.
    pub(crate) fn check_changes(&self) -> Result<(), EditError> {
        if self.old == self.new { Err(EditError::NoChange) } else { Ok(()) }
    }

    /// Returns the text with the edit made. A text that the model read with signs of the harness in it is found by what the
    /// file has in their places. Takes time in the lengths of the text and of the result.
    pub(crate) fn apply(&self, text: &str) -> Result<Edited, EditError> {
        match self.apply_exactly(text) {
            Err(EditError::NotFound) => {}
            applied => return applied,
        }
        let old = unescape_harness_marks(self.old).ok_or(EditError::NotFound)?;
        let new = unescape_harness_marks(self.new);
        let new = new.as_deref().unwrap_or(self.new);
        TextEdit { old: &old, new, replace_all: self.replace_all }.apply_exactly(text)
    }

    fn apply_exactly(&self, text: &str) -> Result<Edited, EditError> {
        self.check_changes()?;
        let (before, old) = (normal(text), self.old.replace("\r\n", "\n"));
        let new = self.new.replace("\r\n", "\n");
        let ranges: Vec<_> =
            before.match_indices(&old).map(|(at, found)| at..at + found.len()).collect();
        let n_places = ranges.len();
        let first = ranges.first().ok_or(EditError::NotFound)?.start;
        if 1 < n_places && !self.replace_all {
            return Err(EditError::Ambiguous(n_places));
        }
        // With CR LF a new line takes one byte more.
        let new_bytes = new.len() + new.matches('\n').count();
        let grown = text.len().saturating_add(n_places.saturating_mul(new_bytes));
        if MAX_FILE_BYTES < grown.saturating_sub(n_places.saturating_mul(old.len())) as u64 {
            return Err(EditError::TooLarge);
        }
        let text = splice(text, &ranges, &new);
        Ok(Edited { text, n_places, first: first..first + new.len() })
    }
}

/// The file of a call that the model has seen.
#[derive(Debug)]
pub(crate) struct SeenText<'a> {
    /// The directory that the file lies in.
    pub(crate) directory: Directory,
    /// What it holds; UTF-8.
    pub(crate) loaded: Loaded,
    /// What the model has seen of it.
    pub(crate) seen: &'a FileSeen,
    /// Whether it has changed since then.
    pub(crate) is_changed: bool,
}

impl<'a> SeenText<'a> {
    /// Opens the text file of a call, or returns why the tool `name` may not change it.
    pub(crate) fn open<I>(call: &AtPath<'a, I>, name: &str) -> Result<Self, String> {
        let say = |error: OpenError| error.to_string();
        let (parent, file_name) = split(std::path::Path::new(&call.path.real)).map_err(say)?;
        let directory = Directory::open(parent).map_err(say)?;
        let file = directory.open_file(file_name).map_err(say)?;
        let loaded = Loaded::from(&file).map_err(|error| error.to_string())?;
        let Some(seen) = call.context.memory.files.get(&call.path.real) else {
            return Err("File has not been read yet. Read it before editing it.".into());
        };
        if loaded.is_binary() {
            return Err(format!("This is a binary file; {name} changes text only."));
        }
        if std::str::from_utf8(&loaded.bytes).is_err() {
            return Err("The file is not valid UTF-8; editing it would damage it.".into());
        }
        let is_changed = seen.digest != loaded.as_seen(false).digest;
        Ok(Self { directory, loaded, seen, is_changed })
    }

    /// Returns what the file holds.
    pub(crate) fn text(&self) -> &str {
        // It was checked when it was opened.
        std::str::from_utf8(&self.loaded.bytes).unwrap_or_default()
    }

    /// Fails if the file may not be written.
    pub(crate) fn check_writable(&self, real: &str) -> Result<(), String> {
        let name = split(std::path::Path::new(real));
        let writable = name.and_then(|(_, name)| self.directory.check_writable(name));
        writable.map_err(|error| error.to_string())
    }
}

/// Makes the error for a file that is another one than the model has seen.
pub(crate) fn modified_since_read() -> String {
    "File has been modified since read. Read it again before editing it.".into()
}

/// Adds the lines around a part of a text, numbered.
pub(crate) fn push_snippet(out: &mut String, text: &str, part: Range<usize>) {
    // A carriage return at the end of the new text may have become part of a line end.
    let line_of = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count();
    let first = line_of(part.start).saturating_sub(SNIPPET_CONTEXT);
    let last = line_of(part.end) + SNIPPET_CONTEXT;
    let n_lines = (last + 1 - first).min(MAX_SNIPPET_LINES);
    for (i, line) in text.split_terminator('\n').enumerate().skip(first).take(n_lines) {
        push_numbered(out, i + 1, &cut_line(line, 300));
    }
    if last + 1 - first > n_lines {
        out.push_str("   ...\n");
    }
}
