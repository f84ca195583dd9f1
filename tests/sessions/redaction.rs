//! Secrets that are planted wherever a text can come from, looked for wherever one goes.

use std::{fs, path::Path, sync::Arc};

use ennead::{
    Environment, Event, RunOutcome,
    permission::PermissionMode,
    tool::{Access, CustomTool, ToolOutcome},
};
use ennead_runtime::{
    ports::Progress,
    transcript::replay::{ReplayError, Replayed, replay},
};
use serde_json::{Value, json};

use crate::support::{
    record,
    scripted::{SESSION, Scripted, TestDirs, call, calls, finish, model, text, until_end},
    settings::SettingsJson as _,
    until::until,
};

/// The value of a variable that only the harness has.
const HIDDEN: &str = "kept-from-children-0";
/// The value of a variable that commands get.
const SHARED: &str = "given \"to\" children-1";

/// Secrets of many shapes, and what of each must be found nowhere. They are put together here, so
/// that no search for secrets takes this file for one that has some.
pub(super) fn secrets() -> Vec<(String, String)> {
    let whole = |it: String| (it.clone(), it);
    let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    let key =
        format!("{}{}", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj");
    let dashes = "-".repeat(5);
    vec![
        whole(format!("ghp_{letters}")),
        whole(format!("glpat-{}", &letters[..20].replace('t', "5"))),
        whole(format!("sk-ant-api03-{letters}")),
        whole(format!("sk-proj-{letters}")),
        whole(format!("AKIA{}", "Q3EGAB7CDXYZ2345")),
        whole(format!("AIza{}", &letters.to_uppercase()[1..])),
        whole(format!("xoxb-1234567890-{letters}")),
        whole(format!("sk_live_{letters}")),
        whole(format!("npm_{letters}")),
        whole(format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{letters}")),
        (format!("postgres://me:pass-{}@db/x", &letters[..9]), format!("pass-{}", &letters[..9])),
        (format!("Authorization: Bearer tok{letters}"), format!("tok{letters}")),
        (
            format!(
                "{dashes}BEGIN PRIVATE KEY{dashes}\n{key}\nabcd==\n{dashes}END PRIVATE KEY{dashes}"
            ),
            key,
        ),
        whole(HIDDEN.into()),
        whole(SHARED.into()),
    ]
}

/// All of them in one text.
pub(super) fn planted() -> String {
    secrets().into_iter().map(|it| it.0 + " .\n").collect()
}

/// Fails when a text holds a secret, as it is or as JSON writes it.
#[track_caller]
fn check(place: &str, text: &str) {
    for (_, needle) in secrets() {
        let quoted = json!(needle).to_string();
        for needle in [&needle[..], quoted.trim_matches('"')] {
            let at = text.find(needle);
            let around = at.map(|at| text[..at + needle.len()].chars().rev().take(200).collect());
            let around: String = around.unwrap_or_default();
            assert!(at.is_none(), "{place}: …{}", around.chars().rev().collect::<String>());
        }
    }
}

/// Looks into every file below a directory. Returns how many there are.
pub(super) fn check_files(directory: &Path) -> usize {
    let mut n_files = 0;
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            n_files += check_files(&path);
        } else {
            check(&path.display().to_string(), &String::from_utf8_lossy(&fs::read(&path).unwrap()));
            n_files += 1;
        }
    }
    n_files
}

/// What a run left.
pub(super) struct Left {
    pub(super) place: TestDirs,
    model: Arc<Scripted>,
    outcome: RunOutcome,
    events_seen: Vec<Event>,
}

/// Runs a session in which secrets come from everywhere.
async fn run(shows_model: bool) -> Left {
    run_with(json!({"variables": ["SHARED"], "model": !shows_model})).await
}

