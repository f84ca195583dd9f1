//! Hooks that add words of the user's to the first prompt of a session.

use serde_json::json;

use super::{command, hooks};
use crate::support::{
    record,
    scripted::{TestDirs, finish, model, text},
    settings::SettingsJson as _,
};

// REQ: HKS-1, HKS-4, SES-4
#[tokio::test]
async fn hook_adds_words_of_the_user_to_the_first_prompt_of_each_process() {
    let place = TestDirs::new();
    let answer = json!({"hookSpecificOutput": {
        "hookEventName": "SessionStart", "initialUserMessage": "Read the plan first.",
    }});
    let seen = place.text("outside/seen");
    let mut table = hooks("SessionStart", &[command(&format!("echo '{answer}'"))]);
    table["UserPromptSubmit"] =
        json!([{"hooks": [command(&format!("cat >> {seen}; echo >> {seen}"))]}]);
    let options = place.session().setting("hooks", table);
    let model = model(|_| text("ok"));
    for n_said in 1..=2 {
        let ennead = place.start(&model).await;
        let session = ennead.open(options.clone()).await.unwrap();
        session.prompt("go").await.unwrap();
        session.prompt("go on").await.unwrap();
        let transcript = session.transcript().to_owned();
        finish(ennead, session).await;
        let asked = model.last().user();
        assert_eq!(asked.matches("Read the plan first.").count(), n_said, "{asked}");
        record::replayed(&transcript, 2 * n_said as u64);
    }
    let prompts = place.read("outside/seen");
    let prompts = prompts.lines().map(|it| {
        let input: serde_json::Value = serde_json::from_str(it).unwrap();
        input["prompt"].as_str().unwrap().to_owned()
    });
    let both = ["go\n\nRead the plan first.", "go on"];
    assert_eq!(prompts.collect::<Vec<_>>(), [both, both].concat());
}
