//! Plans that a person is shown and approves, in whole sessions.

use ennead::permission::{PermissionAnswer, PermissionMode};
use serde_json::json;

use super::{Asking, bash, check_transcript, records};
use crate::{
    sessions::plan_mode::plan_of,
    support::{
        scripted::{TestDirs, call, model, text},
        settings::SettingsJson as _,
    },
};

fn modes(place: &TestDirs) -> Vec<String> {
    let modes = records(place, "mode").into_iter();
    let by = |it: &serde_json::Value| it["call"].as_str().unwrap_or("nobody").to_owned();
    modes.map(|it| format!("{} by {}", it["mode"].as_str().unwrap(), by(&it))).collect()
}

// REQ: PRM-4, PRM-9, TOL-6
#[tokio::test]
async fn person_approves_the_plan_that_is_in_the_file_and_the_mode_before_holds_again() {
    let place = TestDirs::new();
    let model = model(|asked| {
        let write = |id, path: String| {
            call(id, "Write", json!({ "file_path": path, "content": "first the bridge" }))
        };
        match asked.n_answers() {
            0 => call("enter", "EnterPlanMode", json!({})),
            1 => write("plan", plan_of(asked)),
            2 => call("exit", "ExitPlanMode", json!({})),
            3 => call("again", "ExitPlanMode", json!({})),
            4 => write("work", "new.txt".into()),
            _ => text("done"),
        }
    });
    let options = place.session().setting("permissions", json!({ "defaultMode": "acceptEdits" }));
    let mut asking = Asking::start(&place, &model, options).await;
    let question = asking.question().await;
    assert_eq!(question.call.name.as_str(), "EnterPlanMode");
    asking.answer(&question, PermissionAnswer::allow()).await;
    let question = asking.question().await;
    let input: serde_json::Value = serde_json::from_str(&question.call.input).unwrap();
    assert_eq!(input["plan"], "first the bridge");
    assert!(input["planFilePath"].as_str().unwrap().ends_with(".md"), "{input}");
    asking.answer(&question, PermissionAnswer::deny("smaller")).await;
    let question = asking.question().await;
    assert!(model.last().result("exit").contains("smaller"), "{}", model.last().result("exit"));
    asking.answer(&question, PermissionAnswer::allow()).await;
    let outcome = asking.outcome().await;
    assert_eq!(outcome.denials.len(), 1);
    let approved = model.last().result("again");
    assert!(approved.contains("first the bridge"), "{approved}");
    assert!(place.has("workspace/new.txt"));
    assert_eq!(modes(&place), ["plan by enter", "acceptEdits by again"]);
    check_transcript(&place);
}

// REQ: PRM-4
#[tokio::test]
async fn mode_that_was_set_during_the_run_is_not_set_again_after_a_plan_has_ended_it() {
    let place = TestDirs::new();
    let model = model(|asked| match asked.n_answers() {
        0 => bash("first", "touch made"),
        1 => call(
            "plan",
            "Write",
            json!({ "file_path": plan_of(asked), "content": "then the road" }),
        ),
        2 => call("exit", "ExitPlanMode", json!({})),
        _ => text("done"),
    });
    let mut asking = Asking::start(&place, &model, place.session()).await;
    asking.question().await;
    asking.session.set_mode(PermissionMode::Plan).await.unwrap();
    let again = asking.question().await;
    asking.answer(&again, PermissionAnswer::allow()).await;
    let question = asking.question().await;
    asking.answer(&question, PermissionAnswer::allow()).await;
    asking.outcome().await;
    assert_eq!(modes(&place), ["plan by nobody", "default by exit"]);
    check_transcript(&place);
}
