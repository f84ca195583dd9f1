//! The parameters of a request, and what becomes of them on a model that refuses some.
//!
//! Both sides are data: what was asked for comes from settings, what a model takes
//! from the catalogue. No model is named in code. A request never fails over a parameter; what was
//! changed is named.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::view::ViewMessage;
use crate::{
    block::{Block, BlockKind, quote},
    catalogue::{Catalogue, Effort, ModelFacts, Sampling, ThinkingDisplay, ThinkingSupport},
    message::Role,
};

/// The least budget of `thinking.enabled`, in tokens; a smaller one is refused.
pub(crate) const MIN_THINKING_BUDGET: u32 = 1_024;

/// How much a model is to reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// As much as the model sees fit.
    Adaptive {
        /// What of it is shown.
        #[serde(default)]
        display: Option<ThinkingDisplay>,
    },
    /// Up to a budget.
    Enabled {
        /// Tokens; at least [`MIN_THINKING_BUDGET`] and less than the output ceiling.
        #[serde(alias = "budgetTokens")]
        budget_tokens: u32,
        /// What of it is shown.
        #[serde(default)]
        display: Option<ThinkingDisplay>,
    },
    /// The model is asked not to think.
    Disabled,
}

/// The beta feature of `task_budget`. Source: the Claude API documentation, "Task budgets", November 2026.
const TASK_BUDGETS: &str = "task-budgets-2026-03-13";

/// Parameters in addition to model, ceiling, tools and messages. None is sent unless it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// How the model is asked to reason.
    pub thinking: Option<Thinking>,
    /// Effort that the model is asked for.
    pub effort: Option<Effort>,
    /// Tokens that the model is told its task may take, with thinking, calls and results; it does not stop there by
    /// itself. Claude alone takes it, as a beta feature.
    pub task_budget: Option<u64>,
    /// Between 0 and 1; 1 is what a model does by default.
    pub temperature: Option<serde_json::Number>,
    /// Nucleus sampling: share of the probability mass, 0 to 1.
    pub top_p: Option<serde_json::Number>,
    /// Sampling from this many.
    pub top_k: Option<u32>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// An opaque name of the user, for the provider's abuse checks.
    pub user_id: Option<String>,
    /// Beta features, by their names; in a header or in the body, as the provider wants it.
    pub betas: Vec<String>,
}

/// What was changed for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Change {
    /// A budget became adaptive reasoning.
    #[error("the model takes no thinking budget; it reasons adaptively")]
    BudgetToAdaptive,
    /// Adaptive reasoning became a budget.
    #[error("the model does not reason adaptively; it gets a thinking budget")]
    AdaptiveToBudget,
    /// The budget did not fit under the output ceiling, or was below the least.
    #[error("the thinking budget is moved between its least and the output ceiling")]
    BudgetMoved,
    /// The model does not reason, or the output ceiling leaves no room for it.
    #[error("the model cannot reason under this output ceiling, or not at all")]
    ThinkingLeftOut,
    /// The model always reasons.
    #[error("the model's reasoning cannot be switched off")]
    CannotDisable,
    /// The effort is not known, or too high for a model that is not to reason.
    #[error("the effort is lowered to one that the model takes")]
    EffortLowered,
    /// The model takes no effort.
    #[error("the model takes no effort")]
    EffortLeftOut,
    /// Temperature, `top_p` or `top_k` would be refused.
    #[error("the model's sampling cannot be changed")]
    SamplingLeftOut,
}

impl Change {
    /// Returns the text of the alert about it.
    pub(crate) fn alert(self, model: &str) -> String {
        format!("{model}: {self}")
    }
}

impl Parameters {
    /// Adapts these parameters to what a model takes under this output ceiling, and returns what had to be changed.
    /// Doing it again changes nothing more.
    pub(crate) fn adapted(&self, facts: &ModelFacts, max_tokens: u32) -> (Self, Vec<Change>) {
        let model = &facts.thinking;
        let mut adapted = self.clone();
        let mut changes = Vec::new();
        adapted.adapt_effort(model, &mut changes);
        adapted.adapt_thinking(facts, max_tokens, &mut changes);
        adapted.adapt_sampling(model, &mut changes);
        (adapted, changes)
    }

