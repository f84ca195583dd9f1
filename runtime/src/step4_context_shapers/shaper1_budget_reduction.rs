//! Shaper 1: no tool result is larger than its cap.
//!
//! Always on; the newest results are cut, too. A tool's own cap holds where it is larger. Beginning and end stay, the middle is replaced by a
//! reference to the whole. Under pressure the results of one turn together are capped as well.

use std::{ops::Range, sync::Arc};

use super::{
    ShapedContext, ShaperSetup, Sharing, StageResult, history, marker, pressure::under_pressure,
};
use crate::{
    block::{Block, BlockKind},
    digest::Digest,
    message::Message,
};

/// Results of one turn may together be this many times as large as one result; under pressure.
pub(crate) const TURN_CAP_FACTOR: u64 = 4;

/// Shares of a turn's cap smaller than this are not worth a reference, in characters.
const MIN_SHARE: u64 = 1_000;

const WITHIN_CAPS: &str = "no result is above its cap";

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    trigger_from(context, setup, 0)
}

/// Checks the trigger where no result of the first messages is above its own cap. Under pressure that shows nothing.
pub(super) fn trigger_from(
    context: &ShapedContext,
    setup: &ShaperSetup,
    n_capped: usize,
) -> Result<(), &'static str> {
    let has_pressure = under_pressure(context, setup).is_some();
    let cap = setup.settings.per_result_cap_chars;
    let is_long = |it: &Block| it.as_tool_result().is_some() && cap < it.chars();
    let mut new = context.messages.walk_from(n_capped).flat_map(|it| &it.blocks);
    // Without pressure no cap is smaller, so that the tools of the results make no difference.
    if !has_pressure && !new.any(is_long) {
        return Err(WITHIN_CAPS);
    }
    let messages = &context.messages;
    let is_due = |group: Range<usize>| {
        let limit = limit_for(messages, group.clone(), setup, has_pressure);
        group.into_iter().any(|at| {
            let blocks = &messages[at].blocks;
            blocks.iter().any(|it| limit_of(messages, at, it, limit, setup) < it.chars())
        })
    };
    let first = if has_pressure { 0 } else { n_capped };
    if groups(messages, setup.sharing, first).any(is_due) { Ok(()) } else { Err(WITHIN_CAPS) }
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let has_pressure = under_pressure(context, setup).is_some();
    let mut messages = context.messages.to_vec();
    let mut stored = Vec::new();
    for group in groups(&context.messages, setup.sharing, 0) {
        let limit = limit_for(&context.messages, group.clone(), setup, has_pressure);
        for at in group {
            history::replace_blocks(&mut messages, at, |_, block| {
                let limit = limit_of(&context.messages, at, block, limit, setup);
                if block.chars() <= limit {
                    return None;
                }
                let (block, whole) = cut(block, limit, setup)?;
                stored.push(whole);
                Some(block)
            });
        }
    }
    if stored.is_empty() {
        return StageResult::Unchanged { why: "no result above its cap can be cut".into() };
    }
    let why = format!("cut {} tool results to their cap", stored.len());
    StageResult::Changed { context: context.with(messages, setup.counting), stored, why }
}

/// The messages from this place on in order, those together whose results share a cap.
fn groups(
    messages: &[Arc<Message>],
    sharing: Sharing,
    mut from: usize,
) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let first = messages.get(from)?;
        let n = match sharing {
            Sharing::Turn if history::has_results(first) => {
                messages[from..].iter().take_while(|it| history::has_results(it)).count()
            }
            Sharing::Turn | Sharing::Message => 1,
        };
        let group = from..from + n;
        from = group.end;
        Some(group)
    })
}

/// Characters that this block may have, where results of its turn may have `limit`. A tool's own
/// cap counts unless the turn has to share.
fn limit_of(
    messages: &[Arc<Message>],
    at: usize,
    block: &Block,
    limit: u64,
    setup: &ShaperSetup,
) -> u64 {
    if block.chars() <= limit {
        return limit;
    }
    if !is_ours(messages, at, block, setup) {
        return u64::MAX;
    }
    if setup.own_caps.is_empty() || limit < setup.settings.per_result_cap_chars {
        return limit;
    }
    let tool = block.as_tool_result().and_then(|(id, ..)| history::tool_of(messages, at, id));
    let own = setup.own_caps.iter().find(|(name, _)| Some(name) == tool);
    own.map_or(limit, |(_, cap)| limit.max(*cap))
}

