//! Notices when a provider's cache is lost, and finds out why (CTX-7).
//!
//! Whatever one request read from the cache or wrote to it, the next one should read. When it reads
//! clearly less, something in front of the conversation's end has changed, time has passed, or the
//! provider dropped it. The watch compares the two requests in the order in which providers hash
//! them and names the first block that differs. Pure: its inputs are what was sent and what was
//! answered.

use serde::{Deserialize, Serialize};

use super::{
    request::{EncodedHead, PrefixChain, RequestHead},
    view::{GrownView, View},
};
use crate::{time::Timestamp, tokens::Usage};

/// Hundredths of what lay in the cache that must be missing before it is reported.
const MIN_PERCENT: u64 = 5;
/// Tokens that must be missing: fewer than most models cache at all.
const MIN_DROP: u64 = 1024;

/// Cached tokens that a request should have read and did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptCacheEvent {
    /// Nothing that was done on purpose explains it.
    pub unexpected: bool,
    /// The likely reason of the drop.
    pub reason: DropReason,
    /// The first part that differs, in words; `None` when none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Tokens that the request before had read from the cache or written to it.
    pub previous: u64,
    /// Tokens that this one read from the cache.
    pub current: u64,
    /// Tokens that were expected from the cache and did not come.
    pub token_drop: u64,
}

/// Why cached tokens were not read. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DropReason {
    /// Another model was asked; each has its own cache.
    ModelSwitched,
    /// A tool is new, gone or another one.
    ToolsChanged,
    /// A segment of the system prompt is another one.
    SystemChanged,
    /// Thinking, effort or another parameter that counts is another one.
    ParametersChanged,
    /// A summary took the place of what lay before it.
    Compaction,
    /// A shaper changed what the model sees.
    ContextShaped,
    /// A message that was sent before is another one, and nothing says why.
    MessageChanged,
    /// More time has passed than the cache lasts.
    Expired,
    /// The request is shorter than what the model caches.
    BelowMinimum,
    /// Both requests begin alike: the provider's doing.
    ServerSide,
}

/// What of the session's requests the watch remembers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CacheWatch {
    /// The last request that was answered.
    last: Option<CachedAnswer>,
    /// The head of the request under way.
    head: Option<EncodedHead>,
    /// The first item of the messages that is not as it was in the last request that was answered.
    changed: Option<String>,
    /// What was done to the messages on purpose since then.
    done: Option<DropReason>,
}

#[derive(Clone, Debug)]
struct CachedAnswer {
    head: EncodedHead,
    /// When it was sent.
    at: Timestamp,
    /// Tokens that lie in the cache since.
    cached: u64,
}

impl DropReason {
    /// Returns whether the session, or a person, brought the drop about.
    pub(crate) fn is_expected(self) -> bool {
        match self {
            Self::ModelSwitched
            | Self::Compaction
            | Self::ContextShaped
            | Self::Expired
            | Self::BelowMinimum => true,
            Self::ToolsChanged
            | Self::SystemChanged
            | Self::ParametersChanged
            | Self::MessageChanged
            | Self::ServerSide => false,
        }
    }
}

impl CacheWatch {
    /// Notes that a shaper changed the messages. `summary` is whether a summary represents what was before it.
    pub(crate) fn shaped(&mut self, summary: bool) {
        if summary {
            self.done = Some(DropReason::Compaction);
        } else {
            self.done.get_or_insert(DropReason::ContextShaped);
        }
    }

    /// Notes that a request is sent. `chain` has followed the view.
    pub(crate) fn note_sent(&mut self, head: &EncodedHead, view: &GrownView, chain: &PrefixChain) {
        self.head = Some(head.clone());
        // A request that failed left nothing behind: what it changed still counts.
        if self.changed.is_none() {
            self.changed = chain.first_change().map(|it| place_of(&view.whole(), it));
        }
    }

