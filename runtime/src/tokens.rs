//! Amounts of tokens, estimated and reported.

mod anchor;
mod by_class;
pub mod corpus;
mod estimate;
mod learned;

use std::{
    iter::Sum,
    ops::{Add, Sub},
};

use serde::{Deserialize, Serialize};

pub use self::anchor::Anchor;
pub(crate) use self::{
    by_class::Size,
    estimate::{Counting, Estimate},
    learned::Learned,
};

/// Characters (Unicode scalar values) that count as one token in sessions of the revisions before
/// [`ESTIMATES_BY_CLASS`](crate::run::facts::SessionFacts::revision), and where a size is only shown.
pub const CHARS_PER_TOKEN: u64 = 4;

/// An amount of tokens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// Estimates the tokens of this many characters of any kind, rounded up. What decides about the context goes by the
    /// kinds of characters instead.
    pub fn from_chars(chars: u64) -> Self {
        Self(chars.div_ceil(CHARS_PER_TOKEN))
    }

    /// Returns the most that an amount estimated at this can be: a token for each character.
    #[must_use]
    pub(crate) fn at_most(self) -> Self {
        Self(self.0.saturating_mul(CHARS_PER_TOKEN))
    }

    /// Returns this minus `other`, at least 0.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self(0), Add::add)
    }
}

/// What a provider reported for one model call, in tokens.
///
/// `input_tokens` counts only what lies after the last cache mark; the size of the request is
/// [`Usage::context`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Input that was written to the cache.
    pub cache_creation_input_tokens: u64,
    /// The part of it that is kept for an hour; the rest is kept for five minutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_creation_1h_input_tokens: u64,
    /// Input that was read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens of output, thinking included.
    pub output_tokens: u64,
    /// The part of the output that was thinking, where the provider says so.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// Searches of the web that the provider made.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_search_requests: u64,
    /// Pages that the provider fetched.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_fetch_requests: u64,
}

impl Usage {
    /// Returns the size of the request as the model saw it.
    pub fn context(&self) -> Tokens {
        Tokens(
            self.input_tokens
                .saturating_add(self.cache_creation_input_tokens)
                .saturating_add(self.cache_read_input_tokens),
        )
    }

    /// Adds up everything that was paid for.
    pub fn total(&self) -> Tokens {
        self.context() + Tokens(self.output_tokens)
    }
}

impl Usage {
    /// Returns the difference; `None` when any part of it is less than nothing.
    pub(crate) fn checked_sub(self, other: Self) -> Option<Self> {
        let sub = u64::checked_sub;
        Some(Self {
            input_tokens: sub(self.input_tokens, other.input_tokens)?,
            cache_creation_input_tokens: sub(
                self.cache_creation_input_tokens,
                other.cache_creation_input_tokens,
            )?,
            cache_creation_1h_input_tokens: sub(
                self.cache_creation_1h_input_tokens,
                other.cache_creation_1h_input_tokens,
            )?,
            cache_read_input_tokens: sub(
                self.cache_read_input_tokens,
                other.cache_read_input_tokens,
            )?,
            output_tokens: sub(self.output_tokens, other.output_tokens)?,
            thinking_tokens: sub(self.thinking_tokens, other.thinking_tokens)?,
            web_search_requests: sub(self.web_search_requests, other.web_search_requests)?,
            web_fetch_requests: sub(self.web_fetch_requests, other.web_fetch_requests)?,
        })
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let add = u64::saturating_add;
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            cache_creation_input_tokens: add(
                self.cache_creation_input_tokens,
                other.cache_creation_input_tokens,
            ),
            cache_creation_1h_input_tokens: add(
                self.cache_creation_1h_input_tokens,
                other.cache_creation_1h_input_tokens,
            ),
            cache_read_input_tokens: add(
                self.cache_read_input_tokens,
                other.cache_read_input_tokens,
            ),
            output_tokens: add(self.output_tokens, other.output_tokens),
            thinking_tokens: add(self.thinking_tokens, other.thinking_tokens),
            web_search_requests: add(self.web_search_requests, other.web_search_requests),
            web_fetch_requests: add(self.web_fetch_requests, other.web_fetch_requests),
        }
    }
}

/// Counts that would fall below 0 are 0.
impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let sub = u64::saturating_sub;
        Self {
            input_tokens: sub(self.input_tokens, other.input_tokens),
            cache_creation_input_tokens: sub(
                self.cache_creation_input_tokens,
                other.cache_creation_input_tokens,
            ),
            cache_creation_1h_input_tokens: sub(
                self.cache_creation_1h_input_tokens,
                other.cache_creation_1h_input_tokens,
            ),
            cache_read_input_tokens: sub(
                self.cache_read_input_tokens,
                other.cache_read_input_tokens,
            ),
            output_tokens: sub(self.output_tokens, other.output_tokens),
            thinking_tokens: sub(self.thinking_tokens, other.thinking_tokens),
            web_search_requests: sub(self.web_search_requests, other.web_search_requests),
            web_fetch_requests: sub(self.web_fetch_requests, other.web_fetch_requests),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

#[cfg(test)]
mod tests;
