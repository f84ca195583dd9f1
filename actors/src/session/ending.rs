//! How a turn is ended from outside, and a session.
//!
//! An interrupt sets the turn's cancel flag, stops its supervisor and with it every leaf, and ends
//! the commands and sub-agents of the turn. Blocking work may still be under way: the session hears
//! when the last of it is over, and only then closes the turn in the transcript and takes the next
//! run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ennead_runtime::{
    event::Event,
    ids::ToolUseId,
    run::{RunEnd, conversation::Conversation},
    tool::ToolOutcome,
    transcript::{entry::RecordKind, load::Loaded},
    turn::{OpenTurn, TurnInput, answer_lost_calls, close},
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use super::{
    HookToken, SessionMsg, SessionState, Status,
    recorder::Origin,
    runs::{Active, InFlight, Phase, last, record},
};
use crate::{
    archive::ArchiveMsg,
    directory::ActorKind,
    hook_runner::{HookMsg, HookRequest, HookRunner, WINDOW},
    mailbox::Mailbox,
    supervision::{HandlerResult, spawn, spawn_leaf},
    turn_supervisor::TurnMsg,
    world::hook_process::HookPlace,
};

/// How long blocking work of an ended turn is waited for.
pub(super) const QUIET_LIMIT: Duration = Duration::from_secs(2);

impl SessionState {
    /// Ends the run under way now.
    pub(super) async fn interrupt(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        self.end_turn(myself, RunEnd::Interrupted).await
    }

    /// Ends the turn under way for this reason, and with it the run.
    pub(super) async fn end_turn(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        end: RunEnd,
    ) -> HandlerResult {
        let Some(active) = &mut self.active else { return Ok(()) };
        match std::mem::replace(&mut active.phase, Phase::Next) {
            Phase::Turning(mut turn) => {
                turn.scope.cancel.cancel();
                turn.supervisor.stop(None);
                let key = turn.key;
                turn.ending = Some(self.wait_for_quiet(myself, &turn).await?);
                if let Some(active) = &mut self.active {
                    active.phase = Phase::Stopping(turn, end);
                }
                self.processes.end_of(key);
                self.stop_agents_of(key);
            }
            // Between turns there is nothing to close but the run itself.
            Phase::Next => self.end_run(end),
            phase @ (Phase::Stopping(..) | Phase::Ending(_)) => active.phase = phase,
        }
        Ok(())
    }

    async fn wait_for_quiet(
        &self,
        myself: &ActorRef<SessionMsg>,
        turn: &InFlight,
    ) -> Result<ActorId, ActorProcessingErr> {
        let (tracker, key, back) = (turn.scope.tracker.clone(), turn.key, myself.clone());
        tracker.close();
        let work = Box::pin(async move {
            let waited = tokio::time::timeout(QUIET_LIMIT, tracker.wait()).await;
            let _gone = back.cast(SessionMsg::TurnQuiet { key, late: waited.is_err() });
        });
        let job = self.shared.job(ActorKind::TurnEnding, work);
        Ok(spawn_leaf(job, myself.get_cell()).await?.get_id())
    }

    /// Nothing of the turn works any more, or it is not waited for any longer.
    pub(super) fn turn_quiet(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: u64,
        late: bool,
    ) -> HandlerResult {
        let Some(active) = &mut self.active else { return Ok(()) };
        let Phase::Stopping(turn, _) = &mut active.phase else { return Ok(()) };
        if turn.key != key {
            return Ok(());
        }
        turn.quiet = true;
        if late {
            let what = "work of an ended turn is still under way after 2 s";
            self.shared.hub.publish(Event::Alert { what: what.into() });
        }
        self.close_turn_if_over(myself)
    }

    /// Closes an ended turn in the transcript, once its work and its sub-agents are over.
    pub(super) fn close_turn_if_over(&mut self, _: &ActorRef<SessionMsg>) -> HandlerResult {
        let Some(active) = &self.active else { return Ok(()) };
        let Phase::Stopping(turn, end) = &active.phase else { return Ok(()) };
        if !turn.quiet || self.agents.works_for(turn.key) {
            return Ok(());
        }
        let end = *end;
        let open = self.open_turn(active, turn);
        self.write_closing(open, end);
        self.end_run(end);
        Ok(())
    }

