//! An `Ennead` whose whole surroundings are in the hands of the test.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, RunError, RunOutcome, RunRequest, SessionHandle,
    SessionId, SessionOptions,
    data::{ActorKind, Live, SessionDirs, SourceTexts},
    permission::{Approver, PermissionAnswer, Question},
    settings::{Durability, SourceFiles},
    testing::ManualClock,
    tool::{BoxFuture, McpLimits, Tool},
};
use ennead_runtime::{permission::Scope, step1_settings_resolution::LayerText};
use ennead_tools::registry::builtin_tools;
use tempfile::TempDir;

use super::{
    barrier::Barrier,
    breaks::Breaks,
    model::HeldModel,
    processes::{fifo, read_to_end},
    record,
    tools::Workshop,
};

/// What the model says. `use a b` calls tools, `delegate use a` has a sub-agent do it, `loop` calls
/// a tool turn after turn, anything that ends in `again` is answered at once.
const PLAYBOOK: &str = r#"
[[rule]]
name = "summary"
when.users = "is about to be replaced by a summary"
reply = [{ text = "A summary." }]

[[rule]]
name = "again"
when.prompt.regex = 'again\s*$'
reply = [{ text = "still here" }]

[[rule]]
name = "too long once"
times = 1
when.prompt.regex = '(?m)^overflow'
fault = { status = 400, message = "prompt is too long: 300000 tokens > 200000 maximum" }

[[rule]]
name = "loop"
when.answers = { max = 5 }
when.prompt.regex = '(?m)^loop'
reply = [{ tool = "echo", input_json = '{"name":"{{ answers }}","size":2000}' }]

[[rule]]
name = "done"
when.answers = { min = 1 }
reply = [{ text = "done with {{ new_results|length }}" }]

[[rule]]
name = "delegate"
when.prompt.regex = '(?m)^delegate (.*)$'
let.task = '''(prompt|capture('(?m)^delegate (.*)$'))[1]'''
reply = [{ tool = "Agent", input = { description = "a task", prompt = "{{ task }}" } }]

[[rule]]
name = "run"
when.prompt.regex = '(?m)^run (.*)$'
let.command = '''(prompt|capture('(?m)^run (.*)$'))[1]'''
reply = [{ tool = "Bash", input = { command = "{{ command }}" } }]

[[rule]]
name = "write"
when.prompt.regex = '(?m)^write'
reply = [{ tool = "Write", input = { file_path = "written", content = "text" } }]

[[rule]]
name = "use"
when.prompt.regex = '(?m)use (.*)$'
let.names = '''(prompt|capture('(?m)use (.*)$'))[1]|split'''
reply = [
  { text = "I use them." },
  { tool = "{{ item }}", each = "names", input_json = '{"name":"{{ index }}","path":"file"}' },
]

[[rule]]
name = "hello"
reply = [{ text = "hello, this is an answer that is long enough to be cut into two pieces" }]
"#;

/// See the module.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) ennead: Ennead,
    pub(crate) model: HeldModel,
    pub(crate) workshop: Workshop,
    pub(crate) files: HeldFiles,
    pub(crate) approver: HeldApprover,
    pub(crate) breaks: Breaks,
    pub(crate) directory: TempDir,
}

impl Host {
    pub(crate) async fn start(placement: Placement) -> Self {
        Self::start_with(placement, |options| options).await
    }

    /// The same with other options.
    pub(crate) async fn start_with(
        placement: Placement,
        change: impl FnOnce(Options) -> Options,
    ) -> Self {
        let (model, files, breaks) =
            (HeldModel::new(PLAYBOOK), HeldFiles::default(), Breaks::default());
        // Machines under load are slow, and most tests are about servers that are there.
        let mut mcp = McpLimits::default();
        mcp.wait = mcp.start;
        let options = Options::default()
            .mcp(mcp)
            .placement(placement)
            .seed(7)
            .clock(Arc::new(ManualClock::at(1_790_000_000_000)))
            .transport(Arc::new(model.clone()))
            .files(Arc::new(files.clone()))
            .breakpoints(Arc::new(breaks.clone()));
        let ennead = Ennead::start(change(options)).await.unwrap();
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("file"), "text").unwrap();
        let (workshop, approver) = (Workshop::default(), HeldApprover::default());
        Self { ennead, model, workshop, files, approver, breaks, directory }
    }

    /// Starts one, and opens a session.
    pub(crate) async fn open_one(placement: Placement) -> (Self, SessionHandle) {
        let host = Self::start(placement).await;
        let session = host.open().await;
        (host, session)
    }

    /// What a session of this host is opened with: its tools, Agent, Bash and Write among them.
    pub(crate) fn options(&self) -> SessionOptions {
        let built_in =
            |it: &Arc<dyn Tool>| ["Agent", "Bash", "Write"].contains(&it.spec().name.as_str());
        let mut tools: Vec<_> = builtin_tools().into_iter().filter(built_in).collect();
        tools.extend(self.workshop.tools());
        let endpoint = Endpoint::messages("http://model.test", None);
        SessionOptions::new(self.directory.path(), endpoint)
            .tools(tools)
            .home(self.directory.path().to_owned())
            .transcripts(self.directory.path().join("transcripts"))
            .approver(Arc::new(self.approver.clone()))
            .durability(Durability::Process)
    }

    pub(crate) async fn open(&self) -> SessionHandle {
        self.ennead.open(self.options()).await.unwrap()
    }

    /// The actors of this kind that work for a session; shards and archives work for all, and the
    /// first is that of the first session. Sub-agents are those of its tree.
    pub(crate) fn live(&self, session: &SessionId, kind: ActorKind) -> Vec<Live> {
        let mut all = self.ennead.directory().all();
        all.retain(|it| it.kind == kind && is_of(it, session));
        all
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Begins a run in which something holds the pipe `alive` open, and waits until it does. What it
    /// wrote is read to the end, which comes when nothing has the pipe open any more.
    pub(crate) async fn prompt_alive(
        &self,
        session: &SessionHandle,
        text: impl Into<String>,
    ) -> (Running, tokio::task::JoinHandle<String>) {
        let pipe = self.path("alive");
        fifo(&pipe);
        let (up, reader) = read_to_end(&pipe);
        let run = prompt(session, text);
        up.pass().await;
        (run, reader)
    }

    /// Opens everything that something may wait at.
    pub(crate) fn open_all(&self) {
        let Workshop { wait, thread, .. } = &self.workshop;
        let HeldFiles { settings, sources, .. } = &self.files;
        let HeldModel { answer, stream, .. } = &self.model;
        for barrier in [wait, thread, settings, sources, answer, stream, &self.approver.barrier] {
            barrier.open();
        }
        self.breaks.let_go();
    }
}

