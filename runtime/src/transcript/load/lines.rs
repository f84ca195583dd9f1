//! Bytes into lines: what is not a text is made into text or taken out, and reported.

use std::borrow::Cow;

use super::{Report, ReportKind};
use crate::transcript::seal::seal_of;

/// A line that is not blank.
pub(super) struct RawLine<'a> {
    /// From 1; blank lines count.
    pub(super) number: u64,
    pub(super) text: Cow<'a, str>,
    /// Whether it ends with a newline.
    pub(super) terminated: bool,
}

/// Splits a file into lines. Only LF ends a line; a CR before it is dropped. A mark at the start of the file is
/// dropped.
pub(super) fn split<'a>(bytes: &'a [u8], report: &mut Vec<Report>) -> Vec<RawLine<'a>> {
    let unmarked = bytes.strip_prefix(BYTE_ORDER_MARK);
    let bytes = unmarked.unwrap_or(bytes);
    let mut found = Vec::new();
    let mut number = 0;
    let mut crlf: Option<Report> = None;
    let mut cr: Option<Report> = None;
    for piece in bytes.split_inclusive(|byte| *byte == b'\n').flat_map(pieces) {
        number += 1;
        // The files of others may begin so; those of this writer never do.
        if number == 1 && unmarked.is_some() && seal_of(piece.trim_ascii_end()).is_some() {
            report.push(Report::at(ReportKind::ByteOrderMark, 1));
        }
        if let Some(line) = piece.strip_suffix(b"\r") {
            let first = || Report::counted(ReportKind::CrLineEnds, number, 0);
            let count = &mut cr.get_or_insert_with(first).count;
            *count = count.map(|it| it + 1);
            found.push(text_of(line, number, report));
            continue;
        }
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
        found.push(RawLine { terminated, ..text_of(line, number, report) });
    }
    report.extend(crlf);
    report.extend(cr);
    found.retain(|it| !it.text.trim_ascii().is_empty());
    found
}

/// What some editors put at the beginning of a file of UTF-8.
pub(in crate::transcript) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines of this writer that somebody ended with a carriage return alone, one by one with it; anything
/// else whole.
fn pieces(piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    let at = memchr::memchr(b'\r', piece).filter(|at| {
        let is_inside = !matches!(piece.get(at + 1..), None | Some(b"" | b"\n"));
        is_inside && is_ended_by_returns(piece)
    });
    let is_end = move |byte: &u8| at.is_some() && *byte == b'\r';
    let all = piece.split_inclusive(is_end);
    // The last return may have a line feed of the next writer after it.
    all.filter(|it| *it != b"\n")
}

/// Returns whether the first of several lines that end with a carriage return alone is one of this writer.
pub(super) fn is_ended_by_returns(bytes: &[u8]) -> bool {
    memchr::memchr(b'\r', bytes).is_some_and(|at| seal_of(&bytes[..at]).is_some())
}

/// One line as text, terminated.
fn text_of<'a>(bytes: &'a [u8], number: u64, report: &mut Vec<Report>) -> RawLine<'a> {
    let line = without_zeros(bytes);
    if let Cow::Owned(_) = line {
        report.push(Report::at(ReportKind::NulBlock, number));
    }
    let text = match line {
        Cow::Borrowed(line) => String::from_utf8_lossy(line),
        Cow::Owned(line) => Cow::Owned(String::from_utf8_lossy(&line).into_owned()),
    };
    if text.contains('\u{fffd}') && std::str::from_utf8(bytes).is_err() {
        report.push(Report::at(ReportKind::InvalidUtf8, number));
    }
    RawLine { number, text, terminated: true }
}

fn without_zeros(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, line).is_some() {
        Cow::Owned(line.iter().copied().filter(|byte| *byte != 0).collect())
    } else {
        Cow::Borrowed(line)
    }
}
