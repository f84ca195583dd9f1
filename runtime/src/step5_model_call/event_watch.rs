//! Tells bytes that say something from bytes that only keep a connection open.
//!
//! Some servers send comments or pings for ever while the model behind them is stuck. So the watch on
//! silence looks at `data:` lines that are no pings. Alone, because it is the same for every format
//! that is streamed as server-sent events, and because it must not parse.

use memchr::memchr;

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
            let end = memchr(b'\n', bytes).or_else(|| memchr(b'\r', bytes));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if !self.is_settled {
                let room = MAX_HEAD - self.head.len();
                self.head.extend_from_slice(&line[..line.len().min(room)]);
            }
            let is_long = MAX_HEAD <= self.head.len();
            if self.is_settled {
                // More of a long event.
                says_something |= !line.is_empty();
            } else if end.is_some() || is_long {
                let is_event = is_event(&self.head);
                says_something |= is_event;
                self.is_settled = is_event && end.is_none();
            }
            bytes = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                self.head.clear();
                self.is_settled = false;
            }
        }
        says_something
    }
}

fn is_event(head: &[u8]) -> bool {
    let Some(data) = head.strip_prefix(b"data:") else { return false };
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

    #[test]
    fn every_piece_of_a_long_event_says_something() {
        let mut watch = EventWatch::default();
        let head = format!("data: {}", "x".repeat(100));
        assert!(watch.push(head.as_bytes()));
        assert!(watch.push(b"more of it"));
        assert!(!watch.push(b"\n: comment\n"));
    }
}
