//! What a server writes, line by line, as messages for the library.
//!
//! The library passes over every line that it cannot read, and the one that waits for the answer in
//! it would wait until the limit on silence. So the lines are read here instead. An answer that cannot
//! be read and names its call is replaced by an error for that call. Of any other line that is no
//! message it is not known which call it answers: while calls are under way it ends the connection, and
//! without any it is passed over, as a banner that a server prints when it starts.
//!
//! A long line is read on the blocking pool, where no session waits, and the next one after it.

use std::{borrow::Cow, fmt, sync::Arc};

use rmcp::{RoleClient, model::RequestId, service::RxJsonRpcMessage};
use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::tasks::TaskTools;

/// Bytes of one line, its end included: what the library takes.
pub(super) const MAX_LINE: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

/// Bytes of a line that is read where other sessions wait: well under a millisecond of work.
const IN_PLACE: usize = 32 << 10;

/// Bytes that are read at a time.
const PIECE: usize = 8 << 10;

/// Bytes of a line that is too long in which the id of its call is looked for.
const MAX_HEAD: usize = 64 << 10;

/// Error code of JSON-RPC for what cannot be parsed.
const PARSE_ERROR: i32 = -32700;

/// Whether a connection can still be used, as its parts find out. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Health {
    broken: Arc<Notify>,
    /// What the server wrote in place of a message. Each call that is under way listens.
    garbled: watch::Sender<Option<Arc<str>>>,
}

impl Health {
    pub(super) fn new() -> Self {
        Self { broken: Arc::default(), garbled: watch::Sender::new(None) }
    }

    /// Ends the connection, whatever waits for an answer.
    pub(super) fn break_off(&self) {
        self.broken.notify_one();
    }

    /// Waits until the connection is to be ended; returns what the server wrote in place of a
    /// message, if that is why.
    pub(super) async fn broken(&self) -> Option<Arc<str>> {
        self.broken.notified().await;
        self.garbled.borrow().clone()
    }

    /// Subscribes to what the server wrote in place of a message, once it does. To be held by a call from before it is
    /// sent to its end.
    pub(super) fn garbled(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.garbled.subscribe()
    }

    /// Takes a line that is not a message. Returns whether calls were under way, which have failed by it.
    fn fail_calls(&self, what: &str) -> bool {
        if self.garbled.receiver_count() == 0 {
            return false;
        }
        self.garbled.send_replace(Some(what.into()));
        self.break_off();
        true
    }
}

/// A message of a server.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// The messages of a server, each line read once.
pub(super) struct Lines<R> {
    inner: R,
    server: String,
    health: Health,
    tasks: TaskTools,
    piece: Box<[u8]>,
    /// The part of `piece` that was not looked at yet.
    unread: (usize, usize),
    /// The line under way, or the head of one that is too long.
    line: Vec<u8>,
    is_too_long: bool,
    /// A long line that is being read on the blocking pool.
    judging: Option<JoinHandle<Verdict>>,
    is_broken: bool,
}

