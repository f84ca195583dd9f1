//! What a provider says in headers about its limits, and what a failed call says about its quota.
//!
//! The names differ by provider and are looked for all at once, since they exclude each other:
//! `anthropic-ratelimit-tokens-remaining` and `x-ratelimit-remaining-tokens`.

use super::{Outcome, bucket::Level, limits::BreakerLimits};
use crate::{
    step5_model_call::{FailureClass, ModelFailure, failure::reset::reset_ms},
    time::Timestamp,
};

/// What an answer says about the limits of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests.
    pub requests: Option<Level>,
    /// Tokens of both directions.
    pub tokens: Option<Level>,
    /// Tokens of requests.
    pub input_tokens: Option<Level>,
    /// Tokens of answers.
    pub output_tokens: Option<Level>,
}

impl Report {
    /// From headers with names in lower case. `now` turns moments into waiting times. `None` when
    /// nothing is said; what cannot be read counts as not said.
    pub fn read(headers: &[(String, String)], now: Timestamp) -> Option<Self> {
        let mut report = Self::default();
        for (name, value) in headers {
            let Some((of, what)) = limit_of(name) else { continue };
            let Some(level) = (match of {
                "requests" => Some(&mut report.requests),
                "tokens" => Some(&mut report.tokens),
                "input-tokens" => Some(&mut report.input_tokens),
                "output-tokens" => Some(&mut report.output_tokens),
                _ => None,
            }) else {
                continue;
            };
            let value = value.trim();
            match what {
                "remaining" => {
                    if let Ok(remaining) = value.parse() {
                        level.get_or_insert_default().remaining = remaining;
                    }
                }
                // Without what is left, the rest says nothing.
                "limit" if is_said(headers, of) => {
                    level.get_or_insert_default().limit = value.parse().ok();
                }
                "reset" if is_said(headers, of) => {
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

fn is_said(headers: &[(String, String)], of: &str) -> bool {
    headers.iter().any(|(name, value)| {
        limit_of(name) == Some((of, "remaining")) && value.trim().parse::<u64>().is_ok()
    })
}

/// Whether this is a server of Anthropic itself, which says in every 429 that is a pause how long.
pub fn is_first_party(base: &str) -> bool {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    host == "api.anthropic.com" || host.ends_with(".anthropic.com")
}

/// What a failed call means for everybody who uses the same key.
///
/// A quota is over when the provider says so (`insufficient_quota`, 402, an empty balance), when it
/// asks for a pause that no turn waits for, and when Anthropic itself answers 429 without saying how
/// long to wait, which is how it says that a spend limit is reached.
pub fn outcome_of(failure: &ModelFailure, first_party: bool, limits: &BreakerLimits) -> Outcome {
    let retry_after_ms = failure.retry_after_ms;
    match (failure.status, failure.class) {
        (Some(402), _) | (_, FailureClass::Quota) => Outcome::QuotaOver { for_ms: retry_after_ms },
        _ if failure.message.to_lowercase().contains("credit balance is too low") => {
            Outcome::QuotaOver { for_ms: None }
        }
        (Some(429), FailureClass::RateLimit) if first_party && retry_after_ms.is_none() => {
            Outcome::QuotaOver { for_ms: None }
        }
        _ if retry_after_ms.is_some_and(|it| limits.quota_from_ms < it) => {
            Outcome::QuotaOver { for_ms: retry_after_ms }
        }
        (_, FailureClass::RateLimit | FailureClass::Overloaded) => {
            Outcome::Overloaded { retry_after_ms }
        }
        (_, FailureClass::Network | FailureClass::StreamBroken | FailureClass::BadAnswer) => {
            Outcome::Broken
        }
        // No status and nothing to ask again: the handshake was refused.
        (None, FailureClass::InvalidRequest) => Outcome::Broken,
        // It was answered: the server works.
        _ => Outcome::Answered,
    }
}

#[cfg(test)]
mod tests;
