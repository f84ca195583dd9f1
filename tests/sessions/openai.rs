//! Whole sessions over a real socket with servers that speak the formats of OpenAI, and a
//! conversation that moves between providers.

use std::sync::Arc;

use ennead::{
    Endpoint, Ennead, Event, Options, Placement, RunEnd, RunOutcome, SessionOptions,
    internal::{RequestLog, Simulator},
    testing::Playbook,
    transcript,
};
use ennead_command::simulate;
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::support::{
    record,
    scripted::{SESSION, TestDirs, finish, until_end},
};

/// Reads and searches, writes what was found, and says so. The key is `right`.
const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "recall"
when.prompt = "recall"
reply = [{ text = "{{ turns }} answers before, first asked: {{ first_prompt }}" }]

[[rule]]
name = "done"
when.answers = { min = 2 }
reply = [{ thinking = "All done." }, { text = "written: {{ result }}" }]

[[rule]]
name = "write"
when.answers = 1
delta = 5
reply = [
  { thinking = "Now I write." },
  { text = "Writing." },
  { tool = "Write", input = { file_path = "new.txt", content = "saw {{ 'the first line' in result }}" } },
]

[[rule]]
name = "read"
delta = 7
reply = [
  { thinking = "I look first." },
  { text = "I look: é." },
  { tool = "Read", input = { file_path = "a.txt" } },
  { tool = "Glob", input = { pattern = "*.txt" } },
]
usage = { input_tokens = 20, cache_read_input_tokens = 100, output_tokens = 7 }
"#;

/// The simulated model on a port of its own.
struct SimulatorServer {
    simulator: Arc<Simulator>,
    base: String,
    shutdown: CancellationToken,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl SimulatorServer {
    async fn start(playbook: &str) -> Self {
        let simulator = Simulator::new(Playbook::parse(playbook, "test").unwrap());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(simulate::serve(simulator.clone(), listener, shutdown.clone()));
        Self { simulator, base, shutdown, serving }
    }

    fn endpoint(&self, kind: Kind) -> Endpoint {
        let make = match kind {
            Kind::Messages => Endpoint::messages,
            Kind::Chat => Endpoint::openai_chat,
            Kind::Responses => Endpoint::openai_responses,
        };
        make(&self.base, Some("right"))
    }

    async fn stop(self) -> RequestLog {
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        self.simulator.log()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Messages,
    Chat,
    Responses,
}

fn options(place: &TestDirs, endpoint: Endpoint) -> SessionOptions {
    let options = place.session().endpoint(endpoint);
    options.allow("Write").unwrap().allow("Read").unwrap().allow("Glob").unwrap().model("m-1")
}

/// Runs one prompt in a process of its own, as it were.
async fn run(place: &TestDirs, options: SessionOptions, prompt: &str) -> (RunOutcome, Vec<Event>) {
    let started =
        Options::default().placement(Placement::Ambient).seed(7).clock(place.clock.clone());
    let ennead = Ennead::start(started).await.unwrap();
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    let outcome = session.prompt(prompt).await.unwrap();
    let seen = until_end(&mut events).await;
    finish(ennead, session).await;
    (outcome, seen)
}

/// The product's own check, the replay of every turn included.
#[track_caller]
fn check_transcript(place: &TestDirs) {
    let file = place.path(&format!("transcripts/{SESSION}.jsonl"));
    transcript::verify(&file).unwrap_or_else(|error| panic!("{error}"));
}

fn shown(seen: &[Event]) -> (String, String, usize) {
    let (mut text, mut reasoning, mut n_previews) = (String::new(), String::new(), 0);
    for event in seen {
        match event {
            Event::TextDelta { text: more, .. } => text.push_str(more),
            Event::ReasoningDelta { text: more, .. } => reasoning.push_str(more),
            Event::ToolInputPreview { .. } => n_previews += 1,
            _ => {}
        }
    }
    (text, reasoning, n_previews)
}

async fn check_session(kind: Kind, streams: bool) {
    let server = SimulatorServer::start(PLAYBOOK).await;
    let place = TestDirs::new();
    place.write("workspace/a.txt", "the first line\n");
    let options = options(&place, server.endpoint(kind)).streams(streams);
    let (outcome, seen) = run(&place, options, "go").await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools, "{outcome:?}");
    assert_eq!(outcome.turns, 3);
    assert!(outcome.text.starts_with("written: "), "{}", outcome.text);
    assert_eq!(place.read("workspace/new.txt"), "saw True", "the model read what Read gave");
    assert_eq!(outcome.usage.cache_read_input_tokens, 100);
    let (text, reasoning, n_previews) = shown(&seen);
    assert!(text.starts_with("I look: é.Writing.written: "), "{text}");
    if streams {
        assert_eq!(reasoning, "I look first.Now I write.All done.");
        assert!(2 < n_previews);
    }
    check_transcript(&place);
    let log = server.stop().await;
    let answered: Vec<(&str, u16)> =
        log.requests.iter().map(|it| (it.rule.as_deref().unwrap_or(""), it.status)).collect();
    assert_eq!(answered, [("read", 200), ("write", 200), ("done", 200)]);
    let path = if kind == Kind::Chat { "/v1/chat/completions" } else { "/v1/responses" };
    assert!(log.requests.iter().all(|it| it.path == path), "{log:?}");
    let has_items = place.lines().iter().any(|it| it.to_string().contains("openai_item"));
    assert_eq!(has_items, kind == Kind::Responses, "reasoning is kept where it goes back");
}

// REQ: MDL-8, MDL-2
#[tokio::test]
async fn session_runs_on_chat_completions() {
    check_session(Kind::Chat, true).await;
    check_session(Kind::Chat, false).await;
}

// REQ: MDL-8, MDL-2
#[tokio::test]
async fn session_runs_on_the_responses_api() {
    check_session(Kind::Responses, true).await;
    check_session(Kind::Responses, false).await;
}

// REQ: MDL-8
#[tokio::test]
async fn conversation_moves_from_provider_to_provider_and_back() {
    let server = SimulatorServer::start(PLAYBOOK).await;
    let place = TestDirs::new();
    place.write("workspace/a.txt", "the first line\n");
    let way = [Kind::Messages, Kind::Chat, Kind::Responses, Kind::Messages, Kind::Responses];
    for (n, kind) in way.into_iter().enumerate() {
        let options = options(&place, server.endpoint(kind));
        let prompt = format!("go {n}");
        let (outcome, _) = run(&place, options.clone(), &prompt).await;
        assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 3), "{kind:?}");
        let (outcome, _) = run(&place, options, "recall").await;
        // Three answers to each prompt before, and one to each question what it knows.
        let expected = format!("{} answers before, first asked: go 0", 4 * n + 3);
        assert!(outcome.text.starts_with(&expected), "{kind:?}: {}", outcome.text);
        check_transcript(&place);
    }
    let log = server.stop().await;
    // Whatever a provider said, no other was sent what it would refuse.
    assert!(log.requests.iter().all(|it| it.status == 200), "{log:?}");
    let kinds: Vec<Value> = place
        .lines()
        .iter()
        .filter(|it| it["type"] == "assistant")
        .flat_map(|it| it["message"]["content"].as_array().cloned().unwrap_or_default())
        .map(|it| it["type"].clone())
        .collect();
    for kind in ["thinking", "openai_item", "text", "tool_use"] {
        assert!(kinds.contains(&kind.into()), "{kind} in {kinds:?}");
    }
}

