//! Fetches pages for the tool WebFetch: by clients of their own, since whom a model names is not whom an embedder or a
//! user chose.
//!
//! A page is asked for without cookies, credentials and the address of another page. Each fetch has a connection of its own, to an address that
//! was checked (`reach.rs`), and nothing that a server sends is read without a bound.

mod address;
mod cache;
mod reach;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead_runtime::{
    ports::{
        BoxFuture, Clock,
        web::{FetchError, FetchPages, Fetched, FetchedPage},
    },
    step1_settings_resolution::Certificates,
};
use ennead_tools::{locked::Locked as _, page_text::page_text};
use reqwest::{Response, Url, header};
use tokio::sync::Semaphore;

pub(crate) use self::cache::PageCache;
use self::{
    address::{PageAddress, Redirection},
    reach::{CheckedResolver, refusal},
};
use super::{
    environment::Environment,
    http::{in_words, page_tls},
    http_limits::CONNECT,
};

/// Bytes of a body that are read.
const MAX_BODY: usize = 10 * 1024 * 1024;

/// Bodies of which a text is made at once, in all sessions: one takes up to 40 MiB while it is.
const MAX_CONVERSIONS: usize = 4;

/// Redirects to the same host that are followed.
const MAX_REDIRECTS: usize = 10;

/// Bytes of all headers of an answer over HTTP/2.
const MAX_HEADERS: u32 = 64 * 1024;

/// How long a page is kept where `CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS` does not say otherwise.
const TTL: Duration = Duration::from_secs(900);

/// Sites know programs that fetch for a person by the first word.
const USER_AGENT: &str = concat!("Claude-User (ennead/", env!("CARGO_PKG_VERSION"), ")");

const ACCEPT: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1";

/// Makes the clients that fetch pages. Clones share what is expensive about them.
#[derive(Clone)]
pub(crate) struct PageClients {
    environment: Arc<Environment>,
    /// With the files that it was made of.
    tls: Arc<Mutex<Option<(Certificates, rustls::ClientConfig)>>>,
    /// Places for bodies of which a text is made.
    conversions: Arc<Semaphore>,
}

impl PageClients {
    /// Makes clients for this environment: its proxy, and the certificates that it names.
    pub(crate) fn new(environment: &Environment) -> Self {
        let conversions = Arc::new(Semaphore::new(MAX_CONVERSIONS));
        Self { environment: Arc::new(environment.clone()), tls: Arc::default(), conversions }
    }

    /// Returns a client that connects to no other host than that of this address. Reads files.
    fn client(
        &self,
        address: &PageAddress,
        certificates: &Certificates,
    ) -> Result<reqwest::Client, FetchError> {
        let made = self.tls.locked().clone().filter(|it| it.0 == *certificates);
        let tls = match made {
            Some((_, tls)) => tls,
            None => {
                let mut tls = page_tls(&self.environment, certificates)
                    .map_err(|it| FetchError::Failed { why: in_words(&it) })?;
                // A server would know by its ticket that two sessions are on one machine.
                tls.resumption = rustls::client::Resumption::disabled();
                *self.tls.locked() = Some((certificates.clone(), tls.clone()));
                tls
            }
        };
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(CheckedResolver::new(address.host(), address.is_near()))
            .connect_timeout(CONNECT)
            .http2_max_header_list_size(MAX_HEADERS)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never().max_retries_per_request(0))
            .referer(false);
        let is_direct = address.is_near() || !self.environment.uses_system_proxy();
        let builder = if is_direct { builder.no_proxy() } else { builder };
        builder.build().map_err(|it| FetchError::Failed { why: in_words(&it) })
    }
}

impl fmt::Debug for PageClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageClients").finish_non_exhaustive()
    }
}

/// What the calls of a session fetch pages by.
#[derive(Clone, Debug)]
pub(crate) struct PagePort {
    clients: PageClients,
    cache: PageCache,
    certificates: Certificates,
    clock: Arc<dyn Clock>,
    ttl: Duration,
}

