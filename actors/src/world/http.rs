//! Sends requests to model servers over HTTP with reqwest.
//!
//! One client per scheduler thread: its connections are tasks of that thread, so that a chunk that
//! arrives wakes nobody elsewhere. Connections are pooled, HTTP/2 is used where a server offers it,
//! TLS is rustls with ring, proxies come from the environment; loopback addresses never go through
//! one. Who a server is, is checked by what the system trusts and what the user names. Of all waiting only that for a connection is done here; the rest is watched around every
//! transport alike, by the model call.

mod trust;

use std::{
    collections::BTreeMap,
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::{
    ports::{
        BoxFuture, Certificates, ResponseBody, Transport, TransportError, WireRequest, WireResponse,
    },
    step1_settings_resolution::HttpSettings,
};
use thiserror::Error;

pub use self::trust::TrustError;

/// How long a model server is waited for (MDL-12). All on by default; a session's settings may say
/// otherwise under `ennead.http`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Until the connection stands; 10 s.
    pub connect: Duration,
    /// Until a streamed answer begins, connecting included; 300 s. An answer in one piece, of which
    /// nothing comes before it is whole, may take 600 s to begin whatever is said here.
    pub first_byte: Duration,
    /// Between two pieces of an answer; 300 s (compat 9.4).
    pub idle: Duration,
    /// Between two pieces of a stream that say something, pings and comments not counted; 600 s, as
    /// models may think for minutes behind pings.
    pub event_idle: Duration,
    /// Until the answer is whole; an hour, the time that 128,000 tokens of output take at the rate
    /// which providers' SDKs reckon with.
    pub total: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: CONNECT,
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            event_idle: Duration::from_secs(600),
            total: Duration::from_secs(3_600),
        }
    }
}

impl HttpLimits {
    /// These, with what the settings of a session say in their place.
    #[must_use]
    pub fn with(self, said: &HttpSettings) -> Self {
        let or = |said: Option<NonZeroU64>, limit| {
            said.map_or(limit, |it| Duration::from_millis(it.get()).min(LONGEST))
        };
        Self {
            connect: or(said.connect_ms, self.connect),
            first_byte: or(said.first_byte_ms, self.first_byte),
            idle: or(said.idle_ms, self.idle),
            event_idle: or(said.event_idle_ms, self.event_idle),
            total: or(said.total_ms, self.total),
        }
    }
}

const CONNECT: Duration = Duration::from_secs(10);

/// No wait is longer, whatever is said: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Clients that are kept, each with its pool. reqwest fixes the time for connecting per client, and
/// sessions hardly ever differ in it.
const MAX_CLIENTS: usize = 8;

/// reqwest behind the port.
#[derive(Debug, Default)]
pub struct Http {
    /// Made when first needed, since loading certificates takes milliseconds.
    clients: Mutex<BTreeMap<Kind, reqwest::Client>>,
}

/// What requests have in common that go through one client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// For loopback addresses: no proxy.
    is_near: bool,
    /// Time for connecting.
    connect: Duration,
    /// Who vouches for servers. `None`: nobody, as nothing is encrypted.
    trust: Option<Certificates>,
}

impl Kind {
    fn of(url: &reqwest::Url, request: &WireRequest) -> Self {
        let is_near = is_loopback(url);
        // Far from here even what is not encrypted may go to a proxy over TLS.
        let trust =
            (!is_near || url.scheme() == "https").then(|| trust::resolved(&request.certificates));
        Self { is_near, connect: request.connect_timeout, trust }
    }
}

/// The client cannot be made.
#[derive(Debug, Error)]
#[error("cannot set up the HTTP client")]
#[non_exhaustive]
pub enum HttpSetupError {
    /// TLS cannot be used.
    Tls(#[source] rustls::Error),
    /// It cannot be said whose certificates are trusted.
    Trust(#[source] TrustError),
    /// The client refuses its settings.
    Client(#[source] reqwest::Error),
}

impl Http {
    /// With a pool of its own.
    ///
    /// # Errors
    ///
    /// [`HttpSetupError`] when no client can be made.
    pub fn new() -> Result<Self, HttpSetupError> {
        let near = Kind { is_near: true, connect: CONNECT, trust: None };
        let client = client(&near)?;
        Ok(Self { clients: Mutex::new(BTreeMap::from([(near, client)])) })
    }

    fn client(
        &self,
        url: &reqwest::Url,
        request: &WireRequest,
    ) -> Result<reqwest::Client, TransportError> {
        let kind = Kind::of(url, request);
        // Only whole clients are put in, so a panic elsewhere spoils nothing.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = client(&kind).map_err(|error| TransportError::Tls {
            url: without_password(url.as_str()),
            why: in_words(&error),
        })?;
        if MAX_CLIENTS <= clients.len() {
            // Exchanges under way keep their connections.
            clients.clear();
        }
        clients.insert(kind, client.clone());
        Ok(client)
    }
}

fn client(kind: &Kind) -> Result<reqwest::Client, HttpSetupError> {
    // ring is named here and not installed for the process: an embedder may have chosen another.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(HttpSetupError::Tls)?;
    let tls = match &kind.trust {
        None => tls.with_root_certificates(rustls::RootCertStore::empty()),
        Some(files) => {
            let verifier = trust::verifier(files, provider).map_err(HttpSetupError::Trust)?;
            tls.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut tls = tls.with_no_client_auth();
    // reqwest asks for neither when it is given a configuration.
    tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(kind.connect)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if kind.is_near { builder.no_proxy() } else { builder };
    builder.build().map_err(HttpSetupError::Client)
}

fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

impl Transport for Http {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let prepared = self.prepare(&request);
        Box::pin(async move {
            let response = prepared?.send().await.map_err(|it| failed(&request.url, &it))?;
            let headers = response
                .headers()
                .iter()
                .map(|(name, value)| {
                    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into())
                })
                .collect();
            Ok(WireResponse {
                status: response.status().as_u16(),
                headers,
                body: Box::new(Body { response, url: request.url }),
            })
        })
    }
}

impl Http {
    fn prepare(&self, request: &WireRequest) -> Result<reqwest::RequestBuilder, TransportError> {
        let refused = |it| TransportError::Unsendable { why: format!("the address is none: {it}") };
        let url = reqwest::Url::parse(&request.url).map_err(refused)?;
        let mut builder = self.client(&url, request)?.post(url);
        for (name, value) in request.headers.iter() {
            builder = builder.header(name, value);
        }
        Ok(builder.body(request.body.clone()))
    }
}

#[derive(Debug)]
struct Body {
    response: reqwest::Response,
    url: Arc<str>,
}

impl ResponseBody for Body {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async { self.response.chunk().await.map_err(|it| failed(&self.url, &it)) })
    }
}

fn failed(url: &Arc<str>, error: &reqwest::Error) -> TransportError {
    let (url, why) = (without_password(url), in_words(error));
    if let Some(refusal) = trust::refusal(error).filter(|_| error.is_connect()) {
        let advice = trust::advice(refusal).map_or_else(String::new, |it| format!("; {it}"));
        TransportError::Tls { url, why: format!("{refusal}{advice}") }
    } else if error.is_builder() {
        TransportError::Unsendable { why }
    } else if error.is_connect() {
        TransportError::Connect { url, why }
    } else {
        TransportError::Broken { why }
    }
}

/// The address as it may be shown.
fn without_password(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return url.to_owned() };
    // Addresses that cannot have a password have none.
    let _cannot = url.set_username("").and_then(|()| url.set_password(None));
    url.into()
}

/// The error and its causes; the innermost usually says what a person needs.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