    /// Adapts as [`Self::adapted`] does, to a model that a catalogue describes; unchanged for any other.
    pub(crate) fn for_model(
        &self,
        models: &Catalogue,
        model: &str,
        max_tokens: u32,
    ) -> (Self, Vec<Change>) {
        match models.find(model) {
            Some(facts) => self.adapted(facts, max_tokens),
            None => (self.clone(), Vec::new()),
        }
    }

    /// Returns these parameters for a request with these messages. With a thinking budget an answer whose calls have
    /// just been answered must begin with reasoning; where another model gave it, there is none, and the rest of the
    /// loop does without a budget.
    pub(crate) fn for_messages<'a>(&'a self, messages: &[ViewMessage]) -> Cow<'a, Self> {
        let Some(Thinking::Enabled { .. }) = self.thinking else { return Cow::Borrowed(self) };
        let has_calls = |it: &ViewMessage| it.blocks.iter().any(|it| it.as_tool_use().is_some());
        let begins = |it: &ViewMessage| {
            let first = it.blocks.first().map(Block::kind);
            matches!(first, Some(BlockKind::Thinking { .. } | BlockKind::RedactedThinking))
        };
        match messages {
            [.., answer, results] if results.role == Role::User && has_calls(answer) => {
                if begins(answer) {
                    return Cow::Borrowed(self);
                }
                Cow::Owned(Self { thinking: None, ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }

    fn adapt_effort(&mut self, model: &ThinkingSupport, changes: &mut Vec<Change>) {
        let Some(wanted) = self.effort else { return };
        // Taken by every model, since it is the same as the default.
        if wanted == Effort::High || model.efforts.contains(&wanted) {
            return;
        }
        self.effort = model.effort(wanted);
        changes.push(match self.effort {
            Some(_) => Change::EffortLowered,
            None => Change::EffortLeftOut,
        });
    }

    fn adapt_thinking(&mut self, facts: &ModelFacts, max_tokens: u32, changes: &mut Vec<Change>) {
        let model = &facts.thinking;
        match self.thinking {
            None => {}
            Some(Thinking::Disabled) if model.may_disable(self.effort) => {}
            Some(Thinking::Disabled) if model.may_disable(Some(Effort::High)) => {
                self.effort = Some(Effort::High);
                changes.push(Change::EffortLowered);
            }
            Some(Thinking::Disabled) => {
                self.thinking = None;
                changes.push(Change::CannotDisable);
            }
            Some(Thinking::Enabled { display, .. }) if !model.manual && model.adaptive => {
                self.thinking = Some(Thinking::Adaptive { display });
                changes.push(Change::BudgetToAdaptive);
            }
            Some(Thinking::Adaptive { .. }) if model.adaptive => {}
            Some(Thinking::Adaptive { display }) if model.manual => {
                changes.push(Change::AdaptiveToBudget);
                self.set_budget(facts.reasoning_budget(max_tokens), display, max_tokens, changes);
            }
            Some(Thinking::Enabled { budget_tokens, display }) if model.manual => {
                self.set_budget(budget_tokens, display, max_tokens, changes);
            }
            Some(Thinking::Adaptive { .. } | Thinking::Enabled { .. }) => {
                self.thinking = None;
                changes.push(Change::ThinkingLeftOut);
            }
        }
    }

    fn set_budget(
        &mut self,
        wanted: u32,
        display: Option<ThinkingDisplay>,
        max_tokens: u32,
        changes: &mut Vec<Change>,
    ) {
        let most = max_tokens.saturating_sub(1);
        if most < MIN_THINKING_BUDGET {
            self.thinking = None;
            changes.push(Change::ThinkingLeftOut);
            return;
        }
        let budget_tokens = wanted.clamp(MIN_THINKING_BUDGET, most);
        if budget_tokens != wanted {
            changes.push(Change::BudgetMoved);
        }
        self.thinking = Some(Thinking::Enabled { budget_tokens, display });
    }

    fn adapt_sampling(&mut self, model: &ThinkingSupport, changes: &mut Vec<Change>) {
        let thinks = match self.thinking {
            None => model.on_by_default,
            Some(Thinking::Disabled) => false,
            Some(Thinking::Adaptive { .. } | Thinking::Enabled { .. }) => true,
        };
        let takes_it = match model.sampling {
            Sampling::Free => true,
            Sampling::WithoutThinking => !thinks,
            Sampling::Refused => false,
        };
        let is_sampled = self.temperature.is_some() || self.top_p.is_some() || self.top_k.is_some();
        if is_sampled && !takes_it {
            (self.temperature, self.top_p, self.top_k) = (None, None, None);
            changes.push(Change::SamplingLeftOut);
        }
    }

    /// Appends the members of a request for Claude, each with a comma in front, in a fixed order.
    /// Appends nothing where nothing is set; betas are not among them.
    pub(crate) fn push_members(&self, out: &mut String) {
        let display = |display: Option<ThinkingDisplay>| match display {
            None => "",
            Some(ThinkingDisplay::Summarized) => r#","display":"summarized""#,
            Some(ThinkingDisplay::Omitted) => r#","display":"omitted""#,
        };
        match self.thinking {
            None => {}
            Some(Thinking::Disabled) => out.push_str(r#","thinking":{"type":"disabled"}"#),
            Some(Thinking::Adaptive { display: it }) => {
                let display = display(it);
                out.push_str(&format!(r#","thinking":{{"type":"adaptive"{display}}}"#));
            }
            Some(Thinking::Enabled { budget_tokens, display: it }) => {
                let display = display(it);
                out.push_str(&format!(
                    r#","thinking":{{"type":"enabled","budget_tokens":{budget_tokens}{display}}}"#
                ));
            }
        }
        let effort = self.effort.filter(|it| *it != Effort::High);
        let effort = effort.map(|it| format!(r#""effort":"{}""#, it.as_wire()));
        let budget = self
            .task_budget
            .map(|total| format!(r#""task_budget":{{"type":"tokens","total":{total}}}"#));
        let output: Vec<String> = effort.into_iter().chain(budget).collect();
        if !output.is_empty() {
            out.push_str(&format!(r#","output_config":{{{}}}"#, output.join(",")));
        }
        for (name, value) in [("temperature", &self.temperature), ("top_p", &self.top_p)] {
            if let Some(value) = value {
                out.push_str(&format!(r#","{name}":{value}"#));
            }
        }
        if let Some(top_k) = self.top_k {
            out.push_str(&format!(r#","top_k":{top_k}"#));
        }
        if !self.stop_sequences.is_empty() {
            let list = quoted(&self.stop_sequences);
            out.push_str(&format!(r#","stop_sequences":[{list}]"#));
        }
        if let Some(user) = &self.user_id {
            out.push_str(&format!(r#","metadata":{{"user_id":{}}}"#, quote(user)));
        }
    }

    /// Returns the betas as a list of JSON strings without brackets; empty when there are none.
    pub(crate) fn quoted_betas(&self) -> String {
        quoted(&self.all_betas())
    }

    /// Returns the betas as the value of the header `anthropic-beta`.
    pub(crate) fn beta_header(&self) -> Option<Arc<str>> {
        let betas = self.all_betas();
        (!betas.is_empty()).then(|| betas.join(",").into())
    }

    /// Those that were asked for, and what other parameters need.
    fn all_betas(&self) -> Vec<String> {
        let needed = self.task_budget.map(|_| TASK_BUDGETS.to_owned());
        let is_new = |it: &String| !self.betas.contains(it);
        self.betas.iter().cloned().chain(needed.filter(is_new)).collect()
    }
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|it| quote(it)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
