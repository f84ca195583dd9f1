//! Calls that are cut: what was set aside for them counts as used where they were sent.

use std::{num::NonZeroU32, sync::Arc};

use ennead::{
    Ennead, Event, Events, RunEnd, SessionId, SessionOptions,
    data::{ActorKind, Live},
    model::GovernorLimits,
    tool::{Access, CustomTool, ToolOutcome},
};
use ennead_runtime::ids::AgentId;
use serde_json::{Value, json};

use super::{
    tree::{agent, verify},
    tree_calls::{start, start_with},
};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    host::{interrupted, prompt},
    scripted::{Asked, Reply, SESSION, Scripted, TestDirs, call, calls, finish, model, text},
    until::until,
};

/// Looks at the directory until an actor is found.
async fn find(ennead: &Ennead, is_meant: impl Fn(&Live) -> bool) -> Live {
    let mut found = None;
    until("the actor appears", async || {
        found = ennead.directory().all().into_iter().find(&is_meant);
        found.is_some()
    })
    .await;
    found.unwrap()
}

/// Whether an actor works for this sub-agent.
fn is(live: &Live, agent: &AgentId) -> bool {
    live.session == Some(SessionId::of_agent(&SESSION.into(), agent))
}

struct ToolEvents(Events);

impl ToolEvents {
    /// The sub-agent that this call has started.
    async fn agent(&mut self, of: &str) -> AgentId {
        while let Some(numbered) = self.0.next().await {
            if let Event::AgentStarted { agent, call, .. } = numbered.event
                && call.as_str() == of
            {
                return agent;
            }
        }
        panic!("no agent of {of}")
    }
}

/// The top starts these agents at once.
fn top(agents: &'static [(&'static str, &'static str)]) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| match asked.n_answers() {
        0 => {
            let all: Vec<_> = agents.iter().map(|(id, task)| (*id, "Agent", agent(task))).collect();
            calls(&all)
        }
        _ => text("done"),
    }
}

/// The same; agents answer at once, and the top when it is asked again.
fn held_below(agents: &'static [(&'static str, &'static str)]) -> Arc<Scripted> {
    let parent = top(agents);
    model(move |asked| {
        if asked.user().contains("again") {
            text("still here")
        } else if asked.is_agent() {
            text("found")
        } else {
            parent(asked)
        }
    })
}

/// A tool that passes a gate, and then brings this text.
fn gate_tool(gate: &Barrier, brings: &str) -> Arc<CustomTool> {
    let (gate, brings) = (gate.clone(), brings.to_owned());
    let tool = CustomTool::raw("gate", "Waits.", r#"{"type":"object"}"#, move |_, _| {
        let (gate, brings) = (gate.clone(), brings.clone());
        async move {
            gate.pass().await;
            ToolOutcome::ok(brings)
        }
    });
    Arc::new(tool.access(Access::Free).output_cap(Some(1_000_000)).build().unwrap())
}

/// A session whose calls may each use 50,000 tokens, in a tree with these limits.
fn limited(place: &TestDirs, limits: Value) -> SessionOptions {
    place.session().own_setting("maxOutputTokens", 50_000.into()).own_setting("agents", limits)
}

/// Limits under which the provider takes one call at a time.
fn one_at_a_time() -> GovernorLimits {
    let mut limits = GovernorLimits::default();
    limits.concurrency = NonZeroU32::new(1);
    limits
}

// REQ: AGT-7, AGT-3
#[tokio::test]
async fn agent_that_crashes_is_settled_and_those_below_it_and_who_waits_for_them_goes_on() {
    let place = TestDirs::new();
    let gate = Barrier::closed();
    let tool = gate_tool(&gate, &"word ".repeat(8_000));
    let parent = top(&[("a", "delegate"), ("b", "pass the gate")]);
    let model = model(move |asked| {
        let user = asked.user();
        match asked.n_answers() {
            _ if !asked.is_agent() => parent(asked),
            0 if user.contains("delegate") => call("c", "Agent", agent("held")),
            0 if user.contains("gate") => call("g", "gate", json!({})),
            _ => text("found"),
        }
    });
    let (ennead, barrier) = start(&place, &model).await;
    let options = limited(&place, json!({"maxTreeTokens": 130_000})).tool(tool);
    let session = ennead.open(options).await.unwrap();
    let mut log = ToolEvents(session.events());
    let run = prompt(&session, "go");
    let delegate = log.agent("a").await;
    let waiting = log.agent("b").await;
    // One call waits for its answer, and half of all is set aside for it. Another, whose context has
    // grown meanwhile, waits for that.
    barrier.arrived().await;
    gate.arrived().await;
    let n_asked = model.asked().len();
    gate.open();
    find(&ennead, |it| it.kind == ActorKind::ModelCall && is(it, &waiting)).await;
    assert_eq!(model.asked().len(), n_asked);
    find(&ennead, |it| it.kind == ActorKind::SubAgent && is(it, &delegate)).await.cell.kill();
    let outcome = run.await.unwrap().unwrap();
    let results = model.last_of_top().results();
    assert!(results[0].2 && results[0].1.contains("crashed"), "{results:?}");
    // What was set aside counts as used, and no more of it comes back.
    assert!(results[1].1.contains("and the rest is not enough"), "{results:?}");
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
    finish(ennead, session).await;
}

