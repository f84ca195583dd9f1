//! What handlers answered about calls.

use super::{RecordedInputs, ReplayError, text_of};
use crate::{
    approval::{AnsweredBy, GivenAnswer, PermissionAnswer, PolicyVerdict, Question},
    hook::HookEvent,
    permission::PermissionMode,
    step::Step,
    transcript::{entry::RecordKind, replay::window::record},
    turn::{TurnInput, effect::Purpose},
};

impl RecordedInputs<'_> {
    /// Returns the decision of the policy.
    pub(super) fn policy(&self, asked: &Question, step: Step) -> Result<TurnInput, ReplayError> {
        let verdict = self.recorded("what a policy said", step, |it| match it {
            RecordKind::Passed { by: AnsweredBy::Policy, .. } => Some(PolicyVerdict::Pass),
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
            Some(RecordKind::Mode { mode }) => Some(*mode),
            _ => None,
        }
    }

    /// Whether hooks or a model were at work on a question when the session was put into the modes that come
    /// next: then what they did is recorded after those.
    pub(in crate::transcript::replay) fn has_consulted(&self) -> bool {
        let is_mode = |it: &RecordKind| matches!(it, RecordKind::Mode { .. });
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
