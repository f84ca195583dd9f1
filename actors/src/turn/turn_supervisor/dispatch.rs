//! From the calls of an answer to a dispatcher that runs them: their inputs are checked, and each takes a
//! slot.

use ennead_runtime::{step6_tool_dispatch::Admission, tool::ToolCall};
use ractor::{ActorProcessingErr, ActorRef};

use super::{
    ActiveTurn, Pending, TurnMsg,
    turn_effects::{ChildToStart, Outcome},
};
use crate::{
    groundwork::{directory::ActorKind, mailbox::Mailbox, supervision::spawn},
    turn::{
        gate_worker::{self, CheckedCall},
        tool_dispatcher::{DispatcherMsg, ToolDispatcher, ToolDispatcherSetup},
    },
};
use ennead_runtime::saturating::Saturating as _;

/// Checks the inputs of calls, at once where that is light.
pub(super) fn check_inputs(
    calls: Vec<ToolCall>,
    myself: &ActorRef<TurnMsg>,
    state: &mut ActiveTurn,
) -> Result<Outcome, ActorProcessingErr> {
    let n_let_in = usize::saturating(state.turn.max_tool_calls().get());
    if gate_worker::is_light(&state.shared, &calls) {
        let checked = gate_worker::check(&state.shared, calls, n_let_in);
        return Ok(Outcome::Spawn(ChildToStart::Dispatcher(checked)));
    }
    state.flush(myself)?;
    let turn = myself.clone();
    let pending = Pending::Inputs(calls.clone());
    let checking = gate_worker::check_apart(state.shared.clone(), calls, n_let_in);
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
        let setup = ToolDispatcherSetup { shared: self.shared.clone(), turn: myself.clone() };
        let dispatcher = spawn(ToolDispatcher, setup, myself.get_cell()).await?;
        let id = dispatcher.get_id();
        self.pending.push((id, Pending::Dispatcher));
        let mailbox = Mailbox::new(dispatcher, capacity, DispatcherMsg::Execute);
        self.shared.directory.note_mailbox(id, mailbox.gauge());
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
}
