//! The library as an embedder has it: what a run leaves, one way for all who ask, no command.

use std::{
    fs,
    process::Command,
    sync::{Arc, Mutex},
};

use ennead::{
    Ennead, Environment, RunEnd, SessionId,
    data::MessageKind,
    tool::{CustomTool, Tool},
};
use futures::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::scripted::{TestDirs, call, calls, finish, model, refusal, says, text};

/// What is added.
#[derive(Deserialize, JsonSchema)]
struct Terms {
    a: i64,
    b: i64,
}

// REQ: SUR-1
#[tokio::test]
async fn embedder_adds_tools_as_typed_functions_and_as_closures() {
    let place = TestDirs::new();
    let sum = CustomTool::typed("sum", "Adds.", |terms: Terms, _| async move {
        Ok::<_, String>((terms.a + terms.b).to_string())
    });
    let schema = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
    let hour = CustomTool::raw("hour", "Tells the hour.", schema, |_, _| async {
        ennead_runtime::tool::ToolOutcome::ok("noon")
    });
    let tools: [Arc<dyn Tool>; 2] =
        [Arc::new(sum.build().unwrap()), Arc::new(hour.build().unwrap())];
    let model = says(vec![
        calls(&[("s", "sum", json!({"a": 2, "b": 3})), ("h", "hour", json!({}))]),
        text("done"),
    ]);
    let [sum, hour] = tools;
    let options = place.session().tool(sum).tool(hour).allow("sum").unwrap().allow("hour").unwrap();
    let outcome = place.run(&model, options).await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let last = model.last();
    assert_eq!((last.result("s"), last.result("h")), ("5".into(), "noon".into()));
}

// REQ: SUR-1
#[tokio::test]
async fn temporary_files_are_where_the_environment_of_the_embedder_says() {
    for (is_there, said) in [(true, "done"), (false, "Cannot make a temporary file")] {
        let place = TestDirs::new();
        let temporary = place.path("temporary");
        if is_there {
            fs::create_dir(&temporary).unwrap();
        }
        let script = says(vec![calls(&[("b", "Bash", json!({"command": "echo done"}))]), text("")]);
        let environment = Environment::empty().with("TMPDIR", temporary.into_os_string());
        let options = place.options(&script).environment(environment);
        let ennead = Ennead::start(options).await.unwrap();
        let session = ennead.open(place.session().allow("Bash").unwrap()).await.unwrap();
        session.prompt("go").await.unwrap();
        let result = script.last().result("b");
        assert!(result.starts_with(said), "{result}");
        finish(ennead, session).await;
    }
}

// REQ: SUR-1
#[test]
fn library_needs_nothing_of_the_command() {
    let manifest =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    for name in ["clap", "tikv-jemallocator", "tracing-subscriber"] {
        assert!(manifest["dependencies"].get(name).is_none(), "{name}");
    }
    // The server is for those who ask for it.
    let on = manifest["features"]["default"].as_array().unwrap();
    assert!(!on.iter().any(|it| it.as_str() == Some("serve")));
    for name in ["axum", "hyper", "hyper-util", "utoipa"] {
        let optional = manifest["dependencies"][name].get("optional");
        assert_eq!(optional.and_then(toml::Value::as_bool), Some(true), "{name}");
    }
    let shown = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/embed.rs"));
    let shown = shown.unwrap();
    let body = shown.split_once("fn main").unwrap().1;
    let statements = body.lines().filter(|it| it.ends_with(';')).count();
    assert!(statements <= 10, "an agent in ten lines, not {statements}");
}

// REQ: SUR-1
#[tokio::test]
async fn run_that_failed_is_an_error_with_its_reason_and_one_that_did_not_is_its_answer() {
    let place = TestDirs::new();
    let model = says(vec![text("a \u{1b}[31mred\u{1b}[0m word"), refusal(401)]);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let answer = session.prompt("go").await.unwrap().into_answer().unwrap();
    assert_eq!(answer.text, "a \u{1b}[31mred\u{1b}[0m word");
    assert_eq!((answer.to_string(), answer.outcome.turns), ("a red word".into(), 1));
    let failed = session.prompt("on").await.unwrap().into_answer().unwrap_err();
    finish(ennead, session).await;
    assert_eq!(failed.reason, RunEnd::Error);
    assert!(failed.message.starts_with("auth: "), "{}", failed.message);
    assert_eq!(failed.to_string(), format!("the run failed (error): {}", failed.message));
    // This is what `main` shows of it.
    let shown = format!("{failed:?}");
    assert!(shown.contains(&failed.message) && shown.len() < 500, "{shown}");
    assert_eq!(failed.outcome.messages[0].text(), "on");
}

// REQ: SUR-1
#[test]
fn what_embedders_copy_ends_with_an_error_when_the_run_failed() {
    let files = ["README.md", "examples/embed.rs", "examples/custom_tool.rs"];
    for file in [&files[..], &["examples/sub_agents.rs", "examples/many_sessions.rs"]].concat() {
        let text =
            fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(text.contains("into_answer"), "{file}");
        assert!(!text.contains(".await?.text"), "{file} takes the text of a run that failed");
    }
}

