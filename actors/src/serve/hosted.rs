//! A session that the server hosts, whether it is an actor at the moment or not.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use ennead_runtime::{
    ids::{RunId, SessionId, TenantId},
    serve::progress::{RunProgress, RunWait},
    step::Step,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use utoipa::ToSchema;

use super::{
    record::{Record, Saved, Totals},
    ring::{Ring, RingItem},
    runs::{Run, Runs},
};
use crate::{SessionHandle, ports::events::SessionEvent};
use ennead_tools::locked::Locked as _;

/// A session that the server hosts.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) record: Record,
    state: Mutex<HostedData>,
    live: OnceLock<Box<LiveParts>>,
}

/// What only a session has that was used since the server started: most are never used again.
#[derive(Debug, Default)]
pub(crate) struct LiveParts {
    pub(crate) ring: Ring,
    /// The actor, while there is one. Locked as long as one is made or ended.
    pub(crate) handle: tokio::sync::Mutex<Option<SessionHandle>>,
    /// Held by the one that reads or writes the files of the session.
    pub(crate) files: Arc<tokio::sync::Mutex<()>>,
}

/// What changes about it.
#[derive(Debug)]
pub(crate) struct HostedData {
    pub(crate) totals: Totals,
    /// Read when they are first asked for, and let go with the actor.
    pub(crate) runs: Option<Box<Runs>>,
    /// Where its run is; `None` where the session is not an actor.
    pub(crate) progress: Option<Box<RunProgress>>,
    /// A task takes its runs one after another.
    pub(crate) has_worker: bool,
    /// What keeps its next run from beginning, if something does.
    pub(crate) blocked_by: Option<StartBlocker>,
    /// Why its run ends after the present turn, to be gone on with later.
    pub(crate) parks_for: Option<StartBlocker>,
    pub(crate) is_deleted: bool,
    pub(crate) last_used: Timestamp,
    /// When somebody last read of it, which keeps it in memory and is no use of it.
    pub(crate) last_read: Timestamp,
    /// The model that answered its last run.
    pub(crate) last_model: Option<Arc<str>>,
    /// Readers of its events.
    pub(crate) n_readers: usize,
}

/// What keeps the next run of a session from beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartBlocker {
    /// As many runs as there may be are under way.
    Turn,
    /// The tokens of the day are used up.
    TokenLimit,
    /// The money of the day is used up.
    MoneyLimit,
    /// The place on the disk is used up.
    DiskLimit,
    /// The sessions that are actors take all memory that they may.
    MemoryLimit,
    /// The server is about to end; the next process goes on.
    Draining,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionState)]
pub(crate) enum HostedState {
    /// It is an actor and has nothing to do.
    Idle,
    /// It is not an actor; the next run or request wakes it.
    Passive,
    /// A run is under way.
    Running,
    /// The run under way waits for somebody to answer a question.
    Waiting,
    /// Its next run waits for a limit, which `waiting_for` names.
    Parked,
}

/// What a session waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct WaitingFor {
    /// `approval`, `provider` (the calls of all sessions share something that is used up), `retry` (after a
    /// failure of the model), `model`, `tool`, `agent` or `limit`.
    kind: &'static str,
    /// Which: the id of the question, the reason of the provider, the code of the failure, the names of
    /// tools, or the limit.
    what: String,
}

impl Hosted {
    pub(crate) fn new(saved: Saved) -> Self {
        let state = HostedData {
            totals: saved.totals,
            runs: None,
            progress: None,
            has_worker: false,
            blocked_by: None,
            parks_for: None,
            is_deleted: false,
            last_used: saved.last_used_at.unwrap_or(saved.record.created_at),
            last_read: Timestamp::default(),
            last_model: saved.last_model,
            n_readers: 0,
        };
        Self { record: saved.record, state: Mutex::new(state), live: OnceLock::new() }
    }

    /// Returns what a session has that is used, made if there is none.
    pub(crate) fn live(&self) -> &LiveParts {
        self.live.get_or_init(Box::default)
    }

    /// Waits for the files of the session.
    pub(crate) async fn lock_files(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.live().files).lock_owned().await
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.record.id
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.record.tenant
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, HostedData> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        self.state.locked()
    }

    /// Returns whether a run is active that does not wait for an answer.
    pub(crate) fn is_under_way(&self) -> bool {
        let state = self.state();
        let is_asked = state.progress.as_ref().is_some_and(|it| !it.asked.is_empty());
        state.runs.as_ref().is_some_and(|it| it.running().is_some()) && !is_asked
    }

    /// Returns whether its run waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        self.state().progress.as_ref().is_some_and(|it| !it.asked.is_empty())
    }

    /// Makes changes of its runs that are planned and written. Returns how many runs are before the last of them,
    /// if that is new.
    pub(crate) fn apply(&self, changed: Vec<Run>) -> usize {
        let mut state = self.state();
        let Some(runs) = &mut state.runs else { return 0 };
        changed.into_iter().fold(0, |_, it| runs.apply(it))
    }

    /// Notes what its session did.
    pub(crate) fn observe(&self, event: SessionEvent) {
        {
            let mut state = self.state();
            state.last_used = event.at;
            let progress = state.progress.get_or_insert_default();
            progress.observe(&event.event.event, event.at);
        }
        self.live().ring.push(RingItem::event(event));
    }
}

