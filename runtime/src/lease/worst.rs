//! The most that a model call can use, before it is made.

use std::sync::Arc;

use crate::{catalogue::Money, step1_settings_resolution::Settings, tokens::Tokens};

/// What is set aside for the model calls of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The size of the request with its output ceiling.
    pub tokens: Tokens,
    /// What that costs.
    pub price: Price,
}

/// What something costs, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Price {
    /// It is.
    Known(Money),
    /// It is not, for this model.
    Unknown(Arc<str>),
}

impl Worst {
    /// Nothing. What is set aside for a turn as long as its settings are not known.
    pub const NOTHING: Self = Self { tokens: Tokens(0), price: Price::Known(Money(0)) };
}

/// The worst case of a request with so much input: nothing is read from a cache, all of it is
/// written to one, and the dearest model of the chain answers up to its ceiling.
pub fn worst_case(settings: &Settings, input: Tokens) -> Worst {
    let output = u64::from(settings.max_output_tokens);
    let chain = settings.fallback.iter().map(|it| it.model.as_str());
    let mut price = Price::Known(Money(0));
    for model in std::iter::once(settings.model.as_str()).chain(chain) {
        let prices = settings.models.find(model).and_then(|it| it.prices);
        price = match (price, prices) {
            (Price::Known(dearest), Some(prices)) => {
                Price::Known(dearest.max(prices.dearest(input, output)))
            }
            (Price::Known(_), None) => Price::Unknown(model.into()),
            (unknown @ Price::Unknown(_), _) => unknown,
        };
    }
    Worst { tokens: input + Tokens(output), price }
}
