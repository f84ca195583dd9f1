//! A sum of turns, tokens and money: what agents used, or what is set aside for them.

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::{catalogue::Money, cost::Account, tokens::Tokens, transcript::entry::UnconfirmedUsage};

/// Sum of what the agents of a tree used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Turns in which a model was asked, or could have been.
    pub turns: u64,
    /// Tokens of all kinds together.
    pub tokens: Tokens,
    /// What those of known price cost.
    pub money: Money,
    /// Calls that used something and whose price is not known.
    pub unpriced: u64,
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens + other.tokens,
            money: self.money + other.money,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }
}

impl From<Account> for Spent {
    fn from(account: Account) -> Self {
        let Account { usage, cost, unpriced, .. } = account;
        Self { turns: 0, tokens: usage.total(), money: cost, unpriced }
    }
}

impl From<UnconfirmedUsage> for Spent {
    fn from(UnconfirmedUsage { tokens, cost }: UnconfirmedUsage) -> Self {
        Self { tokens, money: cost, ..Self::default() }
    }
}

impl Spent {
    /// Returns what was used after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(before.turns),
            tokens: self.tokens.saturating_sub(before.tokens),
            money: Money(self.money.0.saturating_sub(before.money.0)),
            unpriced: self.unpriced.saturating_sub(before.unpriced),
        }
    }
}
