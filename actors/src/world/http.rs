//! Sends requests to model servers and MCP servers over HTTP with reqwest.
//!
//! One client per scheduler thread: its connections are tasks of that thread, so that a chunk that
//! arrives wakes no other thread. Connections are pooled, HTTP/2 is used where a server offers it,
//! TLS is rustls with ring, proxies come from the environment; loopback addresses never go through
//! one. Who a server is, is checked by what the system trusts and what the user names. Of all waiting
//! only that for a connection is done here; the rest is watched around every transport alike, by the
//! model call.

mod pools;
mod sending;
mod trust;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use ennead_runtime::ports::{BoxFuture, Transport, TransportError, WireRequest, WireResponse};
#[cfg(feature = "web")]
use ennead_runtime::step1_settings_resolution::Certificates;
use futures::Stream;
use http::{HeaderMap, HeaderName, HeaderValue};

pub use self::pools::HttpSetupError;
use self::pools::{Pool, Pools};
use super::http_limits::CONNECT;
use crate::world::environment::Environment;

/// reqwest behind the port.
#[derive(Debug)]
pub struct Http {
    pools: Pools,
}

impl Http {
    /// Makes a client with a pool of its own. Its proxy and certificates are as the environment of the process says.
    ///
    /// # Errors
    ///
    /// [`HttpSetupError`] when no client can be made.
    pub fn new() -> Result<Self, HttpSetupError> {
        Self::with_environment(&Environment::of_process())
    }

    /// Makes a client with a pool of its own. Proxy and certificates are as this environment says. The library that
    /// reads the certificates of the system looks at `SSL_CERT_FILE` and `SSL_CERT_DIR` of the process all the same.
    ///
    /// # Errors
    ///
    /// [`HttpSetupError`] when no client can be made.
    pub(crate) fn with_environment(environment: &Environment) -> Result<Self, HttpSetupError> {
        Ok(Self { pools: Pools::with_near(CONNECT, environment)? })
    }

    /// Makes a client that is ready for an address: its certificates are read now, and not while others wait for the
    /// thread that sends. An address that cannot be read is reported when something is sent there.
    ///
    /// # Errors
    ///
    /// [`HttpSetupError`] when no client can be made.
    pub(crate) fn for_address(
        environment: &Environment,
        url: &str,
    ) -> Result<Self, HttpSetupError> {
        let http = Self::with_environment(environment)?;
        let request = WireRequest::new(url, [], Bytes::new(), CONNECT);
        if let Ok(url) = http.pools.address(&request.url) {
            http.pools.get(&url, &request)?;
        }
        Ok(http)
    }

    fn prepare(
        &self,
        request: &WireRequest,
    ) -> Result<(reqwest::Request, Exchange), TransportError> {
        let url = self.pools.address(&request.url)?;
        let pool = self.pools.get(&url, request).map_err(|error| TransportError::Tls {
            url: without_secrets(url.as_str()),
            why: in_words(&error),
        })?;
        let (method, headers) = (request.method.clone(), headers(&request.headers)?);
        let head = pool.client.request(method, url).headers(headers).build();
        let head = head.map_err(|it| failed(&request.url, it))?;
        let is_shared = pool.may_share_connections();
        let exchange =
            Exchange { pools: self.pools.clone(), pool, is_shared, is_unfinished: false };
        Ok((head, exchange))
    }
}

impl Transport for Http {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let prepared = self.prepare(&request);
        Box::pin(async move {
            let (head, mut exchange) = prepared?;
            exchange.is_unfinished = true;
            let sent = sending::send(&exchange.pool.client, head, &request.body).await;
            // Where no connection was made there is none to give up.
            exchange.is_unfinished = sent.as_ref().is_err_and(|it| !it.is_connect());
            let mut response = sent.map_err(|it| failed(&request.url, it))?;
            exchange.is_shared = response.version() == reqwest::Version::HTTP_2;
            let headers = std::mem::take(response.headers_mut());
            let status = response.status().as_u16();
            let chunks = Box::pin(response.bytes_stream());
            let body = Box::pin(BodyStream { chunks, exchange, url: request.url });
            Ok(WireResponse::new(status, headers, body))
        })
    }
}

/// Returns what secures connections to servers that a model names. Reads files of certificates.
///
/// # Errors
///
/// [`HttpSetupError`] when the trusted certificates cannot be found out.
#[cfg(feature = "web")]
pub(crate) fn page_tls(
    environment: &Environment,
    certificates: &Certificates,
) -> Result<rustls::ClientConfig, HttpSetupError> {
    pools::secured(&trust::resolved(certificates, &trust::named(environment)))
}

fn headers(list: &[(String, String)]) -> Result<HeaderMap, TransportError> {
    let unsendable = |why: String| TransportError::Unsendable { why };
    let mut headers = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|error| unsendable(format!("the header name {name:?}: {error}")))?;
        // What it holds may be a secret.
        let value = HeaderValue::from_str(value)
            .map_err(|error| unsendable(format!("the header {name}: {error}")))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Gives the connections up when it is dropped unfinished. That may be for a user who interrupts, too:
/// it cannot be distinguished here, and costs a connection.
#[derive(Debug)]
struct Exchange {
    pools: Pools,
    pool: Pool,
    /// Whether others may use the connection. One that is not used by others is closed with the
    /// exchange anyway.
    is_shared: bool,
    /// Whether something is waited for, or has failed. Who has read all that it wants waits for nothing,
    /// even if it leaves the end of the body unread.
    is_unfinished: bool,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.is_shared && self.is_unfinished {
            self.pools.give_up(&self.pool);
        }
    }
}

/// The rest of an answer.
struct BodyStream<S> {
    chunks: Pin<Box<S>>,
    exchange: Exchange,
    url: Arc<str>,
}

impl<S: Stream<Item = reqwest::Result<Bytes>>> Stream for BodyStream<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.exchange.is_unfinished = true;
        let chunk = ready!(self.chunks.as_mut().poll_next(cx));
        self.exchange.is_unfinished = matches!(chunk, Some(Err(_)));
        Poll::Ready(chunk.map(|it| it.map_err(|it| failed(&self.url, it))))
    }
}

fn failed(url: &Arc<str>, error: reqwest::Error) -> TransportError {
    // What is in an address may be a secret.
    let error = error.without_url();
    let (url, why) = (without_secrets(url), in_words(&error));
    if let Some(refusal) = trust::refusal(&error).filter(|_| error.is_connect()) {
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

/// The address as it may be shown: without user, password, query and fragment.
fn without_secrets(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return url.to_owned() };
    // Addresses that cannot have a password have none.
    let _cannot = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// The error and its causes; the innermost usually says what a person needs.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
