//! Accepts connections, with limits on what each may send and on how many there are.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{
    ServeError, Server,
    problem::{Code, Problem},
    slots::Slots,
};

/// Connections in addition to those that there may be. They are answered, mostly by a refusal, and closed.
const MAX_SPARE: usize = 64;

/// What is answered on these, too: by it a server that is full is seen to live.
const SPARE_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// How long the head of a request may take, a handshake before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a request that are read before its head is whole. A head that is whole is measured by itself.
const MAX_HEAD_BUFFER: usize = 32 * 1024;

/// Headers of a request.
const MAX_HEADERS: usize = 64;

/// How long accepting pauses when the process has no more files to open.
const PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Serves the connections of a listener until the server ends, over TLS if that is configured. `router`
    /// is [`Server::router`], or one that it was merged into.
    ///
    /// # Errors
    ///
    /// [`ServeError::NoTls`] for an address that is not loopback without TLS; [`ServeError::NoTokens`] when
    /// every request would be refused.
    pub async fn listen(
        &self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        router: Router,
    ) -> Result<(), ServeError> {
        let state = |cause| ServeError::State { path: self.0.options.state.clone(), cause };
        let address = listener.local_addr().map_err(state)?;
        if !address.ip().is_loopback() && tls.is_none() {
            return Err(ServeError::NoTls { address });
        }
        if self.0.tokens.list()?.is_empty() {
            return Err(ServeError::NoTokens { path: self.0.tokens.path().to_owned() });
        }
        let acceptor = tls.map(TlsAcceptor::from);
        let slots = Slots::new(self.0.options.max_connections);
        let spare = Slots::new(MAX_SPARE);
        let refusing =
            router.clone().layer(middleware::from_fn_with_state(self.clone(), refuse_most));
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.0.tasks.stopped().cancelled() => return Ok(()),
                accepted = listener.accept() => accepted,
            };
            let (slot, is_spare) = match slots.take() {
                Some(slot) => (Some(slot), false),
                None => (spare.take(), true),
            };
            match (accepted, slot) {
                (Ok((stream, peer)), Some(slot)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "small packets may be joined");
                    }
                    let router = if is_spare { refusing.clone() } else { router.clone() };
                    let acceptor = acceptor.clone();
                    self.0.tasks.spawn(async move {
                        serve(stream, peer, acceptor, router).await;
                        drop(slot);
                    });
                }
                // Where even refusals are too many, it is closed: the client asks again.
                (Ok(_), None) => self.0.metrics.refused(Code::Connections.code()),
                (Err(error), _) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn serve(
    stream: tokio::net::TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
) {
    let served = match acceptor {
        None => exchange(stream, router).await,
        Some(acceptor) => match tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => exchange(stream, router).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        },
    };
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection ended");
    }
}

/// Answers on a spare connection, and has it closed.
async fn refuse_most(State(server): State<Server>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let mut response = if SPARE_PATHS.iter().any(|it| path.ends_with(it)) {
        next.run(request).await
    } else {
        server.0.metrics.refused(Code::Connections.code());
        let detail = "as many connections are open as there may be";
        Problem::new(Code::Connections, detail).after(Duration::from_secs(1)).into_response()
    };
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
) -> Result<(), io::Error> {
    let service = TowerToHyperService::new(router);
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BUFFER)
        .max_headers(MAX_HEADERS);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    connection.await.map_err(io::Error::other)
}