    /// Closes a run in whose middle a line was lost.
    pub(super) fn close_lost(&mut self, active: &Active) {
        let end = RunEnd::NotRecorded;
        if let Some(turn) = active.phase.in_flight() {
            let open = self.open_turn(active, turn);
            self.write_closing(open, end);
        }
        let what = RecordKind::RunEnd {
            reason: end.code().into(),
            turns: active.run.turns,
            usage: active.run.usage,
            head: None,
        };
        let line = record(self.shared.world.clock.now(), &active.run.id, 0, what);
        self.recorder.append(Origin::Nobody, last(line));
    }

    /// What the lines that close a turn are made of.
    fn open_turn(&self, active: &Active, turn: &InFlight) -> OpenTurn {
        let settled: BTreeMap<_, _> = turn
            .settled
            .iter()
            .filter_map(|(call, settled)| Some((call.clone(), settled.get()?.clone())))
            .collect();
        OpenTurn {
            run: active.run.id.clone(),
            number: active.run.turns,
            stream: self.conversation.stream.child(active.run.id.as_str()),
            at_step: turn.at_step(),
            history: self.conversation.history.clone(),
            last_entry: self.conversation.last_entry.clone(),
            settled,
            // An end and its result are written at once.
            ended: BTreeMap::new(),
            in_doubt: turn.in_doubt(),
        }
    }

    fn write_closing(&mut self, open: OpenTurn, end: RunEnd) {
        let mut closing = close(open, self.shared.world.clock.now(), end);
        for said in closing.append.said.drain(..) {
            if let (Some(active), Some(message)) = (&mut self.active, said.message()) {
                active.remember(message);
            }
            self.conversation.said(said);
        }
        self.recorder.append(Origin::Nobody, closing.append.into());
    }

    /// Closes the run that a killed process left open. `settled`: what became of its sub-agents.
    pub(super) fn close_earlier(
        &mut self,
        loaded: &Loaded,
        settled: BTreeMap<ToolUseId, ToolOutcome>,
    ) {
        let Some(open_run) = &loaded.open_run else { return };
        let open = OpenTurn {
            run: open_run.run.clone(),
            number: open_run.turn,
            stream: self.conversation.stream.child(open_run.run.as_str()),
            at_step: open_run.step,
            history: self.conversation.history.clone(),
            last_entry: self.conversation.last_entry.clone(),
            settled,
            ended: open_run.ended.clone(),
            // Who knew it was killed.
            in_doubt: None,
        };
        self.write_closing(open, RunEnd::Crashed);
        let what = RecordKind::RunEnd {
            reason: RunEnd::Crashed.code().into(),
            turns: open_run.turn,
            usage: loaded.used.usage,
            head: None,
        };
        let line = record(self.shared.world.clock.now(), &open_run.run, 0, what);
        self.recorder.append(Origin::Nobody, last(line));
    }

    /// Records results for calls of earlier runs whose results are lost.
    pub(super) fn answer_lost_calls(&mut self) {
        let Conversation { history, last_entry, stream, .. } = &self.conversation;
        // The writer's lines tell one opening from the next.
        let stream = stream.child(&self.n_runs.to_string());
        let now = self.shared.world.clock.now();
        let Some(mut append) = answer_lost_calls(history, last_entry.clone(), stream, now) else {
            return;
        };
        for said in append.said.drain(..) {
            self.conversation.said(said);
        }
        self.recorder.append(Origin::Nobody, (*append).into());
    }

    /// A turn cannot run at all.
    pub(super) async fn cannot_run(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: u64,
        why: String,
    ) -> HandlerResult {
        let Some(active) = &mut self.active else { return Ok(()) };
        // The first reason is the best one; that the reader is gone comes after it.
        if !matches!(&active.phase, Phase::Turning(turn) if turn.key == key) {
            return Ok(());
        }
        active.error = Some(why);
        self.end_turn(myself, RunEnd::Error).await
    }

    /// Ends the run after its present turn.
    pub(super) fn stop_after_turn(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.stops = true;
        if let Some(turn) = active.phase.in_flight() {
            // A turn that is past its stop check is followed by one that hears of it, too.
            let _gone = turn.supervisor.cast(TurnMsg::Input(TurnInput::StopRequested));
        }
    }

