//! Bytes into lines: what is no text is made into text or taken out, and reported.

use std::borrow::Cow;

use super::{Report, ReportKind};
use crate::transcript::read::seal_of;

/// A line that is not blank.
pub(super) struct RawLine<'a> {
    /// From 1; blank lines count.
    pub(super) number: u64,
    pub(super) text: Cow<'a, str>,
    /// It ends with a newline.
    pub(super) terminated: bool,
}

/// Only LF ends a line; a CR before it is dropped. A mark at the start of the file is dropped.
pub(super) fn split<'a>(bytes: &'a [u8], report: &mut Vec<Report>) -> Vec<RawLine<'a>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut found = Vec::new();
    let mut number = 0;
    let mut crlf: Option<Report> = None;
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        number += 1;
        let (line, terminated) = match piece.strip_suffix(b"\n") {
            Some(line) => match line.strip_suffix(b"\r") {
                Some(line) => {
                    // Lines of others may end so; those of this writer never do.
                    if seal_of(line).is_some() {
                        let first = || Report::counted(ReportKind::CrlfLineEnds, number, 0);
                        let count = &mut crlf.get_or_insert_with(first).count;
                        *count = count.map(|it| it + 1);
                    }
                    (line, true)
                }
                None => (line, true),
            },
            None => (piece, false),
        };
        let line = without_zeros(line);
        if let Cow::Owned(_) = line {
            report.push(Report::at(ReportKind::NulBlock, number));
        }
        let text = match line {
            Cow::Borrowed(line) => String::from_utf8_lossy(line),
            Cow::Owned(line) => Cow::Owned(String::from_utf8_lossy(&line).into_owned()),
        };
        if text.contains('\u{fffd}') && std::str::from_utf8(piece).is_err() {
            report.push(Report::at(ReportKind::InvalidUtf8, number));
        }
        if !text.trim_ascii().is_empty() {
            found.push(RawLine { number, text, terminated });
        }
    }
    report.extend(crlf);
    found
}

fn without_zeros(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, line).is_some() {
        Cow::Owned(line.iter().copied().filter(|byte| *byte != 0).collect())
    } else {
        Cow::Borrowed(line)
    }
}
