//! `ennead doctor --tokens`: how far the harness's estimates of tokens are from what a model server counts.
//!
//! A server counts whole requests. So one with a message of one letter is counted first, and what it takes in addition
//! to that letter, taken for one token, is taken off the others.

use std::{fmt::Write, sync::Arc, time::Duration};

use bytes::Bytes;
use ennead::Endpoint;
use ennead_runtime::{
    ports::{Transport, TransportError, WireRequest, WireResponse},
    saturating::Saturating as _,
    tokens::corpus::CORPUS,
};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How long one count may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of an answer that are read; a count takes less than a hundred.
const MAX_ANSWER: usize = 64 * 1024;

/// Characters of a refusal that are shown.
const MAX_REASON: usize = 300;

/// A text, as it was estimated and counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// The language of the text, or what it is.
    pub text: &'static str,
    /// Characters (Unicode scalar values) that it has.
    pub chars: u64,
    /// Tokens that the server counts.
    pub counted: u64,
    /// Tokens that the harness estimates.
    pub estimated: u64,
    /// The estimate less the count, in percent of the count.
    pub error_percent: i64,
}

/// Why there are no counts.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The format of the provider has no endpoint that counts.
    #[error("no tokens are counted by {provider}: its format has no endpoint for that")]
    NoEndpoint {
        /// The provider by its name.
        provider: Arc<str>,
    },
    /// The server was not reached, or the connection broke.
    #[error("the tokens cannot be counted: {0}")]
    Unreachable(#[from] TransportError),
    /// There was no whole answer in time.
    #[error("the tokens cannot be counted: no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    /// The server refused to count.
    #[error("the server refused to count tokens ({status}): {why}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The beginning of its answer.
        why: String,
    },
    /// The answer holds no count.
    #[error("the answer of the server holds no count of tokens: {why}")]
    Unreadable {
        /// The beginning of the answer.
        why: String,
    },
}

#[derive(Deserialize)]
struct Counted {
    input_tokens: u64,
}

/// Has the texts of the corpus counted for a model, one after another.
///
/// # Errors
///
/// [`CountError`]; of the first text that could not be counted.
pub async fn counts(
    transport: &dyn Transport,
    endpoint: &Endpoint,
    model: &str,
) -> Result<Vec<TokenCount>, CountError> {
    let Some(url) = endpoint.format.counting_url(&endpoint.base) else {
        return Err(CountError::NoEndpoint { provider: Arc::clone(&endpoint.provider) });
    };
    let count = async |text: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": text}]});
        let body = Bytes::from(body.to_string());
        let request = WireRequest::new(&*url, Arc::clone(&endpoint.headers), body, PATIENCE);
        match tokio::time::timeout(PATIENCE, one(transport, request)).await {
            Ok(counted) => counted,
            Err(_elapsed) => Err(CountError::TimedOut),
        }
    };
    let frame = count("x").await?.saturating_sub(1);
    let mut counts = Vec::with_capacity(CORPUS.len());
    for text in CORPUS {
        let counted = count(text.text).await?.saturating_sub(frame);
        let estimated = text.estimate().0;
        let difference = i64::saturating(estimated) - i64::saturating(counted);
        counts.push(TokenCount {
            text: text.name,
            chars: text.chars(),
            counted,
            estimated,
            error_percent: difference.saturating_mul(100) / i64::saturating(counted).max(1),
        });
    }
    Ok(counts)
}

async fn one(transport: &dyn Transport, request: WireRequest) -> Result<u64, CountError> {
    let WireResponse { status, mut body, .. } = transport.send(request).await?;
    let mut answer = Vec::new();
    while let Some(piece) = body.next().await {
        answer.extend_from_slice(&piece?);
        if MAX_ANSWER < answer.len() {
            break;
        }
    }
    let why = || String::from_utf8_lossy(&answer).chars().take(MAX_REASON).collect();
    if status != 200 {
        return Err(CountError::Refused { status, why: why() });
    }
    let counted = serde_json::from_slice::<Counted>(&answer);
    counted.map(|it| it.input_tokens).map_err(|_| CountError::Unreadable { why: why() })
}

/// Lays the counts out as a table.
pub fn table(counts: &[TokenCount]) -> String {
    let mut out = format!(
        "{:<10}{:>12}{:>9}{:>11}{:>8}",
        "text", "characters", "counted", "estimated", "error"
    );
    for it in counts {
        let error = format!("{:+} %", it.error_percent);
        // Writing to a text does not fail.
        let _written = write!(
            out,
            "\n{:<10}{:>12}{:>9}{:>11}{error:>8}",
            it.text, it.chars, it.counted, it.estimated
        );
    }
    out
}
