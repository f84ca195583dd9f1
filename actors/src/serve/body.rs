//! Reads bodies, queries and headers of requests, and says what is wrong with them as a problem.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, HeaderName, Request, header},
};
use serde::de::DeserializeOwned;

use super::problem::{Code, Problem};
use ennead_runtime::saturating::Saturating as _;

/// How long a `Prefer: wait` may be.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Parts of a list that one answer has.
pub(crate) const MAX_PAGE: usize = 200;

/// Reads the body of a request as JSON; one without a body is the empty object.
pub(crate) async fn json<T: DeserializeOwned>(
    request: Request<Body>,
    max: usize,
) -> Result<T, Problem> {
    let kind = header_text(request.headers(), &header::CONTENT_TYPE).map(str::to_owned);
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(request.into_body(), max)).await;
    let slow = |_| Problem::new(Code::Slow, "the body must be whole within 30 seconds");
    let bytes = read.map_err(slow)?.map_err(|_| {
        Problem::new(Code::TooLarge, format!("the body must be whole and have at most {max} bytes"))
    })?;
    if bytes.is_empty() {
        return serde_json::from_str("{}").map_err(|it| bad_json(&it));
    }
    let essence = kind.as_deref().and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Code::MediaType, "send Content-Type: application/json"));
    }
    serde_json::from_slice(&bytes).map_err(|it| bad_json(&it))
}

fn bad_json(error: &serde_json::Error) -> Problem {
    Problem::new(Code::BadRequest, format!("the body: {error}"))
}

/// Returns the value of a parameter of the query, decoded; the first of several.
pub(crate) fn query<'a>(uri: &'a axum::http::Uri, name: &str) -> Option<&'a str> {
    let query = uri.query()?;
    let pairs = query.split('&').filter_map(|it| it.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
}

/// Reads a number of the query.
pub(crate) fn number(uri: &axum::http::Uri, name: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query(uri, name) else { return Ok(None) };
    let bad = |_| Problem::new(Code::BadRequest, format!("the parameter {name} is not a number"));
    text.parse().map(Some).map_err(bad)
}

/// Returns how many items of a list are asked for; 50 by default.
pub(crate) fn page(uri: &axum::http::Uri) -> Result<usize, Problem> {
    let n = number(uri, "limit")?.map_or(50, usize::saturating);
    Ok(n.clamp(1, MAX_PAGE))
}

/// Returns the text of a header; `None` where it is absent or not text.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns how long the answer may wait for the outcome, by `Prefer: wait=S`.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let prefer = HeaderName::from_static("prefer");
    let all = headers.get_all(prefer).iter().filter_map(|it| it.to_str().ok());
    let seconds = all
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().strip_prefix("wait="))
        .find_map(|it| it.parse::<u64>().ok())?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

/// Returns whether the caller wants a stream of events.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    header_text(headers, &header::ACCEPT).is_some_and(|it| it.contains("text/event-stream"))
}
