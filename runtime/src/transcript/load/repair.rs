//! Makes a conversation that a model accepts out of one that was recorded.
//!
//! Roles take turns, every call has its result right after it in the order of the calls, nothing
//! is blank. What was recorded is not changed: a message that needs no repair is the same message.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{OpenCall, Report, ReportKind};
use crate::{
    block::{Block, BlockKind},
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Messages, Role},
};

/// What the model reads where the outcome of a call is not known.
pub(crate) const UNKNOWN_OUTCOME: &str = "The call was interrupted and its outcome is not known. It may have had some or all of its effect. It was not run again.";

/// A conversation after its repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// What a model accepts.
    pub messages: Messages,
    /// Everything that was wrong with the conversation.
    pub report: Vec<Report>,
    /// Calls whose result was made up.
    pub open: Vec<OpenCall>,
}

/// A message in the making.
#[derive(Clone)]
struct Draft {
    /// Where it comes from; names it.
    origin: Arc<Message>,
    role: Role,
    kind: MessageKind,
    blocks: Vec<Block>,
}

/// A result and where it was found.
struct FoundResult {
    at: usize,
    id: ToolUseId,
    block: Block,
    origin: Arc<Message>,
    used: bool,
}

/// Repairs a conversation. Marks are left out.
pub(crate) fn repair(recorded: &[Arc<Message>]) -> Repaired {
    let mut report = Vec::new();
    let mut drafts = drafts(recorded, &mut report);
    drop_last_thinking(&mut drafts, &mut report);
    let mut open = Vec::new();
    let paired = pair(drafts, &mut open, &mut report);
    let mut messages: Messages = Vec::new();
    let mut last: Option<Draft> = None;
    for draft in paired.into_iter().filter(|draft| !draft.blocks.is_empty()) {
        match &mut last {
            Some(before) if before.role == draft.role => join(before, draft),
            _ => messages.extend(last.replace(draft).map(finish)),
        }
    }
    messages.extend(last.map(finish));
    Repaired { messages, report, open }
}

/// One draft per message, answers in several pieces joined; what cannot be sent is left out.
fn drafts(recorded: &[Arc<Message>], report: &mut Vec<Report>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    // The last that is more than results.
    let mut last: Option<usize> = None;
    let mut begun = false;
    for message in recorded.iter().filter(|message| message.role != Role::System) {
        let mut draft = Draft {
            origin: message.clone(),
            role: message.role,
            kind: message.kind,
            blocks: message.blocks.clone(),
        };
        draft.blocks.retain(|block| match block.kind() {
            BlockKind::Text(text) => !text.trim().is_empty(),
            BlockKind::Thinking { signature: None, .. } => {
                report.push(Report::of(ReportKind::UnsignedThinking));
                false
            }
            BlockKind::StopRequest | BlockKind::Error(_) => false,
            _ => true,
        });
        begun |= draft.role == Role::User && !is_results(&draft);
        if !begun {
            // Results of what is dropped here have no call and go the same way.
            if draft.role == Role::Assistant {
                report.push(Report::of(ReportKind::LeadingAssistantDropped));
                continue;
            }
        }
        match last.filter(|at| is_same_answer(&drafts[*at], &draft)) {
            Some(at) => drafts[at].blocks.append(&mut draft.blocks),
            None => {
                if !is_results(&draft) {
                    last = Some(drafts.len());
                }
                drafts.push(draft);
            }
        }
    }
    drafts
}

/// Whether this is another piece of an answer; nothing but results is between them.
fn is_same_answer(before: &Draft, draft: &Draft) -> bool {
    let is_answer = before.role == Role::Assistant && draft.role == Role::Assistant;
    is_answer && draft.origin.api_id.is_some() && draft.origin.api_id == before.origin.api_id
}

fn is_results(draft: &Draft) -> bool {
    draft.role == Role::User && draft.blocks.iter().all(|block| block.as_tool_result().is_some())
}

