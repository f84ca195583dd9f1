//! When is a context under pressure, and how far down do the stages take it?
//!
//! All stages but the first ask the same question.

use std::sync::Arc;

use super::{ShapedContext, ShaperSetup, history};
use crate::{message::Message, saturating::Saturating as _, tokens::Tokens};

/// Part of the context budget at which pressure begins when no fixed limit is set, in percent.
pub(crate) const PRESSURE_PERCENT: u64 = 70;
/// Money since the last compaction at which pressure begins, in millionths of a US dollar.
pub(crate) const SPENT_MICRO_USD: u64 = 5_000_000;
/// The number of messages and the money spent count only from here on.
pub(crate) const MIN_MESSAGES: usize = 50;

/// Part of the limit that is the conversation's at least, in percent, however large what is in front of it
/// is; but never more than [`PRESSURE_PERCENT`] of what that leaves of the context budget.
const CONVERSATION_PERCENT: u64 = 30;

/// How far below the limit the stages go, in percent of it. Stopping right at the limit would
/// shape every following turn again and throw the provider's cache away each time.
const AIM_PERCENT: u64 = 75;
/// The part of what the limit leaves the conversation that the stages leave it at least, in percent.
const CONVERSATION_AIM_PERCENT: u64 = 50;

/// The part of what the limit leaves the conversation from which on old results are cleared while that costs
/// nothing, in percent. Below it there is room, and what was cleared may have to be read again.
const COLD_PERCENT: u64 = 50;

/// What puts the context under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The conversation has too many tokens.
    Tokens,
    /// The conversation has too many messages.
    Messages,
    /// Too much money since the last compaction.
    Cost,
}

/// Counts the messages where their number is pressure: results of tools belong to the answer that asked for them,
/// however many they are.
pub(super) fn counted<'a>(
    messages: impl IntoIterator<Item = &'a Arc<Message>>,
    setup: &ShaperSetup,
) -> usize {
    let is_counted = |it: &&Arc<Message>| !setup.grades || !history::has_results(it);
    messages.into_iter().filter(is_counted).count()
}

/// Returns what causes pressure; `None` if nothing does: more tokens than the limit; as many messages as the settings
/// allow, results of tools not counted; 5 dollars since the last compaction. The last two not under 50 messages.
pub(crate) fn under_pressure(context: &ShapedContext, setup: &ShaperSetup) -> Option<Trigger> {
    let n_messages = context.messages.len();
    if token_limit(setup) < context.tokens {
        Some(Trigger::Tokens)
    } else if n_messages < MIN_MESSAGES {
        None
    } else if message_limit(setup) <= n_messages
        && message_limit(setup) <= counted(context.messages.walk(), setup)
    {
        Some(Trigger::Messages)
    } else if SPENT_MICRO_USD <= setup.spent_micro_usd {
        Some(Trigger::Cost)
    } else {
        None
    }
}

/// Returns the size above which pressure begins: what the settings name, or 70 % of the context budget. Where what is
/// in front of the conversation takes most of that, the limit is higher, so that stages which cannot touch it are not
/// asked for what they cannot free.
pub(super) fn token_limit(setup: &ShaperSetup) -> Tokens {
    if let Some(forced) = setup.trigger_override {
        return forced;
    }
    let (budget, fixed) = (setup.context_budget, setup.fixed);
    let set = setup.settings.auto_compact_max_tokens.map(Tokens);
    let limit = set.unwrap_or_else(|| percent(budget, PRESSURE_PERCENT));
    let wanted = percent(limit, CONVERSATION_PERCENT);
    let left = percent(budget.saturating_sub(fixed), PRESSURE_PERCENT);
    match fixed {
        Tokens(0) => limit,
        fixed => limit.max(fixed + wanted.min(left)),
    }
}

/// Where the stages stop.
fn token_aim(setup: &ShaperSetup) -> Tokens {
    let (limit, fixed) = (token_limit(setup), setup.fixed);
    let least = fixed + percent(limit.saturating_sub(fixed), CONVERSATION_AIM_PERCENT);
    match fixed {
        Tokens(0) => percent(limit, AIM_PERCENT),
        _ => percent(limit, AIM_PERCENT).max(least),
    }
}

/// Where clearing stops while the provider's cache is cold.
pub(super) fn cold_aim(setup: &ShaperSetup) -> Tokens {
    let (limit, fixed) = (token_limit(setup), setup.fixed);
    fixed + percent(limit.saturating_sub(fixed), COLD_PERCENT)
}

pub(super) fn percent(amount: Tokens, percent: u64) -> Tokens {
    let part = u128::from(amount.0) * u128::from(percent) / 100;
    Tokens(u64::saturating(part))
}

/// Returns whether a context of this size is as small as a stage should make it. `n_counted` of its `n_messages` are
/// those of [`counted`].
pub(super) fn is_at_aim(
    tokens: Tokens,
    n_messages: usize,
    n_counted: usize,
    setup: &ShaperSetup,
) -> bool {
    let part = |limit: usize| (limit as u128 * u128::from(AIM_PERCENT) / 100).max(1);
    let has_cost = SPENT_MICRO_USD <= setup.spent_micro_usd;
    // Few messages are not under pressure, whatever else the limits say.
    let is_few = (n_messages as u128) < part(MIN_MESSAGES)
        || !has_cost && (n_counted as u128) < part(message_limit(setup));
    tokens <= token_aim(setup) && is_few
}

fn message_limit(setup: &ShaperSetup) -> usize {
    usize::saturating(setup.settings.max_messages)
}
