//! From lines to a conversation: follows the links from the newest message back.

mod adopted;
mod base;
mod unused;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(super) use base::Base;

use self::adopted::Adopted;
use super::{Report, ReportKind};
use crate::{
    block::Block,
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Messages, Role},
    transcript::entry::ConversationLine,
};

/// The lines that can be linked to, in the order of the file.
#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<ChainNode>,
    by_id: BTreeMap<EntryId, usize>,
    /// Places of those that a user or the model says.
    messages: Vec<usize>,
}

struct ChainNode {
    id: EntryId,
    line: u64,
    parent: Option<EntryId>,
    /// It follows something, and what that is cannot be read.
    lost_link: bool,
    what: ChainLink,
}

enum ChainLink {
    Message(Arc<Message>),
    Boundary { preserved: Option<(EntryId, EntryId)> },
    Other,
}

/// A compaction that has its summary.
struct Compaction {
    boundary: usize,
    summary: usize,
}

impl ChainNode {
    fn message(&self) -> Option<&Arc<Message>> {
        match &self.what {
            ChainLink::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Whether a user or the model says it.
    fn is_message(&self) -> bool {
        self.message().is_some_and(|message| message.role != Role::System)
    }

    fn is_summary(&self) -> bool {
        self.message().is_some_and(|message| message.kind == MessageKind::CompactSummary)
    }

    fn results(&self) -> impl Iterator<Item = &ToolUseId> {
        let blocks = self.message().map_or(&[][..], |message| &message.blocks[..]);
        blocks.iter().filter_map(Block::as_tool_result).map(|(id, ..)| id)
    }
}

impl Nodes {
    pub(super) fn add_message(
        &mut self,
        line: u64,
        entry_line: &ConversationLine,
        message: Arc<Message>,
        lost_link: bool,
        report: &mut Vec<Report>,
    ) {
        let id = message.id.clone();
        if let Some(first) = self.by_id.get(&id) {
            let same = match &self.nodes[*first].what {
                ChainLink::Message(first) => *first == message,
                ChainLink::Boundary { .. } => entry_line.boundary.is_some(),
                ChainLink::Other => false,
            };
            let kind = if same { ReportKind::DuplicateId } else { ReportKind::DuplicateIdConflict };
            report.push(Report::at(kind, line));
            return;
        }
        let what = match &entry_line.boundary {
            Some(boundary) => ChainLink::Boundary { preserved: boundary.preserved.clone() },
            None => ChainLink::Message(message),
        };
        self.add(ChainNode { id, line, parent: entry_line.parent.clone(), lost_link, what });
    }

    pub(super) fn add_other(&mut self, id: EntryId, parent: Option<EntryId>) {
        if !self.by_id.contains_key(&id) {
            self.add(ChainNode { id, line: 0, parent, lost_link: false, what: ChainLink::Other });
        }
    }

    /// Withdraws a message from the conversation. What is linked to it stays linked.
    pub(super) fn withdraw(&mut self, id: &EntryId) {
        let Some(at) = self.by_id.get(id).copied() else { return };
        self.nodes[at].what = ChainLink::Other;
        self.messages.retain(|it| *it != at);
    }

    fn add(&mut self, node: ChainNode) {
        self.by_id.insert(node.id.clone(), self.nodes.len());
        if node.is_message() {
            self.messages.push(self.nodes.len());
        }
        self.nodes.push(node);
    }

    /// Returns the newest line of the conversation, marks and boundaries included.
    pub(super) fn last(&self) -> Option<EntryId> {
        let last = self.nodes.iter().rev().find(|node| !matches!(node.what, ChainLink::Other));
        last.map(|node| node.id.clone())
    }

    /// Returns the messages from the last compaction or the root to the newest one.
    pub(super) fn conversation(&self, report: &mut Vec<Report>) -> Messages {
        self.follow(report).0
    }

    /// The conversation, and the places of what the walk itself took into it.
    fn follow(&self, report: &mut Vec<Report>) -> (Messages, BTreeSet<usize>) {
        let Some(leaf) = self.messages.last().copied() else {
            // Marks may be left of a prompt that was withdrawn.
            let marks = self.nodes.iter().filter_map(ChainNode::message).cloned();
            return (marks.collect(), BTreeSet::new());
        };
        let compactions = self.compactions(report);
        let (walked, visited) = self.ancestors(leaf, &compactions, report);
        let active = compactions.iter().rev().find(|it| self.is_connected(it, &visited));
        let mut chosen: Vec<usize> = Vec::new();
        if let Some(active) = active {
            chosen.push(active.summary);
            chosen.extend(self.preserved(active.boundary, report));
        }
        let oldest = active.map_or(0, |it| it.boundary);
        let mut taken: BTreeSet<usize> = chosen.iter().copied().collect();
        chosen.extend(walked.into_iter().rev().filter(|at| oldest <= *at && taken.insert(*at)));
        let on_chain: BTreeSet<usize> =
            taken.iter().copied().chain(leaf..self.nodes.len()).collect();
        let chosen = self.adopt_answers(chosen, &mut taken, report);
        let adopted = self.adopt_results(&chosen, &taken, report);
        let mut after: BTreeMap<usize, Vec<&Adopted>> = BTreeMap::new();
        for it in &adopted {
            after.entry(it.after).or_default().push(it);
        }
        let mut messages: Messages = Vec::new();
        for at in &chosen {
            messages.extend(self.nodes[*at].message().cloned());
            messages.extend(after.get(at).into_iter().flatten().map(|it| it.results()));
        }
        // What was noted after the newest message has nothing that names it yet.
        let after = self.nodes[leaf + 1..].iter().filter_map(ChainNode::message).cloned();
        messages.extend(after);
        taken.extend(visited);
        taken.extend(adopted.iter().map(|it| it.at));
        self.report_forks(&taken, oldest, report);
        (messages, on_chain)
    }

    fn compactions(&self, report: &mut Vec<Report>) -> Vec<Compaction> {
        // From the end, so that what comes after a boundary is known when it is met.
        let mut named: BTreeMap<&EntryId, usize> = BTreeMap::new();
        let mut next = None;
        let mut found = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if node.is_summary() {
                named.extend(node.parent.as_ref().map(|it| (it, at)));
                next = Some(at);
            } else if let ChainLink::Boundary { .. } = node.what {
                found.push((at, named.get(&node.id).copied().or(next.take())));
                next = None;
            }
        }
        let mut compactions = Vec::new();
        for (boundary, summary) in found.into_iter().rev() {
            let line = self.nodes[boundary].line;
            match summary {
                Some(summary) => compactions.push(Compaction { boundary, summary }),
                None => report.push(Report::at(ReportKind::BoundaryWithoutSummary, line)),
            }
        }
        compactions
    }

    /// The nearest message in front of a place.
    fn message_before(&self, at: usize) -> Option<usize> {
        let n_before = self.messages.partition_point(|it| *it < at);
        self.messages[..n_before].last().copied()
    }

    fn ancestors(
        &self,
        leaf: usize,
        compactions: &[Compaction],
        report: &mut Vec<Report>,
    ) -> (Vec<usize>, BTreeSet<usize>) {
        let boundaries: BTreeSet<usize> = compactions.iter().map(|it| it.boundary).collect();
        let mut walked = vec![leaf];
        let mut visited = BTreeSet::from([leaf]);
        // Messages that were not walked past; made where the first link is broken.
        let mut left: Option<BTreeSet<usize>> = None;
        let mut at = leaf;
        loop {
            let node = &self.nodes[at];
            if boundaries.contains(&at) {
                return (walked, visited);
            }
            let linked = match &node.parent {
                Some(parent) => self.by_id.get(parent).copied(),
                None if node.lost_link => None,
                None => return (walked, visited),
            };
            let next = match linked {
                Some(next) if !visited.contains(&next) => Some(next),
                _ => {
                    let of_rest =
                        || self.messages.iter().filter(|it| !visited.contains(it)).copied();
                    let left = left.get_or_insert_with(|| of_rest().collect());
                    let before = left.range(..at).next_back().copied();
                    let kind = match linked {
                        Some(_) => ReportKind::Cycle,
                        None => ReportKind::BrokenLink,
                    };
                    if node.parent.is_some() || before.is_some() {
                        report.push(Report::at(kind, node.line));
                    }
                    before
                }
            };
            let Some(next) = next else { return (walked, visited) };
            walked.push(next);
            visited.insert(next);
            if let Some(left) = &mut left {
                left.remove(&next);
            }
            at = next;
        }
    }

    /// A compaction counts when the conversation goes on from it: not when somebody went back to
    /// before it.
    fn is_connected(&self, it: &Compaction, visited: &BTreeSet<usize>) -> bool {
        let before = self.message_before(it.boundary);
        let kept = match &self.nodes[it.boundary].what {
            ChainLink::Boundary { preserved: Some((_, tail)) } => self.by_id.get(tail).copied(),
            _ => None,
        };
        [Some(it.boundary), Some(it.summary), before, kept]
            .into_iter()
            .flatten()
            .any(|at| visited.contains(&at))
    }

    fn preserved(&self, boundary: usize, report: &mut Vec<Report>) -> Vec<usize> {
        let ChainLink::Boundary { preserved: Some((head, tail)) } = &self.nodes[boundary].what
        else {
            return Vec::new();
        };
        let mut kept = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = Some(tail);
        while let Some(at) = next.and_then(|id| self.by_id.get(id)).copied() {
            if !seen.insert(at) {
                break;
            }
            kept.push(at);
            if self.nodes[at].id == *head {
                kept.reverse();
                // The new summary represents an earlier one that was written in between.
                kept.retain(|it| !self.nodes[*it].is_summary());
                return kept;
            }
            next = self.nodes[at].parent.as_ref();
        }
        report.push(Report::at(ReportKind::BrokenBoundary, self.nodes[boundary].line));
        Vec::new()
    }

    /// Some writers give each block of an answer a line of its own; a result that hangs on one of
    /// them leaves the later ones next to the chain.
    fn adopt_answers(
        &self,
        chosen: Vec<usize>,
        taken: &mut BTreeSet<usize>,
        report: &mut Vec<Report>,
    ) -> Vec<usize> {
        // Some servers count their answers from 0 in each process: an id names one answer only as
        // long as there is no new prompt and nothing is compacted.
        let stretch = self.stretches(|it| it.kind == MessageKind::Prompt && it.role == Role::User);
        let api_id = |at: usize| {
            let message = self.nodes[at].message()?;
            let id = (message.role == Role::Assistant).then_some(message.api_id.as_ref()).flatten();
            Some((stretch[at], id?))
        };
        let last: BTreeMap<(usize, &Arc<str>), usize> =
            chosen.iter().filter_map(|at| Some((api_id(*at)?, *at))).collect();
        let mut pieces: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.nodes.len() {
            if let Some(after) = api_id(at).and_then(|id| last.get(&id))
                && taken.insert(at)
            {
                pieces.entry(*after).or_default().push(at);
                report.push(Report::at(ReportKind::AdoptedAnswer, self.nodes[at].line));
            }
        }
        let with_pieces =
            |at: usize| [at].into_iter().chain(pieces.remove(&at).unwrap_or_default());
        chosen.into_iter().flat_map(with_pieces).collect()
    }

    /// Numbers the stretches of the file, by node. One begins at each compaction, and at each message
    /// of this kind.
    fn stretches(&self, begins: impl Fn(&Message) -> bool) -> Vec<usize> {
        let mut n_stretches = 0;
        let of_node = |node: &ChainNode| {
            let is_begin = matches!(node.what, ChainLink::Boundary { .. })
                || node.message().is_some_and(|it| begins(it));
            n_stretches += usize::from(is_begin);
            n_stretches
        };
        self.nodes.iter().map(of_node).collect()
    }

    fn adopt_results(
        &self,
        chosen: &[usize],
        taken: &BTreeSet<usize>,
        report: &mut Vec<Report>,
    ) -> Vec<Adopted> {
        let mut calls: BTreeMap<&ToolUseId, usize> = BTreeMap::new();
        for at in chosen {
            let message = self.nodes[*at].message();
            calls.extend(message.iter().flat_map(|it| it.tool_uses()).map(|(id, ..)| (id, *at)));
        }
        let mut answered: BTreeSet<&ToolUseId> =
            chosen.iter().flat_map(|at| self.nodes[*at].results()).collect();
        let mut adopted = Vec::new();
        let stretch = self.stretches(|_| false);
        for (at, node) in self.nodes.iter().enumerate() {
            if taken.contains(&at) {
                continue;
            }
            let Some(message) = node.message() else { continue };
            // A call that bears the id of one before a compaction is another call.
            let open = |id: &&ToolUseId| {
                calls.get(id).is_some_and(|of| stretch[*of] == stretch[at])
                    && !answered.contains(id)
            };
            let Some(after) = node.results().find(open).and_then(|id| calls.get(id)) else {
                continue;
            };
            answered.extend(node.results());
            adopted.push(Adopted { at, after: *after, message: message.clone() });
            report.push(Report::at(ReportKind::AdoptedResult, node.line));
        }
        adopted
    }

    fn report_forks(&self, taken: &BTreeSet<usize>, oldest: usize, report: &mut Vec<Report>) {
        let named: BTreeSet<&EntryId> =
            self.nodes.iter().filter_map(|node| node.parent.as_ref()).collect();
        let mut leaves = BTreeSet::new();
        // What others hang on as well leads to a leaf that was found with them.
        let mut seen = BTreeSet::new();
        for end in self.nodes.iter().filter(|node| !named.contains(&node.id)) {
            let mut at = self.by_id.get(&end.id).copied();
            // Progress and the like hang on messages; the leaf is the message.
            while let Some(here) = at.filter(|it| !self.nodes[*it].is_message() && seen.insert(*it))
            {
                at = self.nodes[here].parent.as_ref().and_then(|it| self.by_id.get(it)).copied();
            }
            leaves.extend(
                at.filter(|it| {
                    self.nodes[*it].is_message() && oldest <= *it && !taken.contains(it)
                }),
            );
        }
        if !leaves.is_empty() {
            let count = Some(leaves.len() as u64);
            report.push(Report { count, ..Report::of(ReportKind::Fork) });
        }
    }
}
