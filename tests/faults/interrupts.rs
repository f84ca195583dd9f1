//! Interrupt, stop, status and close get through at any moment, and end what they should.
//!
//! That something still waits is shown by a barrier which opens only after the answer.

use std::fs;

use ennead::{
    Event, Placement, RunEnd,
    data::{ActorKind, Step},
};
use ennead_runtime::ports::shells::Detached;
use serde_json::json;

use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    events::EventLog,
    host::{
        Host, check_answers, check_record, check_usable, interrupted, prompt, prompt_to, results,
    },
    processes::GRANDCHILD,
    record,
    until::until,
    waits::{WAITS, Wait, check_early_end},
};

async fn check_wait(placement: Placement, wait: Wait) {
    let (text, step, at) = wait;
    let (host, session) = Host::open_one(placement).await;
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, text, at(&host)).await;
    let status = session.status().await.unwrap();
    assert_eq!((status.step, status.turn, status.queued), (Some(step), 1, 0), "{text}");
    session.interrupt();
    interrupted(run).await;
    assert_eq!(log.runs(), (1, 1), "{text}");
    check_early_end(&session, "interrupted", wait);
    at(&host).open();
    check_usable(&session).await;
}

// REQ: TRN-2, TRN-11, TOL-4
#[tokio::test]
async fn whatever_a_turn_waits_for_an_interrupt_ends_it() {
    for wait in WAITS {
        check_wait(Placement::Ambient, wait).await;
        check_wait(Placement::Threads(1), wait).await;
    }
}

// REQ: TOL-8, TRN-2
#[tokio::test]
async fn interrupt_ends_the_whole_process_tree_of_a_command() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let (run, reader) = host.prompt_alive(&session, format!("run {GRANDCHILD}")).await;
    session.interrupt();
    interrupted(run).await;
    reader.await.unwrap();
    check_usable(&session).await;
}

// REQ: TOL-8, TRN-2
#[tokio::test]
async fn interrupt_ends_hosted_work_that_heeds_nobody_and_none_begins_afterwards() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, "use host", &host.workshop.wait).await;
    assert_eq!(host.live(session.id(), ActorKind::ShellProcess).len(), 1);
    session.interrupt();
    interrupted(run).await;
    assert_eq!(host.live(session.id(), ActorKind::ShellProcess).len(), 0);
    assert!(!log.has(|it| matches!(it, Event::Alert { .. })), "nothing was late");
    let (begun, begun_at) = tokio::sync::oneshot::channel();
    let late = host.workshop.processes.lock().unwrap().take().unwrap();
    late.host(Box::pin(async move { begun.send(()).unwrap() }), Detached::default());
    assert!(begun_at.await.is_err(), "its turn is over");
    host.workshop.wait.open();
    check_usable(&session).await;
}

// REQ: TOL-8, TRN-2
#[tokio::test]
async fn interrupt_ends_the_whole_process_tree_of_a_hook() {
    let host = Host::start(Placement::Ambient).await;
    let handlers = json!([{ "hooks": [{ "type": "command", "command": GRANDCHILD }] }]);
    let options = host.options().setting("hooks", json!({ "PreToolUse": handlers }));
    let session = host.ennead.open(options).await.unwrap();
    let (run, reader) = host.prompt_alive(&session, "use echo").await;
    let status = session.status().await.unwrap();
    assert_eq!(status.step, Some(Step::PermissionGate));
    session.interrupt();
    interrupted(run).await;
    reader.await.unwrap();
    assert_eq!(host.workshop.n_runs("echo"), 0);
    check_record(session.transcript());
}

// REQ: AGT-3, TRN-11
#[tokio::test]
async fn interrupt_ends_sub_agents_and_theirs_and_closes_their_transcripts() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, "delegate delegate use wait", &host.workshop.wait).await;
    let agents = || host.ennead.directory().all().into_iter();
    assert_eq!(agents().filter(|it| it.kind == ActorKind::SubAgent).count(), 2);
    session.interrupt();
    interrupted(run).await;
    assert_eq!(log.runs(), (1, 1));
    let below = session.transcript().with_extension("").join("subagents");
    let files: Vec<_> = fs::read_dir(below)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    assert_eq!(files.len(), 2);
    for file in &files {
        check_record(file);
        assert_eq!(record::run_ends(file), ["interrupted"]);
    }
    check_usable(&session).await;
    session.close().await;
    let left = agents().filter(|it| {
        use ActorKind as K;
        !matches!(it.kind, K::Shard | K::Governor | K::Archive | K::Session)
    });
    assert_eq!(left.map(|it| it.kind).collect::<Vec<_>>(), []);
}

