//! Agents that verify and do not come to an answer: whatever becomes of one, its handler has failed.

use std::{collections::BTreeMap, fs, path::PathBuf};

use ennead::{Ennead, data::ActorKind};

use super::*;
use crate::support::{
    scripted::{alerts, refusal, silence},
    until::until,
};

// REQ: HKS-1, HKS-2, HKS-4
#[tokio::test]
async fn agent_without_a_usable_answer_decides_nothing_unless_its_failing_denies() {
    type Answer = fn(&Asked) -> Reply;
    let cases: [(Answer, &str, usize, &str); 4] = [
        (|_| text("I think so"), "cannot be read", 1, "no_pending_tools"),
        (|_| refusal(400), "ended with an error", 1, "error"),
        (|_| silence(), "was stopped after", 1, "timed_out"),
        (
            |it| call("g", "Glob", json!({"pattern": format!("{}*", it.n_answers())})),
            "reached a limit",
            50,
            "max_turns",
        ),
    ];
    for (answer, told, n_asked, end) in cases {
        let mut asks = handler("Harmless?");
        if told == "was stopped after" {
            asks["timeout"] = json!(0.05);
        }
        let handlers = std::slice::from_ref(&asks);
        let (came, n_ran) = under("PreToolUse", handlers, verified(answer), 2).await;
        assert_eq!((came.end(), n_ran), (RunEnd::NoPendingTools, 1), "{told}");
        assert_eq!(
            (came.by_agents().len(), &came.agent_ends[..]),
            (n_asked, &[end.to_owned()][..])
        );
        let alerts = alerts(&came.seen).join("\n");
        assert!(alerts.contains(told), "{told}: {alerts}");
        asks["onFailure"] = "block".into();
        let (came, n_ran) = under("PreToolUse", &[asks], verified(answer), 2).await;
        assert_eq!((came.end(), n_ran), (RunEnd::NoPendingTools, 0), "{told}");
    }
}

// REQ: HKS-1, AGT-7
#[tokio::test]
async fn call_is_denied_where_a_limit_does_not_let_its_agent_start() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let options = options.setting("hooks", hooks("PreToolUse", &[handler("Harmless?")]));
    let options = options.own_setting("agents", json!({"maxInTree": 0}));
    let came = run(&place, options, &verified(|_| objects()), 2).await;
    assert_eq!((came.end(), ran.lock().unwrap().len()), (RunEnd::NoPendingTools, 0));
    let alerts = alerts(&came.seen).join("\n");
    assert!(alerts.contains("a PreToolUse hook could not be run"), "{alerts}");
    assert!(came.by_agents().is_empty());
}

/// A session whose agents wait at the model, one for each of these, with the prompt under way.
async fn waiting(
    place: &TestDirs,
    model: &Arc<Scripted>,
    asked: &[&str],
) -> (Ennead, ennead::SessionHandle, tokio::task::JoinHandle<RunOutcome>) {
    let (options, _) = probed(place);
    let asks: Vec<Value> = asked.iter().map(|it| handler(it)).collect();
    let ennead = place.start(model).await;
    let options = options.setting("hooks", hooks("PreToolUse", &asks));
    let session = ennead.open(options).await.unwrap();
    model.hold().close();
    let asking = session.clone();
    let run = tokio::spawn(async move { asking.prompt("do it").await.unwrap() });
    for _ in asked {
        model.hold().arrived().await;
    }
    (ennead, session, run)
}

fn sub_agents(ennead: &Ennead) -> Vec<ennead::data::Live> {
    let all = ennead.directory().all().into_iter();
    all.filter(|it| it.kind == ActorKind::SubAgent).collect()
}

// REQ: HKS-1, AGT-3, TRN-11
#[tokio::test]
async fn interrupt_ends_an_agent_that_verifies_and_closes_its_transcript() {
    let (place, model) = (TestDirs::new(), verified(|_| is_fine()));
    let (ennead, session, run) = waiting(&place, &model, &["Is this held?"]).await;
    assert_eq!(sub_agents(&ennead).len(), 1);
    session.interrupt();
    let outcome = run.await.unwrap();
    assert_eq!(outcome.end, RunEnd::Interrupted);
    assert!(sub_agents(&ennead).is_empty());
    assert_eq!(record::run_ends(&place.sidechains()[0]), ["interrupted"]);
    model.hold().open();
    assert_eq!(session.prompt("again").await.unwrap().end, RunEnd::NoPendingTools);
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 2);
    record::replayed(&place.sidechains()[0], 1);
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn agents_of_one_firing_work_at_the_same_time_and_one_objection_is_enough() {
    let answer = |asked: &Asked| if asked.user().contains("That") { objects() } else { is_fine() };
    let (place, model) = (TestDirs::new(), verified(answer));
    let (ennead, session, run) = waiting(&place, &model, &["This held?", "That held?"]).await;
    assert_eq!(sub_agents(&ennead).len(), 2);
    model.hold().open();
    assert_eq!(run.await.unwrap().end, RunEnd::HookStopped);
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 1);
    assert_eq!(place.sidechains().len(), 2);
}

