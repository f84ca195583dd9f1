//! Tells bytes that say something from bytes that only keep a connection open.
//!
//! Some servers send comments or pings for ever while the model behind them is stuck. So the watch on
//! silence looks at `data:` lines that are no pings. Alone, because it is the same for every format
//! that is streamed as server-sent events, and because it must not parse.

use memchr::{memchr, memrchr};

/// As much of a line as decides what it is: `data: {"type": "ping"}` and whatever space is in it.
const MAX_HEAD: usize = 48;

/// Looks at the bytes of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventWatch {
    /// The beginning of the line that has not ended yet.
    head: Vec<u8>,
    /// Whether the rest of that line has nothing new to say.
    is_settled: bool,
}

impl EventWatch {
    /// Whether these bytes, behind those before, hold something of an event.
    pub fn push(&mut self, mut bytes: &[u8]) -> bool {
        let mut says_something = false;
        while !bytes.is_empty() {
            // Once that is known, only the line that has not ended is of interest.
            if says_something && let Some(last) = memrchr(b'\n', bytes) {
                bytes = bytes.get(last + 1..).unwrap_or_default();
                self.end_line();
                continue;
            }
            let end = memchr(b'\n', bytes).or_else(|| memchr(b'\r', bytes));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.is_settled {
                // More of a long event.
                says_something |= !line.is_empty();
            } else if end.is_some() && self.head.is_empty() {
                says_something |= is_event(&line[..line.len().min(MAX_HEAD)]);
            } else {
                let room = MAX_HEAD - self.head.len();
                self.head.extend_from_slice(&line[..line.len().min(room)]);
                if end.is_some() || MAX_HEAD <= self.head.len() {
                    self.is_settled = is_event(&self.head);
                    says_something |= self.is_settled;
                }
            }
            bytes = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                self.end_line();
            }
        }
        says_something
    }

    fn end_line(&mut self) {
        self.head.clear();
        self.is_settled = false;
    }
}

fn is_event(head: &[u8]) -> bool {
    let Some(data) = head.strip_prefix(b"data:") else { return false };
    // As providers write it.
    if let Some(kind) = data.strip_prefix(br#" {"type":""#) {
        return !kind.starts_with(b"ping\"");
    }
    let mut squeezed = data.iter().copied().filter(|it| !it.is_ascii_whitespace());
    !data.is_empty() && !br#"{"type":"ping""#.iter().all(|it| squeezed.next() == Some(*it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stream: &str, expected: bool) {
        let mut watch = EventWatch::default();
        assert_eq!(watch.push(stream.as_bytes()), expected, "{stream:?}");
        // However it is cut.
        let mut watch = EventWatch::default();
        let any = stream.as_bytes().chunks(1).fold(false, |any, it| watch.push(it) | any);
        assert_eq!(any, expected, "{stream:?}, byte by byte");
    }

    // REQ: MDL-12
    #[test]
    fn comments_and_pings_say_nothing() {
        check(": keep-alive\n\n: keep-alive\n\n", false);
        check(&format!(": {}\n", "x".repeat(500)), false);
        check("event: ping\ndata: {\"type\": \"ping\"}\n\n", false);
        check("event: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\n", false);
        check("\n\n\r\n", false);
        check("data: [DONE]\n\n", true);
        check("event: x\ndata: {\"type\":\"content_block_delta\"}\n\n", true);
        check("data: {\"type\": \"pingpong\"}\n", true);
    }

    // REQ: MDL-12
    #[test]
    fn a_line_that_has_not_ended_is_judged_by_what_follows_whatever_was_said_before_it() {
        let mut watch = EventWatch::default();
        assert!(watch.push(b"data: a\n\nevent: ping\nda"));
        assert!(!watch.push(b"ta: {\"type\": \"ping\"}\n\n"));
        assert!(watch.push(b"data: a\n: comment\ndata: b"));
        assert!(watch.push(b"c\n: comm"));
        assert!(!watch.push(b"ent\n\n"));
    }

    #[test]
    fn every_piece_of_a_long_event_says_something() {
        let mut watch = EventWatch::default();
        let head = format!("data: {}", "x".repeat(100));
        assert!(watch.push(head.as_bytes()));
        assert!(watch.push(b"more of it"));
        assert!(!watch.push(b"\n: comment\n"));
    }
}
