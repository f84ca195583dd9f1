//! Runs the prompts of a session one after another, and takes up what an earlier process left.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    ids::RunId,
    run::{
        RunEnd, RunRequest,
        outcome::{RunError, RunOutcome},
    },
    serve::progress::RunProgress,
};
use serde_json::{Value, json};

use super::{
    Server,
    book::Walked,
    hosted::{Hosted, StartBlocker},
    hosting::blocking,
    metrics,
    problem::{Code, Problem},
    random,
    record::Saved,
    runs::{Delivery, Run, RunState, Runs},
    turnstile::RunPermit,
};

/// The prompt of a run that goes on with one that was parked, or that an earlier process began.
const GO_ON: &str =
    "The server had to stop while this was being worked on. Go on from where it was left.";

/// How long a run that is held by a limit waits before it looks again.
const PATIENCE: Duration = Duration::from_secs(30);

impl Server {
    /// Starts the worker that takes the runs of a session one after another, unless there is one.
    pub(crate) fn work_on(&self, hosted: &Arc<Hosted>) {
        if std::mem::replace(&mut hosted.state().has_worker, true) {
            return;
        }
        let (server, hosted) = (self.clone(), Arc::clone(hosted));
        self.0.tasks.spawn(async move { server.work(&hosted).await });
    }

    async fn work(&self, hosted: &Arc<Hosted>) {
        while self.has_next(hosted) {
            let Some(mut pass) = self.admit(hosted).await else { continue };
            hosted.state().blocked_by = None;
            let at = self.now();
            let begun = self.note_runs(hosted, |runs| runs.begun(at).into_iter().collect()).await;
            // Deleted meanwhile.
            let Some(run) = begun.into_iter().next() else { continue };
            let result = self.run(hosted, &run).await;
            if let Ok(outcome) = &result {
                pass.charge(outcome.turns.max(1));
            }
            self.end(hosted, &run, result).await;
            drop(pass);
            self.0.drain.wake();
        }
    }

    /// Whether there is a run to take; without one the session has no worker any more.
    fn has_next(&self, hosted: &Hosted) -> bool {
        let mut state = hosted.state();
        let has_next = state.runs.as_ref().is_some_and(|it| 0 < it.n_queued());
        let is_draining = self.0.drain.is_begun();
        state.blocked_by = (has_next && is_draining).then_some(StartBlocker::Draining);
        state.has_worker = has_next && !is_draining;
        state.has_worker
    }

