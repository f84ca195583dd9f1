//! The simulated model after TLS, on a real socket, with a certificate authority of its own.
//!
//! What it counts is what only a server can see: how many connections were made, and what was spoken
//! on them. Its first connection may be a bad one.

use std::{
    future::pending,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State, connect_info::Connected},
    http::{Response, Version},
    serve::IncomingStream,
};
use ennead::{internal::Simulator, testing::Playbook};
use ennead_simulated::Exchange;
use futures::{FutureExt, StreamExt, stream};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256,
};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring::default_provider,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
    server::TlsStream,
};

/// What a server saw.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Traffic>>);

/// Connections whose handshake was finished, those whose was not, and the version of each request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) connections: usize,
    pub(crate) refused: usize,
    pub(crate) requests: Vec<Version>,
}

type Resume = Arc<Notify>;

/// What becomes of every request on the first connection. The connection itself stays open as long as
/// the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// It is answered.
    Answers,
    /// Nothing comes, ever.
    IsSilent,
    /// The answer stops in the middle until [`TlsServer::resume`].
    Stalls,
    /// The answer ends in the middle.
    Cuts,
}

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct TlsServer {
    address: SocketAddr,
    directory: TempDir,
    seen: Seen,
    resume: Resume,
    serving: JoinHandle<()>,
}

impl TlsServer {
    /// Says "done" to everybody who trusts it. `protocols` are offered by ALPN; `names` are those that its
    /// certificate is for.
    pub(crate) async fn start(protocols: &[&str], names: &[&str]) -> Self {
        Self::start_with(First::Answers, protocols, names).await
    }

    /// The same, after a first connection like this.
    pub(crate) async fn start_with(first: First, protocols: &[&str], names: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let tls = configuration(&directory, protocols, names);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, resume) = (Seen::default(), Resume::default());
        let listener =
            Listener { listener, acceptor: TlsAcceptor::from(Arc::new(tls)), seen: seen.clone() };
        let playbook =
            Playbook::parse("[[rule]]\nname = \"done\"\nreply = [{ text = \"done\" }]\n", "test");
        let model = Simulator::new(playbook.unwrap());
        let app =
            Router::new().fallback(answer).with_state((first, resume.clone(), model, seen.clone()));
        let app = app.into_make_service_with_connect_info::<Nth>();
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, directory, seen, resume, serving }
    }

    /// Where it is, as the model's base URL.
    pub(crate) fn base(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The PEM file of its authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    /// Goes on with the answers that stopped in the middle.
    pub(crate) fn resume(&self) {
        self.resume.notify_waiters();
    }

    /// What it saw up to now.
    pub(crate) fn traffic(&self) -> Traffic {
        self.seen.0.lock().unwrap().clone()
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves HTTP/2 and refuses the first requests without a look at them. Answers the others by the bytes of their body,
/// and those that they were announced with. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct RefusingServer {
    address: SocketAddr,
    directory: TempDir,
    serving: JoinHandle<()>,
}

impl RefusingServer {
    /// Refuses this number of requests over HTTP/2, then answers.
    pub(crate) async fn start(mut n_refused: usize, names: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let tls = TlsAcceptor::from(Arc::new(configuration(&directory, &["h2"], names)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let stream = tls.accept(listener.accept().await.unwrap().0).await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(request) = connection.accept().await {
                let (request, mut respond) = request.unwrap();
                if let Some(left) = n_refused.checked_sub(1) {
                    n_refused = left;
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                } else {
                    tokio::spawn(count(request, respond));
                }
            }
        });
        Self { address, directory, serving }
    }

    /// Where it is, as the model's base URL.
    pub(crate) fn base(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The PEM file of its authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }
}

impl Drop for RefusingServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn count(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<bytes::Bytes>,
) {
    let announced = request.headers().get("content-length");
    let announced = announced.map_or("none", |it| it.to_str().unwrap()).to_owned();
    let (mut body, mut n_bytes) = (request.into_body(), 0);
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        n_bytes += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    let mut answer = respond.send_response(http::Response::new(()), false).unwrap();
    answer.send_data(format!("{n_bytes} of {announced}").into(), true).unwrap();
}

fn configuration(directory: &TempDir, protocols: &[&str], names: &[&str]) -> ServerConfig {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, format!("who vouches for {names:?}"));
    let key = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let authority = CertifiedIssuer::self_signed(authority, key()).unwrap();
    std::fs::write(directory.path().join("authority.pem"), authority.pem()).unwrap();
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let own = key();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&own, &authority).unwrap();
    let own = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], own)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    tls
}

/// Accepts connections and shakes hands.
struct Listener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    seen: Seen,
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = usize;

    async fn accept(&mut self) -> (Self::Io, usize) {
        loop {
            let (stream, _) = axum::serve::Listener::accept(&mut self.listener).await;
            match self.acceptor.accept(stream).await {
                Ok(stream) => {
                    let mut seen = self.seen.0.lock().unwrap();
                    seen.connections += 1;
                    return (stream, seen.connections);
                }
                Err(_) => self.seen.0.lock().unwrap().refused += 1,
            }
        }
    }

    fn local_addr(&self) -> io::Result<usize> {
        Ok(0)
    }
}

/// The number of a connection, from 1.
#[derive(Clone, Copy, Debug)]
struct Nth(usize);

impl Connected<IncomingStream<'_, Listener>> for Nth {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        Self(*stream.remote_addr())
    }
}

async fn answer(
    State((first, resume, model, seen)): State<(First, Resume, Arc<Simulator>, Seen)>,
    ConnectInfo(Nth(nth)): ConnectInfo<Nth>,
    request: Request,
) -> Response<Body> {
    let first = if nth == 1 { first } else { First::Answers };
    let (head, body) = request.into_parts();
    seen.0.lock().unwrap().requests.push(head.version);
    if first == First::IsSilent {
        return pending().await;
    }
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let path = head.uri.path();
    let script =
        model.answer(&Exchange { method: head.method.as_str(), path, headers: &[], body: &body });
    let mut response = Response::builder().status(script.status);
    for (name, value) in &script.headers {
        response = response.header(name, value);
    }
    // A piece is a packet: what is sent in one would not show that a stream is one.
    let mut begun: Vec<_> = script.pieces.into_iter().map(|it| Ok(it.bytes)).collect();
    let middle = if first == First::Answers { begun.len() } else { begun.len() / 2 };
    let rest = begun.split_off(middle);
    let begun = stream::iter(begun);
    let body = match first {
        First::Stalls => {
            // From now on, not from when the middle is reached.
            let resumed = resume.notified_owned();
            let rest = resumed.map(|()| stream::iter(rest)).flatten_stream();
            Body::from_stream(begun.chain(rest))
        }
        First::Cuts => {
            let cut = io::Error::from(io::ErrorKind::ConnectionReset);
            Body::from_stream(begun.chain(stream::iter([Err(cut)])))
        }
        _ => Body::from_stream(begun),
    };
    response.body(body).unwrap()
}
