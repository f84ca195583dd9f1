//! Headers and failures as providers send them. Built under `#[cfg(test)]` only.

use super::*;
use crate::step5_model_call::failure::reset::length_ms;

fn read(headers: &[(&str, &str)]) -> Option<Report> {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Report::read(&headers, Timestamp::parse("2026-09-21T14:00:00Z").unwrap())
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
    let expected = Report {
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
    let expected = Report {
        requests: level(60, 59, 1_000),
        tokens: level(150_000, 149_984, 360_000),
        ..Report::default()
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
    assert_eq!(report, Some(Report { requests, ..Report::default() }));
}

#[test]
fn servers_of_anthropic_are_known_by_their_host() {
    for (base, expected) in [
        ("https://api.anthropic.com", true),
        ("https://api.anthropic.com/", true),
        ("https://eu.api.anthropic.com:443/x", true),
        ("http://127.0.0.1:8080", false),
        ("https://api.anthropic.com.example", false),
        ("https://notanthropic.com", false),
    ] {
        assert_eq!(is_first_party(base), expected, "{base}");
    }
}

#[track_caller]
fn check(
    (status, class, retry_after_ms, message): (u16, FailureClass, Option<u64>, &str),
    first_party: bool,
    outcome: Outcome,
) {
    let message = message.to_owned();
    let partial_text = String::new();
    let failure =
        ModelFailure { class, status: Some(status), message, retry_after_ms, partial_text };
    assert_eq!(outcome_of(&failure, first_party, &BreakerLimits::default()), outcome);
}

// REQ: MDL-10, MDL-13
#[test]
fn quota_stop_is_told_from_a_pause() {
    use FailureClass as Class;
    let over = |for_ms| Outcome::QuotaOver { for_ms };
    let pause = |retry_after_ms| Outcome::Overloaded { retry_after_ms };
    check((429, Class::RateLimit, Some(3_000), ""), true, pause(Some(3_000)));
    check((429, Class::RateLimit, None, ""), true, over(None));
    check((429, Class::RateLimit, None, ""), false, pause(None));
    check((429, Class::RateLimit, Some(600_000), ""), false, pause(Some(600_000)));
    check((429, Class::RateLimit, Some(600_001), ""), false, over(Some(600_001)));
    check((429, Class::Quota, None, ""), false, over(None));
    check((200, Class::BadAnswer, None, ""), false, Outcome::Broken);
    check((402, Class::Auth, None, ""), false, over(None));
    let empty = "Your credit balance is too low to access the API.";
    check((400, Class::InvalidRequest, None, empty), true, over(None));
    check((529, Class::Overloaded, None, ""), true, pause(None));
    check((500, Class::Network, None, ""), true, Outcome::Broken);
    check((401, Class::Auth, None, ""), true, Outcome::Answered);
    check((400, Class::ContextOverflow, None, ""), true, Outcome::Answered);
}
