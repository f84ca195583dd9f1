//! Sessions that are not actors: what a server takes that knows many of them, and how one with a long transcript
//! goes on.
//!
//! They are made in one process and measured in another, which has no memory left over from making them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ennead::{
    Endpoint, Ennead, Options, SessionHandle, SessionOptions,
    internal::{SimulatedTransport, Simulator},
    serve::{ServeOptions, Server},
    testing::Playbook,
};
use ennead_runtime::{
    ids::SessionId, saturating::Saturating as _, step1_settings_resolution::Durability,
    tool::ToolOutcome,
};
use ennead_tools::custom::CustomTool;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{BenchError, isolation::hall::Hall};
use crate::demo_load::{peak_kib, resident_kib};

/// Tenants that the sessions of a server are of.
const TENANTS: u32 = 100;

/// Bytes of one result of the session with the long transcript.
const RESULT: usize = 40_000;

/// The session with the long transcript.
const SESSION: &str = "5f1c0000-0000-4000-8000-0000000000aa";

const PLAYBOOK: &str = r#"
[[rule]]
name = "sum up"
when.prompt.regex = "is about to be replaced by a summary"
reply = [{ text = "a summary" }]

[[rule]]
name = "end"
when.prompt = "end"
reply = [{ text = "done" }]

[[rule]]
name = "go on"
reply = [{ tool = "Flood", input = {} }]
"#;

const SCHEMA: &str = r#"{ "type": "object", "properties": {}, "additionalProperties": false }"#;

/// What a server takes that knows sessions of which none is an actor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Known {
    /// Whether the build checks what a release does not; then the figures say little.
    pub debug_build: bool,
    /// Sessions that it knows.
    pub n_sessions: u32,
    /// Resident memory of the process with a server that knows none, in kibibytes; 0 where the system does not say.
    pub before_kib: u64,
    /// Resident memory with all of them, in kibibytes.
    pub known_kib: u64,
    /// Milliseconds until the server was ready.
    pub start_ms: u64,
}

/// How a session went on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Resumed {
    /// Whether the build checks what a release does not.
    pub debug_build: bool,
    /// Bytes of the transcript.
    pub n_bytes: u64,
    /// Whether there was an index.
    pub is_indexed: bool,
    /// Milliseconds from the request to open it until it could take a prompt.
    pub open_ms: u64,
    /// The most resident memory during that, in kibibytes more than before; 0 where the system does not say.
    pub peak_kib: u64,
}

impl Known {
    /// Makes `n_sessions` sessions below a directory that the hall gives, and returns what keeps that.
    ///
    /// # Errors
    ///
    /// [`BenchError`].
    pub async fn prepare(n_sessions: u32) -> Result<Prepared, BenchError> {
        let n_tenants = TENANTS.min(n_sessions);
        let (hall, listener) = Hall::open(n_tenants).await?;
        let made = tokio::select! {
            made = hall.guests(n_sessions.div_ceil(n_tenants)) => made.map(drop),
            ended = hall.listen(listener) => ended.and(Err(BenchError::Gone)),
        };
        hall.end().await;
        made?;
        Ok(Prepared { directory: hall.directory().to_owned(), _keeps: Box::new(hall) })
    }

    /// Starts a server on those sessions.
    ///
    /// # Errors
    ///
    /// [`BenchError`].
    pub async fn measure(directory: &Path) -> Result<Self, BenchError> {
        let empty = tempfile::Builder::new().prefix("ennead-bench-").tempdir()?;
        serve(empty.path()).await?.shutdown().await;
        let before_kib = resident_kib();
        let start = Instant::now();
        let server = serve(directory).await?;
        let start_ms = ms(start.elapsed());
        let known_kib = resident_kib();
        let n_sessions = u32::saturating(server.n_sessions());
        server.shutdown().await;
        let debug_build = cfg!(debug_assertions);
        Ok(Self { debug_build, n_sessions, before_kib, known_kib, start_ms })
    }

    /// Growth for each session, in bytes.
    pub fn bytes_each(&self) -> u64 {
        self.known_kib.saturating_sub(self.before_kib) * 1024 / u64::from(self.n_sessions.max(1))
    }
}