    /// Notes that the request was answered `duration_ms` after it had been sent. `min_cached` is the shortest prefix
    /// that the model caches; 0 when not known. Returns a drop, if there is one.
    pub(crate) fn note_answer(
        &mut self,
        usage: &Usage,
        now: Timestamp,
        duration_ms: u64,
        min_cached: u32,
    ) -> Option<PromptCacheEvent> {
        let head = self.head.take()?;
        let current = usage.cache_read_input_tokens;
        let at = Timestamp(now.0.saturating_sub(duration_ms));
        let cached = current.saturating_add(usage.cache_creation_input_tokens);
        let (changed, done) = (self.changed.take(), self.done.take());
        let last = self.last.replace(CachedAnswer { head: head.clone(), at, cached })?;
        let token_drop = last.cached.saturating_sub(current);
        if token_drop < MIN_DROP || token_drop.saturating_mul(100) < last.cached * MIN_PERCENT {
            return None;
        }
        let (reason, place) = match difference(last.head.head(), head.head()) {
            Some((reason, place)) => (reason, Some(place)),
            None => match (changed, done) {
                (Some(place), done) => (done.unwrap_or(DropReason::MessageChanged), Some(place)),
                (None, _) if last.lasts_ms() < at.millis_since(last.at) => {
                    (DropReason::Expired, None)
                }
                (None, _) if usage.context().0 < min_cached.into() => {
                    (DropReason::BelowMinimum, None)
                }
                (None, _) => (DropReason::ServerSide, None),
            },
        };
        Some(PromptCacheEvent {
            unexpected: !reason.is_expected(),
            reason,
            at: place,
            previous: last.cached,
            current,
            token_drop,
        })
    }
}

impl CachedAnswer {
    /// A provider that caches by itself keeps it for about five minutes, too.
    fn lasts_ms(&self) -> u64 {
        let caching = self.head.head().cache.caching;
        match caching.lasts_ms() {
            0 => super::request::PromptCaching::FiveMinutes.lasts_ms(),
            lasts => lasts,
        }
    }
}

/// The first difference between two heads that a cache takes notice of.
fn difference(before: &RequestHead, now: &RequestHead) -> Option<(DropReason, String)> {
    if before.model != now.model {
        let place = format!("model {} in place of {}", now.model, before.model);
        return Some((DropReason::ModelSwitched, place));
    }
    if let Some(at) = first_difference(&before.tools, &now.tools) {
        return Some((DropReason::ToolsChanged, changed_tool(before, now, at)));
    }
    if let Some(at) = first_difference(&before.system, &now.system) {
        return Some((DropReason::SystemChanged, format!("system segment {at}")));
    }
    // How much may be answered, and whether as a stream, is not part of what is cached.
    let mut rest = before.clone();
    rest.max_tokens = now.max_tokens;
    rest.stream = now.stream;
    rest.cache = now.cache;
    (rest != *now).then(|| (DropReason::ParametersChanged, "parameters".to_owned()))
}

/// Returns in words what became of the tool at a place.
fn changed_tool(before: &RequestHead, now: &RequestHead, at: usize) -> String {
    let name = |head: &RequestHead| head.tools.get(at).map(|it| it.name.to_string());
    match (name(before), name(now)) {
        (Some(before), Some(now)) if before == now => format!("tool {now}"),
        (Some(before), Some(now)) => format!("tool {now} in place of {before}"),
        (None, Some(now)) => format!("tool {now} is new"),
        (before, None) => format!("tool {} is gone", before.unwrap_or_default()),
    }
}

fn first_difference<T: PartialEq>(before: &[T], now: &[T]) -> Option<usize> {
    let same = before.iter().zip(now).take_while(|(before, now)| before == now).count();
    (same < before.len() || same < now.len()).then_some(same)
}

/// An item of the chain in words: each message is one item, and then one for each block.
fn place_of(view: &View, item: usize) -> String {
    let mut left = item;
    for (i, message) in view.messages.iter().enumerate() {
        match left {
            0 => return format!("message {i}"),
            _ if left <= message.blocks.len() => {
                return format!("message {i}, block {}", left - 1);
            }
            _ => left -= message.blocks.len() + 1,
        }
    }
    format!("end of message {}", view.messages.len().saturating_sub(1))
}

#[cfg(test)]
mod tests;
