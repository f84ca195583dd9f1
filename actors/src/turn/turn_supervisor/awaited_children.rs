//! Children that owe an answer, and what is taken for the answer of one that is gone. Questions to people are
//! in `open_question.rs`.

use ennead_runtime::{
    event::Event,
    hook::HandlerOutput,
    ids::ToolUseId,
    step3_context_assembly::SourcesLook,
    step7_permission_gate::{Judged, PathKind},
    tokens::Usage,
    tool::ToolOutcome,
    turn::{
        TurnInput,
        input::{Answered, Crashed},
    },
};
use ractor::{ActorId, ActorRef};

use super::{ActiveTurn, Pending, TurnMsg};
use crate::{
    groundwork::supervision::HandlerResult,
    session::SessionMsg,
    turn::{approval, gate_worker, model_call, source_reader},
};

impl ActiveTurn {
    /// Closes the question that this input answers.
    pub(super) fn answered(&mut self, input: &TurnInput) {
        let is_answered = |pending: &Pending| match (pending, input) {
            (Pending::Settings, TurnInput::SettingsRead(_) | TurnInput::SettingsMerged(_)) => true,
            (Pending::Sources, TurnInput::SourcesRead(_)) => true,
            (Pending::Look, TurnInput::SourcesSeen(_)) => true,
            (Pending::Shape(stage), TurnInput::Shaped { stage: answered, .. }) => stage == answered,
            (Pending::Model(attempt, _), TurnInput::ModelAnswered(it)) => *attempt == it.attempt,
            (Pending::Path(call, _), TurnInput::PathResolved { call: answered, .. }) => {
                call == answered
            }
            (Pending::Judgement(call), TurnInput::CommandJudged { call: answered, .. }) => {
                call == answered
            }
            (Pending::Plan(call), TurnInput::PlanRead { call: answered, .. }) => call == answered,
            (
                Pending::Policy(call, then),
                TurnInput::PolicyAnswered { call: answered, epoch, .. },
            ) => call == answered && then == epoch,
            (Pending::Approval(_), TurnInput::PermissionAnswered { .. }) => true,
            _ => false,
        };
        self.pending.retain(|(_, it)| !is_answered(it));
        if let TurnInput::ToolFinished { call, .. } = input {
            self.running.retain(|it| it != call);
        }
    }

    /// Handles the end of a child. If it still owed an answer, this is the answer.
    pub(super) fn child_gone(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        child: ActorId,
    ) -> HandlerResult {
        let Some(at) = self.pending.iter().position(|(id, _)| *id == child) else { return Ok(()) };
        let (_, pending) = self.pending.remove(at);
        let input = match pending {
            // Without settings a turn must not run: the session ends the run.
            Pending::Settings => {
                let why = "the settings could not be read".into();
                self.session.cast(SessionMsg::CannotRun { key: self.key, why })?;
                return Ok(());
            }
            Pending::Sources => {
                let what = "the sources could not be read; the session goes on without them";
                self.session_context.hub.publish(Event::Alert { what: what.into() });
                TurnInput::SourcesRead(source_reader::without_files(&self.session_context))
            }
            Pending::Look => {
                let what = "the sources could not be looked at again; what was read of them holds";
                self.session_context.hub.publish(Event::Alert { what: what.into() });
                TurnInput::SourcesSeen(SourcesLook::Unchanged)
            }
            Pending::Shape(stage) => {
                TurnInput::Shaped { stage, result: Err(Crashed), elapsed_us: 0 }
            }
            Pending::Model(attempt, sent) => TurnInput::ModelAnswered(Box::new(Answered {
                attempt,
                result: Err(model_call::crashed()),
                usage: Usage::default(),
                is_in_doubt: sent.is_some_and(|it| it.is_set()),
                first_token_ms: None,
                duration_ms: 0,
                parked_ms: None,
            })),
            Pending::Inputs(calls) => {
                myself.cast(TurnMsg::InputsChecked(gate_worker::unchecked(calls)))?;
                return Ok(());
            }
            Pending::Path(call, given) => {
                let path = Box::new(gate_worker::unknown(given, PathKind::Invalid));
                TurnInput::PathResolved { call, path }
            }
            Pending::Judgement(call) => {
                TurnInput::CommandJudged { call, judged: Box::new(Judged::crashed()) }
            }
            Pending::Plan(call) => TurnInput::PlanRead { call, plan: None },
            Pending::Policy(call, epoch) => approval::policy_crashed(call, epoch),
            Pending::Approval(number) => match self.approver_gone(number) {
                Some(input) => input,
                None => return Ok(()),
            },
            Pending::Dispatcher => {
                self.dispatcher = None;
                self.slots.clear();
                for call in std::mem::take(&mut self.running) {
                    myself.cast(TurnMsg::Input(crashed(call)))?;
                }
                return Ok(());
            }
        };
        myself.cast(TurnMsg::Input(input))?;
        Ok(())
    }

    /// Gives up awaited handlers, which will not answer: they count as not run. `firing` names theirs; `None` means
    /// whichever is awaited.
    pub(super) fn hooks_lost(&mut self, firing: Option<u32>, why: &str) -> Option<TurnInput> {
        let is_meant = |(awaited, _): &mut (u32, usize)| firing.is_none_or(|it| it == *awaited);
        let (firing, n_handlers) = self.firing.take_if(is_meant)?;
        let outputs = vec![HandlerOutput::refused(why); n_handlers];
        Some(TurnInput::HooksAnswered { firing, outputs })
    }
}

/// Makes the end of a call whose executor is gone.
pub(super) fn crashed(call: ToolUseId) -> TurnInput {
    TurnInput::ToolFinished { call, outcome: Box::new(ToolOutcome::crashed()) }
}
