//! A run begins and ends exactly once, whatever ends it: stop, close, shutdown, drop, a flood.

use ennead::{
    Placement, RunEnd, RunError,
    data::{ActorKind, Step},
};

use crate::support::{
    events::EventLog,
    host::{Host, check_record, check_usable, interrupted, prompt, prompt_to, results},
    processes::GRANDCHILD,
    until::until,
};

// REQ: TRN-7
#[tokio::test]
async fn stop_lets_the_turn_end_and_ends_the_run() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    session.stop();
    session.status().await.unwrap();
    host.workshop.wait.open();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.turns), (RunEnd::ExplicitStop, 1));
    assert_eq!(results(&outcome), [(false, "waited".to_owned())]);
    check_usable(&session).await;
    // Before its first turn a run can be stopped, too.
    let run = futures::future::join(session.prompt("use echo"), async { session.stop() });
    let outcome = run.await.0.unwrap();
    assert_eq!((outcome.end, outcome.turns), (RunEnd::ExplicitStop, 1));
    check_usable(&session).await;
}

// REQ: RUN-2
#[tokio::test]
async fn supervisor_and_dispatcher_stay_from_turn_to_turn_and_end_with_their_run() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let live = |kind| {
        let live = host.live(session.id(), kind);
        live.iter().map(|it| it.cell.get_id()).collect::<Vec<_>>()
    };
    let both = || [ActorKind::TurnSupervisor, ActorKind::ToolDispatcher].map(live);
    host.breaks.hold(session.id(), Step::StopCheck);
    let run = prompt(&session, "use echo");
    host.breaks.reached().await;
    let first = both();
    assert!(first.iter().all(|it| it.len() == 1), "{first:?}");
    host.breaks.let_go();
    host.breaks.hold(session.id(), Step::StopCheck);
    host.breaks.reached().await;
    assert_eq!(both(), first);
    host.breaks.let_go();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 2));
    until("the supervisor is gone", async || both().iter().all(Vec::is_empty)).await;
    check_usable(&session).await;
}

// REQ: RUN-2
#[tokio::test]
async fn dispatcher_killed_between_two_turns_is_followed_by_another() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let live = || host.live(session.id(), ActorKind::ToolDispatcher);
    host.breaks.hold(session.id(), Step::StopCheck);
    let run = prompt(&session, "loop");
    host.breaks.reached().await;
    host.breaks.let_go();
    host.breaks.hold(session.id(), Step::ModelCall);
    host.breaks.reached().await;
    let victim = live().remove(0);
    victim.cell.kill();
    until("it is gone", async || live().is_empty()).await;
    host.breaks.let_go();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let results = results(&outcome);
    assert_eq!(results.len(), 6);
    assert!(results.iter().all(|(is_error, _)| !is_error), "{results:?}");
}

// REQ: TRN-11, SES-1
#[tokio::test]
async fn close_ends_the_run_and_frees_the_transcript() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    let waiting = prompt(&session, "again");
    until("the prompt waits", async || session.status().await.unwrap().queued == 1).await;
    session.close().await;
    interrupted(run).await;
    assert_eq!(waiting.await.unwrap().unwrap_err(), RunError::Ended);
    assert_eq!(session.prompt("again").await.unwrap_err(), RunError::Ended);
    log.until_end().await;
    assert_eq!(log.runs(), (1, 1));
    check_record(session.transcript());
    let options = host.options().id(session.id().clone());
    check_usable(&host.ennead.open(options).await.unwrap()).await;
}

// REQ: RUN-9, TRN-11
#[tokio::test]
async fn shutdown_closes_what_runs() {
    for placement in [Placement::Ambient, Placement::Threads(2)] {
        let host = Host::start(placement).await;
        let sessions = [host.open().await, host.open().await, host.open().await];
        let mut logs = sessions.each_ref().map(|it| EventLog::new(it.events()));
        host.workshop.wait.close();
        let runs = sessions.each_ref().map(|it| prompt(it, "delegate use wait"));
        for _ in &sessions {
            host.workshop.wait.arrived().await;
        }
        let directory = host.ennead.directory().clone();
        host.ennead.shutdown().await;
        assert!(directory.is_empty(), "{:?}", directory.all());
        for run in runs {
            interrupted(run).await;
        }
        for (session, log) in sessions.iter().zip(&mut logs) {
            log.until_end().await;
            assert_eq!(log.runs(), (1, 1));
            check_record(session.transcript());
            assert_eq!(session.prompt("again").await.unwrap_err(), RunError::Ended);
        }
    }
}

// REQ: RUN-2, TRN-11, TOL-8
#[tokio::test]
async fn dropping_it_ends_everything_at_once() {
    for placement in [Placement::Ambient, Placement::Threads(2)] {
        let (host, session) = Host::open_one(placement).await;
        let mut log = EventLog::new(session.events());
        let (run, reader) = host.prompt_alive(&session, format!("run {GRANDCHILD}")).await;
        drop(host.ennead);
        assert_eq!(run.await.unwrap().unwrap_err(), RunError::Ended);
        log.until_end().await;
        assert_eq!(log.runs(), (1, 1));
        reader.await.unwrap();
    }
}

// REQ: RUN-2, TRN-2
#[tokio::test]
async fn flood_of_steering_is_served_and_disturbs_nobody() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let silent = session.events();
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    for _ in 0..2000 {
        session.status().await.unwrap();
        session.stop();
    }
    host.workshop.wait.open();
    assert_eq!(run.await.unwrap().unwrap().end, RunEnd::ExplicitStop);
    for _ in 0..2000 {
        session.interrupt();
    }
    check_usable(&session).await;
    drop(silent);
}
