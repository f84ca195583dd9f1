//! Hooks that have a session known by a title.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{command, hooks};
use crate::support::{
    record,
    scripted::{TestDirs, finish, model, text},
    settings::SettingsJson as _,
};

/// A command that has the session known by this. The answer is in a file, so that settings hold no secret of it.
fn titled(place: &TestDirs, event: &str, title: &Value) -> Value {
    let answer = json!({"hookSpecificOutput": {"hookEventName": event, "sessionTitle": title}});
    place.write(&format!("outside/{event}"), &answer.to_string());
    command(&format!("cat {}", place.text(&format!("outside/{event}"))))
}

/// The lines with titles, as programs that list sessions look for them.
fn titles(transcript: &Path) -> Vec<String> {
    let text = fs::read_to_string(transcript).unwrap();
    let lines =
        text.lines().filter(|it| it.starts_with(r#"{"type":"custom-title","customTitle":""#));
    lines.map(str::to_owned).collect()
}

// REQ: HKS-4, SES-4
#[tokio::test]
async fn hooks_have_a_session_known_by_a_title_without_its_secrets() {
    let place = TestDirs::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let mut table =
        hooks("SessionStart", &[titled(&place, "SessionStart", &json!(format!("use {secret}")))]);
    let last = titled(&place, "UserPromptSubmit", &json!(" the \"plan\"\n of\ttoday"));
    table["UserPromptSubmit"] = json!([{"hooks": [last]}]);
    let options = place.session().setting("hooks", table);
    // In the second process, the session is resumed.
    for n_titles in [2, 4] {
        let ennead = place.start(&model(|_| text("ok"))).await;
        let session = ennead.open(options.clone()).await.unwrap();
        session.prompt("go").await.unwrap();
        session.prompt("go on").await.unwrap();
        let transcript = session.transcript().to_owned();
        let id = transcript.file_stem().unwrap().to_str().unwrap().to_owned();
        finish(ennead, session).await;
        let found = titles(&transcript);
        assert_eq!(found.len(), n_titles, "{found:?}");
        assert!(found[n_titles - 2].contains("use [secret:") && !found.concat().contains(&secret));
        let line: Value = serde_json::from_str(&found[n_titles - 1]).unwrap();
        assert_eq!(line["customTitle"], "the \"plan\" of today");
        assert_eq!(line["sessionId"], id);
        let kinds = record::verified(&transcript).foreign.into_iter().map(|it| it.1);
        assert_eq!(kinds.collect::<Vec<_>>(), vec!["custom-title"; n_titles]);
        record::replayed(&transcript, n_titles as u64);
    }
}
