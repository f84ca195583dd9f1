//! The simulated model as a server: the Messages API over HTTP, with faults on a real socket.
//!
//! Only the command and the tests need it; an embedder without the feature `cli`
//! gets the same answers from `world::simulated`, and no HTTP server.

mod caller;
mod socket;

#[cfg(test)]
mod tests;

use std::{future::Future, io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{HeaderName, HeaderValue, Response, StatusCode},
};
use bytes::Bytes;
use ennead::internal::Simulator;
use ennead_simulated::{End, Exchange, MAX_REQUEST, Piece, Script};
use futures::stream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::socket::{Fate, Listener};

#[derive(Clone, Debug)]
struct SimulatedServer {
    simulator: Arc<Simulator>,
    shutdown: CancellationToken,
}

/// Serves until `shutdown` is cancelled; then open answers are broken off and the future ends.
///
/// Bind the listener to port 0 of a loopback address and ask it for its address before it is
/// given away. The future does nothing until it is awaited.
///
/// # Errors
///
/// What the listener says. Failing to accept one connection is waited out.
pub async fn serve(
    simulator: Arc<Simulator>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let server = SimulatedServer { simulator, shutdown: shutdown.clone() };
    let app = Router::new()
        .fallback(answer)
        .with_state(server)
        .into_make_service_with_connect_info::<Fate>();
    axum::serve(Listener(listener), app).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

async fn answer(
    State(server): State<SimulatedServer>,
    ConnectInfo(fate): ConnectInfo<Fate>,
    request: Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    if let Some(header) = caller::foreign(&head.uri, &head.headers) {
        let why = format!("the header {header} names a foreign site");
        let script = server.simulator.playbook().refusal(403, &why);
        return response(server, fate, script);
    }
    let script = match to_bytes(body, MAX_REQUEST).await {
        Ok(body) => {
            let headers: Vec<(String, String)> = head
                .headers
                .iter()
                .map(|(name, value)| {
                    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into())
                })
                .collect();
            server.simulator.answer(&Exchange {
                method: head.method.as_str(),
                path: head.uri.path(),
                headers: &headers,
                body: &body,
            })
        }
        Err(_) => server.simulator.playbook().refusal(413, "the body is too long or broke off"),
    };
    // Cut short by the end of the server, the answer is sent at once.
    let _ = server.wait(script.delay_ms).await;
    if script.before_head {
        return no_answer(&server, &fate, script.end).await;
    }
    response(server, fate, script)
}

/// Ends the connection before the head. What is returned is never sent.
async fn no_answer(server: &SimulatedServer, fate: &Fate, end: End) -> Response<Body> {
    match end {
        End::Closed | End::Dropped => fate.mute(),
        End::Reset => {
            fate.reset();
            fate.mute();
        }
        End::Stall => {
            let _ = server.unless_shut_down(std::future::pending::<()>()).await;
            fate.mute();
        }
    }
    let mut response = Response::new(Body::empty());
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(axum::http::header::CONNECTION, close);
    response
}

fn response(server: SimulatedServer, fate: Fate, script: Script) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() =
        StatusCode::from_u16(script.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &script.headers {
        // The engine lets only good headers through.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    *response.body_mut() = match (script.pieces.as_slice(), script.end) {
        ([], End::Closed) => Body::empty(),
        ([Piece { delay_ms: 0, bytes }], End::Closed) => Body::from(bytes.clone()),
        _ => {
            let sender =
                Sender { server, fate, pieces: script.pieces.into_iter(), end: script.end };
            Body::from_stream(stream::unfold(Some(sender), |sender| async {
                let mut sender = sender?;
                match sender.next().await {
                    Ok(Some(bytes)) => Some((Ok(bytes), Some(sender))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error), None)),
                }
            }))
        }
    };
    response
}

/// Sends a body piece by piece.
struct Sender {
    server: SimulatedServer,
    fate: Fate,
    pieces: std::vec::IntoIter<Piece>,
    end: End,
}

impl Sender {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        // While the body has nothing, the connection writes out what it holds: every piece is a
        // packet of its own, and none is lost in a reset that follows.
        tokio::task::yield_now().await;
        for piece in self.pieces.by_ref() {
            self.server.wait(piece.delay_ms).await?;
            if !piece.bytes.is_empty() {
                return Ok(Some(piece.bytes));
            }
        }
        match self.end {
            End::Closed => Ok(None),
            // A body that fails closes the connection in good order.
            End::Dropped => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            End::Reset => {
                self.fate.reset();
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            }
            End::Stall => self.server.unless_shut_down(std::future::pending()).await,
        }
    }
}

impl SimulatedServer {
    async fn wait(&self, ms: u64) -> io::Result<()> {
        // A timer of no length still takes a millisecond.
        if ms == 0 {
            return Ok(());
        }
        self.unless_shut_down(tokio::time::sleep(Duration::from_millis(ms))).await
    }

    async fn unless_shut_down<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        tokio::select! {
            done = future => Ok(done),
            () = self.shutdown.cancelled() => Err(io::Error::other("the server is shut down")),
        }
    }
}
