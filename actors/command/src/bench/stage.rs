//! Where measurements take place: a host on the simulated model, and a directory that goes away
//! with it.

use std::{path::Path, sync::Arc};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionHandle, SessionOptions, SystemClock,
    internal::{SimulatedTransport, Simulator},
    testing::{Breakpoints, Playbook},
};
use ennead_runtime::{
    ports::{Clock, Tool},
    step1_settings_resolution::Durability,
    tool::ToolOutcome,
};
use ennead_tools::custom::CustomTool;
use futures::future::{self, pending};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{
    BenchError,
    meters::{ModelTime, Stopwatch, TimedModel},
};

/// A prompt that is answered in one turn.
pub(super) const ANSWERS: &str = "answer";
/// A prompt that takes a turn with one call, and a turn that answers.
pub(super) const CALLS: &str = "call";
/// A prompt whose call never ends.
pub(super) const WAITS: &str = "wait";
/// A prompt whose answer stops in the middle.
pub(super) const STALLS: &str = "stall";

/// Prompts of one session. With more of them, the history would make turns dearer.
pub(super) const RUNS_PER_SESSION: u32 = 10;

/// The stalled answer stops after its first delta, which its head is well short of.
const PLAYBOOK: &str = r#"
[[rule]]
name = "call"
when.prompt = "call"
when.answers = 0
reply = [{ tool = "Echo", input = { text = "x" } }]

[[rule]]
name = "wait"
when.prompt = "wait"
reply = [{ tool = "Wait", input = { text = "x" } }]

[[rule]]
name = "stall"
when.prompt = "stall"
delta = 8
reply = [{ text = "This answer is not going to reach its end, however long somebody waits." }]
fault = { action = "stall", at = 900 }

[[rule]]
name = "answer"
reply = [{ text = "done" }]
"#;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": { "text": { "type": "string" } },
    "required": ["text"],
    "additionalProperties": false
}"#;

/// A host, its directory and its meters.
pub(super) struct Stage {
    dir: TempDir,
    pub(super) ennead: Ennead,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) model_time: Arc<ModelTime>,
    tools: Vec<Arc<dyn Tool>>,
    /// Receives when the call that never ends has begun.
    pub(super) waiting: UnboundedReceiver<()>,
}

/// What breakpoints may look at.
pub(super) struct StageMeters {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) model_time: Arc<ModelTime>,
}

impl Stage {
    /// Makes a host whose sessions run there.
    pub(super) async fn new(placement: Placement) -> Result<Self, BenchError> {
        Self::with(placement, |_| None).await
    }

    /// Makes a host whose turns pass these breakpoints.
    pub(super) async fn with(
        placement: Placement,
        breakpoints: impl FnOnce(StageMeters) -> Option<Arc<dyn Breakpoints>>,
    ) -> Result<Self, BenchError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let model_time: Arc<ModelTime> = Arc::default();
        let playbook = Playbook::parse(PLAYBOOK, "bench")?;
        let model = TimedModel {
            model: Arc::new(SimulatedTransport::new(Simulator::new(playbook))),
            watch: Stopwatch { clock: Arc::clone(&clock), time: Arc::clone(&model_time) },
        };
        let watched =
            StageMeters { clock: Arc::clone(&clock), model_time: Arc::clone(&model_time) };
        let options = Options::default()
            .placement(placement)
            .transport(Arc::new(model))
            .clock(Arc::clone(&clock));
        let options = match breakpoints(watched) {
            Some(breakpoints) => options.breakpoints(breakpoints),
            None => options,
        };
        let (begun, waiting) = mpsc::unbounded_channel();
        let dir = tempfile::Builder::new().prefix("ennead-bench-").tempdir()?;
        let ennead = Ennead::start(options).await?;
        Ok(Self { dir, ennead, clock, model_time, tools: tools(&begun)?, waiting })
    }

    /// Returns the working directory of its sessions.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Makes the options of a session with the built-in tools and ours. Its lines are written and not forced to disk.
    pub(super) fn session(&self) -> Result<SessionOptions, BenchError> {
        let options = SessionOptions::new(self.dir.path(), Endpoint::simulated()).isolated();
        let mut options = options.durability(Durability::Process);
        options.home = Some(self.dir.path().to_owned());
        options.transcripts = Some(self.dir.path().join("transcripts"));
        self.tools.iter().try_fold(options, |options, tool| {
            Ok(options.allow(tool.spec().name.as_str())?.tool(Arc::clone(tool)))
        })
    }

    /// Opens `n` sessions, one after another.
    pub(super) async fn open(&self, n: u32) -> Result<Vec<SessionHandle>, BenchError> {
        let mut sessions = Vec::new();
        for _ in 0..n {
            sessions.push(self.ennead.open(self.session()?).await?);
        }
        Ok(sessions)
    }

    /// Closes everything that the stage started.
    pub(super) async fn end(self) {
        self.ennead.shutdown().await;
    }
}

/// Runs a prompt to its answer; says how many turns that took.
pub(super) async fn answered(session: &SessionHandle, prompt: &str) -> Result<u32, BenchError> {
    let outcome = session.prompt(prompt).await?;
    if outcome.end.is_success() {
        Ok(outcome.turns)
    } else {
        Err(BenchError::Ended(outcome.end.code()))
    }
}

/// Closes the sessions and waits for their end.
pub(super) async fn close(sessions: &[SessionHandle]) {
    future::join_all(sessions.iter().map(SessionHandle::close)).await;
}

/// Makes a hook that shows by a file that it runs, and then waits.
pub(super) fn waiting_hook(file: &Path) -> serde_json::Value {
    let command = format!(": > '{}'; exec sleep 60", file.display());
    json!({ "PreToolUse": [{ "hooks": [{ "type": "command", "command": command }] }] })
}

fn tools(begun: &UnboundedSender<()>) -> Result<Vec<Arc<dyn Tool>>, BenchError> {
    let echo = CustomTool::raw("Echo", "Says it again.", SCHEMA, |input, _| async move {
        ToolOutcome::ok(input.to_string())
    });
    let begun = begun.clone();
    let wait = CustomTool::raw("Wait", "Never ends.", SCHEMA, move |_, _| {
        let begun = begun.clone();
        async move {
            // The waiter may be gone.
            let _gone = begun.send(());
            pending().await
        }
    });
    Ok(vec![Arc::new(echo.read_only().build()?), Arc::new(wait.read_only().build()?)])
}
