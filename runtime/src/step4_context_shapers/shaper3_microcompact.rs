//! Shaper 3: old tool results are cleared when that costs nothing, or less than a summary.
//!
//! After an idle time the provider's cache is cold and the prefix is paid anew anyway: that is the
//! moment to clear what is old. While the cache is warm that would throw away what is cached, so only
//! pressure clears, which a summary would end otherwise: first what a file held before it was read again
//! or changed, then long results, the oldest first, until the context is as small as a stage makes it.
//! Works by tool use id and kept counts; what a result says plays no part.

use std::collections::BTreeSet;

use super::{
    ShapedContext, ShaperSetup, Sharing, StageResult, history, marker,
    pressure::{Trigger, is_at_aim, under_pressure},
    superseded::superseded,
};
use crate::{
    block::{Block, BlockKind},
    ids::ToolUseId,
    tokens::{Estimate, Tokens},
};

const MS_PER_MINUTE: u64 = 60_000;

/// What is cleared.
enum Cleared {
    /// All old results.
    Old,
    /// These old results, which later ones superseded.
    Superseded(BTreeSet<ToolUseId>),
    /// These, which are superseded or long, the oldest ones.
    Oldest(BTreeSet<ToolUseId>),
}

impl Cleared {
    fn covers(&self, block: &Block) -> bool {
        match (self, block.as_tool_result()) {
            (Self::Old, _) => true,
            (Self::Superseded(ids) | Self::Oldest(ids), Some((id, _, _))) => ids.contains(id),
            (Self::Superseded(_) | Self::Oldest(_), None) => false,
        }
    }
}

/// What is to be cleared, or why nothing is.
fn cleared(context: &ShapedContext, setup: &ShaperSetup) -> Result<Cleared, &'static str> {
    if u64::from(setup.settings.idle_minutes_threshold) * MS_PER_MINUTE <= setup.idle_ms {
        return Ok(Cleared::Old);
    }
    match under_pressure(context, setup).filter(|_| setup.grades) {
        Some(pressure) => {
            let superseded = superseded(&context.messages);
            Ok(match setup.clears && pressure == Trigger::Tokens {
                true => oldest(context, setup, superseded),
                false => Cleared::Superseded(superseded),
            })
        }
        // Turns that were recorded before the setting was given up are walked again with its words.
        None if setup.settings.cached_microcompact && setup.sharing == Sharing::Message => {
            Err("the cache is warm, and the cache-aware path is not built")
        }
        None => Err("the cache is warm"),
    }
}

/// The superseded results, and of the others that are long the oldest until the context is at its aim.
/// Where all of them together do not bring it there, they stay for the summary that is due then.
fn oldest(
    context: &ShapedContext,
    setup: &ShaperSetup,
    superseded: BTreeSet<ToolUseId>,
) -> Cleared {
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let results = || {
        let blocks =
            (0..newest).flat_map(|at| context.messages[at].blocks.iter().map(move |it| (at, it)));
        let clearable = blocks.filter(|(at, it)| is_clearable(context, *at, it, setup));
        clearable.filter_map(|(_, it)| Some((it.as_tool_result()?.0, it)))
    };
    let mark = marker::max_chars(u64::MAX, &setup.reference_prefix);
    let freed = |block: &Block| {
        let left = Tokens::from_chars(mark);
        setup.counting.tokens(Estimate::of(block.size())).saturating_sub(left)
    };
    let is_first = |(id, _): &(&ToolUseId, &Block)| superseded.contains(*id);
    let mut tokens = context.tokens;
    for (_, block) in results().filter(is_first) {
        tokens = tokens.saturating_sub(freed(block));
    }
    let mut ids = superseded.clone();
    for (id, block) in results().filter(|it| !is_first(it)) {
        if is_at_aim(tokens, 0, 0, setup) {
            break;
        }
        tokens = tokens.saturating_sub(freed(block));
        ids.insert(id.clone());
    }
    let is_enough = is_at_aim(tokens, 0, 0, setup) || !setup.settings.auto_compact;
    if is_enough { Cleared::Oldest(ids) } else { Cleared::Superseded(superseded) }
}

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    let cleared = cleared(context, setup)?;
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let is_due = |at: usize| {
        let mut blocks = context.messages[at].blocks.iter();
        blocks.any(|it| cleared.covers(it) && is_clearable(context, at, it, setup))
    };
    match (0..newest).any(is_due) {
        true => Ok(()),
        false => Err(match cleared {
            Cleared::Old => "no old result is left to clear",
            Cleared::Superseded(_) => "the cache is warm, and no old result is superseded",
            Cleared::Oldest(_) => "the cache is warm, and no old result is long",
        }),
    }
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let cleared = match cleared(context, setup) {
        Ok(cleared) => cleared,
        Err(why) => return StageResult::Unchanged { why: why.into() },
    };
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let mut messages = context.messages.clone();
    let mut stored = Vec::new();
    for at in 0..newest {
        history::replace_blocks(&mut messages, at, |_, block| {
            let BlockKind::ToolResult { id, text, is_error } = block.kind() else { return None };
            if !cleared.covers(block) || !is_clearable(context, at, block, setup) {
                return None;
            }
            let cut = marker::cut(text, 0, 0, &setup.reference_prefix);
            stored.push(cut.stored);
            Some(Block::tool_result(id, &cut.text, *is_error))
        });
    }
    let n = stored.len();
    let why = match cleared {
        Cleared::Old => format!("cleared {n} old tool results after an idle time"),
        Cleared::Superseded(_) => {
            format!("cleared {n} results of files that were read again or changed")
        }
        Cleared::Oldest(_) => format!("cleared {n} old results, which spares a summary"),
    };
    StageResult::Changed { context: context.with(messages, setup.counting), stored, why }
}

fn is_clearable(context: &ShapedContext, at: usize, block: &Block, setup: &ShaperSetup) -> bool {
    let Some((id, _, _)) = block.as_tool_result() else { return false };
    let mark = marker::max_chars(block.chars(), &setup.reference_prefix);
    marker::is_worth_it(mark, block.chars())
        && !history::tool_of(&context.messages, at, id).is_some_and(|it| setup.is_exempt(it))
}
