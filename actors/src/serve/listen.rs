//! Accepts connections, with limits on what each may send and on how many there are.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
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

use super::{ServeError, Server, slots::Slots};

/// Number of connections that are open at once at the most.
const MAX_CONNECTIONS: usize = 4096;

/// How long the head of a request may take, a handshake before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the head of a request.
const MAX_HEAD: usize = 32 * 1024;

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
        let slots = Slots::new(MAX_CONNECTIONS);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.0.tasks.stopped().cancelled() => return Ok(()),
                accepted = listener.accept() => accepted,
            };
            match (accepted, slots.take()) {
                (Ok((stream, peer)), Some(slot)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "small packets may be joined");
                    }
                    let (router, acceptor) = (router.clone(), acceptor.clone());
                    self.0.tasks.spawn(async move {
                        serve(stream, peer, acceptor, router).await;
                        drop(slot);
                    });
                }
                // One too many is closed: the client asks again.
                (Ok(_), None) => self.0.metrics.refused("connection_limit"),
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

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
) -> Result<(), io::Error> {
    let service = TowerToHyperService::new(router);
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    connection.await.map_err(io::Error::other)
}
