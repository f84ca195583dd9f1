//! A server with sessions of many tenants, and the one client that asks for all of them.

use std::{future::pending, path::Path, sync::Arc, time::Duration};

use ennead::{
    Endpoint, Ennead, Options, SessionOptions,
    internal::{Http, SimulatedTransport, Simulator},
    serve::{Role, ServeOptions, Server},
    testing::Playbook,
};
use ennead_runtime::{
    ports::{Tool, Transport, WireRequest},
    step1_settings_resolution::Durability,
    tool::ToolOutcome,
};
use ennead_tools::custom::CustomTool;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bench::BenchError;

/// Time before each answer of the model, in milliseconds: a fast one.
pub(super) const MODEL_MS: u64 = 200;

/// The prompt of a run with one call and one answer.
pub(super) const BEHAVES: &str = "call";

/// The prompts by which tenants misbehave, in the order of [`super::Misbehaviour::ALL`].
pub(super) const MISBEHAVES: [&[&str]; 4] =
    [&["wait", "stall"], &["flood"], &["panic"], &["spawn"]];

/// Bytes of a result that floods.
const FLOOD: usize = 1024 * 1024;

/// Turns of a run, which a flood uses up.
const MAX_TURNS: u32 = 20;

/// Sessions that are made at once.
const AT_ONCE: usize = 16;

/// How long the client waits for the end of a run.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a run that is to end is interrupted, in case it had not begun.
const AGAIN: Duration = Duration::from_secs(1);

const PLAYBOOK: &str = r#"
[[rule]]
name = "call"
when.prompt = "call"
when.answers = 0
pace.head_ms = 200
reply = [{ tool = "Glob", input = { pattern = "*" } }]

[[rule]]
name = "wait"
when.prompt = "wait"
reply = [{ tool = "Wait", input = {} }]

[[rule]]
name = "stall"
when.prompt = "stall"
fault = { action = "stall", before_head = true }

[[rule]]
name = "flood"
when.prompt = "flood"
pace.head_ms = 200
reply = [{ tool = "Flood", input = {} }]

[[rule]]
name = "panic"
when.prompt = "panic"
when.answers = 0
pace.head_ms = 200
reply = [{ tool = "Panic", input = {} }, { tool = "Panic", input = {} }]

[[rule]]
name = "spawn"
when.prompt = "spawn"
when.answers = 0
pace.head_ms = 200
reply = [
  { tool = "Agent", input = { description = "one", prompt = "spawn" } },
  { tool = "Agent", input = { description = "two", prompt = "spawn" } },
  { tool = "Agent", input = { description = "three", prompt = "spawn" } },
  { tool = "Agent", input = { description = "four", prompt = "spawn" } },
]

[[rule]]
name = "answer"
pace.head_ms = 200
reply = [{ text = "done" }]
"#;

const SCHEMA: &str = r#"{ "type": "object", "properties": {}, "additionalProperties": false }"#;

/// A server that listens, and the tokens of its tenants.
pub(in crate::bench) struct Hall {
    server: Server,
    address: String,
    client: Http,
    tokens: Vec<Arc<str>>,
    // The last to be dropped: the server writes there.
    dir: TempDir,
}

/// A session of the server.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Guest {
    token: Arc<str>,
    /// The address of the session at the server.
    session: Arc<str>,
}

/// What became of a run that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It ended with an answer.
    Answered,
    /// The server did not take it.
    Refused,
    /// It ended otherwise, or the server was not reached.
    Failed,
}

