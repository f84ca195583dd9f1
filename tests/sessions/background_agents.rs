//! Sub-agents in the background: they outlive their run, and their end is reported once, whatever ends first.

use std::{fs, path::Path, sync::Arc};

use ennead::{Ennead, Event, RunEnd, SessionHandle, tool::AgentType};
use ennead_runtime::transcript::entry::{BackgroundRecord, RecordKind};
use serde_json::{Value, json};

use crate::support::{
    barrier::Barrier,
    events::EventLog,
    host::{interrupted, prompt},
    record,
    scripted::{Asked, Scripted, TestDirs, call, calls, finish, model, text},
    settings::SettingsJson as _,
    tools::wait_at,
    until::until,
};

/// What a call that starts an agent says; the word has its first request wait.
fn agent() -> Value {
    json!({"description": "look", "prompt": "held: look about", "run_in_background": true})
}

/// The top session starts an agent that says `found it`, and then says how often it was asked.
fn launches() -> Arc<Scripted> {
    model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => text("found it"),
        (false, 0) => call("a", "Agent", agent()),
        (false, n) => text(&format!("answer {n}")),
    })
}

async fn open(ennead: &Ennead, place: &TestDirs) -> SessionHandle {
    ennead.open(place.session()).await.unwrap()
}

/// The agents at work.
async fn n_agents(session: &SessionHandle) -> usize {
    session.status().await.unwrap().agents
}

/// The records of agents in the background: how they are, and `untold` for what the model has not learned.
fn states(transcript: &Path) -> String {
    let state = |what: RecordKind| match what {
        RecordKind::BackgroundAgent(BackgroundRecord { state, is_unreported, .. })
            if is_unreported =>
        {
            Some(state + " untold")
        }
        RecordKind::BackgroundAgent(BackgroundRecord { state, .. }) => Some(state),
        _ => None,
    };
    let records = record::records(transcript).into_iter();
    records.filter_map(|it| state(it.what)).collect::<Vec<_>>().join(", ")
}

fn n_told(asked: &Asked) -> usize {
    asked.user().matches("The background agent ").count()
}

async fn end_of_run(log: &mut EventLog) {
    log.until(|it| matches!(it, Event::RunFinished { .. })).await;
}

// REQ: AGT-6, AGT-8
#[tokio::test]
async fn agent_outlives_its_run_and_has_a_session_at_rest_go_on_once() {
    let place = TestDirs::new();
    let model = launches();
    model.hold().close();
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    let mut log = EventLog::new(session.events());
    let outcome = session.prompt("go").await.unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "answer 1"));
    let result = model.last_of_top().result("a");
    assert!(result.contains("works in the background"), "{result}");
    model.hold().arrived().await;
    assert_eq!(n_agents(&session).await, 1);
    end_of_run(&mut log).await;
    model.hold().open();
    end_of_run(&mut log).await;
    let asked = model.last_of_top();
    assert!(
        asked.user().contains("<task-notification>\nThe background agent "),
        "{}",
        asked.user()
    );
    assert!(asked.user().contains("has completed its task. Its answer:\nfound it"));
    assert_eq!(n_agents(&session).await, 0);
    session.prompt("more").await.unwrap();
    assert_eq!(n_told(&model.last_of_top()), 1, "it is told once");
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 4);
    record::verified(&place.sidechains()[0]);
}

// REQ: AGT-6, AGT-8
#[tokio::test]
async fn end_of_an_agent_is_told_with_the_next_turn_of_a_run_under_way() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => text("found it"),
        (false, 0) => calls(&[("a", "Agent", agent()), ("w", "wait", json!({}))]),
        (false, _) => text("done"),
    });
    let barrier = Barrier::closed();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().tool(wait_at("wait", &barrier))).await.unwrap();
    let run = prompt(&session, "go");
    barrier.arrived().await;
    until("the agent has ended", async || n_agents(&session).await == 0).await;
    barrier.open();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.turns, 2);
    let user = model.last_of_top().user();
    assert!(user.contains("<system-reminder>\nThe background agent "), "{user}");
    assert_eq!(n_told(&model.last_of_top()), 1);
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 2);
}

// REQ: AGT-5, AGT-6
#[tokio::test]
async fn type_that_works_in_the_background_does_so_whatever_the_call_says() {
    for (input, is_waited_for) in [
        (json!({"description": "d", "prompt": "p", "subagent_type": "scout"}), false),
        (
            json!({"description": "d", "prompt": "p", "subagent_type": "scout", "run_in_background": false}),
            false,
        ),
        (json!({"description": "d", "prompt": "p", "run_in_background": false}), true),
    ] {
        let place = TestDirs::new();
        let model = model(move |asked| match (asked.is_agent(), asked.n_answers()) {
            (true, _) => text("found it"),
            (false, 0) => call("a", "Agent", input.clone()),
            (false, _) => text("done"),
        });
        let scout = json!({"description": "d", "prompt": "p", "background": true});
        let scout = AgentType::read("scout", &scout).unwrap();
        let ennead = place.start(&model).await;
        let session = ennead.open(place.session().agent_type(scout)).await.unwrap();
        session.prompt("go").await.unwrap();
        let mut results =
            model.asked().into_iter().filter(|it| !it.is_agent() && it.n_answers() == 1);
        let result = results.next_back().unwrap().result("a");
        assert_eq!(result.starts_with("found it\n"), is_waited_for, "{result}");
        finish(ennead, session).await;
    }
}

