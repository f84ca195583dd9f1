//! Names what went wrong with a model call, once (MDL-10).
//!
//! Everything after it (retries, the overflow chain, the switch of models) looks at
//! the class only and never again at a status or a text.

mod error_body;
pub(crate) mod reset;

use http::{HeaderMap, HeaderName, header::AsHeaderName};

use super::{
    FailureClass, ModelAnswer, ModelFailure, StopReason, named_limits::NamedLimits,
    stream::StreamPhase,
};
use crate::{
    block::{Block, BlockKind},
    governor::Refusal,
    output::terminal::clean_line,
    ports::TransportError,
    recovery::backoff::MAX_RETRY_AFTER_MS,
    time::Timestamp,
};

use error_body::ProviderError;
pub(super) use error_body::body_excerpt;

/// Stands for the type of an error that has none.
pub(super) const UNNAMED_ERROR: &str = "api_error";

/// Returns whether asking again, as it is, can help. The overflow classes are not among them: they need a smaller
/// request.
pub(crate) fn is_retryable(class: FailureClass) -> bool {
    match class {
        FailureClass::RateLimit
        | FailureClass::Overloaded
        | FailureClass::Unreachable
        | FailureClass::Network
        | FailureClass::Timeout
        | FailureClass::StreamBroken
        | FailureClass::BadAnswer
        | FailureClass::EmptyAnswer
        | FailureClass::PauseTurn => true,
        FailureClass::Quota
        | FailureClass::ContextOverflow
        | FailureClass::OutputOverflow
        | FailureClass::MaxOutput
        | FailureClass::Billing
        | FailureClass::Auth
        | FailureClass::InvalidRequest
        | FailureClass::Refusal
        | FailureClass::Internal => false,
    }
}

/// Returns whether a call that was made for this cause repeats one that failed. Calls that ask for something else (more
/// room, a smaller context, another provider's turn) are new ones.
pub(crate) fn is_retry(cause: &str) -> bool {
    use FailureClass as Class;
    let again = [
        Class::RateLimit,
        Class::Overloaded,
        Class::Unreachable,
        Class::Network,
        Class::Timeout,
        Class::StreamBroken,
        Class::BadAnswer,
        Class::EmptyAnswer,
    ];
    again.iter().any(|it| it.code() == cause)
}

/// Whether this is a server of Anthropic itself, which says in every 429 that is a pause how long.
fn is_first_party(base: &str) -> bool {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    host == "api.anthropic.com" || host.ends_with(".anthropic.com")
}

