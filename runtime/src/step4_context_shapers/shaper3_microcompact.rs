//! Shaper 3: old tool results are cleared when that costs nothing.
//!
//! After an idle time the provider's cache is cold and the prefix is paid anew anyway: that is the
//! moment to clear what is old. Works by tool use id and kept counts; what a result says plays no
//! part. While the cache is warm nothing is cleared: that would throw away what is cached.

use super::{ShapedContext, ShaperSetup, Sharing, StageResult, history, marker};
use crate::block::{Block, BlockKind};

const MS_PER_MINUTE: u64 = 60_000;

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    if setup.idle_ms < u64::from(setup.settings.idle_minutes_threshold) * MS_PER_MINUTE {
        // Turns that were recorded before the setting was given up are walked again with its words.
        let is_of_old = setup.settings.cached_microcompact && setup.sharing == Sharing::Message;
        return Err(if is_of_old {
            "the cache is warm, and the cache-aware path is not built"
        } else {
            "the cache is warm"
        });
    }
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let is_due = |at: usize| {
        context.messages[at].blocks.iter().any(|it| is_clearable(context, at, it, setup))
    };
    if (0..newest).any(is_due) { Ok(()) } else { Err("no old result is left to clear") }
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let mut messages = context.messages.clone();
    let mut stored = Vec::new();
    for at in 0..newest {
        history::replace_blocks(&mut messages, at, |_, block| {
            let BlockKind::ToolResult { id, text, is_error } = block.kind() else { return None };
            if !is_clearable(context, at, block, setup) {
                return None;
            }
            let cut = marker::cut(text, 0, 0, &setup.reference_prefix);
            stored.push(cut.stored);
            Some(Block::tool_result(id, &cut.text, *is_error))
        });
    }
    let why = format!("cleared {} old tool results after an idle time", stored.len());
    StageResult::Changed { context: context.with(messages), stored, why }
}

fn is_clearable(context: &ShapedContext, at: usize, block: &Block, setup: &ShaperSetup) -> bool {
    let Some((id, _, _)) = block.as_tool_result() else { return false };
    let mark = marker::max_chars(block.chars(), &setup.reference_prefix);
    marker::is_worth_it(mark, block.chars())
        && !history::tool_of(&context.messages, at, id).is_some_and(|it| setup.is_exempt(it))
}
