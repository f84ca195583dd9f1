//! The HTTP clients, each with its pool of connections, and which of them are given up.
//!
//! This module holds what exchanges share, and nothing else. A connection of HTTP/2 carries many
//! exchanges, and giving one of them up closes it for no other: one that has fallen silent would be
//! taken again for each retry. So a client is forgotten by which an exchange went that did not end.
//! Exchanges under way keep their connections.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ennead_runtime::{
    ports::{TransportError, WireRequest},
    step1_settings_resolution::Certificates,
};
use thiserror::Error;

use super::trust;
use crate::world::environment::Environment;
use ennead_tools::locked::Locked as _;

/// Clients that are kept. reqwest fixes the time for connecting per client, and sessions hardly ever
/// differ in it.
const MAX_CLIENTS: usize = 8;

/// Addresses that are kept. There are one or two per provider.
const MAX_ADDRESSES: usize = 16;

/// How long a connection of HTTP/2 with an exchange on it may be silent before the other side is asked
/// whether it is still there, and how long that answer may take. The numbers of Kubernetes' clients
/// (`HTTP2_READ_IDLE_TIMEOUT_SECONDS`, `HTTP2_PING_TIMEOUT_SECONDS`).
const ASKED_AFTER: Duration = Duration::from_secs(30);
const ANSWERS_IN: Duration = Duration::from_secs(15);

/// See the module. Copies share the clients.
#[derive(Clone)]
pub(super) struct Pools {
    kept: Arc<Mutex<KeptPools>>,
    /// The files of certificates that the environment names.
    named: Arc<Certificates>,
    uses_system_proxy: bool,
}

#[derive(Default)]
struct KeptPools {
    n_made: u64,
    pools: Vec<Pool>,
    /// Addresses of servers as they are written and as they are read, the oldest first. To read one
    /// takes longer than all else that is done for a request before reqwest gets it.
    addresses: Vec<(Arc<str>, reqwest::Url)>,
}

/// A client, which is cheap to copy.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    kind: Kind,
    pub(super) client: reqwest::Client,
    /// No two have the same.
    number: u64,
}

/// What requests have in common that go through one client.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    /// For loopback addresses: no proxy.
    is_near: bool,
    is_secure: bool,
    connect: Duration,
    /// The authorities that vouch for servers. `None` where nothing is encrypted.
    trust: Option<Certificates>,
}

impl Kind {
    fn of(url: &reqwest::Url, request: &WireRequest, named: &Certificates) -> Self {
        let (is_near, is_secure) = (is_loopback(url), url.scheme() == "https");
        // Far from here even what is not encrypted may go to a proxy over TLS.
        let trust = (!is_near || is_secure).then(|| trust::resolved(&request.certificates, named));
        Self { is_near, is_secure, connect: request.connect_timeout, trust }
    }
}

/// The client cannot be made. The causes are errors of the libraries that make it, whose types are not promised.
#[derive(Debug, Error)]
#[error("cannot set up the HTTP client")]
#[non_exhaustive]
pub enum HttpSetupError {
    /// TLS cannot be used.
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The trusted certificates cannot be found out.
    Trust(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The client refuses its settings.
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Pools {
    /// Makes pools with a client for this machine.
    pub(super) fn with_near(
        connect: Duration,
        environment: &Environment,
    ) -> Result<Self, HttpSetupError> {
        let pools = Self {
            kept: Arc::default(),
            named: Arc::new(trust::named(environment)),
            uses_system_proxy: environment.uses_system_proxy(),
        };
        pools.of(Kind { is_near: true, is_secure: false, connect, trust: None })?;
        Ok(pools)
    }

    /// Returns the pool that a request goes through. It is made when first needed, since loading certificates takes
    /// milliseconds.
    pub(super) fn get(
        &self,
        url: &reqwest::Url,
        request: &WireRequest,
    ) -> Result<Pool, HttpSetupError> {
        self.of(Kind::of(url, request, &self.named))
    }

    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`TransportError::Unsendable`] when it is none.
    pub(super) fn address(&self, text: &Arc<str>) -> Result<reqwest::Url, TransportError> {
        let mut kept = self.lock();
        if let Some((_, url)) = kept.addresses.iter().find(|it| it.0 == *text) {
            return Ok(url.clone());
        }
        let refused = |it| TransportError::Unsendable { why: format!("the address is none: {it}") };
        let url = reqwest::Url::parse(text).map_err(refused)?;
        if MAX_ADDRESSES <= kept.addresses.len() {
            kept.addresses.remove(0);
        }
        kept.addresses.push((Arc::clone(text), url.clone()));
        Ok(url)
    }

    fn of(&self, kind: Kind) -> Result<Pool, HttpSetupError> {
        let found = self.lock().find(&kind);
        match found {
            Some(pool) => Ok(pool),
            // Files are read here, which others do not wait for.
            None => {
                let client = client(&kind, self.uses_system_proxy)?;
                Ok(self.lock().keep(kind, client))
            }
        }
    }

    /// Gives up a pool, so that later requests connect anew, unless that is so already.
    pub(super) fn give_up(&self, pool: &Pool) {
        self.lock().pools.retain(|it| it.number != pool.number);
    }

    fn lock(&self) -> MutexGuard<'_, KeptPools> {
        // Only whole pools are put in, so a panic elsewhere spoils nothing.
        self.kept.locked()
    }
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses may hold passwords.
        f.debug_struct("Pools").field("pools", &self.lock().pools).finish_non_exhaustive()
    }
}

