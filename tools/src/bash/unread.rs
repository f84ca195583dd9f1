//! Reads what a command in the background has printed since it was last read.
//!
//! However much that is, memory is bounded by what is shown, and time by the size of the file.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use ennead_runtime::ports::shells::{NewOutput, ShellStatus};
use regex::bytes::{Regex, RegexBuilder};

use crate::output::tail;
use ennead_runtime::saturating::Saturating as _;

/// Characters of a filter.
const MAX_FILTER_CHARS: usize = 1000;

/// Bytes that a compiled filter may take, and its cache while it searches.
const MAX_FILTER_BYTES: usize = 1 << 20;

/// Bytes that are read at once. A line is no longer than that for a filter.
const PIECE_BYTES: usize = 64 << 10;

/// What was not read so far.
#[derive(Clone, Debug)]
pub(super) struct Unread {
    /// The part of the file, in bytes.
    pub(super) from: u64,
    /// The place after its last byte.
    pub(super) until: u64,
    /// Bytes that came after it and are not in the file.
    pub(super) n_lost: u64,
    /// The last of those.
    pub(super) tail: Arc<[u8]>,
    /// Whether more may be printed.
    pub(super) may_go_on: bool,
}

/// New output, and up to where it was read.
#[derive(Debug)]
pub(super) struct ReadOutput {
    pub(super) output: NewOutput,
    /// Up to where the file is read with it.
    pub(super) read_until: u64,
}

/// Reads what is new.
///
/// # Errors
///
/// A filter that is not a regular expression, or a file that cannot be read; in words for the model.
pub(super) fn read(
    file: &File,
    unread: &Unread,
    filter: Option<&str>,
    max_chars: usize,
    status: ShellStatus,
) -> Result<ReadOutput, String> {
    let filter = filter.map(compiled).transpose()?;
    let mut excerpt = Excerpt::new(max_chars.saturating_mul(4));
    let read_until = match &filter {
        None => whole(file, unread, &mut excerpt),
        Some(filter) => matching(file, unread, filter, &mut excerpt),
    };
    let read_until = read_until.map_err(|error| format!("its output cannot be read: {error}"))?;
    if 0 < unread.n_lost {
        let n_last = usize::saturating(unread.n_lost).min(unread.tail.len());
        let last = &unread.tail[unread.tail.len() - n_last..];
        match &filter {
            None => excerpt.push(last),
            Some(filter) => {
                let lines = last.split_inclusive(|byte| *byte == b'\n');
                lines.filter(|it| filter.is_match(it)).for_each(|it| excerpt.push(it));
            }
        }
    }
    let (bytes, mut n_left_out) = excerpt.into_parts();
    let text = String::from_utf8_lossy(&bytes);
    let shown = tail(&text, max_chars);
    n_left_out += (text.len() - shown.len()) as u64;
    let output = NewOutput {
        text: shown.to_owned(),
        n_left_out,
        n_lost: unread.n_lost,
        status,
        take: Box::new(|| ()),
    };
    Ok(ReadOutput { output, read_until })
}

fn compiled(filter: &str) -> Result<Regex, String> {
    if filter.chars().nth(MAX_FILTER_CHARS).is_some() {
        return Err(format!("the filter has more than {MAX_FILTER_CHARS} characters"));
    }
    let mut builder = RegexBuilder::new(filter);
    builder.size_limit(MAX_FILTER_BYTES).dfa_size_limit(MAX_FILTER_BYTES);
    builder.build().map_err(|error| format!("the filter cannot be used: {error}"))
}

/// Takes the end of the part; what is shown of it is all that is read.
fn whole(file: &File, unread: &Unread, excerpt: &mut Excerpt) -> std::io::Result<u64> {
    let start = unread.from.max(unread.until.saturating_sub(excerpt.max as u64));
    excerpt.n_left_out += start - unread.from;
    let mut bytes = vec![0; usize::try_from(unread.until - start).unwrap_or(0)];
    let n_read = read_at(file, &mut bytes, start)?;
    bytes.truncate(n_read);
    // The rest of its last character may be on the way.
    let n_open = if unread.may_go_on { open_character(&bytes) } else { 0 };
    bytes.truncate(bytes.len() - n_open);
    excerpt.push(&bytes);
    Ok(unread.until - n_open as u64)
}

/// Takes the lines of the part that match.
fn matching(
    file: &File,
    unread: &Unread,
    filter: &Regex,
    excerpt: &mut Excerpt,
) -> std::io::Result<u64> {
    let mut bytes = vec![0; PIECE_BYTES];
    let mut at = unread.from;
    while at < unread.until {
        let left = usize::saturating(unread.until - at);
        let piece = &mut bytes[..left.min(PIECE_BYTES)];
        let n_read = read_at(file, piece, at)?;
        let is_cut_off = n_read < piece.len();
        let piece = &piece[..n_read];
        let is_last = left <= PIECE_BYTES;
        let n_whole = match piece.iter().rposition(|byte| *byte == b'\n') {
            _ if is_cut_off => piece.len(),
            // The rest of its last line may be on the way.
            None if is_last && unread.may_go_on && piece.len() < PIECE_BYTES => break,
            Some(end) if !is_last || unread.may_go_on => end + 1,
            _ => piece.len(),
        };
        let lines = piece[..n_whole].split_inclusive(|byte| *byte == b'\n');
        for line in lines.filter(|it| filter.is_match(it.strip_suffix(b"\n").unwrap_or(it))) {
            excerpt.push(line);
        }
        if is_cut_off {
            // The rest cannot be read any more.
            return Ok(unread.until);
        }
        at += n_whole as u64;
        if is_last {
            break;
        }
    }
    Ok(at)
}