fn drop_last_thinking(drafts: &mut Vec<Draft>, report: &mut Vec<Report>) {
    let last = drafts.iter().rposition(|it| it.role == Role::Assistant && !it.blocks.is_empty());
    let only_thinks = |draft: &Draft| {
        draft.blocks.iter().all(|block| {
            matches!(block.kind(), BlockKind::Thinking { .. } | BlockKind::RedactedThinking)
        })
    };
    if let Some(at) = last
        && only_thinks(&drafts[at])
    {
        drafts.remove(at);
        report.push(Report::of(ReportKind::ThinkingOnlyDropped));
    }
}

/// Takes all results out and puts each right after its call.
fn pair(drafts: Vec<Draft>, open: &mut Vec<OpenCall>, report: &mut Vec<Report>) -> Vec<Draft> {
    let mut found = Vec::new();
    // Places in `found`, in order.
    let mut by_call: BTreeMap<ToolUseId, VecDeque<usize>> = BTreeMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        for block in &draft.blocks {
            let Some((id, ..)) = block.as_tool_result() else { continue };
            by_call.entry(id.clone()).or_default().push_back(found.len());
            let (id, block, origin) = (id.clone(), block.clone(), draft.origin.clone());
            found.push(FoundResult { at, id, block, origin, used: false });
        }
    }
    let mut answered: BTreeSet<ToolUseId> = BTreeSet::new();
    let mut paired = Vec::with_capacity(drafts.len());
    for (at, mut draft) in drafts.into_iter().enumerate() {
        if draft.role == Role::User {
            draft.blocks.retain(|block| block.as_tool_result().is_none());
            paired.push(draft);
            continue;
        }
        let answer = draft.origin.clone();
        let mut results = Vec::new();
        let mut origin = None;
        for (id, tool, _) in draft.blocks.iter().filter_map(Block::as_tool_use) {
            let mut first = None;
            if let Some(places) = by_call.get_mut(id) {
                // One in front of this call is in front of all that follow.
                while first.is_none_or(|place: usize| found[place].at <= at)
                    && let Some(place) = places.pop_front()
                {
                    first = Some(place);
                }
            }
            let first = first.map(|place| &mut found[place]).filter(|it| at < it.at);
            if let Some(first) = first {
                first.used = true;
                answered.insert(id.clone());
                origin.get_or_insert_with(|| first.origin.clone());
                results.push(first.block.clone());
            } else {
                report.push(Report::of(ReportKind::OrphanToolUse));
                let line = answer.id.clone();
                open.push(OpenCall { call: id.clone(), tool: tool.clone(), line });
                results.push(Block::tool_result(id, UNKNOWN_OUTCOME, true));
            }
        }
        paired.push(draft);
        if !results.is_empty() {
            let origin = origin.unwrap_or_else(|| made_up(&answer));
            let kind = MessageKind::ToolResults;
            paired.push(Draft { origin, role: Role::User, kind, blocks: results });
        }
    }
    for left in found.iter().filter(|it| !it.used) {
        report.push(Report::of(if answered.contains(&left.id) {
            ReportKind::DuplicateToolResult
        } else {
            ReportKind::OrphanToolResult
        }));
    }
    paired
}

/// Names a message that repair adds. It is part of the view only and never recorded.
fn made_up(answer: &Message) -> Arc<Message> {
    let id = EntryId::new(format!("{}:results", answer.id));
    Arc::new(Message::user(id, MessageKind::ToolResults, Vec::new()))
}

fn join(before: &mut Draft, mut draft: Draft) {
    // A joined message is a prompt as soon as a part of it is.
    if draft.kind == MessageKind::Prompt {
        before.kind = MessageKind::Prompt;
    }
    before.blocks.append(&mut draft.blocks);
}

fn finish(draft: Draft) -> Arc<Message> {
    let Draft { origin, role, kind, blocks } = draft;
    if origin.kind == kind && origin.blocks == blocks {
        return origin;
    }
    Arc::new(Message { role, kind, blocks, ..Message::clone(&origin) })
}
