//! Built under `#[cfg(test)]` only.

use super::*;

/// The time of the tests, 2026-09-21T14:13:20Z.
const NOW: Timestamp = Timestamp(1_790_000_000_000);

#[track_caller]
fn check(status: u16, body: &str, class: FailureClass, message: &str) {
    let failure = from_response(status, &HeaderMap::new(), body.as_bytes(), NOW);
    assert_eq!(failure.class, class, "{body}");
    assert!(failure.message.contains(message), "{} in {failure:?}", message);
    assert_eq!(failure.status, Some(status));
}

// REQ: MDL-10
#[test]
fn errors_of_the_api_have_their_class() {
    let body = |kind: &str, code: &str, message: &str| {
        serde_json::json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            .to_string()
    };
    let check = |status, kind: &str, code: &str, message: &str, class| {
        check(status, &body(kind, code, message), class, message);
    };
    let invalid = "invalid_request_error";
    check(401, invalid, "invalid_api_key", "Incorrect API key", FailureClass::Auth);
    check(403, invalid, "unsupported_country_region_territory", "no", FailureClass::Auth);
    check(404, invalid, "model_not_found", "no such model", FailureClass::InvalidRequest);
    check(400, invalid, "unknown_parameter", "Unknown parameter", FailureClass::InvalidRequest);
    check(400, invalid, "context_length_exceeded", "too long", FailureClass::ContextOverflow);
    check(400, invalid, "content_policy_violation", "no", FailureClass::Refusal);
    check(429, "requests", "rate_limit_exceeded", "slower", FailureClass::RateLimit);
    // It cannot be waited out.
    let quota = "You exceeded your current quota";
    check(429, "insufficient_quota", "insufficient_quota", quota, FailureClass::Quota);
    check(403, "insufficient_quota", "", "x", FailureClass::Quota);
    check(429, "", "", quota, FailureClass::Quota);
    check(402, "", "", "Insufficient Balance", FailureClass::Billing);
    check(400, "", "billing_hard_limit_reached", "x", FailureClass::Billing);
    let large =
        "Request too large for gpt-4o on tokens per min (TPM): Limit 10000, Requested 20000";
    check(429, "tokens", "rate_limit_exceeded", large, FailureClass::ContextOverflow);
    check(500, "server_error", "", "The server had an error", FailureClass::Network);
    check(503, "server_error", "", "currently overloaded", FailureClass::Overloaded);
    check(408, invalid, "", "timeout", FailureClass::Network);
    check(413, invalid, "", "too large", FailureClass::ContextOverflow);
    check(501, "server_error", "", "not implemented", FailureClass::InvalidRequest);
    check(511, "", "", "log in", FailureClass::InvalidRequest);
}

// REQ: MDL-9, MDL-10
#[test]
fn ceiling_that_does_not_fit_is_told_from_a_prompt_that_does_not() {
    let check = |message: &str, param: &str, class| {
        let error = serde_json::json!({"error": {"message": message, "type": "invalid_request_error",
            "param": param, "code": null}});
        check(400, &error.to_string(), class, message);
    };
    let output = FailureClass::OutputOverflow;
    let prompt = FailureClass::ContextOverflow;
    check(
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "max_tokens",
        output,
    );
    check("Invalid 'max_output_tokens': integer above maximum value", "max_output_tokens", output);
    check(
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum \
         context length is 8192 tokens and your request has 20 input tokens",
        "",
        output,
    );
    check("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 1000", "", output);
    check(
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens \
         (1000 in the messages, 4000 in the completion).",
        "messages",
        output,
    );
    check(
        "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens \
         (8000 in the messages, 1000 in the completion).",
        "messages",
        prompt,
    );
    check("Your input exceeds the context window of this model.", "input", prompt);
}

// REQ: MDL-8, MDL-10
#[test]
fn compatible_and_local_servers_are_understood() {
    let invalid = FailureClass::InvalidRequest;
    check(404, r#"{"error":"model 'x' not found"}"#, invalid, "model 'x' not found");
    check(404, r#"{"detail":"Not Found"}"#, invalid, "Not Found");
    check(
        422,
        r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
        invalid,
        "field required",
    );
    let vllm = r#"{"object":"error","message":"maximum context length is 10 tokens","type":"BadRequestError","code":400}"#;
    check(400, vllm, FailureClass::ContextOverflow, "maximum context length");
    let llama = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#;
    check(400, llama, FailureClass::ContextOverflow, "available context size");
    let gemini = r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#;
    check(400, gemini, FailureClass::ContextOverflow, "input token count");
    let azure = r#"{"error":{"code":"string_above_max_length","message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages"}}"#;
    check(400, azure, FailureClass::ContextOverflow, "configured limit");
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    check(503, loading, FailureClass::Overloaded, "Loading model");
    let listed = r#"[{"error":{"code":429,"message":"exhausted","status":"RESOURCE_EXHAUSTED"}}]"#;
    check(429, listed, FailureClass::RateLimit, "exhausted");
    let page = "<html><head><title>502 Bad Gateway</title></head><body>…</body></html>";
    check(502, page, FailureClass::Network, "502 Bad Gateway");
    check(500, "", FailureClass::Network, "no body");
    check(404, "404 page not found", invalid, "404 page not found");
}

#[track_caller]
fn check_wait(headers: &[(&str, &str)], body: &str, ms: Option<u64>) {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    let failure = from_response(429, &headers, body.as_bytes(), NOW);
    assert_eq!(failure.retry_after_ms, ms, "{headers:?} {body}");
}

// REQ: MDL-6, MDL-10
#[test]
fn waiting_times_are_read_from_headers_and_words() {
    check_wait(&[("retry-after-ms", "1500")], "", Some(1_500));
    check_wait(&[("retry-after", "3")], "", Some(3_000));
    check_wait(
        &[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "100"),
            ("x-ratelimit-reset-tokens", "9m"),
        ],
        "",
        Some(360_000),
    );
    check_wait(
        &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "2m59.56s")],
        "",
        Some(179_560),
    );
    check_wait(
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790000004000")],
        "",
        Some(4_000),
    );
    let words =
        r#"{"error":{"message":"Rate limit reached. Please try again in 11.054s. Visit …"}}"#;
    check_wait(&[], words, Some(11_054));
    check_wait(&[], r#"{"error":{"message":"Please try again in 20ms."}}"#, Some(20));
    check_wait(&[], r#"{"error":{"message":"Please try again later"}}"#, None);
    let quota = r#"{"error":{"message":"x","code":"insufficient_quota"}}"#;
    check_wait(&[("retry-after", "3")], quota, None);
}
