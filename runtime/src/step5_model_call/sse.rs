//! Server-sent events from bytes, whatever way they were cut.
//!
//! The format knows nothing of models: it finds lines and events, and every model
//! server that streams speaks it. An event that lies within one chunk is handed on without a copy.

use std::{borrow::Cow, ops::ControlFlow};

use memchr::memchr2;

/// Bytes that one event may hold, 16 MiB (MDL-1); a longer one ends the stream.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event. Bad UTF-8 has been replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty when there was none.
    pub event: Cow<'a, str>,
    /// The `data` lines, joined by newlines.
    pub data: Cow<'a, str>,
}

/// An event is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Finds events in chunks of bytes.
///
/// Lines end with LF, CR LF or CR; a byte order mark at the very start is skipped; comments and the
/// fields `id` and `retry` are passed over; an event without a `data` line is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseParser {
    limit: usize,
    /// The begin of a line whose end has not come yet.
    line: Vec<u8>,
    /// The event that is being read, as far as it came with earlier chunks.
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    at_start: bool,
}

/// Where a field of the current event lies.
#[derive(Clone, Copy)]
enum FieldAt<'c> {
    Nowhere,
    InChunk(&'c [u8]),
    Kept,
}

impl<'c> FieldAt<'c> {
    fn bytes<'a>(self, kept: &'a [u8]) -> &'a [u8]
    where
        'c: 'a,
    {
        match self {
            FieldAt::Nowhere => &[],
            FieldAt::InChunk(bytes) => bytes,
            FieldAt::Kept => kept,
        }
    }

    /// Moves it out of the chunk, so that it lives on.
    fn keep(&mut self, kept: &mut Vec<u8>) {
        if let FieldAt::InChunk(bytes) = *self {
            kept.clear();
            kept.extend_from_slice(bytes);
            *self = FieldAt::Kept;
        }
    }
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl SseParser {
    /// Makes a parser at the start of a stream, with the limit `MAX_EVENT_BYTES`.
    pub fn new() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }

    /// Makes a parser with another limit for one event, in bytes.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Reads a chunk and hands on each event that ends in it, in order, until `on_event` breaks;
    /// what follows in the chunk is then dropped.
    ///
    /// # Errors
    ///
    /// [`EventTooLarge`]; the stream cannot be read further.
    pub fn push_chunk(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), EventTooLarge> {
        let mut rest = chunk;
        let mut event = if self.event.is_empty() { FieldAt::Nowhere } else { FieldAt::Kept };
        let mut data = if self.has_data { FieldAt::Kept } else { FieldAt::Nowhere };
        while !rest.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if let Some(after) = rest.strip_prefix(b"\n") {
                    rest = after;
                    continue;
                }
            }
            if let (FieldAt::Nowhere, FieldAt::Nowhere) = (event, data)
                && self.line.is_empty()
            {
                match self.read_usual(rest, &mut on_event) {
                    ControlFlow::Continue([]) => break,
                    ControlFlow::Continue(after) => rest = after,
                    ControlFlow::Break(()) => break,
                }
            }
            let n_data = data.bytes(&self.data).len();
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                self.check_size(n_data + self.line.len())?;
                break;
            };
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            self.after_cr = rest[end] == b'\r';
            rest = tail;
            self.check_size(n_data + self.line.len() + head.len())?;
            if self.line.is_empty() {
                let line = self.without_mark(head);
                if !line.is_empty() {
                    self.take_whole_line(line, &mut event, &mut data);
                    continue;
                }
                let (found_event, found_data) = (event, data);
                (data, event) = (FieldAt::Nowhere, FieldAt::Nowhere);
                if let FieldAt::InChunk(_) | FieldAt::Kept = found_data {
                    let found = SseEvent {
                        event: text(found_event.bytes(&self.event)),
                        data: text(found_data.bytes(&self.data)),
                    };
                    if on_event(found).is_break() {
                        break;
                    }
                }
            } else {
                self.take_divided_line(head, &mut event, &mut data);
            }
        }
        self.keep(event, data);
        Ok(())
    }

    /// Reads a line that lies in the chunk.
    #[inline]
    fn take_whole_line<'c>(
        &mut self,
        line: &'c [u8],
        event: &mut FieldAt<'c>,
        data: &mut FieldAt<'c>,
    ) {
        match field(line) {
            Some((Field::Event, value)) => *event = FieldAt::InChunk(value),
            Some((Field::Data, value)) => match data {
                FieldAt::Nowhere => *data = FieldAt::InChunk(value),
                FieldAt::InChunk(_) | FieldAt::Kept => self.extend_data(value, data),
            },
            None => {}
        }
    }

    /// Reads a line that began in an earlier chunk, so its value must be copied. It is not
    /// empty; if it is a byte order mark alone, it holds no field.
    #[inline]
    fn take_divided_line(&mut self, end: &[u8], event: &mut FieldAt<'_>, data: &mut FieldAt<'_>) {
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end);
        match field(self.without_mark(&line)) {
            Some((Field::Event, value)) => {
                self.event.clear();
                self.event.extend_from_slice(value);
                *event = FieldAt::Kept;
            }
            Some((Field::Data, value)) => {
                if let FieldAt::Nowhere = data {
                    self.data.clear();
                    self.data.extend_from_slice(value);
                    *data = FieldAt::Kept;
                } else {
                    self.extend_data(value, data);
                }
            }
            None => {}
        }
        line.clear();
        self.line = line;
    }

    /// Joins a further line of data to those before it.
    #[inline]
    fn extend_data(&mut self, value: &[u8], data: &mut FieldAt<'_>) {
        data.keep(&mut self.data);
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
    }

    /// Keeps what a chunk leaves of the event that is being read.
    #[inline]
    fn keep(&mut self, mut event: FieldAt<'_>, mut data: FieldAt<'_>) {
        event.keep(&mut self.event);
        data.keep(&mut self.data);
        self.has_data = !matches!(data, FieldAt::Nowhere);
        if let FieldAt::Nowhere = event {
            self.event.clear();
        }
        if !self.has_data {
            self.data.clear();
        }
    }

    /// Reads events as nearly all are, from the start of one on, and gives what follows the last.
    /// Breaks when `on_event` does.
    fn read_usual<'c>(
        &mut self,
        chunk: &'c [u8],
        on_event: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<(), &'c [u8]> {
        let mut rest = chunk;
        while let Some((event, data, tail)) = usual_event(rest, self.limit) {
            self.at_start = false;
            rest = tail;
            on_event(SseEvent { event: text(event), data: text(data) })?;
        }
        ControlFlow::Continue(rest)
    }

    /// Ends the stream and returns whether a piece of an event was left over, which is dropped.
    pub fn finish(self) -> bool {
        self.has_data || !self.event.is_empty() || !self.line.is_empty()
    }

    fn without_mark<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        if !std::mem::take(&mut self.at_start) {
            return line;
        }
        line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
    }

    fn check_size(&self, n_bytes: usize) -> Result<(), EventTooLarge> {
        if n_bytes <= self.limit { Ok(()) } else { Err(EventTooLarge { limit: self.limit }) }
    }
}

