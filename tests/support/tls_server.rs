//! The simulated model behind TLS, on a real socket, with a certificate authority of its own.
//!
//! What it counts is what only a server can see: how many connections were made, and what was spoken
//! on them.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Response, Version},
};
use ennead::{
    runtime::step5_model_call::simulated::{Exchange, Playbook},
    world::simulated::Simulator,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256,
};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
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

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct TlsServer {
    address: SocketAddr,
    directory: TempDir,
    seen: Seen,
    serving: JoinHandle<()>,
}

impl TlsServer {
    /// Says "done" to everybody who trusts it. `protocols` are offered by ALPN; `names` are those that its
    /// certificate is for.
    pub(crate) async fn start(protocols: &[&str], names: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let tls = configuration(&directory, protocols, names);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen::default();
        let listener =
            Listener { listener, acceptor: TlsAcceptor::from(Arc::new(tls)), seen: seen.clone() };
        let playbook =
            Playbook::parse("[[rule]]\nname = \"done\"\nreply = [{ text = \"done\" }]\n", "test");
        let model = Simulator::new(playbook.unwrap());
        let app = Router::new().fallback(answer).with_state((model, seen.clone()));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, directory, seen, serving }
    }

    /// Where it is, as the model's base URL.
    pub(crate) fn base(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The PEM file of its authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
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
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
            match self.acceptor.accept(stream).await {
                Ok(stream) => {
                    self.seen.0.lock().unwrap().connections += 1;
                    return (stream, address);
                }
                Err(_) => self.seen.0.lock().unwrap().refused += 1,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

async fn answer(
    State((model, seen)): State<(Arc<Simulator>, Seen)>,
    request: Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    seen.0.lock().unwrap().requests.push(head.version);
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let path = head.uri.path();
    let script =
        model.answer(&Exchange { method: head.method.as_str(), path, headers: &[], body: &body });
    let mut response = Response::builder().status(script.status);
    for (name, value) in &script.headers {
        response = response.header(name, value);
    }
    // A piece is a packet: what is sent in one would not show that a stream is one.
    let pieces = script.pieces.into_iter().map(|it| Ok::<_, io::Error>(it.bytes));
    response.body(Body::from_stream(futures::stream::iter(pieces))).unwrap()
}
