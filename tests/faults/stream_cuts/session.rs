//! One session for each cut, against one server for each stream.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, SessionId, SessionOptions,
    internal::Simulator,
    settings::Durability,
    testing::{ManualClock, Playbook},
    tool::{Access, CustomTool, Tool, ToolOutcome},
    transcript::verify,
};
use ennead_command::simulate::serve;
use futures::StreamExt;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    case::{Case, DONE, Ending, ExpectedScreen, RECOVERED, StreamCut},
    shown::ShownScreen,
};
use crate::support::{model_server::letting_through, scripted::lines};

/// Sessions that run at once.
const SIDE_BY_SIDE: usize = 8;

/// The tools of the recorded streams.
const TOOLS: [&str; 7] = ["A", "B", "Bash", "Edit", "GitStatus", "Read", "Write"];

/// How often a tool was run, by session.
type Runs = Arc<Mutex<BTreeMap<SessionId, usize>>>;

/// What all cuts of a stream share.
struct Stage {
    case: Case,
    ennead: Ennead,
    directory: TempDir,
    base: String,
    tools: Vec<Arc<dyn Tool>>,
    runs: Runs,
}

/// Cuts these streams everywhere.
#[track_caller]
pub(crate) fn check(streams: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for stream in streams {
        runtime.block_on(cut(Case::read(stream)));
    }
}

/// Cuts one stream everywhere.
async fn cut(case: Case) {
    let simulator = Simulator::new(playbook(&case));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let server = serve(Arc::clone(&simulator), listener, shutdown.clone());
    let cutting = async {
        let stage = Stage::new(case, &base).await;
        let cuts = stage.case.cuts();
        let runs = cuts.iter().map(|cut| stage.run(*cut));
        let requests = futures::stream::iter(runs).buffer_unordered(SIDE_BY_SIDE);
        let n_requests = requests.fold(0, async |sum, n| sum + n).await;
        assert_eq!(simulator.log().n_requests, n_requests, "{}", stage.case.name);
        stage.ennead.shutdown().await;
        shutdown.cancel();
    };
    let (served, ()) = tokio::join!(server, cutting);
    served.unwrap();
}

impl Stage {
    async fn new(case: Case, base: &str) -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let options = Options::default()
            .placement(Placement::Ambient)
            .seed(7)
            .timer(clock.clone())
            .clock(clock)
            .governor(letting_through());
        let runs = Runs::default();
        // Only those that the stream names: what a session has must be said in every request.
        let named = |name: &&str| {
            let quoted = format!("\"name\":\"{name}\"");
            case.bytes.windows(quoted.len()).any(|it| it == quoted.as_bytes())
        };
        let tools = TOOLS.into_iter().filter(named).map(|name| counting(name, Arc::clone(&runs)));
        Self {
            tools: tools.collect(),
            case,
            ennead: Ennead::start(options).await.unwrap(),
            directory: TempDir::new().unwrap(),
            base: base.to_owned(),
            runs,
        }
    }

    /// With a key of its own, so that no session waits for what another one asks.
    fn endpoint(&self, cut: StreamCut) -> Endpoint {
        Endpoint::messages(&self.base, Some(&format!("{cut:?}")))
    }

    /// A session that is served the stream up to the cut. Gives the requests it made.
    async fn run(&self, cut: StreamCut) -> u64 {
        let StreamCut { at, ending } = cut;
        let options = SessionOptions::new(self.directory.path(), self.endpoint(cut))
            .tools(self.tools.clone())
            .transcripts(self.directory.path().to_owned())
            .home(self.directory.path().to_owned())
            .system_prompt("You are cut.".to_owned());
        let options = options.isolated().durability(Durability::Process);
        let session = self.ennead.open(options).await.unwrap();
        let mut events = session.events();
        let watching = async {
            let mut shown = ShownScreen::default();
            while !shown.is_over {
                shown.take(&events.next().await.expect("a run ends").event);
            }
            shown
        };
        let prompt = session.prompt(format!("cut at {at}, {ending:?}"));
        let (outcome, shown) = tokio::join!(prompt, watching);
        let outcome = outcome.unwrap();
        session.close().await;

        let place = format!("{} cut at {at}, {ending:?}", self.case.name);
        assert_eq!(outcome.end, RunEnd::NoPendingTools, "{place}: {outcome:?}");
        let file = session.transcript();
        verify(file).unwrap_or_else(|error| panic!("{place}: {error}"));
        let lines = lines(file);
        let attempts = lines.iter().filter(|it| it["kind"] == "model_attempt").count() as u64;
        let n_runs = self.runs.lock().unwrap().remove(session.id()).unwrap_or_default();
        let found = ExpectedScreen {
            answers: answers(&lines),
            ran: started(&lines),
            n_withdrawn: shown.n_withdrawn,
            n_requests: attempts,
        };
        let allowed = self.case.expected(cut);
        assert!(allowed.contains(&found), "{place}: {found:#?}, not {allowed:#?}");
        assert_eq!(n_runs, found.ran.len(), "{place}: a tool ran that nobody knows of");
        for (answer, shown) in found.answers.iter().zip(&shown.answers) {
            check_shown(answer, shown, &place);
        }
        assert_eq!(found.answers.len(), shown.answers.len(), "{place}");
        remove(file);
        attempts
    }
}

