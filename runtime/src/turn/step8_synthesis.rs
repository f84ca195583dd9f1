//! Step 8 of a turn: a fast model puts together what the sub-agents of one call found.
//!
//! The call of the model is an attempt like any other: it is recorded and counted. It is not repeated, and without a
//! whole answer the findings stay as they are.

use super::{Turn, verdict_calls::VerdictCall};
use crate::{
    block::Block,
    run::facts::QUOTES_SYNTHESES,
    step2_state_initialization::{CallStage, SideQuestion},
    step5_model_call::StopReason,
    tool::{
        ToolNote, ToolOutcome,
        findings::{Findings, MAX_SYNTHESIS_TOKENS, SYNTHESIS_INSTRUCTIONS, SYNTHESIS_TIMEOUT_MS},
    },
    transcript::entry::UnconfirmedUsage,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Returns whether hooks or a model are asked about a call that has ended, so that later ones wait.
    pub(super) fn is_asking_after_call(&self) -> bool {
        self.state.firing.is_some() || self.state.model.synthesizing.is_some()
    }

    /// Asks the model about what the sub-agents of a call found; false when there is nothing to be put together.
    pub(super) fn synthesize(&mut self, index: usize, outcome: &ToolOutcome) -> bool {
        let is_new = QUOTES_SYNTHESES <= self.facts.revision;
        // Nobody would read it: the run ends with this turn.
        if is_new && self.end.is_some() {
            return false;
        }
        let question = findings_of(outcome).and_then(|it| it.question(is_new));
        let Some(data) = question else { return false };
        let link = self.judge(None);
        let estimate = self.ask_for_verdict(VerdictCall {
            purpose: Purpose::Synthesis,
            link: link.clone(),
            system: SYNTHESIS_INSTRUCTIONS.to_owned(),
            data,
            max_tokens: MAX_SYNTHESIS_TOKENS,
            limit_ms: SYNTHESIS_TIMEOUT_MS,
        });
        self.state.model.synthesizing = Some(SideQuestion { link, index, estimate });
        true
    }

    /// Handles the model's answer about findings, or that none came in time.
    pub(super) fn synthesized(&mut self, mut answered: Answered) {
        let in_doubt: Option<UnconfirmedUsage> =
            answered.is_in_doubt.then(|| self.worst_case().into());
        self.state.model.purpose = None;
        let Some(SideQuestion { link, index, .. }) = self.state.model.synthesizing.take() else {
            return;
        };
        let asked = (Purpose::Synthesis, &link, MAX_SYNTHESIS_TOKENS);
        self.record_verdict(asked, &mut answered, in_doubt);
        let Some(state) = self.state.calls.get_mut(index) else { return };
        let CallStage::Ended(mut outcome) =
            std::mem::replace(&mut state.stage, CallStage::Answered)
        else {
            return;
        };
        // What was cut off is no report of all findings.
        let whole = answered.result.ok().filter(|it| it.stop_reason == StopReason::EndTurn);
        let text: String =
            whole.iter().flat_map(|it| &it.blocks).filter_map(Block::as_text).collect();
        if !text.trim().is_empty()
            && let Some(findings) = findings_of(&outcome).cloned()
        {
            let quotes = QUOTES_SYNTHESES <= self.facts.revision;
            findings.synthesized(&mut outcome, &text, quotes);
        }
        self.after_call(index, outcome);
        self.answer_ended();
    }
}

/// What sub-agents found, if the outcome is of a call of several.
fn findings_of(outcome: &ToolOutcome) -> Option<&Findings> {
    outcome.notes.iter().find_map(|it| match it {
        ToolNote::AgentsEnded { findings } => Some(findings),
        _ => None,
    })
}
