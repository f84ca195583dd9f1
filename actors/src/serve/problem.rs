//! Why a request is refused: `application/problem+json` with a stable code (RFC 9457).

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use utoipa::ToSchema;

use ennead_runtime::saturating::Saturating as _;

/// Codes of refusals, with their HTTP status and what they are in words. The codes are stable.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:ident, $title:literal;)*) => {
        /// Why a request is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Lists every code, in the order of this file.
            #[cfg(test)]
            pub(crate) const ALL: &[Code] = &[$(Code::$name,)*];

            /// Returns the stable code, as programs compare it.
            pub(crate) fn code(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)* }
            }

            fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    /// The body, a parameter or a header cannot be read.
    BadRequest = "bad_request", BAD_REQUEST, "the request cannot be read";
    /// The request has no token, or one that is not known.
    Unauthorized = "unauthorized", UNAUTHORIZED, "a token is needed";
    /// The token is known, and its role may not do this.
    Forbidden = "forbidden", FORBIDDEN, "the role of this token may not do that";
    /// The header `Host` names another server.
    HostRefused = "host_refused", MISDIRECTED_REQUEST, "this server has another name";
    /// The header `Origin` names a page of somebody else.
    OriginRefused = "origin_refused", FORBIDDEN, "pages of other servers may not ask";
    /// Nothing is at this path.
    NotFound = "not_found", NOT_FOUND, "there is nothing at this path";
    /// The tenant has no such session.
    NoSession = "session_not_found", NOT_FOUND, "there is no such session";
    /// The session has no such run.
    NoRun = "run_not_found", NOT_FOUND, "there is no such run";
    /// The session has no such turn.
    NoTurn = "turn_not_found", NOT_FOUND, "there is no such turn";
    /// No such question is open.
    NoApproval = "approval_not_found", NOT_FOUND, "there is no such question";
    /// The question was answered, or its time is over.
    Answered = "approval_closed", CONFLICT, "the question is not open any more";
    /// The answer does not fit the question.
    BadAnswer = "approval_mismatch", CONFLICT, "the answer does not fit the question";
    /// The path takes other methods.
    Method = "method_not_allowed", METHOD_NOT_ALLOWED, "the path takes other methods";
    /// The body is longer than this server takes.
    TooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "the body is too long";
    /// The head is longer than this server takes.
    HeadTooLarge = "head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too long";
    /// The body did not come in time.
    Slow = "body_timeout", REQUEST_TIMEOUT, "the body did not come in time";
    /// The body is not JSON.
    MediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "the body must be JSON";
    /// The range lies outside of what there is.
    Range = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "the range lies outside";
    /// The key was used for another request.
    KeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "the key was used for another request";
    /// The directory leads out of the tenant's, or cannot be made.
    BadDirectory = "bad_directory", UNPROCESSABLE_ENTITY, "the directory cannot be used";
    /// The session cannot be opened.
    CannotOpen = "session_cannot_open", CONFLICT, "the session cannot be opened";
    /// The caller sends requests faster than it may.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "too many requests";
    /// The session holds as many prompts as it may.
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "the queue of the session is full";
    /// The tenant, or the server, has as many sessions as it may.
    Sessions = "session_limit", TOO_MANY_REQUESTS, "there are as many sessions as there may be";
    /// The tenant, or the server, has used its tokens of the day.
    Tokens = "token_limit", TOO_MANY_REQUESTS, "the tokens of the day are used up";
    /// The tenant, or the server, has used its money of the day.
    Money = "money_limit", TOO_MANY_REQUESTS, "the money of the day is used up";
    /// The tenant has used its place on the disk.
    Disk = "disk_limit", INSUFFICIENT_STORAGE, "the place on the disk is used up";
    /// The sessions of the tenant, or of the server, take all memory that they may.
    Memory = "memory_limit", TOO_MANY_REQUESTS, "the memory is used up";
    /// There are as many streams of events as there may be.
    Streams = "stream_limit", TOO_MANY_REQUESTS, "there are as many streams as there may be";
    /// There are as many connections as there may be.
    Connections = "connection_limit", SERVICE_UNAVAILABLE, "there are as many connections as there may be";
    /// The server is about to end.
    Draining = "draining", SERVICE_UNAVAILABLE, "the server is about to end";
    /// The disk or the runtime failed.
    Internal = "internal", INTERNAL_SERVER_ERROR, "the server failed";
}

/// A refusal, on its way to the caller.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    detail: String,
    retry_after: Option<Duration>,
}

/// What the body of a refusal holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// `urn:ennead:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of refusal in words; the same for all of a code.
    title: &'static str,
    /// The HTTP status of the response, once more in its body.
    status: u16,
    /// The stable code, as programs compare it.
    code: &'static str,
    /// What is wrong with this request, in words.
    detail: String,
    /// Milliseconds after which the same request may be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Problem {
    /// Makes a refusal of this request, in words. The words hold nothing that the caller sent in a header.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after: None }
    }

    /// Adds after how long the client may ask again (`Retry-After`).
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Returns after how many milliseconds the client may ask again. Of less than one, one is left: 0 would say that
    /// nothing has to be waited for.
    fn wait_ms(&self) -> Option<u64> {
        Some(u64::saturating(self.retry_after?.as_micros().div_ceil(1000)).max(1))
    }

    /// Makes a failure of the disk or of the runtime. What exactly failed goes to the log and not to the caller.
    pub(crate) fn internal(what: &'static str, error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "{what}");
        Self::new(Code::Internal, what)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.title(), self.detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let millis = self.wait_ms();
        let Self { code, detail, .. } = self;
        let body = ProblemBody {
            kind: format!("urn:ennead:problem:{}", code.code()),
            title: code.title(),
            status: code.status().as_u16(),
            code: code.code(),
            detail,
            retry_after_ms: millis,
        };
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = code.status();
        // By this refusals are counted, whoever made them.
        response.extensions_mut().insert(code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(millis) = millis {
            // At least a second, since the header knows no less.
            headers.insert(header::RETRY_AFTER, millis.div_ceil(1000).max(1).into());
        }
        if code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // REQ: SUR-5
    #[test]
    fn every_code_is_of_one_refusal_and_is_a_failure() {
        let codes: BTreeSet<_> = Code::ALL.iter().map(|it| it.code()).collect();
        assert_eq!(codes.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|it| 400 <= it.status().as_u16()));
    }

    // REQ: RUN-8
    #[test]
    fn refusal_says_in_its_header_when_to_ask_again() {
        let problem = Problem::new(Code::QueueFull, "full").after(Duration::from_millis(1_200));
        let response = problem.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        let short = Problem::new(Code::RateLimited, "fast").after(Duration::from_micros(300));
        assert_eq!(short.wait_ms(), Some(1));
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
