//! The mode `plan` in whole sessions: the plan file on disk, and nothing else.

use std::fs;

use serde_json::json;

use crate::support::{
    scripted::{Asked, SESSION, TestDirs, call, finish, model, text},
    settings::SettingsJson as _,
};
use ennead::permission::PermissionMode;

/// Where the model is shown that its plan lies.
pub(super) fn plan_of(asked: &Asked) -> String {
    let user = asked.user();
    let told = user.split("is your plan, ").nth(1).unwrap_or_else(|| panic!("{user}"));
    told.split("; it may hold").next().unwrap().to_owned()
}

// REQ: PRM-4
#[tokio::test]
async fn model_writes_its_plan_where_it_is_shown_and_nothing_else_in_plan_mode() {
    let place = TestDirs::new();
    let write = |id, path: String| {
        call(id, "Write", json!({ "file_path": path, "content": "first the bridge" }))
    };
    let scripted = model(move |asked| match asked.n_answers() {
        0 => write("plan", plan_of(asked)),
        1 => write("other", plan_of(asked).replace(".md", "-other.md")),
        2 => write("work", "new.txt".into()),
        3 => call("read", "Read", json!({ "file_path": plan_of(asked) })),
        _ => text("done"),
    });
    let ennead = place.start(&scripted).await;
    let options = place.session().setting("permissions", json!({ "defaultMode": "plan" }));
    let session = ennead.open(options).await.unwrap();
    let outcome = session.prompt("go").await.unwrap();
    assert_eq!(outcome.denials.len(), 2);
    let last = scripted.last();
    assert!(last.result("read").contains("first the bridge"), "{}", last.result("read"));
    for denied in ["other", "work"] {
        assert!(last.result(denied).starts_with("Permission denied"), "{}", last.result(denied));
    }
    let plan = plan_of(&last);
    assert_eq!(fs::read_to_string(&plan).unwrap(), "first the bridge");
    assert!(plan.ends_with(&format!("/plans/{}.md", session.id())), "{plan}");
    assert!(!place.has("workspace/new.txt"));
    // In another mode the next run is shown that, and its plan is as any file.
    session.set_mode(PermissionMode::AcceptEdits).await.unwrap();
    session.prompt("go").await.unwrap();
    assert_eq!(scripted.last().user().matches("Plan mode is over").count(), 1);
    finish(ennead, session).await;
    let transcript = place.path(&format!("transcripts/{SESSION}.jsonl"));
    ennead::transcript::verify(&transcript).unwrap_or_else(|wrong| panic!("{wrong}"));
}
