//! A model server on a real socket whose every answer is in the hands of the test.
//!
//! Written on plain TCP, because what it is for is what HTTP libraries prevent: bodies that end too
//! early, and bodies that do not end.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::{
    Endpoint,
    data::{ResponseBody, TransportError, WireRequest, WireResponse},
    internal::Http,
    model::{GovernorLimits, Transport},
    tool::BoxFuture,
};
use ennead_runtime::governor::limits::{BreakerLimits, RetryLimits};
use futures::{TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Tells [`Patience`] after how many bytes nothing comes any more.
const STALLS: &str = "x-stalls-behind";

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Its body.
    pub(crate) body: String,
    /// Its number on this server, from 1.
    pub(crate) number: usize,
}

impl Ask {
    /// Whether a stream is asked for.
    pub(crate) fn streamed(&self) -> bool {
        self.body.contains(r#""stream":true"#)
    }

    /// The model that is asked for.
    pub(crate) fn model(&self) -> &str {
        let name = self.body.split_once(r#""model":""#).map_or("", |(_, rest)| rest);
        name.split('"').next().unwrap_or_default()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
    end: End,
}

#[derive(Clone, Debug)]
enum Body {
    /// A message, encoded as it is asked for.
    Message {
        blocks: Vec<Value>,
        stop: &'static str,
    },
    Text(String),
    Bytes {
        bytes: Arc<[u8]>,
        content_type: &'static str,
    },
}

/// What happens in the middle of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Proper,
    /// Even before the head.
    HungUp,
    Cut,
    Stall,
}

impl Reply {
    /// A message that stops for this reason.
    pub(crate) fn message(blocks: Vec<Value>, stop: &'static str) -> Self {
        let body = Body::Message { blocks, stop };
        Self { status: 200, headers: Vec::new(), body, end: End::Proper }
    }

    /// A text, and nothing more to do.
    pub(crate) fn text(text: &str) -> Self {
        Self::message(vec![json!({"type": "text", "text": text})], "end_turn")
    }

    /// An error of this type.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::body(status, &error.to_string())
    }

    /// Whatever is in it.
    pub(crate) fn body(status: u16, text: &str) -> Self {
        Self { status, headers: Vec::new(), body: Body::Text(text.into()), end: End::Proper }
    }

    /// A stream of these bytes, however they are made.
    pub(crate) fn bytes(bytes: Vec<u8>, content_type: &'static str) -> Self {
        let body = Body::Bytes { bytes: bytes.into(), content_type };
        Self { status: 200, headers: Vec::new(), body, end: End::Proper }
    }

    /// With this header.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The connection ends in the middle of the body.
    pub(crate) fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// The connection ends without a byte of an answer.
    pub(crate) fn hung_up() -> Self {
        Self { end: End::HungUp, ..Self::body(200, "") }
    }

    /// Nothing comes after the middle of the body, and the connection stays.
    pub(crate) fn stall(self) -> Self {
        Self { end: End::Stall, ..self }
    }

    fn encode(&self, ask: &Ask) -> (Cow<'_, [u8]>, &'static str) {
        match &self.body {
            Body::Text(text) => (text.as_bytes().into(), "application/json"),
            Body::Bytes { bytes, content_type } => (Cow::Borrowed(bytes), content_type),
            Body::Message { blocks, stop } => {
                let message = json!({
                    "id": format!("msg_{}", ask.number), "type": "message", "role": "assistant",
                    "model": ask.model(), "content": [], "stop_reason": null,
                    "usage": {"input_tokens": 100, "output_tokens": 1},
                });
                match ask.streamed() {
                    true => {
                        let events = stream(&message, blocks, stop);
                        (events.into_bytes().into(), "text/event-stream")
                    }
                    false => (whole(message, blocks, stop).into_bytes().into(), "application/json"),
                }
            }
        }
    }
}

fn whole(mut message: Value, blocks: &[Value], stop: &str) -> String {
    message["content"] = blocks.into();
    message["stop_reason"] = stop.into();
    for block in message["content"].as_array_mut().into_iter().flatten() {
        // A server that gives no stream gives no half of an input either.
        if block["input"].is_string() {
            block["input"] = json!({});
        }
    }
    message.to_string()
}

/// The answer as events. An input that is a string comes as it is, which may be half of one.
fn stream(message: &Value, blocks: &[Value], stop: &str) -> String {
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        let deltas = match block["type"].as_str() {
            Some("text") => {
                start["text"] = "".into();
                vec![json!({"type": "text_delta", "text": block["text"]})]
            }
            Some("thinking") => {
                (start["thinking"], start["signature"]) = ("".into(), "".into());
                vec![
                    json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                    json!({"type": "signature_delta", "signature": block["signature"]}),
                ]
            }
            _ => {
                start["input"] = json!({});
                let input = block["input"].as_str().map(str::to_owned);
                let input = input.unwrap_or_else(|| block["input"].to_string());
                vec![json!({"type": "input_json_delta", "partial_json": input})]
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let delta = |it| json!({"type": "content_block_delta", "index": index, "delta": it});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 10},
    }));
    events.push(json!({"type": "message_stop"}));
    let line = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

