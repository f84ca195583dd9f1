//! Calls with several prompts: their agents work side by side, and one call of a fast model puts findings together.

use std::sync::Arc;

use ennead::{
    Ennead, Event, Options, Placement, RunEnd, RunOutcome, SessionHandle, SessionOptions,
};
use serde_json::{Value, json};

use super::model;
use crate::support::{
    host::{interrupted, prompt, results},
    model_server::ModelServer,
    record,
    scripted::{
        Asked, Reply, SESSION, Scripted, TestDirs, call, calls, finish, refusal, text, until_end,
    },
    settings::SettingsJson as _,
};

/// What a call asks for with these prompts.
fn several(prompts: &[&str]) -> Value {
    json!({"description": "look", "prompts": prompts})
}

pub(crate) fn is_synthesis(asked: &Asked) -> bool {
    asked.system().contains("You put together what several sub-agents")
}

/// The top session makes one call; agents answer by their prompt, and the fast model says `together`.
fn delegates(
    input: Value,
    child: impl Fn(&str) -> Reply + Send + Sync + 'static,
    synthesis: impl Fn() -> Reply + Send + Sync + 'static,
) -> Arc<Scripted> {
    model(move |asked| match (asked.is_agent(), asked.n_answers()) {
        _ if is_synthesis(asked) => synthesis(),
        (true, _) => child(&asked.user()),
        (false, 0) => call("a", "Agent", input.clone()),
        (false, _) => text("done"),
    })
}

/// Each agent says where it was.
fn looks(prompt: &str) -> Reply {
    let place = ["north", "south", "east"].into_iter().find(|it| prompt.contains(it));
    text(&format!("found it in the {}", place.unwrap_or("west")))
}

/// A session whose model is on a socket.
struct OnSocket {
    place: TestDirs,
    server: ModelServer,
    ennead: Ennead,
    session: SessionHandle,
}

impl OnSocket {
    async fn open(
        model: Arc<Scripted>,
        with: impl FnOnce(&TestDirs, SessionOptions) -> SessionOptions,
    ) -> Self {
        let (place, server) = (TestDirs::new(), ModelServer::serve(model).await);
        let options = Options::default().placement(Placement::Ambient).seed(7);
        let ennead = Ennead::start(options.clock(place.clock.clone())).await.unwrap();
        let options = SessionOptions::new(place.path("workspace"), server.endpoint("here"));
        let mut options = options.model("claude-sonnet-5");
        options.home = Some(place.path("home"));
        options.transcripts = Some(place.path("transcripts"));
        options.id = Some(SESSION.into());
        let session = ennead.open(with(&place, options)).await.unwrap();
        Self { place, server, ennead, session }
    }

    fn asked(&self) -> Vec<Asked> {
        self.server.model().asked()
    }

    fn syntheses(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(is_synthesis).collect()
    }

    /// Ends it. All transcripts are in order, and a walk of the session needs no model.
    async fn end(self, n_turns: u64) -> TestDirs {
        let Self { place, ennead, session, .. } = self;
        let transcript = session.transcript().to_owned();
        finish(ennead, session).await;
        record::replayed(&transcript, n_turns);
        place.sidechains().iter().for_each(|it| drop(record::verified(it)));
        place
    }
}

/// The result of the one call, and whether it is an error.
fn result(outcome: &RunOutcome) -> (bool, String) {
    results(outcome).remove(0)
}

