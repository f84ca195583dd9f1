//! SendMessage: an agent at work reads it before its next step, one that has ended goes on with it, and no message is
//! lost or read twice, whatever ends first.

use std::{fs, path::Path, sync::Arc, time::Duration};

use ennead::{Ennead, Event, SessionHandle, data::ActorKind, tool::AgentType};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::{Value, json};

use super::background_agents::copy;
use crate::support::{
    barrier::Barrier,
    events::EventLog,
    hunter::hunt,
    record,
    scripted::{Asked, Reply, Scripted, TestDirs, call, finish, model, text},
    settings::SettingsJson as _,
    tools::wait_at,
    until::{until, within},
};

/// A call that starts an agent in the background.
fn in_background(prompt: &str) -> Value {
    json!({"description": "look", "prompt": prompt, "run_in_background": true})
}

/// A prompt has the top session send a message: `to:<id> <text>`. The id of the call is the number of the answer.
fn tell(asked: &Asked) -> Option<Reply> {
    let user = asked.user();
    let last = user.lines().rfind(|it| it.starts_with("to:"))?;
    let (to, message) = last.strip_prefix("to:")?.split_once(' ')?;
    let plain = message.chars().filter(|it| it.is_ascii_alphanumeric() || *it == ' ').take(20);
    let id = format!("tell_{}", plain.collect::<String>().replace(' ', "_"));
    let is_sent = asked.results().iter().any(|it| it.0 == id);
    (!is_sent).then(|| call(&id, "SendMessage", json!({"to": to, "message": message})))
}

/// The id of the agent whose transcript is the `n`th.
fn agent_id(place: &TestDirs, n: usize) -> String {
    let file = place.sidechains()[n].file_stem().unwrap().to_string_lossy().into_owned();
    file.strip_prefix("agent-").unwrap().to_owned()
}

/// How often an agent is shown what was sent to it while it was at work.
fn n_shown(asked: &Asked) -> usize {
    asked.user().matches("The one that gave you your task sends you this message").count()
}

fn last_of_agents(model: &Scripted) -> Asked {
    model.asked_by_agents().pop().unwrap()
}

/// Waits until the top session reads this answer of an agent: with a turn of its run, or in one of its own.
async fn told(model: &Scripted, answer: &str) {
    let expected = format!("Its answer:\n{answer}");
    let is_told = || model.last_of_top().user().contains(&expected);
    until("the answer is read", async || is_told()).await;
}

/// The turns of a transcript.
fn n_turns(transcript: &Path) -> u64 {
    let is_first = |what: &RecordKind| matches!(what, RecordKind::TurnStep { number: 1, .. });
    record::records(transcript).iter().filter(|it| is_first(&it.what)).count() as u64
}

async fn end_of_run(log: &mut EventLog) {
    log.until(|it| matches!(it, Event::RunFinished { .. })).await;
}

/// The states of agents in the background that are on record.
fn states(transcript: &Path) -> String {
    let state = |what: RecordKind| match what {
        RecordKind::BackgroundAgent(it) if it.is_unreported => Some(it.state + " untold"),
        RecordKind::BackgroundAgent(it) => Some(it.state),
        _ => None,
    };
    let records = record::records(transcript).into_iter();
    records.filter_map(|it| state(it.what)).collect::<Vec<_>>().join(", ")
}

/// The top session starts an agent and sends it the message that its prompt names. The agent waits once and then answers.
fn waits() -> Arc<Scripted> {
    model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => call("w", "wait", json!({})),
        (true, n) => text(&format!("found {n}")),
        (false, 0) => call("a", "Agent", in_background("look about")),
        (false, n) => tell(asked).unwrap_or_else(|| text(&format!("answer {n}"))),
    })
}

async fn open(ennead: &Ennead, place: &TestDirs, barrier: &Barrier) -> SessionHandle {
    ennead.open(place.session().tool(wait_at("wait", barrier))).await.unwrap()
}

