//! What holds of every shaping, checked on a case and its result.
//!
//! The property tests check the same list on random histories.

use std::{collections::BTreeMap, sync::Arc};

use super::ShaperCase;
use crate::{
    block::{Block, BlockKind},
    ids::{EntryId, ToolUseId},
    message::{Message, MessageKind, Messages, Role, tokens_of},
    saturating::Saturating as _,
    step4_context_shapers::{
        ShapedContext, Stage,
        chain::{Shaped, shape},
        history, marker,
        superseded::superseded,
        under_pressure,
    },
};

/// Returns the names of the invariants that are violated, in the order of the cases' documentation.
pub(crate) fn violated(case: &ShaperCase, shaped: &Shaped) -> Vec<&'static str> {
    let again = |context: ShapedContext| {
        shape(context, &case.setup, &EntryId::from("summary"), |it| case.summariser.answer(it))
    };
    let wires = |messages: &Messages| -> Vec<String> {
        messages.iter().flat_map(|it| &it.blocks).map(|it| it.wire_open().to_owned()).collect()
    };
    let originals = wires(&case.messages);
    let first = ShapedContext { messages: case.messages.clone().into(), tokens: case.tokens };
    let repeated = again(first);
    let second = again(shaped.context.clone());
    let before = &case.messages;
    let after = &shaped.context.messages.to_vec();
    let checks = [
        ("order_kept", order_kept(before, after)),
        ("pairs_kept", pairs_kept(before, after)),
        ("newest_kept", newest_kept(case, after)),
        ("originals_untouched", wires(before) == originals),
        ("roles_valid", roles_valid(before, after)),
        ("idempotent", second.fired().next().is_none() && second.context == shaped.context),
        ("cheapest_first", shaped.log.iter().map(|it| it.stage).eq(Stage::ALL)),
        ("deterministic", repeated == *shaped),
        ("first_enabled_sufficient_wins", sufficient_wins(case, shaped)),
        ("reference_left", reference_left(before, after, shaped)),
        (
            "result_not_longer",
            results_of(after).all(|(it, block)| is_not_longer(before, it, block)),
        ),
        ("no_partial_unicode", no_partial_unicode(before, after)),
        ("results_cleared_oldest_first", cleared_oldest_first(case, after)),
        ("projection_only", projection_only(before, after, shaped)),
        ("summary_once", summaries(after) <= summaries(before).max(1)),
        ("thinking_untouched", thinking_untouched(before, after)),
        ("summary_first", summary_first(after)),
        ("first_user_prompt_kept", first_prompt_kept(before, after)),
        ("unchanged_on_failure", unchanged_on_failure(case, shaped)),
        ("never_grows", tokens_of(after) <= tokens_of(before)),
    ];
    checks.iter().filter(|(_, ok)| !ok).map(|(name, _)| *name).collect()
}

fn by_id(messages: &Messages) -> BTreeMap<&EntryId, (usize, &Arc<Message>)> {
    messages.iter().enumerate().map(|(i, it)| (&it.id, (i, it))).collect()
}

fn order_kept(before: &Messages, after: &Messages) -> bool {
    let old = by_id(before);
    let places: Vec<_> = after.iter().filter_map(|it| old.get(&it.id).map(|it| it.0)).collect();
    let n_new = after.len() - places.len();
    places.is_sorted_by(|left, right| left < right) && n_new <= 1
}

/// Calls less results, per id: what is missing was missing before. Ids may come up again, as some
/// providers count calls anew in each answer.
fn pairs_kept(before: &Messages, after: &Messages) -> bool {
    let balances = |messages: &Messages| {
        let mut balances: BTreeMap<ToolUseId, i64> = BTreeMap::new();
        for block in messages.iter().flat_map(|it| &it.blocks) {
            match block.kind() {
                BlockKind::ToolUse { id, .. } => *balances.entry(id.clone()).or_default() += 1,
                BlockKind::ToolResult { id, .. } => *balances.entry(id.clone()).or_default() -= 1,
                _ => {}
            }
        }
        balances
    };
    let old = balances(before);
    balances(after).iter().all(|(id, balance)| old.get(id) == Some(balance))
}

fn newest_kept(case: &ShaperCase, after: &Messages) -> bool {
    let keep = usize::saturating(case.setup.settings.keep_newest.max(1));
    let start = case.messages.len().saturating_sub(keep);
    let new = by_id(after);
    case.messages[start..].iter().all(|old| {
        new.get(&old.id).is_some_and(|(_, new)| {
            // Caps hold for the newest results, too.
            let is_same = |(old, new): (&Block, &Block)| {
                old == new || (old.as_tool_result().is_some() && new.chars() < old.chars())
            };
            old.blocks.len() == new.blocks.len() && old.blocks.iter().zip(&new.blocks).all(is_same)
        })
    })
}

fn roles_valid(before: &Messages, after: &Messages) -> bool {
    let begins_with_user = |it: &Messages| it.first().is_none_or(|it| it.role == Role::User);
    let old = by_id(before);
    let roles = after.iter().all(|it| old.get(&it.id).is_none_or(|(_, old)| old.role == it.role));
    let empty = |messages: &Messages| messages.iter().filter(|it| it.blocks.is_empty()).count();
    (begins_with_user(after) || !begins_with_user(before)) && roles && empty(after) <= empty(before)
}

