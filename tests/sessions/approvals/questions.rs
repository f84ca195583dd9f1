//! AskUserQuestion: what a person chooses is what the model reads, in whole sessions.

use ennead::permission::PermissionAnswer;
use serde_json::{Value, json};

use super::{Asking, check_transcript};
use crate::support::{
    scripted::{TestDirs, call, model, says, text},
    settings::SettingsJson as _,
};

fn questions() -> Value {
    let option = |label: &str| json!({"label": label, "description": "as it is"});
    json!({"questions": [{
        "question": "Which bridge?", "header": "Bridge", "multiSelect": false,
        "options": [option("Stone"), option("Wood")],
    }]})
}

fn answered(with: &Value) -> Value {
    let mut input = questions();
    input["answers"] = with.clone();
    input
}

// REQ: TOL-6, PRM-9
#[tokio::test]
async fn model_reads_what_a_person_chose_in_every_mode() {
    for mode in ["default", "bypassPermissions", "plan"] {
        let place = TestDirs::new();
        let model = model(|asked| match asked.n_answers() {
            0 => call("q", "AskUserQuestion", questions()),
            _ => text("done"),
        });
        let permissions = json!({ "defaultMode": mode, "allow": ["AskUserQuestion"] });
        let options = place.session().may_bypass(true).setting("permissions", permissions);
        let mut asking = Asking::start(&place, &model, options).await;
        let question = asking.question().await;
        let given: Value = serde_json::from_str(&question.call.input).unwrap();
        assert_eq!(given, questions());
        assert!(question.suggestions.is_empty(), "no rule answers a question");
        let chosen = answered(&json!({ "Which bridge?": "Wood" })).to_string();
        asking.answer(&question, PermissionAnswer::allow().with_input(chosen)).await;
        asking.outcome().await;
        let result = model.last().result("q");
        assert!(result.contains("Which bridge?\nWood"), "{mode}: {result}");
        check_transcript(&place);
    }
}

// REQ: TOL-6, PRM-7
#[tokio::test]
async fn refusal_and_a_yes_without_an_answer_are_what_the_model_reads() {
    let cases = [
        (PermissionAnswer::deny("ask me tomorrow"), "ask me tomorrow"),
        (PermissionAnswer::allow(), "answered nothing"),
    ];
    for (answer, expected) in cases {
        let place = TestDirs::new();
        let model = says(vec![call("q", "AskUserQuestion", questions()), text("done")]);
        let mut asking = Asking::start(&place, &model, place.session()).await;
        let question = asking.question().await;
        asking.answer(&question, answer).await;
        asking.outcome().await;
        let result = model.last().result("q");
        assert!(result.contains(expected), "{result}");
        check_transcript(&place);
    }
}

// REQ: TOL-6, PRM-1
#[tokio::test]
async fn model_that_answers_itself_is_refused_and_nobody_is_asked() {
    for (field, value) in [
        ("answers", json!({"Which bridge?": "Stone"})),
        ("response", json!("both")),
        ("annotations", json!({})),
    ] {
        let place = TestDirs::new();
        let mut input = questions();
        input[field] = value;
        // A hook that allows everything as it is does not make them the answers of a person.
        let echo = json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
        }});
        let echo = json!([{"hooks": [{"type": "command", "command": format!("echo '{echo}'")}]}]);
        let options = place.session().setting("hooks", json!({ "PreToolUse": echo }));
        let model = says(vec![call("q", "AskUserQuestion", input), text("done")]);
        let asking = Asking::start(&place, &model, options).await;
        let outcome = asking.outcome().await;
        assert_eq!(outcome.denials.len(), 1);
        let result = model.last().result("q");
        assert!(result.contains("call again with the questions alone"), "{result}");
    }
}

// REQ: TOL-6, HKS-2
#[tokio::test]
async fn hook_may_answer_in_place_of_a_person_and_without_either_the_call_is_denied() {
    let chosen = answered(&json!({ "Which bridge?": ["Stone", "Wood"] }));
    let output = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": chosen,
    }});
    for (is_answered, expected) in
        [(true, "Which bridge?\nStone, Wood"), (false, "nobody can be asked")]
    {
        let place = TestDirs::new();
        let mut options = place.session();
        if is_answered {
            let hook = place.script("home/answer.sh", &format!("echo '{output}'"));
            let handler = json!({"type": "command", "command": hook});
            let hooks = json!([{"matcher": "AskUserQuestion", "hooks": [handler]}]);
            options = options.setting("hooks", json!({ "PreToolUse": hooks }));
        }
        let model = says(vec![call("q", "AskUserQuestion", questions()), text("done")]);
        place.run(&model, options).await;
        let result = model.last().result("q");
        assert!(result.contains(expected), "{result}");
        check_transcript(&place);
    }
}
