//! Shaper 4 (`CONTEXT_COLLAPSE`): old texts are shown by their beginning.
//!
//! A projection made when the context is read: every message stays in its place with its role, its
//! calls and its thinking, and long texts and results in it shrink to a few lines and a reference.
//! The whole can be had again by reading the reference; a command that unfolds a message in place
//! is not built.

use super::{
    ShapedContext, ShaperSetup, StageResult, history, marker,
    pressure::{is_at_aim, token_limit, under_pressure},
    shaper3_microcompact,
};
use crate::{
    block::{Block, BlockKind},
    digest::Digest,
    message::MessageKind,
    tokens::Tokens,
};

/// Characters of a collapsed text that are still shown.
pub(crate) const SHOWN_CHARS: u64 = 200;

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    if !setup.settings.context_collapse {
        return Err("CONTEXT_COLLAPSE is off");
    }
    if under_pressure(context, setup).is_none() {
        return Err("no pressure");
    }
    if context.tokens <= token_limit(setup) {
        return Err("the number of messages would stay the same");
    }
    let is_due =
        |at: usize| context.messages[at].blocks.iter().any(|it| is_long(context, at, it, setup));
    if candidates(context, setup).any(is_due) {
        Ok(())
    } else {
        Err("no long text is left to collapse")
    }
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let mut messages = context.messages.to_vec();
    let mut stored = Vec::new();
    let mut tokens = context.tokens;
    let mut n_collapsed = 0_u64;
    for at in candidates(context, setup) {
        // The number of messages is what it is; only the tokens decide when to stop.
        if is_at_aim(tokens, 0, 0, setup) {
            break;
        }
        let before = messages[at].estimate();
        history::replace_blocks(&mut messages, at, |_, block| {
            if !is_long(context, at, block, setup) {
                return None;
            }
            let (block, whole) = collapse(block, setup)?;
            stored.push(whole);
            Some(block)
        });
        let freed = before.saturating_sub(messages[at].estimate());
        let freed = setup.counting.tokens(freed);
        tokens = tokens.saturating_sub(freed);
        n_collapsed += u64::from(freed != Tokens(0));
    }
    let collapsed = context.with(messages, setup.counting);
    let (context, cleared) = shaper3_microcompact::relieved(collapsed, setup);
    let also = shaper3_microcompact::also_cleared(cleared.len());
    let why = format!("collapsed {n_collapsed} old messages{also}");
    stored.extend(cleared);
    StageResult::Changed { context, stored, why }
}

/// The messages that may be collapsed, oldest first: not the newest ones, not what the list opens
/// with, no prompt that is being worked on, no summary.
fn candidates(context: &ShapedContext, setup: &ShaperSetup) -> impl Iterator<Item = usize> {
    let messages = &context.messages;
    let newest = history::newest_start(messages, setup.settings.keep_newest);
    let opening = history::opening(messages);
    let last_prompt = history::last_prompt(messages);
    (opening..newest).filter(move |i| {
        Some(*i) != last_prompt && messages[*i].kind != MessageKind::CompactSummary
    })
}

fn is_long(context: &ShapedContext, at: usize, block: &Block, setup: &ShaperSetup) -> bool {
    let mark = marker::max_chars(block.chars(), &setup.reference_prefix);
    if !marker::is_worth_it(SHOWN_CHARS.saturating_add(mark), block.chars()) {
        return false;
    }
    match block.kind() {
        BlockKind::Text(_) => true,
        BlockKind::ToolResult { id, .. } => {
            !history::tool_of(&context.messages, at, id).is_some_and(|it| setup.is_kept(it, block))
        }
        _ => false,
    }
}

fn collapse(block: &Block, setup: &ShaperSetup) -> Option<(Block, (Digest, String))> {
    let cut = |text| marker::cut(text, SHOWN_CHARS, 0, setup);
    match block.kind() {
        BlockKind::Text(text) => {
            let cut = cut(text);
            Some((Block::text(&cut.text), cut.stored))
        }
        BlockKind::ToolResult { id, text, is_error } => {
            let cut = cut(text);
            Some((Block::tool_result(id, &cut.text, *is_error), cut.stored))
        }
        _ => None,
    }
}
