//! Estimates by the rules of each revision.

use std::{iter::Sum, ops::Add};

use serde::{Deserialize, Serialize};

use super::{CHARS_PER_TOKEN, Tokens, by_class::Size, learned::Factor};

/// What something is estimated at, by all rules: a session goes by those of its revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    by_chars: Tokens,
    by_class: Tokens,
}

/// The rule that a session goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Four characters are a token.
    Chars,
    /// By the kinds of characters, and what is learned of the model.
    Classes(Factor),
}

impl Estimate {
    /// Returns the estimate for this size, rounded up.
    pub(crate) fn of(size: Size) -> Self {
        Self { by_chars: Tokens::from_chars(size.chars), by_class: Tokens(size.by_class()) }
    }

    /// Restores an estimate that was recorded.
    pub(crate) fn recorded(by_class: Tokens, by_chars: Tokens) -> Self {
        Self { by_chars, by_class }
    }

    /// Returns what is recorded of it: by the kinds of characters, and by characters alone.
    pub(crate) fn to_record(self) -> (Tokens, Tokens) {
        (self.by_class, self.by_chars)
    }

    /// Replaces the estimate by characters alone.
    pub(crate) fn with_chars(self, by_chars: Tokens) -> Self {
        Self { by_chars, ..self }
    }

    /// Returns the most that it can be: a token for each character.
    pub(crate) fn at_most(self) -> Tokens {
        self.by_chars.at_most()
    }

    /// Returns the estimate by the kinds of characters.
    pub(crate) fn by_class(self) -> Tokens {
        self.by_class
    }

    /// Returns this minus `other`, at least 0.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self {
            by_chars: self.by_chars.saturating_sub(other.by_chars),
            by_class: self.by_class.saturating_sub(other.by_class),
        }
    }
}

impl Counting {
    /// Returns the tokens of an estimate.
    pub(crate) fn tokens(self, estimate: Estimate) -> Tokens {
        match self {
            Self::Chars => estimate.by_chars,
            Self::Classes(factor) => factor.apply(estimate.by_class),
        }
    }

    /// Returns `before` after what was estimated at `was` has become `is`.
    pub(crate) fn moved(self, before: Tokens, was: Estimate, is: Estimate) -> Tokens {
        (before + self.tokens(is.saturating_sub(was)))
            .saturating_sub(self.tokens(was.saturating_sub(is)))
    }

    /// Returns how many characters of a text of this size make this many tokens, rounded up.
    pub(crate) fn chars_of(self, tokens: Tokens, size: Size) -> u64 {
        match self {
            Self::Chars => tokens.0.saturating_mul(CHARS_PER_TOKEN),
            Self::Classes(factor) => size.chars_of(factor.undo(tokens).0),
        }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { by_chars: self.by_chars + other.by_chars, by_class: self.by_class + other.by_class }
    }
}

impl Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(estimates: I) -> Self {
        estimates.fold(Self::default(), Add::add)
    }
}
