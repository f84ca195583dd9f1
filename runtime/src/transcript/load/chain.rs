//! From lines to a conversation: follows the links from the newest message back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
    nodes: Vec<Node>,
    by_id: BTreeMap<EntryId, usize>,
}

struct Node {
    id: EntryId,
    line: u64,
    parent: Option<EntryId>,
    /// It follows something, and what that is cannot be read.
    lost_link: bool,
    what: ChainLink,
}

enum ChainLink {
    HistoryUpdate(Arc<Message>),
    Boundary { preserved: Option<(EntryId, EntryId)> },
    Other,
}

/// A compaction that has its summary.
struct Compaction {
    boundary: usize,
    summary: usize,
}

impl Node {
    fn said(&self) -> Option<&Arc<Message>> {
        match &self.what {
            ChainLink::HistoryUpdate(message) => Some(message),
            _ => None,
        }
    }

    /// Whether a user or the model says it.
    fn is_message(&self) -> bool {
        self.said().is_some_and(|message| message.role != Role::System)
    }

    fn is_summary(&self) -> bool {
        self.said().is_some_and(|message| message.kind == MessageKind::CompactSummary)
    }

    fn results(&self) -> impl Iterator<Item = &ToolUseId> {
        let blocks = self.said().map_or(&[][..], |message| &message.blocks[..]);
        blocks.iter().filter_map(Block::as_tool_result).map(|(id, ..)| id)
    }
}

impl Nodes {
    pub(super) fn add_said(
        &mut self,
        line: u64,
        said: ConversationLine,
        lost_link: bool,
        report: &mut Vec<Report>,
    ) {
        let id = said.message.id.clone();
        if let Some(first) = self.by_id.get(&id) {
            let same = match &self.nodes[*first].what {
                ChainLink::HistoryUpdate(message) => *message == said.message,
                ChainLink::Boundary { .. } => said.boundary.is_some(),
                ChainLink::Other => false,
            };
            let kind = if same { ReportKind::DuplicateId } else { ReportKind::DuplicateIdConflict };
            report.push(Report::at(kind, line));
            return;
        }
        let what = match said.boundary {
            Some(boundary) => ChainLink::Boundary { preserved: boundary.preserved },
            None => ChainLink::HistoryUpdate(said.message),
        };
        self.add(Node { id, line, parent: said.parent, lost_link, what });
    }

    pub(super) fn add_other(&mut self, id: EntryId, parent: Option<EntryId>) {
        if !self.by_id.contains_key(&id) {
            self.add(Node { id, line: 0, parent, lost_link: false, what: ChainLink::Other });
        }
    }

