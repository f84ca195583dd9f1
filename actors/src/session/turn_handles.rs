//! Spawns the supervisor of a turn, and holds what the session has of the turn under way: that supervisor, and
//! what its calls leave for the session.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    ids::ToolUseId,
    ports::CommittedOutcome,
    session::{CallName, SessionInput, TurnKey, TurnRemains},
    turn::TurnSetup,
};
use ractor::{ActorId, ActorProcessingErr, ActorRef, MessagingErr};

use super::{SessionMsg, SessionState, WaitingCall};
use crate::{
    groundwork::{
        directory::ActorKind,
        supervision::{HandlerResult, spawn, spawn_leaf},
    },
    turn::{
        model_call::SentMark,
        turn_supervisor::{
            NextTurn, TurnScope, TurnSupervisor, TurnSupervisorSetup, message::TurnMsg,
        },
    },
};

/// How long blocking work of an ended turn is waited for.
pub(super) const QUIET_LIMIT: Duration = Duration::from_secs(2);

/// The turn under way.
pub(super) struct TurnHandles {
    pub(super) key: TurnKey,
    pub(super) supervisor: ActorRef<TurnMsg>,
    scope: TurnScope,
    /// Its model call, while that waits for the tree of agents.
    pub(super) waiting_call: Option<Box<WaitingCall>>,
    /// Set when the model call that was let go last is sent.
    sent: Option<SentMark>,
    /// Where calls leave outcomes that can no longer be undone.
    pub(super) committed: Vec<(ToolUseId, CommittedOutcome)>,
    /// Waits until nothing that the turn started is at work.
    pub(super) ending: Option<ActorId>,
    /// Whether the turn is over and its supervisor may walk the next one.
    rests: bool,
}

impl TurnHandles {
    /// Asks everything that the turn started to give up, and ends its supervisor.
    fn cancel(&self) {
        self.scope.cancel.cancel();
        self.supervisor.stop(None);
    }
}

impl SessionState {
    /// Returns whether this child walks the active turn.
    pub(super) fn is_turn(&self, child: ActorId) -> bool {
        self.turn.as_ref().is_some_and(|it| it.supervisor.get_id() == child)
    }

    /// Returns the handles of this turn; `None` unless it is the active one.
    pub(super) fn turn_of(&mut self, key: TurnKey) -> Option<&mut TurnHandles> {
        self.turn.as_mut().filter(|it| it.key == key)
    }

    /// Spawns the supervisor of a turn.
    pub(super) async fn start_turn(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: TurnKey,
        turn: Box<TurnSetup>,
    ) -> HandlerResult {
        let scope = TurnScope::default();
        let first_look = self.open.first_look.take();
        let first_seen = first_look.as_ref().map(|it| Arc::clone(&it.seen));
        let chosen = self.chosen.take();
        let next = NextTurn {
            key,
            turn,
            scope: scope.clone(),
            fingerprints: match first_seen {
                None => self.fingerprints.clone().filter(|_| !chosen.is_new),
                seen => seen,
            },
            first_layers: first_look.map(|it| it.layers),
            chosen: chosen.layer,
        };
        let supervisor = self.supervise(myself, Box::new(next)).await?;
        self.turn = Some(TurnHandles {
            key,
            supervisor,
            scope,
            waiting_call: None,
            sent: None,
            committed: Vec::new(),
            ending: None,
            rests: false,
        });
        Ok(())
    }

    /// Lets a turn be walked by the supervisor of the one before, or by a new one.
    async fn supervise(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        next: Box<NextTurn>,
    ) -> Result<ActorRef<TurnMsg>, ActorProcessingErr> {
        let next = match self.turn.take().filter(|it| it.rests) {
            None => next,
            Some(TurnHandles { supervisor, .. }) => match supervisor.cast(TurnMsg::Begin(next)) {
                Ok(()) => return Ok(supervisor),
                // Killed meanwhile.
                Err(MessagingErr::SendErr(TurnMsg::Begin(next))) => next,
                Err(error) => return Err(error.into()),
            },
        };
        let session_context = Arc::clone(&self.session_context);
        let setup = TurnSupervisorSetup { session_context, session: myself.clone(), next: *next };
        Ok(spawn(TurnSupervisor, Box::new(setup), myself.get_cell()).await?)
    }

    /// Notes whether the supervisor of a turn that is over may walk the next one.
    pub(super) fn note_rest(&mut self, key: TurnKey, rests: bool) {
        if let Some(turn) = self.turn_of(key) {
            turn.rests = rests;
        }
    }

    /// Ends a supervisor that has no turn to wait for, since its run is over.
    pub(super) fn end_rest(&mut self) {
        let is_over = |it: &&mut TurnHandles| it.rests && !self.machine.has_run();
        if let Some(turn) = self.turn.as_mut().filter(is_over) {
            turn.rests = false;
            turn.supervisor.stop(None);
        }
    }

    /// Keeps a model call that waits, and returns what the machine is asked.
    pub(super) fn take_waiting_call(&mut self, call: Box<WaitingCall>) -> SessionInput {
        let (name, limits, max_cost) = (call.name, call.limits, call.max_cost.clone());
        if let Some(turn) = self.turn_of(name.turn) {
            turn.waiting_call = Some(call);
        }
        SessionInput::CallWaits { name, limits, max_cost }
    }

    /// Admits a model call. One that crashed meanwhile is followed by one that asks anew.
    pub(super) fn admit_call(&mut self, name: CallName) {
        let Some(turn) = self.turn_of(name.turn) else { return };
        let Some(call) = turn.waiting_call.take_if(|it| it.name == name) else { return };
        turn.sent = Some(call.sent);
        let _gone = call.go.send(());
    }

    /// Ends a turn; a leaf reports when nothing that it started is at work.
    pub(super) async fn stop_turn(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: TurnKey,
    ) -> HandlerResult {
        let Some(turn) = self.turn.as_mut().filter(|it| it.key == key) else { return Ok(()) };
        turn.cancel();
        let (tracker, back) = (turn.scope.tracker.clone(), myself.clone());
        tracker.close();
        let work = Box::pin(async move {
            let waited = tokio::time::timeout(QUIET_LIMIT, tracker.wait()).await;
            let _gone = back.cast(SessionMsg::TurnQuiet { key, late: waited.is_err() });
        });
        let job = self.session_context.job(ActorKind::TurnEnding, work);
        turn.ending = Some(spawn_leaf(job, myself.get_cell()).await?.get_id());
        self.processes.end_of(key);
        Ok(())
    }

    /// Ends a turn for good and returns what it left.
    pub(super) fn leave_turn(&mut self, key: TurnKey) -> TurnRemains {
        let Some(turn) = self.turn.take_if(|it| it.key == key) else {
            return TurnRemains::default();
        };
        turn.cancel();
        self.processes.end_of(key);
        let outcomes = turn.committed.iter();
        TurnRemains {
            committed: outcomes
                .filter_map(|(call, it)| Some((call.clone(), it.get()?.clone())))
                .collect(),
            was_sent: turn.sent.is_some_and(|it| it.is_set()),
        }
    }
}
