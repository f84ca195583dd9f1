//! What a rule does to the bytes of its answer: cuts, and everything else that goes wrong on a wire.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{count::Count, script::End, template::Templates, wire};
use ennead_runtime::{digest::Digest, saturating::Saturating as _};

/// Bytes a made-up event or garbage may have.
const MAX_MADE_UP: usize = 64 << 20;

/// What goes wrong, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFault {
    status: Option<u16>,
    error: Option<String>,
    message: Option<String>,
    body: Option<String>,
    body_file: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    action: Option<Action>,
    #[serde(default)]
    at: Count,
    #[serde(default)]
    before_head: bool,
    #[serde(default = "made_up")]
    size: usize,
}

#[derive(Debug)]
pub(super) struct Fault {
    /// Answer with this status instead.
    status: Option<u16>,
    /// The `type` of the error.
    pub(super) error: Option<String>,
    pub(super) message: Option<String>,
    /// The whole body instead of an error object.
    pub(super) body: Option<Vec<u8>>,
    /// Further headers, of any answer.
    pub(super) headers: BTreeMap<String, String>,
    /// The `content-type` instead of the right one.
    pub(super) content_type: Option<String>,
    /// At this byte of the body something happens. Past the end means at the end.
    pub(super) at: Count,
    /// It ends before anything is sent.
    pub(super) before_head: bool,
    /// What happens to the body.
    action: Option<Action>,
    /// Bytes of what is made up.
    size: usize,
}

/// Gives the bytes of a file that a playbook names, or says why not.
pub(super) type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

fn made_up() -> usize {
    64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// The body ends here, properly.
    End,
    /// The connection is closed here in good order, and the body has no end.
    Close,
    /// The connection is reset here.
    Reset,
    /// Nothing comes any more, and the connection stays open.
    Stall,
    /// Bytes without meaning are put in here.
    Garbage,
    /// Bytes that are not UTF-8 are put in here.
    NonUtf8,
    /// A `ping` of `size` bytes is put in where the next event would begin.
    HugeEvent,
    /// An `error` event is put in where the next event would begin; then the body ends.
    ErrorEvent,
}

impl RawFault {
    /// Checks it and reads its file. `place` names it in errors.
    pub(super) fn compile(
        self,
        place: &str,
        templates: &Templates,
        read: &mut ReadFile<'_>,
    ) -> Result<Fault, String> {
        self.check(templates).map_err(|why| format!("{place}.{why}"))?;
        let body = match (self.body, self.body_file) {
            (body, None) => body.map(String::into_bytes),
            (None, Some(file)) => {
                Some(read(&file).map_err(|why| format!("{place}.body_file: {file}: {why}"))?)
            }
            (Some(_), Some(_)) => return Err(format!("{place}: both `body` and `body_file`")),
        };
        if body.is_some() && self.status.is_none() {
            return Err(format!("{place}.body: needs `status`"));
        }
        let ends = |it| matches!(it, Action::End | Action::Close | Action::Reset | Action::Stall);
        if self.before_head && !self.action.is_some_and(ends) {
            return Err(format!("{place}.before_head: needs `action`, one that ends the answer"));
        }
        Ok(Fault {
            status: self.status,
            error: self.error,
            message: self.message,
            body,
            headers: self.headers,
            content_type: self.content_type,
            at: self.at,
            before_head: self.before_head,
            action: self.action,
            size: self.size,
        })
    }

    fn check(&self, templates: &Templates) -> Result<(), String> {
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err("status: must be 200 to 599".to_owned());
        }
        if self.size > MAX_MADE_UP {
            return Err("size: at most 67108864".to_owned());
        }
        for (name, value) in &self.headers {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if name.is_empty()
                || !name.bytes().all(fits)
                || !value.bytes().all(|b| (32..127).contains(&b))
            {
                return Err(format!("headers: bad header `{name}`"));
            }
        }
        let bad = |text: &String| !text.bytes().all(|b| (32..127).contains(&b));
        if self.content_type.as_ref().is_some_and(bad) {
            return Err("content_type: must be printable".to_owned());
        }
        self.at.check(templates).map_err(|why| format!("at: {why}"))
    }
}

impl Fault {
    /// Returns the status of what it answers instead.
    pub(super) fn status(&self) -> u16 {
        self.status.unwrap_or(200)
    }

    /// Returns whether the rule answers with this instead of a message.
    pub(super) fn replaces_answer(&self) -> bool {
        self.status.is_some() || self.before_head
    }

    /// Applies the fault to the body, and returns how the body ends.
    pub(super) fn apply(&self, body: &mut wire::Bytes, at: u64, seed: Digest) -> End {
        let Some(action) = self.action else { return End::Closed };
        let at = usize::saturating(at).min(body.bytes.len());
        let mut event_at =
            body.event_ends.iter().copied().find(|end| *end >= at).unwrap_or(body.bytes.len());
        if at == 0 {
            event_at = 0;
        }
        match action {
            Action::End | Action::Close | Action::Reset | Action::Stall => {
                body.bytes.truncate(at);
            }
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
            Action::Close => End::Dropped,
            Action::Reset => End::Reset,
            Action::Stall => End::Stall,
            Action::End
            | Action::Garbage
            | Action::NonUtf8
            | Action::HugeEvent
            | Action::ErrorEvent => End::Closed,
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
