//! Every model call of a tree asks for what it may use, whatever it is for and whenever it comes.

use std::{fmt, sync::Arc};

use ennead::{
    Ennead, Options, RunEnd,
    data::{TransportError, WireRequest, WireResponse},
    model::Transport,
    tool::{Access, BoxFuture, Concurrency, CustomTool, ToolOutcome},
};
use futures::TryStreamExt;
use serde_json::json;

use super::tree::{agent, run, verify};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    scripted::{Asked, Scripted, TestDirs, call, calls, finish, model, says, text},
};

/// A scripted model whose answers may wait, and stop for another reason.
struct Wire {
    model: Arc<Scripted>,
    /// Where requests with the word `held` wait.
    barrier: Barrier,
    /// How the answer to a request stops, if not as scripted.
    stops: fn(&Asked) -> Option<&'static str>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Transport for Wire {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let asked = Asked { body: serde_json::from_slice(&request.body).unwrap() };
        let (is_held, stops) = (asked.user().contains("held"), (self.stops)(&asked));
        let (answer, barrier) = (self.model.send(request), self.barrier.clone());
        Box::pin(async move {
            if is_held {
                barrier.pass().await;
            }
            let mut response = answer.await?;
            if let Some(stops) = stops {
                let named = |stop| format!(r#""stop_reason":"{stop}""#);
                response.body = Box::pin(response.body.map_ok(move |bytes| {
                    let whole = String::from_utf8(bytes.to_vec()).unwrap();
                    whole.replace(&named("end_turn"), &named(stops)).into()
                }));
            }
            Ok(response)
        })
    }
}

pub(super) async fn start(
    place: &TestDirs,
    model: &Arc<Scripted>,
    stops: fn(&Asked) -> Option<&'static str>,
) -> (Ennead, Barrier) {
    start_with(place.options(model), model, stops).await
}

pub(super) async fn start_with(
    options: Options,
    model: &Arc<Scripted>,
    stops: fn(&Asked) -> Option<&'static str>,
) -> (Ennead, Barrier) {
    let barrier = Barrier::closed();
    let wire = Wire { model: Arc::clone(model), barrier: barrier.clone(), stops };
    let options = options.transport(Arc::new(wire));
    (Ennead::start(options).await.unwrap(), barrier)
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
        let model = says(vec![]);
        let cut = |asked: &Asked| (asked.body["max_tokens"] == 30_000).then_some("max_tokens");
        let (ennead, _) = start(&place, &model, cut).await;
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
        let model = says(vec![]);
        let refuses =
            |asked: &Asked| (asked.body["model"] == "claude-sonnet-5").then_some("refusal");
        let (ennead, _) = start(&place, &model, refuses).await;
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
        let said = limits.clone();
        let model = model(move |asked| match asked.n_answers() {
            0 => call("l", "limit", said.clone()),
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
