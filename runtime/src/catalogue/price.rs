//! Prices and amounts of money, in whole numbers.

use std::{fmt, iter::Sum, ops::Add};

use serde::{Deserialize, Serialize};

use crate::tokens::{Tokens, Usage};

/// An amount of money, in millionths of a millionth of a US dollar. Prices are whole millionths of
/// a dollar per million tokens, which makes the price of one token a whole number of these.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

/// What tokens cost, in millionths of a US dollar per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Prices {
    /// Input that is neither read from nor written to the cache.
    pub input: u64,
    /// Output of the model, thinking included.
    pub output: u64,
    /// Input that is kept for five minutes.
    pub cache_write_5m: u64,
    /// Input that is kept for an hour.
    pub cache_write_1h: u64,
    /// Input that is read from the cache.
    pub cache_read: u64,
    /// One search of the web that the provider makes, in millionths of a US dollar, whatever it found;
    /// `None`: not known. The text that it found is input like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<u64>,
    /// Other prices for long prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// Prices of a request, output included, whose prompt is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LongPrompt {
    /// Holds for prompts of more tokens than this, cached ones counted.
    pub above: u64,
    /// Price of uncached input, as in [`Prices`].
    pub input: u64,
    /// Price of output, as in [`Prices`].
    pub output: u64,
    /// Price of input cached for five minutes, as in [`Prices`].
    pub cache_write_5m: u64,
    /// Price of input cached for an hour, as in [`Prices`].
    pub cache_write_1h: u64,
    /// Price of input read from the cache, as in [`Prices`].
    pub cache_read: u64,
}

impl Money {
    /// Returns a price of this many millionths of a US dollar.
    pub fn of_micro_usd(millionths: u64) -> Self {
        Self(millionths.saturating_mul(1_000_000))
    }

    /// Returns the amount in millionths of a US dollar, rounded down.
    pub fn micro_usd(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the amount in US dollars, for people and for JSON; nothing is to be decided by it.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars with four places, rounded down.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents_of_cents = self.0 / 100_000_000;
        write!(f, "${}.{:04}", cents_of_cents / 10_000, cents_of_cents % 10_000)
    }
}

impl Prices {
    /// Returns the cost of one model call; `None` when it searched the web and the price of that is not known. Pages
    /// that the provider fetched cost only what they add to the input.
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let searches = match (usage.web_search_requests, self.web_search) {
            (0, _) => Money(0),
            (n_searches, each) => Money::of_micro_usd(n_searches.saturating_mul(each?)),
        };
        let at = self.of_prompt(usage.context().0);
        let written_1h = usage.cache_creation_1h_input_tokens;
        let written_5m = usage.cache_creation_input_tokens.saturating_sub(written_1h);
        let parts = [
            (usage.input_tokens, at.input),
            (usage.output_tokens, at.output),
            (written_5m, at.cache_write_5m),
            (written_1h.min(usage.cache_creation_input_tokens), at.cache_write_1h),
            (usage.cache_read_input_tokens, at.cache_read),
        ];
        let of_tokens = parts.into_iter().map(|(n, price)| Money(n.saturating_mul(price)));
        Some(of_tokens.sum::<Money>() + searches)
    }

    /// Returns the most that a request of this many tokens can cost, whatever becomes of it in the cache. Searches of
    /// the web are not in it: how many there will be is for the provider to say.
    pub(crate) fn dearest(&self, input: Tokens, output: u64) -> Money {
        let at = self.of_prompt(input.0);
        let each = at.input.max(at.cache_write_5m).max(at.cache_write_1h).max(at.cache_read);
        Money(input.0.saturating_mul(each)) + Money(output.saturating_mul(at.output))
    }

    /// The prices of a request with a prompt of this many tokens.
    fn of_prompt(&self, tokens: u64) -> Self {
        match self.long_prompt {
            Some(long) if long.above < tokens => Self {
                input: long.input,
                output: long.output,
                cache_write_5m: long.cache_write_5m,
                cache_write_1h: long.cache_write_1h,
                cache_read: long.cache_read,
                web_search: self.web_search,
                long_prompt: None,
            },
            _ => *self,
        }
    }
}