/// The content of the answers in a transcript.
fn answers(lines: &[Value]) -> Vec<Value> {
    let answers = lines.iter().filter(|it| it["type"] == "assistant");
    answers.map(|it| it["message"]["content"].clone()).collect()
}

/// The calls that were begun.
fn started(lines: &[Value]) -> Vec<String> {
    let started = lines.iter().filter(|it| it["kind"] == "tool_intent");
    started.map(|it| it["call"].as_str().unwrap().to_owned()).collect()
}

/// What stood on the screen is the text of the answer. Texts of several blocks come in the order
/// in which they were said, which need not be that of the blocks.
#[track_caller]
fn check_shown(answer: &Value, shown: &str, place: &str) {
    let blocks = answer.as_array().unwrap();
    let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars.sort_unstable();
        chars
    };
    match texts.as_slice() {
        [text] => assert!(*text == shown, "{place}: shown is {shown}"),
        texts => assert!(sorted(&texts.concat()) == sorted(shown), "{place}: shown is {shown}"),
    }
}

fn remove(transcript: &Path) {
    fs::remove_file(transcript).unwrap();
    for beside in [transcript.with_extension(""), transcript.with_extension("lock")] {
        let _was_there = fs::remove_dir_all(&beside).or_else(|_| fs::remove_file(&beside));
    }
}

fn counting(name: &str, runs: Runs) -> Arc<dyn Tool> {
    let tool = CustomTool::raw(name, "Counts.", r#"{"type":"object"}"#, move |_, context| {
        *runs.lock().unwrap().entry(context.session).or_default() += 1;
        async { ToolOutcome::ok("ran") }
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

/// Serves the stream up to the place that the prompt names, once for each prompt.
fn playbook(case: &Case) -> Playbook {
    let cut = |ending: Ending, action: &str| {
        format!(
            r#"
[[rule]]
name = "cut, {ending:?}"
when = {{ prompt = "{ending:?}", answers = 0 }}
faults = [{{ status = 200, body_file = "stream", content_type = "text/event-stream", action = "{action}", at = "prompt|number" }}]
"#
        )
    };
    let whole = format!(
        r#"
[[rule]]
name = "whole"
when = {{ prompt = "{:?}", answers = 0, stream = false }}
faults = [{{ status = 200, body_file = "whole" }}]
"#,
        Ending::Proper
    );
    let rest = format!(
        r#"
[[rule]]
name = "recovered"
when.answers = 0
reply = [{{ text = "{RECOVERED}" }}]
[[rule]]
name = "done"
reply = [{{ text = "{DONE}" }}]
"#
    );
    let body = case.body();
    let whole = if body.is_some() { whole } else { String::new() };
    let text = [cut(Ending::Proper, "end"), cut(Ending::Reset, "reset"), whole, rest].concat();
    let file = |name: &str| match name {
        "stream" => Ok(case.bytes.to_vec()),
        "whole" => body.clone().ok_or_else(|| "there is no message".to_owned()),
        other => Err(format!("what is {other}")),
    };
    Playbook::parse_with(&text, &case.name, file).unwrap()
}
