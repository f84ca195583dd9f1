//! The most that a model call can use, before it is made.

use std::sync::Arc;

use crate::{
    catalogue::{Catalogue, Money},
    tokens::Tokens,
    transcript::entry::UnconfirmedUsage,
};

/// What is set aside for a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxCost {
    /// Tokens of input and output together.
    pub tokens: Tokens,
    /// What the tokens cost, if that is known.
    pub price: Price,
}

/// What something costs, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Price {
    /// The price is known and is this.
    Known(Money),
    /// It is not, for this model.
    Unknown(Arc<str>),
}

impl Price {
    /// Returns the amount; `None` if it is not known.
    pub fn known(&self) -> Option<Money> {
        match self {
            Price::Known(money) => Some(*money),
            Price::Unknown(_) => None,
        }
    }
}

impl From<MaxCost> for UnconfirmedUsage {
    fn from(MaxCost { tokens, price }: MaxCost) -> Self {
        Self { tokens, cost: price.known().unwrap_or_default() }
    }
}

impl MaxCost {
    /// Computes the most that a request with this input and an answer up to its ceiling can cost: nothing is read from
    /// a cache, all of it is written to one.
    pub(crate) fn of_call(models: &Catalogue, model: &str, input: Tokens, max_output: u32) -> Self {
        let output = u64::from(max_output);
        let price = match models.find(model).and_then(|it| it.prices) {
            Some(prices) => Price::Known(prices.dearest(input, output)),
            None => Price::Unknown(model.into()),
        };
        Self { tokens: input + Tokens(output), price }
    }
}
