//! The answer to a request, as one JSON text or as the last of some events.

use std::sync::Arc;

use ennead_runtime::ports::WireResponse;
use rmcp::model::{JsonRpcMessage, RequestId, ServerResult};

use super::{
    super::lines::{Message, Verdict, error_answer, judged},
    Inbox, Incoming,
    body::{Body, IDLE},
    link::{FailureKind, HttpFailure, Link},
};

/// Requests of the server that may wait for an answer; further ones are dropped.
pub(super) const MAX_ASKED: usize = 16;

/// Bytes of an answer that refuses a request.
const MAX_REFUSAL: usize = 64 << 10;

/// Reads up to the answer to this request. What comes before it goes to `others`.
pub(super) async fn read_answer(
    link: &Arc<Link>,
    response: WireResponse,
    id: &RequestId,
    others: Option<&Inbox>,
) -> Result<Message, HttpFailure> {
    let kind = content_type(&response);
    let body = Body::new(response.body, Arc::clone(link), Some(IDLE));
    match &*kind {
        "application/json" => {
            let text = body.answer().await?;
            match judged(text, &link.tasks).await {
                Verdict::Message(message) if answers(&message, id) => Ok(*message),
                Verdict::Message(_) => {
                    Err(HttpFailure::of_call("it gave an answer to another request"))
                }
                Verdict::Unreadable(_, what) | Verdict::Garbled(what) => Err(unreadable(&what)),
                Verdict::Nothing => Err(unreadable("what is not a message")),
            }
        }
        "text/event-stream" => {
            let mut events = body.events();
            while let Some(event) = events.next().await? {
                if !matches!(&*event.kind, "" | "message") {
                    continue;
                }
                match judged(event.data, &link.tasks).await {
                    Verdict::Message(message) if answers(&message, id) => return Ok(*message),
                    Verdict::Message(message) => pass_on(link, others, message).await,
                    Verdict::Unreadable(of, what) if is_same(&of, id) => {
                        return Err(unreadable(&what));
                    }
                    Verdict::Garbled(what) => return Err(unreadable(&what)),
                    Verdict::Unreadable(..) | Verdict::Nothing => {}
                }
            }
            Err(HttpFailure::of_call("its stream ended before the answer"))
        }
        "" => Err(HttpFailure::of_call(format!("it gave no answer (status {})", response.status))),
        other => {
            let other: String = other.chars().take(80).collect();
            Err(HttpFailure::of_call(format!("its answer is of the type {other:?}")))
        }
    }
}

/// Returns why the server refused; its own answer to the request, if it gave one.
pub(super) async fn read_refusal(
    link: &Arc<Link>,
    response: WireResponse,
    id: Option<&RequestId>,
) -> Result<Message, HttpFailure> {
    let status = response.status;
    let kind = match status {
        401 if link.has_credentials() => {
            let why = "it does not take the header Authorization of its configuration (status 401)";
            return Err(HttpFailure::new(FailureKind::Refused, why));
        }
        401 => {
            let why = "it wants a login, which is not supported (status 401)";
            return Err(HttpFailure::new(FailureKind::NeedsAuth, why));
        }
        300..=399 => {
            let why = format!("it redirects, which is not followed (status {status})");
            return Err(HttpFailure::new(FailureKind::Refused, why));
        }
        404 | 410 => FailureKind::Refused,
        500.. => FailureKind::Unavailable,
        _ => FailureKind::Call,
    };
    if let (Some(id), "application/json") = (id, &*content_type(&response)) {
        let body = Body::new(response.body, Arc::clone(link), Some(IDLE));
        // A refusal that cannot be read is one all the same.
        let text = body.whole(MAX_REFUSAL).await.unwrap_or_default();
        if let Verdict::Message(message) = judged(text, &link.tasks).await
            && answers(&message, id)
        {
            return Ok(*message);
        }
    }
    Err(HttpFailure::new(kind, format!("it answered with the HTTP status {status}")))
}

/// Hands a message to the library, unless the server asks too much.
pub(super) async fn pass_on(link: &Link, inbox: Option<&Inbox>, message: Box<Message>) {
    let Some(inbox) = inbox else { return };
    if let JsonRpcMessage::Request(_) = *message
        && !link.may_ask()
    {
        return;
    }
    // Without a reader nothing is wanted any more.
    let _gone = inbox.send(Incoming::Message(message)).await;
}

/// Ends a request that has no answer; and the connection, where the failure says that of it.
pub(super) async fn fail(link: &Link, inbox: &Inbox, id: Option<&RequestId>, failure: HttpFailure) {
    let is_fatal = failure.is_fatal();
    let why = format!("MCP server `{}` failed: {}", link.server(), failure.why);
    let answer = id.and_then(|it| error_answer(it, &why));
    if id.is_some() || is_fatal {
        link.note(failure);
    }
    if let Some(answer) = answer {
        let _gone = inbox.send(Incoming::Message(Box::new(answer))).await;
    }
    if is_fatal {
        let _gone = inbox.send(Incoming::End).await;
    }
}

/// Returns the version of the protocol that an answer to the greeting names.
pub(super) fn version_of(answer: &Message) -> Option<&str> {
    match answer {
        JsonRpcMessage::Response(it) => match &it.result {
            ServerResult::InitializeResult(greeted) => Some(greeted.protocol_version.as_str()),
            _ => None,
        },
        _ => None,
    }
}

fn unreadable(what: &str) -> HttpFailure {
    HttpFailure::of_call(format!("it gave an answer that cannot be read: {what}"))
}

fn answers(message: &Message, id: &RequestId) -> bool {
    match message {
        JsonRpcMessage::Response(it) => is_same(&it.id, id),
        JsonRpcMessage::Error(it) => it.id.as_ref().is_none_or(|it| is_same(it, id)),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

/// Some servers make texts of numbers.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one == other || one.to_string() == other.to_string()
}

/// The type of a body in lower case, without parameters; empty where there is none.
fn content_type(response: &WireResponse) -> String {
    let named = response.headers.get(http::header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let named = named.unwrap_or_default().split(';').next().unwrap_or_default();
    named.trim().to_ascii_lowercase()
}
