//! Settings and sources: what is read, when, how far it is trusted, and where it ends up.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead::{
    Ennead,
    data::{SessionDirs as Files, SourceTexts},
    internal::{Fingerprints, LocalFiles, SourceLookup, with_lookup},
    permission::Trust,
    tool::{BoxFuture, McpLimits},
};
use ennead_runtime::turn::input::SettingsRead;
use serde_json::{Value, json};

use crate::support::settings::SettingsJson as _;
use crate::support::{
    approver::OneAnswer,
    mcp_server,
    processes::fifo,
    scripted::{TestDirs, call, calls, finish, says, text},
};

/// The machine's files, with a count of what was read.
#[derive(Debug, Default)]
struct Counting {
    looked: AtomicUsize,
    read: Arc<AtomicUsize>,
    sources: AtomicUsize,
}

impl SourceLookup for Counting {
    fn settings(
        &self,
        place: &Files,
        known: Option<&Fingerprints>,
    ) -> BoxFuture<'static, io::Result<(SettingsRead, Fingerprints)>> {
        self.looked.fetch_add(1, Ordering::SeqCst);
        let (found, read) = (LocalFiles::default().settings(place, known), Arc::clone(&self.read));
        Box::pin(async move {
            let found = found.await;
            if let Ok((SettingsRead::Layers(_), _)) = &found {
                read.fetch_add(1, Ordering::SeqCst);
            }
            found
        })
    }

    fn sources(&self, place: &Files) -> BoxFuture<'static, SourceTexts> {
        self.sources.fetch_add(1, Ordering::SeqCst);
        LocalFiles::default().sources(place)
    }
}

fn project(settings: &Value) -> String {
    settings.to_string()
}

// REQ: TRN-4, SHP-10
#[tokio::test]
async fn settings_are_read_again_only_when_a_file_changed() {
    let place = TestDirs::new();
    let file = "workspace/.claude/settings.json";
    place.write(file, &project(&json!({"model": "one"})));
    let read = |id| call(id, "Glob", json!({"pattern": id}));
    let model = says(vec![read("a"), read("b"), text("done"), text("done")]);
    let files = Arc::new(Counting::default());
    let options = with_lookup(place.options(&model), files.clone());
    let ennead = Ennead::start(options).await.unwrap();
    let session = ennead.open(place.session()).await.unwrap();
    session.prompt("go").await.unwrap();
    // At the opening, and in each of three turns.
    assert_eq!(files.looked.load(Ordering::SeqCst), 4);
    assert_eq!(files.read.load(Ordering::SeqCst), 1);
    place.write(file, &project(&json!({"model": "two, and longer"})));
    session.prompt("go on").await.unwrap();
    assert_eq!(files.read.load(Ordering::SeqCst), 2);
    assert_eq!(files.sources.load(Ordering::SeqCst), 1);
    let models: Vec<Value> = model.asked().into_iter().map(|it| it.body["model"].clone()).collect();
    assert_eq!(models, ["one", "one", "one", "two, and longer"]);
    finish(ennead, session).await;
}

// REQ: TRN-4
#[tokio::test]
async fn rule_written_between_turns_holds_for_the_next_turn() {
    let place = TestDirs::new();
    let deny = json!({"permissions": {"deny": ["Read(b.txt)"]}});
    place.write("workspace/b.txt", "b");
    let settings = place.text("workspace/.claude/settings.json");
    place.write("workspace/.claude/x", "");
    let write = format!("echo '{deny}' > {settings}");
    let read = || call("r", "Read", json!({"file_path": "b.txt"}));
    let model = says(vec![call("w", "Bash", json!({"command": write})), read()]);
    let options = place.session();
    let options = options.approver(OneAnswer::allow());
    place.run(&model, options).await;
    assert!(
        model.last().result("r").starts_with("Permission denied"),
        "{:?}",
        model.last().results()
    );
}