// REQ: TRN-9
#[tokio::test]
async fn outcome_says_what_the_transcript_says() {
    let place = TestDirs::new();
    let answers = vec![
        calls(&[
            ("w", "Write", json!({"file_path": "/x", "content": "x"})),
            ("g", "Glob", json!({"pattern": "*"})),
        ]),
        text("first"),
        text("second"),
    ];
    let model = says(answers);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let first = session.prompt("go").await.unwrap();
    let second = session.prompt("on").await.unwrap();
    finish(ennead, session).await;

    assert_eq!((first.text.as_str(), first.turns, first.end), ("first", 2, RunEnd::NoPendingTools));
    let kinds: Vec<_> = first.messages.iter().map(|it| it.kind).collect();
    use MessageKind::{Answer, Prompt, ToolResults};
    assert_eq!(kinds, [Prompt, Answer, ToolResults, ToolResults, Answer]);
    let denied: Vec<_> =
        first.denials.iter().map(|it| (it.call.as_str(), it.tool.as_str())).collect();
    assert_eq!(denied, [("w", "Write")]);
    assert_eq!(first.session_usage, first.usage);
    assert_eq!(second.session_usage, first.usage + second.usage);
    assert!(first.compactions.is_empty() && first.error.is_none());

    let lines = place.lines();
    let ends: Vec<&Value> = lines.iter().filter(|it| it["kind"] == "run_end").collect();
    for (outcome, end) in [&first, &second].into_iter().zip(ends) {
        assert_eq!(end["run"], outcome.run.as_str());
        assert_eq!(end["reason"], outcome.end.code());
        assert_eq!(end["turns"], outcome.turns);
        assert_eq!(end["usage"], serde_json::to_value(outcome.usage).unwrap());
        assert_eq!(end["hash"], outcome.head.unwrap().to_string());
    }
}

/// What the harness did, without what differs from session to session.
fn story(lines: &[Value]) -> Vec<String> {
    let name = |line: &Value| match line["type"].as_str() {
        Some("ennead") => format!("{} {}", line["kind"], line["step"]),
        other => other.unwrap_or_default().to_owned(),
    };
    lines.iter().map(name).collect()
}

// REQ: TRN-10
#[tokio::test]
async fn library_command_and_sub_agent_walk_the_same_way() {
    let place = TestDirs::new();
    let asks = json!({"description": "say", "prompt": "Hello! Who are you?"});
    let model = model(move |asked| match (asked.is_agent(), asked.n_answers()) {
        (false, 0) => call("a", "Agent", asks.clone()),
        _ => text("hello"),
    });
    place.run(&model, place.session()).await;
    let of_agent = crate::support::scripted::lines(&place.sidechains()[0]);

    let alone = TestDirs::new();
    alone.run(&says(vec![text("hello")]), alone.session()).await;
    let of_library = alone.lines();

    let printed = TestDirs::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ennead"));
    command
        .args(["-p", "Hello! Who are you?", "--transcripts", "transcripts"])
        .current_dir(printed.path("."))
        .env("HOME", printed.path("home"))
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_AUTH_TOKEN")
        .env_remove("ANTHROPIC_BASE_URL");
    assert!(command.output().unwrap().status.success());
    let mut files = fs::read_dir(printed.path("transcripts")).unwrap().flatten();
    let file = files.find(|it| it.path().extension().is_some_and(|it| it == "jsonl")).unwrap();
    let of_command = crate::support::scripted::lines(&file.path());

    assert_eq!(story(&of_agent), story(&of_library));
    assert_eq!(story(&of_command), story(&of_library));
}

// REQ: TRN-3, SES-4
#[tokio::test]
async fn second_run_of_a_session_with_few_tools_is_verified_like_the_first() {
    for n_tools in [0, 1, 8] {
        let place = TestDirs::new();
        let model = says(vec![text("first"), text("second")]);
        let ennead = place.start(&model).await;
        let mut options = place.session();
        options.tools.truncate(n_tools);
        let session = ennead.open(options).await.unwrap();
        session.prompt("go").await.unwrap();
        session.prompt("on").await.unwrap();
        let file = session.transcript().to_owned();
        finish(ennead, session).await;
        let checked = ennead::transcript::verify(&file);
        let checked = checked.unwrap_or_else(|error| panic!("{n_tools} tools: {error}"));
        assert_eq!(checked[0].verified.runs, 2);
    }
}

// REQ: RUN-3
#[tokio::test]
async fn of_a_burst_the_first_sessions_are_at_work_before_the_last_are_opened() {
    let place = TestDirs::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let asked = log.clone();
    let model = model(move |_| {
        asked.lock().unwrap().push("asked");
        text("done")
    });
    let ennead = Ennead::start(place.options(&model)).await.unwrap();
    let twice: SessionId = "01000000-0000-7000-8000-000000000000".into();
    let sessions = (0..100).map(|i| {
        let mut options = place.session();
        // Openings that fail give their places back.
        options.id = (i % 2 == 0).then(|| twice.clone());
        let (ennead, log) = (&ennead, &log);
        async move {
            let opened = ennead.open(options).await;
            log.lock().unwrap().push("opened");
            match opened {
                Ok(session) => Some(session.prompt("go").await.unwrap().text),
                Err(_) => None,
            }
        }
    });
    let other: Vec<_> = join_all(sessions).await.into_iter().flatten().collect();
    assert_eq!(other, vec!["done"; 51]);
    let log = log.lock().unwrap();
    let first_asked = log.iter().position(|it| *it == "asked").unwrap();
    let last_opened = log.iter().rposition(|it| *it == "opened").unwrap();
    assert!(first_asked < last_opened / 2, "{first_asked}, {last_opened}");
}