// REQ: AGT-6
#[tokio::test]
async fn agent_at_work_reads_a_message_before_its_next_turn() {
    let place = TestDirs::new();
    let (model, barrier) = (waits(), Barrier::closed());
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place, &barrier).await;
    let mut log = EventLog::new(session.events());
    session.prompt("go").await.unwrap();
    barrier.arrived().await;
    end_of_run(&mut log).await;
    // Long enough to lie next to the transcript.
    let long = format!("look <system-reminder> {}", "far ".repeat(2_000));
    session.prompt(format!("to:{} {long}", agent_id(&place, 0))).await.unwrap();
    let (_, result, is_error) = model.last_of_top().results().pop().unwrap();
    assert!(result.contains("is at work and reads your message") && !is_error, "{result}");
    end_of_run(&mut log).await;
    assert_eq!(model.asked_by_agents().len(), 1, "it is at its tool");
    barrier.open();
    end_of_run(&mut log).await;
    let asked = last_of_agents(&model);
    assert_eq!(n_shown(&asked), 1);
    assert!(asked.user().contains("look &lt;system-reminder> far far"), "{}", asked.user());
    assert!(model.last_of_top().user().contains("Its answer:\nfound 1"));
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 5);
    record::replayed(&place.sidechains()[0], 2);
}

// REQ: AGT-6, AGT-8
#[tokio::test]
async fn message_that_comes_during_the_last_answer_has_the_agent_go_on_and_end_once() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, n) => text(&format!("found {n}")),
        (false, 0) => call("a", "Agent", in_background("held: look about")),
        (false, n) => tell(asked).unwrap_or_else(|| text(&format!("answer {n}"))),
    });
    model.hold().close();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut log = EventLog::new(session.events());
    session.prompt("go").await.unwrap();
    model.hold().arrived().await;
    end_of_run(&mut log).await;
    session.prompt(format!("to:{} look there", agent_id(&place, 0))).await.unwrap();
    end_of_run(&mut log).await;
    model.hold().open();
    end_of_run(&mut log).await;
    assert_eq!((n_shown(&last_of_agents(&model)), model.asked_by_agents().len()), (1, 2));
    assert!(model.last_of_top().user().contains("Its answer:\nfound 1"));
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 5);
    record::replayed(&place.sidechains()[0], 2);
}

/// The top session waits for an agent, and then sends it the message that its prompt names.
fn answers() -> Arc<Scripted> {
    model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, n) => text(&format!("found {n}")),
        (false, 0) => call("a", "Agent", json!({"description": "look", "prompt": "look about"})),
        (false, n) => tell(asked).unwrap_or_else(|| text(&format!("answer {n}"))),
    })
}

// REQ: AGT-6, AGT-8, SES-4
#[tokio::test]
async fn agent_that_has_ended_goes_on_with_all_that_it_knows_in_a_later_process_too() {
    let place = TestDirs::new();
    let model = answers();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut log = EventLog::new(session.events());
    session.prompt("go").await.unwrap();
    end_of_run(&mut log).await;
    let id = agent_id(&place, 0);
    for (message, answer) in [("look there", "found 1"), ("look here", "found 2")] {
        session.prompt(format!("to:{id} {message}")).await.unwrap();
        told(&model, answer).await;
    }
    let asked = last_of_agents(&model);
    assert_eq!((asked.n_answers(), n_shown(&asked)), (2, 0));
    assert!(asked.user().contains("look about") && asked.user().contains("look here"));
    finish(ennead, session.clone()).await;
    let next = place.start(&model).await;
    let session = next.open(place.session()).await.unwrap();
    session.prompt(format!("to:{id} once more")).await.unwrap();
    told(&model, "found 3").await;
    assert_eq!(place.sidechains().len(), 1);
    let all = ["running, completed"; 3].join(", ");
    assert_eq!(states(session.transcript()), all);
    finish(next, session.clone()).await;
    record::replayed(session.transcript(), n_turns(session.transcript()));
    record::replayed(&place.sidechains()[0], 4);
}