    pub(super) fn status(&self) -> Status {
        let active = self.active.as_ref();
        Status {
            run: active.map(|it| it.run.id.clone()),
            turn: active.map_or(0, |it| it.run.turns),
            step: None,
            parked: None,
            queued: self.queue.len(),
            agents: self.agents.len(),
            shells: self.shared.shells.table.running(),
        }
    }

    /// Hands handlers to the hook runner, which is spawned on first use.
    pub(super) async fn run_hooks(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        firing: ennead_runtime::turn::effect::HookFiring,
        place: HookPlace,
        request: HookToken,
    ) -> HandlerResult {
        let runner = match &self.hooks {
            Some(runner) => runner.clone(),
            None => {
                let shared = Arc::clone(&self.shared);
                let actor = spawn(HookRunner, shared, myself.get_cell()).await?;
                self.hooks.insert(Mailbox::new(actor, WINDOW, HookMsg::Run)).clone()
            }
        };
        let (number, turn) = (firing.firing, request.turn.clone());
        let request = HookRequest { firing, place, turn: request.turn, token: request.token };
        if let Err(refused) = runner.try_send(request) {
            let why = match refused {
                crate::mailbox::Refused::Full(_) => "the queue of hooks is full",
                crate::mailbox::Refused::Stopped(_) => "the hook runner is gone",
            };
            let _gone = turn.cast(TurnMsg::HooksLost(number, why));
        }
        Ok(())
    }

    /// A child is gone. Whatever it still owed is answered here.
    pub(super) async fn child_gone(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        child: ActorId,
    ) -> HandlerResult {
        if self.hooks.as_ref().is_some_and(|it| it.actor().get_id() == child) {
            self.hooks = None;
            if let Some(turn) = self.active.as_ref().and_then(|it| it.phase.in_flight()) {
                let _gone = turn.supervisor.cast(TurnMsg::HookRunnerGone);
            }
            return Ok(());
        }
        if self.is_measured_by(child) {
            let gone = std::io::Error::other("whoever read the settings crashed");
            return self.settings_measured(myself, Err(gone));
        }
        if self.timer_gone(myself, child) {
            return Ok(());
        }
        if self.processes.gone(child) {
            // Its call hears of it from what it waits for.
            return Ok(());
        }
        if self.loader == Some(child) {
            return self.loaded(myself, Err("whoever read it crashed".into()));
        }
        match self.active.as_ref().map(|it| &it.phase) {
            Some(Phase::Turning(turn)) if turn.supervisor.get_id() == child => {
                return self.end_turn(myself, RunEnd::Crashed).await;
            }
            // Nobody waits for what the turn started any more. It is as if that had taken too long.
            Some(Phase::Stopping(turn, _)) if turn.ending == Some(child) && !turn.quiet => {
                let key = turn.key;
                return self.turn_quiet(myself, key, true);
            }
            _ => {}
        }
        self.agent_gone(myself, child).await
    }

    /// Interrupts what runs, then closes the transcript and ends.
    pub(super) async fn close(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        reply: oneshot::Sender<()>,
    ) -> HandlerResult {
        for (prompt, _slot) in self.queue.drain(..) {
            (prompt.reply)(Err(super::RunError::Ended));
        }
        if self.active.is_some() {
            self.closing = Some(reply);
            return self.interrupt(myself).await;
        }
        self.close_now(myself, reply)
    }

    /// Closes the session, after its commands in the background if there are any.
    pub(super) fn close_now(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        reply: oneshot::Sender<()>,
    ) -> HandlerResult {
        if self.processes.is_empty() {
            return self.close_transcript(myself, reply);
        }
        myself.cast(SessionMsg::EndShells(reply))?;
        Ok(())
    }

    /// Closes the transcript and ends.
    pub(super) fn close_transcript(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        reply: oneshot::Sender<()>,
    ) -> HandlerResult {
        let reply = std::sync::Mutex::new(Some(reply));
        let ended = myself.clone();
        let done = Arc::new(move || {
            let mut reply = reply.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(reply) = reply.take() {
                let _gone = reply.send(());
            }
            ended.stop(None);
        });
        let file = self.open.place.file.clone();
        self.archive.cast(ArchiveMsg::Close { file, done: Some(done) })?;
        Ok(())
    }
}
