//! What the scripted model replies: a status, headers, a body, and what becomes of the body midway.

use std::{borrow::Cow, future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use ennead::data::{ResponseBody, TransportError, WireResponse};
use futures::{FutureExt, StreamExt, stream};
use http::{HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Asked, message_stream};
use crate::support::barrier::Barrier;

/// A reply as data. The same one is given in process and over a socket.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Milliseconds before the head of the answer.
    pub(crate) after_ms: u64,
    pub(in crate::support) headers: Vec<(&'static str, String)>,
    pub(in crate::support) body: Body,
    pub(in crate::support) end: End,
    /// Where it waits before the head of the answer.
    hold: Option<Barrier>,
}

#[derive(Clone, Debug)]
pub(in crate::support) enum Body {
    /// A message, encoded as it is asked for.
    Message(Message),
    Text(String),
    Bytes {
        bytes: Arc<[u8]>,
        content_type: &'static str,
    },
    Paced(Paced),
}

/// An answer of the model.
#[derive(Clone, Debug)]
pub(in crate::support) struct Message {
    pub(super) blocks: Vec<Value>,
    /// Why it stops; `None`: as its blocks have it.
    pub(super) stop: Option<&'static str>,
    /// Input tokens that are reported; `None`: as many as the request is likely to have.
    pub(super) tokens: Option<u64>,
    /// Characters of a delta at most; `None`: a block is one delta.
    pub(super) piece: Option<usize>,
}

/// Pieces, each after this many milliseconds; then one over and over. Such a body never ends.
#[derive(Clone, Debug)]
pub(in crate::support) struct Paced {
    pieces: Vec<(u64, &'static str)>,
    repeats: Option<(u64, &'static str)>,
}

impl Paced {
    /// The pieces as their time comes.
    pub(in crate::support) fn stream(self) -> impl futures::Stream<Item = &'static str> + Send {
        let repeats = stream::iter(self.repeats).cycle();
        stream::iter(self.pieces).chain(repeats).then(|(ms, piece)| async move {
            sleep(Duration::from_millis(ms)).await;
            piece
        })
    }
}

/// What happens in the middle of an answer.
#[derive(Clone, Debug)]
pub(in crate::support) enum End {
    Proper,
    /// Nothing comes, not even the head, and the connection stays.
    Silent,
    /// The connection ends even before the head.
    HungUp,
    Cut,
    /// Nothing comes after what was sent, and the connection stays. The barrier learns of it.
    Stall(Barrier),
}

/// A text, and nothing more to do.
pub(crate) fn text(text: &str) -> Reply {
    Reply::of(vec![json!({"type": "text", "text": text})], None)
}

/// Calls in one answer: id, tool, input.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Reply {
    let block = |(id, name, input): &(&str, &str, Value)| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    Reply::of(calls.iter().map(block).collect(), None)
}

/// Returns an answer with one call of a tool.
pub(crate) fn call(id: &str, tool: &str, input: Value) -> Reply {
    calls(&[(id, tool, input)])
}

/// An answer of this HTTP status without a body.
pub(crate) fn refusal(status: u16) -> Reply {
    Reply::body(status, "")
}

/// Returns a reply of which no byte ever comes, on a connection that stays open.
pub(crate) fn silence() -> Reply {
    Reply { end: End::Silent, ..refusal(0) }
}

impl Reply {
    fn new(status: u16, body: Body) -> Self {
        Self { status, after_ms: 0, headers: Vec::new(), body, end: End::Proper, hold: None }
    }

    fn of(blocks: Vec<Value>, stop: Option<&'static str>) -> Self {
        let message = Message { blocks, stop, tokens: Some(100), piece: None };
        Self::new(200, Body::Message(message))
    }

    /// A message that stops for this reason. An input that is a string comes as it is, which may be
    /// half of one.
    pub(crate) fn message(blocks: Vec<Value>, stop: &'static str) -> Self {
        Self::of(blocks, Some(stop))
    }

    /// A text, and nothing more to do.
    pub(crate) fn text(words: &str) -> Self {
        text(words)
    }

    /// An error of this type.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::body(status, &error.to_string())
    }

    /// Whatever is in it.
    pub(crate) fn body(status: u16, text: &str) -> Self {
        Self::new(status, Body::Text(text.into()))
    }

    /// A stream of these bytes, however they are made.
    pub(crate) fn bytes(bytes: Vec<u8>, content_type: &'static str) -> Self {
        Self::new(200, Body::Bytes { bytes: bytes.into(), content_type })
    }

    /// Pieces of a stream, each after this many milliseconds, and no end.
    pub(crate) fn paced(status: u16, pieces: Vec<(u64, &'static str)>) -> Self {
        let body = Body::Paced(Paced { pieces, repeats: None });
        Self { end: End::Stall(Barrier::closed()), ..Self::new(status, body) }
    }

    /// After the pieces this one every this many milliseconds, without end.
    pub(crate) fn forever(mut self, ms: u64, piece: &'static str) -> Self {
        if let Body::Paced(paced) = &mut self.body {
            paced.repeats = Some((ms, piece));
        }
        self
    }

    /// Adds a header to the head of the answer.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// After this many milliseconds.
    pub(crate) fn later(self, after_ms: u64) -> Self {
        Self { after_ms, ..self }
    }

    /// Waits here before anything of it comes.
    pub(crate) fn held_at(self, barrier: &Barrier) -> Self {
        Self { hold: Some(barrier.clone()), ..self }
    }

    /// The connection ends in the middle of the body.
    pub(crate) fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// The connection ends without a byte of an answer.
    pub(crate) fn hung_up() -> Self {
        Self { end: End::HungUp, ..refusal(200) }
    }

    /// Nothing comes after the middle of the body, and the connection stays.
    pub(crate) fn stall(self) -> Self {
        self.stall_at(&Barrier::closed())
    }

    /// The same, with a barrier where it arrives once all has been sent.
    pub(crate) fn stall_at(self, barrier: &Barrier) -> Self {
        Self { end: End::Stall(barrier.clone()), ..self }
    }

    fn change(mut self, change: impl FnOnce(&mut Message)) -> Self {
        if let Body::Message(message) = &mut self.body {
            change(message);
        }
        self
    }

    /// Says it in deltas of this many characters.
    pub(crate) fn in_pieces(self, n_chars: usize) -> Self {
        self.change(|it| it.piece = Some(n_chars))
    }

    /// The same with a text in front.
    pub(crate) fn after(self, text: &str) -> Self {
        self.change(|it| it.blocks.insert(0, json!({"type": "text", "text": text})))
    }

    /// Reports input tokens by the size of the request.
    pub(crate) fn measured(self) -> Self {
        self.change(|it| it.tokens = None)
    }

    /// Stops for another reason.
    pub(crate) fn stops(self, reason: &'static str) -> Self {
        self.change(|it| it.stop = Some(reason))
    }

    /// Waits until its head may come.
    pub(in crate::support) async fn wait(&self) {
        if let Some(hold) = &self.hold {
            hold.pass().await;
        }
        if self.after_ms != 0 {
            sleep(Duration::from_millis(self.after_ms)).await;
        }
        if matches!(self.end, End::Silent) {
            pending::<()>().await;
        }
    }

    /// The body, whole, and its type. A paced one has none.
    pub(in crate::support) fn encode(&self, asked: &Asked) -> (Cow<'_, [u8]>, &'static str) {
        match &self.body {
            Body::Text(text) => (text.as_bytes().into(), "application/json"),
            Body::Bytes { bytes, content_type } => (Cow::Borrowed(bytes), content_type),
            Body::Message(message) => {
                if asked.streamed() {
                    (message_stream::stream(message, asked).into(), "text/event-stream")
                } else {
                    (message_stream::whole(message, asked).into(), "application/json")
                }
            }
            Body::Paced(_) => (Cow::Borrowed(b""), "text/event-stream"),
        }
    }

    /// Gives the reply in process, as the transport of a session receives it.
    pub(super) async fn respond(self, asked: &Asked) -> Result<WireResponse, TransportError> {
        self.wait().await;
        let broken = || TransportError::Broken { why: "it is cut".into() };
        if matches!(self.end, End::HungUp) {
            return Err(broken());
        }
        let (bytes, content_type) = self.encode(asked);
        let half = bytes.len() / 2;
        let some = |bytes: &[u8]| stream::iter([Ok(Bytes::copy_from_slice(bytes))]);
        let body: ResponseBody = match (&self.body, &self.end) {
            (Body::Paced(paced), _) => {
                Box::pin(paced.clone().stream().map(|it| Ok(it.into())).chain(stream::pending()))
            }
            (_, End::Cut) => Box::pin(some(&bytes[..half]).chain(stream::iter([Err(broken())]))),
            (_, End::Stall(barrier)) => {
                let barrier = barrier.clone();
                let stalls = async move { barrier.pass().await }.map(|()| stream::pending());
                Box::pin(some(&bytes[..half]).chain(stalls.flatten_stream()))
            }
            _ => Box::pin(some(&bytes)),
        };
        let header = |(name, value): &(&'static str, String)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let content_type = (CONTENT_TYPE, HeaderValue::from_static(content_type));
        let headers = self.headers.iter().map(header).chain([content_type]).collect();
        Ok(WireResponse::new(self.status, headers, body))
    }
}