// REQ: PRM-2, TRN-4
#[tokio::test]
async fn settings_file_that_is_no_json_lets_nothing_pass() {
    for (name, written) in [
        ("workspace/.claude/settings.json", r#"{"permissions": {"deny": ["Read(b.txt)"],}}"#),
        ("workspace/.claude/settings.local.json", "[]"),
        ("home/.claude/settings.json", r#"{"permissions": {"deny": "Read(b.txt)"}}"#),
    ] {
        let place = TestDirs::new();
        place.write("workspace/b.txt", "b");
        place.write(name, written);
        let read = call("r", "Read", json!({"file_path": "b.txt"}));
        let model = says(vec![read, text("done")]);
        place.run(&model, place.session()).await;
        let result = model.last().result("r").to_owned();
        assert!(result.starts_with("Permission denied"), "{name}: {result}");
    }
}

// REQ: PRM-2, TRN-4, TOL-11
#[tokio::test]
async fn settings_file_that_is_no_json_starts_no_server() {
    for (written, n) in [(r#"{"permissions": {"deny": ["Read(b.txt)"]}}"#, 2), ("{", 0), ("[]", 0)]
    {
        for name in [
            "workspace/.claude/settings.json",
            "workspace/.claude/settings.local.json",
            "home/.claude/settings.json",
        ] {
            let place = TestDirs::new();
            place.write(name, written);
            let file = json!({ "mcpServers": { "project": mcp_server::entry() } });
            place.write("workspace/.mcp.json", &file.to_string());
            let options = place.session().trust(Trust::Trusted).reads_mcp_json(true);
            let options = options.mcp_server(mcp_server::configured("own"));
            let model = says(vec![text("done")]);
            let mut mcp = McpLimits::default();
            mcp.wait = mcp.start;
            let ennead = Ennead::start(place.options(&model).mcp(mcp)).await.unwrap();
            let session = ennead.open(options).await.unwrap();
            let started = mcp_server::n_starts(Path::new(&place.text("workspace")));
            assert_eq!(started, n, "{name}: {written}");
            assert_eq!(session.mcp_servers().len(), n, "{name}: {written}");
            let mut events = session.events();
            session.prompt("go").await.unwrap();
            let mut notes = Vec::new();
            while let Some(Some(event)) = futures::FutureExt::now_or_never(events.next()) {
                if let ennead::Event::Alert { what } = event.event {
                    notes.push(what.to_string());
                }
            }
            let no_server = |it: &String| {
                it.starts_with("no MCP server is started: ") && it.contains(&place.text(name))
            };
            assert_eq!(notes.iter().any(no_server), n == 0, "{name}: {notes:?}");
            finish(ennead, session).await;
        }
    }
}

// REQ: PRM-2, TRN-4
#[tokio::test]
async fn settings_file_that_breaks_while_a_session_is_open_leaves_what_held() {
    let place = TestDirs::new();
    let file = "workspace/.claude/settings.json";
    place.write(file, &project(&json!({"permissions": {"deny": ["Read(b.txt)"]}})));
    place.write("workspace/a.txt", "a is read");
    place.write("workspace/b.txt", "b");
    let read = |id, name| call(id, "Read", json!({"file_path": name}));
    let model =
        says(vec![read("1", "b.txt"), text("done"), read("2", "b.txt"), read("3", "a.txt")]);
    let ennead = Ennead::start(place.options(&model)).await.unwrap();
    let session = ennead.open(place.session()).await.unwrap();
    session.prompt("go").await.unwrap();
    let mut events = session.events();
    place.write(file, "{\n  \"model\": ");
    session.prompt("go on").await.unwrap();
    let last = model.last();
    assert!(last.result("2").starts_with("Permission denied"), "{}", last.result("2"));
    assert!(last.result("3").contains("a is read"), "{}", last.result("3"));
    let mut notes = Vec::new();
    while let Some(Some(event)) = futures::FutureExt::now_or_never(events.next()) {
        if let ennead::Event::Alert { what } = event.event {
            notes.push(what.to_string());
        }
    }
    notes.retain(|it| it.contains("goes on to hold"));
    assert_eq!(notes.len(), 1, "once for each change: {notes:?}");
    assert!(
        notes[0].contains("settings.json: is not JSON") && notes[0].contains("line 2"),
        "{notes:?}"
    );
    finish(ennead, session).await;
}

// REQ: SHP-10
#[tokio::test]
async fn gates_of_shapers_stay_as_they_were_when_the_session_began() {
    let place = TestDirs::new();
    let file = "workspace/.claude/settings.json";
    let cap = |n: u64| project(&json!({"ennead": {"shapers": {"per_result_cap_chars": n}}}));
    place.write("workspace/long.txt", &"0123456789\n".repeat(1_000));
    place.write(file, &cap(50_000));
    // Reading is exempt; searching is not.
    let long = || call("r", "Grep", json!({"pattern": "0", "output_mode": "content"}));
    let model = says(vec![text("one"), long(), text("two")]);
    let ennead = place.start(&model).await;
    let mut options = place.session();
    options.trust = Trust::Trusted;
    let session = ennead.open(options).await.unwrap();
    session.prompt("first").await.unwrap();
    place.write(file, &cap(1_000));
    session.prompt("second").await.unwrap();
    assert!(2_000 < model.last().result("r").len());
    finish(ennead, session).await;
    // A session that begins now has the new one.
    let model = says(vec![long()]);
    let mut options = place.session();
    options.trust = Trust::Trusted;
    options.id = Some("5f1c0000-0000-4000-8000-0000000000bb".into());
    place.run(&model, options).await;
    let notes = model.last().result("r");
    assert!(notes.len() < 2_000, "{notes}");
}

// REQ: TRN-4
#[tokio::test]
async fn settings_that_are_no_file_end_the_run_with_a_line() {
    type Way = (fn(&Path), &'static str);
    let none: [Way; 3] = [
        (|path| std::os::unix::fs::symlink(path, path).unwrap(), "a link that leads nowhere"),
        (fifo, "settings.json: it is not a regular file"),
        (|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(), "/workspace"),
    ];
    for (make, end) in none {
        let place = TestDirs::new();
        place.write("workspace/.claude/other", "");
        make(Path::new(&place.text("workspace/.claude/settings.json")));
        let model = says(vec![text("never")]);
        let outcome = place.run(&model, place.session()).await;
        let error = outcome.error.unwrap();
        assert!(error.contains("settings.json: it is") && error.ends_with(end), "{error}");
        assert!(!error.contains('\n') && model.asked().is_empty());
    }
}

// REQ: PRM-2, HKS-1
#[tokio::test]
async fn repository_may_forbid_whatever_its_trust_and_allow_only_when_trusted() {
    for (trust, hook_runs, allows) in [
        (Trust::Untrusted, false, false),
        (Trust::Headless, true, false),
        (Trust::Trusted, true, true),
    ] {
        let place = TestDirs::new();
        let hook = format!("touch {}", place.text("outside/hooked"));
        let own = json!({
            "permissions": {"allow": ["Bash(touch allowed)"], "deny": ["Bash(ls *)"]},
            "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]},
        });
        place.write("workspace/.claude/settings.json", &own.to_string());
        let model = says(vec![calls(&[
            ("t", "Bash", json!({"command": "touch allowed"})),
            ("l", "Bash", json!({"command": "ls -l"})),
        ])]);
        let mut options = place.session().allow("Bash(ls *)").unwrap();
        options.trust = trust;
        place.run(&model, options).await;
        assert_eq!(place.has("workspace/allowed"), allows, "{trust:?}");
        assert_eq!(place.has("outside/hooked"), hook_runs, "{trust:?}");
        assert!(model.last().result("l").starts_with("Permission denied"), "{trust:?}");
    }
}

// REQ: CTX-2
#[tokio::test]
async fn instruction_files_come_before_the_prompt_and_never_in_the_system_prompt() {
    let place = TestDirs::new();
    place.write("home/.claude/CLAUDE.md", "U-user");
    place.write("CLAUDE.md", "A-above");
    place.write("workspace/CLAUDE.md", "B-here\n@more.md");
    place.write("workspace/more.md", "M-imported");
    place.write("workspace/.claude/rules/style.md", "R-rule");
    place.write("workspace/CLAUDE.local.md", "C-local");
    let model = says(vec![]);
    place.run(&model, place.session()).await;
    let asked = model.last();
    let user = asked.user();
    let at = |needle: &str| user.find(needle).unwrap_or_else(|| panic!("{needle} in {user}"));
    let order = ["U-user", "A-above", "B-here", "M-imported", "R-rule", "C-local", "\ngo"].map(at);
    assert!(order.is_sorted(), "{order:?} {user}");
    for text in ["U-user", "A-above", "B-here", "M-imported", "R-rule", "C-local"] {
        assert!(!asked.system().contains(text), "{text}");
        assert_eq!(user.matches(text).count(), 1, "{text}");
    }
}

// REQ: CTX-2
#[tokio::test]
async fn agents_file_stands_in_where_there_is_no_other() {
    let place = TestDirs::new();
    place.write("workspace/AGENTS.md", "agents' text");
    let model = says(vec![]);
    place.run(&model, place.session()).await;
    assert!(model.last().user().contains("agents' text"));
    place.write("workspace/CLAUDE.md", "claude's text");
    let mut options = place.session();
    options.id = Some("5f1c0000-0000-4000-8000-0000000000bb".into());
    place.run(&model, options).await;
    assert!(!model.last().user().contains("agents' text"));
}

// REQ: CTX-1
#[tokio::test]
async fn rule_for_paths_is_shown_once_such_a_file_was_read() {
    let place = TestDirs::new();
    let rule = "---\npaths: [\"src/**/*.{ts,tsx}\"]\n---\nT-typed";
    place.write("workspace/.claude/rules/deep/ts.md", rule);
    place.write("workspace/src/a.tsx", "code");
    let model = says(vec![
        call("g", "Grep", json!({"pattern": "code"})),
        call("r", "Read", json!({"file_path": "src/a.tsx"})),
        text("done"),
    ]);
    place.run(&model, place.session()).await;
    let shown: Vec<bool> = model.asked().iter().map(|it| it.user().contains("T-typed")).collect();
    assert_eq!(shown, [false, false, true]);
}

// REQ: TRN-4
#[tokio::test]
async fn variables_of_the_settings_reach_the_shell() {
    let place = TestDirs::new();
    let options =
        place.session().setting("env", json!({"GREETING": "hello there"})).allow("Bash").unwrap();
    let model = says(vec![call("b", "Bash", json!({"command": "printenv GREETING"}))]);
    place.run(&model, options).await;
    assert_eq!(model.last().result("b"), "hello there");
}
