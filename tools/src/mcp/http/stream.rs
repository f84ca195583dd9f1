//! The older transport over HTTP: the server's messages come on one stream, and ours go to an
//! address that its first event names.

use std::sync::Arc;

use rmcp::model::RequestId;

use super::{
    super::lines::{Verdict, error_answer, judged},
    Inbox, Incoming, Outgoing, OutgoingKind,
    answer::{fail, pass_on, read_refusal},
    body::Body,
    link::{FailureKind, HttpFailure, Link},
};

/// Reads the stream until it ends, and the connection with it.
pub(super) async fn read(link: Arc<Link>, inbox: Inbox) -> Option<RequestId> {
    let failure = match follow(&link, &inbox).await {
        Ok(()) => HttpFailure::new(FailureKind::Unreachable, "it closed its stream"),
        Err(failure) if failure.is_fatal() => failure,
        Err(failure) => HttpFailure { kind: FailureKind::Unreachable, ..failure },
    };
    fail(&link, &inbox, None, failure).await;
    None
}

async fn follow(link: &Arc<Link>, inbox: &Inbox) -> Result<(), HttpFailure> {
    let response = link.open_stream().await?;
    if response.status != 200 {
        return read_refusal(link, response, None).await.map(drop);
    }
    // Between calls there is nothing to send.
    let mut events = Body::new(response.body, Arc::clone(link), None).events();
    let mut has_endpoint = false;
    while let Some(event) = events.next().await? {
        match &*event.kind {
            "endpoint" if !has_endpoint => {
                link.name_endpoint(&String::from_utf8_lossy(&event.data))?;
                has_endpoint = true;
            }
            "" | "message" => match judged(event.data, &link.tasks).await {
                Verdict::Message(message) => pass_on(link, Some(inbox), message).await,
                Verdict::Nothing => {}
                Verdict::Unreadable(id, what) => {
                    let server = link.server();
                    let why =
                        format!("MCP server `{server}` gave an answer that cannot be read: {what}");
                    if let Some(answer) = error_answer(&id, &why) {
                        pass_on(link, Some(inbox), Box::new(answer)).await;
                    }
                }
                Verdict::Garbled(what) => {
                    return Err(HttpFailure::new(FailureKind::Refused, format!("it wrote {what}")));
                }
            },
            _ => {}
        }
    }
    Ok(())
}

/// Sends a message; the answer comes on the stream.
pub(super) async fn carry(link: Arc<Link>, outgoing: Outgoing, inbox: Inbox) {
    link.wait_for_endpoint().await;
    let sent = match link.post(&link.session(), outgoing.body).await {
        Ok(response) if (200..300).contains(&response.status) => Ok(()),
        Ok(response) => match read_refusal(&link, response, outgoing.id.as_ref()).await {
            Ok(answer) => {
                // Without a reader nothing is wanted any more.
                let _gone = inbox.send(Incoming::Message(Box::new(answer))).await;
                Ok(())
            }
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    if let Err(failure) = sent {
        fail(&link, &inbox, outgoing.id.as_ref(), failure).await;
    }
    if outgoing.kind == OutgoingKind::Reply {
        link.answered();
    }
}