type Script = dyn Fn(&Ask) -> Reply + Send + Sync;

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ModelServer {
    address: String,
    accepting: JoinHandle<()>,
}

impl ModelServer {
    /// Serves what this function says.
    pub(crate) async fn start(script: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script: Arc<Script> = Arc::new(script);
        let count = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&count)));
            }
        });
        Self { address, accepting }
    }

    /// Its address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where it is, as a provider of this name.
    pub(crate) fn endpoint(&self, provider: &str) -> Endpoint {
        Endpoint::messages(&self.address, None).named(provider)
    }
}

/// Limits under which the governor lets every call through: for tests of what a turn makes of
/// failures, hundreds of which would open its breaker. It has tests of its own.
pub(crate) fn letting_through() -> GovernorLimits {
    let mut limits = GovernorLimits::default();
    limits.breaker = BreakerLimits { failure_percent: 101, ..BreakerLimits::default() };
    limits.retries = RetryLimits { percent: 100, per_second: u32::MAX, most: u32::MAX };
    limits
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves one connection until somebody closes it.
async fn serve(stream: TcpStream, script: Arc<Script>, count: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    while let Some(body) = read_request(&mut stream).await {
        let ask = Ask { body, number: count.fetch_add(1, Ordering::SeqCst) + 1 };
        let reply = script(&ask);
        if reply.end == End::HungUp {
            return;
        }
        let (body, content_type) = reply.encode(&ask);
        let half = body.len() / 2;
        let mut head = format!(
            "HTTP/1.1 {} said\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n",
            reply.status,
            body.len()
        );
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if reply.end == End::Stall {
            head.push_str(&format!("{STALLS}: {half}\r\n"));
        }
        head.push_str("\r\n");
        let sent = match reply.end {
            End::Proper | End::HungUp => &body[..],
            End::Cut | End::Stall => &body[..half],
        };
        let sent = [head.as_bytes(), sent].concat();
        if stream.write_all(&sent).await.is_err() {
            return;
        }
        match reply.end {
            End::Proper => {}
            End::HungUp | End::Cut => return,
            End::Stall => {
                // Until the client has had enough.
                let _closed = stream.read_u8().await;
                return;
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse::<usize>().ok();
        }
    }
    let mut body = vec![0; length?];
    stream.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

/// HTTP that finds a stream stalled as soon as it is: where its server says that nothing comes any
/// more, nobody waits for that.
#[derive(Debug)]
pub(crate) struct Patience(Http);

impl Patience {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Http::new().unwrap()))
    }
}

impl Transport for Patience {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let sent = self.0.send(request);
        Box::pin(async move {
            let mut response = sent.await?;
            let stalls = response.headers.get(STALLS).and_then(|it| it.to_str().ok());
            if let Some(left) = stalls.and_then(|it| it.parse().ok()) {
                response.body = stalled(response.body, left);
            }
            Ok(response)
        })
    }
}

/// The body until this many bytes of it have come, and then silence for too long.
fn stalled(body: ResponseBody, left: usize) -> ResponseBody {
    Box::pin(stream::try_unfold((body, left), async |(mut body, left)| {
        if left == 0 {
            return Err(TransportError::Idle { ms: 300_000 });
        }
        let chunk = body.try_next().await?;
        Ok(chunk.map(|it| {
            let left = left.saturating_sub(it.len());
            (it, (body, left))
        }))
    }))
}
