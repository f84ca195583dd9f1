//! The wall-clock limit of a run. A timer that a test holds says when it is reached.

use std::{sync::Arc, time::Duration};

use ennead::{Placement, RunEnd, RunRequest, data::ActorKind, testing::ManualClock};

use crate::support::{
    barrier::Barrier,
    held_timer::HeldTimer,
    host::{Host, Running, ask, check_usable, results},
    record,
    until::until,
    waits::{WAITS, Wait, check_early_end},
};

const LIMIT: Duration = Duration::from_secs(60);

async fn start(placement: Placement, time: &Barrier) -> Host {
    let timer = Arc::new(HeldTimer::at(time).up_to(LIMIT));
    Host::start_with(placement, |it| it.timer(timer)).await
}

/// A session whose clock and timer are one clock that the test moves.
async fn open_with_manual_clock() -> (Arc<ManualClock>, Host, ennead::SessionHandle) {
    let clock = Arc::new(ManualClock::at(1_790_000_000_000));
    let (time, timer) = (Arc::clone(&clock), Arc::clone(&clock));
    let host = Host::start_with(Placement::Ambient, |it| it.clock(time).timer(timer)).await;
    let session = host.open().await;
    (clock, host, session)
}

// REQ: TRN-14
#[tokio::test]
async fn limit_on_a_manual_clock_is_reached_when_the_clock_is_moved_and_not_before() {
    let (clock, host, session) = open_with_manual_clock().await;
    let request = || RunRequest::new("use asked").time_limit(LIMIT);
    let outcome = session.run(request()).await.unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools, "nothing moved the clock");
    host.approver.barrier.close();
    let run = ask(&session, request());
    host.approver.barrier.arrived().await;
    clock.advance(LIMIT);
    timed_out(run).await;
    host.approver.barrier.open();
}

async fn timed_out(run: Running) -> ennead::RunOutcome {
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.end.code()), (RunEnd::TimedOut, "timed_out"));
    outcome
}

/// Until the timer of the last run is gone.
async fn no_timer(host: &Host, session: &ennead::SessionHandle) {
    let timers = || host.live(session.id(), ActorKind::RunTimer);
    until("the timer is gone", async || timers().is_empty()).await;
}

async fn check_wait(placement: Placement, wait: Wait) {
    let (text, _, at) = wait;
    let time = Barrier::closed();
    let host = start(placement, &time).await;
    let session = host.open().await;
    at(&host).close();
    let run = ask(&session, RunRequest::new(text).time_limit(LIMIT));
    at(&host).arrived().await;
    time.arrived().await;
    time.open();
    timed_out(run).await;
    check_early_end(&session, "timed_out", wait);
    at(&host).open();
    check_usable(&session).await;
}

// REQ: TRN-14
#[tokio::test]
async fn whatever_a_turn_waits_for_the_limit_ends_the_run() {
    for wait in WAITS {
        check_wait(Placement::Ambient, wait).await;
        check_wait(Placement::Threads(1), wait).await;
    }
}

// REQ: TRN-14
#[tokio::test]
async fn calls_that_the_limit_cuts_off_are_answered_and_the_session_can_be_resumed() {
    let time = Barrier::closed();
    let host = start(Placement::Ambient, &time).await;
    let session = host.open().await;
    host.workshop.wait.close();
    let run = ask(&session, RunRequest::new("use echo wait").time_limit(LIMIT));
    host.workshop.wait.arrived().await;
    time.open();
    let outcome = timed_out(run).await;
    let shown = results(&outcome);
    assert_eq!(shown.len(), 2);
    assert!(shown[1].0 && shown[1].1.starts_with("Interrupted"), "{shown:?}");
    host.workshop.wait.open();
    let mut options = host.options();
    options.id = Some(session.id().clone());
    session.close().await;
    let again = host.ennead.open(options).await.unwrap();
    check_usable(&again).await;
}

// REQ: TRN-14
#[tokio::test]
async fn limit_that_is_over_at_once_ends_the_run_at_its_beginning() {
    let time = Barrier::default();
    let host = start(Placement::Ambient, &time).await;
    let session = host.open().await;
    host.model.answer.close();
    let request = RunRequest::new("held hello").time_limit(Duration::ZERO);
    let outcome = timed_out(ask(&session, request)).await;
    assert!(outcome.turns <= 1);
    host.model.answer.open();
    check_usable(&session).await;
    assert_eq!(record::run_ends(session.transcript()), ["timed_out", "no_pending_tools"]);
}

// REQ: TRN-14
#[tokio::test]
async fn timer_goes_with_its_run_and_does_not_end_the_next_one() {
    let time = Barrier::closed();
    let host = start(Placement::Ambient, &time).await;
    let session = host.open().await;
    let request = || RunRequest::new("again").time_limit(LIMIT);
    for _ in 0..3 {
        assert_eq!(session.run(request()).await.unwrap().end, RunEnd::NoPendingTools);
    }
    no_timer(&host, &session).await;
    time.open();
    check_usable(&session).await;
}

// REQ: TRN-14, RUN-1
#[tokio::test]
async fn timer_that_is_killed_has_a_successor() {
    let time = Barrier::closed();
    let host = start(Placement::Ambient, &time).await;
    let session = host.open().await;
    host.model.answer.close();
    let run = ask(&session, RunRequest::new("held hello").time_limit(LIMIT));
    host.model.answer.arrived().await;
    time.arrived().await;
    let timers = host.live(session.id(), ActorKind::RunTimer);
    assert_eq!(timers.len(), 1);
    timers[0].cell.kill();
    time.arrived().await;
    time.open();
    timed_out(run).await;
    host.model.answer.open();
    check_usable(&session).await;
}

// REQ: TRN-14
#[tokio::test(start_paused = true)]
async fn limit_is_counted_from_the_beginning_of_the_run() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    host.model.answer.close();
    let began = tokio::time::Instant::now();
    let first = ask(&session, RunRequest::new("held hello").time_limit(LIMIT));
    host.model.answer.arrived().await;
    let second = ask(&session, RunRequest::new("held on").time_limit(LIMIT / 2));
    timed_out(first).await;
    assert_eq!(began.elapsed().as_secs(), 60);
    timed_out(second).await;
    assert_eq!(began.elapsed().as_secs(), 90, "it waited in the queue first");
    host.model.answer.open();
    check_usable(&session).await;
}