// REQ: TRN-2, TOL-7
#[tokio::test]
async fn slow_write_on_a_thread_writes_nothing_behind_an_interrupt() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let run = prompt_to(&session, "use slow_write", &host.workshop.thread).await;
    session.interrupt();
    // The session is served while the thread works, and waits for it with the end of the run.
    assert!(session.status().await.unwrap().run.is_some());
    host.workshop.thread.open();
    interrupted(run).await;
    assert!(!host.path("written").exists());
    check_usable(&session).await;
}

// REQ: TRN-2, TOL-7
#[test]
fn write_writes_nothing_behind_an_interrupt() {
    // One thread for blocking work, and the test has it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (host, session) = Host::open_one(Placement::Ambient).await;
        let mut log = EventLog::new(session.events());
        check_answers(&session).await;
        let (begun, thread) = (Barrier::closed(), Barrier::closed());
        let held = tokio::task::spawn_blocking({
            let (begun, thread) = (begun.clone(), thread.clone());
            move || {
                begun.open();
                thread.pass_blocking();
            }
        });
        begun.pass().await;
        let run = prompt(&session, "write");
        log.until(|it| matches!(it, Event::ToolStarted { .. })).await;
        session.interrupt();
        assert!(session.status().await.unwrap().run.is_some());
        thread.open();
        let outcome = interrupted(run).await;
        assert!(results(&outcome)[0].0);
        held.await.unwrap();
        assert!(!host.path("written").exists());
        check_usable(&session).await;
    });
}

// REQ: TRN-2, SES-3
#[tokio::test]
async fn call_behind_its_point_of_no_return_is_recorded_as_done() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let run = prompt_to(&session, "use settle wait", &host.workshop.thread).await;
    session.interrupt();
    assert!(session.status().await.unwrap().run.is_some());
    host.workshop.thread.open();
    let outcome = interrupted(run).await;
    let results = results(&outcome);
    assert_eq!(results[0], (false, "it is done".to_owned()));
    assert!(results[1].0, "{results:?}");
    assert_eq!(host.workshop.n_runs("wait"), 0);
    check_usable(&session).await;
}

// REQ: TRN-2
#[tokio::test(start_paused = true)]
async fn work_that_does_not_let_go_is_waited_for_two_seconds() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let run = prompt(&session, "use hoard");
    log.until(|it| matches!(it, Event::ToolStarted { .. })).await;
    // The executor begins after the event; a turn that was asked for its status is past that.
    until("the executor has begun", async || {
        session.status().await.unwrap();
        !host.workshop.hoard.lock().unwrap().is_empty()
    })
    .await;
    let before = tokio::time::Instant::now();
    session.interrupt();
    interrupted(run).await;
    assert_eq!(before.elapsed().as_millis() / 10, 200);
    assert!(log.has(|it| matches!(it, Event::Alert { .. })));
    check_usable(&session).await;
}

// REQ: TRN-2, TRN-11
#[tokio::test]
async fn interrupt_at_the_very_start_ends_the_run_before_its_first_turn() {
    for placement in [Placement::Ambient, Placement::Threads(1)] {
        let (host, session) = Host::open_one(placement).await;
        let mut log = EventLog::new(session.events());
        host.files.settings.close();
        let run = futures::future::join(session.prompt("use echo"), async {
            session.interrupt();
        });
        let outcome = run.await.0.unwrap();
        assert_eq!(outcome.end, RunEnd::Interrupted);
        assert_eq!(log.runs(), (1, 1));
        assert_eq!(host.workshop.n_runs("echo"), 0);
        host.files.settings.open();
        check_usable(&session).await;
    }
}

// REQ: TRN-2
#[tokio::test]
async fn interrupt_without_a_run_twice_and_in_a_later_turn() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    session.interrupt();
    check_usable(&session).await;
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    session.interrupt();
    session.interrupt();
    interrupted(run).await;
    session.interrupt();
    check_usable(&session).await;
    let run = prompt(&session, "use wait");
    host.workshop.wait.arrived().await;
    host.breaks.hold(session.id(), Step::SettingsResolution);
    host.workshop.wait.open();
    host.breaks.reached().await;
    let status = session.status().await.unwrap();
    assert_eq!((status.turn, status.step), (2, Some(Step::SettingsResolution)));
    session.interrupt();
    let outcome = interrupted(run).await;
    assert_eq!((outcome.turns, results(&outcome).len()), (2, 1));
    check_usable(&session).await;
}

// REQ: TRN-2, SES-3
#[tokio::test]
async fn prompt_that_waits_runs_when_the_run_before_was_interrupted() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let first = prompt_to(&session, "use wait", &host.workshop.wait).await;
    let second = prompt(&session, "again");
    until("the prompt waits", async || session.status().await.unwrap().queued == 1).await;
    session.interrupt();
    interrupted(first).await;
    assert_eq!(second.await.unwrap().unwrap().text, "still here");
    assert_eq!(log.runs(), (2, 2));
    check_usable(&session).await;
}
