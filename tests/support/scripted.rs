//! Sessions in a directory of their own, on a model that says what a test wants.
//!
//! The model is a [`Transport`]: its answers go through the same stream reader as those of a real
//! one, and every request body is kept for the test to look at.

mod message_stream;

use std::{
    fmt, fs, future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead::{
    Endpoint, Ennead, Event, Options, Placement, RunOutcome, SessionHandle, SessionOptions,
    data::{Numbered, TransportError, WireRequest, WireResponse},
    model::Transport,
    testing::ManualClock,
    tool::BoxFuture,
};
use futures::stream;
use http::{HeaderValue, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::until::within;

/// What clocks say in these tests: 2026-09-21.
pub(crate) const NOW: u64 = 1_790_000_000_000;

/// A session id.
pub(crate) const SESSION: &str = "5f1c0000-0000-4000-8000-0000000000aa";

/// What the model says.
#[derive(Clone, Debug)]
pub(crate) struct Say {
    pub(crate) status: u16,
    blocks: Vec<Value>,
    /// Input tokens that are reported; `None`: as many as the request is likely to have.
    tokens: Option<u64>,
    /// Characters of a delta at most; `None`: a block is one delta.
    piece: Option<usize>,
}

/// A text, and nothing more to do.
pub(crate) fn text(text: &str) -> Say {
    Say {
        status: 200,
        blocks: vec![json!({"type": "text", "text": text})],
        tokens: Some(100),
        piece: None,
    }
}

/// Calls in one answer: id, tool, input.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Say {
    let block = |(id, name, input): &(&str, &str, Value)| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    Say { status: 200, blocks: calls.iter().map(block).collect(), tokens: Some(100), piece: None }
}

/// An answer of this HTTP status without a body.
pub(crate) fn refusal(status: u16) -> Say {
    Say { status, blocks: Vec::new(), tokens: None, piece: None }
}

/// Nothing, ever.
pub(crate) fn silence() -> Say {
    Say { status: 0, blocks: Vec::new(), tokens: None, piece: None }
}

/// One call.
pub(crate) fn call(id: &str, tool: &str, input: Value) -> Say {
    calls(&[(id, tool, input)])
}

impl Say {
    /// Says it in deltas of so many characters.
    pub(crate) fn in_pieces(self, n_chars: usize) -> Self {
        Self { piece: Some(n_chars), ..self }
    }

    /// The same with a text in front.
    pub(crate) fn after(mut self, text: &str) -> Self {
        self.blocks.insert(0, json!({"type": "text", "text": text}));
        self
    }

    /// Reports input tokens by the size of the request.
    pub(crate) fn measured(self) -> Self {
        Self { tokens: None, ..self }
    }
}

/// What the model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The request body.
    pub(crate) body: Value,
}

