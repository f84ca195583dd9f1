//! The mode `auto`: a model decides about calls that lack nothing but an allow rule.

use super::*;

/// The token that the classifier is to repeat.
fn token(asked: &Asked) -> Option<String> {
    let system = asked.system();
    let of = system.split(r#"{"token":""#).nth(1).filter(|_| system.contains("classifier"))?;
    Some(of.split('"').next().unwrap().to_owned())
}

fn verdict(token: &str, verdict: &str) -> crate::support::scripted::Reply {
    text(&json!({"token": token, "verdict": verdict, "reason": "so it is"}).to_string())
}

// REQ: PRM-4, PRM-5
#[tokio::test]
async fn mode_auto_asks_a_fast_model_and_its_call_counts_in_the_run() {
    for (answered, runs) in [("allow", true), ("deny", false)] {
        let place = TestDirs::new();
        let model = model(move |asked: &Asked| match (token(asked), asked.n_answers()) {
            (Some(token), _) => verdict(&token, answered),
            (None, 0) => bash("t", "touch made"),
            _ => text("done"),
        });
        let options = place.session().mode(PermissionMode::Auto);
        let outcome = place.run(&model, options).await;
        assert_eq!(place.has("workspace/made"), runs);
        let asked = model.asked().into_iter().find(|it| token(it).is_some()).unwrap();
        assert_eq!(asked.body["model"], "claude-haiku-4-5");
        assert!(asked.body["tools"].as_array().is_none_or(Vec::is_empty), "{}", asked.body);
        assert_eq!(outcome.questions.by_handler[&AnsweredBy::Classifier], 1);
        let by_model = outcome.cost.by_model();
        let used = by_model["claude-haiku-4-5"].classifications;
        assert_eq!((used.calls, used.usage.input_tokens), (1, 100));
        assert!(0 < used.cost.micro_usd() || used.unpriced == 0);
        check_transcript(&place);
    }
}

// REQ: PRM-5
#[tokio::test]
async fn classifier_that_does_not_answer_in_time_leaves_the_call_to_a_person() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| match (token(asked), asked.n_answers()) {
        (Some(_), _) => crate::support::scripted::silence(),
        (None, 0) => bash("t", "touch made"),
        _ => text("done"),
    });
    let short = json!({"ennead": {"approvals": {"classifierTimeoutMs": 50}}});
    let options = place.session().settings_json(short).unwrap().mode(PermissionMode::Auto);
    let mut asking = Asking::start(&place, &model, options).await;
    let question = asking.question().await;
    asking.answer(&question, PermissionAnswer::allow()).await;
    let outcome = asking.outcome().await;
    assert!(place.has("workspace/made"));
    assert_eq!(outcome.questions.by_handler[&AnsweredBy::Surface], 1);
    let passed = &records(&place, "passed")[0];
    assert!(passed["reason"].as_str().unwrap().contains("timeout"), "{passed}");
    check_transcript(&place);
}

// REQ: PRM-5
#[tokio::test]
async fn simulated_model_decides_in_the_mode_auto_by_a_rule_of_its_playbook() {
    let place = TestDirs::new();
    let rules = r#"
[[rule]]
name = "classifier"
when.system = "permission classifier"
let.token = '''(system|capture('"token":"([0-9a-f]+)"'))[1]'''
reply = [{ text = '{"token":"{{ token }}","verdict":"allow","reason":"a rule says so"}' }]

[[rule]]
name = "touches"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "touch made" } }]

[[rule]]
name = "done"
reply = [{ text = "done" }]
"#;
    let run = async |playbook: ennead::testing::Playbook| {
        let ennead = Ennead::start(ennead::Options::simulated(playbook)).await.unwrap();
        let mut options = place.session().mode(PermissionMode::Auto);
        options.endpoint = ennead::Endpoint::simulated();
        options.id = None;
        let session = ennead.open(options).await.unwrap();
        let outcome = session.prompt("list files").await.unwrap();
        finish(ennead, session).await;
        outcome
    };
    let playbook = ennead::testing::Playbook::parse(rules, "rules").unwrap();
    let outcome = run(playbook).await;
    assert!(place.has("workspace/made"), "{outcome:?}");
    assert_eq!(outcome.questions.by_handler[&AnsweredBy::Classifier], 1);
}