// REQ: AGT-7, AGT-3
#[tokio::test]
async fn call_of_an_agent_that_crashes_counts_as_its_worst_case() {
    let place = TestDirs::new();
    let model = held_below(&[("a", "held")]);
    let (ennead, barrier) = start(&place, &model).await;
    let options = limited(&place, json!({"maxTreeTokens": 100_000}));
    let session = ennead.open(options).await.unwrap();
    let run = prompt(&session, "go");
    barrier.arrived().await;
    find(&ennead, |it| it.kind == ActorKind::SubAgent).await.cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, model.asked().len()), (RunEnd::TreeLimit, 2));
    let why = outcome.error.unwrap_or_default();
    let used: u64 = why.split(' ').next().unwrap().parse().unwrap();
    assert!((50_000..100_000).contains(&used), "{why}");
    finish(ennead, session).await;
}

// REQ: AGT-7, TRN-2
#[tokio::test]
async fn interrupt_ends_a_call_that_waits_and_counts_one_that_was_sent() {
    let place = TestDirs::new();
    let model = held_below(&[("a", "held"), ("b", "held")]);
    let limited = |limit: u64| limited(&place, json!({ "maxTreeTokens": limit }));
    let (ennead, barrier) = start(&place, &model).await;
    let session = ennead.open(limited(100_000)).await.unwrap();
    let run = prompt(&session, "go");
    barrier.arrived().await;
    session.interrupt();
    interrupted(run).await;
    // One of the two was never sent, and the other never answered.
    assert_eq!(model.asked().len(), 2);
    // In this process, and in the next one by what the transcripts say.
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.end, RunEnd::TreeLimit);
    let why = outcome.error.unwrap();
    finish(ennead, session).await;
    verify(&place);
    let (ennead, _) = start(&place, &model).await;
    let session = ennead.open(limited(100_000)).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!((outcome.end, outcome.error), (RunEnd::TreeLimit, Some(why)));
    finish(ennead, session).await;
    // Once: there is room for another call under a limit that is a little higher.
    let (ennead, _) = start(&place, &model).await;
    let session = ennead.open(limited(150_000)).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.text, "still here", "{:?}", outcome.error);
    finish(ennead, session).await;
    verify(&place);
}

// REQ: AGT-7, TRN-2, MDL-13
#[tokio::test]
async fn interrupt_gives_back_what_was_set_aside_for_calls_that_were_never_sent() {
    let place = TestDirs::new();
    let model = held_below(&[("a", "held"), ("b", "held"), ("c", "held")]);
    // There is room for two of the calls, and the provider takes one at a time.
    let limited = || limited(&place, json!({"maxTreeTokens": 150_000, "maxTreeTurns": 5}));
    let (ennead, barrier) =
        start_with(place.options(&model).governor(one_at_a_time()), &model).await;
    let session = ennead.open(limited()).await.unwrap();
    let run = prompt(&session, "go");
    barrier.arrived().await;
    find(&ennead, |_| ennead.directory().n_parked() == 1).await;
    session.interrupt();
    interrupted(run).await;
    // One was sent, one is parked and one waits. When the parked one gives back what was set aside
    // for it, the third is let go, and its turn is over by then.
    assert_eq!(model.asked().len(), 2);
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.text, "still here", "{:?}", outcome.error);
    // All agents had a turn, each once; in this process, and in the next one by the transcripts.
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.end, RunEnd::TreeLimit);
    let why = outcome.error.unwrap();
    assert!(why.contains("all 5 turns"), "{why}");
    finish(ennead, session).await;
    verify(&place);
    let (ennead, _) = start(&place, &model).await;
    let session = ennead.open(limited()).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!((outcome.end, outcome.error), (RunEnd::TreeLimit, Some(why)));
    finish(ennead, session).await;
}