impl Hall {
    /// Starts a server on loopback with `n_tenants` tenants.
    pub(in crate::bench) async fn open(n_tenants: u32) -> Result<(Self, TcpListener), BenchError> {
        let dir = tempfile::Builder::new().prefix("ennead-bench-").tempdir()?;
        let playbook = Playbook::parse(PLAYBOOK, "bench")?;
        let model = SimulatedTransport::new(Simulator::new(playbook));
        let ennead = Ennead::start(Options::default().transport(Arc::new(model))).await?;
        let session = SessionOptions::new(dir.path(), Endpoint::simulated()).isolated();
        let mut session = session.durability(Durability::Process).allow("Agent")?;
        session.home = Some(dir.path().to_owned());
        for tool in tools()? {
            session = session.allow(tool.spec().name.as_str())?.tool(tool);
        }
        let options = ServeOptions::new(dir.path().join("work"), dir.path().join("state"), session);
        let server = Server::start(ennead, options).await?;
        let mut tokens = Vec::new();
        for at in 0..n_tenants {
            let tenant = format!("tenant-{at}");
            tokens.push(server.tokens().add(&tenant, &tenant, Role::User)?.into());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let client = Http::new().map_err(|it| std::io::Error::other(it.to_string()))?;
        Ok((Self { server, address, client, tokens, dir }, listener))
    }

    /// Answers requests until the server ends.
    pub(in crate::bench) async fn listen(&self, listener: TcpListener) -> Result<(), BenchError> {
        Ok(self.server.listen(listener, None, self.server.router()).await?)
    }

    /// Makes this many sessions for each tenant; those of one tenant come together.
    pub(in crate::bench) async fn guests(&self, per_tenant: u32) -> Result<Vec<Guest>, BenchError> {
        let owners = self.tokens.iter().flat_map(|it| std::iter::repeat_n(it, per_tenant as usize));
        let guests = owners.map(|token| async move {
            let url = format!("{}/v1/sessions", self.address);
            loop {
                let made = self.post(token, &url, json!({ "max_turns": MAX_TURNS })).await;
                let (status, answer) = made.ok_or(BenchError::Gone)?;
                if let Some(id) = answer["id"].as_str() {
                    let session = format!("{url}/{id}").into();
                    return Ok(Guest { token: Arc::clone(token), session });
                }
                // A token has a rate of requests; the answer says when the next may come.
                match (answer["code"].as_str(), answer["retry_after_ms"].as_u64()) {
                    (Some("rate_limited"), Some(ms)) => {
                        tokio::time::sleep(Duration::from_millis(ms.clamp(1, 1_000))).await;
                    }
                    _ => return Err(BenchError::Refused { status, text: answer.to_string() }),
                }
            }
        });
        futures::stream::iter(guests).buffered(AT_ONCE).try_collect().await
    }

    /// The directory of the server, which has `work` and `state`.
    pub(in crate::bench) fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a prompt of a session and waits for its end.
    pub(super) async fn ask(&self, guest: &Guest, prompt: &str) -> Asked {
        let url = format!("{}/runs", guest.session);
        let run = self.post(&guest.token, &url, json!({ "prompt": prompt }));
        match tokio::time::timeout(2 * PATIENCE, run).await {
            Ok(Some((200, run))) if run["outcome"]["is_success"] == true => Asked::Answered,
            Ok(Some((429 | 503, _))) => Asked::Refused,
            _ => Asked::Failed,
        }
    }

    /// Runs a prompt over and over until `stop`, and ends the last run then. Returns how many have ended.
    pub(super) async fn misbehave(
        &self,
        guest: &Guest,
        prompt: &str,
        stop: &CancellationToken,
    ) -> u64 {
        let mut n_runs = 0;
        while !stop.is_cancelled() {
            let mut run = std::pin::pin!(self.ask(guest, prompt));
            let mut ended = tokio::select! {
                _ = run.as_mut() => true,
                () = stop.cancelled() => false,
            };
            while !ended {
                let url = format!("{}/interrupt", guest.session);
                // A run that has ended meanwhile, or a limit of requests: the next time does it.
                drop(self.post(&guest.token, &url, json!({})).await);
                ended = tokio::time::timeout(AGAIN, run.as_mut()).await.is_ok();
            }
            n_runs += 1;
        }
        n_runs
    }

    /// Ends the server and all that it hosts.
    pub(in crate::bench) async fn end(&self) {
        self.server.shutdown().await;
    }

    /// The status and the body of an answer. `None` when none came.
    async fn post(&self, token: &str, url: &str, body: Value) -> Option<(u16, Value)> {
        let headers = [
            ("authorization", format!("Bearer {token}")),
            ("content-type", "application/json".to_owned()),
            ("prefer", format!("wait={}", PATIENCE.as_secs())),
        ];
        let headers = headers.map(|it| (it.0.to_owned(), it.1));
        let request = WireRequest::new(url, headers, body.to_string(), PATIENCE);
        let mut answer = self.client.send(request).await.ok()?;
        let mut text = Vec::new();
        while let Some(piece) = answer.body.next().await {
            text.extend_from_slice(&piece.ok()?);
        }
        Some((answer.status, serde_json::from_slice(&text).unwrap_or_default()))
    }
}

/// The tools of those that misbehave.
fn tools() -> Result<[Arc<dyn Tool>; 3], BenchError> {
    let wait = CustomTool::raw("Wait", "Never ends.", SCHEMA, |_, _| pending());
    let flood = CustomTool::raw("Flood", "Says much.", SCHEMA, |_, _| async {
        ToolOutcome::ok("All work and no play. ".repeat(FLOOD / 22))
    });
    #[expect(clippy::panic, reason = "what the others are not to notice")]
    let panics = CustomTool::raw("Panic", "Panics.", SCHEMA, |_, _| async {
        panic!("a tool of a tenant that misbehaves")
    });
    Ok([
        Arc::new(wait.read_only().build()?),
        Arc::new(flood.read_only().build()?),
        Arc::new(panics.read_only().build()?),
    ])
}
