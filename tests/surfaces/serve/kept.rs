//! What is known of a session that is at rest: its age and its model after a restart, who asks, and its files.

use std::{fs, sync::Arc};

use ennead::{Clock, SystemClock};
use serde_json::json;

use super::rig::Rig;
use crate::support::scripted::{says, text};

// REQ: SUR-5, RUN-9
#[tokio::test]
async fn session_keeps_its_model_and_when_it_was_last_used_over_a_restart() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let rig = Rig::start_in(Arc::clone(&directory), says(vec![text("done")]), |it| it).await;
    let (used, unused) = (rig.session(json!({})).await, rig.session(json!({})).await);
    let model = rig.run(&used, "hello").await["outcome"]["model"].clone();
    assert!(model.is_string(), "{model}");
    let last = rig.ask(&format!("GET {used}"), None).await.ok(200);
    assert_eq!(last["model"], model, "it has none of its own");
    rig.server.shutdown().await;
    let ended = SystemClock::default().now().0;
    let rig = Rig::start_in(directory, says(vec![]), |it| it).await;
    let shown = rig.ask(&format!("GET {used}"), None).await.ok(200);
    assert_eq!(shown["model"], model);
    let at = |it: &serde_json::Value| it["last_used_at"].as_u64().unwrap();
    let made = last["created_at"].as_u64().unwrap();
    assert!((made..=ended).contains(&at(&shown)), "{shown} after {last}");
    let shown = rig.ask(&format!("GET {unused}"), None).await.ok(200);
    assert_eq!(shown["last_used_at"], shown["created_at"]);
    assert!(shown["model"].is_null(), "no run has shown it");
}

// REQ: SUR-5
#[tokio::test]
async fn bearer_of_a_token_learns_what_it_may_do() {
    let rig = Rig::start(says(vec![])).await;
    let me = rig.ask_as(&rig.viewer, "GET /v1/me", None).await.ok(200);
    assert_eq!(me, json!({ "name": "viewer", "tenant": "acme", "role": "viewer" }));
}

// REQ: RUN-4, RUN-7
#[tokio::test]
async fn files_of_a_session_are_removed_with_it_only_if_that_is_asked_for() {
    let rig = Rig::start(says(vec![text("done")])).await;
    let transcripts = rig.directory.path().join("state/transcripts/acme");
    let of = |session: &str| {
        let id = session.rsplit('/').next().unwrap();
        let names = fs::read_dir(&transcripts).unwrap().map(|it| it.unwrap().file_name());
        names.filter(|it| it.to_str().unwrap().starts_with(id)).count()
    };
    let (kept, removed) = (rig.session(json!({})).await, rig.session(json!({})).await);
    let shared = rig.session(json!({ "directory": "shared" })).await;
    for session in [&kept, &removed, &shared] {
        rig.run(session, "hello").await;
        assert_ne!(of(session), 0);
    }
    let work = |session: &str| rig.work(session.rsplit('/').next().unwrap());
    assert_eq!(rig.ask(&format!("DELETE {kept}"), None).await.status, 204);
    assert!(of(&kept) != 0 && work(&kept).is_dir());
    let bad = rig.ask(&format!("DELETE {removed}?files=maybe"), None).await;
    assert_eq!(bad.code(), "bad_request");
    assert_eq!(rig.ask(&format!("DELETE {removed}?files=true"), None).await.status, 204);
    assert!(of(&removed) == 0 && !work(&removed).exists());
    assert_eq!(rig.ask(&format!("DELETE {shared}?files=true"), None).await.status, 204);
    assert!(of(&shared) == 0 && rig.work("shared").is_dir(), "it may be another session's, too");
}