// REQ: AGT-7, RUN-2
#[tokio::test(start_paused = true)]
async fn model_call_that_crashes_counts_as_its_worst_case_and_is_not_made_again_without_room() {
    let place = TestDirs::new();
    let model = model(|_| text("still here"));
    let limited = |limit: u64| limited(&place, json!({ "maxTreeTokens": limit }));
    let (ennead, barrier) = start(&place, &model).await;
    // It would be made again in one piece, and so with a lower ceiling.
    let session = ennead.open(limited(70_000)).await.unwrap();
    let run = prompt(&session, "held");
    barrier.arrived().await;
    find(&ennead, |it| it.kind == ActorKind::ModelCall).await.cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, model.asked().len()), (RunEnd::TreeLimit, 1));
    let why = outcome.error.unwrap();
    finish(ennead, session).await;
    verify(&place);
    // The next process knows it, too. It counts once.
    for (limit, end, error) in
        [(70_000, RunEnd::TreeLimit, Some(why)), (150_000, RunEnd::NoPendingTools, None)]
    {
        let (ennead, barrier) = start(&place, &model).await;
        barrier.open();
        let session = ennead.open(limited(limit)).await.unwrap();
        let outcome = session.prompt("again").await.unwrap();
        assert_eq!((outcome.end, outcome.error), (end, error));
        finish(ennead, session).await;
        verify(&place);
    }
}

// REQ: AGT-7, RUN-2, MDL-13
#[tokio::test(start_paused = true)]
async fn model_call_that_crashes_before_it_was_sent_counts_as_nothing() {
    let place = TestDirs::new();
    let model = model(|asked| {
        if asked.streamed() { text("still here") } else { Reply::body(200, "not a message") }
    });
    let (ennead, barrier) =
        start_with(place.options(&model).governor(one_at_a_time()), &model).await;
    let mut other = place.session();
    other.id = None;

    let other = ennead.open(other).await.unwrap();
    let first = prompt(&other, "held");
    barrier.arrived().await;
    let limited = limited(&place, json!({"maxTreeTokens": 100_000}));
    let session = ennead.open(limited).await.unwrap();
    let run = prompt(&session, "go");
    find(&ennead, |_| ennead.directory().n_parked() == 1).await;
    let is_meant = |it: &Live| it.session.as_ref() == Some(session.id());
    find(&ennead, |it| it.kind == ActorKind::ModelCall && is_meant(it)).await.cell.kill();
    barrier.open();
    // It is sent again without a stream, and to that the model gives no answer.
    assert_eq!(run.await.unwrap().unwrap().end, RunEnd::Error);
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.text, "still here", "{:?}", outcome.error);
    first.await.unwrap().unwrap();
    other.close().await;
    finish(ennead, session).await;
    verify(&place);
}

// REQ: AGT-7, AGT-3
#[tokio::test]
async fn what_an_agent_and_those_below_it_used_is_part_of_the_run_also_when_it_crashes() {
    let place = TestDirs::new();
    let gate = Barrier::closed();
    let tool = gate_tool(&gate, "passed");
    let parent = top(&[("a", "delegate")]);
    let model = model(move |asked| match asked.n_answers() {
        _ if !asked.is_agent() => parent(asked),
        0 if asked.user().contains("delegate") => call("b", "Agent", agent("look")),
        1 => call("g", "gate", json!({})),
        _ => text("found"),
    });
    let (ennead, _) = start(&place, &model).await;
    let options = place.session().tool(tool);
    let session = ennead.open(options).await.unwrap();
    let mut log = ToolEvents(session.events());
    let run = prompt(&session, "go");
    let crashes = log.agent("a").await;
    gate.arrived().await;
    find(&ennead, |it| it.kind == ActorKind::SubAgent && is(it, &crashes)).await.cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.text, "done");
    // Two calls each of the top and of the one that crashed, one of the one that it started.
    let total = outcome.cost.tree().total();
    assert_eq!((total.calls, total.usage), (5, outcome.usage));
    assert_eq!(outcome.session_usage.total().0, 5 * 110);
    finish(ennead, session).await;
    let (ennead, _) = start(&place, &model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.session_usage.total().0, 6 * 110);
    finish(ennead, session).await;
}
