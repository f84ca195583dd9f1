//! What a provider says in headers about its limits, and what a failed call says about its quota.
//!
//! The names differ by provider and are looked for all at once, since they exclude each other:
//! `anthropic-ratelimit-tokens-remaining` and `x-ratelimit-remaining-tokens`.

use http::HeaderMap;

use super::{CallOutcome, bucket::Level};
use crate::{
    step5_model_call::{FailureClass, ModelFailure, failure::reset::reset_ms},
    time::Timestamp,
};

/// What an answer says about the limits of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitReport {
    /// Limit on the number of requests.
    pub requests: Option<Level>,
    /// Tokens of both directions.
    pub tokens: Option<Level>,
    /// Limit on the tokens of requests.
    pub input_tokens: Option<Level>,
    /// Limit on the tokens of answers.
    pub output_tokens: Option<Level>,
}

impl RateLimitReport {
    /// Reads the limits that headers report. `now` turns moments into waiting times. Returns `None` when no header
    /// reports one; a header that cannot be read counts as absent.
    pub fn read(headers: &HeaderMap, now: Timestamp) -> Option<Self> {
        let mut report = Self::default();
        for (name, value) in headers {
            let Some((of, what)) = limit_of(name.as_str()) else { continue };
            let Some(level) = (match of {
                "requests" => Some(&mut report.requests),
                "tokens" => Some(&mut report.tokens),
                "input-tokens" => Some(&mut report.input_tokens),
                "output-tokens" => Some(&mut report.output_tokens),
                _ => None,
            }) else {
                continue;
            };
            let value = value.to_str().unwrap_or_default().trim();
            match what {
                "remaining" => {
                    if let Ok(remaining) = value.parse() {
                        level.get_or_insert_default().remaining = remaining;
                    }
                }
                // Without what is left, the rest says nothing.
                "limit" if is_given(headers, of) => {
                    level.get_or_insert_default().limit = value.parse().ok();
                }
                "reset" if is_given(headers, of) => {
                    level.get_or_insert_default().reset_in_ms = reset_ms(value, now);
                }
                _ => {}
            }
        }
        (report != Self::default()).then_some(report)
    }
}

/// Which limit a header is about, and what it says of it.
fn limit_of(name: &str) -> Option<(&str, &str)> {
    if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
        return rest.rsplit_once('-');
    }
    let (what, of) = name.strip_prefix("x-ratelimit-")?.split_once('-')?;
    Some((of, what))
}

fn is_given(headers: &HeaderMap, of: &str) -> bool {
    headers.iter().any(|(name, value)| {
        let value = value.to_str().unwrap_or_default().trim();
        limit_of(name.as_str()) == Some((of, "remaining")) && value.parse::<u64>().is_ok()
    })
}

/// Returns what a failed call means for all calls with the same key. It goes by the class alone, as the turn does, so
/// that the two never read one failure differently.
pub fn outcome_of(failure: &ModelFailure) -> CallOutcome {
    let retry_after_ms = failure.retry_after_ms;
    match failure.class {
        FailureClass::Quota => CallOutcome::QuotaOver { for_ms: retry_after_ms },
        FailureClass::Billing => CallOutcome::Unpaid { message: failure.message.as_str().into() },
        FailureClass::RateLimit | FailureClass::Overloaded => {
            CallOutcome::Overloaded { retry_after_ms }
        }
        FailureClass::Unreachable
        | FailureClass::Network
        | FailureClass::Timeout
        | FailureClass::StreamBroken
        | FailureClass::BadAnswer => CallOutcome::Broken,
        // An error inside a stream, a request that cannot be sent, or a certificate that this session
        // does not believe: others fare as they would.
        FailureClass::InvalidRequest if failure.status.is_none() => CallOutcome::Unclear,
        // It was answered: the server works.
        FailureClass::ContextOverflow
        | FailureClass::OutputOverflow
        | FailureClass::MaxOutput
        | FailureClass::Auth
        | FailureClass::InvalidRequest
        | FailureClass::EmptyAnswer
        | FailureClass::PauseTurn
        | FailureClass::Refusal
        | FailureClass::Internal => CallOutcome::Answered,
    }
}

#[cfg(test)]
mod tests;
