//! From the calls of an answer to a dispatcher that runs them: their inputs are checked, and each takes a
//! slot.

use std::sync::Arc;

use ennead_runtime::{
    saturating::Saturating as _,
    step6_tool_dispatch::Admission,
    step7_permission_gate::Permit,
    tool::{ToolCall, ToolSpec},
    turn::TurnInput,
};
use ractor::{ActorProcessingErr, ActorRef};

use super::{
    ActiveTurn, Pending, TurnMsg,
    awaited_children::crashed,
    outcome::{ChildToStart, Outcome},
};
use crate::{
    groundwork::{directory::ActorKind, mailbox::Mailbox, spans, supervision::spawn},
    session::SessionMsg,
    turn::{
        gate_worker::{self, CheckedCall},
        tool_dispatcher::{DispatcherMsg, Execution, ToolDispatcher, ToolDispatcherSetup},
    },
};

/// Checks the inputs of calls, at once where that is light.
pub(super) fn check_inputs(
    calls: Vec<ToolCall>,
    myself: &ActorRef<TurnMsg>,
    state: &mut ActiveTurn,
) -> Result<Outcome, ActorProcessingErr> {
    let n_let_in = usize::saturating(state.turn.max_tool_calls().get());
    if gate_worker::is_light(&state.session_context, &calls) {
        let checked = gate_worker::check(&state.session_context, calls, n_let_in);
        return Ok(Outcome::Spawn(ChildToStart::Dispatcher(checked)));
    }
    state.flush(myself)?;
    let turn = myself.clone();
    let pending = Pending::Inputs(calls.clone());
    let checking = gate_worker::check_on_thread(state.session_context.clone(), calls, n_let_in);
    let work = Box::pin(async move {
        // The turn may have ended meanwhile.
        let _gone = turn.cast(TurnMsg::InputsChecked(checking.await));
    });
    Ok(state.child(ActorKind::GateWorker, pending, work))
}

impl ActiveTurn {
    /// Takes a slot of the dispatcher for each call.
    pub(super) async fn dispatch(
        &mut self,
        calls: Vec<CheckedCall>,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Vec<Admission>, ActorProcessingErr> {
        let capacity = self.turn.max_tool_calls();
        let dispatcher = self.dispatcher(myself).await?;
        let id = dispatcher.get_id();
        let mailbox = Mailbox::new(dispatcher, capacity, DispatcherMsg::Execute);
        self.session_context.directory.note_mailbox(id, mailbox.gauge());
        let mut admissions = Vec::new();
        for (call, checked) in calls {
            let admission = match mailbox.reserve() {
                None => Admission::TooMany,
                Some(slot) => {
                    self.slots.insert(call.id, slot);
                    checked.map_or_else(Admission::InvalidInput, |()| Admission::Admitted)
                }
            };
            admissions.push(admission);
        }
        self.dispatcher = Some(mailbox);
        Ok(admissions)
    }

    /// The dispatcher of the turn before, or a new one.
    async fn dispatcher(
        &mut self,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<ActorRef<DispatcherMsg>, ActorProcessingErr> {
        let kept = self.dispatcher.take().map(|it| it.actor().clone());
        if let Some(kept) = kept.filter(|it| it.cast(DispatcherMsg::Begin).is_ok()) {
            return Ok(kept);
        }
        // One that is gone owes nothing.
        self.pending.retain(|it| !matches!(it.1, Pending::Dispatcher));
        let setup = ToolDispatcherSetup {
            session_context: self.session_context.clone(),
            turn: myself.clone(),
        };
        let dispatcher = spawn(ToolDispatcher, setup, myself.get_cell()).await?;
        self.pending.push((dispatcher.get_id(), Pending::Dispatcher));
        Ok(dispatcher)
    }

    /// Sends a call that was allowed to its place with the dispatcher.
    pub(super) fn execute_tool(
        &mut self,
        permit: Permit,
        call: ToolCall,
        spec: Arc<ToolSpec>,
        must_check: bool,
    ) -> Result<Outcome, ActorProcessingErr> {
        let id = call.id.clone();
        let Some((dispatcher, slot)) = self.dispatcher.as_ref().zip(self.slots.remove(&id)) else {
            return Ok(Outcome::Reply(crashed(id)));
        };
        let tool = must_check.then(|| self.session_context.tools.get(&call.name)).flatten();
        if let Some(Err(why)) = tool.map(|it| it.check_input(&call.input)) {
            return Ok(Outcome::Reply(TurnInput::InputRefused { call: id, why }));
        }
        let context = self.tool_context(&call);
        let span = spans::tool(&self.step_span, &call);
        let execution = Box::new(Execution::new(permit, call, spec, context, span));
        let (committed, key) = (execution.committed_outcome(), self.key);
        self.session.cast(SessionMsg::CallStarted { key, call: id.clone(), committed })?;
        if dispatcher.send_with(slot, execution).is_err() {
            return Ok(Outcome::Reply(crashed(id)));
        }
        self.running.push(id);
        Ok(Outcome::Done)
    }
}
