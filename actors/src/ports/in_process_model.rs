//! Models that are code of the embedder.
//!
//! A model is given messages and gives events, both typed. What it gives is written down in the stream of
//! the Messages API and read as a server's answer is, so that limits, usage, stop reasons, retries,
//! fallbacks and the record are those of every other model.

mod asked;
mod written;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use ennead_runtime::{
    message::Messages,
    ports::{BoxFuture, ResponseBody, TransportError, WireRequest, WireResponse},
    tokens::Usage,
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;

use self::{
    asked::{RequestBody, asked},
    written::Written,
};

/// A model that answers in this process, for an [`Endpoint::in_process`](crate::Endpoint::in_process).
///
/// A function from a [`ModelRequest`] to a stream of events is one:
///
/// ```
/// use std::sync::Arc;
/// use ennead::{Endpoint, Ennead, Options, SessionOptions, model::{ModelError, ModelEvent, ModelRequest}};
///
/// # let workspace = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let echo = |request: ModelRequest| {
///     let asked = request.messages.last().map(|it| it.text()).unwrap_or_default();
///     // The prompt follows what the harness says about the environment.
///     let prompt = asked.lines().last().unwrap_or_default().to_uppercase();
///     futures::stream::iter([Ok::<_, ModelError>(ModelEvent::Text(prompt))])
/// };
/// let ennead = Ennead::start(Options::default()).await?;
/// let endpoint = Endpoint::in_process("echo", Arc::new(echo));
/// let session = ennead.open(SessionOptions::new(workspace.path(), endpoint).isolated()).await?;
/// assert_eq!(session.prompt("hello").await?.into_answer()?.text, "HELLO");
/// ennead.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is polled on the thread of the session and must not block it. Dropping the stream gives the
/// attempt up: on an interrupt, and when nothing comes for as long as the settings allow.
pub trait InProcessModel: Send + Sync {
    /// Answers one request. An error as the first item refuses the request; a later one breaks the
    /// answer off.
    fn answer(&self, request: ModelRequest) -> ModelEvents;
}

/// What a model says, in order.
pub type ModelEvents = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

impl<F, S> InProcessModel for F
where
    F: Fn(ModelRequest) -> S + Send + Sync,
    S: Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static,
{
    fn answer(&self, request: ModelRequest) -> ModelEvents {
        Box::pin(self(request))
    }
}

/// What a model is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The name of the model.
    pub model: String,
    /// The system prompt, its parts joined by blank lines.
    pub system: String,
    /// The conversation, oldest first. Its ids are those of this request alone.
    pub messages: Messages,
    /// The tools that may be called.
    pub tools: Vec<OfferedTool>,
    /// Tokens that the answer may have.
    pub max_tokens: u64,
}

/// A tool that a model may call.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct OfferedTool {
    /// The name to call it by.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: serde_json::Value,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// Text. Pieces that follow each other are one text.
    Text(String),
    /// Reasoning. Pieces that follow each other are one.
    Reasoning(String),
    /// A call of a tool, with its input.
    ToolCall {
        /// The name of the tool.
        tool: String,
        /// Its input, a JSON object.
        input: serde_json::Value,
    },
    /// What the answer used, once it is known; the last one counts. Without it tokens are estimated.
    Usage(Usage),
    /// The answer has reached the limit of tokens and ends here.
    Cut,
}

/// Why a model does not answer, or not to the end. It is handled as the same answer of a server is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    status: u16,
    kind: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

impl ModelError {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), retry_after: None }
    }

    /// Makes the error of a model that has too much to do at the moment. The request is tried again; then the next
    /// model or endpoint is asked.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(529, "overloaded_error", message)
    }

    /// Makes the error of a model that was asked too often. The request is tried again after this time.
    pub fn rate_limited(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::new(429, "rate_limit_error", message) }
    }

    /// Makes the error of a failure inside the model. The request is tried again.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(500, "api_error", message)
    }

    /// Makes the error of a request that cannot be answered as it is. It is never tried again.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    /// Makes the error of a conversation that is longer than the model can read. It is compacted and sent again.
    pub fn prompt_too_long() -> Self {
        Self::new(400, "invalid_request_error", "prompt is too long")
    }

    fn body(&self) -> String {
        let error = serde_json::json!({ "type": self.kind, "message": self.message });
        serde_json::json!({ "type": "error", "error": error }).to_string()
    }
}

/// A model of an endpoint. Two are the same if they are one.
#[derive(Clone)]
pub(crate) struct ModelHandle(pub(crate) Arc<dyn InProcessModel>);

impl PartialEq for ModelHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ModelHandle {}

impl fmt::Debug for ModelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessModel")
    }
}

/// Asks the model, in place of a transport.
pub(crate) fn send(
    model: &ModelHandle,
    request: &WireRequest,
) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
    let model = Arc::clone(&model.0);
    let body = request.body.clone();
    Box::pin(async move {
        let unsendable = |it: &dyn fmt::Display| TransportError::Unsendable { why: it.to_string() };
        let body = body.to_bytes();
        let read: RequestBody<'_> = serde_json::from_slice(&body).map_err(|it| unsendable(&it))?;
        let (is_streamed, name) = (read.stream, read.model.clone());
        let asked = asked(read).map_err(|it| unsendable(&it))?;
        let mut events = model.answer(asked);
        let written = Written::new(name, &body);
        let first = match events.next().await {
            Some(Err(error)) => return Ok(refusal(&error)),
            Some(Ok(event)) => Some(Ok(event)),
            None => None,
        };
        let events = stream::iter(first).chain(events);
        Ok(if is_streamed {
            response(200, "text/event-stream", streamed(written, events))
        } else {
            whole(written, events).await
        })
    })
}

fn streamed(
    written: Written,
    events: impl Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static,
) -> ResponseBody {
    let state = (Some(written), Box::pin(events));
    let chunks = stream::unfold(state, |(written, mut events)| async move {
        let mut written = written?;
        let (text, next) = match events.next().await {
            Some(Ok(event)) => (written.event(&event), Some(written)),
            Some(Err(error)) => (written.error(&error.body()), None),
            None => (written.end(), None),
        };
        Some((Ok(Bytes::from(text)), (next, events)))
    });
    Box::pin(chunks)
}

async fn whole(
    mut written: Written,
    events: impl Stream<Item = Result<ModelEvent, ModelError>>,
) -> WireResponse {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => drop(written.event(&event)),
            Err(error) => return refusal(&error),
        }
    }
    let body = Bytes::from(written.whole());
    response(200, "application/json", Box::pin(stream::iter([Ok(body)])))
}

fn refusal(error: &ModelError) -> WireResponse {
    let body = Bytes::from(error.body());
    let body = Box::pin(stream::iter([Ok(body)]));
    let mut response = response(error.status, "application/json", body);
    if let Some(after) = error.retry_after {
        let seconds = after.as_secs().saturating_add(u64::from(0 < after.subsec_nanos()));
        response.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn response(status: u16, kind: &'static str, body: ResponseBody) -> WireResponse {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    WireResponse::new(status, headers, body)
}

#[cfg(test)]
mod tests;