    fn add(&mut self, node: Node) {
        self.by_id.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    /// The newest line of the conversation, marks and boundaries included.
    pub(super) fn last(&self) -> Option<EntryId> {
        let last = self.nodes.iter().rev().find(|node| !matches!(node.what, ChainLink::Other));
        last.map(|node| node.id.clone())
    }

    /// The messages from the last compaction or the root to the newest one.
    pub(super) fn conversation(&self, report: &mut Vec<Report>) -> Messages {
        let Some(leaf) = self.nodes.iter().rposition(Node::is_message) else {
            return Vec::new();
        };
        let compactions = self.compactions(report);
        let walked = self.ancestors(leaf, &compactions, report);
        let visited: BTreeSet<usize> = walked.iter().copied().collect();
        let active = compactions.iter().rev().find(|it| self.is_connected(it, &visited));
        let mut chosen: Vec<usize> = Vec::new();
        if let Some(active) = active {
            chosen.push(active.summary);
            chosen.extend(self.preserved(active.boundary, report));
        }
        let oldest = active.map_or(0, |it| it.boundary);
        for at in walked.into_iter().rev() {
            if oldest <= at && !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        self.adopt_answers(&mut chosen, report);
        let mut messages: Messages = Vec::new();
        let adopted = self.adopt_results(&chosen, report);
        for at in &chosen {
            messages.extend(self.nodes[*at].said().cloned());
            messages.extend(adopted.iter().filter(|it| it.behind == *at).map(|it| it.results()));
        }
        // What was noted after the newest message has nothing that names it yet.
        let behind = self.nodes[leaf + 1..].iter().filter_map(Node::said).cloned();
        messages.extend(behind);
        chosen.extend(visited);
        chosen.extend(adopted.iter().map(|it| it.at));
        self.report_forks(&chosen, oldest, report);
        messages
    }

    fn compactions(&self, report: &mut Vec<Report>) -> Vec<Compaction> {
        let mut found = Vec::new();
        for (boundary, node) in self.nodes.iter().enumerate() {
            if !matches!(node.what, ChainLink::Boundary { .. }) {
                continue;
            }
            let behind = || self.nodes.iter().enumerate().skip(boundary + 1);
            let named =
                behind().find(|(_, it)| it.is_summary() && it.parent.as_ref() == Some(&node.id));
            let next = || {
                behind()
                    .take_while(|(_, it)| !matches!(it.what, ChainLink::Boundary { .. }))
                    .find(|(_, it)| it.is_summary())
            };
            match named.or_else(next) {
                Some((summary, _)) => found.push(Compaction { boundary, summary }),
                None => report.push(Report::at(ReportKind::BoundaryWithoutSummary, node.line)),
            }
        }
        found
    }

    fn ancestors(
        &self,
        leaf: usize,
        compactions: &[Compaction],
        report: &mut Vec<Report>,
    ) -> Vec<usize> {
        let mut walked = vec![leaf];
        let mut visited = BTreeSet::from([leaf]);
        let mut at = leaf;
        loop {
            let node = &self.nodes[at];
            if compactions.iter().any(|it| it.boundary == at) {
                return walked;
            }
            let linked = match &node.parent {
                Some(parent) => self.by_id.get(parent).copied(),
                None if node.lost_link => None,
                None => return walked,
            };
            let next = match linked {
                Some(next) if !visited.contains(&next) => Some(next),
                _ => {
                    let before = (0..at)
                        .rev()
                        .find(|it| self.nodes[*it].is_message() && !visited.contains(it));
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
            let Some(next) = next else { return walked };
            walked.push(next);
            visited.insert(next);
            at = next;
        }
    }

    /// A compaction counts when the conversation goes on from it: not when somebody went back to
    /// before it.
    fn is_connected(&self, it: &Compaction, visited: &BTreeSet<usize>) -> bool {
        let before = self.nodes[..it.boundary].iter().rposition(Node::is_message);
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
        let mut next = Some(tail);
        while let Some(at) = next.and_then(|id| self.by_id.get(id)).copied() {
            if kept.contains(&at) {
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
    fn adopt_answers(&self, chosen: &mut Vec<usize>, report: &mut Vec<Report>) {
        let api_id = |at: usize| {
            let message = self.nodes[at].said()?;
            (message.role == Role::Assistant).then_some(message.api_id.as_ref()).flatten()
        };
        for at in 0..self.nodes.len() {
            if let Some(id) = api_id(at)
                && !chosen.contains(&at)
                && let Some(place) = chosen.iter().rposition(|it| api_id(*it) == Some(id))
            {
                chosen.insert(place + 1, at);
                report.push(Report::at(ReportKind::AdoptedAnswer, self.nodes[at].line));
            }
        }
    }

    fn adopt_results(&self, chosen: &[usize], report: &mut Vec<Report>) -> Vec<Adopted> {
        let mut calls: BTreeMap<&ToolUseId, usize> = BTreeMap::new();
        for at in chosen {
            let message = self.nodes[*at].said();
            calls.extend(message.iter().flat_map(|it| it.tool_uses()).map(|(id, ..)| (id, *at)));
        }
        let mut answered: BTreeSet<&ToolUseId> =
            chosen.iter().flat_map(|at| self.nodes[*at].results()).collect();
        let mut adopted = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if chosen.contains(&at) {
                continue;
            }
            let Some(message) = node.said() else { continue };
            let open = |id: &&ToolUseId| calls.contains_key(id) && !answered.contains(id);
            let Some(behind) = node.results().find(open).and_then(|id| calls.get(id)) else {
                continue;
            };
            answered.extend(node.results());
            adopted.push(Adopted { at, behind: *behind, message: message.clone() });
            report.push(Report::at(ReportKind::AdoptedResult, node.line));
        }
        adopted
    }

    fn report_forks(&self, taken: &[usize], oldest: usize, report: &mut Vec<Report>) {
        let taken: BTreeSet<usize> = taken.iter().copied().collect();
        let named: BTreeSet<&EntryId> =
            self.nodes.iter().filter_map(|node| node.parent.as_ref()).collect();
        let mut leaves = BTreeSet::new();
        for end in self.nodes.iter().filter(|node| !named.contains(&node.id)) {
            let mut seen = BTreeSet::new();
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

/// A message next to the chain that holds results of calls in it.
struct Adopted {
    at: usize,
    behind: usize,
    message: Arc<Message>,
}

impl Adopted {
    fn results(&self) -> Arc<Message> {
        let is_result = |block: &Block| block.as_tool_result().is_some();
        if self.message.blocks.iter().all(is_result) {
            return self.message.clone();
        }
        let mut only = Message::clone(&self.message);
        only.blocks.retain(is_result);
        only.kind = MessageKind::ToolResults;
        Arc::new(only)
    }
}
