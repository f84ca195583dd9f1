//! Makes actors of sessions when they are needed, and ends those that have been idle.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::TenantId, saturating::Saturating as _, time::Timestamp, transcript::load::LoadAs,
};

use tokio::{sync::OwnedMutexGuard, task::yield_now};

use super::{
    Server,
    book::Walked,
    confines, directories,
    hosted::Hosted,
    journal,
    problem::{Code, Problem},
    runs::{Run, Runs},
};
use crate::{
    OpenError, SessionHandle, ports::transcript_store::FileStore, storage::transcript_index,
};

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// How often the disk is measured.
const MEASURE: Duration = Duration::from_secs(30);

impl Server {
    /// Returns the time of the clock that all sessions share.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.ennead.clock().now()
    }

    /// Returns the actor of a session, and makes it if there is none.
    pub(crate) async fn wake(&self, hosted: &Hosted) -> Result<SessionHandle, Problem> {
        let mut handle = hosted.live().handle.lock().await;
        if let Some(handle) = handle.as_ref().filter(|it| it.is_alive()) {
            return Ok(handle.clone());
        }
        if hosted.state().is_deleted {
            return Err(Problem::new(Code::NoSession, "the session was deleted"));
        }
        let record = &hosted.record;
        let options = &self.0.options;
        let workspace = self.directory_of(&record.tenant, &record.directory).await?;
        let session = options.session.clone().workspace(workspace);
        let (server, of) = (self.clone(), record.clone());
        let confined = blocking(move || confines::confined(&server, &of, session));
        let mut session = confined
            .await??
            .id(record.id.clone())
            .tenant(record.tenant.clone())
            .transcripts(self.0.paths.transcripts(&record.tenant))
            .answers_by_handle(true);
        if let Some(model) = &record.model {
            session = session.model(model);
        }
        if let Some(mode) = record.mode {
            session = session.mode(mode);
        }
        if let Some(max_turns) = record.max_turns {
            session = session.max_turns(max_turns);
        }
        if let Some(system) = &record.system {
            session = session.append_system_prompt(&**system);
        }
        let opened = self.0.ennead.open(session).await.map_err(|it| cannot_open(&it))?;
        let mut state = hosted.state();
        state.progress.get_or_insert_default();
        self.0.book.awaken(hosted.id());
        drop(state);
        *handle = Some(opened.clone());
        Ok(opened)
    }

    /// Returns the directory of this name, and makes it if it is missing.
    pub(crate) async fn directory_of(
        &self,
        tenant: &TenantId,
        name: &str,
    ) -> Result<PathBuf, Problem> {
        if let Some(workspace) = &self.0.options.workspace {
            return Ok(workspace.clone());
        }
        let (root, tenant) = (self.0.options.workspaces.clone(), tenant.clone());
        let name = name.to_owned();
        blocking(move || directories::prepare(&root, &tenant, &name)).await?
    }

    /// Reads the runs of a session, from the disk if they are not at hand.
    pub(crate) async fn with_runs<T>(
        &self,
        hosted: &Hosted,
        read: impl FnOnce(&Runs) -> T,
    ) -> Result<T, Problem> {
        if hosted.state().runs.is_none() {
            let _files = self.load_runs(hosted).await?;
            return self.read_runs(hosted, read);
        }
        self.read_runs(hosted, read)
    }

    fn read_runs<T>(&self, hosted: &Hosted, read: impl FnOnce(&Runs) -> T) -> Result<T, Problem> {
        let mut state = hosted.state();
        state.last_read = self.now();
        match &state.runs {
            Some(runs) => Ok(read(runs)),
            None => Err(Problem::new(Code::Internal, "the session was let go of just now")),
        }
    }

    /// Reads the runs of a session if they are not at hand. While what is returned is held, they stay at hand, and
    /// no other task reads or writes the files of the session.
    async fn load_runs(&self, hosted: &Hosted) -> Result<OwnedMutexGuard<()>, Problem> {
        let files = hosted.lock_files().await;
        if hosted.state().runs.is_some() {
            return Ok(files);
        }
        let journal = self.0.paths.runs(hosted.tenant(), hosted.id());
        // It may be written anew, so nothing else takes the files before it is.
        let read = self.write(move || (journal::load(&journal), files));
        let (runs, files) = read.await?;
        let runs = runs.map_err(|it| Problem::internal("the runs cannot be read", &it))?;
        let mut state = hosted.state();
        state.runs = Some(Box::new(runs));
        self.0.book.awaken(hosted.id());
        drop(state);
        Ok(files)
    }

    /// Writes what `plan` makes of the runs of a session, and makes it then: all of it, or nothing if that cannot
    /// be written. Returns the answer of the plan, and how many runs are before the last that was planned.
    pub(crate) async fn promise_runs<T>(
        &self,
        hosted: &Arc<Hosted>,
        plan: impl FnOnce(&Runs) -> (T, Vec<Run>),
    ) -> Result<(T, usize), Problem> {
        let files = self.load_runs(hosted).await?;
        let (answer, changed) = self.read_runs(hosted, plan)?;
        if changed.is_empty() {
            return Ok((answer, 0));
        }
        let journal = self.0.paths.runs(hosted.tenant(), hosted.id());
        let hosted = Arc::clone(hosted);
        // To its end, even if the one that asked is gone: what is written is made, too.
        let made = self.write(move || {
            let _files = files;
            let is_deleted = hosted.state().is_deleted;
            if is_deleted {
                return Err(Problem::new(Code::NoSession, "the session was deleted"));
            }
            let written = journal::append(&journal, &changed);
            written.map_err(|it| Problem::internal("the run cannot be written", &it))?;
            Ok(hosted.apply(changed))
        });
        Ok((answer, made.await??))
    }

    /// Runs work that changes files, where the disk may be waited for. The server does not end before it is done.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.0.tasks.write(work).await;
        done.map_err(|it| Problem::internal("the server failed", &it))
    }

    /// Notes what has happened to runs of a session, whether that can be written or not. Returns what was noted.
    pub(crate) async fn note_runs(
        &self,
        hosted: &Arc<Hosted>,
        plan: impl FnOnce(&Runs) -> Vec<Run>,
    ) -> Vec<Run> {
        let files = hosted.lock_files().await;
        let changed = hosted.state().runs.as_deref().map(plan).unwrap_or_default();
        let journal = self.0.paths.runs(hosted.tenant(), hosted.id());
        let (hosted, noted) = (Arc::clone(hosted), changed.clone());
        let made = self.write(move || {
            let _files = files;
            let is_deleted = hosted.state().is_deleted;
            if !is_deleted && let Err(error) = journal::append(&journal, &changed) {
                tracing::error!(%error, "the journal of runs cannot be written");
            }
            hosted.apply(changed)
        });
        if let Err(problem) = made.await {
            tracing::error!(%problem, "a change of runs is lost");
        }
        noted
    }

    /// Releases sessions that are idle, as long as the server lives.
    pub(crate) async fn passivate(&self) {
        loop {
            tokio::time::sleep(SWEEP.min(self.0.options.passivate_after)).await;
            let above = self.weigh().await;
            for page in self.0.book.walk(Walked::Awake) {
                for hosted in page {
                    let is_above = above.contains(hosted.tenant());
                    let idle =
                        if is_above { Duration::ZERO } else { self.0.options.passivate_after };
                    self.passivate_one(&hosted, idle).await;
                }
                yield_now().await;
            }
        }
    }

    /// Measures what tenants have on the disk, as long as the server lives.
    pub(crate) async fn measure(&self) {
        loop {
            for tenant in self.0.book.tenants() {
                let work = match &self.0.options.workspace {
                    Some(workspace) => workspace.clone(),
                    None => self.0.options.workspaces.join(tenant.as_str()),
                };
                let directories = [work, self.0.paths.transcripts(&tenant)];
                let server = self.clone();
                let measured = blocking(move || server.0.limits.measure(&tenant, directories));
                if let Err(problem) = measured.await {
                    tracing::error!(%problem, "the disk is not measured");
                }
            }
            tokio::time::sleep(MEASURE).await;
        }
    }

    /// Ends the actor of a session that has nothing to do and was not asked for long.
    async fn passivate_one(&self, hosted: &Hosted, idle: Duration) {
        let idle = u64::saturating(idle.as_millis());
        let is_due = || {
            let state = hosted.state();
            let has_nothing = state.runs.as_ref().is_none_or(|it| it.is_idle());
            let is_loaded = state.progress.is_some() || state.runs.is_some();
            is_loaded
                && has_nothing
                && !state.has_worker
                && idle <= self.now().millis_since(state.last_used.max(state.last_read))
        };
        if !is_due() {
            return;
        }
        // It cannot be woken as long as this is held.
        let Ok(mut handle) = hosted.live().handle.try_lock() else { return };
        // Nor are its runs changed.
        let Ok(files) = hosted.live().files.try_lock() else { return };
        if let Some(open) = handle.as_ref() {
            let has_shells = open.status().await.is_ok_and(|it| !it.shells.is_empty());
            if has_shells || !is_due() {
                return;
            }
            open.close().await;
        }
        *handle = None;
        self.put_to_sleep(hosted);
        // It can be woken from here on.
        drop((handle, files));
        self.index(hosted).await;
    }

    fn put_to_sleep(&self, hosted: &Hosted) {
        let mut state = hosted.state();
        let has_readers = 0 < state.n_readers;
        if state.runs.as_ref().is_none_or(|it| it.is_idle()) && !state.has_worker {
            (state.progress, state.runs) = (None, None);
            self.0.book.put_to_sleep(hosted.id());
        }
        drop(state);
        if !has_readers {
            hosted.live().ring.clear();
        }
    }

    /// Leaves what the session wakes from, if its transcript is long: so it reads the end of that alone.
    async fn index(&self, hosted: &Hosted) {
        let transcript = self.0.paths.transcript(hosted.tenant(), hosted.id());
        let refresh = move || {
            transcript_index::refresh(&FileStore::default(), &transcript, LoadAs::Session);
        };
        if let Err(problem) = self.write(refresh).await {
            tracing::error!(%problem, "a session has no index");
        }
    }
}

fn cannot_open(error: &OpenError) -> Problem {
    tracing::warn!(%error, "a session cannot be opened");
    // What the operating system says may name paths of others; the kind does not.
    let detail = match error {
        OpenError::Workspace { .. } => "its directory cannot be used".to_owned(),
        OpenError::Locked { .. } => "another process writes it".to_owned(),
        OpenError::UnsafeTranscripts(_) | OpenError::File(_) | OpenError::LockFile(_) => {
            "its transcript cannot be used".to_owned()
        }
        error => error.to_string(),
    };
    Problem::new(Code::CannotOpen, detail)
}

/// Runs work that may wait for the disk on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|it| Problem::internal("the server failed", &it))
}