// REQ: AGT-5, AGT-6
#[tokio::test]
async fn message_for_what_is_no_agent_that_can_go_on_is_an_error_that_says_why() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) if asked.user().contains("nest") => {
            call("n", "Agent", json!({"description": "d", "prompt": "inner"}))
        }
        (true, _) => text("found it"),
        (false, 0) => call(
            "a",
            "Agent",
            json!({"description": "d", "prompt": "p", "subagent_type": "Explore"}),
        ),
        (false, 2) => call("b", "Agent", json!({"description": "d", "prompt": "nest"})),
        (false, 4) => {
            call("c", "Agent", json!({"description": "d", "prompt": "p", "subagent_type": "scout"}))
        }
        (false, _) => tell(asked).unwrap_or_else(|| text("done")),
    });
    let scout = |prompt: &str| {
        let definition =
            json!({"description": "d", "prompt": format!("You are a sub-agent. {prompt}")});
        AgentType::read("scout", &definition).unwrap()
    };
    let ennead = place.start(&model).await;
    let options = |kind| place.session().agent_type(kind);
    let session = ennead.open(options(scout("Look."))).await.unwrap();
    for _ in 0..3 {
        session.prompt("go").await.unwrap();
    }
    session.close().await;
    // Another type has the name now.
    let session = ennead.open(options(scout("Scout."))).await.unwrap();
    let meta = |n: usize| {
        let file = place.sidechains()[n].with_extension("meta.json");
        serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap()
    };
    let find = |is_meant: &dyn Fn(&Value) -> bool| {
        let n = (0..place.sidechains().len()).find(|it| is_meant(&meta(*it))).unwrap();
        agent_id(&place, n)
    };
    let cases = [
        ("0000000000000000".to_owned(), "there is no agent 0000000000000000. None is at work."),
        ("../x".to_owned(), "there is no agent ../x."),
        ("general-purpose".to_owned(), "general-purpose is a type of agents and not the id of one"),
        (find(&|it| it["agentType"] == "Explore"), "which answers once and cannot go on"),
        (find(&|it| it["parentAgentId"].is_string()), "it is an agent of another agent"),
        (find(&|it| it["agentType"] == "scout"), "scout is another type of agents by now"),
    ];
    for (n, (to, expected)) in cases.into_iter().enumerate() {
        session.prompt(format!("to:{to} message {n}")).await.unwrap();
        let (_, result, is_error) = model.last_of_top().results().pop().unwrap();
        assert!(is_error && result.contains(expected), "{to}: {result}");
    }
    assert_eq!(states(session.transcript()), "");
    finish(ennead, session).await;
}

// REQ: AGT-6, AGT-7
#[tokio::test]
async fn agent_goes_on_only_where_the_number_at_once_has_room_for_it() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => text("found it"),
        (false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "p"})),
        (false, 2) => call("b", "Agent", in_background("held: look about")),
        (false, _) => tell(asked).unwrap_or_else(|| text("done")),
    });
    model.hold().close();
    let limits = json!({"agents": {"maxAtOnce": 1}});
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().setting("ennead", limits)).await.unwrap();
    session.prompt("go").await.unwrap();
    let id = agent_id(&place, 0);
    session.prompt("go").await.unwrap();
    model.hold().arrived().await;
    session.prompt(format!("to:{id} look there")).await.unwrap();
    let (_, result, is_error) = model.last_of_top().results().pop().unwrap();
    assert!(is_error && result.contains("cannot go on"), "{result}");
    model.hold().open();
    finish(ennead, session).await;
}

/// Cuts a transcript after the last line that holds this text.
fn cut_after(transcript: &Path, last: &str) {
    let all = fs::read_to_string(transcript).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    let n = lines.iter().rposition(|it| it.contains(last)).unwrap();
    fs::write(transcript, lines[..=n].join("\n") + "\n").unwrap();
}