/// Whether an actor works for a session or for its tree.
pub(crate) fn is_of(live: &Live, session: &SessionId) -> bool {
    let Some(of) = &live.session else { return true };
    of == session
        || (live.kind == ActorKind::SubAgent
            && of.as_str().strip_prefix(session.as_str()).is_some_and(|it| it.starts_with('/')))
}

/// The session takes another prompt, and its transcript is in order.
#[track_caller]
pub(crate) fn check_record(transcript: &Path) {
    record::verified(transcript);
    for (call, (n, text)) in record::results(transcript) {
        assert_eq!(n, 1, "{call}: {text}");
    }
}

/// The session answers.
pub(crate) async fn check_answers(session: &SessionHandle) {
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "still here"));
}

/// A run under way.
pub(crate) type Running = tokio::task::JoinHandle<Result<RunOutcome, RunError>>;

/// Begins a run.
pub(crate) fn prompt(session: &SessionHandle, text: impl Into<String>) -> Running {
    ask(session, RunRequest::new(text))
}

/// Begins a run and waits until it has come to this barrier, which is closed for it.
pub(crate) async fn prompt_to(
    session: &SessionHandle,
    text: impl Into<String>,
    barrier: &Barrier,
) -> Running {
    barrier.close();
    let run = prompt(session, text);
    barrier.arrived().await;
    run
}

/// Begins this run.
pub(crate) fn ask(session: &SessionHandle, request: RunRequest) -> Running {
    let session = session.clone();
    tokio::spawn(async move { session.run(request).await })
}

/// Waits for the end of a run that was interrupted.
pub(crate) async fn interrupted(run: Running) -> RunOutcome {
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.end, RunEnd::Interrupted);
    outcome
}

/// The texts of the results of a run, and whether they are errors, in order.
pub(crate) fn results(outcome: &RunOutcome) -> Vec<(bool, String)> {
    let blocks = outcome.messages.iter().flat_map(|it| &it.blocks);
    let results = blocks.filter_map(|it| it.as_tool_result());
    results.map(|(_, text, is_error)| (is_error, text.to_owned())).collect()
}

/// The session goes on, and its transcript is in order.
pub(crate) async fn check_usable(session: &SessionHandle) {
    check_answers(session).await;
    check_record(session.transcript());
}

/// Files that are read when the barriers say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldFiles {
    pub(crate) settings: Barrier,
    pub(crate) sources: Barrier,
    /// Settings of the user, JSON text.
    pub(crate) layer: Arc<Mutex<Option<String>>>,
    /// What the next reading of settings ends with.
    pub(crate) fails: Arc<Mutex<Option<io::ErrorKind>>>,
}

impl SourceFiles for HeldFiles {
    fn settings(&self, _: &SessionDirs) -> BoxFuture<'static, io::Result<Vec<LayerText>>> {
        let this = self.clone();
        Box::pin(async move {
            this.settings.pass().await;
            if let Some(kind) = this.fails.lock().unwrap().take() {
                return Err(kind.into());
            }
            let layer = this.layer.lock().unwrap().clone();
            let source = "settings.json".to_owned();
            let layers = layer.map(|text| LayerText::new(Scope::User, source, text));
            Ok(layers.into_iter().collect())
        })
    }

    fn sources(&self, _: &SessionDirs) -> BoxFuture<'static, SourceTexts> {
        let sources = self.sources.clone();
        Box::pin(async move {
            sources.pass().await;
            SourceTexts::default()
        })
    }
}

/// Allows everything once the barrier says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldApprover {
    pub(crate) barrier: Barrier,
}

impl Approver for HeldApprover {
    fn answer(&self, _: Question) -> BoxFuture<'static, PermissionAnswer> {
        let barrier = self.barrier.clone();
        Box::pin(async move {
            barrier.pass().await;
            let mut answer = PermissionAnswer::deny("the test says so");
            answer.allowed = true;
            answer
        })
    }
}
