//! Carries out what the machine wants done.
//!
//! Most effects are sent or called at once. Those that spawn an actor are waited for, in a future of
//! their own, so that the others cost none.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ennead_runtime::{
    ports::messages::MessageFate,
    session::{RunNumber, RunOrigin, SessionEffect, SessionInput, SpawnEffect, TurnKey},
    turn::TurnInput,
};
use ennead_tools::locked::Locked as _;
use ractor::{ActorProcessingErr, ActorRef};

use super::{SessionMsg, SessionState, agents::StartPlan, state::Starting, timer::RunTimer};
use crate::{
    groundwork::{
        directory::ActorKind,
        supervision::{HandlerResult, spawn_leaf},
    },
    storage::{archive::ArchiveMsg, transcript_writer},
    turn::turn_supervisor::message::TurnMsg,
};

pub(super) type Effects = VecDeque<SessionEffect>;

impl SessionState {
    /// Feeds the machine and carries out the effects. Returns what must be waited for.
    pub(super) fn advance<'a>(
        &'a mut self,
        myself: &'a ActorRef<SessionMsg>,
        mut input: SessionInput,
    ) -> Starting<'a> {
        self.session_context.redaction.session_input(&mut input);
        let before = match self.ended_shells(&input) {
            Some(ended) => self.machine.handle(self.now(), ended),
            None => Vec::new(),
        };
        // Nearly always there is nothing before, and what the machine returns is taken as it is.
        let mut effects = Effects::from(self.machine.handle(self.now(), input));
        for effect in before.into_iter().rev() {
            effects.push_front(effect);
        }
        Ok(match self.carry_out(myself, &mut effects)? {
            None => None,
            Some(first) => Some(Box::pin(self.carry_out_spawns(myself, first, effects))),
        })
    }

    pub(super) async fn carry_out_spawns(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        first: SpawnEffect,
        mut effects: Effects,
    ) -> HandlerResult {
        let mut next = Some(first);
        while let Some(effect) = next {
            let Some(effect) = self.children.defer(effect) else {
                next = self.carry_out(myself, &mut effects)?;
                continue;
            };
            match effect {
                SpawnEffect::StartTurn { key, setup, is_last } => {
                    self.start_turn(myself, key, setup).await?;
                    if is_last {
                        self.to_turn(key, TurnInput::StopRequested);
                    }
                }
                SpawnEffect::StopTurn { key } => self.stop_turn(myself, key).await?,
                SpawnEffect::WatchTime { run, deadline } => {
                    self.watch_time(myself, run, deadline).await?;
                }
                SpawnEffect::ReadSettings => self.read_settings(myself).await?,
                SpawnEffect::LoadEarlier => self.load_earlier(myself).await?,
                SpawnEffect::StartAgent { spawn, agent, kind, lease, background, again } => {
                    let is_again = again.is_some();
                    let plan = StartPlan { agent: &agent, kind: *kind, lease, again };
                    let started =
                        self.start_agent(myself, spawn, plan, background.as_deref()).await?;
                    let follows = match (started, background) {
                        (Err(why), _) => Some(SessionInput::AgentRefused { agent, why }),
                        (Ok(()), background) => {
                            background.filter(|_| !is_again).map(SessionInput::AgentKept)
                        }
                    };
                    if let Some(follows) = follows {
                        effects.extend(self.machine.handle(self.now(), follows));
                    }
                }
                SpawnEffect::WatchFiles { files } => self.watch_files(myself, files).await?,
                SpawnEffect::FireHooks(firing) => self.fire_hooks(myself, *firing).await?,
                SpawnEffect::CloseTranscript => self.end_shells(myself).await?,
            }
            next = self.carry_out(myself, &mut effects)?;
        }
        Ok(())
    }

    /// Carries out effects up to the first that spawns an actor, which is returned.
    fn carry_out(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        effects: &mut Effects,
    ) -> Result<Option<SpawnEffect>, ActorProcessingErr> {
        while let Some(effect) = effects.pop_front() {
            match effect {
                SessionEffect::Publish(event) => self.session_context.hub.publish(event),
                SessionEffect::Write(batch) => {
                    self.session_context.hub.publish_messages(&batch.lines);
                    let Some(writer) = &self.writer else { continue };
                    // When the writer is gone another one follows, and this is sent again.
                    let _gone = writer.append(transcript_writer::Append {
                        lines: batch.lines,
                        stored: batch.stored,
                        title: batch.title,
                        sync: batch.sync,
                        ticket: batch.ticket,
                        reply: Arc::clone(&self.recorded),
                    });
                }
                SessionEffect::Ready { is_open } => self.readiness.known(is_open),
                SessionEffect::Reply { origin, mut result } => {
                    self.session_context.redaction.result(&mut result);
                    match origin {
                        RunOrigin::Woken => self.woken_ended(*result),
                        RunOrigin::Prompt(prompt) => {
                            if let Some((reply, _slot)) = self.prompts.remove(&prompt) {
                                reply(*result);
                            }
                        }
                        // Its sender is gone, and asks by the name of the run.
                        RunOrigin::Resumed => {}
                    }
                }
                SessionEffect::TurnRecorded { key, ticket } => {
                    self.to_turn(key, TurnInput::Recorded { ticket });
                }
                SessionEffect::SetMode { key, mode } => {
                    self.to_turn(key, TurnInput::ModeChanged(mode));
                }
                SessionEffect::SetAgentsMode(mode) => self.children.set_mode(mode),
                SessionEffect::StopAfterTurn { key } => self.to_turn(key, TurnInput::StopRequested),
                SessionEffect::LeaveTurn { key } => {
                    let left = self.leave_turn(key);
                    let mut left = SessionInput::TurnLeft { key, left };
                    self.session_context.redaction.session_input(&mut left);
                    effects.extend(self.machine.handle(self.now(), left));
                }
                SessionEffect::UnwatchTime => self.timer = None,
                SessionEffect::AdmitCall(name) => self.admit_call(name),
                SessionEffect::RefuseAgent { spawn, why } => self.children.refuse(spawn, why),
                SessionEffect::DropRequest { spawn } => self.children.forget(spawn),
                SessionEffect::CloseAgent(agent) => self.children.close(myself, &agent),
                SessionEffect::Begun(prompt) => {
                    if let Some((_, it)) = self.begins.take_if(|it| it.0 == prompt) {
                        it.answer(MessageFate::Taken);
                    }
                }
                SessionEffect::MessageTaken { number, fate } => self.message_taken(number, fate),
                SessionEffect::DeliverMessage { spawn, agent, id } => {
                    self.children.deliver(myself, spawn, &agent, id);
                }
                SessionEffect::MessageDelivered { spawn, goes_on } => {
                    self.children.delivered(spawn, goes_on);
                }
                SessionEffect::RefuseMessage { spawn, why } => self.children.sent(spawn, Err(why)),
                SessionEffect::ReportAgent { agent, result } => {
                    let output = self.session_context.hub.output();
                    self.children.report(&agent, *result, &output);
                }
                SessionEffect::KeepEnd(end) => self.session_context.agents.keep_end(*end),
                SessionEffect::AskTop(question) => self.children.ask_top(myself, question),
                SessionEffect::AnswerAgent { agent, answer } => {
                    self.children.answer(&agent, answer);
                }
                SessionEffect::Spawn(SpawnEffect::CloseTranscript)
                    if self.processes.is_empty()
                        && self.session_context.shells.tracker.is_empty()
                        && self.machine.end_hooks().is_none() =>
                {
                    self.close_transcript(myself)?;
                }
                SessionEffect::Spawn(effect) => return Ok(Some(effect)),
            }
        }
        self.answer_woken();
        self.end_rest();
        Ok(None)
    }

    /// A turn that was ended meanwhile waits for nothing.
    fn to_turn(&self, key: TurnKey, input: TurnInput) {
        if let Some(turn) = self.turn.as_ref().filter(|it| it.key == key) {
            let _gone = turn.supervisor.cast(TurnMsg::Input(input));
        }
    }

    /// Starts a leaf that waits for the limit of a run. It gets through whatever the run is doing.
    pub(super) async fn watch_time(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: RunNumber,
        deadline: Duration,
    ) -> HandlerResult {
        let left = deadline.saturating_sub(self.session_context.world.clock.elapsed());
        let (waiting, back) = (self.session_context.world.timer.deadline(left), myself.clone());
        let work = Box::pin(async move {
            waiting.await;
            let _gone = back.cast(SessionMsg::TimeIsUp { run, deadline });
        });
        let job = self.session_context.job(ActorKind::RunTimer, work);
        let leaf = spawn_leaf(job, myself.get_cell()).await?;
        self.timer = Some(RunTimer { run, deadline, leaf });
        Ok(())
    }

    /// Closes the transcript, answers all that wait for it, and ends the session.
    pub(super) fn close_transcript(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        let replies = std::sync::Mutex::new(std::mem::take(&mut self.closing));
        let ended = myself.clone();
        let done = Arc::new(move || {
            let mut replies = replies.locked();
            for reply in replies.drain(..) {
                let _gone = reply.send(());
            }
            ended.stop(None);
        });
        let file = self.open.paths.file.clone();
        self.archive.cast(ArchiveMsg::Close { file, done: Some(done) })?;
        Ok(())
    }
}
