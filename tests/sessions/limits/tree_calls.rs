//! Every model call of a tree asks for what it may use, whatever it is for and whenever it comes.

use std::sync::Arc;

use ennead::{
    Ennead, Options, RunEnd,
    tool::{Access, Concurrency, CustomTool, ToolOutcome},
};
use serde_json::json;

use super::tree::{agent, run, verify};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    scripted::{Scripted, TestDirs, call, calls, finish, model, text},
};

pub(super) async fn start(place: &TestDirs, model: &Arc<Scripted>) -> (Ennead, Barrier) {
    start_with(place.options(model), model).await
}

/// Starts one where requests with the word `held` wait.
pub(super) async fn start_with(options: Options, model: &Arc<Scripted>) -> (Ennead, Barrier) {
    let barrier = model.hold();
    barrier.close();
    (Ennead::start(options).await.unwrap(), barrier.clone())
}

/// Brings this many characters.
fn grow(n: usize) -> Arc<CustomTool> {
    let tool = CustomTool::raw("grow", "Grows.", r#"{"type":"object"}"#, move |_, _| async move {
        ToolOutcome::ok("word ".repeat(n / 5))
    });
    let tool = tool.access(Access::Free).concurrency(Concurrency::Together { max: 10 });
    Arc::new(tool.output_cap(Some(1_000_000)).build().unwrap())
}

// REQ: AGT-7
#[tokio::test]
async fn tokens_of_a_tree_are_never_more_than_their_limit_whatever_tools_bring() {
    for limit in [60_000, 100_000, 150_000, 220_000] {
        let place = TestDirs::new();
        // The context of each agent grows by 5,000 tokens with every call.
        let model = model(|asked| {
            let n = asked.n_answers();
            let say = match (asked.is_agent(), n) {
                (false, 0) => {
                    let five = ["a", "b", "c", "d", "e"].map(|it| (it, "Agent", agent(it)));
                    calls(&five)
                }
                (true, 0..6) => call(&format!("g{n}"), "grow", json!({ "n": n })),
                _ => text("done"),
            };
            say.measured()
        });
        let options = place
            .session()
            .own_setting("agents", json!({ "maxTreeTokens": limit }))
            .own_setting("maxOutputTokens", 10.into())
            .tool(grow(20_000));
        let outcome = run(&place, &model, options).await;
        let used = outcome.usage.total().0;
        assert!((limit / 2..=limit).contains(&used), "{used} of {limit}");
    }
}

// REQ: AGT-7, MDL-4
#[tokio::test]
async fn answer_is_not_asked_for_again_with_a_ceiling_that_the_limit_has_no_room_for() {
    for (limit, end, n_asked) in
        [(60_000, RunEnd::TreeLimit, 1), (120_000, RunEnd::NoPendingTools, 2)]
    {
        let place = TestDirs::new();
        let model = model(|asked| {
            if asked.body["max_tokens"] == 30_000 {
                text("done").stops("max_tokens")
            } else {
                text("done")
            }
        });
        let ennead = place.start(&model).await;
        let options = place
            .session()
            .own_setting("maxOutputTokens", 30_000.into())
            .own_setting("agents", json!({ "maxTreeTokens": limit }));
        let session = ennead.open(options).await.unwrap();
        let outcome = session.prompt("go").await.unwrap();
        finish(ennead, session).await;
        assert_eq!((outcome.end, model.asked().len()), (end, n_asked), "{:?}", outcome.error);
        verify(&place);
    }
}

// REQ: AGT-7, MDL-8
#[tokio::test]
async fn dearer_model_is_not_turned_to_without_the_money_for_it() {
    // Sonnet 5 costs 10 dollars per million tokens of output, Opus 5 25: 0.20 and 0.50 for the
    // ceiling.
    for (micro_usd, end, asked) in [
        (500_000, RunEnd::TreeLimit, &["claude-sonnet-5"][..]),
        (1_000_000, RunEnd::NoPendingTools, &["claude-sonnet-5", "claude-opus-5"]),
    ] {
        let place = TestDirs::new();
        let model = model(|asked| match asked.model() {
            "claude-sonnet-5" => text("done").stops("refusal"),
            _ => text("done"),
        });
        let ennead = place.start(&model).await;
        let options = place
            .session()
            .model("claude-sonnet-5")
            .setting("fallbackModel", json!(["claude-opus-5"]))
            .own_setting("maxOutputTokens", 20_000.into())
            .own_setting("agents", json!({ "maxTreeMicroUsd": micro_usd }));
        let session = ennead.open(options).await.unwrap();
        let outcome = session.prompt("go").await.unwrap();
        finish(ennead, session).await;
        let models: Vec<_> = model.asked().iter().map(|it| it.body["model"].clone()).collect();
        assert_eq!(
            (outcome.end, &models[..]),
            (end, &asked.iter().map(|it| json!(it)).collect::<Vec<_>>()[..])
        );
        verify(&place);
    }
}

fn settings(limits: serde_json::Value) -> String {
    json!({"ennead": {"agents": limits}}).to_string()
}

/// Writes the user's settings, with these limits.
fn limiting(place: &TestDirs) -> Arc<CustomTool> {
    let file = place.path("home/.claude/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let tool = CustomTool::raw("limit", "Limits.", r#"{"type":"object"}"#, move |input, _| {
        std::fs::write(&file, settings(serde_json::from_str(&input).unwrap())).unwrap();
        async { ToolOutcome::ok("limited") }
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

// REQ: AGT-7, TRN-4
#[tokio::test]
async fn limit_that_appears_in_the_settings_binds_the_next_call_and_one_that_is_raised_no_more() {
    for (limits, more) in [
        (json!({"maxTreeTokens": 1000}), json!({"maxTreeTokens": 1_000_000})),
        (json!({"maxTreeTurns": 1}), json!({"maxTreeTurns": 2})),
        (json!({"maxTreeMicroUsd": 500}), json!({})),
        (json!({"maxTreeSeconds": 0}), json!({"maxTreeSeconds": 5})),
    ] {
        let place = TestDirs::new();
        let shared = limits.clone();
        let model = model(move |asked| match asked.n_answers() {
            0 => call("l", "limit", shared.clone()),
            _ => text("done"),
        });
        let ennead = place.start(&model).await;
        let options = place.session().model("claude-sonnet-5").tool(limiting(&place));
        let session = ennead.open(options).await.unwrap();
        let outcome = session.prompt("go").await.unwrap();
        assert_eq!((outcome.end, model.asked().len()), (RunEnd::TreeLimit, 1), "{limits}");
        let outcome = session.prompt("again").await.unwrap();
        assert_eq!((outcome.end, model.asked().len()), (RunEnd::TreeLimit, 1), "{limits}");
        place.write("home/.claude/settings.json", &settings(more));
        let outcome = session.prompt("and again").await.unwrap();
        assert_eq!(outcome.text, "done", "{limits}: {:?}", outcome.error);
        finish(ennead, session).await;
        verify(&place);
    }
}