    /// Waits until a run of the session may begin. `None` when it has to be looked at again.
    async fn admit(&self, hosted: &Hosted) -> Option<RunPermit> {
        if let Some((held, wait)) = self.0.limits.hold(hosted.tenant(), self.now()) {
            hosted.state().blocked_by = Some(held);
            if held == StartBlocker::MemoryLimit {
                // Its own part is free then, so it goes on when it is looked again.
                self.end_actor(hosted).await;
            }
            tokio::time::sleep(wait.min(PATIENCE)).await;
            return None;
        }
        let entering = self.0.turnstile.enter(hosted.tenant());
        let mut entering = std::pin::pin!(entering);
        if let Some(pass) = futures::FutureExt::now_or_never(entering.as_mut()) {
            return Some(pass);
        }
        hosted.state().blocked_by = Some(StartBlocker::Turn);
        let pass = entering.await;
        // Runs before it may have used up the day. The place goes to another, and the limit is waited for.
        let is_held = self.0.limits.hold(hosted.tenant(), self.now()).is_some();
        (!is_held).then_some(pass)
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

    /// Notes how a run ended. One that was parked is gone on with.
    async fn end(&self, hosted: &Arc<Hosted>, run: &Run, result: Result<RunOutcome, String>) {
        let at = self.now();
        let parks = hosted.state().parks_for.take();
        let ended = match &result {
            Ok(outcome) => {
                self.settle(hosted, &run.id, outcome).await;
                let is_parked = matches!(outcome.end, RunEnd::ExplicitStop | RunEnd::Interrupted);
                (RunState::Finished, outcome_view(outcome), is_parked)
            }
            // The session ended under it, as it does at the very end of a server.
            Err(why) => (RunState::Failed, json!({ "end": "failed", "error": why }), true),
        };
        let next = match parks.filter(|_| ended.2) {
            Some(_) => {
                random::uuid().ok().map(|it| Run::new(it.into(), GO_ON.into(), Delivery::Queue, at))
            }
            None => None,
        };
        {
            let mut state = hosted.state();
            // Its end may lie in a hole of the events.
            if let Some(progress) = state.progress.as_mut().filter(|it| it.run.is_some()) {
                **progress = RunProgress::default();
            }
            state.last_used = at;
        }
        let plan = |runs: &Runs| match next {
            Some(next) => runs.gone_on(&run.id, next),
            None => runs.with_outcome(&run.id, ended.0, ended.1, at).into_iter().collect(),
        };
        self.note_runs(hosted, plan).await;
    }

    /// Adds up what a run used.
    async fn settle(&self, hosted: &Arc<Hosted>, run: &RunId, outcome: &RunOutcome) {
        let total = outcome.cost.tree().total();
        let saved = {
            let mut state = hosted.state();
            let totals = &mut state.totals;
            totals.runs += 1;
            totals.turns += u64::from(outcome.turns);
            totals.usage = totals.usage + outcome.usage;
            totals.cost = totals.cost + total.cost;
            totals.is_partial |= total.known_cost().is_none();
            let (totals, last_used_at) = (*totals, Some(self.now()));
            if !outcome.model.is_empty() {
                state.last_model = Some(outcome.model.as_str().into());
            }
            let last_model = state.last_model.clone();
            Saved { record: hosted.record.clone(), totals, last_used_at, last_model }
        };
        self.0.metrics.add(metrics::COST, "", "", total.cost.micro_usd());
        let (server, at, cost, run) = (self.clone(), self.now(), total.cost, run.clone());
        let files = hosted.lock_files().await;
        let hosted = Arc::clone(hosted);
        let kept = self.write(move || {
            let _files = files;
            server.0.limits.count_money(&saved.record.tenant, cost, at);
            let is_deleted = hosted.state().is_deleted;
            if is_deleted { Ok(()) } else { server.0.paths.save(&saved) }
        });
        if let Ok(Err(error)) = kept.await {
            tracing::error!(%error, %run, "the totals of a session cannot be kept");
        }
    }

    /// Continues what an earlier process left of all sessions.
    pub(crate) async fn take_up_all(&self) {
        for mut page in self.0.book.walk(Walked::All) {
            let paths = self.0.paths.clone();
            // Most sessions were asked for nothing.
            let asked = blocking(move || {
                page.retain(|it| paths.runs(it.tenant(), it.id()).exists());
                page
            });
            let asked = asked.await.unwrap_or_else(|problem| {
                tracing::error!(%problem, "sessions are not taken up");
                Vec::new()
            });
            for hosted in asked {
                if let Err(problem) = self.take_up(&hosted).await {
                    tracing::error!(session = %hosted.id(), %problem, "not taken up");
                }
            }
        }
    }

    /// Takes up runs that wait, and one that an earlier process was in the middle of.
    async fn take_up(&self, hosted: &Arc<Hosted>) -> Result<(), Problem> {
        // One that this process has begun meanwhile has a worker.
        let left = self.with_runs(hosted, |runs| runs.running().cloned()).await?;
        let left = left.filter(|_| !hosted.state().has_worker);
        if let Some(id) = left {
            self.take_up_run(hosted, &id).await?;
        }
        if self.with_runs(hosted, |runs| !runs.is_idle()).await? {
            self.work_on(hosted);
        }
        Ok(())
    }

    async fn take_up_run(&self, hosted: &Arc<Hosted>, id: &RunId) -> Result<(), Problem> {
        let handle = self.wake(hosted).await?;
        let gone = |it: RunError| Problem::new(Code::CannotOpen, it.to_string());
        let status = handle.status().await.map_err(gone)?;
        if status.run.as_ref() == Some(id) {
            // It waits for an answer, as it did before; asked for again by its name it is the same.
            self.note_runs(hosted, |runs| runs.returned(id).into_iter().collect()).await;
            return Ok(());
        }
        let next = random::uuid().map_err(|it| Problem::internal("no id can be made", &it))?;
        let next = Run::new(next.into(), GO_ON.into(), Delivery::Queue, self.now());
        self.promise_runs(hosted, |runs| ((), runs.gone_on(id, next))).await.map(drop)
    }
}

/// What a run left, as the API shows it.
fn outcome_view(outcome: &RunOutcome) -> Value {
    let cost = outcome.cost.tree().total();
    let denials = outcome.denials.iter().map(|it| json!({ "tool": it.tool, "call": it.call }));
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
        "denials": denials.collect::<Vec<_>>(),
    })
}
