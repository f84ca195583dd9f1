//! What a rule does to the bytes of its answer: delays, cuts, and everything that goes wrong on a
//! wire.

use bytes::Bytes;
use serde::Deserialize;

use super::{End, Piece, wire};
use crate::digest::Digest;

/// Bytes a made-up event or garbage may have.
const MAX_MADE_UP: usize = 64 << 20;
/// Pieces a body may be cut into.
const MAX_PIECES: usize = 1 << 20;

/// How the bytes arrive, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pace {
    /// Before the head of the answer, in milliseconds.
    #[serde(default)]
    pub(super) head_ms: u64,
    /// Before the first byte of the body.
    #[serde(default)]
    pub(super) first_ms: u64,
    /// Before every further piece.
    #[serde(default)]
    pub(super) between_ms: u64,
    /// Sizes of the pieces in bytes, over and over. Empty: by event when there is a delay between
    /// them, otherwise all at once.
    #[serde(default)]
    pub(super) cut: Vec<usize>,
}

/// What goes wrong, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// Answer with this status instead.
    pub(super) status: Option<u16>,
    /// The `type` of the error.
    pub(super) error: Option<String>,
    /// Its text.
    pub(super) message: Option<String>,
    /// The whole body instead of an error object.
    pub(super) body: Option<String>,
    /// Further headers, of any answer.
    #[serde(default)]
    pub(super) headers: std::collections::BTreeMap<String, String>,
    /// The `content-type` instead of the right one.
    pub(super) content_type: Option<String>,
    /// What happens to the body.
    action: Option<Action>,
    /// At this byte of it. Past the end means at the end.
    #[serde(default)]
    at: usize,
    /// Bytes of what is made up.
    #[serde(default = "made_up")]
    size: usize,
}

fn made_up() -> usize {
    64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// The body ends here, properly.
    End,
    /// The connection is reset here.
    Reset,
    /// Nothing comes any more, and the connection stays open.
    Stall,
    /// Bytes without meaning are put in here.
    Garbage,
    /// Bytes that are no UTF-8 are put in here.
    NonUtf8,
    /// A `ping` of `size` bytes is put in where the next event would begin.
    HugeEvent,
    /// An `error` event is put in where the next event would begin; then the body ends.
    ErrorEvent,
}

/// What the real API calls the errors of these statuses.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

impl Pace {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.cut.contains(&0) {
            Err("pace.cut: sizes must be at least 1".to_owned())
        } else {
            Ok(())
        }
    }

    /// Cuts a body into pieces with their delays.
    pub(super) fn pieces(&self, body: wire::Bytes) -> Vec<Piece> {
        let bytes = Bytes::from(body.bytes);
        let mut ends: Vec<usize> = match self.cut.as_slice() {
            [] if self.between_ms > 0 => body.event_ends,
            [] => Vec::new(),
            sizes => {
                let mut at = 0_usize;
                let end = sizes.iter().cycle().map(|size| {
                    at = at.saturating_add(*size);
                    at
                });
                end.take_while(|end| *end < bytes.len()).take(MAX_PIECES).collect()
            }
        };
        ends.retain(|end| *end < bytes.len());
        ends.push(bytes.len());
        let mut from = 0;
        let mut pieces = Vec::with_capacity(ends.len());
        for end in ends {
            let delay_ms = if from == 0 { self.first_ms } else { self.between_ms };
            if from < end || delay_ms > 0 {
                pieces.push(Piece { delay_ms, bytes: bytes.slice(from..end) });
            }
            from = end;
        }
        pieces
    }
}

impl Fault {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err("fault.status: must be 200 to 599".to_owned());
        }
        if self.size > MAX_MADE_UP {
            return Err("fault.size: at most 67108864".to_owned());
        }
        if self.status.is_none() && self.body.is_some() {
            return Err("fault.body: needs `status`".to_owned());
        }
        for (name, value) in &self.headers {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if name.is_empty()
                || !name.bytes().all(fits)
                || !value.bytes().all(|b| (32..127).contains(&b))
            {
                return Err(format!("fault.headers: bad header `{name}`"));
            }
        }
        let bad = |text: &String| !text.bytes().all(|b| (32..127).contains(&b));
        if self.content_type.as_ref().is_some_and(bad) {
            return Err("fault.content_type: must be printable".to_owned());
        }
        Ok(())
    }

    /// Whether the rule answers with this instead of a message.
    pub(super) fn replaces_answer(&self) -> bool {
        self.status.is_some()
    }

    /// Does it to the body, and says how the body ends.
    pub(super) fn apply(&self, body: &mut wire::Bytes, seed: Digest) -> End {
        let Some(action) = self.action else { return End::Closed };
        let at = self.at.min(body.bytes.len());
        let mut event_at =
            body.event_ends.iter().copied().find(|end| *end >= at).unwrap_or(body.bytes.len());
        if at == 0 {
            event_at = 0;
        }
        match action {
            Action::End | Action::Reset | Action::Stall => body.bytes.truncate(at),
            Action::Garbage => insert(body, at, &garbage(seed, self.size)),
            Action::NonUtf8 => {
                let bad: Vec<u8> = [0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80]
                    .into_iter()
                    .cycle()
                    .take(self.size)
                    .collect();
                insert(body, at, &bad);
            }
            Action::HugeEvent => {
                let pad = "x".repeat(self.size);
                let event =
                    format!("event: ping\ndata: {{\"type\":\"ping\",\"pad\":\"{pad}\"}}\n\n");
                insert(body, event_at, event.as_bytes());
            }
            Action::ErrorEvent => {
                body.bytes.truncate(event_at);
                let kind = wire::quoted(self.error.as_deref().unwrap_or("overloaded_error"));
                let message = wire::quoted(self.message.as_deref().unwrap_or("Overloaded"));
                let event = format!(
                    "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":{kind},\"message\":{message}}}}}\n\n"
                );
                insert(body, event_at, event.as_bytes());
            }
        }
        match action {
            Action::Reset => End::Reset,
            Action::Stall => End::Stall,
            _ => End::Closed,
        }
    }
}

fn insert(body: &mut wire::Bytes, at: usize, bytes: &[u8]) {
    body.bytes.splice(at..at, bytes.iter().copied());
    for end in body.event_ends.iter_mut().filter(|end| **end > at) {
        *end += bytes.len();
    }
}

/// Bytes that look random and are the same for the same request.
fn garbage(seed: Digest, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 16);
    let mut block = seed;
    while bytes.len() < size {
        block = Digest::of(&block.0);
        bytes.extend_from_slice(&block.0);
    }
    bytes.truncate(size);
    bytes
}