enum Field {
    Event,
    Data,
}

/// Bytes as text; bad ones are replaced. Looking for bad ones goes byte by byte, so it is done only
/// where there are some.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The event at the start of a chunk, and what follows it, if it is all there and is written as
/// the providers do: one `event` line, one `data` line, an empty line, all ended by LF. Both lines
/// keep to the limit.
fn usual_event(chunk: &[u8], limit: usize) -> Option<(&[u8], &[u8], &[u8])> {
    const EVENT: &[u8] = b"event: ";
    const DATA: &[u8] = b"data: ";
    let line = chunk.strip_prefix(EVENT)?;
    let (event, line) = line.split_at_checked(memchr2(b'\n', b'\r', line)?)?;
    let line = line.strip_prefix(b"\n")?.strip_prefix(DATA)?;
    let (data, tail) = line.split_at_checked(memchr2(b'\n', b'\r', line)?)?;
    let fits = EVENT.len() + event.len() <= limit && DATA.len() + data.len() <= limit;
    let tail = tail.strip_prefix(b"\n\n").filter(|_| fits)?;
    Some((event, data, tail))
}

/// The field of a line, if it is one that matters, and its value.
fn field(line: &[u8]) -> Option<(Field, &[u8])> {
    let (field, rest) = if let Some(rest) = line.strip_prefix(b"data") {
        (Field::Data, rest)
    } else if let Some(rest) = line.strip_prefix(b"event") {
        (Field::Event, rest)
    } else {
        return None;
    };
    match rest {
        [] => Some((field, rest)),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some((field, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
