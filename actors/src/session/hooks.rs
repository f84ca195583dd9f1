//! Hands hook handlers to the hook runner of the session, which is spawned on first use.

use std::sync::Arc;

use ennead_runtime::turn::effect::HookFiring;
use ractor::{ActorRef, SpawnErr};

use super::{HookToken, SessionMsg, SessionState};
use crate::{
    groundwork::{
        mailbox::{Mailbox, Refused},
        supervision::{HandlerResult, spawn},
    },
    turn::{
        hook_runner::{HookMsg, HookRequest, HookRunner, HookRunnerSetup, WINDOW},
        turn_supervisor::message::TurnMsg,
    },
    world::hook_process::HandlerContext,
};

impl SessionState {
    pub(super) async fn run_hooks(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        firing: HookFiring,
        context: HandlerContext,
        HookToken { turn, token, span, verifiers }: HookToken,
    ) -> HandlerResult {
        let runner = self.hook_runner(myself).await?;
        let number = firing.firing;
        let request = HookRequest { firing, context, turn: turn.clone(), token, span, verifiers };
        if let Err(refused) = runner.try_send(Box::new(request)) {
            let why = match refused {
                Refused::Full(_) => "the queue of hooks is full",
                Refused::Stopped(_) => "the hook runner is gone",
            };
            let _gone = turn.cast(TurnMsg::HooksLost(number, why));
        }
        Ok(())
    }

    /// Returns the runner, which is spawned on first use.
    pub(super) async fn hook_runner(
        &mut self,
        myself: &ActorRef<SessionMsg>,
    ) -> Result<Mailbox<Box<HookRequest>, HookMsg>, SpawnErr> {
        if let Some(runner) = &self.hooks {
            return Ok(runner.clone());
        }
        let session = myself.clone();
        let report = Box::new(move |ended| {
            // A session that is gone records nothing.
            let _gone = session.cast(SessionMsg::HookEnded(ended));
        });
        let session_context = Arc::clone(&self.session_context);
        let setup = HookRunnerSetup { session_context, report };
        let actor = spawn(HookRunner, setup, myself.get_cell()).await?;
        let id = actor.get_id();
        let runner = self.hooks.insert(Mailbox::new(actor, WINDOW, HookMsg::Run)).clone();
        self.session_context.directory.note_mailbox(id, runner.gauge());
        Ok(runner)
    }

    /// Ends the handlers that are not waited for.
    pub(super) fn end_detached_hooks(&self) {
        if let Some(runner) = &self.hooks {
            let _gone = runner.actor().cast(HookMsg::EndDetached);
        }
    }

    /// Notes that the runner is gone: the turn waits for no handler any more.
    pub(super) fn hooks_gone(&mut self) {
        self.hooks = None;
        if let Some(turn) = &self.turn {
            let _gone = turn.supervisor.cast(TurnMsg::HookRunnerGone);
        }
    }
}
