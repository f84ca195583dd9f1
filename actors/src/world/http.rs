//! Sends requests to model servers over HTTP with reqwest.
//!
//! One client per scheduler thread: its connections are tasks of that thread, so that a chunk that
//! arrives wakes nobody elsewhere. Connections are pooled, HTTP/2 is used where a server offers it,
//! TLS is rustls with ring, proxies come from the environment; loopback addresses never go through
//! one.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::ports::{
    BoxFuture, ResponseBody, Transport, TransportError, WireRequest, WireResponse,
};
use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;

/// Limits on one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Until the connection stands; 10 s.
    pub connect: Duration,
    /// Between two reads, the first byte included; 300 s.
    pub idle: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(300) }
    }
}

/// reqwest behind the port.
#[derive(Debug)]
pub struct Http {
    /// For loopback addresses: no proxy, and no certificates to load.
    near: reqwest::Client,
    /// For everything else; made when first needed, since loading certificates takes milliseconds.
    far: OnceLock<Result<reqwest::Client, TransportError>>,
    limits: HttpLimits,
}

/// The client cannot be made.
#[derive(Debug, Error)]
#[error("cannot set up the HTTP client")]
#[non_exhaustive]
pub enum HttpSetupError {
    /// TLS cannot be used.
    Tls(#[source] rustls::Error),
    /// The client refuses its settings.
    Client(#[source] reqwest::Error),
}

impl Http {
    /// A client with its own pool.
    ///
    /// # Errors
    ///
    /// [`HttpSetupError`] when the client cannot be made.
    pub fn new(limits: HttpLimits) -> Result<Self, HttpSetupError> {
        let no_roots = rustls::RootCertStore::empty();
        let tls = tls_versions()?.with_root_certificates(no_roots).with_no_client_auth();
        let near = builder(limits, tls).no_proxy().build().map_err(HttpSetupError::Client)?;
        Ok(Self { near, far: OnceLock::new(), limits })
    }

    fn client(&self, url: &reqwest::Url) -> Result<reqwest::Client, TransportError> {
        if is_loopback(url) {
            return Ok(self.near.clone());
        }
        self.far
            .get_or_init(|| {
                far_client(self.limits).map_err(|error| TransportError::Tls {
                    url: url.to_string(),
                    why: in_words(&error),
                })
            })
            .clone()
    }
}

fn far_client(limits: HttpLimits) -> Result<reqwest::Client, HttpSetupError> {
    let tls = tls_versions()?
        .with_platform_verifier()
        .map_err(HttpSetupError::Tls)?
        .with_no_client_auth();
    builder(limits, tls).build().map_err(HttpSetupError::Client)
}

/// ring is named here and not installed for the process: an embedder may have chosen another.
fn tls_versions()
-> Result<rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>, HttpSetupError> {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(HttpSetupError::Tls)
}

fn builder(limits: HttpLimits, tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(limits.connect)
        .read_timeout(limits.idle)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
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
        let limits = self.limits;
        Box::pin(async move {
            let response =
                prepared?.send().await.map_err(|it| failed(&request.url, limits, &it))?;
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
                body: Box::new(Body { response, url: request.url, limits }),
            })
        })
    }
}

impl Http {
    fn prepare(&self, request: &WireRequest) -> Result<reqwest::RequestBuilder, TransportError> {
        let refused = |why: String| TransportError::Connect { url: request.url.to_string(), why };
        let url = reqwest::Url::parse(&request.url).map_err(|it| refused(it.to_string()))?;
        let mut builder = self.client(&url)?.post(url);
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
    limits: HttpLimits,
}

impl ResponseBody for Body {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async {
            self.response.chunk().await.map_err(|it| failed(&self.url, self.limits, &it))
        })
    }
}

fn failed(url: &Arc<str>, limits: HttpLimits, error: &reqwest::Error) -> TransportError {
    let (url, why) = (url.to_string(), in_words(error));
    if error.is_connect() && why.contains("certificate") {
        TransportError::Tls { url, why }
    } else if error.is_connect() || error.is_builder() {
        TransportError::Connect { url, why }
    } else if error.is_timeout() {
        TransportError::Idle { ms: u64::try_from(limits.idle.as_millis()).unwrap_or(u64::MAX) }
    } else {
        TransportError::Broken { why }
    }
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
