//! Makes actors of sessions when they are needed, runs their prompts one after another, and lets go of
//! those that nobody needs.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    ids::RunId,
    run::{
        RunRequest,
        outcome::{RunError, RunOutcome},
    },
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{
    Server, directories,
    hosted::{Held, Hosted},
    problem::{Code, Problem},
    random,
    record::Saved,
    runs::{Delivery, Run, RunState, Runs},
};
use crate::{OpenError, SessionHandle};

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// What a session is told that goes on with a run of an earlier process.
const GO_ON: &str = "The server was restarted while this was being worked on. Go on from where it was \
                     left.";

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
        let (root, tenant) = (options.workspaces.clone(), record.tenant.clone());
        let directory = record.directory.clone();
        let made = move || directories::prepare(&root, &tenant, &directory);
        let workspace = blocking(made).await??;
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

    /// Has the runs of a session taken one after another, unless that is being done.
    pub(crate) fn work_on(&self, hosted: &Arc<Hosted>) {
        if std::mem::replace(&mut hosted.state().has_worker, true) {
            return;
        }
        let (server, hosted) = (self.clone(), Arc::clone(hosted));
        self.0.tasks.spawn(async move { server.work(&hosted).await });
    }

    async fn work(&self, hosted: &Arc<Hosted>) {
        loop {
            let run = {
                let mut state = hosted.state();
                let is_draining = self.0.drain.is_begun();
                let is_next = state.runs.as_ref().is_some_and(|it| 0 < it.n_queued());
                state.held = (is_draining && is_next).then_some(Held::Draining);
                let at = self.now();
                match state.runs.as_mut().filter(|_| !is_draining).and_then(|it| it.begin(at)) {
                    Some(run) => run,
                    None => {
                        state.has_worker = false;
                        return;
                    }
                }
            };
            let result = self.run(hosted, &run).await;
            let at = self.now();
            let outcome = match result {
                Ok(outcome) => {
                    let view = outcome_view(&outcome);
                    self.settle(hosted, &run.id, &outcome);
                    (RunState::Finished, view)
                }
                Err(why) => (RunState::Failed, json!({ "end": "failed", "error": why })),
            };
            let mut state = hosted.state();
            // Its end may lie in a hole of the events.
            if let Some(progress) = state.progress.as_mut().filter(|it| it.run.is_some()) {
                **progress = super::hosted::Progress::default();
            }
            if let Some(runs) = &mut state.runs {
                runs.end(&run.id, outcome.0, outcome.1, at);
            }
            state.last_used = at;
        }
    }

    async fn run(&self, hosted: &Hosted, run: &Run) -> Result<RunOutcome, String> {
        let handle = self.wake(hosted).await.map_err(|it| it.to_string())?;
        let prompt = run.prompt.clone().unwrap_or_default();
        let request = RunRequest::new(prompt).run(run.id.clone()).origin("serve");
        handle.run(request).await.map_err(|error| match error {
            RunError::Busy(_) => "the session is busy".to_owned(),
            error => error.to_string(),
        })
    }

    /// Adds up what a run used.
    fn settle(&self, hosted: &Hosted, run: &RunId, outcome: &RunOutcome) {
        let total = outcome.cost.tree().total();
        let saved = {
            let mut state = hosted.state();
            let totals = &mut state.totals;
            totals.runs += 1;
            totals.turns += u64::from(outcome.turns);
            totals.usage = totals.usage + outcome.usage;
            totals.cost = totals.cost + total.cost;
            totals.is_partial |= total.known_cost().is_none();
            Saved { record: hosted.record.clone(), totals: *totals }
        };
        self.0.metrics.add("ennead_cost_micro_usd_total", "", "", total.cost.micro_usd());
        if let Err(error) = self.0.places.save(&saved) {
            tracing::error!(%error, %run, "the totals of a session cannot be kept");
        }
    }

    /// Takes up what an earlier process left: runs that wait, and those that it was in the middle of.
    pub(crate) async fn take_up(&self, hosted: &Arc<Hosted>) -> Result<(), Problem> {
        let running = self.with_runs(hosted, |runs| runs.running().cloned()).await?;
        if let Some(id) = running {
            self.take_up_run(hosted, &id).await?;
        }
        if self.with_runs(hosted, |runs| !runs.is_idle()).await? {
            self.work_on(hosted);
        }
        Ok(())
    }

    /// Takes up what an earlier process left of all sessions.
    pub(crate) async fn take_up_all(&self) {
        for hosted in self.0.book.all() {
            let journal = self.0.places.runs(hosted.tenant(), hosted.id());
            // Most sessions were asked for nothing, or have done it all and are not looked at twice.
            if !journal.exists() {
                continue;
            }
            if let Err(problem) = self.take_up(&hosted).await {
                tracing::error!(session = %hosted.id(), %problem, "not taken up");
            }
        }
    }

    async fn take_up_run(&self, hosted: &Arc<Hosted>, id: &RunId) -> Result<(), Problem> {
        let handle = self.wake(hosted).await?;
        let status =
            handle.status().await.map_err(|it| Problem::new(Code::CannotOpen, it.to_string()))?;
        let at = self.now();
        if status.run.as_ref() == Some(id) {
            // It waits for an answer, as it did before; asked for again by its name it is the same.
            return self.with_runs(hosted, |runs| runs.put_back(id)).await;
        }
        let next = random::uuid().map_err(|it| Problem::internal("no id can be made", &it))?;
        let next = Run::new(next.into(), GO_ON.into(), Delivery::Queue, at);
        let gone_on = self.with_runs(hosted, |runs| runs.go_on(id, next)).await?;
        gone_on.map_err(|it| Problem::internal("the run cannot be written", &it))
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

/// What a run left, as the API shows it.
fn outcome_view(outcome: &RunOutcome) -> Value {
    let cost = outcome.cost.tree().total();
    json!({
        "end": outcome.end.code(),
        "is_success": outcome.end.is_success(),
        "text": outcome.text,
        "error": outcome.error,
        "turns": outcome.turns,
        "usage": outcome.usage,
        "cost_usd": cost.known_cost().map(|it| it.usd()),
        "duration_ms": outcome.duration_ms,
        "model": outcome.model,
        "denials": outcome.denials.iter().map(|it| json!({
            "tool": it.tool,
            "call": it.call,
        })).collect::<Vec<_>>(),
    })
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
