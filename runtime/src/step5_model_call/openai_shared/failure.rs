//! Names what a server of either OpenAI format says went wrong.
//!
//! The words are not those of the Messages API, and a hundred servers copy this format and word
//! errors in their own way; what they mean is the same.

use http::HeaderMap;
use serde_json::Value;

use super::reader::Broken;
use crate::{
    step5_model_call::{
        FailureClass, ModelFailure,
        failure::{
            UNNAMED_ERROR, body_excerpt, header, is_billing, is_lasting, is_retryable, or_quota,
            reset::{length_ms, reset_ms},
            retry_after,
        },
        named_limits::NamedLimits,
        stream::StreamPhase,
    },
    time::Timestamp,
};

/// Parts of messages that mean: the prompt is longer than the window.
const TOO_LONG: [&str; 13] = [
    "maximum context length",
    "context window of this model",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds the maximum context",
    "greater than the context length",
    "context length exceeded",
    "prompt is too long",
    "input is too long",
    "maximum prompt length is",
    "exceeds the maximum number of tokens allowed",
    "input tokens exceed the configured limit",
    "reduce the length of the messages",
];

/// What an error object says, wherever it was.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorFields {
    kind: String,
    code: String,
    param: String,
    message: String,
}

impl ErrorFields {
    /// From `{"error":{…}}`, `{"error":"…"}`, `{"detail":…}`, `{"message":"…"}`, a list around one
    /// of these, or the error object itself.
    fn read(value: &Value) -> Option<Self> {
        let value = value.as_array().and_then(|it| it.first()).unwrap_or(value);
        let object = match &value["error"] {
            Value::Null => value,
            error => error,
        };
        if let Some(message) = object.as_str() {
            return Some(Self { message: message.into(), ..Self::default() });
        }
        let word = |name: &str| match &object[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let detail = match &object["detail"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            list => list[0]["msg"].as_str().map_or_else(|| list.to_string(), str::to_owned),
        };
        let message = Some(word("message")).filter(|it| !it.is_empty()).unwrap_or(detail);
        let fields = Self { kind: word("type"), code: word("code"), param: word("param"), message };
        (fields != Self::default()).then_some(fields)
    }

    /// The name for it: the code, if it is a word, else the type.
    fn name(&self) -> &str {
        let is_word = |it: &str| it.chars().any(|it| it.is_alphabetic());
        let names = [self.code.as_str(), self.kind.as_str()];
        names.into_iter().find(|it| is_word(it)).unwrap_or(UNNAMED_ERROR)
    }

    /// Returns the class of an error whose words name it, whatever its status is; `None` where they do not.
    fn class(&self) -> Option<FailureClass> {
        let message = self.message.to_lowercase().replace('`', "");
        if is_billing(&self.kind, &self.code, &self.message) {
            return Some(FailureClass::Billing);
        }
        // Of what is there again tomorrow, or when somebody has bought more; some have no name for it.
        if self.code == "insufficient_quota" || self.kind == "insufficient_quota" {
            return Some(FailureClass::Quota);
        }
        if message.contains("exceeded your current quota") {
            return Some(FailureClass::Quota);
        }
        if self.is_output_overflow(&message) {
            return Some(FailureClass::OutputOverflow);
        }
        let says = |parts: &[&str]| parts.iter().any(|it| message.contains(it));
        let named = |names: &[&str]| names.iter().any(|it| self.code == *it || self.kind == *it);
        if named(&["context_length_exceeded", "exceed_context_size_error"]) || says(&TOO_LONG) {
            return Some(FailureClass::ContextOverflow);
        }
        // More than a minute's tokens in one request: no waiting helps, a shorter one does.
        if message.starts_with("request too large") {
            return Some(FailureClass::ContextOverflow);
        }
        if named(&["content_filter", "content_policy_violation"]) {
            return Some(FailureClass::Refusal);
        }
        if named(&["rate_limit_exceeded", "rate_limit_error", "tokens", "requests"]) {
            return Some(FailureClass::RateLimit);
        }
        if named(&["overloaded_error", "server_is_overloaded", "slow_down", "unavailable_error"])
            || says(&["currently overloaded"])
        {
            return Some(FailureClass::Overloaded);
        }
        if named(&["invalid_api_key", "authentication_error", "permission_error"]) {
            return Some(FailureClass::Auth);
        }
        if named(&["invalid_request_error", "invalid_prompt", "model_not_found", "BadRequestError"])
        {
            return Some(FailureClass::InvalidRequest);
        }
        None
    }

    /// Whether it is the output ceiling that does not fit: into the model, or in addition to the
    /// prompt into the window.
    fn is_output_overflow(&self, message: &str) -> bool {
        let is_about_output = self.param.starts_with("max_");
        if is_about_output && (message.contains("too large") || message.contains("above max")) {
            return true;
        }
        let words = ["max_completion_tokens", "max_tokens", "max_new_tokens", "max_output_tokens"];
        let names_output = words.iter().any(|it| message.contains(it));
        if names_output && (message.contains("is too large") || message.contains("must be <=")) {
            return true;
        }
        NamedLimits::read(message).is_about_output()
    }
}

/// Returns the failure that an answer with this HTTP status means. `now` turns moments in headers into waiting times.
pub(crate) fn from_response(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> ModelFailure {
    let text = String::from_utf8_lossy(body);
    let fields =
        serde_json::from_str(&text).ok().and_then(|it| ErrorFields::read(&it)).unwrap_or_default();
    let class = class_of_status(status, &fields);
    let wait = || reset_of_limit(headers, now).or_else(|| wait_in_words(&fields.message));
    let retry_after_ms =
        is_retryable(class).then(|| retry_after(headers, now).or_else(wait)).flatten();
    let class = or_quota(class, retry_after_ms);
    let message =
        if fields.message.is_empty() { body_excerpt(title(&text)) } else { fields.message };
    let partial_text = String::new();
    ModelFailure { class, status: Some(status), message, retry_after_ms, partial_text }
}

/// Returns what an error object inside a stream or inside an answer with status 200 means.
pub(crate) fn from_object(error: &Value, phase: StreamPhase) -> Broken {
    let fields = ErrorFields::read(error).unwrap_or_default();
    // Some servers write a status where the code belongs.
    let status = fields.code.parse().ok().filter(|it| (400..600).contains(it));
    let class = match status {
        Some(status) => class_of_status(status, &fields),
        None => fields.class().unwrap_or(FailureClass::Network),
    };
    let class = match class {
        FailureClass::Network if phase != StreamPhase::Idle => FailureClass::StreamBroken,
        class => class,
    };
    let code = fields.name().to_owned();
    Broken { class, code, message: fields.message, is_ours: false }
}

fn class_of_status(status: u16, fields: &ErrorFields) -> FailureClass {
    let named = fields.class();
    match status {
        402 => FailureClass::Billing,
        _ if named == Some(FailureClass::Billing) => FailureClass::Billing,
        401 | 403 if named == Some(FailureClass::Quota) => FailureClass::Quota,
        429 => match named {
            Some(
                class @ (FailureClass::Auth | FailureClass::Quota | FailureClass::ContextOverflow),
            ) => class,
            _ => FailureClass::RateLimit,
        },
        401 | 403 => FailureClass::Auth,
        413 => FailureClass::ContextOverflow,
        503 | 529 => FailureClass::Overloaded,
        _ if is_lasting(status) => FailureClass::InvalidRequest,
        // Also some server errors are about the length of the prompt.
        500.. => match named {
            Some(class @ (FailureClass::ContextOverflow | FailureClass::OutputOverflow)) => class,
            _ => FailureClass::Network,
        },
        408 | 409 => FailureClass::Network,
        _ => match named {
            Some(
                class @ (FailureClass::ContextOverflow
                | FailureClass::OutputOverflow
                | FailureClass::Refusal
                | FailureClass::Quota
                | FailureClass::Auth),
            ) => class,
            _ => FailureClass::InvalidRequest,
        },
    }
}

/// The title of a web page that somebody between us and the server sent; other text as it is.
fn title(text: &str) -> &str {
    let inside = |text: &'_ str| -> Option<(usize, usize)> {
        let from = text.find("<title>")? + "<title>".len();
        Some((from, from + text.get(from..)?.find('<')?))
    };
    inside(text).and_then(|(from, to)| text.get(from..to)).unwrap_or(text)
}

/// `x-ratelimit-remaining-requests: 0` with `x-ratelimit-reset-requests: 6m0s`, and the same for
/// tokens; the longest of those that are used up.
fn reset_of_limit(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let header = |name: String| header(headers, &name);
    let waits = ["-requests", "-tokens", ""].into_iter().filter_map(|what| {
        (header(format!("x-ratelimit-remaining{what}"))? == "0").then_some(())?;
        let reset = header(format!("x-ratelimit-reset{what}"))?;
        reset_ms(reset, now)
    });
    waits.max()
}

/// "Please try again in 11.054s."
fn wait_in_words(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("try again in ")?;
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '.').unwrap_or(rest.len());
    length_ms(rest.get(..end)?.trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
