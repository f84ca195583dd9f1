//! Hooks of an embedder in real sessions.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Mutex;

use ennead_simulated::Playbook;
use tempfile::TempDir;

use super::*;
use crate::{
    Endpoint, Ennead, Options, Placement, SessionOptions,
    tool::{Access, CustomTool, ToolOutcome},
};

const PLAYBOOK: &str = r#"
[[rule]]
name = "writes"
when.turns = 0
reply = [{ tool = "keep", input = { text = "made" } }]

[[rule]]
name = "tells"
reply = [{ text = "{{ results[0].text }}" }]
"#;

/// Runs a call that may run, past this hook; returns the answer and what the tool was given.
async fn ran(hook: Arc<dyn Hook>, matcher: &str, limit: Duration) -> (String, Option<String>) {
    let place = TempDir::new().unwrap();
    let playbook = Playbook::parse(PLAYBOOK, "test").unwrap();
    let options = Options::simulated(playbook).placement(Placement::Ambient);
    let ennead = Ennead::start(options).await.unwrap();
    let options = SessionOptions::new(place.path(), Endpoint::simulated())
        .isolated()
        .home(place.path())
        .hook(HookEvent::PreToolUse, matcher, limit, hook)
        .unwrap();
    let kept: Arc<Mutex<Option<String>>> = Arc::default();
    let shared = Arc::clone(&kept);
    let keep = CustomTool::raw("keep", "Keeps.", r#"{"type":"object"}"#, move |input, _| {
        let input: Value = serde_json::from_str(&input).unwrap();
        *shared.lock().unwrap() = input["text"].as_str().map(str::to_owned);
        async { ToolOutcome::ok("kept") }
    });
    let options = options.tool(Arc::new(keep.access(Access::Free).build().unwrap()));
    let session = ennead.open(options).await.unwrap();
    let outcome = session.prompt("go").await.unwrap();
    let verified = crate::transcript::verify(session.transcript());
    assert!(verified.is_ok(), "{verified:?}");
    ennead.shutdown().await;
    let kept = kept.lock().unwrap().clone();
    (outcome.text, kept)
}

const LONG: Duration = Duration::from_secs(60);

// REQ: HKS-1
#[tokio::test]
async fn hook_of_the_process_denies_changes_and_lets_pass_as_a_command_does() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let deny = move |it: HookInput| {
        let input = it.input()["text"].as_str().unwrap_or_default().to_owned();
        log.lock().unwrap().push((it.event(), it.tool().unwrap().to_owned(), input));
        async { HookReply::deny("not today") }
    };
    let (text, made) = ran(Arc::new(deny), "keep", LONG).await;
    assert!(text.contains("not today") && made.is_none(), "{text}");
    let call = (HookEvent::PreToolUse, "keep".to_owned(), "made".to_owned());
    assert_eq!(*seen.lock().unwrap(), [call]);
    let change = |_: HookInput| async { HookReply::proceed().input(json!({ "text": "changed" })) };
    let (_, made) = ran(Arc::new(change), "", LONG).await;
    assert_eq!(made.as_deref(), Some("changed"));
    // It is for another tool.
    let never = |_: HookInput| async { HookReply::deny("never asked") };
    let (_, made) = ran(Arc::new(never), "Write|Edit", LONG).await;
    assert_eq!(made.as_deref(), Some("made"));
}

// REQ: HKS-2
#[tokio::test]
async fn hook_of_the_process_that_is_late_crashes_or_fails_decides_nothing() {
    let late = |_: HookInput| std::future::pending::<HookReply>();
    let (_, made) = ran(Arc::new(late), "keep", Duration::from_millis(20)).await;
    assert_eq!(made.as_deref(), Some("made"));
    let fails = |_: HookInput| async { HookReply::failed("no network") };
    let (_, made) = ran(Arc::new(fails), "keep", LONG).await;
    assert_eq!(made.as_deref(), Some("made"));
}

// REQ: HKS-2
#[tokio::test]
async fn call_is_denied_when_the_hook_of_the_process_panics() {
    let panics = |it: HookInput| async move {
        assert!(it.tool().is_none(), "a bug of the hook");
        HookReply::proceed()
    };
    let (text, made) = ran(Arc::new(panics), "keep", LONG).await;
    assert!(made.is_none(), "{text}");
}
