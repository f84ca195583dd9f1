//! All lines of a file, read once for everybody who checks it.

use super::read::{ReadLine, read_line};

/// A file, line by line.
#[derive(Debug)]
pub struct FileLines<'a> {
    lines: Vec<FileLine<'a>>,
    bytes: &'a [u8],
    is_as_written: bool,
}

/// One line of a file.
#[derive(Debug)]
pub(super) struct FileLine<'a> {
    /// From 1; blank lines count.
    pub(super) number: u64,
    /// Where it begins in the file.
    pub(super) offset: usize,
    /// The bytes of the line without its newline.
    pub(super) bytes: &'a [u8],
    /// Whether it ends with a newline.
    pub(super) is_terminated: bool,
    /// What the line holds; `None` when it cannot be read.
    pub(super) read: Option<ReadLine>,
}

impl<'a> FileLines<'a> {
    /// Reads a whole file. Blank lines are passed over.
    pub fn read(bytes: &'a [u8]) -> Self {
        let mut lines = Vec::new();
        let mut offset = 0;
        // What a load would mend: it reads such a file in another order or with other bytes.
        let mut is_as_written = !bytes.starts_with(b"\xef\xbb\xbf") && !bytes.contains(&0);
        let mut last_seq = 0;
        for (number, piece) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let start = offset;
            offset += piece.len();
            let (line, is_terminated) = match piece.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (piece, false),
            };
            if is_terminated && line.trim_ascii().is_empty() {
                continue;
            }
            let text = std::str::from_utf8(line).ok();
            is_as_written &= text.is_some() && !line.ends_with(b"\r");
            let read = text.and_then(|it| read_line(it).ok());
            if let Some(seal) = read.as_ref().and_then(|it| it.seal) {
                is_as_written &= seal.intact && seal.seq == last_seq + 1;
                last_seq = seal.seq;
            }
            lines.push(FileLine { number, offset: start, bytes: line, is_terminated, read });
        }
        Self { lines, bytes, is_as_written }
    }

    /// Returns the lines that are not blank, in the order of the file.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, FileLine<'a>> {
        self.lines.iter()
    }

    /// Returns the whole file.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether every line is UTF-8, every line of ours is as it was written and where it was written, and
    /// nothing but line feeds ends a line.
    pub(super) fn is_as_written(&self) -> bool {
        self.is_as_written
    }
}

impl FileLine<'_> {
    /// Returns the line as text; empty if it is not text.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }
}
