//! What handlers answered about calls.

use super::{RecordedInputs, ReplayError, text_of};
use crate::{
    approval::{AnsweredBy, GivenAnswer, PermissionAnswer, PolicyVerdict, Question},
    hook::HookEvent,
    ids::ToolUseId,
    permission::PermissionMode,
    step::Step,
    transcript::{
        entry::{ModeChange, Record, RecordKind},
        replay::window::record,
    },
    turn::{Turn, TurnInput, effect::Purpose, plan_in},
};

impl RecordedInputs<'_> {
    /// Returns the decision of the policy.
    pub(super) fn policy(&self, asked: &Question, step: Step) -> Result<TurnInput, ReplayError> {
        let verdict = self.recorded("what a policy said", step, |it| match it {
            RecordKind::Passed { by: AnsweredBy::Policy, .. } => Some(PolicyVerdict::Abstain),
            RecordKind::Approval { by: Some(AnsweredBy::Policy), allowed, reason, .. } => {
                let reason = reason.clone();
                Some(if *allowed {
                    PolicyVerdict::Allow { reason }
                } else {
                    PolicyVerdict::Deny { reason }
                })
            }
            _ => None,
        })?;
        let (call, epoch) = (asked.call.id.clone(), asked.epoch);
        Ok(TurnInput::PolicyAnswered { call, epoch, verdict })
    }

    /// Returns the answer of a surface, or why there is none.
    pub(super) fn permission(
        &self,
        asked: &Question,
        step: Step,
    ) -> Result<TurnInput, ReplayError> {
        let (mut given, input) = self.recorded("the answer about a call", step, |it| match it {
            RecordKind::Approval {
                allowed, reason, by, surface, input, rules, interrupt, ..
            } => {
                let answer = PermissionAnswer {
                    allowed: *allowed,
                    reason: reason.clone(),
                    input: None,
                    rules: rules.clone(),
                    interrupt: *interrupt,
                    mode: self.mode_by(&asked.call.id),
                };
                let by = by.unwrap_or(AnsweredBy::Surface);
                Some((GivenAnswer { answer, by, surface: surface.clone() }, input.as_ref()))
            }
            _ => None,
        })?;
        if let Some(input) = input {
            let line = self.ahead(0).map_or(0, |it| it.number);
            given.answer.input = Some(text_of(input, line, self.stored)?.into());
        }
        let call = asked.call.id.clone();
        Ok(TurnInput::PermissionAnswered { call, given: Box::new(given) })
    }

    /// Returns the mode that the session was put into at this point, if it was.
    pub(in crate::transcript::replay) fn mode(&self) -> Option<PermissionMode> {
        match self.ahead(0).and_then(record).map(|it| &it.what) {
            // What a call changes it changes again.
            Some(RecordKind::Mode(ModeChange { mode, call: None })) => Some(*mode),
            _ => None,
        }
    }

    /// The mode that a call has put the session into, if it has.
    fn mode_by(&self, of: &ToolUseId) -> Option<PermissionMode> {
        self.rest_of_lines().iter().find_map(|it| match &record(it)?.what {
            RecordKind::Mode(it) if it.call.as_ref() == Some(of) => Some(it.mode),
            _ => None,
        })
    }

    /// The plan that a call was asked about with; `None` where it was not asked about.
    pub(super) fn plan(&self, call: ToolUseId, turn: &Turn) -> Result<TurnInput, ReplayError> {
        let plan = match self.ahead(0).map(|it| (it.number, record(it))) {
            Some((line, Some(Record { what: RecordKind::Question { input, .. }, .. })))
                if !turn.is_outrun() =>
            {
                let input = input.as_ref().map(|it| text_of(it, line, self.stored)).transpose()?;
                input.as_deref().and_then(plan_in)
            }
            _ => None,
        };
        Ok(TurnInput::PlanRead { call, plan })
    }

    /// Whether hooks or a model were at work on a question when the session was put into the modes that come
    /// next: then what they did is recorded after those.
    pub(in crate::transcript::replay) fn has_consulted(&self) -> bool {
        let is_mode = |it: &RecordKind| matches!(it, RecordKind::Mode(_));
        let mut kinds = self.rest_of_lines().iter().map_while(|it| record(it)).map(|it| &it.what);
        match kinds.find(|it| !is_mode(it)) {
            Some(RecordKind::Hook { event, .. }) => {
                matches!(event, HookEvent::PermissionRequest | HookEvent::Notification)
            }
            Some(RecordKind::ModelAttempt { purpose, .. }) => {
                purpose == Purpose::Classification.name()
            }
            _ => false,
        }
    }
}