impl PagePort {
    /// Makes the port of a session with these variables.
    pub(crate) fn new(
        clients: &PageClients,
        cache: &PageCache,
        certificates: Certificates,
        clock: &Arc<dyn Clock>,
        env: &[(String, String)],
    ) -> Self {
        let variable = |name: &str| {
            let own = env.iter().rev().find(|it| it.0 == name).map(|it| it.1.clone());
            own.or_else(|| clients.environment.variable(name))?.trim().parse().ok()
        };
        let ttl = variable("CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS").map_or(TTL, Duration::from_millis);
        let (clients, cache) = (clients.clone(), cache.clone());
        Self { clients, cache, certificates, clock: Arc::clone(clock), ttl }
    }

    async fn page(self, url: String) -> Result<Fetched, FetchError> {
        let mut address = PageAddress::read(&url)?;
        let key = address.key();
        if let Some(page) = self.cache.get(&key, self.clock.elapsed(), self.ttl) {
            return Ok(Fetched::Page(page));
        }
        let client = {
            let (clients, address) = (self.clients.clone(), address.clone());
            let certificates = self.certificates.clone();
            on_blocking(move || clients.client(&address, &certificates)).await??
        };
        for _ in 0..=MAX_REDIRECTS {
            let response = send(&client, address.url().clone()).await?;
            match address.next(&response)? {
                Redirection::Here => {
                    let place = &self.clients.conversions;
                    let page = read(address.url().clone(), response, place).await?;
                    self.cache.put(key, page.clone(), self.clock.elapsed(), self.ttl);
                    return Ok(Fetched::Page(page));
                }
                Redirection::SameHost(next) => address = next,
                Redirection::Elsewhere(to) => {
                    let (code, code_text) = status(&response);
                    let from = address.url().to_string();
                    return Ok(Fetched::Elsewhere { from, to, code, code_text });
                }
            }
        }
        Err(FetchError::TooManyRedirects { max: MAX_REDIRECTS })
    }
}

impl FetchPages for PagePort {
    fn fetch(&self, url: String) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        Box::pin(self.clone().page(url))
    }
}

async fn send(client: &reqwest::Client, url: Url) -> Result<Response, FetchError> {
    let request = client
        .get(url)
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::ACCEPT, ACCEPT)
        // What is packed could be of any size once it is unpacked.
        .header(header::ACCEPT_ENCODING, "identity");
    request.send().await.map_err(in_fetch_words)
}

/// Returns why nothing was fetched. The address is the model's own, so it may be shown.
fn in_fetch_words(error: reqwest::Error) -> FetchError {
    refusal(&error).unwrap_or_else(|| FetchError::Failed { why: in_words(&error.without_url()) })
}

/// Reads a page, off the threads that serve other sessions.
async fn read(
    url: Url,
    mut response: Response,
    conversions: &Arc<Semaphore>,
) -> Result<FetchedPage, FetchError> {
    let (code, code_text) = status(&response);
    if !response.status().is_success() {
        return Err(FetchError::Status { code, code_text });
    }
    let of = |name| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    if let Some(packed) = of(header::CONTENT_ENCODING).filter(|it| it.trim() != "identity") {
        let packed: String = packed.chars().take(20).collect();
        return Err(FetchError::NotText { kind: format!("data packed as {packed}") });
    }
    let content_type = of(header::CONTENT_TYPE);
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(in_fetch_words)? {
        let room = MAX_BODY - body.len();
        is_cut = room < chunk.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if is_cut {
            break;
        }
    }
    // A server that goes on sending is not waited for.
    drop(response);
    // The place is free again when the work has ended, also where nobody waits for it any more.
    let place = Arc::clone(conversions).acquire_owned().await;
    on_blocking(move || {
        let _place = place;
        let base = url.clone();
        let resolve = move |link: &str| address::of_link(&base, link);
        let found = page_text(&body, content_type.as_deref(), &resolve)
            .map_err(|kind| FetchError::NotText { kind })?;
        let mut page = FetchedPage::new(url, found.text);
        page.is_cut = is_cut || found.is_cut;
        (page.bytes, page.code, page.code_text) = (body.len() as u64, code, code_text);
        Ok(page)
    })
    .await?
}

fn status(response: &Response) -> (u16, String) {
    let status = response.status();
    (status.as_u16(), status.canonical_reason().unwrap_or_default().to_owned())
}

async fn on_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| FetchError::Failed { why: "the page could not be read".into() })
}
