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
    shaped::proven_smaller,
    superseded::superseded,
};
use crate::{
    block::{Block, BlockKind},
    digest::Digest,
    ids::ToolUseId,
    tokens::{Estimate, Tokens},
};

const MS_PER_MINUTE: u64 = 60_000;

/// Tokens by which the estimates of a result and of its mark may be off together, as each is rounded.
const ROUNDING: u64 = 2;

/// Which results are cleared. Found once, by the trigger, and handed to what clears them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clearing {
    reason: Reason,
    /// The results: which message, and which of its blocks. In order, and not empty.
    places: Vec<(usize, usize)>,
}

/// Why results are cleared, and with that which of the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// An idle time is over: all.
    Idle,
    /// Later ones superseded them.
    Superseded,
    /// They are superseded or long, and the oldest ones of these.
    Oldest,
}

/// Returns what is to be cleared.
///
/// # Errors
///
/// Why nothing is.
pub(super) fn due(context: &ShapedContext, setup: &ShaperSetup) -> Result<Clearing, &'static str> {
    let (reason, places) = chosen(context, setup)?;
    match (places.is_empty(), reason) {
        (false, reason) => Ok(Clearing { reason, places }),
        (true, Reason::Idle) => Err("no old result is left to clear"),
        (true, Reason::Superseded) => Err("the cache is warm, and no old result is superseded"),
        (true, Reason::Oldest) => Err("the cache is warm, and no old result is long"),
    }
}

type Chosen = (Reason, Vec<(usize, usize)>);

