//! A server: what it is made of, and how it starts.

use std::{fs, io, path::Path, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{
    book::SessionBook, drain::Drain, error::ServeError, limits::Limits, metrics::Metrics,
    options::ServeOptions, rates::Rates, record::StatePaths, shares::Shares, tasks::Tasks,
    tokens::TokenFile, turnstile::Turnstile,
};
use crate::{Ennead, groundwork::files};

/// Readers of the changes of the tree, and those of one tenant.
const MAX_TREE_READERS: (usize, usize) = (64, 16);

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
pub struct Server(pub(super) Arc<ServerParts>);

pub(super) struct ServerParts {
    pub(super) ennead: Ennead,
    pub(super) options: ServeOptions,
    pub(super) paths: StatePaths,
    pub(super) tokens: TokenFile,
    pub(super) book: SessionBook,
    pub(super) rates: Rates,
    pub(super) limits: Limits,
    pub(super) metrics: Metrics,
    pub(super) drain: Drain,
    pub(super) turnstile: Turnstile,
    /// Says to other processes that the directory is in use, as long as it is open.
    pub(super) lock: fs::File,
    pub(super) tree_readers: Shares,
    /// Answers that take long: streams, waits for an outcome, transcripts.
    pub(super) long_answers: Shares,
    pub(super) tasks: Tasks,
    /// Cancelled by the first request with a token.
    pub(super) asked: CancellationToken,
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
        let (opened, of_tenants) = (paths.clone(), options.limits.clone());
        let (lock, book, limits) = tokio::task::spawn_blocking(move || {
            let lock = lock(opened.top())?;
            let failed = |cause| ServeError::State { path: opened.top().to_owned(), cause };
            let book = SessionBook::new(opened.load().map_err(failed)?);
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
            tree_readers: Shares::new(MAX_TREE_READERS.0, MAX_TREE_READERS.1),
            long_answers: Shares::new(options.max_long_answers(), options.max_streams),
            tasks: Tasks::default(),
            asked: CancellationToken::new(),
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

    /// Returns how many sessions there are, of all tenants.
    pub fn n_sessions(&self) -> usize {
        self.0.book.len()
    }

    /// Waits until somebody with a token has asked for something, as the page does once it is open.
    pub async fn first_request(&self) {
        self.0.asked.cancelled().await;
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