impl Asked {
    /// Answers in it.
    pub(crate) fn n_answers(&self) -> usize {
        self.messages().iter().filter(|it| it["role"] == "assistant").count()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn blocks(&self) -> impl Iterator<Item = &Value> {
        let user = self.messages().iter().filter(|it| it["role"] == "user");
        user.flat_map(|it| it["content"].as_array().into_iter().flatten())
    }

    /// Everything said in the role of the user, results left out.
    pub(crate) fn user(&self) -> String {
        let plain = self.messages().iter().filter(|it| it["role"] == "user");
        let plain = plain.filter_map(|it| it["content"].as_str().map(str::to_owned));
        let texts = self.blocks().filter_map(|it| it["text"].as_str().map(str::to_owned));
        plain.chain(texts).collect::<Vec<_>>().join("\n")
    }

    /// The system prompt.
    pub(crate) fn system(&self) -> String {
        match &self.body["system"] {
            Value::String(text) => text.clone(),
            other => {
                let texts = other.as_array().into_iter().flatten();
                texts.filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Whether a sub-agent asks.
    pub(crate) fn is_agent(&self) -> bool {
        self.system().contains("You are a sub-agent")
    }

    /// The tools that are offered.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect()
    }

    /// Results in it: call, text, whether it failed.
    pub(crate) fn results(&self) -> Vec<(String, String, bool)> {
        let results = self.blocks().filter(|it| it["type"] == "tool_result");
        results
            .map(|it| {
                let text = match &it["content"] {
                    Value::String(text) => text.clone(),
                    parts => {
                        let parts = parts.as_array().into_iter().flatten();
                        parts.filter_map(|it| it["text"].as_str()).collect()
                    }
                };
                let id = it["tool_use_id"].as_str().unwrap_or_default().to_owned();
                (id, text, it["is_error"] == true)
            })
            .collect()
    }

    /// The text of one result.
    #[track_caller]
    pub(crate) fn result(&self, id: &str) -> String {
        let found = self.results().into_iter().find(|it| it.0 == id);
        found.unwrap_or_else(|| panic!("no result of {id} in {:#}", self.body)).1
    }
}

type Script = Box<dyn Fn(&Asked) -> Say + Send + Sync>;

/// A model that does what its script says.
pub(crate) struct Scripted {
    script: Script,
    asked: Mutex<Vec<Asked>>,
}

/// A model that answers by this function.
pub(crate) fn model(script: impl Fn(&Asked) -> Say + Send + Sync + 'static) -> Arc<Scripted> {
    Arc::new(Scripted { script: Box::new(script), asked: Mutex::default() })
}

/// A model that says these in order of the answers in the conversation, then `done`.
pub(crate) fn says(answers: Vec<Say>) -> Arc<Scripted> {
    model(move |asked| answers.get(asked.n_answers()).cloned().unwrap_or_else(|| text("done")))
}

impl Scripted {
    /// What it says to this.
    pub(crate) fn say(&self, asked: &Asked) -> Say {
        (self.script)(asked)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// What it was asked last.
    pub(crate) fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }

    /// What sub-agents asked.
    pub(crate) fn asked_by_agents(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(Asked::is_agent).collect()
    }

    /// What the top session asked last.
    pub(crate) fn last_of_top(&self) -> Asked {
        self.asked().into_iter().rfind(|it| !it.is_agent()).expect("it was asked")
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Transport for Scripted {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let asked = Asked { body: serde_json::from_slice(&request.body).unwrap() };
        let say = self.say(&asked);
        let body =
            if say.status == 200 { message_stream::stream(&say, &asked) } else { String::new() };
        self.asked.lock().unwrap().push(asked);
        Box::pin(async move {
            if say.status == 0 {
                future::pending::<()>().await;
            }
            Ok(WireResponse {
                status: say.status,
                headers: [(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))]
                    .into_iter()
                    .collect(),
                body: Box::pin(stream::once(future::ready(Ok(body.into())))),
            })
        })
    }
}

/// A directory for a workspace, a home and transcripts.
pub(crate) struct TestDirs {
    directory: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl TestDirs {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["workspace", "home", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory, clock: Arc::new(ManualClock::at(NOW)) }
    }

    /// An absolute path in it; `workspace/…`, `home/…`, `outside/…`, `transcripts/…`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    /// The same as text.
    pub(crate) fn text(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }

    /// Writes a file there.
    pub(crate) fn write(&self, path: &str, text: &str) -> String {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// Writes an executable script there.
    pub(crate) fn script(&self, path: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let file = self.write(path, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// What an `Ennead` on this model is started with.
    pub(crate) fn options(&self, model: &Arc<Scripted>) -> Options {
        Options::default()
            .placement(Placement::Ambient)
            .seed(7)
            .clock(self.clock.clone())
            .transport(model.clone())
    }

    pub(crate) async fn start(&self, model: &Arc<Scripted>) -> Ennead {
        Ennead::start(self.options(model)).await.unwrap()
    }

    /// A session here.
    pub(crate) fn session(&self) -> SessionOptions {
        let endpoint = Endpoint::messages("http://model.test", None);
        let mut options = SessionOptions::new(self.path("workspace"), endpoint);
        options.home = Some(self.path("home"));
        options.transcripts = Some(self.path("transcripts"));
        options.id = Some(SESSION.into());
        options
    }

    /// The lines of the transcript as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines(&self.path(&format!("transcripts/{SESSION}.jsonl")))
    }

    /// The transcripts of sub-agents, by path.
    pub(crate) fn sidechains(&self) -> Vec<PathBuf> {
        let directory = self.path(&format!("transcripts/{SESSION}/subagents"));
        let entries =
            fs::read_dir(directory).map(|it| it.flatten().collect()).unwrap_or_else(|_| Vec::new());
        let mut files: Vec<_> = entries.into_iter().map(|it| it.path()).collect();
        files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        files.sort();
        files
    }

    /// Runs one prompt in one session of one `Ennead`.
    pub(crate) async fn run(&self, model: &Arc<Scripted>, options: SessionOptions) -> RunOutcome {
        self.run_with_events(model, options).await.0
    }

    /// The same, with what it told.
    pub(crate) async fn run_with_events(
        &self,
        model: &Arc<Scripted>,
        options: SessionOptions,
    ) -> (RunOutcome, Vec<Event>) {
        let ennead = self.start(model).await;
        let session = ennead.open(options).await.unwrap();
        let mut events = session.events();
        let outcome = session.prompt("go").await.unwrap();
        let told = until_end(&mut events).await;
        finish(ennead, session).await;
        (outcome, told)
    }
}

/// The lines of a transcript as JSON.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|it| panic!("{}: {it}", file.display()));
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Everything told up to the end of the run.
pub(crate) async fn until_end(events: &mut ennead::Events) -> Vec<Event> {
    let mut told = Vec::new();
    while let Some(Numbered { event, .. }) = within("the end of a run", events.next()).await {
        let is_end = matches!(event, Event::RunFinished { .. } | Event::RunFailed { .. });
        told.push(event);
        if is_end {
            break;
        }
    }
    told
}

/// Closes a session and its `Ennead`.
pub(crate) async fn finish(ennead: Ennead, session: SessionHandle) {
    session.close().await;
    ennead.shutdown().await;
}

/// What was alerted.
pub(crate) fn alerts(told: &[Event]) -> Vec<String> {
    let alerts = told.iter().filter_map(|it| match it {
        Event::Alert { what } => Some(what.to_string()),
        _ => None,
    });
    alerts.collect()
}