impl KeptPools {
    fn find(&self, kind: &Kind) -> Option<Pool> {
        self.pools.iter().find(|it| it.kind == *kind).cloned()
    }

    fn keep(&mut self, kind: Kind, client: reqwest::Client) -> Pool {
        // Somebody may have been faster.
        if let Some(pool) = self.find(&kind) {
            return pool;
        }
        if MAX_CLIENTS <= self.pools.len() {
            self.pools.remove(0);
        }
        self.n_made += 1;
        let pool = Pool { kind, client, number: self.n_made };
        self.pools.push(pool.clone());
        pool
    }
}

impl Pool {
    /// Returns whether HTTP/2 may be spoken, which is agreed on by TLS.
    pub(super) fn may_share_connections(&self) -> bool {
        self.kind.trust.is_some()
    }
}

fn client(kind: &Kind, uses_system_proxy: bool) -> Result<reqwest::Client, HttpSetupError> {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(kind)?)
        .connect_timeout(kind.connect)
        .pool_idle_timeout(Duration::from_secs(60))
        .http2_keep_alive_interval(ASKED_AFTER)
        .http2_keep_alive_timeout(ANSWERS_IN)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if kind.is_near || !uses_system_proxy { builder.no_proxy() } else { builder };
    // reqwest sends again what a server of HTTP/2 has not looked at, and copies each request for that.
    let builder = match kind.trust {
        Some(_) => builder,
        None => builder.retry(reqwest::retry::never().max_retries_per_request(0)),
    };
    builder.build().map_err(|it| HttpSetupError::Client(it.into()))
}

fn tls(kind: &Kind) -> Result<rustls::ClientConfig, HttpSetupError> {
    // ring is named here and not installed for the process: an embedder may have chosen another.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|it| HttpSetupError::Tls(it.into()))?;
    let verifier = kind.trust.as_ref().map(|files| trust::verifier(files, provider)).transpose();
    let tls = match verifier {
        Ok(Some(verifier)) => tls.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
        Err(error) if kind.is_secure => return Err(HttpSetupError::Trust(error.into())),
        // What is not encrypted needs no authority. A proxy over TLS is not trusted then, and
        // that is reported when there is one.
        Ok(None) | Err(_) => tls.with_root_certificates(rustls::RootCertStore::empty()),
    };
    let mut tls = tls.with_no_client_auth();
    // reqwest asks for neither when it is given a configuration.
    tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Ok(tls)
}

/// Returns what secures a connection to a server that these authorities vouch for.
#[cfg(feature = "web")]
pub(super) fn secured(trust: &Certificates) -> Result<rustls::ClientConfig, HttpSetupError> {
    let (is_near, connect) = (false, Duration::ZERO);
    tls(&Kind { is_near, is_secure: true, connect, trust: Some(trust.clone()) })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pools() -> Pools {
        Pools { kept: Arc::default(), named: Arc::default(), uses_system_proxy: true }
    }

    fn kind(connect_ms: u64) -> Kind {
        let connect = Duration::from_millis(connect_ms);
        Kind { is_near: true, is_secure: false, connect, trust: None }
    }

    fn numbers(pools: &Pools) -> Vec<u64> {
        pools.lock().pools.iter().map(|it| it.number).collect()
    }

    // REQ: MDL-1
    #[test]
    fn the_oldest_client_makes_way_and_the_others_stay() {
        let pools = pools();
        for ms in 1..=8 {
            pools.of(kind(ms)).unwrap();
            assert_eq!(pools.of(kind(1)).unwrap().number, 1, "it is kept");
        }
        assert_eq!(numbers(&pools), [1, 2, 3, 4, 5, 6, 7, 8]);
        pools.of(kind(9)).unwrap();
        assert_eq!(numbers(&pools), [2, 3, 4, 5, 6, 7, 8, 9]);
    }

    // REQ: MDL-1, MDL-12
    #[test]
    fn a_pool_is_given_up_once_however_many_of_its_exchanges_fail() {
        let pools = pools();
        let other = pools.of(kind(1)).unwrap();
        let [first, second] = [pools.of(kind(2)).unwrap(), pools.of(kind(2)).unwrap()];
        pools.give_up(&first);
        let new = pools.of(kind(2)).unwrap();
        pools.give_up(&second);
        assert_eq!(numbers(&pools), [other.number, new.number]);
    }

    #[test]
    fn an_address_is_read_alike_however_often_and_the_oldest_makes_way() {
        let pools = pools();
        for n in (0..2 * MAX_ADDRESSES).flat_map(|it| [it, it, 0]) {
            let text: Arc<str> = format!("http://host:{}/v1", n + 1).into();
            assert_eq!(pools.address(&text).unwrap().as_str(), &*text);
        }
        assert_eq!(pools.lock().addresses.len(), MAX_ADDRESSES);
        pools.address(&"no address".into()).unwrap_err();
    }

    // REQ: MDL-1
    #[test]
    fn whoever_makes_a_client_at_the_same_time_takes_the_one_that_is_there_first() {
        let pools = pools();
        let made = [client(&kind(1), true).unwrap(), client(&kind(1), true).unwrap()];
        let kept = made.map(|it| pools.lock().keep(kind(1), it).number);
        assert_eq!((kept, numbers(&pools)), ([1, 1], vec![1]));
    }
}
