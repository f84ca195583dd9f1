//! What all sessions of one provider and key have in common: storms, quotas, tenants, and the actor
//! that wakes those who wait. Time is paused; what counts is the server's own log.

mod server;

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ennead::{
    Endpoint, Event, Placement, RunEnd, RunError, SessionHandle, data::ActorKind,
    model::GovernorLimits,
};
use ennead_runtime::{governor::ParkReason, transcript::entry::RecordKind};
use futures::future::join_all;
use serde_json::json;
use server::{House, Reply, TimedServer, ok, status};
use tokio::time::{Instant, sleep};

use crate::support::settings::SettingsJson as _;
use crate::support::{
    events::EventLog,
    host::{interrupted, prompt},
    record,
    until::until,
};

/// A server whose quota is used up for the first `ms` milliseconds: Anthropic says so by a 429
/// without a pause.
fn without_quota_for(ms: u64) -> Arc<TimedServer> {
    TimedServer::new(move |now, _| if now < ms { status(429, 10) } else { ok(10) })
}

/// Prompts one session after the other until the breaker is open; the last one is parked.
async fn parked(house: &House) -> (SessionHandle, EventLog, crate::support::host::Running) {
    let first = house.open("a").await;
    let _answered = prompt(&first, "go");
    let session = house.open("a").await;
    sleep(Duration::from_millis(50)).await;
    let mut log = EventLog::new(session.events());
    let run = prompt(&session, "go");
    log.until(|it| matches!(it, Event::Parked { .. })).await;
    (session, log, run)
}

/// The storm: of ten requests one is told to wait, and two meet an overload.
fn storm(number: usize) -> Reply {
    match number % 10 {
        2 => status(429, 100).header("retry-after", "1"),
        5 | 8 => status(529, 100),
        _ => ok(300),
    }
}

// REQ: MDL-6, MDL-10, MDL-13
#[tokio::test(start_paused = true)]
async fn two_hundred_sessions_neither_storm_nor_get_lost_when_a_quota_is_used_up() {
    const QUOTA: std::ops::Range<u64> = 60_000..360_000;
    let server = TimedServer::new(|now, number| match now {
        now if QUOTA.contains(&now) => status(429, 50),
        now if now < QUOTA.start => storm(number),
        _ => ok(300),
    });
    let house = House::new(&server, GovernorLimits::default()).await;
    let sessions = join_all((0..200).map(|_| house.open("a"))).await;
    let runs = sessions.iter().map(|session| async {
        let mut ends = Vec::new();
        while server.now_ms() < QUOTA.end {
            let outcome = session.prompt("go").await.unwrap();
            ends.push((outcome.end, outcome.error.unwrap_or_default()));
            // Somebody reads the answer.
            sleep(Duration::from_secs(1)).await;
        }
        ends
    });
    let look = async {
        sleep(Duration::from_secs(200)).await;
        let statuses = join_all(sessions.iter().map(SessionHandle::status)).await;
        let reasons = statuses.into_iter().filter_map(|it| Some(it.unwrap().parked?.reason));
        reasons.filter(|it| *it == ParkReason::ProviderQuota).count()
    };
    let (ends, n_parked) = tokio::join!(join_all(runs), look);

    let log = server.log();
    let opened_ms = log.iter().filter(|it| QUOTA.contains(&it.came_ms) && it.status == 429);
    let opened_ms = opened_ms.map(|it| it.answered_ms).min().unwrap();
    let n_before = log.iter().filter(|it| it.came_ms <= opened_ms).count();
    let n_after = log.iter().filter(|it| opened_ms < it.came_ms && it.came_ms < QUOTA.end).count();
    assert!(1_000 < n_before && n_after * 100 < n_before, "{n_before} before, {n_after} after");
    assert!(0 < n_after, "somebody must look whether the quota is there again");

    // One that nobody parked has met the end of the quota itself, or was just told of a pause.
    assert!(190 <= n_parked, "{n_parked} parked with a clear state");
    for (end, error) in ends.iter().flatten() {
        let is_clear = *end == RunEnd::NoPendingTools || error.starts_with("quota: ");
        assert!(is_clear, "{end:?}: {error}");
    }
    // All went on once it was there again.
    assert!(ends.iter().all(|it| it.last().unwrap().0 == RunEnd::NoPendingTools));
    for session in sessions.iter().step_by(40) {
        session.close().await;
        record::verified(session.transcript());
    }
}

