//! The circuit breaker, call by call. Built under `#[cfg(test)]` only.

use super::*;

fn breaker() -> Breaker {
    Breaker::new(BreakerLimits::default(), EntropyStream::from_seed(7))
}

/// Ends calls (`.` answered, `x` failed) and says after how many it opened.
fn opens_after(calls: &str) -> Option<usize> {
    let mut breaker = breaker();
    calls.chars().position(|call| match call {
        'x' => breaker.note_failure(0, false),
        _ => breaker.note_success(false),
    })
}

/// How long it is open, in milliseconds.
fn open_ms(breaker: &Breaker, now: u64) -> u64 {
    match breaker.verdict(now) {
        BreakerVerdict::Wait(_, Some(until)) => until - now,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_about(found: u64, ms: u64) {
    assert!(ms <= found && found <= ms + ms / 10, "{found} is not {ms} and up to a tenth more");
}

// REQ: MDL-13
#[test]
fn half_of_the_calls_failing_opens_it_from_twenty_on() {
    assert_eq!(opens_after(&"x".repeat(19)), None);
    assert_eq!(opens_after(&"x".repeat(20)), Some(19));
    assert_eq!(opens_after(&"x.".repeat(100)), None.or(Some(20)));
    assert_eq!(opens_after(&"x..".repeat(100)), None);
    // A window of 50: what was long ago does not count.
    assert_eq!(opens_after(&format!("{}{}", ".".repeat(500), "x".repeat(25))), Some(524));
    assert_eq!(opens_after(&format!("{}{}", ".".repeat(500), "x".repeat(24))), None);
}

#[test]
fn probes_go_one_at_a_time_and_a_failed_one_doubles_the_time() {
    let mut breaker = breaker();
    (0..20).for_each(|_| _ = breaker.note_failure(0, false));
    let mut now = 0;
    for ms in [5_000, 10_000, 20_000, 40_000, 80_000, 120_000, 120_000] {
        let open = open_ms(&breaker, now);
        check_about(open, ms);
        now += open;
        assert_eq!(breaker.verdict(now), BreakerVerdict::Probe);
        breaker.probe_sent();
        assert_eq!(breaker.verdict(now), BreakerVerdict::Wait(Cause::Storm, None));
        // Somebody who was under way all the time changes nothing.
        assert!(!breaker.note_failure(now, false) && !breaker.note_success(false));
        breaker.probe_lost();
        assert_eq!(breaker.verdict(now), BreakerVerdict::Probe);
        breaker.probe_sent();
        assert!(breaker.note_failure(now, true));
    }
    now += open_ms(&breaker, now);
    breaker.probe_sent();
    assert!(breaker.note_success(true));
    assert_eq!(breaker.verdict(now), BreakerVerdict::Call);
    // At once again: it remembers how bad it was.
    (0..20).for_each(|_| _ = breaker.note_failure(now, false));
    check_about(open_ms(&breaker, now), 120_000);
}

#[test]
fn having_held_for_a_while_it_starts_from_the_shortest_time() {
    let mut breaker = breaker();
    for _ in 0..3 {
        (0..50).for_each(|_| _ = breaker.note_failure(0, false));
        breaker.probe_sent();
        assert!(breaker.note_success(true));
        (0..20).for_each(|_| _ = breaker.note_success(false));
    }
    (0..50).for_each(|_| _ = breaker.note_failure(0, false));
    check_about(open_ms(&breaker, 0), 5_000);
}

// REQ: MDL-13
#[test]
fn quota_opens_it_at_once_for_as_long_as_the_provider_says() {
    let mut breaker = breaker();
    assert!(breaker.quota_is_over(0, None, false));
    check_about(open_ms(&breaker, 0), 60_000);
    // The others that were under way say the same, and that is not news.
    assert!(!breaker.quota_is_over(10, None, false));
    assert!(breaker.quota_is_over(10, Some(600_000), false));
    check_about(open_ms(&breaker, 10), 600_000);
    assert!(!breaker.quota_is_over(10, Some(60_000), false));
    let later = 10 + open_ms(&breaker, 10);
    breaker.probe_sent();
    assert!(breaker.quota_is_over(later, None, true));
    assert!(60_000 < open_ms(&breaker, later));
}

// REQ: MDL-13
#[test]
fn however_long_the_quota_is_said_to_be_over_somebody_looks_after_a_quarter_of_an_hour() {
    let mut breaker = breaker();
    assert!(breaker.quota_is_over(0, Some(86_400_000), false));
    check_about(open_ms(&breaker, 0), 900_000);
    assert!(!breaker.quota_is_over(0, Some(86_400_000), false), "that is no news");
}

// REQ: MDL-13
#[test]
fn open_bill_is_looked_at_every_ten_seconds() {
    let mut breaker = breaker();
    assert!(breaker.bill_is_open(0, false));
    let mut now = 0;
    for _ in 0..5 {
        let open = open_ms(&breaker, now);
        check_about(open, 10_000);
        assert!(!breaker.bill_is_open(now, false), "others that were under way say the same");
        now += open;
        breaker.probe_sent();
        assert!(breaker.bill_is_open(now, true));
    }
    now += open_ms(&breaker, now);
    breaker.probe_sent();
    assert!(breaker.note_success(true));
    // It has nothing to do with how long a storm is waited out.
    (0..20).for_each(|_| _ = breaker.note_failure(now, false));
    check_about(open_ms(&breaker, now), 5_000);
}