/// Each stage after the first saw pressure, unless it is the time path of microcompact.
fn sufficient_wins(case: &ShaperCase, shaped: &Shaped) -> bool {
    let limit = super::super::pressure::token_limit(&case.setup);
    shaped.log.iter().filter(|it| it.fired).all(|it| match it.stage {
        Stage::BudgetReduction | Stage::Microcompact => true,
        _ => {
            let context =
                ShapedContext { messages: case.messages.clone().into(), tokens: it.tokens_before };
            limit < it.tokens_before || under_pressure(&context, &case.setup).is_some()
        }
    })
}

fn results_of(messages: &Messages) -> impl Iterator<Item = (&ToolUseId, &Block)> {
    let blocks = messages.iter().flat_map(|it| &it.blocks);
    blocks.filter_map(|it| it.as_tool_result().map(|(id, _, _)| (id, it)))
}

/// What a result was before; the same one when ids are unique.
fn is_not_longer(before: &Messages, id: &ToolUseId, block: &Block) -> bool {
    results_of(before).filter(|(it, _)| *it == id).any(|(_, old)| block.chars() <= old.chars())
}

fn changed_blocks<'a>(
    before: &'a Messages,
    after: &'a Messages,
) -> impl Iterator<Item = (&'a Block, &'a Block)> {
    let old = by_id(before);
    let kept = after.iter().filter_map(move |it| old.get(&it.id).map(|(_, old)| (*old, it)));
    kept.flat_map(|(old, new)| old.blocks.iter().zip(&new.blocks)).filter(|(old, new)| old != new)
}

fn content(block: &Block) -> &str {
    match block.kind() {
        BlockKind::Text(text) | BlockKind::ToolResult { text, .. } => text,
        _ => "",
    }
}

fn reference_left(before: &Messages, after: &Messages, shaped: &Shaped) -> bool {
    changed_blocks(before, after).all(|(old, new)| {
        let is_named = |(digest, text): &(crate::digest::Digest, String)| {
            content(new).contains(&digest.to_string()) && !text.is_empty()
        };
        content(new).contains(&old.chars().to_string()) || shaped.stored.iter().any(is_named)
    }) && shaped
        .stored
        .iter()
        .all(|(digest, text)| *digest == crate::digest::Digest::of(text.as_bytes()))
}

fn no_partial_unicode(before: &Messages, after: &Messages) -> bool {
    let is_broken = |text: &str| text.contains('\u{fffd}');
    changed_blocks(before, after)
        .all(|(old, new)| is_broken(content(old)) || !is_broken(content(new)))
}

/// No result that is worth clearing is whole before one that was cut below its cap, but for those that a later
/// one supersedes: they go before all others.
fn cleared_oldest_first(case: &ShaperCase, after: &Messages) -> bool {
    let old = by_id(&case.messages);
    let setup = &case.setup;
    let superseded = superseded(&case.messages);
    let mut saw_whole = false;
    for (at, message) in after.iter().enumerate() {
        let Some((_, old)) = old.get(&message.id) else { continue };
        for (old, new) in old.blocks.iter().zip(&message.blocks) {
            let Some((id, _, _)) = old.as_tool_result() else { continue };
            if old == new {
                let mark = marker::max_chars(old.chars(), &setup.reference_prefix);
                saw_whole |= marker::is_worth_it(mark + 200, old.chars())
                    && !history::tool_of(after, at, id).is_some_and(|it| setup.is_kept(it, old));
            } else if old.chars() <= setup.settings.per_result_cap_chars
                && saw_whole
                && !superseded.contains(id)
            {
                return false;
            }
        }
    }
    true
}

/// Without snip and summary every message is still there.
fn projection_only(before: &Messages, after: &Messages, shaped: &Shaped) -> bool {
    let drops = |it: Stage| matches!(it, Stage::Snip | Stage::AutoCompact);
    shaped.fired().any(drops) || before.iter().map(|it| &it.id).eq(after.iter().map(|it| &it.id))
}

fn thinking_untouched(before: &Messages, after: &Messages) -> bool {
    changed_blocks(before, after).all(|(old, _)| {
        !matches!(old.kind(), BlockKind::Thinking { .. } | BlockKind::RedactedThinking)
    })
}

fn summaries(messages: &Messages) -> usize {
    messages.iter().filter(|it| it.kind == MessageKind::CompactSummary).count()
}

fn summary_first(messages: &Messages) -> bool {
    let place = messages.iter().position(|it| it.kind == MessageKind::CompactSummary);
    place.is_none_or(|it| it == 0)
}

/// Only a summary may take its place.
fn first_prompt_kept(before: &Messages, after: &Messages) -> bool {
    match before.first() {
        Some(first) if first.role == Role::User && !history::has_results(first) => after
            .first()
            .is_some_and(|it| it.id == first.id || it.kind == MessageKind::CompactSummary),
        _ => true,
    }
}

fn unchanged_on_failure(case: &ShaperCase, shaped: &Shaped) -> bool {
    case.summariser == super::Summariser::Works || shaped.fired().all(|it| it != Stage::AutoCompact)
}