/// What was made to be measured; it is deleted with this.
#[expect(missing_debug_implementations, reason = "holds a directory of any kind")]
pub struct Prepared {
    /// The directory in which it was made.
    pub directory: PathBuf,
    _keeps: Box<dyn Send>,
}

impl Resumed {
    /// Makes a session with a transcript of at least `n_bytes` bytes, most of which was summed up.
    ///
    /// # Errors
    ///
    /// [`BenchError`].
    pub async fn prepare(n_bytes: u64) -> Result<Prepared, BenchError> {
        let kept = tempfile::Builder::new().prefix("ennead-bench-").tempdir()?;
        let directory = kept.path().to_owned();
        let ennead = host().await?;
        let session = open(&ennead, &directory, SESSION).await?;
        while fs::metadata(transcript(&directory)).map_or(0, |it| it.len()) < n_bytes {
            // It ends at its most turns.
            let outcome = session.prompt("go on").await?;
            if outcome.turns < 2 {
                return Err(BenchError::Ended(outcome.end.code()));
            }
        }
        session.prompt("end").await?;
        session.close().await;
        ennead.shutdown().await;
        Ok(Prepared { directory, _keeps: Box::new(kept) })
    }

    /// Opens that session, in a process that has had another one before.
    ///
    /// # Errors
    ///
    /// [`BenchError`].
    pub async fn measure(directory: &Path) -> Result<Self, BenchError> {
        let ennead = host().await?;
        let other = tempfile::Builder::new().prefix("ennead-bench-").tempdir()?;
        let first = open(&ennead, other.path(), SESSION).await?;
        first.prompt("end").await?;
        first.close().await;
        let again = open(&ennead, other.path(), SESSION).await?;
        let transcript = transcript(directory);
        let is_indexed = transcript.with_extension("").join("index").exists();
        let n_bytes = fs::metadata(&transcript)?.len();
        let before_kib = resident_kib();
        // The most until now is forgotten.
        let resets = fs::write("/proc/self/clear_refs", "5").is_ok();
        let start = Instant::now();
        let session = open(&ennead, directory, SESSION).await?;
        let open_ms = ms(start.elapsed());
        let peak_kib = if resets { peak_kib().saturating_sub(before_kib) } else { 0 };
        let answered = session.prompt("end").await?;
        if !answered.end.is_success() {
            return Err(BenchError::Ended(answered.end.code()));
        }
        session.close().await;
        again.close().await;
        ennead.shutdown().await;
        Ok(Self { debug_build: cfg!(debug_assertions), n_bytes, is_indexed, open_ms, peak_kib })
    }
}

fn ms(time: Duration) -> u64 {
    u64::saturating(time.as_millis())
}

fn transcript(directory: &Path) -> PathBuf {
    directory.join("transcripts").join(format!("{SESSION}.jsonl"))
}

async fn host() -> Result<Ennead, BenchError> {
    let playbook = Playbook::parse(PLAYBOOK, "bench")?;
    let model = SimulatedTransport::new(Simulator::new(playbook));
    Ok(Ennead::start(Options::default().transport(Arc::new(model))).await?)
}

async fn serve(directory: &Path) -> Result<Server, BenchError> {
    let session = SessionOptions::new(directory, Endpoint::simulated()).isolated();
    let options = ServeOptions::new(directory.join("work"), directory.join("state"), session);
    Ok(Server::start(host().await?, options).await?)
}

async fn open(ennead: &Ennead, directory: &Path, id: &str) -> Result<SessionHandle, BenchError> {
    let flood = CustomTool::raw("Flood", "Says much.", SCHEMA, |_, _| async {
        ToolOutcome::ok("All work and no play. ".repeat(RESULT / 22))
    });
    let options = SessionOptions::new(directory, Endpoint::simulated()).isolated();
    let mut options = options.durability(Durability::Process).id(SessionId::from(id));
    options.home = Some(directory.to_owned());
    options.transcripts = Some(directory.join("transcripts"));
    let options = options.allow("Flood")?.tool(Arc::new(flood.read_only().build()?));
    Ok(ennead.open(options).await?)
}