/// Returns the failure that an answer with this HTTP status means. `base` is where the server is, `now` turns moments
/// in headers into waiting times.
pub(crate) fn from_response(
    base: &str,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> ModelFailure {
    let text = String::from_utf8_lossy(body);
    let ProviderError { kind, code, message } = ProviderError::read(headers, &text);
    let class = class_of_response(status, &kind, &code, &message);
    let names_wait = is_retryable(class) || class == FailureClass::Quota;
    let retry_after_ms = names_wait.then(|| retry_after(headers, now)).flatten();
    let class = match class {
        // How it says that a spend limit is reached.
        FailureClass::RateLimit if retry_after_ms.is_none() && is_first_party(base) => {
            FailureClass::Quota
        }
        class => or_quota(class, retry_after_ms),
    };
    let partial_text = String::new();
    ModelFailure { class, status: Some(status), message, retry_after_ms, partial_text }
}

/// Replaces the class of a rate limit that names a long wait: that is a quota that is used up.
pub(super) fn or_quota(class: FailureClass, retry_after_ms: Option<u64>) -> FailureClass {
    match class {
        FailureClass::RateLimit if retry_after_ms.is_some_and(|it| MAX_RETRY_AFTER_MS < it) => {
            FailureClass::Quota
        }
        class => class,
    }
}

/// Returns the failure that a governor's refusal means: nothing was sent. It is like a refusal of the provider itself:
/// a used-up quota, so the chain is tried or the failure remains, or the bill that is still open.
pub fn from_governor(provider: &str, refusal: &Refusal) -> ModelFailure {
    let (why, waited_s) = (refusal.reason.in_words(), refusal.waited_ms / 1_000);
    let (class, message) = match &refusal.bill {
        Some(bill) => (
            FailureClass::Billing,
            format!("{bill} (said before by {provider}, which was not asked again yet)"),
        ),
        None => (FailureClass::Quota, format!("not sent to {provider} after {waited_s} s: {why}")),
    };
    ModelFailure { class, status: None, message, retry_after_ms: None, partial_text: String::new() }
}

/// Returns the failure that an exchange without a (whole) answer means. `partial_text` was already shown.
pub fn from_transport(error: &TransportError, partial_text: String) -> ModelFailure {
    let class = match error {
        TransportError::Connect { .. } => FailureClass::Unreachable,
        // Asking again cannot help against a certificate, and another model is not to be tried.
        TransportError::Tls { .. } | TransportError::Unsendable { .. } => {
            FailureClass::InvalidRequest
        }
        TransportError::FirstByte { .. }
        | TransportError::Idle { .. }
        | TransportError::NoEvent { .. }
        | TransportError::Total { .. } => FailureClass::Timeout,
        TransportError::Broken { .. } => FailureClass::StreamBroken,
    };
    let message = error.to_string();
    ModelFailure { class, status: None, message, retry_after_ms: None, partial_text }
}

/// Returns the failure of an exchange that ended before the head of an answer: nothing had begun, so nothing speaks
/// against a stream.
pub fn before_head(error: &TransportError) -> ModelFailure {
    without_stream(from_transport(error, String::new()))
}

/// Returns the failure that an answer with this HTTP status means whose body could not be read because of `failure`;
/// `None` where the status alone determines it. Of a bad request only the body says whether it is too long, so it is
/// asked again.
pub fn of_unread(status: u16, failure: ModelFailure) -> Option<ModelFailure> {
    let is_explained_in_body = matches!(status, 400 | 422);
    is_explained_in_body.then(|| ModelFailure { status: Some(status), ..without_stream(failure) })
}

fn without_stream(failure: ModelFailure) -> ModelFailure {
    match failure.class {
        FailureClass::StreamBroken => ModelFailure { class: FailureClass::Network, ..failure },
        _ => failure,
    }
}

/// Returns the failure that a whole answer represents, if it is none to continue with: cut by the output ceiling,
/// refused, out of window, paused, or empty. A call cut by the ceiling is never run.
///
/// After results of tools a model may end without a word; `follows_results` says whether it was
/// asked there. Reasoning alone is never an answer.
pub(crate) fn of_answer(answer: &ModelAnswer, follows_results: bool) -> Option<ModelFailure> {
    let (class, message) = match answer.stop_reason {
        StopReason::MaxTokens => (FailureClass::MaxOutput, "the output ceiling cut the answer"),
        StopReason::Refusal => (FailureClass::Refusal, "the model refuses to answer"),
        StopReason::ContextWindowExceeded => {
            (FailureClass::ContextOverflow, "the answer reached the end of the model's window")
        }
        StopReason::PauseTurn => (FailureClass::PauseTurn, "the answer is to be continued"),
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Other(_)
            if answer.blocks.iter().all(is_empty_block)
                && !(answer.blocks.is_empty() && follows_results) =>
        {
            (FailureClass::EmptyAnswer, "the model ended without a word")
        }
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Other(_) => return None,
    };
    Some(ModelFailure {
        class,
        status: None,
        message: message.into(),
        retry_after_ms: None,
        partial_text: String::new(),
    })
}

fn is_empty_block(block: &Block) -> bool {
    match block.kind() {
        BlockKind::Thinking { .. } | BlockKind::RedactedThinking => true,
        BlockKind::Text(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// Returns the class of an error that a provider named, in a stream at `phase`.
pub(super) fn class_of_error(kind: &str, message: &str, phase: StreamPhase) -> FailureClass {
    match class_of_kind(kind, "", message) {
        FailureClass::Network if phase != StreamPhase::Idle => FailureClass::StreamBroken,
        class => class,
    }
}

fn class_of_response(status: u16, kind: &str, code: &str, message: &str) -> FailureClass {
    match status {
        _ if is_billing(kind, code, message) => FailureClass::Billing,
        402 => FailureClass::Billing,
        // Many servers say 503 when they are full.
        503 | 529 => FailureClass::Overloaded,
        429 if code == "insufficient_quota" || kind == "insufficient_quota" => FailureClass::Quota,
        429 => FailureClass::RateLimit,
        401 | 403 => FailureClass::Auth,
        413 => FailureClass::ContextOverflow,
        // Of Bedrock: the model failed, not the request.
        424 => FailureClass::Network,
        400 | 422 => match class_of_kind(kind, code, message) {
            overflow @ (FailureClass::ContextOverflow | FailureClass::OutputOverflow) => overflow,
            _ => FailureClass::InvalidRequest,
        },
        _ if is_lasting(status) => FailureClass::InvalidRequest,
        408 | 500.. => FailureClass::Network,
        _ => FailureClass::InvalidRequest,
    }
}

/// Returns whether a server error cannot change by being asked again: not implemented, no such version of HTTP, a loop,
/// an extension or a login at the network that is missing (RFC 9110, 2295, 2774, 5842, 6585).
pub(super) fn is_lasting(status: u16) -> bool {
    matches!(status, 501 | 505 | 506 | 508 | 510 | 511)
}

/// Returns the failure with the address that was asked and the HTTP status in front of the message, for people.
/// Passwords and queries, which may hold keys, are left out, and so are control sequences.
pub fn named(url: &str, failure: ModelFailure) -> ModelFailure {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let status = failure.status.map(|it| format!("HTTP {it}: ")).unwrap_or_default();
    let message = format!("{scheme}://{host}{path}: {status}{}", failure.message);
    let message = clean_line(&message);
    ModelFailure { message, ..failure }
}

fn class_of_kind(kind: &str, code: &str, message: &str) -> FailureClass {
    match kind {
        _ if is_billing(kind, code, message) => FailureClass::Billing,
        "overloaded_error" => FailureClass::Overloaded,
        "rate_limit_error" => FailureClass::RateLimit,
        "insufficient_quota" => FailureClass::Quota,
        "authentication_error" | "permission_error" => FailureClass::Auth,
        "request_too_large" => FailureClass::ContextOverflow,
        "not_found_error" | "conflict_error" => FailureClass::InvalidRequest,
        "invalid_request_error" => overflow(code, message).unwrap_or(FailureClass::InvalidRequest),
        _ => overflow(code, message).unwrap_or(FailureClass::Network),
    }
}

/// Returns whether somebody has to pay before anything else helps. Statuses differ: 400, 402, 403 and 429.
pub(super) fn is_billing(kind: &str, code: &str, message: &str) -> bool {
    let names = ["billing_error", "billing_hard_limit_reached", "billing_not_active"];
    names.iter().any(|it| [kind, code].contains(it))
        || message.to_lowercase().contains("credit balance is too low")
}

/// Which side of the window is too small, if the message says so.
fn overflow(code: &str, message: &str) -> Option<FailureClass> {
    let message = message.to_lowercase().replace('`', "");
    if NamedLimits::read(&message).is_about_output() {
        return Some(FailureClass::OutputOverflow);
    }
    let too_long = code == "context_length_exceeded"
        || message.contains("prompt is too long")
        || message.contains("input is too long")
        || message.contains("maximum context length");
    too_long.then_some(FailureClass::ContextOverflow)
}

/// Returns how long to wait, in milliseconds: `retry-after-ms`, `retry-after` (seconds or a date), or the latest reset
/// of a limit that is used up.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let header = |name: &str| header(headers, name);
    let until = |moment: Timestamp| moment.millis_since(now);
    if let Some(ms) = header("retry-after-ms").and_then(|it| thousandths(it, 0)) {
        return Some(ms);
    }
    if let Some(value) = header("retry-after") {
        let date = || {
            let moment = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_millisecond();
            Some(until(Timestamp(u64::try_from(moment).ok()?)))
        };
        return thousandths(value, 3).or_else(date);
    }
    let used_up = |name: &HeaderName| {
        let limit = name.as_str().strip_suffix("-reset").filter(|it| it.contains("ratelimit"))?;
        (header(&format!("{limit}-remaining"))? == "0").then_some(())?;
        Timestamp::parse(header(name.as_str())?).map(until)
    };
    headers.keys().filter_map(used_up).max()
}

/// Returns the text of a header.
pub(super) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let value = std::str::from_utf8(headers.get(name)?.as_bytes()).ok()?;
    Some(value.trim())
}

/// A decimal number times ten to the power of `n_digits`, cut; no number is `None`.
fn thousandths(text: &str, n_digits: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.get(..n_digits).unwrap_or(fraction);
    format!("{whole}{fraction:0<n_digits$}").parse().ok()
}

#[cfg(test)]
mod tests;
