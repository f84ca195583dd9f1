//! Step 7 of a turn: what no rule decides is asked, one handler after another.
//!
//! The policy of the embedder comes first, in the mode `auto` then a model, then a person or a program. A question is a record before
//! anybody sees it, so that it is there again after the process was killed. The first answer that a
//! handler gives ends it.

use std::{collections::VecDeque, sync::Arc};

use super::{Awaits, Effect, Then, Turn};
use crate::{
    approval::{
        AnsweredBy, GivenAnswer, PermissionAnswer, PolicyVerdict, Question, action_digest,
        question_id,
    },
    digest::Digest,
    event::Event,
    hook::{Firing, HookEvent, HookVerdict},
    ids::ToolUseId,
    permission::PermissionMode,
    run::RunEnd,
    step2_state_initialization::{CallStage, FiringReason, OpenQuestion},
    step7_permission_gate::{Decision, GateStage, Handler, no_handler_reason},
    time::Timestamp,
    tool::{ToolErrorKind, ToolOutcome},
    transcript::entry::{RecordKind, Stored, stored::clip},
};

/// Bytes of the words of an answer, so that its record holds all of them.
const MAX_REASON_BYTES: usize = 1536;

/// The first revision of the rules in which questions are recorded.
const RECORDED: u32 = 3;

/// The first revision in which the answer of every handler counts under the policy it was given for alone.
const BINDS_ANSWERS: u32 = 7;

/// What the model reads of a call whose question is not asked any more.
const RUN_ENDED: &str = "an answer to an earlier question ended the run";

impl Turn {
    /// Raises a question about the call at the gate.
    pub(super) fn raise(&mut self, reason: String, suggestions: Vec<String>) {
        let Some((_, gate)) = &self.state.gate else { return };
        let is_ruleless = !gate.allow_rules().is_empty();
        let (call, cwd, class) = (gate.call().clone(), Arc::clone(gate.cwd()), gate.class());
        let blocked_path = gate.blocked_path().map(str::to_owned);
        let (digest, epoch) = (action_digest(&call, &cwd), gate.epoch());
        let answer = self.state.model.answer_entry.as_ref();
        let expiry_ms = self.settings().approvals.expiry_seconds.get().saturating_mul(1000);
        let question = Question {
            id: question_id(&self.facts.session, answer, digest),
            session: self.facts.session.clone(),
            run: self.journal.run().clone(),
            agents: Arc::clone(&self.facts.agents),
            call,
            cwd,
            digest,
            epoch,
            class,
            reason,
            suggestions,
            blocked_path,
            asked_at: self.now,
            expires: Timestamp(self.now.0.saturating_add(expiry_ms)),
        };
        let is_recorded = RECORDED <= self.facts.revision;
        // A model lets nothing pass that a rule could not.
        let is_classified = self.mode() == PermissionMode::Auto && is_ruleless;
        let has_hooks = self.has_hooks(HookEvent::PermissionRequest, question.call.name.as_str());
        let handlers: VecDeque<AnsweredBy> = [
            (has_hooks, AnsweredBy::Hook),
            (self.facts.has_policy, AnsweredBy::Policy),
            (is_classified, AnsweredBy::Classifier),
            (self.facts.handler == Handler::Approver, AnsweredBy::Surface),
        ]
        .into_iter()
        .filter_map(|(is_there, by)| is_there.then_some(by))
        .collect();
        if is_recorded {
            let input = self.completed(&question.call).map(|it| self.journal.stored(&it));
            self.journal.record(self.now, recorded(&question, input));
            self.journal.sync();
        }
        let question = Arc::new(question);
        self.state.question = Some(OpenQuestion {
            question,
            handlers,
            is_shown: false,
            is_notified: false,
            denial: None,
        });
        if is_recorded { self.once_recorded(Then::Consult) } else { self.consult() }
    }

    /// Asks the next handler. A question under rules or a mode that no longer hold is judged anew.
    pub(super) fn consult(&mut self) {
        if self.is_outdated() {
            return self.judge_anew();
        }
        let Some(open) = &mut self.state.question else { return };
        let question = Arc::clone(&open.question);
        match open.handlers.pop_front() {
            Some(AnsweredBy::Hook) => {
                let Question { call, suggestions, .. } = &*question;
                let firing = Firing::PermissionRequest {
                    tool: call.name.clone(),
                    input: (&*call.input).into(),
                    suggestions: suggestions.into(),
                };
                if !self.fire(firing, Some(call), FiringReason::PermissionRequest) {
                    self.consult();
                }
            }
            Some(AnsweredBy::Policy) => {
                self.awaits = Some(Awaits::Policy);
                self.effects.push(Effect::ConsultPolicy(question));
            }
            Some(AnsweredBy::Classifier) => self.classify(),
            Some(AnsweredBy::Surface) if !std::mem::replace(&mut open.is_notified, true) => {
                open.handlers.push_front(AnsweredBy::Surface);
                self.notify(&question);
            }
            Some(AnsweredBy::Surface) => {
                open.is_shown = true;
                self.awaits = Some(Awaits::Permission);
                // It can be answered before its event is sent.
                self.effects.push(Effect::AskPermission(Arc::clone(&question)));
                self.publish(asked(&question));
            }
            _ => {
                let answer = PermissionAnswer::deny(no_handler_reason(&question.reason));
                self.settle(GivenAnswer { answer, by: AnsweredBy::Nobody, surface: None });
            }
        }
    }

