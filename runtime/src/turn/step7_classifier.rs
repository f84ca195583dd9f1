//! Step 7 of a turn, mode `auto`: a model decides about a call before a person is asked.
//!
//! It is asked only about a call that lacks nothing but an allow rule, so it lets nothing pass that a
//! rule could not. The call of the model is an attempt like any other: it is recorded and counted.

use std::sync::Arc;

use super::{Turn, verdict_calls::VerdictCall};
use crate::{
    approval::{
        AnsweredBy, GivenAnswer, PermissionAnswer,
        classifier::{MAX_TOKENS, Verdict, framed, instructions, read},
    },
    block::Block,
    lease::MaxCost,
    step2_state_initialization::Classifying,
    tokens::Tokens,
    transcript::entry::UnconfirmedUsage,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Asks the model about the call at the gate.
    pub(super) fn classify(&mut self) {
        let Some(open) = &self.state.question else { return };
        let question = Arc::clone(&open.question);
        let Some(data) = framed(&question) else {
            return self.pass(AnsweredBy::Classifier, "the call is too long for the classifier");
        };
        let settings = self.settings();
        let link = self.judge(settings.approvals.classifier_model.as_deref());
        let limit_ms = settings.approvals.classifier_timeout_ms.get();
        let n = u64::from(self.state.model.attempt) + 1;
        let token =
            format!("{:032x}", self.stream.draw("classifier", u64::from(self.number) << 32 | n));
        let estimate = self.ask_for_verdict(VerdictCall {
            purpose: Purpose::Classification,
            link: link.clone(),
            system: instructions(&token),
            data,
            max_tokens: MAX_TOKENS,
            limit_ms,
        });
        self.state.model.classifying = Some(Classifying { link, token, estimate });
    }

    /// Returns the most that asking it can use.
    pub(super) fn worst_classification(&self) -> MaxCost {
        let settings = self.settings();
        let classifying = self.state.model.classifying.as_ref();
        let (model, estimate) = match classifying {
            Some(Classifying { link, estimate, .. }) => (&*link.model, *estimate),
            None => (settings.model.as_str(), Tokens::default()),
        };
        MaxCost::of_call(&settings.models, model, estimate.at_most(), MAX_TOKENS)
    }

    /// Handles the model's answer, or that none came in time.
    pub(super) fn classified(&mut self, mut answered: Answered) {
        let Some(Classifying { link, token, .. }) = self.state.model.classifying.clone() else {
            return;
        };
        let in_doubt: Option<UnconfirmedUsage> =
            answered.is_in_doubt.then(|| self.worst_classification().into());
        self.state.model.classifying = None;
        let asked = (Purpose::Classification, &link, MAX_TOKENS);
        self.record_verdict(asked, &mut answered, in_doubt);
        let by = AnsweredBy::Classifier;
        let verdict = match answered.result {
            Ok(answer) => {
                let answer_text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
                read(&answer_text, &token)
            }
            Err(failure) => {
                let reason = format!("the classifier did not answer ({})", failure.class.code());
                Verdict::Unsure { reason }
            }
        };
        let answer = match verdict {
            Verdict::Allow { reason } => {
                let reason = format!("the classifier {} allowed it: {reason}", link.model);
                PermissionAnswer { reason, ..PermissionAnswer::allow() }
            }
            Verdict::Deny { reason } => {
                PermissionAnswer::deny(format!("the classifier {} denied it: {reason}", link.model))
            }
            Verdict::Unsure { reason } => return self.pass(by, &reason),
        };
        self.settle(GivenAnswer { answer, by, surface: None });
    }
}
