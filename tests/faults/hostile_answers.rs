//! Answers that are made to cost: from the socket to the tool, and back out of the transcript.
//!
//! Work must be linear in what comes. That cannot be timed on a machine that others use, so each answer
//! is so long that a step for every pair of its bytes, events or blocks would take hours, and the test
//! ends after two minutes. Meanwhile another session on the same thread answers prompt after prompt.

mod wire;

use std::{
    sync::{Arc, Mutex},
    thread::ThreadId,
    time::Duration,
};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, SessionHandle, SessionOptions,
    permission::Permit,
    settings::Durability,
    tool::{Access, BoxFuture, CustomTool, Tool, ToolContext, ToolOutcome, ToolSpec},
};
use ennead_runtime::transcript::replay::replay;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use self::wire::{AnswerPart, Wire, call, text};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    model_server::{ModelServer, Reply, letting_through},
    record,
};

/// Nothing that is linear takes as long.
const HANGS: Duration = Duration::from_secs(120);

/// Brackets, commas, escapes.
const MANY: usize = 600_000;

/// The prompt that is answered with the attack.
const ATTACK: &str = "attack";

async fn open(ennead: &Ennead, place: &TempDir, endpoint: Endpoint) -> SessionHandle {
    let echo =
        CustomTool::raw("echo", "Measures.", r#"{"type":"object"}"#, |input, _| async move {
            ToolOutcome::ok(format!("{} bytes", input.len()))
        });
    let hook = json!([{"hooks": [{"type": "command", "command": "cat > /dev/null"}]}]);
    let options = SessionOptions::new(place.path(), endpoint)
        .isolated()
        .home(place.path())
        .tools(vec![Arc::new(echo.access(Access::Free).build().unwrap())]);
    let options = options.model("hostile").durability(Durability::Process);
    let options = options.setting("hooks", json!({ "PreToolUse": hook }));
    // What comes fits the window, so nothing is summed up.
    let facts = json!({ "models": { "hostile": { "window": 100_000_000 } } });
    let options = options.own_setting("catalogue", facts).own_setting("maxRetries", json!(0));
    ennead.open(options).await.unwrap()
}

/// Sends this answer. The run ends well; what the model asked for was run, or refused with a reason.
async fn check(wire: Wire, parts: impl IntoIterator<Item = AnswerPart>) {
    check_ends(wire, parts, (RunEnd::NoPendingTools, "done"), 2).await;
}

/// The same, with how it ends after how many turns.
async fn check_ends(
    wire: Wire,
    parts: impl IntoIterator<Item = AnswerPart>,
    end: (RunEnd, &str),
    n_turns: u64,
) {
    let answer = Reply::bytes(wire.stream(parts), wire.content_type());
    check_reply(wire, answer, end, n_turns).await;
}