/// Fills the buffer from a place in the file. Reads less where the file is shorter than what was written
/// to it: the command may have cut it off.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut n_read = 0;
    while n_read < buffer.len() {
        match file.read_at(&mut buffer[n_read..], at + n_read as u64) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_read)
}

/// Bytes at the end that begin a character and do not finish it.
fn open_character(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let Some(begun) = bytes[last..].iter().rposition(|byte| 0xc0 <= *byte) else { return 0 };
    let n_there = bytes.len() - last - begun;
    let n_needed = match bytes[last + begun] {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    if n_there < n_needed { n_there } else { 0 }
}

/// The last bytes of what is pushed.
struct Excerpt {
    bytes: Vec<u8>,
    max: usize,
    n_left_out: u64,
}

impl Excerpt {
    fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max, n_left_out: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Twice the length, so that a byte is moved once on average.
        if self.max.saturating_mul(2) < self.bytes.len() {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let n_over = self.bytes.len().saturating_sub(self.max);
        self.bytes.drain(..n_over);
        self.n_left_out += n_over as u64;
    }

    fn into_parts(mut self) -> (Vec<u8>, u64) {
        self.cut();
        (self.bytes, self.n_left_out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use ennead_runtime::ports::shells::ShellState;

    use super::*;

    fn status() -> ShellStatus {
        ShellStatus::new("bash_1".into(), "c".into(), ShellState::Running, 0, "f".into())
    }

    /// Reads all of a text in a file.
    fn check(text: &[u8], may_go_on: bool, filter: Option<&str>, max: usize) -> (String, u64, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let until = text.len() as u64;
        let unread = Unread { from: 0, until, n_lost: 0, tail: Arc::default(), may_go_on };
        let found = read(&file, &unread, filter, max, status()).unwrap();
        (found.output.text, found.output.n_left_out, found.read_until)
    }

    // REQ: TOL-8
    #[test]
    fn line_and_character_that_are_not_whole_are_read_when_they_are() {
        type Case<'a> = (&'a [u8], bool, Option<&'a str>, &'a str, u64);
        let cases: [Case<'_>; 8] = [
            (b"a\nb", true, None, "a\nb", 3),
            ("a€".as_bytes(), true, None, "a€", 4),
            (&"a€".as_bytes()[..3], true, None, "a", 1),
            (&"a€".as_bytes()[..3], false, None, "a\u{fffd}", 3),
            (b"a\nab", true, Some("a"), "a\n", 2),
            (b"a\nab", false, Some("a"), "a\nab", 4),
            (b"ab", true, Some("a"), "", 0),
            (b"a\nb\n", true, Some("^b$"), "b\n", 4),
        ];
        for (text, may_go_on, filter, shown, until) in cases {
            let found = check(text, may_go_on, filter, 100);
            assert_eq!((found.0.as_str(), found.2), (shown, until), "{text:?} {may_go_on}");
        }
    }

    #[test]
    fn lines_that_match_are_found_across_pieces_and_the_last_ones_are_shown() {
        let lines: Vec<String> = (0..50_000).map(|it| format!("line {it}\n")).collect();
        let text = lines.concat();
        assert!(4 * PIECE_BYTES < text.len());
        let found = check(text.as_bytes(), true, Some("^line 4?9999$"), 1000);
        assert_eq!(found, ("line 9999\nline 49999\n".to_owned(), 0, text.len() as u64));
        let (shown, n_left_out, _) = check(text.as_bytes(), true, Some("line"), 24);
        assert_eq!(shown, "line 49998\nline 49999\n");
        assert_eq!(n_left_out, (text.len() - shown.len()) as u64);
        let (shown, n_left_out, _) = check(text.as_bytes(), true, None, 24);
        assert_eq!(shown, "line 49998\nline 49999\n");
        assert_eq!(n_left_out, (text.len() - shown.len()) as u64);
    }

    #[test]
    fn filter_that_would_take_too_much_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let unread = Unread { from: 0, until: 0, n_lost: 0, tail: Arc::default(), may_go_on: true };
        for filter in ["(", "(a{1000}){1000}", &"a".repeat(MAX_FILTER_CHARS + 1)] {
            let failure = read(&file, &unread, Some(filter), 10, status()).unwrap_err();
            assert!(failure.starts_with("the filter"), "{failure}");
        }
    }

    #[test]
    fn file_that_the_command_cut_off_is_read_as_far_as_it_goes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\n").unwrap();
        let unread =
            Unread { from: 0, until: 100, n_lost: 0, tail: Arc::default(), may_go_on: true };
        let found = read(&file, &unread, None, 100, status()).unwrap();
        assert_eq!((found.output.text.as_str(), found.read_until), ("one\n", 100));
        let found = read(&file, &unread, Some("one"), 100, status()).unwrap();
        assert_eq!((found.output.text.as_str(), found.read_until), ("one\n", 100));
    }

    #[test]
    fn end_of_what_no_file_holds_is_shown_all_the_same() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"start\n").unwrap();
        let tail: Arc<[u8]> = b"rt\nlost\nend\n".as_slice().into();
        let unread = Unread { from: 0, until: 6, n_lost: 9, tail, may_go_on: true };
        let found = read(&file, &unread, None, 100, status()).unwrap();
        assert_eq!((found.output.text.as_str(), found.output.n_lost), ("start\nlost\nend\n", 9));
        let found = read(&file, &unread, Some("^e"), 100, status()).unwrap();
        assert_eq!(found.output.text, "end\n");
    }
}
