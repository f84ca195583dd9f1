//! Headers and failures as providers send them. Built under `#[cfg(test)]` only.

use super::*;
use crate::step5_model_call::failure::reset::length_ms;

fn read(headers: &[(&str, &str)]) -> Option<RateLimitReport> {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    RateLimitReport::read(&headers, Timestamp::parse("2026-09-21T14:00:00Z").unwrap())
}

fn level(limit: u64, remaining: u64, reset_in_ms: u64) -> Option<Level> {
    Some(Level { limit: Some(limit), remaining, reset_in_ms: Some(reset_in_ms) })
}

// REQ: MDL-13
#[test]
fn limits_of_anthropic_are_read() {
    let report = read(&[
        ("request-id", "req_1"),
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-09-21T14:00:01Z"),
        ("anthropic-ratelimit-tokens-limit", "40000"),
        ("anthropic-ratelimit-tokens-remaining", "39000"),
        ("anthropic-ratelimit-tokens-reset", "2026-09-21T14:01:00Z"),
        ("anthropic-ratelimit-input-tokens-limit", "30000"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-09-21T13:59:00Z"),
        ("anthropic-ratelimit-output-tokens-limit", "8000"),
        ("anthropic-ratelimit-output-tokens-remaining", "7000"),
        ("anthropic-ratelimit-output-tokens-reset", "2026-09-21T14:00:30+00:00"),
        ("retry-after", "3"),
    ]);
    let expected = RateLimitReport {
        requests: level(50, 49, 1_000),
        tokens: level(40_000, 39_000, 60_000),
        input_tokens: level(30_000, 0, 0),
        output_tokens: level(8_000, 7_000, 30_000),
    };
    assert_eq!(report, Some(expected));
}

// REQ: MDL-13
#[test]
fn limits_of_openai_are_read() {
    let report = read(&[
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-limit-tokens", "150000"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("x-ratelimit-remaining-tokens_usage_based", "5"),
    ]);
    let expected = RateLimitReport {
        requests: level(60, 59, 1_000),
        tokens: level(150_000, 149_984, 360_000),
        ..RateLimitReport::default()
    };
    assert_eq!(report, Some(expected));
}

#[test]
fn lengths_of_time_are_read_in_every_unit() {
    for (text, ms) in [
        ("6m0s", Some(360_000)),
        ("12ms", Some(12)),
        ("1h2m3.5s", Some(3_723_500)),
        ("7.66s", Some(7_660)),
        ("30", Some(30_000)),
        ("250us", Some(1)),
        ("1d", Some(86_400_000)),
        ("", None),
        ("s", None),
        ("1x", None),
        ("99999999999999999999s", None),
        ("1..2s", None),
        ("2026-09-21", None),
    ] {
        assert_eq!(length_ms(text), ms, "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_not_said() {
    assert_eq!(read(&[("content-type", "text/event-stream")]), None);
    assert_eq!(read(&[("x-ratelimit-remaining-requests", "many")]), None);
    assert_eq!(read(&[("x-ratelimit-limit-requests", "10")]), None);
    let report =
        read(&[("x-ratelimit-remaining-requests", "3"), ("x-ratelimit-reset-requests", "?")]);
    let requests = Some(Level { remaining: 3, ..Level::default() });
    assert_eq!(report, Some(RateLimitReport { requests, ..RateLimitReport::default() }));
}

/// Classes that a failure with this status may have, and what they mean for others.
#[track_caller]
fn check(
    (status, classes, retry_after_ms): (Option<u16>, &[FailureClass], Option<u64>),
    outcome: CallOutcome,
) {
    for &class in classes {
        let (message, partial_text) = ("said".to_owned(), String::new());
        let failure = ModelFailure { class, status, message, retry_after_ms, partial_text };
        assert_eq!(outcome_of(&failure), outcome, "{class:?}");
    }
}

// REQ: MDL-10, MDL-13
#[test]
fn class_of_a_failure_says_what_it_means_for_others() {
    use FailureClass::*;
    let quota = [Quota];
    check((Some(429), &quota, None), CallOutcome::QuotaOver { for_ms: None });
    check((Some(429), &quota, Some(700_000)), CallOutcome::QuotaOver { for_ms: Some(700_000) });
    let full = [RateLimit, Overloaded];
    check((Some(429), &full, None), CallOutcome::Overloaded { retry_after_ms: None });
    check((Some(529), &full, Some(3_000)), CallOutcome::Overloaded { retry_after_ms: Some(3_000) });
    let broken = [Unreachable, Network, Timeout, StreamBroken, BadAnswer];
    check((Some(500), &broken, None), CallOutcome::Broken);
    check((None, &broken, None), CallOutcome::Broken);
    check((None, &[InvalidRequest], None), CallOutcome::Unclear);
    let unpaid = [Billing];
    check((Some(402), &unpaid, None), CallOutcome::Unpaid { message: "said".into() });
    check((None, &unpaid, None), CallOutcome::Unpaid { message: "said".into() });
    let own: Vec<_> = FailureClass::ALL
        .into_iter()
        .filter(|it| ![&quota[..], &full, &broken, &unpaid].concat().contains(it))
        .collect();
    assert_eq!(own.len(), 9);
    check((Some(400), &own, None), CallOutcome::Answered);
}
