//! A context between two stages, and what a stage did to it.

use super::SummaryRequest;
use crate::{
    digest::Digest,
    message::{Messages, SharedMessages, estimate_of},
    tokens::{Counting, Tokens},
};

/// A context between two stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapedContext {
    /// The conversation as the model will see it.
    pub messages: SharedMessages,
    /// What the whole request is thought to take; the caller anchors it on the last reported usage. A
    /// stage takes off what it freed by its own estimate.
    pub tokens: Tokens,
}

impl ShapedContext {
    /// Makes a context whose size is that of its messages by characters alone.
    #[cfg(test)]
    pub(crate) fn estimated(messages: Messages) -> Self {
        let tokens = crate::message::tokens_of(&messages);
        Self { messages: messages.into(), tokens }
    }

    /// The same context with other messages. What the estimate says they save is taken off.
    pub(super) fn with(&self, messages: Messages, counting: Counting) -> Self {
        let (before, after) = (estimate_of(self.messages.walk()), estimate_of(&messages));
        let freed = counting.tokens(before.saturating_sub(after));
        Self { messages: messages.into(), tokens: self.tokens.saturating_sub(freed) }
    }
}

/// What a stage did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageResult {
    /// The stage changed nothing.
    Unchanged {
        /// Why, for the log.
        why: String,
    },
    /// The context got smaller.
    Changed {
        /// The context after the stage.
        context: ShapedContext,
        /// Full texts of what was cut, by digest; to be kept before the context is used.
        stored: Vec<(Digest, String)>,
        /// What was done, for the log.
        why: String,
    },
    /// The stage needs a model call, whose answer `apply_summary` takes.
    NeedsSummary(Box<SummaryRequest>),
}

/// A change that freed nothing is not a change.
pub(super) fn proven_smaller(before: &ShapedContext, result: StageResult) -> StageResult {
    match result {
        StageResult::Changed { context, .. } if !is_smaller(&context, before) => {
            StageResult::Unchanged { why: "did not make the context smaller".into() }
        }
        result => result,
    }
}

fn is_smaller(after: &ShapedContext, before: &ShapedContext) -> bool {
    // Counted in characters and messages: tokens are rounded, and an anchored count can be at 0.
    let chars = |it: &ShapedContext| -> u64 {
        it.messages.iter().flat_map(|it| &it.blocks).map(crate::block::Block::chars).sum()
    };
    let (after_chars, before_chars) = (chars(after), chars(before));
    after_chars < before_chars
        || (after_chars == before_chars && after.messages.len() < before.messages.len())
}