// REQ: AGT-6
#[tokio::test]
async fn interrupt_spares_an_agent_in_the_background() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => text("found it"),
        (false, 0) => calls(&[("a", "Agent", agent()), ("w", "wait", json!({}))]),
        (false, _) => text("done"),
    });
    model.hold().close();
    let barrier = Barrier::closed();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().tool(wait_at("wait", &barrier))).await.unwrap();
    let mut log = EventLog::new(session.events());
    let run = prompt(&session, "go");
    barrier.arrived().await;
    session.interrupt();
    interrupted(run).await;
    end_of_run(&mut log).await;
    assert_eq!(n_agents(&session).await, 1);
    model.hold().open();
    end_of_run(&mut log).await;
    assert_eq!(n_told(&model.last_of_top()), 1);
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 2);
}

// REQ: AGT-3, AGT-6, AGT-8
#[tokio::test]
async fn session_that_is_closed_ends_its_agents_and_the_next_one_says_what_became_of_them() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => call("g", "wait", json!({})).after("half of it"),
        (true, _) => text("never said"),
        (false, 0) => call("a", "Agent", agent()),
        (false, _) => text("done"),
    });
    let barrier = Barrier::closed();
    let options = || place.session().tool(wait_at("wait", &barrier));
    let ennead = place.start(&model).await;
    let session = ennead.open(options()).await.unwrap();
    session.prompt("go").await.unwrap();
    barrier.arrived().await;
    session.close().await;
    assert_eq!(states(session.transcript()), "running, cancelled untold");
    record::verified(&place.sidechains()[0]);
    let session = ennead.open(options()).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.text, "done");
    let user = model.last_of_top().user();
    assert!(
        user.contains("was stopped before its end. The last that it said:\nhalf of it"),
        "{user}"
    );
    session.prompt("more").await.unwrap();
    assert_eq!(n_told(&model.last_of_top()), 1, "it is told once");
    assert_eq!(states(session.transcript()), "running, cancelled untold, cancelled");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 4);
}

// REQ: AGT-6, AGT-8, SES-4
#[tokio::test]
async fn agent_of_a_killed_process_is_told_as_lost_with_what_it_said() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => call("g", "wait", json!({})).after("half of it"),
        (true, _) => text("the rest"),
        (false, 0) => call("a", "Agent", agent()),
        (false, _) => text("done"),
    });
    let barrier = Barrier::closed();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().tool(wait_at("wait", &barrier))).await.unwrap();
    session.prompt("go").await.unwrap();
    barrier.arrived().await;
    // What a process that is killed now leaves.
    let left = TestDirs::new();
    copy(&place.path("transcripts"), &left.path("transcripts"));
    let next = left.start(&model).await;
    let resumed = next.open(left.session().tool(wait_at("wait", &barrier))).await.unwrap();
    resumed.prompt("again").await.unwrap();
    let user = model.last_of_top().user();
    assert!(user.contains("was cut off when its process ended"), "{user}");
    assert!(user.contains("The last that it said:\nhalf of it"), "{user}");
    assert_eq!(states(resumed.transcript()), "running, lost");
    finish(next, resumed.clone()).await;
    record::replayed(resumed.transcript(), 3);
    record::verified(&left.sidechains()[0]);
    finish(ennead, session).await;
}

/// Copies a folder with everything below it, but for locks.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else if entry.path().extension().is_none_or(|it| it != "lock") {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

// REQ: AGT-8, HKS-1
#[tokio::test]
async fn hooks_see_every_prompt_of_a_person_and_cannot_refuse_the_end_of_an_agent() {
    let place = TestDirs::new();
    let model = launches();
    model.hold().close();
    let seen = place.text("outside/prompts");
    let hook =
        json!({"type": "command", "command": format!("cat >> {seen}; echo >> {seen}; exit 2")});
    let notes = json!({"type": "command", "command": format!("cat >> {seen}; echo >> {seen}")});
    let options = |handler: &Value| {
        place.session().setting("hooks", json!({"UserPromptSubmit": [{"hooks": [handler]}]}))
    };
    let prompts = || {
        let lines: Vec<String> = place.read("outside/prompts").lines().map(str::to_owned).collect();
        let of = |it: &String| serde_json::from_str::<Value>(it).unwrap()["prompt"].to_string();
        lines.iter().map(of).collect::<Vec<_>>()
    };
    let ennead = place.start(&model).await;
    let session = ennead.open(options(&notes)).await.unwrap();
    session.prompt("go").await.unwrap();
    model.hold().arrived().await;
    session.close().await;
    // The report of the agent that was ended comes after this prompt, which a hook refuses.
    let session = ennead.open(options(&hook)).await.unwrap();
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.end, RunEnd::HookStopped);
    assert_eq!(prompts(), [r#""go""#, r#""again""#]);
    session.close().await;
    record::replayed(session.transcript(), 3);

    let place = TestDirs::new();
    model.hold().close();
    let ennead = place.start(&model).await;
    let refuses = "grep -q task-notification && exit 2; exit 0";
    let refuses = json!({"type": "command", "command": refuses});
    let table = json!({"UserPromptSubmit": [{"hooks": [refuses]}]});
    let session = ennead.open(place.session().setting("hooks", table)).await.unwrap();
    let mut log = EventLog::new(session.events());
    session.prompt("go").await.unwrap();
    end_of_run(&mut log).await;
    model.hold().open();
    end_of_run(&mut log).await;
    let user = model.last_of_top().user();
    assert!(user.contains("<task-notification>\nThe background agent "), "{user}");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 3);
}
