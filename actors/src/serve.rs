//! Hosts many agents of many tenants over HTTP.
//!
//! A [`Server`] has an [`Ennead`] and a directory, and gives the routes of the API as an [`axum::Router`]: to be
//! served by [`Server::listen`], or to be mounted into a program of one's own.
//!
//! # The API
//!
//! `/openapi.json` describes it in full; docs/server.md is for people.
//!
//! | Path | What it does |
//! |---|---|
//! | `POST`, `GET /v1/sessions` | makes a session; lists them by pages |
//! | `GET`, `DELETE /v1/sessions/{id}` | shows one; deletes it |
//! | `POST`, `GET /v1/sessions/{id}/runs` | asks for a run: the receipt at once, the outcome with `Prefer: wait=S`, the events with `Accept: text/event-stream`; lists the newest |
//! | `GET /v1/sessions/{id}/runs/{run}` | shows a run and what it left |
//! | `POST /v1/sessions/{id}/interrupt` | ends the run under way |
//! | `GET /v1/sessions/{id}/events` | server-sent events; `Last-Event-ID` goes on after any of them |
//! | `GET /v1/sessions/{id}/turns`, `/turns/{number}` | the nine steps of each turn |
//! | `GET /v1/sessions/{id}/transcript` | the transcript, JSON lines, with ranges |
//! | `GET /v1/approvals`, `POST /v1/approvals/{id}` | questions about calls; answers one |
//! | `GET /v1/tree`, `/v1/tree/events` | the actors that live, and their comings and goings |
//! | `GET /`, `/page/{file}` | the live page |
//! | `GET /healthz`, `/readyz`, `/metrics` | for load balancers and Prometheus |
//!
//! All but the last and `/openapi.json` want a token ([`TokenFile`]). What belongs to another tenant is not
//! there: the answer is 404. Refusals are `application/problem+json` with a stable `code`.
//!
//! # How a run is taken
//!
//! A run is written to the journal of its session before its receipt is given. One task for each session takes
//! its runs in order; the session becomes an actor with the first, and is let go when it was idle for
//! [`ServeOptions::passivate_after`]. After a restart, runs that waited are run, a run that waits for an answer goes
//! on waiting, and one that was in the middle is gone on with by another run.

mod access;
mod api;
mod approvals;
mod body;
mod book;
mod directories;
mod drain;
mod error;
mod health;
mod hosted;
mod hosting;
mod journal;
mod limits;
mod listen;
mod memory;
mod metrics;
mod options;
pub(crate) mod page;
mod problem;
mod pump;
mod random;
mod rates;
mod record;
mod replay;
mod ring;
mod run_routes;
mod runs;
mod sessions;
mod slots;
mod stream;
mod tasks;
pub(crate) mod tokens;
mod transcript;
mod tree;
mod turns;
mod turnstile;
mod worker;

use std::{fs, io, path::Path, sync::Arc};

use axum::Router;

pub use self::error::ServeError;
pub use self::options::ServeOptions;
pub use self::tokens::{Role, TokenFile};
use self::{
    book::SessionBook, drain::Drain, limits::Limits, metrics::Metrics, rates::Rates,
    record::StatePaths, slots::Slots, tasks::Tasks, turnstile::Turnstile,
};
use crate::{Ennead, groundwork::files};
pub use ennead_runtime::serve::ledger::TenantLimits;

/// Readers of the changes of the tree.
const MAX_TREE_READERS: usize = 64;

/// Hosts sessions over HTTP. Clones are one server.
///
/// ```
/// use ennead::{Endpoint, Ennead, SessionOptions, serve::{ServeOptions, Server}};
///
/// # let directory = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
/// let session = SessionOptions::new(".", Endpoint::simulated());
/// let options = ServeOptions::new(directory.path().join("work"), directory.path().join("state"), session);
/// let server = Server::start(Ennead::simulated().await?, options).await?;
/// let app = axum::Router::new().merge(server.router());
/// # drop(app);
/// server.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Server(Arc<ServerParts>);

struct ServerParts {
    ennead: Ennead,
    options: ServeOptions,
    paths: StatePaths,
    tokens: TokenFile,
    book: SessionBook,
    rates: Rates,
    limits: Limits,
    metrics: Metrics,
    drain: Drain,
    turnstile: Turnstile,
    /// Says to other processes that the directory is in use, as long as it is open.
    lock: fs::File,
    tree_readers: Slots,
    tasks: Tasks,
}

impl Server {
    /// Starts to host the sessions that the directory has, and takes up what an earlier process left.
    ///
    /// # Errors
    ///
    /// [`ServeError::State`] when the directory cannot be used; [`ServeError::InUse`] when another process
    /// uses it.
    pub async fn start(ennead: Ennead, options: ServeOptions) -> Result<Self, ServeError> {
        let failed = |cause| ServeError::State { path: options.state.clone(), cause };
        let paths = StatePaths::new(options.state.clone());
        let at = ennead.clock().now();
        let (opened, of_tenants) = (paths.clone(), options.limits.clone());
        let (lock, book, limits) = tokio::task::spawn_blocking(move || {
            let lock = lock(opened.top())?;
            let failed = |cause| ServeError::State { path: opened.top().to_owned(), cause };
            let book = SessionBook::new(opened.load().map_err(failed)?, at);
            Ok((lock, book, Limits::load(of_tenants, opened.spent())))
        })
        .await
        .map_err(|it| failed(io::Error::other(it)))??;
        let events = ennead.events();
        let server = Self(Arc::new(ServerParts {
            tokens: TokenFile::new(options.token_file()),
            paths,
            book,
            rates: Rates::default(),
            limits,
            turnstile: Turnstile::new(options.limits.all_runs, options.limits.runs),
            lock,
            metrics: Metrics::default(),
            drain: Drain::default(),
            tree_readers: Slots::new(MAX_TREE_READERS),
            tasks: Tasks::default(),
            ennead,
            options,
        }));
        let it = server.clone();
        server.0.tasks.spawn(async move { it.pump(events).await });
        let it = server.clone();
        server.0.tasks.spawn(async move { it.passivate().await });
        let it = server.clone();
        server.0.tasks.spawn(async move { it.take_up_all().await });
        let limits = &server.0.options.limits;
        if limits.disk_bytes.or(limits.all_disk_bytes).is_some() {
            let it = server.clone();
            server.0.tasks.spawn(async move { it.measure().await });
        }
        Ok(server)
    }

    /// Returns the routes of the API.
    pub fn router(&self) -> Router {
        api::router(self.clone())
    }

    /// Returns how many sessions there are, of all tenants.
    pub fn n_sessions(&self) -> usize {
        self.0.book.len()
    }

    /// Returns the token file, which lists who is let in.
    pub fn tokens(&self) -> &TokenFile {
        &self.0.tokens
    }
}

/// Takes the directory for this process. The system gives it up with the process, however that ends.
fn lock(state: &Path) -> Result<fs::File, ServeError> {
    let failed = |cause| ServeError::State { path: state.to_owned(), cause };
    let name = state.join("server.lock");
    let open = |path: &Path| files::private().write(true).create(true).truncate(false).open(path);
    let file = files::in_directory(&name, open).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(ServeError::InUse { path: state.to_owned() }),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("options", &self.0.options).finish_non_exhaustive()
    }
}