/// Characters that a result in these messages may have.
fn limit_for(
    messages: &[Arc<Message>],
    group: Range<usize>,
    setup: &ShaperSetup,
    has_pressure: bool,
) -> u64 {
    let cap = setup.settings.per_result_cap_chars;
    if !has_pressure || !is_crowded(&messages[group.clone()], cap) {
        return cap;
    }
    let sizes_of = |at: usize| {
        let blocks = messages[at].blocks.iter();
        blocks.filter(move |it| is_ours(messages, at, it, setup)).map(|it| it.chars().min(cap))
    };
    let mut sizes: Vec<u64> = group.flat_map(sizes_of).collect();
    let share = fair_share(&mut sizes, cap.saturating_mul(TURN_CAP_FACTOR));
    if share < MIN_SHARE { cap } else { share.min(cap) }
}

fn is_crowded(messages: &[Arc<Message>], cap: u64) -> bool {
    let blocks = messages.iter().flat_map(|it| &it.blocks);
    let results = blocks.filter(|it| it.as_tool_result().is_some());
    let total: u64 = results.map(|it| it.chars().min(cap)).sum();
    cap.saturating_mul(TURN_CAP_FACTOR) < total
}

/// The largest share such that sizes cut to it add up to `total` at most: small ones stay whole and
/// leave their rest to the others.
fn fair_share(sizes: &mut [u64], total: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = total;
    for (i, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - i) as u64;
        if share < *size {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// Whether it is a result that may be cut.
fn is_ours(messages: &[Arc<Message>], at: usize, block: &Block, setup: &ShaperSetup) -> bool {
    let Some((id, _, _)) = block.as_tool_result() else { return false };
    let may_be_exempt = !setup.exempt_tools.is_empty() || !setup.settings.exempt_tools.is_empty();
    !may_be_exempt || !history::tool_of(messages, at, id).is_some_and(|tool| setup.is_exempt(tool))
}

fn cut(block: &Block, limit: u64, setup: &ShaperSetup) -> Option<(Block, (Digest, String))> {
    let BlockKind::ToolResult { id, text, is_error } = block.kind() else { return None };
    if !is_only_text(block) {
        return None;
    }
    // A multiple of the characters that make a token, so that one character over the cap frees
    // one token.
    let limit = limit - limit % crate::tokens::CHARS_PER_TOKEN;
    // The room for the mark does not depend on the text: what was cut once has its room or never
    // will, so a second run finds nothing to do.
    let Some(room) = limit.checked_sub(marker::max_chars(u64::MAX, &setup.reference_prefix)) else {
        let cut = marker::cut(text, 0, 0, setup);
        let is_cut = marker::is_worth_it(cut.chars, block.chars());
        return is_cut.then(|| (Block::tool_result(id, &cut.text, *is_error), cut.stored));
    };
    // Failures are at the end of an output.
    let tail = room / 3;
    let cut = marker::cut(text, room - tail, tail, setup);
    Some((Block::tool_result(id, &cut.text, *is_error), cut.stored))
}

/// Returns whether a result holds text alone. An image in a result would be lost with its text; such a result stays as
/// it is.
pub(super) fn is_only_text(block: &Block) -> bool {
    #[derive(serde::Deserialize)]
    struct ResultContent {
        content: Option<serde_json::Value>,
    }
    let wire = format!("{}}}", block.wire_open());
    match serde_json::from_str::<ResultContent>(&wire).map(|it| it.content) {
        Ok(Some(serde_json::Value::Array(parts))) => parts.iter().all(|it| it["type"] == "text"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SHP-3
    #[test]
    fn shares_leave_small_sizes_whole_and_add_up() {
        assert_eq!(fair_share(&mut [10, 900, 800], 1_010), 500);
        assert_eq!(fair_share(&mut [300, 300, 300], 600), 200);
        assert_eq!(fair_share(&mut [1, 2], 600), u64::MAX);
    }
}