/// Sends this reply to the first request of the session that is attacked, for as long as it asks for a
/// stream.
async fn check_reply(wire: Wire, reply: Reply, end: (RunEnd, &str), n_turns: u64) {
    let done = wire.stream([text("done")]);
    let server = ModelServer::start(move |ask| {
        let has_result = ["tool_result", "function_call_output", r#""role":"tool""#];
        match ask.text.contains(ATTACK) && !has_result.iter().any(|it| ask.text.contains(it)) {
            true if ask.streamed() || wire == Wire::Bedrock => reply.clone(),
            true => Reply::error(400, "invalid_request_error", "no"),
            false => Reply::bytes(done.clone(), wire.content_type()),
        }
    })
    .await;
    let place = TempDir::new().unwrap();
    let options = Options::default().placement(Placement::Threads(1)).governor(letting_through());
    let ennead = Ennead::start(options).await.unwrap();
    let hostile = open(&ennead, &place, wire.endpoint(server.address())).await;
    let other = open(&ennead, &place, wire.endpoint(server.address())).await;
    let run = async {
        let mut run = std::pin::pin!(hostile.prompt(ATTACK));
        loop {
            tokio::select! {
                outcome = &mut run => break outcome.unwrap(),
                outcome = other.prompt("go") => {
                    assert_eq!(outcome.unwrap().end, RunEnd::NoPendingTools);
                }
            }
        }
    };
    let outcome = timeout(HANGS, run).await.expect("the run hangs");
    assert_eq!((outcome.end, outcome.text.as_str()), end);
    hostile.close().await;
    let transcript = hostile.transcript().to_owned();
    let again = tokio::task::spawn_blocking(move || {
        record::verified(&transcript);
        let stored = transcript.with_extension("");
        let stored =
            |digest| std::fs::read_to_string(stored.join(format!("stored/{digest}.txt"))).ok();
        replay(&std::fs::read(&transcript).unwrap(), &stored).unwrap().turns
    });
    assert_eq!(timeout(HANGS, again).await.expect("the replay hangs").unwrap(), n_turns);
    ennead.shutdown().await;
}

/// All inputs of calls that are made to cost.
async fn inputs(wire: Wire, many: usize) {
    let one = |pieces: &[&str]| check(wire, [call(pieces)]);
    one(&["{\"a\":", &"[".repeat(many / 2), &"]".repeat(many / 2), "}"]).await;
    one(&[&"{\"a\":[".repeat(many / 4), &"]}".repeat(many / 4)]).await;
    one(&["{\"a\":[", &"1,".repeat(many), "1]}"]).await;
    one(&["{\"a\":\"", &"\\u00e9\\\\\\\"".repeat(many / 4), "\"}"]).await;
}

/// Many of everything that there can be many of.
async fn many_parts(wire: Wire, many: usize) {
    let mut pieces = vec!["{\"a\":["];
    pieces.extend(["1", ","].repeat(many / 12));
    pieces.push("1]}");
    check(wire, [call(&pieces)]).await;
    let texts = (0..many / 150).map(|n| text(&n.to_string()));
    check(wire, texts.chain([call(&["{}"])])).await;
    // Nearly all are refused as too many, which is an end of its own.
    let calls = (0..many / 150).map(|_| call(&["{\"n\":1}"]));
    check_ends(wire, calls, (RunEnd::NoProgress, ""), 1).await;
}

/// What is one piece, and large; and what never ends.
async fn giants(wire: Wire) {
    let words = "words and \"quotes\" ".repeat(200_000);
    check(wire, [text(&words), call(&["{}"])]).await;
    let failed = (RunEnd::Error, "");
    let message = format!(r#"{{"error":{{"type":"x","message":"{}"}}}}"#, "n[o".repeat(4_000_000));
    check_reply(wire, Reply::body(400, &message), failed, 1).await;
    // The rest never comes, and is not waited for.
    check_reply(wire, Reply::body(400, &message).stall(), failed, 1).await;
    let nested = format!(r#"{{"error":{}"#, "[".repeat(10_000_000));
    check_reply(wire, Reply::body(400, &nested), failed, 1).await;
    let flood = Reply::bytes(wire.stream([text("done")]), wire.content_type());
    let flood = (0..50_000).fold(flood, |it, _| it.header("x-flood", "0123456789"));
    check_reply(wire, flood, failed, 1).await;
    let endless = Reply::bytes(wire.endless(20 << 20), wire.content_type());
    check_reply(wire, endless, failed, 1).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deeply_nested_inputs_many_commas_and_long_escapes_cost_linear_time() {
    inputs(Wire::Messages, MANY).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tiny_deltas_blocks_and_calls_cost_linear_time() {
    many_parts(Wire::Messages, MANY).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giant_events_errors_and_heads_and_lines_without_end_cost_linear_time() {
    giants(Wire::Messages).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_of_bedrock_cost_linear_time() {
    inputs(Wire::Bedrock, MANY / 3).await;
    many_parts(Wire::Bedrock, MANY / 2).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giants_of_bedrock_cost_linear_time() {
    giants(Wire::Bedrock).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_of_chat_completions_cost_linear_time() {
    inputs(Wire::Chat, MANY / 3).await;
    many_parts(Wire::Chat, MANY / 2).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giants_of_chat_completions_cost_linear_time() {
    giants(Wire::Chat).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_of_the_responses_api_cost_linear_time() {
    inputs(Wire::Responses, MANY / 3).await;
    many_parts(Wire::Responses, MANY / 2).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giants_of_the_responses_api_cost_linear_time() {
    giants(Wire::Responses).await;
}

/// Notes on which thread it checks its inputs, and crashes over those that say so.
#[derive(Debug)]
struct Checked {
    tool: CustomTool,
    threads: Arc<Mutex<Vec<(usize, ThreadId)>>>,
}

impl Tool for Checked {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.threads.lock().unwrap().push((input.len(), std::thread::current().id()));
        assert!(!input.contains("crash"), "as it was asked to");
        self.tool.check_input(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        self.tool.run(permit, context)
    }
}

// REQ: TOL-1
#[test]
fn large_inputs_are_checked_apart_from_the_thread_of_the_sessions_and_a_crash_is_an_answer() {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let run = async |input: String| {
        let stream = Wire::Messages.stream([call(&[&input])]);
        let server = ModelServer::start(move |ask| {
            if ask.text.contains("tool_result") {
                Reply::text(if ask.text.contains("check of the input crashed") {
                    "crashed"
                } else {
                    "done"
                })
            } else {
                Reply::bytes(stream.clone(), Wire::Messages.content_type())
            }
        })
        .await;
        let place = TempDir::new().unwrap();
        let options = Options::default().placement(Placement::Ambient);
        let ennead = Ennead::start(options).await.unwrap();
        let tool = CustomTool::raw("echo", "x", r#"{"type":"object"}"#, |_, _| async {
            ToolOutcome::ok("x")
        });
        let tool = tool.access(Access::Free).build().unwrap();
        let endpoint = Wire::Messages.endpoint(server.address());
        let options = SessionOptions::new(place.path(), endpoint)
            .isolated()
            .home(place.path())
            .tools(vec![Arc::new(Checked { tool, threads: Arc::clone(&threads) })]);
        let session = ennead.open(options).await.unwrap();
        let outcome = timeout(HANGS, session.prompt("go")).await.unwrap().unwrap();
        ennead.shutdown().await;
        outcome.text
    };
    // A runtime of one thread is the thread of the sessions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let large = "x".repeat(100_000);
    let texts = runtime.block_on(async {
        let small = run(r#"{"a":1}"#.into()).await;
        let big = run(format!(r#"{{"a":"{large}"}}"#)).await;
        let crash = run(format!(r#"{{"crash":"{large}"}}"#)).await;
        [small, big, crash]
    });
    assert_eq!(texts, ["done", "done", "crashed"]);
    let threads = threads.lock().unwrap();
    let is_apart: Vec<bool> =
        threads.iter().map(|(_, thread)| *thread != std::thread::current().id()).collect();
    assert_eq!(is_apart, [false, true, true]);
}