// REQ: MDL-6, MDL-13
#[tokio::test(start_paused = true)]
async fn overload_that_lasts_is_met_by_probes_and_everybody_goes_on_behind_it() {
    let server = TimedServer::new(|now, _| if now < 60_000 { status(529, 50) } else { ok(300) });
    let house = House::new(&server, GovernorLimits::default()).await;
    let sessions = join_all((0..200).map(|_| house.open("a"))).await;
    let outcomes = join_all(sessions.iter().map(|it| it.prompt("go"))).await;
    assert!(outcomes.iter().all(|it| it.as_ref().unwrap().end == RunEnd::NoPendingTools));
    let log = server.log();
    // One each, before the first answer; then probes after 5, 15, 35 and 75 s.
    let n_overloads = log.iter().filter(|it| it.status == 529).count();
    assert!((200..=204).contains(&n_overloads), "{n_overloads}");
    // Then slowly more: those who waited do not all come at once.
    let resumed = log.iter().filter(|it| 60_000 <= it.came_ms).map(|it| it.came_ms);
    let mut at_once = std::collections::BTreeMap::<u64, usize>::new();
    resumed.for_each(|it| *at_once.entry(it).or_default() += 1);
    let first: Vec<usize> = at_once.values().copied().take(4).collect();
    assert_eq!(first[..3], [1, 2, 4], "{first:?}");
}