/// What becomes of a line.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is a message.
    Message(Box<Message>),
    /// It is blank, or a request or a notification that cannot be read: no call waits for it.
    Nothing,
    /// An answer that cannot be read, to this call.
    Unreadable(RequestId, String),
    /// It is not a message; the words say what it is instead.
    Garbled(String),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(inner: R, server: String, health: Health, tasks: TaskTools) -> Self {
        Self {
            inner,
            server,
            health,
            tasks,
            piece: vec![0; PIECE].into(),
            unread: (0, 0),
            line: Vec::new(),
            is_too_long: false,
            judging: None,
            is_broken: false,
        }
    }

    /// Receives the next message; `None` once there is none any more. May be dropped and called again.
    ///
    /// Decides about one line at a time, and about the next only once this one was taken: what a
    /// server answered before it broke off has come to its call then.
    pub(super) async fn next(&mut self) -> Option<Message> {
        loop {
            let verdict = match &mut self.judging {
                Some(judging) => {
                    let judged = judging.await;
                    self.judging = None;
                    // A reader that crashed has read nothing.
                    Some(judged.unwrap_or_else(|_| Verdict::Garbled("what cannot be read".into())))
                }
                None if self.is_broken => {
                    // The one that waits for the connection ends it; nothing is read any more.
                    return std::future::pending().await;
                }
                None => {
                    if self.unread.0 == self.unread.1 {
                        let n = self.inner.read(&mut self.piece).await.ok()?;
                        self.unread = (0, n);
                        if n == 0 {
                            return None;
                        }
                    }
                    self.advance()
                }
            };
            if let Some(message) = verdict.and_then(|it| self.carry_out(it)) {
                return Some(message);
            }
        }
    }

    /// Takes what was read up to the end of a line, and decides about the line if that is there, or
    /// if it is too long. A long one is decided about elsewhere.
    fn advance(&mut self) -> Option<Verdict> {
        let (from, to) = self.unread;
        let piece = self.piece.get(from..to).unwrap_or_default();
        let end = memchr::memchr(b'\n', piece);
        let taken = end.map_or(piece.len(), |it| it + 1);
        self.unread.0 += taken;
        if !self.is_too_long {
            self.line.extend_from_slice(&piece[..taken]);
            if MAX_LINE < self.line.len() {
                // What is left of it goes with its end.
                self.is_too_long = end.is_none();
                let mut head = std::mem::take(&mut self.line);
                head.truncate(MAX_HEAD);
                return Some(unreadable_line(
                    &head,
                    format!("a line of more than {MAX_LINE} bytes"),
                ));
            }
        } else if end.is_some() {
            self.is_too_long = false;
            return None;
        }
        end.filter(|_| !self.is_too_long)?;
        if self.line.len() <= IN_PLACE {
            let verdict = judge(&self.line, &self.tasks);
            self.line.clear();
            return Some(verdict);
        }
        let (line, tasks) = (std::mem::take(&mut self.line), self.tasks.clone());
        self.judging = Some(tokio::task::spawn_blocking(move || judge(&line, &tasks)));
        None
    }

    /// The message that comes of a line, if one does.
    fn carry_out(&mut self, verdict: Verdict) -> Option<Message> {
        match verdict {
            Verdict::Message(message) => Some(*message),
            Verdict::Nothing => None,
            Verdict::Unreadable(id, what) => {
                let server = &self.server;
                let message =
                    format!("MCP server `{server}` gave an answer that cannot be read: {what}");
                error_answer(&id, &message)
            }
            Verdict::Garbled(what) => {
                self.is_broken = self.health.fail_calls(&what);
                None
            }
        }
    }
}

/// Makes the answer to a request that has none of the server.
pub(super) fn error_answer(id: &RequestId, message: &str) -> Option<Message> {
    let error = json!({ "code": PARSE_ERROR, "message": message });
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    // It is of the shape that the library itself writes.
    serde_json::from_value(answer).ok()
}

/// Decides about a text that a server sent; about a long one on the blocking pool.
pub(super) async fn judged(text: Vec<u8>, tasks: &TaskTools) -> Verdict {
    if text.len() <= IN_PLACE {
        return judge(&text, tasks);
    }
    let tasks = tasks.clone();
    let judged = tokio::task::spawn_blocking(move || judge(&text, &tasks)).await;
    // A reader that crashed has read nothing.
    judged.unwrap_or_else(|_| Verdict::Garbled("what cannot be read".into()))
}

/// What becomes of a whole line. `tasks` looks at messages.
fn judge(line: &[u8], tasks: &TaskTools) -> Verdict {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if text.is_empty() {
        return Verdict::Nothing;
    }
    // Programs print to their output what they meant for a log. No message begins like that.
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return Verdict::Nothing;
    }
    match serde_json::from_slice::<Message>(text) {
        Ok(message) => {
            tasks.read(text);
            Verdict::Message(Box::new(message))
        }
        Err(_) if std::str::from_utf8(text).is_err() => {
            unreadable_line(text, "bytes that are not UTF-8".into())
        }
        Err(error) if error.is_data() => {
            unreadable_line(text, "JSON that is not a message of the protocol".into())
        }
        Err(error) => unreadable_line(text, format!("what is not JSON ({error})")),
    }
}

/// Returns which request a line answers that cannot be read as a whole, as far as its beginning says. A request or a
/// notification answers none.
fn unreadable_line(line: &[u8], what: String) -> Verdict {
    let mut head = Head::default();
    // Where the line cannot be read any further, what was read before counts.
    let _end = serde_json::Deserializer::from_slice(line).deserialize_map(&mut head);
    match head {
        Head { has_method: true, .. } => Verdict::Nothing,
        Head { id: Some(id), .. } => Verdict::Unreadable(id, what),
        Head { id: None, .. } => Verdict::Garbled(what),
    }
}

/// The members of a message that say what it is.
#[derive(Default)]
struct Head {
    id: Option<RequestId>,
    has_method: bool,
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            match &*name {
                "id" => self.id = members.next_value()?,
                name => {
                    self.has_method |= name == "method";
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
