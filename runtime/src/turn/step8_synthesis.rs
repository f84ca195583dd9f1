//! Step 8 of a turn: a fast model makes the result of a call: it puts together what sub-agents found, or answers what
//! is asked about a page.
//!
//! The call of the model is an attempt like any other: it is recorded and counted. It is not repeated, and without a
//! whole answer the findings are the result; a page is where no answer came at all.

use super::{Turn, verdict_calls::VerdictCall};
use crate::{
    block::Block,
    run::facts::QUOTES_SYNTHESES,
    step2_state_initialization::{CallStage, SideQuestion},
    step5_model_call::StopReason,
    tool::{
        ToolNote, ToolOutcome,
        findings::{Findings, MAX_SYNTHESIS_TOKENS, SYNTHESIS_INSTRUCTIONS, SYNTHESIS_TIMEOUT_MS},
        web_page::{PAGE_INSTRUCTIONS, PageAnswer, WebPage},
    },
    transcript::entry::UnconfirmedUsage,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Returns whether hooks or a model are asked about a call that has ended, so that later ones wait.
    pub(super) fn is_asking_after_call(&self) -> bool {
        self.state.firing.is_some() || self.state.model.synthesizing.is_some()
    }

    /// Asks the model about what a call brought; false when there is nothing to ask.
    pub(super) fn synthesize(&mut self, index: usize, outcome: &ToolOutcome) -> bool {
        let is_new = QUOTES_SYNTHESES <= self.facts.revision;
        // Nobody would read it: the run ends with this turn.
        if is_new && self.end.is_some() {
            return false;
        }
        let Some((instructions, data)) = Brought::by(outcome).and_then(|it| it.question(is_new))
        else {
            return false;
        };
        let link = self.judge(None);
        let estimate = self.ask_for_verdict(VerdictCall {
            purpose: Purpose::Synthesis,
            link: link.clone(),
            system: instructions.to_owned(),
            data,
            max_tokens: MAX_SYNTHESIS_TOKENS,
            limit_ms: SYNTHESIS_TIMEOUT_MS,
        });
        self.state.model.synthesizing = Some(SideQuestion { link, index, estimate });
        true
    }

    /// Handles the model's answer, or that none came in time.
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
        let (answer, duration_ms) = (answered.result.ok(), answered.duration_ms);
        let text: String =
            answer.iter().flat_map(|it| &it.blocks).filter_map(Block::as_text).collect();
        let stop = answer.as_ref().map(|it| &it.stop_reason);
        match (Brought::by(&outcome), stop) {
            // What was cut off is no report of all findings.
            (Some(Brought::Findings(findings)), Some(StopReason::EndTurn))
                if !text.trim().is_empty() =>
            {
                let quotes = QUOTES_SYNTHESES <= self.facts.revision;
                findings.clone().synthesized(&mut outcome, &text, quotes);
            }
            (Some(Brought::Page(page)), Some(stop)) => {
                let answer = match stop {
                    StopReason::EndTurn | StopReason::StopSequence => PageAnswer::Whole(&text),
                    StopReason::MaxTokens => PageAnswer::Cut(&text),
                    _ => PageAnswer::Refused,
                };
                page.clone().answered(&mut outcome, answer, duration_ms);
            }
            _ => {}
        }
        self.after_call(index, outcome);
        self.answer_ended();
    }
}

/// What a call brought that a model makes its result of.
enum Brought<'a> {
    Findings(&'a Findings),
    Page(&'a WebPage),
}

impl<'a> Brought<'a> {
    fn by(outcome: &'a ToolOutcome) -> Option<Self> {
        outcome.notes.iter().find_map(|it| match it {
            ToolNote::AgentsEnded { findings } => Some(Self::Findings(findings)),
            ToolNote::PageFetched { page } => Some(Self::Page(page)),
            _ => None,
        })
    }

    /// Returns the instructions for the model, and what it is asked.
    fn question(&self, names_cuts: bool) -> Option<(&'static str, String)> {
        match self {
            Self::Findings(it) => Some((SYNTHESIS_INSTRUCTIONS, it.question(names_cuts)?)),
            Self::Page(it) => Some((PAGE_INSTRUCTIONS, it.question()?)),
        }
    }
}