/// How long two sessions of a quiet tenant take for their prompts, while this many of a noisy one
/// ask without pause. The server answers after 0.8 to 1.2 s.
async fn quiet_takes(n_noisy: usize, slots: u32) -> Duration {
    let server = TimedServer::new(|_, number| ok(800 + (number as u64 * 137) % 400));
    let concurrency = NonZeroU32::new(slots);
    let mut limits = GovernorLimits::default();
    limits.concurrency = concurrency;

    let house = House::new(&server, limits).await;
    let noisy = join_all((0..n_noisy).map(|_| house.open("noisy"))).await;
    let quiet = join_all((0..2).map(|_| house.open("quiet"))).await;
    let n_noisy_runs = AtomicU64::new(0);
    let others = join_all(noisy.iter().map(|session| async {
        loop {
            session.prompt("go").await.unwrap();
            n_noisy_runs.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let measured = async {
        // The noisy one is first and has everything.
        sleep(Duration::from_secs(5)).await;
        let began = Instant::now();
        join_all(quiet.iter().map(|session| async {
            for _ in 0..20 {
                session.prompt("go").await.unwrap();
            }
        }))
        .await;
        began.elapsed()
    };
    let took = tokio::select! {
        took = measured => took,
        never = others, if 0 < n_noisy => unreachable!("{never:?}"),
    };
    // Most of the slots are the noisy one's all the same.
    let rounds = took.as_secs() * u64::from(slots - 3);
    assert!(n_noisy == 0 || rounds / 2 < n_noisy_runs.into_inner());
    took
}

// REQ: RUN-4, MDL-13
#[tokio::test(start_paused = true)]
async fn noisy_tenant_does_not_slow_a_quiet_one_by_more_than_a_tenth() {
    let (alone, beside) = (quiet_takes(0, 16).await, quiet_takes(100, 16).await);
    assert!(beside * 10 <= alone * 11, "{alone:?} alone, {beside:?} beside a noisy tenant");
}

// REQ: MDL-13, RUN-2
#[tokio::test(start_paused = true)]
async fn interrupt_of_a_parked_session_frees_it_at_once() {
    let server = without_quota_for(u64::MAX);
    let house = House::new(&server, GovernorLimits::default()).await;
    let (session, mut log, run) = parked(&house).await;
    let parked = session.status().await.unwrap().parked.unwrap();
    assert_eq!(parked.reason, ParkReason::ProviderQuota);
    // The clock of the session stands still at this time.
    let for_ms = parked.until_ms.unwrap() - 1_790_000_000_000;
    assert!((50_000..=66_000).contains(&for_ms), "{for_ms}");
    let (n_requests, began) = (server.log().len(), Instant::now());
    session.interrupt();
    interrupted(run).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(session.status().await.unwrap().parked, None);
    assert!(log.has(|it| matches!(it, Event::Unparked { attempt: 1 })));
    assert_eq!(server.log().len(), n_requests);
    record::verified(session.transcript());
}

// REQ: MDL-13, RUN-2
#[tokio::test(start_paused = true)]
async fn governor_that_is_killed_is_followed_by_another_who_wakes_those_who_wait() {
    let server = without_quota_for(30_000);
    let house = House::timed(&server).await;
    let (session, mut log, run) = parked(&house).await;
    let governors = || {
        let all = house.ennead.directory().all();
        all.into_iter().filter(|it| it.kind == ActorKind::Governor).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        let [governor] = &governors()[..] else { panic!("{:?}", governors()) };
        governor.cell.kill_and_wait(None).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    // The transcript says how long it was kept, and that this was not the model's time.
    let attempts =
        record::records(session.transcript()).into_iter().filter_map(|it| match it.what {
            RecordKind::ModelAttempt { parked_ms, duration_ms, .. } => {
                Some((parked_ms.unwrap().get(), duration_ms))
            }
            _ => None,
        });
    let (parked_ms, duration_ms) = attempts.last().unwrap();
    assert!((59_000..67_000).contains(&parked_ms) && duration_ms < 100, "{parked_ms}");
    let seconds = server.now_ms() / 1_000;
    assert!((60..67).contains(&seconds), "{seconds}");
    assert!(log.has(|it| matches!(it, Event::Unparked { .. })));
    record::verified(session.transcript());
}

// REQ: MDL-13, RUN-2
#[tokio::test]
async fn governor_whose_shard_ends_is_followed_by_one_on_another() {
    let server = without_quota_for(u64::MAX);
    let house = House::on(Placement::Threads(2), &server, GovernorLimits::default()).await;
    let directory = house.ennead.directory();
    let live = |kind| {
        let all = directory.all().into_iter();
        all.filter(|it| it.kind == kind).map(|it| it.cell).collect::<Vec<_>>()
    };
    let sessions = [house.open("a").await, house.open("a").await];
    // The first shard has the governor and ends with its archive, and its session with it.
    let [governor] = &live(ActorKind::Governor)[..] else { panic!("one is started") };
    live(ActorKind::Archive)[0].kill_and_wait(None).await.unwrap();
    until("there is another governor", async || {
        live(ActorKind::Governor).iter().any(|it| it.get_id() != governor.get_id())
    })
    .await;
    assert_eq!(sessions[0].status().await.map(|it| it.run), Err(RunError::Ended));
    // It does its work: the first learns that the quota is used up, the next one waits and can be interrupted, and the end is an orderly one.
    assert_eq!(sessions[1].prompt("go").await.unwrap().end, RunEnd::Error);
    let mut log = EventLog::new(sessions[1].events());
    let run = prompt(&sessions[1], "go");
    log.until(|it| matches!(it, Event::Parked { .. })).await;
    sessions[1].interrupt();
    interrupted(run).await;
    house.ennead.shutdown().await;
}

// REQ: MDL-8, MDL-13
#[tokio::test(start_paused = true)]
async fn call_that_would_wait_longer_than_it_may_is_a_failure_at_once() {
    let server = TimedServer::new(|_, _| status(429, 10).header("retry-after", "7200"));
    let house = House::new(&server, GovernorLimits::default()).await;
    let first = house.open("a").await.prompt("go").await.unwrap();
    assert_eq!(first.end, RunEnd::Error);
    let session = house.open("b").await;
    let began = Instant::now();
    let outcome = session.prompt("go").await.unwrap();
    assert_eq!((outcome.end, began.elapsed()), (RunEnd::Error, Duration::ZERO));
    let error = outcome.error.unwrap();
    let expected = "not sent to anthropic after 0 s: the quota of this provider and key is used up";
    assert_eq!(error, format!("quota: {expected}"));
    assert_eq!(server.log().len(), 1);
    record::verified(session.transcript());
    // Another key is another provider to us.
    let other = Endpoint::messages("https://api.anthropic.com", Some("another key"));
    let _outcome = house.open_at(other, "a").await.prompt("go").await.unwrap();
    assert_eq!(server.log().len(), 2);
}

// REQ: MDL-10, MDL-13
#[tokio::test(start_paused = true)]
async fn who_has_paid_goes_on_after_a_few_seconds() {
    let server = TimedServer::new(|now, _| if now < 15_000 { status(402, 10) } else { ok(10) });
    let house = House::new(&server, GovernorLimits::default()).await;
    let session = house.open("a").await;
    let mut ends = Vec::new();
    for _ in 0..20 {
        let outcome = session.prompt("go").await.unwrap();
        let error = outcome.error.unwrap_or_default();
        assert!(error.is_empty() || error.starts_with("billing: "), "{error}");
        ends.push(outcome.end);
        sleep(Duration::from_secs(2)).await;
    }
    // Two were sent, a third found that it is paid, and none was parked.
    let n_refused = ends.iter().filter(|it| **it == RunEnd::Error).count();
    assert!((11..=12).contains(&n_refused), "{ends:?}");
    assert_eq!(server.log().iter().filter(|it| it.status == 402).count(), 2);
    session.close().await;
    record::verified(session.transcript());
}

// REQ: MDL-8, MDL-13
#[tokio::test(start_paused = true)]
async fn call_waits_where_the_chain_has_no_other_provider_however_many_there_are() {
    let server = TimedServer::new(|_, number| if number == 0 { status(429, 10) } else { ok(10) });
    let house = House::timed(&server).await;
    let first = house.open("a").await.prompt("go").await.unwrap();
    assert_eq!(first.end, RunEnd::Error);
    for (chain, other, seconds) in [("other/second", Some("other"), 0), ("second", None, 60)] {
        let mut options = house.options(House::endpoint(), "a").isolated();
        let elsewhere = Endpoint::messages("https://other.example", Some("another key"));
        options.fallbacks = vec![elsewhere.named("other")];
        let session = house.open_with(options.setting("fallbackModel", json!([chain]))).await;
        let began = Instant::now();
        let outcome = session.prompt("go").await.unwrap();
        assert_eq!(outcome.end, RunEnd::NoPendingTools, "{:?}", outcome.error);
        assert_eq!(outcome.fallback.as_ref().map(|it| &*it.provider), other);
        let waited = began.elapsed().as_secs();
        assert!((seconds..=seconds + 6).contains(&waited), "{waited}");
        session.close().await;
        record::verified(session.transcript());
    }
}

// REQ: MDL-13
#[tokio::test(start_paused = true)]
async fn limits_in_headers_are_kept_by_all_sessions_together() {
    // A minute's worth of 60 requests is used up after the first.
    let server = TimedServer::new(|now, _| {
        let left = if now < 60_000 { "0" } else { "59" };
        ok(10)
            .header("anthropic-ratelimit-requests-limit", "60")
            .header("anthropic-ratelimit-requests-remaining", left)
            .header("anthropic-ratelimit-requests-reset", "2026-09-21T14:14:20Z")
    });
    let house = House::new(&server, GovernorLimits::default()).await;
    house.open("a").await.prompt("go").await.unwrap();
    let sessions = join_all((0..10).map(|_| house.open("a"))).await;
    join_all(sessions.iter().map(|it| it.prompt("go"))).await;
    let came: Vec<u64> = server.log().iter().map(|it| it.came_ms).collect();
    // One a second, as the limit fills; each answer says again that nothing is left.
    let gaps: Vec<u64> = came.windows(2).map(|it| it[1] - it[0]).collect();
    assert!(gaps.iter().all(|it| (900..=1_100).contains(it)), "{gaps:?}");
}

// REQ: MDL-13, RUN-3
#[tokio::test(start_paused = true)]
async fn defaults_hold_nobody_back() {
    let server = TimedServer::new(|_, _| ok(1_000));
    let house = House::new(&server, GovernorLimits::default()).await;
    let sessions = join_all((0..300).map(|_| house.open("a"))).await;
    let began = Instant::now();
    let outcomes = join_all(sessions.iter().map(|it| it.prompt("go"))).await;
    assert!(outcomes.iter().all(|it| it.as_ref().unwrap().end == RunEnd::NoPendingTools));
    assert!(began.elapsed() < Duration::from_millis(1_100), "{:?}", began.elapsed());
}
