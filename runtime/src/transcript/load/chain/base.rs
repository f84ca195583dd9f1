//! A conversation that new lines only go on from.
//!
//! Following the links takes time in proportion to all lines. Where each new line is linked to the one
//! before it, and nothing outside of the chain bears an id of it, they are simply added at the end.

use std::{collections::BTreeSet, sync::Arc};

use super::{ChainNode, Nodes};
use crate::{ids::ToolUseId, run::history::History};

/// A conversation that was put together, up to one of the lines.
pub(in crate::transcript::load) struct Base {
    n_nodes: usize,
    pub(in crate::transcript::load) recorded: History,
    off_chain: OffChain,
}

/// What lines bear that are not on the chain: a message that bears it as well may draw them in.
#[derive(Default)]
struct OffChain {
    answers: BTreeSet<Arc<str>>,
    calls: BTreeSet<ToolUseId>,
}

impl OffChain {
    fn note(&mut self, node: &ChainNode) {
        self.answers.extend(node.message().and_then(|it| it.api_id.clone()));
        self.calls.extend(node.results().cloned());
    }

    fn concerns(&self, node: &ChainNode) -> bool {
        let Some(message) = node.message() else { return false };
        message.api_id.as_ref().is_some_and(|it| self.answers.contains(it))
            || message.tool_uses().any(|(id, ..)| self.calls.contains(id))
    }
}

impl Nodes {
    /// Follows the conversation anew, and returns what is needed to continue from it; `None` where lines that come can
    /// change it.
    pub(in crate::transcript::load) fn anew(&self) -> (History, Option<Base>) {
        let (messages, taken) = self.follow(&mut Vec::new());
        let recorded: History = messages.into_iter().collect();
        // The lines after the newest message must be linked to it one by one.
        let is_chain = self.messages.last().is_some_and(|leaf| {
            (leaf + 1..self.nodes.len()).all(|at| self.follows(at) && !self.nodes[at].is_message())
        });
        let base = is_chain.then(|| {
            let mut off_chain = OffChain::default();
            let left_out = (0..self.nodes.len()).filter(|at| !taken.contains(at));
            left_out.for_each(|at| off_chain.note(&self.nodes[at]));
            Base { n_nodes: self.nodes.len(), recorded: recorded.clone(), off_chain }
        });
        (recorded, base)
    }

    /// Adds the messages since then to a conversation; `None` where it does not simply go on.
    pub(in crate::transcript::load) fn go_on(&self, mut base: Base) -> Option<Base> {
        for at in base.n_nodes..self.nodes.len() {
            let node = &self.nodes[at];
            let is_next = self.follows(at) && !node.is_summary() && !base.off_chain.concerns(node);
            base.recorded.push(Arc::clone(node.message().filter(|_| is_next)?));
        }
        base.n_nodes = self.nodes.len();
        Some(base)
    }

    /// Whether a line is a message or a mark that is linked to the line before it.
    fn follows(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|it| self.nodes.get(it));
        let node = &self.nodes[at];
        node.message().is_some() && before.is_some_and(|it| node.parent.as_ref() == Some(&it.id))
    }
}
