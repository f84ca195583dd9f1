//! What handlers answered about calls.

use super::{super::texts::text_of, RecordedInputs, ReplayError};
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

    /// Returns how many of the modes that come next were set before it was known that the last question is
    /// recorded, which was raised under the mode `raised_under`.
    ///
    /// What follows the modes tells. Hooks or a model that were at work on the question record what they did after
    /// the modes that were set meanwhile. A question that comes back to its own mode was asked, unless its call was
    /// judged anew: then that began under one of the modes in between. Which one makes no difference, since a
    /// call that is judged anew without having to wait leaves its record before the next mode.
    pub(in crate::transcript::replay) fn n_modes_before_consulting(
        &self,
        raised_under: PermissionMode,
    ) -> usize {
        let records = || self.rest_of_lines().iter().map_while(|it| record(it)).map(|it| &it.what);
        let set = |it: &RecordKind| match it {
            RecordKind::Mode(ModeChange { mode, call: None }) => Some(*mode),
            _ => None,
        };
        let modes: Vec<PermissionMode> = records().map_while(set).collect();
        let is_before = |it: &&RecordKind| match it {
            RecordKind::Mode(_) => true,
            RecordKind::ModelAttempt { purpose, .. } => purpose == Purpose::Hook.name(),
            _ => false,
        };
        let is_judged_anew = match records().find(|it| !is_before(it)) {
            Some(RecordKind::Hook { event, .. }) => match event {
                HookEvent::PermissionRequest | HookEvent::Notification => return 0,
                event => *event == HookEvent::PreToolUse,
            },
            Some(RecordKind::ModelAttempt { purpose, .. })
                if purpose == Purpose::Classification.name() =>
            {
                return 0;
            }
            Some(
                RecordKind::Path { .. }
                | RecordKind::Links(_)
                | RecordKind::Question { .. }
                | RecordKind::Permission { .. },
            ) => true,
            _ => false,
        };
        match modes.iter().position(|it| *it != raised_under) {
            Some(other) if is_judged_anew && modes.last() == Some(&raised_under) => other + 1,
            None if is_judged_anew => 0,
            _ => modes.len(),
        }
    }
}