// REQ: AGT-6, AGT-8, SES-4
#[tokio::test]
async fn message_of_a_killed_process_is_read_once_and_a_lost_one_is_known_to_be() {
    let place = TestDirs::new();
    let (model, barrier) = (waits(), Barrier::closed());
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place, &barrier).await;
    session.prompt("go").await.unwrap();
    barrier.arrived().await;
    let id = agent_id(&place, 0);
    session.prompt(format!("to:{id} look there")).await.unwrap();
    let intent = r#""kind":"tool_intent""#;
    // What a process leaves that is killed now, or before the call was answered, or before the agent had it.
    for (cuts, result) in [
        (&[][..], ""),
        (&[(false, intent)][..], "has the message"),
        (&[(false, intent), (true, r#""kind":"tool_intent""#)][..], "does not have the message"),
    ] {
        let left = TestDirs::new();
        copy(&place.path("transcripts"), &left.path("transcripts"));
        for (is_agent, last) in cuts {
            let file = session.transcript().file_name().unwrap();
            let top = left.path("transcripts").join(file);
            let of_agent = left.sidechains()[0].clone();
            cut_after(if *is_agent { &of_agent } else { &top }, last);
        }
        let is_sent = !result.starts_with("does not");
        // What the next process writes is known by its time.
        left.clock.advance(Duration::from_secs(1));
        let next = left.start(&model).await;
        let resumed = open(&next, &left, &Barrier::default()).await;
        resumed.prompt(format!("to:{id} once more")).await.unwrap();
        let asked = model.last_of_top();
        if !result.is_empty() {
            assert!(asked.result("tell_look_there").contains(result), "{asked:?}");
        }
        assert!(asked.user().contains("was cut off when its process ended"), "{}", asked.user());
        told(&model, "found").await;
        let asked = last_of_agents(&model);
        assert_eq!((n_shown(&asked), asked.user().matches("look there").count()), {
            let n = usize::from(is_sent);
            (n, n)
        });
        assert_eq!(asked.user().matches("once more").count(), 1);
        finish(next, resumed.clone()).await;
        record::verified(resumed.transcript());
        record::replayed(&left.sidechains()[0], 2);
    }
    barrier.open();
    finish(ennead, session).await;
}

// REQ: AGT-6
#[tokio::test]
async fn sub_agent_sends_no_messages() {
    let place = TestDirs::new();
    let model = answers();
    place.run(&model, place.session()).await;
    let offered = |asked: &Asked| asked.tools().iter().any(|it| it == "SendMessage");
    assert!(offered(&model.last_of_top()) && !offered(&last_of_agents(&model)));
}

// REQ: AGT-6, RUN-2
#[tokio::test]
async fn crashed_agent_goes_on_also_where_the_reader_of_what_it_used_crashed_after_it() {
    let place = TestDirs::new();
    let (model, barrier) = (waits(), Barrier::closed());
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place, &barrier).await;
    let mut log = EventLog::new(session.events());
    session.prompt("go").await.unwrap();
    barrier.arrived().await;
    end_of_run(&mut log).await;
    let agents =
        || ennead.directory().all().into_iter().filter(|it| it.kind == ActorKind::SubAgent);
    let killed = hunt(ennead.directory().clone(), |it, _| it.kind == ActorKind::SourceReader);
    agents().for_each(|it| it.cell.kill());
    // It is the first reader since: the model learns of the crash after that.
    end_of_run(&mut log).await;
    assert!(killed.is_finished() && agents().next().is_none());
    barrier.open();
    let prompt = session.prompt(format!("to:{} look there", agent_id(&place, 0)));
    within("the message is sent", prompt).await.unwrap();
    told(&model, "found 1").await;
    assert!(last_of_agents(&model).user().contains("look there"));
    finish(ennead, session).await;
}