/// The same with these settings of redaction.
pub(super) async fn run_with(redact: Value) -> Left {
    let place = TestDirs::new();
    place.write("workspace/secrets.txt", &planted());
    place.write("workspace/CLAUDE.md", &format!("Be kind.\n{}", planted()));
    place.write("workspace/long.txt", &format!("{}{}", "x y z\n".repeat(9000), planted()));
    let hook = place.script(
        "outside/hook.sh",
        &format!("cat {0}; cat {0} >&2", place.text("workspace/secrets.txt")),
    );
    let probe = CustomTool::raw("probe", "", r#"{"type":"object"}"#, |_, context| {
        let text = planted();
        if let Some(progress) = &context.progress {
            progress.report(Progress::new(None, text.replace('\n', " ")));
        }
        async move {
            ToolOutcome::ok(format!("{}{text}", "long ".repeat(9000)))
                .with_structured(&json!({"said": text}))
        }
    });
    let probe = probe.access(Access::Free).output_cap(Some(20_000)).build().unwrap();
    let script = model(|asked| {
        let prompt = format!("look for {}", planted());
        match asked.n_answers() {
            _ if asked.is_agent() => text(&planted()).in_pieces(2),
            0 => calls(&[
                ("a", "Read", json!({"file_path": "secrets.txt"})),
                ("b", "Bash", json!({"command": "cat secrets.txt; echo n=${#SHARED}"})),
                ("c", "Bash", json!({"command": "cat long.txt"})),
                ("d", "probe", json!({})),
                (
                    "e",
                    "Grep",
                    json!({"pattern": ".", "path": "secrets.txt", "output_mode": "content"}),
                ),
            ]),
            1 => calls(&[
                ("f", "Bash", json!({"command": "cat secrets.txt", "run_in_background": true})),
                ("g", "Agent", json!({"description": "d", "prompt": prompt})),
                ("h", "Bash", json!({"command": format!("echo '{}'", planted())})),
                ("i", "Bash", json!({"command": "cat secrets.txt >&2; exit 3"})),
            ]),
            _ => text(&format!("I saw\n{}", planted())),
        }
        .after(&planted())
        .in_pieces(3)
    });
    let environment =
        Environment::empty().with("HIDDEN", HIDDEN).with("PATH", std::env::var("PATH").unwrap());
    let ennead =
        ennead::Ennead::start(place.options(&script).environment(environment)).await.unwrap();
    let hooks = json!({
        "PostToolUse": [{"hooks": [{"type": "command", "command": hook}]}],
        // A command may hold one, too.
        "Stop": [{"hooks": [{"type": "command", "command": format!("echo '{}' > /dev/null", secrets()[0].0)}]}],
    });
    let options = place.session().mode(PermissionMode::BypassPermissions).tool(Arc::new(probe));
    let options = options.setting("env", json!({"SHARED": SHARED, "OTHER": planted()}));
    let own = json!({"secretEnv": ["HIDDEN"], "redact": redact});
    let options = options.setting("hooks", hooks).setting("ennead", own);
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    let outcome = session.prompt(format!("go\n{}", planted())).await.unwrap();
    let events_seen = until_end(&mut events).await;
    until("nothing runs", async || session.status().await.unwrap().shells.is_empty()).await;
    finish(ennead, session).await;
    Left { place, model: script, outcome, events_seen }
}

/// What no setting changes.
pub(super) fn check_outside(left: &Left) {
    let n_files = check_files(&left.place.path("transcripts"));
    assert!(6 < n_files, "{n_files}");
    let (mut deltas, mut n_previews) = (String::new(), 0);
    for event in &left.events_seen {
        check("event", &serde_json::to_string(event).unwrap());
        match event {
            Event::TextDelta { text, .. } => deltas += text,
            Event::ToolInputPreview { .. } => n_previews += 1,
            _ => {}
        }
    }
    check("deltas", &deltas);
    assert!(deltas.contains("I saw\n[secret:github-token:1] .\n"), "{deltas}");
    assert!(0 < n_previews);
    check("outcome", &format!("{:?}", (&left.outcome.text, &left.outcome.messages)));
    record::verified(&left.place.path(&format!("transcripts/{SESSION}.jsonl")));
}

// REQ: SES-8
#[tokio::test]
async fn planted_secrets_are_on_no_disk_in_no_event_and_in_no_request() {
    let left = run(false).await;
    check_outside(&left);
    for asked in left.model.asked() {
        check("request", &asked.body.to_string());
    }
    let last = left.model.last_of_top();
    assert!(last.result("a").contains("[secret:github-token:1]"), "{}", last.result("a"));
    // The command had the value itself.
    assert!(last.result("b").contains(&format!("n={}", SHARED.len())), "{}", last.result("b"));
    assert!(last.system().contains("Be kind") || last.user().contains("Be kind"));
    let replayed = replayed(&left, |bytes| bytes).unwrap();
    assert_eq!((replayed.turns, replayed.up_to_redaction), (3, 0));
}