    /// Fires what goes before a question that somebody is asked, and then asks it.
    fn notify(&mut self, question: &Question) {
        let message = format!("Permission is needed to use {}", question.call.name);
        let kind = "permission_prompt".into();
        let firing = Firing::Notification { message: message.into(), kind };
        if !self.fire(firing, None, FiringReason::Notification) {
            self.consult();
        }
    }

    /// Handles the end of the Notification hooks. What they answer decides nothing.
    pub(super) fn notified(&mut self, verdict: &HookVerdict) {
        let added = verdict.additional_context.iter().cloned();
        self.state.reminders.extend(added.map(|it| (Some(HookEvent::Notification), it)));
        self.consult();
    }

    /// Handles the end of the PermissionRequest hooks.
    pub(super) fn permission_request_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        let Some(granted) = verdict.permission else { return self.consult() };
        let answer = match granted.denies {
            Some(reason) => {
                PermissionAnswer { interrupt: granted.interrupts, ..PermissionAnswer::deny(reason) }
            }
            None => PermissionAnswer {
                input: granted.input.map(Into::into),
                reason: "a PermissionRequest hook allowed it".into(),
                ..PermissionAnswer::allow()
            },
        };
        self.settle(GivenAnswer { answer, by: AnsweredBy::Hook, surface: None });
    }

    /// Handles the answer of the embedder's policy.
    pub(super) fn policy_answered(
        &mut self,
        call: &ToolUseId,
        epoch: Digest,
        verdict: PolicyVerdict,
    ) {
        let is_open = self.state.question.as_ref().is_some_and(|it| it.question.epoch == epoch);
        if !is_open || !self.is_at_gate(call) || !self.was_awaited(Awaits::Policy) {
            return;
        }
        let by = AnsweredBy::Policy;
        let answer = match verdict {
            PolicyVerdict::Allow { reason } => {
                PermissionAnswer { reason, ..PermissionAnswer::allow() }
            }
            PolicyVerdict::Deny { reason } => PermissionAnswer::deny(reason),
            PolicyVerdict::Abstain => {
                return self.pass(by, "");
            }
        };
        self.settle(GivenAnswer { answer, by, surface: None });
    }

    /// Passes the call on from a handler to the next one.
    pub(super) fn pass(&mut self, by: AnsweredBy, reason: &str) {
        let Some(open) = &self.state.question else { return };
        let (call, reason) = (open.question.call.id.clone(), reason.to_owned());
        self.journal.record(self.now, RecordKind::Passed { call, by, reason });
        self.consult();
    }

    /// Handles the answer of a surface, or that none will come.
    pub(super) fn permission_answered(&mut self, call: &ToolUseId, given: GivenAnswer) {
        if self.is_at_gate(call) && self.was_awaited(Awaits::Permission) {
            self.settle(given);
        }
    }

    /// Ends the question that is open. An answer to one under rules or a mode that no longer hold does not
    /// count: hooks and models may be at work while the mode changes.
    pub(super) fn settle(&mut self, given: GivenAnswer) {
        if BINDS_ANSWERS <= self.facts.revision && self.is_outdated() {
            return self.judge_anew();
        }
        if !self.fire_denial(&given) {
            self.settle_now(given);
        }
    }

    /// Ends the question that is open, of whose answer hooks know.
    pub(super) fn settle_now(&mut self, given: GivenAnswer) {
        let Some(OpenQuestion { question, is_shown, .. }) = self.state.question.take() else {
            return;
        };
        let GivenAnswer { mut answer, by, surface } = given;
        self.state.chosen_mode = answer.mode.filter(|_| answer.allowed);
        clip(&mut answer.reason, MAX_REASON_BYTES);
        let is_recorded = RECORDED <= self.facts.revision;
        let by = match by {
            AnsweredBy::Surface if self.facts.agent.is_some() => AnsweredBy::Bubble,
            by => by,
        };
        let (call, tool) = (question.call.id.clone(), question.call.name.clone());
        let input = answer.input.as_ref().map(|it| self.journal.stored(it));
        let what = RecordKind::Approval {
            call: call.clone(),
            allowed: answer.allowed,
            reason: answer.reason.clone(),
            by: is_recorded.then_some(by),
            surface,
            input,
            rules: answer.rules.clone(),
            interrupt: answer.interrupt,
        };
        self.journal.record(self.now, what);
        if is_shown {
            let (id, allowed) = (question.id.clone(), answer.allowed);
            self.publish(Event::PermissionSettled { id, call, tool, allowed, by });
        }
        if !answer.rules.is_empty() {
            self.memory.overrides.add(&answer.rules);
            self.update_gate();
        }
        if answer.interrupt {
            self.state.is_cut_off = true;
            let why = Some(answer.reason.clone()).filter(|it| !it.is_empty());
            self.end_with(RunEnd::Interrupted, why);
        }
        let Some((_, gate)) = &mut self.state.gate else { return };
        if matches!(by, AnsweredBy::Hook | AnsweredBy::Policy | AnsweredBy::Classifier) {
            gate.stand_in();
        }
        let step = gate.permission_answered(answer);
        self.gate_step(step);
    }

    /// Returns whether the open question was raised under rules or a mode that no longer apply.
    pub(super) fn is_outdated(&self) -> bool {
        let open = self.state.question.as_ref().zip(self.state.gate_setup.as_ref());
        open.is_some_and(|(open, setup)| setup.epoch() != open.question.epoch)
    }

    /// Takes the call at the gate through it once more.
    pub(super) fn judge_anew(&mut self) {
        self.state.question = None;
        self.state.gate = None;
        self.state.chosen_mode = None;
        self.gate_next();
    }

    /// Applies the rules and the mode that are now in force to the gate.
    pub(super) fn update_gate(&mut self) {
        let Some(derived_settings) = &self.memory.derived_settings else { return };
        if self.state.settings.is_none() {
            return;
        }
        let overrides = &self.memory.overrides;
        self.state.gate_setup = Some(if overrides.is_empty() {
            Arc::clone(&derived_settings.gate)
        } else {
            Arc::new(derived_settings.gate_with(overrides, &self.facts))
        });
    }

    /// Returns the question that a surface may answer now.
    pub fn open_question(&self) -> Option<&Arc<Question>> {
        let is_asked = self.awaits == Some(Awaits::Permission);
        self.state.question.as_ref().filter(|_| is_asked).map(|it| &it.question)
    }

    /// Returns whether this question is open, at whichever handler.
    pub(crate) fn is_open(&self, question: &Question) -> bool {
        let open = self.state.question.as_ref();
        open.is_some_and(|it| it.question.key() == question.key())
    }

    /// Decides about the calls that are left: the run ends.
    pub(super) fn deny_the_rest(&mut self) {
        for index in 0..self.state.calls.len() {
            let state = &mut self.state.calls[index];
            if !matches!(state.stage, CallStage::Open) {
                continue;
            }
            let reason = RUN_ENDED.to_owned();
            state.stage = CallStage::Refused(Box::new(ToolOutcome::failed(
                ToolErrorKind::PermissionDenied,
                format!("Permission denied: {reason}"),
            )));
            let (call, tool) = (state.call.id.clone(), state.call.name.clone());
            let digest = state.call.digest();
            self.publish(Event::PermissionDecided {
                call: call.clone(),
                tool: tool.clone(),
                allowed: false,
                reason: RUN_ENDED.into(),
                allow_rules: Arc::default(),
            });
            let stage = GateStage::PermissionHandler;
            let decision = Decision { allowed: false, stage, rule: None, reason, class: None };
            let mode = self.mode();
            let what = RecordKind::Permission { call, tool, digest, input: None, mode, decision };
            self.journal.record(self.now, what);
        }
    }

    /// Withdraws the permits of calls that were allowed before the run was ended: they do not run.
    pub(super) fn withdraw_permits(&mut self) {
        let allowed =
            self.state.calls.iter_mut().filter(|it| matches!(it.stage, CallStage::Allowed(_)));
        for state in allowed {
            let text = format!("It was allowed and did not run: {RUN_ENDED}.");
            let outcome = ToolOutcome::failed(ToolErrorKind::Interrupted, text);
            state.stage = CallStage::Refused(Box::new(outcome));
        }
    }
}

fn recorded(question: &Question, input: Option<Stored>) -> RecordKind {
    RecordKind::Question {
        id: question.id.clone(),
        call: question.call.id.clone(),
        tool: question.call.name.clone(),
        agents: question.agents.to_vec(),
        input,
        digest: question.digest,
        epoch: question.epoch,
        class: question.class,
        reason: question.reason.clone(),
        suggestions: question.suggestions.clone(),
        expires: question.expires,
    }
}

fn asked(question: &Question) -> Event {
    Event::PermissionAsked {
        call: question.call.id.clone(),
        tool: question.call.name.clone(),
        input: Arc::clone(&question.call.input),
        reason: question.reason.as_str().into(),
        key: question.key(),
        suggestions: question.suggestions.clone().into(),
        expires: question.expires,
    }
}
