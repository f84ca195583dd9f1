//! Changes of files above the number that passes without a question in a turn, through whole sessions.

use std::sync::Arc;

use ennead::{RunOutcome, SessionOptions, permission::PermissionMode};
use serde_json::{Value, json};

use crate::support::{
    approver::OneAnswer,
    record,
    scripted::{Asked, SESSION, Scripted, TestDirs, calls, model, text},
    settings::SettingsJson as _,
};

/// Two answers with eight calls each, of all tools that change files and one that does not.
fn script(place: &TestDirs) -> Arc<Scripted> {
    let old = |n: usize| place.write(&format!("workspace/old-{n}"), "one");
    let files: Vec<String> = (0..2).map(old).collect();
    model(move |asked: &Asked| {
        let edit = || json!({"file_path": files[0], "old_string": "one", "new_string": "1"});
        let edits = json!([{"old_string": "one", "new_string": "2"}, {"old_string": "2", "new_string": "1"}]);
        let read = |at: usize| json!({ "file_path": files[at] });
        match asked.n_answers() {
            0 => calls(&[("r0", "Read", read(0)), ("r1", "Read", read(1))]),
            n @ 1..=2 => {
                let ids: Vec<String> = (0..8).map(|it| format!("{n}-{it}")).collect();
                let input = |at: usize| match at {
                    0 if n == 1 => ("Edit", edit()),
                    0 => ("MultiEdit", json!({"file_path": files[1], "edits": edits})),
                    1 => ("Read", read(0)),
                    _ => ("Write", json!({"file_path": format!("{n}-{at}"), "content": "x"})),
                };
                let all: Vec<(&str, &str, Value)> = ids
                    .iter()
                    .enumerate()
                    .map(|(at, id)| (id.as_str(), input(at).0, input(at).1))
                    .collect();
                calls(&all)
            }
            _ => text("done"),
        }
    })
}

/// Returns which of the calls of both answers were denied, as the model reads it.
async fn denied(place: &TestDirs, options: SessionOptions) -> (Vec<String>, RunOutcome) {
    let script = script(place);
    let outcome = place.run(&script, options).await;
    let results = script.last().results().into_iter();
    let denied = results.filter(|it| it.1.contains("as many files as may be have been changed"));
    (denied.map(|it| it.0).collect(), outcome)
}

fn session(place: &TestDirs, mode: PermissionMode) -> SessionOptions {
    place.session().mode(mode).multi_edit()
}

fn confirming(place: &TestDirs, mode: PermissionMode) -> SessionOptions {
    session(place, mode).own_setting("codeEdit", json!({"confirm": true}))
}

// REQ: TOL-12, TOL-6
#[tokio::test]
async fn five_changes_of_a_turn_pass_and_the_others_are_asked_about_in_every_mode() {
    use PermissionMode::{AcceptEdits, BypassPermissions};
    for mode in [AcceptEdits, BypassPermissions] {
        // Nobody can be asked: what would be asked is denied, and counted anew in the next turn.
        let place = TestDirs::new();
        let (ids, _) = denied(&place, confirming(&place, mode)).await;
        assert_eq!(ids, ["1-6", "1-7", "2-6", "2-7"], "{mode:?}");
        assert!(place.has("workspace/1-5") && !place.has("workspace/1-6"));
        assert_eq!(place.read("workspace/old-1"), "1");
        record::replayed(&place.path(&format!("transcripts/{SESSION}.jsonl")), 4);
    }
    let place = TestDirs::new();
    let (approver, mut asked) = OneAnswer::new(true, "");
    let mut options = confirming(&place, AcceptEdits);
    options.approver = Some(approver);
    let (ids, outcome) = denied(&place, options).await;
    assert!(ids.is_empty(), "{ids:?}");
    assert!(place.has("workspace/1-7") && place.has("workspace/2-7"));
    let mut questions = Vec::new();
    while let Ok(question) = asked.try_recv() {
        assert!(question.reason.contains("(5, `ennead.codeEdit`)"), "{}", question.reason);
        questions.push(question.call.id.to_string());
    }
    assert_eq!(questions, ["1-6", "1-7", "2-6", "2-7"]);
    assert_eq!(outcome.questions.asked, 4);
    record::replayed(&place.path(&format!("transcripts/{SESSION}.jsonl")), 4);
}

// REQ: TOL-12
#[tokio::test]
async fn setting_is_off_by_default_and_a_repository_can_only_tighten_it() {
    let of_file = |text: Value| {
        let place = TestDirs::new();
        place.write(
            "workspace/.claude/settings.json",
            &json!({ "ennead": {"codeEdit": text} }).to_string(),
        );
        place
    };
    let all = ["1-6", "1-7", "2-6", "2-7"];
    let loose = of_file(json!({"confirm": false, "maxChangesPerTurn": 100}));
    let (ids, _) = denied(&loose, session(&loose, PermissionMode::AcceptEdits)).await;
    assert!(ids.is_empty(), "{ids:?}");
    let loose = of_file(json!({"confirm": false, "maxChangesPerTurn": 100}));
    let (ids, _) = denied(&loose, confirming(&loose, PermissionMode::AcceptEdits)).await;
    assert_eq!(ids, all);
    let tight = of_file(json!({"maxChangesPerTurn": 0}));
    let (ids, _) = denied(&tight, confirming(&tight, PermissionMode::AcceptEdits)).await;
    assert_eq!(ids.len(), 14, "{ids:?}");
}

// REQ: TOL-12, PRM-2
#[tokio::test]
async fn rule_that_denies_or_allows_changes_nothing_of_it() {
    let place = TestDirs::new();
    let options = confirming(&place, PermissionMode::Default);
    let options = options.allow("Edit").unwrap().deny("Edit(1-2)").unwrap();
    let (ids, _) = denied(&place, options).await;
    // What was denied does not count.
    assert_eq!(ids, ["1-7", "2-6", "2-7"]);
    assert!(!place.has("workspace/1-2"));
}