impl From<RunWait> for WaitingFor {
    fn from(wait: RunWait) -> Self {
        let (kind, what) = match wait {
            RunWait::Approval(id) => ("approval", id.to_string()),
            RunWait::Provider(reason) => ("provider", code_of(&reason)),
            RunWait::Retry(code) => ("retry", code.to_owned()),
            RunWait::Model => ("model", String::new()),
            RunWait::Agents(n) => ("agent", n.to_string()),
            RunWait::Tools(names) => ("tool", names.join(", ")),
        };
        Self { kind, what }
    }
}

/// The code that a value of a plain enum is serialised to.
fn code_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// A session, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// The id, a UUID.
    #[schema(value_type = String)]
    id: SessionId,
    /// For whom it works.
    #[schema(value_type = String)]
    tenant: TenantId,
    /// What people call it.
    title: Option<String>,
    /// Its directory, below that of the tenant.
    directory: String,
    /// The model that was asked for, or else the one that answered its last run; `null`: that of the settings, of which
    /// no run has ended yet.
    model: Option<String>,
    /// Its permission mode as it was asked for.
    #[schema(value_type = Option<String>)]
    mode: Value,
    /// When it was made, in milliseconds since 1970.
    #[schema(value_type = u64)]
    created_at: Timestamp,
    /// When something last happened in it, in milliseconds since 1970.
    #[schema(value_type = u64)]
    last_used_at: Timestamp,
    /// What it is doing.
    state: HostedState,
    /// What it waits for; `null` while it works.
    waiting_for: Option<WaitingFor>,
    /// Since when it is at its step, or waits, in milliseconds since 1970.
    #[schema(value_type = Option<u64>)]
    since: Option<Timestamp>,
    /// The run under way.
    #[schema(value_type = Option<String>)]
    run: Option<RunId>,
    /// The turn of the run, from 1; 0 without one.
    turn: u32,
    /// The step of the turn.
    #[schema(value_type = Option<String>)]
    step: Option<Step>,
    /// How many accepted runs have not begun.
    queued: usize,
    /// How many sub-agents are at work.
    agents: u32,
    /// How many runs have ended.
    runs: u64,
    /// Turns of ended runs.
    turns: u64,
    /// Tokens of ended runs, as providers reported them.
    #[schema(value_type = Object)]
    usage: ennead_runtime::tokens::Usage,
    /// What ended runs cost in US dollars, as far as prices are known.
    cost_usd: f64,
    /// Whether some prices are not known.
    cost_is_partial: bool,
}

impl Hosted {
    /// Returns the session as the API shows it.
    pub(crate) fn view(&self) -> SessionView {
        let state = self.state();
        let nothing = RunProgress::default();
        let progress = state.progress.as_deref().unwrap_or(&nothing);
        let is_running = progress.run.is_some();
        let held = state.blocked_by.map(|it| WaitingFor { kind: "limit", what: code_of(&it) });
        let shown = match (&held, is_running) {
            (_, true) if !progress.asked.is_empty() => HostedState::Waiting,
            (_, true) => HostedState::Running,
            (Some(_), false) => HostedState::Parked,
            (None, false) if state.progress.is_none() => HostedState::Passive,
            (None, false) => HostedState::Idle,
        };
        let Record { id, tenant, title, directory, model, mode, created_at, .. } = &self.record;
        SessionView {
            id: id.clone(),
            tenant: tenant.clone(),
            title: title.as_deref().map(ToOwned::to_owned),
            directory: directory.to_string(),
            model: model.as_deref().or(state.last_model.as_deref()).map(ToOwned::to_owned),
            mode: mode.map(|it| serde_json::json!(it)).unwrap_or_default(),
            created_at: *created_at,
            last_used_at: state.last_used,
            state: shown,
            waiting_for: if is_running { progress.waits_for().map(Into::into) } else { held },
            since: is_running.then_some(progress.since),
            run: progress.run.clone(),
            turn: progress.turn,
            step: progress.step,
            queued: state.runs.as_ref().map_or(0, |it| it.n_queued()),
            agents: progress.n_agents,
            runs: state.totals.runs,
            turns: state.totals.turns,
            usage: state.totals.usage,
            cost_usd: state.totals.cost.usd(),
            cost_is_partial: state.totals.is_partial,
        }
    }
}
