//! Makes actors of sessions when they are needed, and lets go of those that nobody needs.

use std::{path::PathBuf, time::Duration};

use ennead_runtime::{ids::TenantId, time::Timestamp};

use super::{
    Server, directories,
    hosted::Hosted,
    problem::{Code, Problem},
    runs::Runs,
};
use crate::{OpenError, SessionHandle};

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// How often the disk is measured.
const MEASURE: Duration = Duration::from_secs(30);

impl Server {
    /// Reads the time.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.ennead.clock().now()
    }

    /// The actor of a session, made if there is none.
    pub(crate) async fn wake(&self, hosted: &Hosted) -> Result<SessionHandle, Problem> {
        let mut handle = hosted.handle.lock().await;
        if let Some(handle) = handle.as_ref().filter(|it| it.is_alive()) {
            return Ok(handle.clone());
        }
        if hosted.state().is_deleted {
            return Err(Problem::new(Code::NoSession, "the session was deleted"));
        }
        let record = &hosted.record;
        let options = &self.0.options;
        let workspace = self.directory_of(&record.tenant, &record.directory).await?;
        let mut session = options
            .session
            .clone()
            .workspace(workspace)
            .id(record.id.clone())
            .tenant(record.tenant.clone())
            .transcripts(self.0.places.transcripts(&record.tenant))
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
            session = session.append_system_prompt(system.as_str());
        }
        let opened = self.0.ennead.open(session).await.map_err(|it| cannot_open(&it))?;
        hosted.state().progress.get_or_insert_default();
        *handle = Some(opened.clone());
        Ok(opened)
    }

    /// The directory of this name, made if it is not there.
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

    /// Does something with the runs of a session, which are read from the disk if they are not at hand.
    pub(crate) async fn with_runs<T>(
        &self,
        hosted: &Hosted,
        work: impl FnOnce(&mut Runs) -> T,
    ) -> Result<T, Problem> {
        if hosted.state().runs.is_none() {
            let journal = self.0.places.runs(hosted.tenant(), hosted.id());
            let runs = blocking(move || Runs::load(journal)).await?;
            let runs = runs.map_err(|it| Problem::internal("the runs cannot be read", &it))?;
            // Another one may have been faster, and may have changed its own.
            hosted.state().runs.get_or_insert_with(|| Box::new(runs));
        }
        let mut state = hosted.state();
        state.last_used = self.now();
        match &mut state.runs {
            Some(runs) => Ok(work(runs)),
            None => Err(Problem::new(Code::Internal, "the session was let go of just now")),
        }
    }

    /// Lets go of sessions that are idle, as long as the server lives.
    pub(crate) async fn passivate(&self) {
        loop {
            tokio::time::sleep(SWEEP.min(self.0.options.passivate_after)).await;
            for hosted in self.0.book.all() {
                self.let_go(&hosted).await;
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
                let directories = [work, self.0.places.transcripts(&tenant)];
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
    async fn let_go(&self, hosted: &Hosted) {
        let idle = u64::try_from(self.0.options.passivate_after.as_millis()).unwrap_or(u64::MAX);
        let is_due = || {
            let state = hosted.state();
            let has_nothing = state.runs.as_ref().is_none_or(|it| it.is_idle());
            let is_loaded = state.progress.is_some() || state.runs.is_some();
            is_loaded
                && has_nothing
                && !state.has_worker
                && idle <= self.now().millis_since(state.last_used)
        };
        if !is_due() {
            return;
        }
        // Nobody wakes it as long as this is held.
        let Ok(mut handle) = hosted.handle.try_lock() else { return };
        if let Some(open) = handle.as_ref() {
            let has_shells = open.status().await.is_ok_and(|it| !it.shells.is_empty());
            if has_shells || !is_due() {
                return;
            }
            open.close().await;
        }
        *handle = None;
        let mut state = hosted.state();
        let has_readers = 0 < state.n_readers;
        if state.runs.as_ref().is_none_or(|it| it.is_idle()) && !state.has_worker {
            (state.progress, state.runs) = (None, None);
        }
        drop(state);
        if !has_readers {
            hosted.ring.clear();
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

/// Does what may wait for the disk where that holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|it| Problem::internal("the server failed", &it))
}
