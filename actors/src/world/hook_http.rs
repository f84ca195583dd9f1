//! Asks the server of one hook handler: the input is posted, and what comes back is read as a command's output is.
//!
//! Servers of hooks are not model servers: they are reached by HTTP of our own, whatever transport the embedder gave
//! for models.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::{
    hook::{HandlerEnd, HandlerOutput, HookHandler, HttpHook},
    ports::{ResponseBody, Transport, TransportError, WireRequest},
    sandbox::SandboxNetwork,
    saturating::Saturating as _,
};
use futures::StreamExt;
use serde_json::{Map, Value};

use super::{
    clock::{TimeSource, within},
    environment::Environment,
    hook_process::{HandlerContext, MAX_OUTPUT, PROJECT},
    http_limits::CONNECT,
    own_transport,
};

/// Bytes of an answer that is read where other sessions wait: well under a millisecond.
const SHORT_ANSWER: usize = 32 * 1024;

/// Reaches the servers of hooks. Clones share it.
#[derive(Clone)]
pub(crate) struct HookServers {
    /// Made when first needed, where no model is asked by it; or why there is none.
    transport: Arc<OnceLock<Result<Arc<dyn Transport>, String>>>,
    environment: Arc<Environment>,
}

impl HookServers {
    /// Makes what reaches servers, by HTTP of our own, which may be there already. Values of headers are taken from this
    /// environment.
    pub(crate) fn new(own: Option<Arc<dyn Transport>>, environment: &Environment) -> Self {
        let transport = own.map_or_else(OnceLock::new, |own| OnceLock::from(Ok(own)));
        Self { transport: Arc::new(transport), environment: Arc::new(environment.clone()) }
    }

    /// Posts the input to the server of a handler, for as long as that may take. Redirections are not followed.
    pub(crate) async fn ask(
        &self,
        handler: &HookHandler,
        http: &HttpHook,
        context: &HandlerContext,
        input: Arc<str>,
        time: TimeSource<'_>,
    ) -> HandlerOutput {
        output_of(handler, &http.shown(), self.answer(handler, http, context, input), time).await
    }

    /// Returns the answer of the server: nothing, or the text of a JSON object.
    async fn answer(
        &self,
        handler: &HookHandler,
        http: &HttpHook,
        context: &HandlerContext,
        input: Arc<str>,
    ) -> Result<String, String> {
        let network = context.sandbox_of(handler).map(|it| it.policy.network);
        if network.is_some_and(|it| it != SandboxNetwork::Open) {
            return Err("the sandbox lets hooks of a repository reach no server".into());
        }
        let own = || own_transport(&self.environment).map_err(|it| it.to_string());
        let transport = self.transport.get_or_init(own).as_ref().map_err(String::clone)?;
        let url = http.url.replace(PROJECT, &context.project);
        let body = Bytes::from_owner(SharedInput(input));
        let mut request = WireRequest::new(url, self.headers(http, context), body, CONNECT);
        request.certificates = context.certificates.clone();
        let response = transport.send(request).await.map_err(in_words)?;
        if !(200..300).contains(&response.status) {
            return Err(format!("status {}", response.status));
        }
        let text = text(response.body).await.map_err(in_words)?;
        if text.trim().is_empty() {
            return Ok(String::new());
        }
        let text = if text.len() <= SHORT_ANSWER {
            object(text)
        } else {
            let read = tokio::task::spawn_blocking(|| object(text));
            read.await.unwrap_or_default()
        };
        text.ok_or_else(|| "the answer is not a JSON object".into())
    }

    /// The headers of a handler, with the variables that it may send. What its session keeps from children it does not
    /// send either.
    fn headers(&self, http: &HttpHook, context: &HandlerContext) -> Vec<(String, String)> {
        let value_of = |name: &str| {
            let of_session = context.env.iter().rev().find(|it| it.0 == name);
            match of_session {
                Some((_, value)) => Some(value.clone()),
                None => self.environment.variable(name),
            }
        };
        let own = http.headers_with(&value_of).into_iter();
        let own: Vec<_> = own.map(|it| (it.0.to_ascii_lowercase(), it.1)).collect();
        let is_named = own.iter().any(|it| it.0 == "content-type");
        let json = (!is_named).then(|| ("content-type".to_owned(), "application/json".to_owned()));
        json.into_iter().chain(own).collect()
    }
}

/// Waits for an answer as long as the handler may take; it is read as the output of a command that ended with 0. `shown`
/// names who was asked where there is none.
pub(super) async fn output_of(
    handler: &HookHandler,
    shown: &str,
    answer: impl Future<Output = Result<String, String>>,
    TimeSource { clock, timer }: TimeSource<'_>,
) -> HandlerOutput {
    let started = clock.elapsed();
    let limit = Duration::from_millis(handler.timeout_ms);
    let answered = within(timer, limit, answer).await;
    let took = clock.elapsed().saturating_sub(started);
    let (ended, stdout, stderr) = match answered {
        Some(Ok(text)) => (HandlerEnd::Exited(0), text, String::new()),
        Some(Err(why)) => (HandlerEnd::Unusable, String::new(), format!("{shown}: {why}")),
        None => {
            let why = format!("no answer within {} ms", handler.timeout_ms);
            (HandlerEnd::TimedOut, String::new(), why)
        }
    };
    HandlerOutput::new(ended, stdout, stderr, u64::saturating(took.as_millis()))
}

/// Why there is no answer, without the address: that of a hook is often a secret.
fn in_words(error: TransportError) -> String {
    match error {
        TransportError::Connect { why, .. } => format!("cannot connect: {why}"),
        TransportError::Tls { why, .. } => format!("secure connection refused: {why}"),
        other => other.to_string(),
    }
}

/// The input that all handlers of a firing share.
struct SharedInput(Arc<str>);

impl AsRef<[u8]> for SharedInput {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The text, if it is that of a JSON object.
fn object(text: String) -> Option<String> {
    serde_json::from_str::<Map<String, Value>>(&text).is_ok().then_some(text)
}

impl fmt::Debug for HookServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookServers").finish_non_exhaustive()
    }
}

/// The text of an answer, whose rest is not waited for when it is longer than a command's output may be.
async fn text(mut body: ResponseBody) -> Result<String, TransportError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk?);
        if MAX_OUTPUT < bytes.len() as u64 {
            bytes.truncate(usize::saturating(MAX_OUTPUT));
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