// REQ: AGT-4, AGT-2, AGT-1, SES-9
#[tokio::test]
async fn agents_of_one_call_work_side_by_side_and_one_call_of_a_fast_model_puts_findings_together()
{
    let input = several(&["held: look north", "held: look south", "held: look east"]);
    let it =
        OnSocket::open(delegates(input, looks, || text("It is everywhere.")), |place, options| {
            let hook = |event: &str| {
                let command = format!("echo {event} >> {}", place.text("outside/fired"));
                json!([{"hooks": [{"type": "command", "command": command}]}])
            };
            let (start, stop) = (hook("start"), hook("stop"));
            options.setting("hooks", json!({"SubagentStart": start, "SubagentStop": stop}))
        })
        .await;
    let hold = it.server.model().hold();
    hold.close();
    let mut events = it.session.events();
    let run = prompt(&it.session, "go");
    // None of them is answered before all have asked.
    for _ in 0..3 {
        hold.arrived().await;
    }
    assert_eq!(it.session.status().await.unwrap().agents, 3);
    hold.open();
    let outcome = run.await.unwrap().unwrap();
    let seen = until_end(&mut events).await;
    let started: Vec<_> = seen
        .iter()
        .filter_map(|it| match it {
            Event::AgentStarted { call, description, .. } => Some(format!("{call} {description}")),
            _ => None,
        })
        .collect();
    assert_eq!(started, ["a look (1/3)", "a look (2/3)", "a look (3/3)"]);
    let asked = it.syntheses();
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert!(question.model().contains("haiku"), "{}", question.model());
    for part in ["found it in the north", "found it in the south", "found it in the east"] {
        assert!(question.user().contains(part), "{}", question.user());
    }
    assert!(question.user().contains("<untrusted origin=\"agent 2\">"), "{}", question.user());
    assert_eq!(question.tools(), Vec::<String>::new());
    let (is_error, text) = result(&outcome);
    assert!(
        !is_error
            && text.starts_with(
                "> It is everywhere.\n\nAgents:\n1. held: look north: completed (agent "
            )
    );
    assert!(!text.contains("found it in"), "{text}");
    // Two turns, three agents and this call, 100 in and 10 out each.
    assert_eq!(outcome.usage.total().0, 6 * 110);
    let cost = &outcome.cost;
    assert_eq!((cost.tree().answers.calls, cost.tree().syntheses.calls), (5, 1));
    assert_eq!((cost.agents().len(), cost.tree().total().usage), (3, outcome.usage));
    assert!(cost.by_model().keys().any(|it| it.contains("haiku")), "{:?}", cost.by_model());
    let place = it.end(2).await;
    let fired = place.read("outside/fired");
    assert_eq!((fired.matches("start").count(), fired.matches("stop").count()), (3, 3));
    let sides = place.sidechains();
    assert_eq!(sides.len(), 3);
    for side in &sides {
        let meta = std::fs::read_to_string(side.with_extension("meta.json")).unwrap();
        assert!(meta.contains(r#""toolUseId":"a""#), "{meta}");
    }
    let end = place.lines().into_iter().find(|it| it["kind"] == "tool_end").unwrap();
    assert!(end["sidechain"]["head"].is_string(), "{end}");
    assert_eq!(end["sidechain"]["others"].as_array().map(Vec::len), Some(2), "{end}");
}

// REQ: AGT-4
#[tokio::test]
async fn agent_that_fails_is_named_and_the_others_findings_are_put_together() {
    let child = |prompt: &str| match prompt.contains("south") {
        true => refusal(400),
        false => looks(prompt),
    };
    let input = several(&["look north", "look south", "look east"]);
    let it = OnSocket::open(delegates(input, child, || text("North or east.")), |_, it| it).await;
    let outcome = it.session.prompt("go").await.unwrap();
    let asked = it.syntheses();
    assert_eq!(asked.len(), 1);
    assert!(!asked[0].user().contains("agent 2"), "{}", asked[0].user());
    let (is_error, text) = result(&outcome);
    assert!(!is_error && text.starts_with("> North or east."), "{text}");
    assert!(text.contains("2. look south: Agent terminated early due to an error"), "{text}");
    it.end(2).await;
}

// REQ: AGT-4
#[tokio::test]
async fn where_one_agent_alone_or_none_has_findings_no_model_is_asked() {
    for (fails, is_error, start) in [
        ("south", false, "[One agent alone ended with findings:"),
        ("look", true, "None of the agents ended with findings."),
    ] {
        let child = move |prompt: &str| match prompt.contains(fails) {
            true => refusal(400),
            false => looks(prompt),
        };
        let input = several(&["look north", "look south"]);
        let it = OnSocket::open(delegates(input, child, || text("never")), |_, it| it).await;
        let outcome = it.session.prompt("go").await.unwrap();
        assert_eq!(it.syntheses().len(), 0);
        let (failed, text) = result(&outcome);
        assert_eq!(failed, is_error, "{text}");
        assert!(text.starts_with(start), "{text}");
        assert_eq!(text.contains("found it in the north"), !is_error, "{text}");
        let n_reasons = text.matches("Agent terminated early due to an error").count();
        assert_eq!(n_reasons, if is_error { 2 } else { 1 }, "{text}");
        it.end(2).await;
    }
}

// REQ: AGT-4
#[tokio::test]
async fn failure_of_the_synthesis_leaves_the_findings_as_they_are() {
    let input = several(&["look north", "look south"]);
    let it = OnSocket::open(delegates(input, looks, || refusal(400)), |_, it| it).await;
    let outcome = it.session.prompt("go").await.unwrap();
    assert_eq!(it.syntheses().len(), 1, "it is not repeated");
    let (is_error, text) = result(&outcome);
    assert!(!is_error && text.starts_with("[The findings are not put together"), "{text}");
    for part in ["## 1. look north\n\n> found it in the north", "found it in the south"] {
        assert!(text.contains(part), "{text}");
    }
    it.end(2).await;
}

// REQ: AGT-4, AGT-3, RUN-2
#[tokio::test]
async fn interrupt_ends_all_agents_of_a_call_and_findings_that_are_there_stay() {
    let input = several(&["held: look north", "held: look south"]);
    let it = OnSocket::open(delegates(input, looks, || text("never")), |_, it| it).await;
    let hold = it.server.model().hold();
    hold.close();
    let run = prompt(&it.session, "go");
    hold.arrived().await;
    hold.arrived().await;
    it.session.interrupt();
    let outcome = interrupted(run).await;
    let (is_error, seen) = result(&outcome);
    assert!(is_error && seen.starts_with("Interrupted before it ended."), "{seen}");
    assert_eq!(it.session.status().await.unwrap().agents, 0);
    it.end(1).await;

    // The word that has requests wait is in the findings.
    let child = |prompt: &str| text(&format!("held: {}", prompt.contains("north")));
    let model = delegates(several(&["look north", "look south"]), child, || text("never"));
    let it = OnSocket::open(model, |_, it| it).await;
    let hold = it.server.model().hold();
    hold.close();
    let run = prompt(&it.session, "go");
    hold.arrived().await;
    assert_eq!(it.syntheses().len(), 1);
    it.session.interrupt();
    let outcome = interrupted(run).await;
    let (is_error, seen) = result(&outcome);
    assert!(!is_error && seen.contains("held: true") && seen.contains("held: false"), "{seen}");
    hold.open();
    let place = it.end(1).await;
    let ends: Vec<_> = place.lines().into_iter().filter(|it| it["kind"] == "tool_end").collect();
    let [end] = &ends[..] else { panic!("{ends:?}") };
    assert!(end["sidechain"]["head"].is_string(), "verify looks at the transcripts: {end}");
    assert_eq!(end["sidechain"]["others"].as_array().map(Vec::len), Some(1), "{end}");
}

// REQ: AGT-4, HKS-5
#[tokio::test]
async fn run_that_is_to_end_anyway_has_no_findings_put_together() {
    let both = [
        ("r", "Glob", json!({"pattern": "*"})),
        ("a", "Agent", several(&["look north", "look south"])),
    ];
    let model = model(move |asked| match asked.is_agent() {
        _ if is_synthesis(asked) => text("never"),
        true => looks(&asked.user()),
        false => calls(&both),
    });
    let stops = json!([{"matcher": "Glob", "hooks": [
        {"type": "command", "command": r#"echo '{"continue":false,"stopReason":"enough"}'"#},
    ]}]);
    let it =
        OnSocket::open(model, |_, it| it.setting("hooks", json!({"PostToolUse": stops}))).await;
    let outcome = it.session.prompt("go").await.unwrap();
    assert_eq!(outcome.end, RunEnd::HookStopped);
    assert_eq!(it.syntheses().len(), 0);
    let seen = results(&outcome).remove(1).1;
    assert!(seen.starts_with("[The findings are not put together"), "{seen}");
    it.end(1).await;
}

// REQ: AGT-4, AGT-7
#[tokio::test]
async fn agent_for_which_there_is_no_place_is_refused_by_itself() {
    let input = several(&["held: look north", "held: look south", "held: look east"]);
    let limits = json!({"agents": {"maxAtOnce": 2}});
    let model = delegates(input, looks, || text("together"));
    let it = OnSocket::open(model, |_, it| it.setting("ennead", limits)).await;
    let hold = it.server.model().hold();
    hold.close();
    let run = prompt(&it.session, "go");
    hold.arrived().await;
    hold.arrived().await;
    hold.open();
    let outcome = run.await.unwrap().unwrap();
    let (is_error, text) = result(&outcome);
    assert!(!is_error && text.starts_with("> together"), "{text}");
    assert_eq!(text.matches("The agent was not started: ").count(), 1, "{text}");
    let place = it.end(2).await;
    assert_eq!(place.sidechains().len(), 2);
}

// REQ: AGT-4
#[tokio::test]
async fn prompts_that_cannot_be_taken_are_an_error_for_the_model_and_start_nothing() {
    let both = json!({"description": "d", "prompt": "p", "prompts": ["q", "r"]});
    let mut behind = several(&["p", "q"]);
    behind["run_in_background"] = true.into();
    for (input, why) in [
        (both, "not both"),
        (json!({"description": "d"}), "give `prompt`, or `prompts`"),
        (behind, "leave `run_in_background` out"),
        (several(&["p", " "]), "Prompt 2 of `prompts` is empty."),
        (several(&["p"]), "prompts"),
        (several(&["p"; 6]), "prompts"),
    ] {
        let model = delegates(input.clone(), looks, || text("never"));
        let it = OnSocket::open(model, |_, it| it).await;
        let outcome = it.session.prompt("go").await.unwrap();
        let (is_error, text) = result(&outcome);
        assert!(is_error && text.contains(why), "{input}: {text}");
        assert!(it.end(2).await.sidechains().is_empty());
    }
}
