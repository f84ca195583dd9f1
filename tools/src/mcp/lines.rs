//! What a server writes, line by line, on its way to the library.
//!
//! The library passes over every line that it cannot read, and the one that waits for the answer in
//! it would wait until the limit on silence. So each line is read here first. An answer that cannot
//! be read and names its call is replaced by an error for that call. Of any other line that is no
//! message nobody knows whom it answers: while calls are under way it ends the connection, and
//! without any it is passed over, as a banner that a server prints when it starts.

use std::{
    borrow::Cow,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rmcp::{RoleClient, model::RequestId, service::RxJsonRpcMessage};
use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{Notify, watch},
};

use super::tasks::TaskTools;

/// Bytes of one line, its end included: what the library takes.
pub(super) const MAX_LINE: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

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

    /// Ends the connection.
    pub(super) fn break_off(&self) {
        self.broken.notify_one();
    }

    /// Waits until the connection is to be ended; returns what the server wrote in place of a
    /// message, if that is why.
    pub(super) async fn broken(&self) -> Option<Arc<str>> {
        self.broken.notified().await;
        self.garbled.borrow().clone()
    }

    /// What the server wrote in place of a message, once it does. To be held by a call from before it
    /// is sent to its end.
    pub(super) fn garbled(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.garbled.subscribe()
    }

    /// Takes a line that is no message. Returns whether calls were under way, which have failed by it.
    fn fail_calls(&self, what: &str) -> bool {
        if self.garbled.receiver_count() == 0 {
            return false;
        }
        self.garbled.send_replace(Some(what.into()));
        self.break_off();
        true
    }
}

/// Passes on the lines of a server that the library can read.
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
    /// A line that is passed on, and how much of it was.
    passed: (Vec<u8>, usize),
    is_broken: bool,
}

/// What becomes of a line.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// It is passed on.
    Pass,
    /// An answer that cannot be read, to this call.
    Unreadable(RequestId, String),
    /// It is no message; the words say what it is instead.
    Garbled(String),
}

impl<R> Lines<R> {
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
            passed: (Vec::new(), 0),
            is_broken: false,
        }
    }

    /// Takes what was read up to the end of a line, and decides about the line if that is there, or
    /// if it is too long.
    fn advance(&mut self) {
        let (from, to) = self.unread;
        let piece = self.piece.get(from..to).unwrap_or_default();
        let end = memchr::memchr(b'\n', piece);
        let taken = end.map_or(piece.len(), |it| it + 1);
        self.unread.0 += taken;
        if !self.is_too_long {
            self.line.extend_from_slice(&piece[..taken]);
            if MAX_LINE < self.line.len() {
                self.is_too_long = true;
                self.line.truncate(MAX_HEAD);
                self.line.shrink_to_fit();
                let what = format!("a line of more than {MAX_LINE} bytes");
                let verdict = told_apart(&self.line, what);
                self.line = Vec::new();
                self.carry_out(verdict);
            }
        }
        if end.is_some() {
            // What is left of a line that is too long goes with its end.
            if !std::mem::take(&mut self.is_too_long) {
                let verdict = judge(&self.line);
                self.carry_out(verdict);
            }
            self.line.clear();
        }
    }

    fn carry_out(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => {
                self.tasks.read(&self.line);
                self.passed = (std::mem::take(&mut self.line), 0);
            }
            Verdict::Unreadable(id, what) => {
                let server = &self.server;
                let message =
                    format!("MCP server `{server}` gave an answer that cannot be read: {what}");
                let error = json!({ "code": PARSE_ERROR, "message": message });
                let line = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                self.passed = (format!("{line}\n").into_bytes(), 0);
            }
            Verdict::Garbled(what) => self.is_broken = self.health.fail_calls(&what),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    /// Decides about one line at a time, and about the next only once this one was taken: what a
    /// server answered before it broke off has come to its call then.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let (line, given) = &mut this.passed;
            if let Some(rest) = line.get(*given..).filter(|it| !it.is_empty()) {
                let n = rest.len().min(buf.remaining());
                buf.put_slice(&rest[..n]);
                *given += n;
                return Poll::Ready(Ok(()));
            }
            this.passed = (Vec::new(), 0);
            if this.is_broken {
                // The one that waits for the connection ends it; nothing is read any more.
                return Poll::Pending;
            }
            if this.unread.0 == this.unread.1 {
                let mut piece = ReadBuf::new(&mut this.piece);
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
                let n = piece.filled().len();
                this.unread = (0, n);
                if n == 0 {
                    return Poll::Ready(Ok(()));
                }
            }
            this.advance();
        }
    }
}

/// What becomes of a whole line.
fn judge(line: &[u8]) -> Verdict {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if text.is_empty() {
        return Verdict::Pass;
    }
    match serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(text) {
        Ok(_) => Verdict::Pass,
        Err(_) if std::str::from_utf8(text).is_err() => {
            told_apart(text, "bytes that are no UTF-8".into())
        }
        Err(error) if error.is_data() => {
            told_apart(text, "JSON that is no message of the protocol".into())
        }
        Err(error) => told_apart(text, format!("what is no JSON ({error})")),
    }
}

/// Of a line that cannot be read: whom it answers, as far as its beginning says. A request or a
/// notification answers nobody, and is for the library.
fn told_apart(line: &[u8], what: String) -> Verdict {
    let mut head = Head::default();
    // Where the line cannot be read any further, what was read before counts.
    let _end = serde_json::Deserializer::from_slice(line).deserialize_map(&mut head);
    match head {
        Head { has_method: true, .. } => Verdict::Pass,
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
