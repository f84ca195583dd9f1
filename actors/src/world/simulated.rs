//! The simulated model in process: a [`Transport`] that no packet leaves.
//!
//! It is the provider that runs when no key is set, with or without the HTTP server
//! of the command. Both share the [`Simulator`], which keeps the two things that the pure
//! engine does not: the counts of attempts, and a log of what was asked.

use std::{
    collections::VecDeque,
    fs,
    future::{self, pending},
    path::{Component, Path},
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead_runtime::{
    digest::Digest,
    ports::{BoxFuture, ResponseBody, Transport, TransportError, WireRequest, WireResponse},
};
use futures::{StreamExt, TryStreamExt, stream};
use http::HeaderMap;

use ennead_simulated::{Attempts, End, Exchange, Piece, Playbook, PlaybookError, Script};

use ennead_tools::locked::Locked as _;

#[cfg(test)]
mod tests;

/// The playbooks that come with ennead: `(name, text)`.
///
/// `default` answers when no key is set; `survey` is what `ennead demo` plays.
pub const EMBEDDED: [(&str, &str); 2] =
    [("default", DEFAULT), ("survey", include_str!("../../playbooks/survey.toml"))];

/// The playbook that answers when no key is set.
pub(crate) const DEFAULT: &str = include_str!("../../playbooks/default.toml");

/// Bytes a recorded body may have.
const MAX_BODY_FILE: u64 = 64 << 20;

/// Requests a log keeps; older ones are only counted.
const MAX_LOGGED: usize = 4096;

/// Reads an embedded playbook.
///
/// `None`: there is none of this name.
///
/// # Errors
///
/// Never for a build whose tests passed.
pub fn embedded(name: &str) -> Option<Result<Playbook, PlaybookError>> {
    let (name, text) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name)?;
    Some(Playbook::parse(text, name))
}

/// Reads a playbook whose recorded bodies lie in `folder`, or deeper.
///
/// # Errors
///
/// The first thing that is wrong with it; a file that is not there, lies elsewhere, or has more
/// than 64 MiB is wrong.
pub fn parse_in(folder: &Path, text: &str, name: &str) -> Result<Playbook, PlaybookError> {
    Playbook::parse_with(text, name, |file| {
        let is_below = |it: Component<'_>| matches!(it, Component::Normal(_));
        if file.is_empty() || !Path::new(file).components().all(is_below) {
            return Err("name a file below the folder of the playbook".to_owned());
        }
        let path = folder.join(file);
        let found = fs::metadata(&path).map_err(|error| error.to_string())?;
        if !found.is_file() {
            return Err("it is not a file".to_owned());
        }
        if MAX_BODY_FILE < found.len() {
            return Err("it has more than 64 MiB".to_owned());
        }
        fs::read(&path).map_err(|error| error.to_string())
    })
}

/// A playbook at work.
#[derive(Debug)]
pub struct Simulator {
    playbook: Playbook,
    attempts: Mutex<Attempts>,
    log: Mutex<RequestLog>,
}

/// What was asked of a simulator.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    /// Requests since the start, forgotten ones included.
    pub n_requests: u64,
    /// The newest 4096, oldest first.
    pub requests: VecDeque<LoggedRequest>,
}

/// One request and who answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Path of the request's address.
    pub path: String,
    /// Digest of the body.
    pub digest: Digest,
    /// Bytes of the body.
    pub n_bytes: usize,
    /// HTTP status of the answer.
    pub status: u16,
    /// The rule that answered; `None` for a refusal.
    pub rule: Option<Arc<str>>,
}

impl Simulator {
    /// Makes a simulator that plays `playbook` from its start.
    pub fn new(playbook: Playbook) -> Arc<Self> {
        Arc::new(Self { playbook, attempts: Mutex::default(), log: Mutex::default() })
    }

    /// Returns the playbook that it plays.
    pub fn playbook(&self) -> &Playbook {
        &self.playbook
    }

    /// Answers one request, and logs it. The script says what to send, and when.
    pub fn answer(&self, exchange: &Exchange<'_>) -> Script {
        let script =
            self.playbook.exchange(exchange, &mut |attempt| self.attempts.locked().next(attempt));
        let request = LoggedRequest {
            path: exchange.path.to_owned(),
            digest: Digest::of(exchange.body),
            n_bytes: exchange.body.len(),
            status: script.status,
            rule: script.rule.clone(),
        };
        let mut log = self.log.locked();
        log.n_requests += 1;
        if log.requests.len() == MAX_LOGGED {
            log.requests.pop_front();
        }
        log.requests.push_back(request);
        script
    }

    /// Returns the requests so far.
    pub fn log(&self) -> RequestLog {
        self.log.locked().clone()
    }
}

/// Sends requests to a [`Simulator`] in this process.
#[derive(Clone, Debug)]
pub struct SimulatedTransport {
    simulator: Arc<Simulator>,
}

impl SimulatedTransport {
    /// Makes a transport by which this simulator answers, whatever host is asked.
    pub fn new(simulator: Arc<Simulator>) -> Self {
        Self { simulator }
    }
}

impl Transport for SimulatedTransport {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let simulator = self.simulator.clone();
        Box::pin(async move {
            let script = simulator.answer(&Exchange {
                method: "POST",
                path: path_of(&request.url),
                headers: &request.headers,
                body: &request.body.to_bytes(),
            });
            wait(script.delay_ms).await;
            if script.before_head {
                let Err(error) = end(script.end).await else {
                    let why = "the connection was closed before the answer".to_owned();
                    return Err(TransportError::Broken { why });
                };
                return Err(error);
            }
            let body = body(script.pieces, script.end);
            Ok(WireResponse::new(script.status, headers(&script.headers), body))
        })
    }
}

/// Returns the headers as they are sent. Those that HTTP does not allow are left out; a playbook has none.
fn headers(pairs: &[(String, String)]) -> HeaderMap {
    let read = |(name, value): &(String, String)| name.parse().ok().zip(value.parse().ok());
    pairs.iter().filter_map(read).collect()
}

/// The path of an absolute URL, without its query.
fn path_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
    path.split(['?', '#']).next().unwrap_or(path)
}

async fn wait(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// The pieces, each when its time has come, and then the end.
fn body(pieces: Vec<Piece>, last: End) -> ResponseBody {
    let pieces = stream::iter(pieces).then(|piece| async move {
        wait(piece.delay_ms).await;
        Ok(piece.bytes)
    });
    let pairs = pieces.try_filter(|bytes| future::ready(!bytes.is_empty()));
    let end = stream::once(end(last)).try_filter_map(|()| future::ready(Ok(None)));
    Box::pin(pairs.chain(end))
}

/// Ends a body as the playbook says.
async fn end(end: End) -> Result<(), TransportError> {
    let broken = |why: &str| Err(TransportError::Broken { why: why.to_owned() });
    match end {
        End::Closed => Ok(()),
        End::Dropped => broken("the connection was closed before the body ended"),
        End::Reset => broken("connection reset by peer"),
        End::Stall => pending().await,
    }
}
