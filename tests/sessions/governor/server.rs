//! A model server on the clock of the test, with a log of what it was asked.

use std::sync::{Arc, Mutex};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionHandle, SessionOptions,
    model::{GovernorLimits, Transport},
    settings::Durability,
    testing::ManualClock,
};
use tempfile::TempDir;
use tokio::time::Instant;

pub(super) use crate::support::scripted::Reply;
use crate::support::{
    paused::Paused,
    scripted::{Scripted, refusal, text},
};

/// An answer after this many milliseconds.
pub(super) fn ok(after_ms: u64) -> Reply {
    text("done").later(after_ms)
}

/// Another status.
pub(super) fn status(status: u16, after_ms: u64) -> Reply {
    refusal(status).later(after_ms)
}

/// A request: when it came, when it is answered unless it is given up, and with what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) came_ms: u64,
    pub(super) answered_ms: u64,
    pub(super) status: u16,
}

/// Answers by a script of the time in milliseconds and the number of the request.
pub(super) struct TimedServer {
    began: Instant,
    model: Arc<Scripted>,
    log: Arc<Mutex<Vec<Logged>>>,
}

impl TimedServer {
    pub(super) fn new(script: impl Fn(u64, usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        let (began, log) = (Instant::now(), Arc::<Mutex<Vec<Logged>>>::default());
        let all = Arc::clone(&log);
        let model = Scripted::forgetful(move |asked| {
            let came_ms = millis(began);
            let reply = script(came_ms, asked.number - 1);
            let answered_ms = came_ms + reply.after_ms;
            all.lock().unwrap().push(Logged { came_ms, answered_ms, status: reply.status });
            reply
        });
        Arc::new(Self { began, model: Arc::new(model), log })
    }

    pub(super) fn now_ms(&self) -> u64 {
        millis(self.began)
    }

    pub(super) fn log(&self) -> Vec<Logged> {
        self.log.lock().unwrap().clone()
    }
}

fn millis(began: Instant) -> u64 {
    began.elapsed().as_millis().try_into().unwrap()
}

/// An `Ennead` in front of a server.
pub(super) struct House {
    pub(super) ennead: Ennead,
    directory: TempDir,
}

impl House {
    pub(super) async fn new(server: &Arc<TimedServer>, governor: GovernorLimits) -> Self {
        Self::on(Placement::Ambient, server, governor).await
    }

    pub(super) async fn on(
        placement: Placement,
        server: &Arc<TimedServer>,
        governor: GovernorLimits,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        Self::with(Options::default().placement(placement).governor(governor).clock(clock), server)
            .await
    }

    /// One whose records have the time of the timers; the others stand still.
    pub(super) async fn timed(server: &Arc<TimedServer>) -> Self {
        Self::with(
            Options::default().placement(Placement::Ambient).clock(Arc::new(Paused::default())),
            server,
        )
        .await
    }

    async fn with(options: Options, server: &Arc<TimedServer>) -> Self {
        let transport: Arc<dyn Transport> = Arc::clone(&server.model) as _;
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
