//! Text files as they lie on disk: read whole, shown with `\n`, written back as they were.
//!
//! A byte order mark and the line ends of a file survive every change; what the model sees and
//! writes has neither.

use std::{
    fs::{File, Permissions},
    io::{self, Read},
    os::unix::fs::MetadataExt,
};

use ennead_runtime::tool::FileSeen;

/// Bytes of a file that a tool takes into memory at most.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;

/// Bytes at the start of a file in which a NUL means that the file is not text. As in Git.
const BINARY_PROBE: usize = 8000;

/// Bytes of original content that a structured result carries at most; above, it is `null`.
const MAX_ORIGINAL: usize = 256 << 10;

/// The byte order mark of UTF-8, which some files begin with.
pub(crate) const MARK: &str = "\u{feff}";

/// A file taken into memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) bytes: Vec<u8>,
    /// The mode that a rewritten file gets again.
    pub(crate) permissions: Permissions,
    mtime_ns: u64,
}

/// Why a file could not be taken into memory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The file has more than [`MAX_FILE_BYTES`] bytes.
    #[error(
        "The file has {size} bytes, more than the {MAX_FILE_BYTES} this tool takes. Use Grep, or a part of it with Bash."
    )]
    TooLarge { size: u64 },
    /// The system refused to read the file.
    #[error("Cannot read: {0}.")]
    Io(#[from] io::Error),
}

impl Loaded {
    /// Reads the whole file.
    pub(crate) fn from(file: &File) -> Result<Self, LoadError> {
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        // One more than allowed, because a file can grow after it was looked at.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        let size = metadata.size().max(bytes.len() as u64);
        if size > MAX_FILE_BYTES {
            return Err(LoadError::TooLarge { size });
        }
        Ok(Self { bytes, permissions: metadata.permissions(), mtime_ns: mtime_ns(file)? })
    }

    /// Returns what the session remembers of it.
    pub(crate) fn as_seen(&self, partial: bool) -> FileSeen {
        FileSeen::new(&self.bytes, self.mtime_ns, partial)
    }

    /// Returns whether the file is not text.
    pub(crate) fn is_binary(&self) -> bool {
        self.bytes[..self.bytes.len().min(BINARY_PROBE)].contains(&0)
    }
}

/// Returns what the session remembers of a file that was just written.
pub(crate) fn seen_after_writing(file: &File, bytes: &[u8], partial: bool) -> io::Result<FileSeen> {
    Ok(FileSeen::new(bytes, mtime_ns(file)?, partial))
}

fn mtime_ns(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Ok(u64::try_from(ns).unwrap_or(0))
}

/// Returns the content for a structured result, if it is not too long for a transcript line.
pub(crate) fn original(text: &str) -> Option<&str> {
    (text.len() <= MAX_ORIGINAL).then_some(text)
}

/// Returns the text without byte order mark and carriage returns at line ends.
pub(crate) fn normal(text: &str) -> String {
    text.strip_prefix(MARK).unwrap_or(text).replace("\r\n", "\n")
}

/// Returns whether every line of the text ends with CR LF, and there is one.
pub(crate) fn is_crlf(text: &str) -> bool {
    let n_lines = text.matches('\n').count();
    n_lines > 0 && text.matches("\r\n").count() == n_lines
}

/// Returns new content in the form of the old: with its byte order mark, and with CR LF if all its lines ended so.
pub(crate) fn in_form_of(old: &str, new: &str) -> String {
    let content = normal(new);
    let content = if is_crlf(old) { content.replace('\n', "\r\n") } else { content };
    let had_mark = old.starts_with(MARK);
    if had_mark { format!("{MARK}{content}") } else { content }
}

/// Replaces parts of a text that were found in its normal form.
///
/// `ranges` are byte ranges of `normal(text)`, in order, without overlap. What lies between keeps
/// its line ends, also where they are mixed.
pub(crate) fn splice(text: &str, ranges: &[std::ops::Range<usize>], new: &str) -> String {
    let crlf = text.matches("\r\n").count() * 2 > text.matches('\n').count();
    let new = if crlf { new.replace('\n', "\r\n") } else { new.to_owned() };
    let start = if text.starts_with(MARK) { MARK.len() } else { 0 };
    // Positions in the normal form before which a carriage return was taken out.
    let returns: Vec<usize> = text[start..]
        .match_indices("\r\n")
        .enumerate()
        .map(|(n_before, (at, _))| at - n_before)
        .collect();
    // A position after a carriage return's place lies after it; at its place, before it.
    let back = |at: usize| start + at + returns.partition_point(|place| *place < at);
    let mut out = String::with_capacity(text.len() + new.len());
    let mut done = 0;
    for range in ranges {
        out.push_str(&text[done..back(range.start)]);
        out.push_str(&new);
        done = back(range.end);
    }
    out.push_str(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splicing_keeps_mark_and_mixed_line_ends() {
        let cases = [
            ("a\nb\nc", "b", "x\ny", "a\nx\ny\nc"),
            ("a\r\nb\r\nc\r\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"),
            ("a\r\nb\nc\r\nd\r\n", "c", "x\ny", "a\r\nb\nx\r\ny\r\nd\r\n"),
            ("\u{feff}a\r\nb", "a\nb", "c\nd", "\u{feff}c\r\nd"),
            ("é\r\n\r\nz\r\n", "\n\nz", "!", "é!\r\n"),
            ("a\rb\nc", "a\rb", "x", "x\nc"),
        ];
        for (text, old, new, expected) in cases {
            let plain = normal(text);
            let at = plain.find(old).unwrap();
            let found = at..at + old.len();
            assert_eq!(splice(text, std::slice::from_ref(&found), new), expected, "{text:?}");
        }
    }

    #[test]
    fn overwriting_keeps_mark_and_line_ends_and_doubles_nothing() {
        assert_eq!(in_form_of("a\r\nb\r\n", "x\ny\r\n"), "x\r\ny\r\n");
        assert_eq!(in_form_of("a\nb\r\n", "x\ny\n"), "x\ny\n");
        assert_eq!(in_form_of("\u{feff}a", "x"), "\u{feff}x");
    }
}
