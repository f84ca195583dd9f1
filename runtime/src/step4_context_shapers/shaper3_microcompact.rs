//! Shaper 3: old tool results are cleared when that costs nothing, or less than a summary.
//!
//! While the provider's cache is cold the prefix is paid anew anyway. After an idle time all that is old is
//! cleared; where the cache is cold without that, what a file held before it was read again or changed, and
//! of the rest the oldest, as far as the context is above half of its limit: what the model may still need
//! stays while there is room. While the cache is warm that would throw away what is cached, so only
//! pressure clears, which a summary would end otherwise: first what is superseded, then long results, the
//! oldest first, until the context is as small as a stage makes it.
//! Works by tool use id and kept counts; what a result says plays no part.

use std::collections::BTreeSet;

use super::{
    ColdCache, ShapedContext, ShaperSetup, Sharing, StageResult, history, marker,
    pressure::{Trigger, cold_aim, is_at_aim, under_pressure},
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
    /// The same, while the cache holds nothing.
    Cold(ColdCache),
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
        (true, Reason::Cold(_)) => Err("the cache is cold, and no old result has to go"),
    }
}

type Chosen = (Reason, Vec<(usize, usize)>);

fn chosen(context: &ShapedContext, setup: &ShaperSetup) -> Result<Chosen, &'static str> {
    if u64::from(setup.settings.idle_minutes_threshold) * MS_PER_MINUTE <= setup.idle_ms {
        let all = clearable(context, setup, |_| true);
        return Ok((Reason::Idle, all.map(|it| it.place).collect()));
    }
    let pressure = under_pressure(context, setup).filter(|_| setup.grades);
    match (pressure, setup.cold) {
        (Some(Trigger::Tokens), _) if setup.clears => {
            let superseded = superseded(&context.messages);
            Ok(oldest(context, setup, &superseded))
        }
        (_, Some(cold)) => {
            let found = OldResults::of(context, setup, &superseded(&context.messages));
            let aim = cold_aim(setup);
            let (places, _) = found.until(context, setup, |tokens| tokens <= aim);
            Ok((Reason::Cold(cold), places))
        }
        (Some(_), None) => {
            let superseded = superseded(&context.messages);
            let these = clearable(context, setup, |it| superseded.contains(it));
            Ok((Reason::Superseded, these.map(|it| it.place).collect()))
        }
        // Turns that were recorded before the setting was given up are walked again with its words.
        (None, None) if setup.settings.cached_microcompact && setup.sharing == Sharing::Message => {
            Err("the cache is warm, and the cache-aware path is not built")
        }
        (None, None) => Err("the cache is warm"),
    }
}

/// The superseded results, and of the others that are long the oldest until the context is at its aim.
/// Where all of them together do not bring it there, they stay for the summary that is due then.
fn oldest(
    context: &ShapedContext,
    setup: &ShaperSetup,
    superseded: &BTreeSet<&ToolUseId>,
) -> Chosen {
    let found = OldResults::of(context, setup, superseded);
    let (places, is_enough) = found.until(context, setup, |tokens| is_at_aim(tokens, 0, 0, setup));
    if !is_enough && setup.settings.auto_compact {
        return (Reason::Superseded, found.superseded.iter().map(|it| it.place).collect());
    }
    (Reason::Oldest, places)
}

/// The old results that may be cleared, each kind from the oldest on.
struct OldResults<'a> {
    superseded: Vec<Clearable<'a>>,
    others: Vec<Clearable<'a>>,
}

impl<'a> OldResults<'a> {
    fn of(
        context: &'a ShapedContext,
        setup: &'a ShaperSetup,
        superseded: &BTreeSet<&ToolUseId>,
    ) -> Self {
        let (superseded, others) =
            clearable(context, setup, |_| true).partition(|it| superseded.contains(it.id));
        Self { superseded, others }
    }

    /// The superseded results, and of the others the oldest until this holds of the tokens that are left; in order,
    /// with whether it does then.
    fn until(
        &self,
        context: &ShapedContext,
        setup: &ShaperSetup,
        is_enough: impl Fn(Tokens) -> bool,
    ) -> (Vec<(usize, usize)>, bool) {
        // At most what stays of one, and what rounding may add: too much counted as freed would leave a
        // context that is cleared once more, and a cache that is lost twice.
        let left = setup.counting.tokens(Estimate::of(marker::max_size(&setup.reference_prefix)));
        let without = |tokens: Tokens, it: &Clearable<'_>| {
            let whole = setup.counting.tokens(Estimate::of(it.block.size()));
            tokens.saturating_sub(whole.saturating_sub(left + Tokens(ROUNDING)))
        };
        let mut tokens = if setup.counts_cleared {
            tokens_without(context, setup, &self.superseded)
        } else {
            self.superseded.iter().fold(context.tokens, without)
        };
        // By number and not by id: some providers count calls anew in each answer.
        let mut n_long = 0;
        for it in &self.others {
            if is_enough(tokens) {
                break;
            }
            tokens = without(tokens, it);
            n_long += 1;
        }
        let long = self.others.iter().take(n_long);
        let mut places: Vec<_> = self.superseded.iter().chain(long).map(|it| it.place).collect();
        places.sort_unstable();
        (places, is_enough(tokens))
    }
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
        Reason::Cold(cold) => format!("cleared {n} old results: {}", cold.words()),
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
        && !history::tool_of(&context.messages, at, id).is_some_and(|it| setup.is_kept(it, block))
}
