//! Tables of statuses, bodies and headers, and the class and waiting time of each.
//!
//! Built under `#[cfg(test)]` only.

use FailureClass::*;

use super::*;
use crate::governor;

const BASE: &str = "http://127.0.0.1:1";

const NOW: Timestamp = Timestamp(1_790_000_000_000);

fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn error(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[track_caller]
fn check(status: u16, body: &str, class: FailureClass) {
    let failure = from_response(BASE, status, &HeaderMap::new(), body.as_bytes(), NOW);
    assert_eq!((failure.class, failure.status), (class, Some(status)), "{body}");
    assert!(!failure.message.is_empty());
}

#[track_caller]
fn check_wait(headers: &[(&str, &str)], wait_ms: Option<u64>) {
    let headers = header_map(headers);
    let failure = from_response(BASE, 429, &headers, b"", NOW);
    assert_eq!((failure.class, failure.retry_after_ms), (RateLimit, wait_ms), "{headers:?}");
}

// REQ: MDL-10
#[test]
fn status_and_type_name_one_class() {
    check(400, &error("invalid_request_error", "messages: at least one"), InvalidRequest);
    check(
        400,
        &error("invalid_request_error", "prompt is too long: 209000 tokens > 200000 maximum"),
        ContextOverflow,
    );
    check(
        400,
        &error(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        ),
        OutputOverflow,
    );
    check(400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, ContextOverflow);
    check(400, r#"{"error":{"code":400,"message":"x"}}"#, InvalidRequest);
    check(401, &error("authentication_error", "bad key"), Auth);
    check(402, &error("billing_error", "no money"), Billing);
    check(402, "", Billing);
    check(403, &error("billing_error", "no money"), Billing);
    let empty = "Your credit balance is too low to access the Anthropic API.";
    check(400, &error("invalid_request_error", empty), Billing);
    check(403, &error("permission_error", "no"), Auth);
    check(404, &error("not_found_error", "no such model"), InvalidRequest);
    check(409, &error("conflict_error", "x"), InvalidRequest);
    check(413, "<html>too large</html>", ContextOverflow);
    check(429, &error("rate_limit_error", "slow down"), RateLimit);
    check(429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, Quota);
    check(500, &error("api_error", "oops"), Network);
    check(500, "", Network);
    check(503, "unavailable", Overloaded);
    check(503, &error("overloaded_error", "Overloaded"), Overloaded);
    check(504, &error("timeout_error", "x"), Network);
    for lasting in [501, 505, 506, 508, 510, 511] {
        check(lasting, &error("api_error", "x"), InvalidRequest);
    }
    check(
        400,
        &error(
            "invalid_request_error",
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens",
        ),
        OutputOverflow,
    );
    check(529, &error("overloaded_error", "Overloaded"), Overloaded);
    check(529, "", Overloaded);
    check(302, "", InvalidRequest);
}

// REQ: MDL-6
#[test]
fn waiting_time_is_read_from_every_header_that_names_one() {
    check_wait(&[("retry-after", "3")], Some(3_000));
    check_wait(&[("retry-after", "0.25")], Some(250));
    check_wait(&[("retry-after", "2.5004")], Some(2_500));
    check_wait(&[("retry-after", "3"), ("retry-after-ms", "1500.7")], Some(1_500));
    check_wait(&[("retry-after", "Mon, 21 Sep 2026 14:13:25 GMT")], Some(5_000));
    check_wait(&[("retry-after", "Mon, 21 Sep 2020 14:13:25 GMT")], Some(0));
    check_wait(&[("retry-after", "soon")], None);
    check_wait(&[("retry-after", "-1")], None);
    check_wait(&[("retry-after", "1.x")], None);
    check_wait(
        &[
            ("anthropic-ratelimit-requests-remaining", "7"),
            ("anthropic-ratelimit-requests-reset", "2026-09-21T15:00:00Z"),
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2026-09-21T14:13:27Z"),
        ],
        Some(7_000),
    );
    check_wait(&[], None);
}

// REQ: MDL-10
#[test]
fn transport_errors_have_a_class_and_keep_what_was_shown() {
    let url = String::from("http://x");
    let why = String::from("y");
    let class = |error: TransportError| {
        let failure = from_transport(&error, "shown".into());
        assert_eq!(failure.partial_text, "shown");
        failure.class
    };
    assert_eq!(class(TransportError::Connect { url: url.clone(), why: why.clone() }), Unreachable);
    assert_eq!(class(TransportError::Tls { url, why: why.clone() }), InvalidRequest);
    for silence in [
        TransportError::FirstByte { ms: 1 },
        TransportError::Idle { ms: 1 },
        TransportError::NoEvent { ms: 1 },
        TransportError::Total { ms: 1 },
    ] {
        assert_eq!(class(silence), Timeout);
    }
    assert_eq!(class(TransportError::Broken { why }), StreamBroken);
}

// REQ: MDL-7, MDL-10
#[test]
fn what_ends_before_any_answer_speaks_against_no_stream() {
    let why = String::from("y");
    let broken = [TransportError::Broken { why: why.clone() }, TransportError::Total { ms: 1 }];
    assert_eq!(broken.each_ref().map(|it| before_head(it).class), [Network, Timeout]);
    assert_eq!(before_head(&TransportError::Unsendable { why }).class, InvalidRequest);
    for status in [400, 422] {
        let failure = of_unread(status, from_transport(&broken[0], String::new())).unwrap();
        assert_eq!((failure.class, failure.status), (Network, Some(status)));
    }
    for status in [401, 402, 429, 500, 529] {
        assert_eq!(of_unread(status, from_transport(&broken[0], String::new())), None);
    }
}

// REQ: MDL-10
#[test]
fn errors_in_a_stream_have_the_same_classes() {
    let class = |kind| class_of_error(kind, "", StreamPhase::Content);
    assert_eq!(class("overloaded_error"), Overloaded);
    assert_eq!(class("rate_limit_error"), RateLimit);
    assert_eq!(class("api_error"), StreamBroken);
    assert_eq!(class("never_heard_of_it"), StreamBroken);
    assert_eq!(class("authentication_error"), Auth);
    assert_eq!(class("billing_error"), Billing);
    assert_eq!(class("invalid_request_error"), InvalidRequest);
    assert_eq!(class_of_error("api_error", "", StreamPhase::Idle), Network);
    let too_long = "prompt is too long: 2 tokens > 1 maximum";
    assert_eq!(
        class_of_error("invalid_request_error", too_long, StreamPhase::Idle),
        ContextOverflow
    );
}

#[test]
fn long_bodies_are_cut_for_people() {
    let failure =
        from_response(BASE, 500, &HeaderMap::new(), "\u{e9}".repeat(1_000).as_bytes(), NOW);
    let shown = failure.message.chars().filter(|it| *it == '\u{e9}').count();
    assert_eq!(shown, error_body::MAX_SHOWN_CHARS);
}

#[track_caller]
fn check_said(
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
    class: FailureClass,
    too_long: &str,
) {
    let headers = header_map(headers);
    let failure = from_response(BASE, status, &headers, body.as_bytes(), NOW);
    assert_eq!((failure.class, &*failure.message), (class, too_long));
}

// REQ: MDL-10
#[test]
fn people_are_told_what_was_said_and_about_which_request() {
    let body =
        r#"{"type":"error","error":{"type":"api_error","message":"oops"},"request_id":"req_1"}"#;
    check_said(500, &[], body, Network, "oops (request req_1)");
    let header = [("request-id", "req_2")];
    check_said(
        529,
        &header,
        &error("overloaded_error", "full"),
        Overloaded,
        "full (request req_2)",
    );
    let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    check_said(502, &[], page, Network, "502 Bad Gateway");
    check_said(504, &[], "", Network, "no body");
    check_said(500, &[], r#"{"error":"text"}"#, Network, r#"{"error":"text"}"#);
}

// REQ: MDL-10, MDL-8
#[test]
fn errors_of_bedrock_and_vertex_have_the_same_classes() {
    let amazon = |name| [("x-amzn-errortype", name)];
    let message = r#"{"message":"m"}"#;
    check_said(429, &amazon("ThrottlingException:http://i"), message, RateLimit, "m");
    check_said(400, &amazon("ValidationException"), message, InvalidRequest, "m");
    let long = r#"{"message":"Input is too long for requested model."}"#;
    let too_long = "Input is too long for requested model.";
    check_said(400, &amazon("ValidationException"), long, ContextOverflow, too_long);
    check_said(403, &amazon("AccessDeniedException"), r#"{"Message":"no"}"#, Auth, "no");
    check_said(404, &amazon("ResourceNotFoundException"), message, InvalidRequest, "m");
    check_said(408, &amazon("ModelTimeoutException"), message, Network, "m");
    check_said(424, &amazon("ModelErrorException"), message, Network, "m");
    check_said(
        503,
        &amazon("ServiceUnavailableException"),
        "",
        Overloaded,
        "ServiceUnavailableException",
    );
    let of_vertex = r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}"#;
    check_said(429, &[], of_vertex, RateLimit, "quota");
    check_said(429, &[], &format!("[{of_vertex}]\n"), RateLimit, "quota");
    let denied = r#"{"error":{"code":403,"message":"denied","status":"PERMISSION_DENIED"}}"#;
    check_said(403, &[], denied, Auth, "denied");
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

// REQ: MDL-10, MDL-13
#[test]
fn quota_that_is_used_up_is_told_from_a_pause() {
    let class = |base: &str, wait: Option<&str>| {
        let headers =
            header_map(&wait.map(|it| ("retry-after", it)).into_iter().collect::<Vec<_>>());
        let failure = from_response(base, 429, &headers, b"", NOW);
        assert_eq!(failure.retry_after_ms.is_some(), wait.is_some());
        failure.class
    };
    let anthropic = "https://api.anthropic.com";
    assert_eq!(class(anthropic, Some("3")), RateLimit);
    assert_eq!(class(anthropic, None), Quota);
    assert_eq!(class(BASE, None), RateLimit);
    for base in [anthropic, BASE] {
        assert_eq!(class(base, Some("600")), RateLimit);
        assert_eq!(class(base, Some("601")), Quota);
    }
}

// REQ: MDL-13
#[test]
fn refusal_of_the_governor_is_a_quota_that_no_turn_waits_for() {
    use governor::ParkReason::*;
    for (reason, waited_ms, message) in [
        (
            ProviderQuota,
            0,
            "not sent to p after 0 s: the quota of this provider and key is used up",
        ),
        (
            BreakerOpen,
            10_999,
            "not sent to p after 10 s: too many calls to this provider have failed",
        ),
        (RateLimit, 1_000, "not sent to p after 1 s: the provider's rate limit is reached"),
        (
            Concurrency,
            600_000,
            "not sent to p after 600 s: as many calls as the provider takes are under way",
        ),
        (
            RetryBudget,
            5,
            "not sent to p after 0 s: all sessions together have retried as often as they may",
        ),
    ] {
        let failure = from_governor("p", &governor::Refusal { reason, waited_ms, bill: None });
        let (message, partial_text) = (message.to_owned(), String::new());
        let (class, retry_after_ms) = (Quota, None);
        let expected = ModelFailure { class, status: None, message, retry_after_ms, partial_text };
        assert_eq!(failure, expected);
    }
}

// REQ: MDL-10, MDL-13
#[test]
fn bill_that_is_still_open_is_told_in_the_words_of_the_provider() {
    let reason = governor::ParkReason::Billing;
    let refusal = governor::Refusal { reason, waited_ms: 0, bill: Some("pay".into()) };
    let failure = from_governor("p", &refusal);
    let message = "pay (said before by p, which was not asked again yet)";
    assert_eq!((failure.class, failure.message.as_str()), (Billing, message));
}

// REQ: MDL-10
#[test]
fn failure_names_address_and_status_without_secrets_and_control_sequences() {
    let format = crate::step5_model_call::wire_format::WireFormat::OpenAiChat;
    let url = "https://user:pass@host:8443/v1/chat/completions?key=secret#x";
    let body = "<html>\u{1b}[2J\nno such page</html>";
    let too_long = |status| {
        let failure = format.read_refusal(url, status, &HeaderMap::new(), body.as_bytes(), NOW);
        assert_eq!(failure.status, Some(status));
        failure.message
    };
    let expected = "<html> no such page</html>";
    let at = "https://host:8443/v1/chat/completions";
    assert_eq!(too_long(404), format!("{at}: HTTP 404: {expected}"));
    assert_eq!(too_long(503), format!("{at}: HTTP 503: {expected}"));
    let broken = TransportError::Broken { why: "reset".into() };
    let failure = named("http://host", from_transport(&broken, String::new()));
    assert_eq!(failure.message, "http://host: the connection broke: reset");
}
