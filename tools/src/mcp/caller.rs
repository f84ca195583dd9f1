//! Calls of tools over a connection, and the three ends that one may have: an answer, silence, or
//! a caller that has given up.
//!
//! No end may depend on the server: one that reads nothing any more cannot be notified of
//! the end of a call either. Then the connection is broken, and that ends the process.

use std::{pin::pin, sync::Arc, time::Duration};

use ennead_runtime::{mcp::result::CallResult, ports::ReportProgress};
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
        ClientConfig, ClientRequest, Implementation, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, RequestId, ServerResult,
    },
    service::{NotificationContext, PeerRequestOptions},
};
use serde_json::{Map, Value};
use tokio::{
    sync::{broadcast, watch},
    time::{sleep, timeout},
};

use super::{CallError, lines::Health, progress::progress, wire::content};

/// A call during which the server says nothing for this long is cancelled; progress counts.
pub(super) const SILENCE: Duration = Duration::from_secs(30 * 60);

/// The same for a server whose answers come on one stream over the network.
pub(super) const STREAM_SILENCE: Duration = Duration::from_secs(5 * 60);

/// A server that is asked to end, or sent the end of a call, has this long before each sterner way.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Signs of progress that a call may be behind. Who misses some takes that as one.
const MAX_UNREAD: usize = 16;

/// What we are to a server.
#[derive(Debug)]
pub(super) struct Client {
    progress_feed: ProgressFeed,
}

/// What servers report of calls under way.
type ProgressFeed = broadcast::Sender<Arc<ProgressNotificationParam>>;

impl Client {
    pub(super) fn new() -> Self {
        Self { progress_feed: broadcast::Sender::new(MAX_UNREAD) }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("ennead", env!("CARGO_PKG_VERSION"));
        // The newest version that opens with `initialize`, as servers on pipes do.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // There may be no call under way.
        let _none_listens = self.progress_feed.send(Arc::new(progress));
    }
}

/// Calls tools of a connection.
#[derive(Clone, Debug)]
pub struct Caller {
    name: String,
    peer: Peer<RoleClient>,
    progress_feed: ProgressFeed,
    health: Health,
    /// How long the server may say nothing of a call.
    silence: Duration,
}

impl Caller {
    /// Makes a caller for the connection of `client`. `health` receives when that takes nothing any more.
    pub(super) fn new(
        name: String,
        peer: Peer<RoleClient>,
        client: &Client,
        health: Health,
        silence: Duration,
    ) -> Self {
        Self { name, peer, progress_feed: client.progress_feed.clone(), health, silence }
    }

    /// Calls a tool by its name there. When `given_up` ends first, the server is notified, and the call
    /// has no result. A server that cannot be notified within half a second is ended. What the server
    /// says of the progress of the call goes to `progress`, and the limit on its silence begins anew.
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallError::Gone`] and [`CallError::Garbled`] only where
    /// [`Connection::wait_for_end`](super::Connection::wait_for_end) returns, too.
    pub async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        progress: Option<Arc<dyn ReportProgress>>,
        given_up: impl Future<Output = ()>,
    ) -> Option<Result<CallResult, CallError>> {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut progress_feed = self.progress_feed.subscribe();
        let mut garbled = self.health.garbled();
        let mut given_up = pin!(given_up);
        let options = PeerRequestOptions::no_options();
        let mut sending = pin!(self.peer.send_request_with_option(request, options));
        let sent = tokio::select! {
            biased;
            sent = &mut sending => sent,
            what = garbage(&mut garbled) => return Some(Err(self.garbled(&what))),
            () = &mut given_up => match timeout(GRACE, sending).await {
                Ok(Ok(handle)) => {
                    self.cancel(handle.id).await;
                    return None;
                }
                Ok(Err(_)) => return None,
                Err(_) => {
                    self.health.break_off();
                    return None;
                }
            },
        };
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Some(Err(self.failed(error))),
        };
        let (id, token) = (handle.id.clone(), handle.progress_token.clone());
        let without_answer = tokio::select! {
            biased;
            answer = handle.await_response() => return Some(self.read(answer)),
            what = garbage(&mut garbled) => return Some(Err(self.garbled(&what))),
            () = &mut given_up => None,
            () = silence(&mut progress_feed, &token, progress.as_deref(), self.silence) => {
                let (server, minutes) = (self.name.clone(), self.silence.as_secs() / 60);
                Some(Err(CallError::Silent { server, minutes }))
            }
        };
        self.cancel(id).await;
        without_answer
    }

    /// Notifies the server that a call was given up; breaks the connection if it does not listen.
    async fn cancel(&self, id: RequestId) {
        let why = Some("the call was given up".to_owned());
        let cancelled = CancelledNotificationParam::new(Some(id), why);
        match timeout(GRACE, self.peer.notify_cancelled(cancelled)).await {
            // A server that is gone has stopped, too.
            Ok(_received_or_gone) => {}
            Err(_) => self.health.break_off(),
        }
    }

    fn read(&self, answer: Result<ServerResult, ServiceError>) -> Result<CallResult, CallError> {
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(CallResult {
                content: result.content.into_iter().map(content).collect(),
                structured: result.structured_content,
                is_error: result.is_error.unwrap_or(false),
            }),
            Ok(ServerResult::InputRequiredResult(_)) => Err(CallError::Refused(format!(
                "MCP server `{}` wants input for the call, which cannot be given",
                self.name
            ))),
            Ok(_) => Err(CallError::Refused(format!(
                "MCP server `{}` gave an answer to another question",
                self.name
            ))),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn garbled(&self, what: &str) -> CallError {
        CallError::Garbled { server: self.name.clone(), what: what.to_owned() }
    }

    fn failed(&self, error: ServiceError) -> CallError {
        let server = self.name.clone();
        match error {
            ServiceError::TransportClosed => CallError::Gone { server },
            ServiceError::TransportSend(_) => {
                CallError::NotConnected { server, why: "it does not take the call".into() }
            }
            ServiceError::McpError(error) => CallError::Refused(error.message.into_owned()),
            other => CallError::Refused(other.to_string()),
        }
    }
}

/// What the server wrote in place of a message, once it did.
async fn garbage(garbled: &mut watch::Receiver<Option<Arc<str>>>) -> Arc<str> {
    match garbled.wait_for(Option::is_some).await.ok().and_then(|it| it.clone()) {
        Some(what) => what,
        // As long as there is a caller there is a sender.
        None => std::future::pending().await,
    }
}

/// Ends once nothing was progress_feed of the call for too long.
async fn silence(
    progress_feed: &mut broadcast::Receiver<Arc<ProgressNotificationParam>>,
    call: &ProgressToken,
    listener: Option<&dyn ReportProgress>,
    longest: Duration,
) {
    let mut limit = pin!(sleep(longest));
    loop {
        let of_call = tokio::select! {
            biased;
            reply = progress_feed.recv() => match reply {
                Ok(accepted) => {
                    let is_of_call = accepted.progress_token == *call;
                    if let Some(listener) = listener.filter(|_| is_of_call) {
                        listener.report(progress(&accepted));
                    }
                    is_of_call
                }
                Err(broadcast::error::RecvError::Lagged(_)) => true,
                // As long as there is a caller there is a sender.
                Err(broadcast::error::RecvError::Closed) => return limit.await,
            },
            () = &mut limit => return,
        };
        if of_call {
            limit.as_mut().reset(tokio::time::Instant::now() + longest);
        }
    }
}

#[cfg(test)]
mod tests;
