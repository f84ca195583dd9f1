//! A model server on the clock of the test, with a log of what it was asked.

use std::{
    fmt, future,
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionHandle, SessionOptions,
    data::{TransportError, WireRequest, WireResponse},
    model::{GovernorLimits, Transport},
    settings::Durability,
    testing::ManualClock,
    tool::BoxFuture,
};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::support::paused::Paused;

/// How it answers one request.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) after_ms: u64,
}

/// An answer after this many milliseconds.
pub(super) fn ok(after_ms: u64) -> Reply {
    Reply { status: 200, headers: HeaderMap::new(), after_ms }
}

/// Another status.
pub(super) fn status(status: u16, after_ms: u64) -> Reply {
    Reply { status, headers: HeaderMap::new(), after_ms }
}

impl Reply {
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        self
    }
}

/// A request: when it came, when it was answered, and with what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) came_ms: u64,
    pub(super) answered_ms: u64,
    pub(super) status: u16,
}

type Script = Box<dyn Fn(u64, usize) -> Reply + Send + Sync>;

/// Answers by a script of the time in milliseconds and the number of the request.
pub(super) struct Server {
    began: Instant,
    script: Script,
    log: Mutex<Vec<Logged>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    pub(super) fn new(script: impl Fn(u64, usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), script: Box::new(script), log: Mutex::default() })
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis().try_into().unwrap()
    }

    pub(super) fn log(&self) -> Vec<Logged> {
        self.log.lock().unwrap().clone()
    }
}

/// The server behind the port.
#[derive(Clone, Debug)]
struct Wire(Arc<Server>);

impl Transport for Wire {
    fn send(&self, _: WireRequest) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let server = Arc::clone(&self.0);
        Box::pin(async move {
            let came_ms = server.now_ms();
            let number = {
                let mut log = server.log.lock().unwrap();
                log.push(Logged { came_ms, answered_ms: u64::MAX, status: 0 });
                log.len() - 1
            };
            let reply = (server.script)(came_ms, number);
            sleep(Duration::from_millis(reply.after_ms)).await;
            server.log.lock().unwrap()[number] =
                Logged { came_ms, answered_ms: server.now_ms(), status: reply.status };
            let mut headers = reply.headers;
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            let body = if reply.status == 200 { ANSWER } else { "" };
            let body = Box::pin(stream::once(future::ready(Ok(body.into()))));
            Ok(WireResponse { status: reply.status, headers, body })
        })
    }
}

const ANSWER: &str = r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

"#;

/// An `Ennead` in front of a server.
pub(super) struct House {
    pub(super) ennead: Ennead,
    directory: TempDir,
}

impl House {
    pub(super) async fn new(server: &Arc<Server>, governor: GovernorLimits) -> Self {
        Self::on(Placement::Ambient, server, governor).await
    }

    pub(super) async fn on(
        placement: Placement,
        server: &Arc<Server>,
        governor: GovernorLimits,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        Self::with(Options::default().placement(placement).governor(governor).clock(clock), server)
            .await
    }

    /// One whose records have the time of the timers; the others stand still.
    pub(super) async fn timed(server: &Arc<Server>) -> Self {
        Self::with(
            Options::default().placement(Placement::Ambient).clock(Arc::new(Paused::default())),
            server,
        )
        .await
    }

    async fn with(options: Options, server: &Arc<Server>) -> Self {
        let transport: Arc<dyn Transport> = Arc::new(Wire(Arc::clone(server)));
        let options = options.seed(7).transport(transport);
        let ennead = Ennead::start(options).await.unwrap();
        Self { ennead, directory: TempDir::new().unwrap() }
    }

    /// A session that talks to Anthropic's own server, for this tenant.
    pub(super) async fn open(&self, tenant: &str) -> SessionHandle {
        self.open_at(Self::endpoint(), tenant).await
    }

    pub(super) fn endpoint() -> Endpoint {
        Endpoint::messages("https://api.anthropic.com", Some("a key"))
    }

    pub(super) async fn open_at(&self, endpoint: Endpoint, tenant: &str) -> SessionHandle {
        self.open_with(self.options(endpoint, tenant)).await
    }

    pub(super) fn options(&self, endpoint: Endpoint, tenant: &str) -> SessionOptions {
        let path = self.directory.path();
        SessionOptions::new(path, endpoint)
            .home(path.to_owned())
            .transcripts(path.join("transcripts"))
            .tools(Vec::new())
            .tenant(tenant)
    }

    pub(super) async fn open_with(&self, options: SessionOptions) -> SessionHandle {
        self.ennead.open(options.isolated().durability(Durability::Process)).await.unwrap()
    }
}