/// Walks the transcript again, after a change of its bytes.
fn replayed(left: &Left, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Result<Replayed, ReplayError> {
    let transcript = left.place.path(&format!("transcripts/{SESSION}.jsonl"));
    let beside = transcript.with_extension("");
    let stored = |digest| fs::read_to_string(beside.join(format!("stored/{digest}.txt"))).ok();
    replay(&change(fs::read(transcript).unwrap()), &stored)
}

// REQ: SES-8
#[tokio::test]
async fn model_that_may_see_secrets_is_the_only_one_who_does() {
    let left = run(true).await;
    check_outside(&left);
    let last = left.model.last_of_top();
    for (_, needle) in secrets().into_iter().filter(|it| it.1 != HIDDEN) {
        assert!(last.result("a").contains(&needle), "{needle}: {}", last.result("a"));
    }
    let again = replayed(&left, |bytes| bytes).unwrap();
    assert_eq!(again.turns, 3);
    assert!(0 < again.up_to_redaction && again.up_to_redaction < again.lines, "{again:?}");
    // What is not a digest or size of a text is compared as ever.
    let changed = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.replacen(r#""streamed":true"#, r#""streamed":false"#, 1).into_bytes()
    };
    let differs = replayed(&left, changed).unwrap_err();
    assert!(matches!(differs, ReplayError::Differs { .. }), "{differs}");
}

// REQ: SES-8, SES-4
#[tokio::test]
async fn transcript_of_a_model_that_was_shown_no_secret_is_replayed_exactly_whatever_the_setting() {
    let place = TestDirs::new();
    place.write("workspace/a.txt", "nothing to hide\n");
    let script = model(|asked| match asked.n_answers() {
        0 => call("a", "Read", json!({"file_path": "a.txt"})),
        _ => text("done"),
    });
    let options = place.session().mode(PermissionMode::BypassPermissions);
    let options = options.setting("ennead", json!({"redact": {"model": false}}));
    let outcome = place.run(&script, options).await;
    let left = Left { place, model: script, outcome, events_seen: Vec::new() };
    let replayed = replayed(&left, |bytes| bytes).unwrap();
    assert_eq!((replayed.turns, replayed.up_to_redaction), (2, 0));
}

/// The error of a call with this input, and the file after it.
async fn refused(tool: &str, input: Value) -> (String, bool, String) {
    let place = TestDirs::new();
    let token = &secrets()[0].0;
    let before = format!("key = {token}\nport = 1\n");
    let file = place.write("workspace/conf", &before);
    let (tool, mut input) = (tool.to_owned(), input);
    if input.get("file_path").is_some() {
        input["file_path"] = file.clone().into();
    }
    let script = model(move |asked| match asked.n_answers() {
        0 => call("r", "Read", json!({"file_path": file})),
        1 => call("w", &tool, input.clone()),
        _ => text("done"),
    });
    let options = place.session().mode(PermissionMode::BypassPermissions);
    let _outcome = place.run(&script, options).await;
    let last = script.last();
    let (_, text, is_error) = last.results().into_iter().find(|it| it.0 == "w").unwrap();
    assert!(last.result("r").contains("key = [secret:github-token:1]"), "{}", last.result("r"));
    let after = place.read("workspace/conf");
    assert!(after.contains(token), "{after}");
    (text, is_error, after.replace(token, "§"))
}

// REQ: SES-8
#[tokio::test]
async fn placeholder_is_never_written_in_the_place_of_its_secret() {
    let placeholder = "[secret:github-token:1]";
    let unchanged = "key = §\nport = 1\n";
    for (tool, input) in [
        (
            "Edit",
            json!({"file_path": "", "old_string": format!("key = {placeholder}\nport = 1"), "new_string": "x"}),
        ),
        (
            "Edit",
            json!({"file_path": "", "old_string": "port = 1", "new_string": format!("again = {placeholder}")}),
        ),
        ("Write", json!({"file_path": "", "content": format!("key = {placeholder}\nport = 2\n")})),
        ("Bash", json!({"command": format!("echo 'key = {placeholder}' > conf")})),
    ] {
        let (text, is_error, after) = refused(tool, input).await;
        assert!(is_error && text.contains("in the place of a secret"), "{tool}: {text}");
        assert_eq!(after, unchanged, "{tool}");
    }
    let around = json!({"file_path": "", "old_string": "port = 1", "new_string": "port = 2"});
    let (text, is_error, after) = refused("Edit", around).await;
    assert!(!is_error, "{text}");
    assert_eq!(after, "key = §\nport = 2\n");
}

// REQ: SES-8
#[tokio::test]
async fn long_settings_file_names_secrets_as_a_short_one_does() {
    for n_bytes in [0, 64 * 1024] {
        let place = TestDirs::new();
        let settings = json!({"ennead": {"secretEnv": ["HIDDEN"]}, "other": "x".repeat(n_bytes)});
        place.write("home/.claude/settings.json", &settings.to_string());
        place.write("workspace/a.txt", &format!("it is {HIDDEN}\n"));
        let script = model(|asked| match asked.n_answers() {
            0 => call("a", "Read", json!({"file_path": "a.txt"})),
            _ => text("done"),
        });
        let environment = Environment::empty().with("HIDDEN", HIDDEN);
        let options = place.options(&script).environment(environment);
        let ennead = ennead::Ennead::start(options).await.unwrap();
        let session = place.session().mode(PermissionMode::BypassPermissions);
        let session = ennead.open(session).await.unwrap();
        session.prompt("go").await.unwrap();
        finish(ennead, session).await;
        let read = script.last().result("a");
        assert!(read.contains("it is [secret:variable:1]"), "{n_bytes}: {read}");
    }
}
