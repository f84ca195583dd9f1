//! Servers that are reached over HTTP, as the library wants them: messages in, messages out.
//!
//! Each message that is sent is an exchange of its own, and all exchanges are futures of the
//! transport: none outlives it. What they share is in [`link`], one exchange in [`post`], and the
//! older transport, whose answers come on one stream, in [`stream`]. Requests are sent through the
//! port of the harness, which follows no redirects and unpacks nothing.

mod answer;
mod body;
mod endpoint;
mod link;
mod post;
mod stream;

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use bytes::Bytes;
use ennead_runtime::ports::{BoxFuture, WorkGuard};
use futures::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use rmcp::{
    RoleClient,
    model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId},
    service::TxJsonRpcMessage,
    transport::Transport,
};
use tokio::sync::mpsc;

use super::lines::Message;
pub(super) use link::{FailureKind, Link};

/// Messages of the server that wait for the library.
const MAX_WAITING: usize = 16;

/// What comes of exchanges.
enum Incoming {
    Message(Box<Message>),
    /// Nothing comes any more, and nothing can be sent.
    End,
}

/// The way of an exchange to the library.
type Inbox = mpsc::Sender<Incoming>;

/// A message for the server.
struct Outgoing {
    body: Bytes,
    /// The request that it is, if it is one.
    id: Option<RequestId>,
    kind: OutgoingKind,
    /// The request that nobody wants an answer to any more.
    gives_up: Option<RequestId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutgoingKind {
    /// The request that opens the session.
    Greeting,
    /// The answer to a request of the server.
    Reply,
    Other,
}

/// A server over HTTP.
pub(super) struct HttpTransport {
    link: Arc<Link>,
    /// Whether answers come on the one stream of the older transport.
    has_stream: bool,
    exchanges: FuturesUnordered<BoxFuture<'static, Option<RequestId>>>,
    /// Ends the exchanges of requests.
    requests: HashMap<RequestId, AbortHandle>,
    inbox: mpsc::Receiver<Incoming>,
    to_inbox: Inbox,
    outgoing: mpsc::UnboundedReceiver<Outgoing>,
    to_server: mpsc::UnboundedSender<Outgoing>,
    /// Let go with the transport.
    _guard: WorkGuard,
}

impl HttpTransport {
    /// Makes a transport; nothing is sent yet. `has_stream`: the server speaks the older transport.
    pub(super) fn new(link: Arc<Link>, has_stream: bool, guard: WorkGuard) -> Self {
        let (to_inbox, inbox) = mpsc::channel(MAX_WAITING);
        // The library sends no more than there are calls, and answers as many requests as are passed on.
        let (to_server, outgoing) = mpsc::unbounded_channel();
        let exchanges = FuturesUnordered::<BoxFuture<'static, Option<RequestId>>>::new();
        if has_stream {
            exchanges.push(Box::pin(stream::read(Arc::clone(&link), to_inbox.clone())));
        }
        let requests = HashMap::new();
        let _guard = guard;
        Self { link, has_stream, exchanges, requests, inbox, to_inbox, outgoing, to_server, _guard }
    }

    fn begin(&mut self, outgoing: Outgoing) {
        // Messages begin in their order: the request that is given up has begun.
        if let Some(handle) = outgoing.gives_up.as_ref().and_then(|it| self.requests.remove(it)) {
            handle.abort();
        }
        let (link, inbox) = (Arc::clone(&self.link), self.to_inbox.clone());
        let id = outgoing.id.clone();
        let (exchange, handle) = if self.has_stream {
            let exchange: BoxFuture<'static, ()> = Box::pin(stream::carry(link, outgoing, inbox));
            abortable(exchange)
        } else {
            let exchange: BoxFuture<'static, ()> = Box::pin(post::carry(link, outgoing, inbox));
            abortable(exchange)
        };
        if let Some(id) = &id {
            self.requests.insert(id.clone(), handle);
        }
        self.exchanges.push(Box::pin(async move {
            // One that was given up has no answer.
            let _given_up = exchange.await;
            id
        }));
    }
}

/// The request that a message gives up: its exchange ends, and with it what the server still sends for it.
fn given_up(message: &TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
    let JsonRpcMessage::Notification(it) = message else { return None };
    match &it.notification {
        ClientNotification::CancelledNotification(it) => it.params.request_id.clone(),
        _ => None,
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let gives_up = given_up(&message);
        let (id, kind) = match &message {
            JsonRpcMessage::Request(it) => match it.request {
                ClientRequest::InitializeRequest(_) => {
                    (Some(it.id.clone()), OutgoingKind::Greeting)
                }
                _ => (Some(it.id.clone()), OutgoingKind::Other),
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => (None, OutgoingKind::Reply),
            JsonRpcMessage::Notification(_) => (None, OutgoingKind::Other),
        };
        // Messages of the library can be written; one that cannot is answered by the server.
        let body = serde_json::to_vec(&message).unwrap_or_default().into();
        // The receiver lives as long as this.
        let _sent = self.to_server.send(Outgoing { body, id, kind, gives_up });
        std::future::ready(Ok(()))
    }

    /// May be dropped and called again.
    async fn receive(&mut self) -> Option<Message> {
        loop {
            tokio::select! {
                biased;
                incoming = self.inbox.recv() => match incoming {
                    Some(Incoming::Message(message)) => return Some(*message),
                    Some(Incoming::End) | None => return None,
                },
                Some(outgoing) = self.outgoing.recv() => self.begin(outgoing),
                Some(ended) = self.exchanges.next(), if !self.exchanges.is_empty() => {
                    if let Some(id) = ended {
                        self.requests.remove(&id);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.exchanges.clear();
        self.link.end_session().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
