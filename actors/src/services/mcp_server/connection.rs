//! The leaf below the actor of a server: makes a connection, and carries calls over it.
//!
//! It is what waits: for the pause, the start, the answers and the end.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    mcp::{restart::FIRST_PAUSES, result::CallResult, spec::Listed},
    ports::WorkGuard,
};
use ennead_tools::mcp::{CallError, Caller, ConnectError, Connection, connect};
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use ractor::ActorRef;
use tokio::sync::{mpsc, oneshot};

use super::{McpMsg, Order, ServerFailure, server::SharedServer};
use crate::{
    groundwork::mailbox::{Admitted, Slot},
    world::clock::Timer,
};

/// What cannot be killed is not waited for any longer.
const LAST_LIMIT: Duration = Duration::from_secs(2);

/// Why a connection ends that nobody uses.
const NOT_NEEDED: &str = "it is not needed any more";

/// What a connection is made with.
pub(super) struct ConnectionAttempt {
    pub(super) server: Arc<SharedServer>,
    pub(super) timer: Arc<dyn Timer>,
    /// Time to wait before the attempt begins.
    pub(super) pause: Duration,
    /// Closed when it is not wanted any more.
    pub(super) stop: oneshot::Receiver<()>,
    pub(super) back: ActorRef<McpMsg>,
}

/// Makes a connection and serves it until it ends; ends once nothing of the server is left.
pub(super) async fn run(attempt: ConnectionAttempt) {
    let ConnectionAttempt { server, timer, pause, stop, back } = attempt;
    let (kept, gone) = oneshot::channel::<()>();
    let guard = WorkGuard::new(kept);
    let limit = server.start_limit();
    let connecting = async {
        if !pause.is_zero() {
            wait(&server, &*timer, pause).await;
        }
        match tokio::time::timeout(limit, first_attempts(&server, &*timer, &guard)).await {
            Err(_) => {
                Err(ServerFailure::new(format!("it was not ready within {} ms", limit.as_millis())))
            }
            Ok(connected) => connected.map_err(|error| ServerFailure {
                why: error.to_string().into(),
                needs_auth: matches!(error, ConnectError::NeedsAuth { .. }),
            }),
        }
    };
    let connected = tokio::select! {
        biased;
        _ = stop => Err(ServerFailure::new(NOT_NEEDED)),
        connected = connecting => connected,
    };
    drop(guard);
    match connected {
        Err(failure) => {
            // With the actor this leaf goes, too.
            let _gone = back.cast(McpMsg::Ended(failure));
        }
        Ok((connection, tools)) => {
            let (orders, incoming) = mpsc::unbounded_channel();
            if back.cast(McpMsg::Connected { tools: tools.into(), orders }).is_ok() {
                serve(connection, incoming, &back).await;
            }
        }
    }
    // Nothing is ever sent: the end of it is the message.
    let _over = tokio::time::timeout(LAST_LIMIT, gone).await;
}

/// Connects to the server; where it is reached over the network, again after failures that may pass.
async fn first_attempts(
    server: &SharedServer,
    timer: &dyn Timer,
    guard: &WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    let http = server.transport().await?;
    for pause in FIRST_PAUSES {
        server.is_tried();
        let connected = connect(server.launch(), http.clone(), guard.clone()).await;
        let Err(ConnectError::Http { is_transient: true, .. }) = connected else {
            return connected;
        };
        wait(server, timer, pause).await;
    }
    server.is_tried();
    connect(server.launch(), http, guard.clone()).await
}

/// Waits for a pause to be over, or until somebody wants the server at once.
async fn wait(server: &SharedServer, timer: &dyn Timer, pause: Duration) {
    tokio::select! {
        () = timer.sleep(pause) => {}
        () = server.hurried() => {}
    }
}

/// Carries calls until the server ends, or until no sender is left.
async fn serve(
    mut connection: Connection,
    mut incoming: mpsc::UnboundedReceiver<Admitted<Box<Order>>>,
    back: &ActorRef<McpMsg>,
) {
    let caller = connection.caller();
    let mut running = FuturesUnordered::new();
    let mut unanswered = Vec::new();
    let why = loop {
        tokio::select! {
            biased;
            Some(left) = running.next(), if !running.is_empty() => unanswered.extend(left),
            why = connection.wait_for_end() => break why,
            order = incoming.recv() => match order {
                Some(order) => running.push(carry_out(caller.clone(), order)),
                None => break NOT_NEEDED.to_owned(),
            },
        }
    };
    // What was answered at the very end counts.
    while let Some(Some(left)) = running.next().now_or_never() {
        unanswered.extend(left);
    }
    // This is sent before the calls under way are answered, so that the one that goes on to call
    // again comes after it. What has not come to the server waits for the next one.
    let (why, needs_auth) = (why.into(), connection.needs_auth());
    let _gone = back.cast(McpMsg::Ended(ServerFailure { why, needs_auth }));
    while let Ok(order) = incoming.try_recv() {
        let _gone = back.cast(McpMsg::Call(order));
    }
    // A call whose reply is dropped has lost its server.
    drop(running);
    for Unanswered { reply, error, .. } in unanswered {
        let _gone = reply.send(Err(error));
    }
    connection.close().await;
}

/// A call that failed with its connection. It is answered once the actor knows of that.
struct Unanswered {
    reply: oneshot::Sender<Result<CallResult, CallError>>,
    error: CallError,
    _slot: Slot,
}

/// One call, its slot included.
async fn carry_out(caller: Caller, order: Admitted<Box<Order>>) -> Option<Unanswered> {
    let Admitted { work, slot } = order;
    let Order { tool, arguments, progress, mut reply } = *work;
    if reply.is_closed() {
        return None;
    }
    match caller.call(tool, arguments, progress, reply.closed()).await? {
        Err(error @ (CallError::Gone { .. } | CallError::Garbled { .. })) => {
            Some(Unanswered { reply, error, _slot: slot })
        }
        answer => {
            // The one that waited may have gone just now.
            let _gone = reply.send(answer);
            None
        }
    }
}