// REQ: HKS-1, RUN-2, AGT-3
#[tokio::test]
async fn crash_of_an_agent_that_verifies_is_a_failure_of_its_handler() {
    let (place, model) = (TestDirs::new(), verified(|_| is_fine()));
    let (ennead, session, run) = waiting(&place, &model, &["Is this held?"]).await;
    let mut events = session.events();
    sub_agents(&ennead)[0].cell.kill();
    let outcome = run.await.unwrap();
    assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "answer 1"));
    let alerts = alerts(&until_end(&mut events).await).join("\n");
    assert!(alerts.contains("the sub-agent crashed"), "{alerts}");
    model.hold().open();
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 2);
    assert_eq!(record::run_ends(&place.sidechains()[0]), ["crashed"]);
}

// REQ: HKS-1, HKS-2, RUN-2
#[tokio::test]
async fn agent_ends_with_what_runs_the_handlers_and_a_call_is_denied_then() {
    let (place, model) = (TestDirs::new(), verified(|_| is_fine()));
    let (ennead, session, run) = waiting(&place, &model, &["Is this held?"]).await;
    let all = ennead.directory().all();
    let runs = all.iter().find(|it| it.kind == ActorKind::HookExecution).unwrap();
    runs.cell.kill();
    let outcome = run.await.unwrap();
    assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "answer 1"));
    until("the agent has ended", async || sub_agents(&ennead).is_empty()).await;
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    let (_, result) = &record::results(&transcript)[&"t".into()];
    assert!(result.contains("could not be run"), "{result}");
    record::replayed(&transcript, 2);
    assert_eq!(record::run_ends(&place.sidechains()[0]), ["interrupted"]);
}

/// All files below a directory.
fn files(directory: PathBuf) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    let read = |it: PathBuf| match it.is_dir() {
        true => files(it),
        false => BTreeMap::from([(it.clone(), fs::read(it).unwrap())]),
    };
    entries.flat_map(read).collect()
}

// REQ: HKS-1, SES-4, AGT-3
#[tokio::test]
async fn session_whose_process_ended_while_an_agent_verified_goes_on_in_order() {
    let (place, model) = (
        TestDirs::new(),
        verified(|asked| match asked.n_answers() {
            // It has used something by then.
            0 => call("g", "Glob", json!({"pattern": "held"})),
            _ => is_fine(),
        }),
    );
    let (ennead, session, run) = waiting(&place, &model, &["Is this held?"]).await;
    model.hold().open();
    let _ended = run.await.unwrap();
    finish(ennead, session).await;
    // As if the process had died when the agent had looked about.
    let whole = files(place.path("transcripts"));
    let top = place.path(&format!("transcripts/{}.jsonl", crate::support::scripted::SESSION));
    for (path, bytes) in whole {
        let until = if path == top { "\"kind\":\"hook\"" } else { "\"kind\":\"run_end\"" };
        match path.extension().and_then(|it| it.to_str()) {
            Some("jsonl") => {
                let kept = String::from_utf8(bytes).unwrap();
                let kept = kept.split_inclusive('\n').take_while(|it| !it.contains(until));
                fs::write(&path, kept.collect::<String>()).unwrap();
            }
            Some("checkpoint") => fs::remove_file(&path).unwrap(),
            _ => {}
        }
    }
    let again = crate::support::scripted::model(|_| text("I see"));
    let (options, _) = probed(&place);
    let outcome = place.run(&again, options).await;
    assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "I see"));
    let result = again.last().result("t");
    assert!(result.contains("not run"), "{result}");
    assert_eq!(record::run_ends(&place.sidechains()[0]), ["crashed"]);
    record::verified(&place.sidechains()[0]);
    record::replayed(&top, 2);
    // Two answers of the agent, one of each process.
    assert_eq!(outcome.session_cost.agents().len(), 1);
}