fn chosen(context: &ShapedContext, setup: &ShaperSetup) -> Result<Chosen, &'static str> {
    if u64::from(setup.settings.idle_minutes_threshold) * MS_PER_MINUTE <= setup.idle_ms {
        let all = clearable(context, setup, |_| true);
        return Ok((Reason::Idle, all.map(|it| it.place).collect()));
    }
    match under_pressure(context, setup).filter(|_| setup.grades) {
        Some(pressure) => {
            let superseded = superseded(&context.messages);
            Ok(if setup.clears && pressure == Trigger::Tokens {
                oldest(context, setup, &superseded)
            } else {
                let these = clearable(context, setup, |it| superseded.contains(it));
                (Reason::Superseded, these.map(|it| it.place).collect())
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
    superseded: &BTreeSet<&ToolUseId>,
) -> Chosen {
    let (first, others): (Vec<Clearable<'_>>, Vec<_>) =
        clearable(context, setup, |_| true).partition(|it| superseded.contains(it.id));
    // At most what stays of one, and what rounding may add: too much counted as freed would leave a
    // context that is cleared once more, and a cache that is lost twice.
    let left = setup.counting.tokens(Estimate::of(marker::max_size(&setup.reference_prefix)));
    let freed = |it: &Clearable<'_>| {
        let whole = setup.counting.tokens(Estimate::of(it.block.size()));
        whole.saturating_sub(left + Tokens(ROUNDING))
    };
    let without = |tokens: Tokens, it| tokens.saturating_sub(freed(it));
    let mut tokens = if setup.counts_cleared {
        tokens_without(context, setup, &first)
    } else {
        first.iter().fold(context.tokens, without)
    };
    // By number and not by id: some providers count calls anew in each answer.
    let mut n_long = 0;
    for it in &others {
        if is_at_aim(tokens, 0, 0, setup) {
            break;
        }
        tokens = without(tokens, it);
        n_long += 1;
    }
    let first = first.iter().map(|it| it.place);
    if !is_at_aim(tokens, 0, 0, setup) && setup.settings.auto_compact {
        return (Reason::Superseded, first.collect());
    }
    let long = others.iter().take(n_long).map(|it| it.place);
    let mut places: Vec<_> = first.chain(long).collect();
    places.sort_unstable();
    (Reason::Oldest, places)
}

/// Counts the context without these results. What is cleared alone must be counted and not estimated: the next
/// shaping begins from there, and would find others to clear where the estimate had found none.
fn tokens_without(context: &ShapedContext, setup: &ShaperSetup, these: &[Clearable<'_>]) -> Tokens {
    let places: Vec<_> = these.iter().map(|it| it.place).collect();
    match run(context, setup, &Clearing { reason: Reason::Superseded, places }) {
        StageResult::Changed { context, .. } => context.tokens,
        _ => context.tokens,
    }
}

/// A result that may be cleared.
struct Clearable<'a> {
    place: (usize, usize),
    id: &'a ToolUseId,
    block: &'a Block,
}

/// The old results with one of these ids that are worth to be cleared, the oldest first.
fn clearable<'a>(
    context: &'a ShapedContext,
    setup: &'a ShaperSetup,
    is_one: impl Fn(&ToolUseId) -> bool,
) -> impl Iterator<Item = Clearable<'a>> {
    let newest = history::newest_start(&context.messages, setup.settings.keep_newest);
    let in_message = |at: usize| {
        let results = context.messages[at].blocks.iter().enumerate();
        results.filter_map(move |(i, block)| {
            let (id, _, _) = block.as_tool_result()?;
            Some(Clearable { place: (at, i), id, block })
        })
    };
    let is_worth_it = move |it: &Clearable<'_>| is_clearable(context, it.place.0, it.block, setup);
    (0..newest).flat_map(in_message).filter(move |it| is_one(it.id)).filter(is_worth_it)
}

pub(super) fn run(
    context: &ShapedContext,
    setup: &ShaperSetup,
    Clearing { reason, places }: &Clearing,
) -> StageResult {
    let mut messages = context.messages.to_vec();
    let mut stored = Vec::with_capacity(places.len());
    for of_message in places.chunk_by(|a, b| a.0 == b.0) {
        let at = of_message[0].0;
        history::replace_blocks(&mut messages, at, |i, block| {
            let BlockKind::ToolResult { id, text, is_error } = block.kind() else { return None };
            if !of_message.contains(&(at, i)) {
                return None;
            }
            let cut = marker::cut(text, 0, 0, setup);
            stored.push(cut.stored);
            Some(Block::tool_result(id, &cut.text, *is_error))
        });
    }
    let n = stored.len();
    let why = match reason {
        Reason::Idle => format!("cleared {n} old tool results after an idle time"),
        Reason::Superseded => {
            format!("cleared {n} results of files that were read again or changed")
        }
        Reason::Oldest => format!("cleared {n} old results, which spares a summary"),
    };
    StageResult::Changed { context: context.with(messages, setup.counting), stored, why }
}

/// Clears the old results that have to go as well in what a dearer stage left, and returns their texts: where it is
/// still above the limit, the next shaping would clear them and change the prefix a second time.
pub(super) fn relieved(
    context: ShapedContext,
    setup: &ShaperSetup,
) -> (ShapedContext, Vec<(Digest, String)>) {
    // A remedy's limit makes its stage due; it is not one to be held.
    let setup = ShaperSetup { trigger_override: None, ..setup.clone() };
    if !setup.clears || under_pressure(&context, &setup) != Some(Trigger::Tokens) {
        return (context, Vec::new());
    }
    let result =
        due(&context, &setup).map(|it| proven_smaller(&context, run(&context, &setup, &it)));
    match result {
        Ok(StageResult::Changed { context, stored, .. }) => (context, stored),
        _ => (context, Vec::new()),
    }
}

/// Writes that a stage cleared results as well; empty for none.
pub(super) fn also_cleared(n: usize) -> String {
    if n == 0 { String::new() } else { format!("; cleared {n} old results in what was left") }
}

fn is_clearable(context: &ShapedContext, at: usize, block: &Block, setup: &ShaperSetup) -> bool {
    let Some((id, _, _)) = block.as_tool_result() else { return false };
    let mark = marker::max_chars(block.chars(), &setup.reference_prefix);
    marker::is_worth_it(mark, block.chars())
        && !history::tool_of(&context.messages, at, id).is_some_and(|it| setup.is_exempt(it))
}