/// Prompts of a long conversation, and bytes of each.
const LONG: (usize, usize) = (10, 30_000);

// REQ: MDL-8, CTX-7
#[tokio::test]
async fn long_conversation_is_one_request_to_a_server_however_it_is_sent() {
    const NOTES: &str = "[[rule]]\nname = \"notes\"\nreply = [{ text = \"noted {{ turns }}\" }]\n";
    for kind in [Kind::Messages, Kind::Chat, Kind::Responses] {
        let server = SimulatorServer::start(NOTES).await;
        let place = TestDirs::new();
        let started = Options::default().placement(Placement::Ambient);
        let ennead = Ennead::start(started).await.unwrap();
        let session = ennead.open(options(&place, server.endpoint(kind))).await.unwrap();
        for n in 0..LONG.0 {
            let prompt = format!("{n}: {}", "é\" ".repeat(LONG.1 / 4));
            let outcome = session.prompt(&*prompt).await.unwrap();
            assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 1), "{kind:?}");
        }
        let attempts = record::records(session.transcript()).into_iter().filter_map(|it| {
            let RecordKind::ModelAttempt { request_bytes, .. } = it.what else { return None };
            Some((request_bytes, 200))
        });
        let attempts: Vec<_> = attempts.collect();
        finish(ennead, session).await;
        check_transcript(&place);
        let came = server.stop().await.requests;
        let came: Vec<_> = came.iter().map(|it| (it.n_bytes as u64, it.status)).collect();
        assert_eq!(came, attempts, "{kind:?}");
        let n_least = (LONG.0 * LONG.1) as u64;
        assert!(came.last().is_some_and(|it| n_least < it.0), "{came:?}");
    }
}

// REQ: MDL-8, MDL-10
#[tokio::test]
async fn refusals_of_a_server_end_the_run_with_their_class() {
    const REFUSES: &str = r#"
key = "right"
[[rule]]
name = "quota"
when.prompt = "quota"
fault = { status = 429, error = "insufficient_quota", message = "Nothing left" }
[[rule]]
name = "long"
when.prompt = "long"
fault = { status = 400, error = "context_length_exceeded", message = "Too much" }
"#;
    let server = SimulatorServer::start(REFUSES).await;
    for (kind, prompt, error) in [
        (Kind::Chat, "quota", "quota: Nothing left"),
        (Kind::Responses, "quota", "quota: Nothing left"),
        (Kind::Chat, "long", "context_overflow: Too much"),
        (Kind::Responses, "none", "invalid_request: playbook test: no rule"),
    ] {
        let place = TestDirs::new();
        let options = options(&place, server.endpoint(kind)).isolated();
        let (outcome, _) = run(&place, options, prompt).await;
        let failure = outcome.error.unwrap_or_default();
        let (class, words) = error.split_once(' ').unwrap();
        // Between them are the address and the status.
        assert!(failure.starts_with(class) && failure.contains(&format!(": {words}")), "{failure}");
        check_transcript(&place);
    }
    let place = TestDirs::new();
    let wrong = Endpoint::openai_chat(&server.base, Some("wrong"));
    let (outcome, _) = run(&place, options(&place, wrong).isolated(), "hi").await;
    assert!(outcome.error.unwrap_or_default().starts_with("auth: "));
    server.stop().await;
}
