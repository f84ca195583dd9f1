//! One message of ours, and what the server answers in the same exchange.

use std::sync::Arc;

use rmcp::model::RequestId;

use super::{
    super::lines::Message,
    Inbox, Incoming, Outgoing, OutgoingKind,
    answer::{fail, read_answer, read_refusal, version_of},
    link::{FailureKind, HttpFailure, Link},
};

/// Sends a message and hands on what comes back; a request has an answer after that, or an error in its place.
pub(super) async fn carry(link: Arc<Link>, outgoing: Outgoing, inbox: Inbox) {
    let is_reply = outgoing.kind == OutgoingKind::Reply;
    let id = outgoing.id.clone();
    match exchange(&link, outgoing, &inbox).await {
        Ok(None) => {}
        Ok(Some(mut answer)) => {
            if let Some(id) = &id {
                name_request(&mut answer, id);
            }
            // Without a reader nothing is wanted any more.
            let _gone = inbox.send(Incoming::Message(Box::new(answer))).await;
        }
        Err(failure) => fail(&link, &inbox, id.as_ref(), failure).await,
    }
    if is_reply {
        link.answered();
    }
}

async fn exchange(
    link: &Arc<Link>,
    outgoing: Outgoing,
    inbox: &Inbox,
) -> Result<Option<Message>, HttpFailure> {
    let Outgoing { body, id, kind, .. } = outgoing;
    let is_greeting = kind == OutgoingKind::Greeting;
    if let (true, Some(id)) = (is_greeting, &id) {
        link.greets_with(id.clone(), body.clone());
    }
    let session = link.session();
    let mut response = link.post(&session, body.clone()).await?;
    if response.status == 404 && session.has_id() && !is_greeting {
        drop(response);
        link.renew(&session).await?;
        response = link.post(&link.session(), body).await?;
    }
    if !(200..300).contains(&response.status) {
        return read_refusal(link, response, id.as_ref()).await.map(Some);
    }
    if is_greeting {
        link.note_session(&response)?;
    }
    let Some(id) = id else { return Ok(None) };
    if matches!(response.status, 202 | 204) {
        return Err(HttpFailure::of_call("it took the request and gives no answer"));
    }
    let answer = read_answer(link, response, &id, Some(inbox)).await?;
    if is_greeting {
        match (version_of(&answer), &answer) {
            (Some(version), _) => link.speaks(version),
            (None, Message::Error(it)) => {
                let why = format!("it does not open a session: {}", it.error.message);
                link.note(HttpFailure::new(FailureKind::Refused, why));
            }
            (None, _) => {}
        }
    }
    Ok(Some(answer))
}

/// Some servers answer with an id that is not quite that of the request, or with none.
fn name_request(answer: &mut Message, id: &RequestId) {
    match answer {
        Message::Response(it) => it.id = id.clone(),
        Message::Error(it) => it.id = Some(id.clone()),
        Message::Request(_) | Message::Notification(_) => {}
    }
}
