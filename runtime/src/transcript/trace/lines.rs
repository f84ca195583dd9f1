//! Lines of text for people, of which each holds one fact and cannot forge another.

use std::fmt::{self, Write};

use crate::output::terminal::clean_line;

/// Lines for people. What a record holds cannot begin another line, nor move the cursor: a forged
/// name would read as a step that never was.
#[derive(Default)]
pub(super) struct TraceLines {
    all: String,
    /// The line under way.
    line: String,
}

impl TraceLines {
    /// Ends the line with these words.
    pub(super) fn end(&mut self, words: fmt::Arguments<'_>) -> fmt::Result {
        self.line.write_fmt(words)?;
        self.all.push_str(&clean_line(&self.line));
        self.all.push('\n');
        self.line.clear();
        Ok(())
    }

    /// Returns all lines so far.
    pub(super) fn all(self) -> String {
        self.all
    }
}

impl Write for TraceLines {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        self.line.push_str(words);
        Ok(())
    }
}

/// Returns the first line of a text, cut to what fits on one.
pub(super) fn short(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}
