//! The models that a turn may ask, in order: the one of the settings, then those it falls back on.
//!
//! The ledger decides when the next model is asked; the chain lists the models. A turn
//! begins with the first model whatever the turn before had to turn to.

use std::sync::Arc;

use crate::{
    step1_settings_resolution::{FallbackModel, Settings},
    step5_model_call::wire_format::Provider,
};

/// Models after the first one; what is listed after them is never asked.
pub const MAX_FALLBACKS: usize = 3;

/// One model of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainModel {
    /// A place in [`SessionFacts::providers`](crate::run::facts::SessionFacts).
    pub provider: usize,
    /// The model, by its name there.
    pub model: Arc<str>,
}

/// What bounds a request to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelLimits {
    /// Tokens of input and output together.
    pub window: u64,
    /// Tokens of output at most.
    pub max_output: u32,
}

/// A model that was turned to because the first one could not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbackUsed {
    /// Its provider, by name.
    pub provider: Arc<str>,
    /// The model, by its name there.
    pub model: Arc<str>,
}

impl FallbackUsed {
    /// Names a model and its provider.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}

/// Makes the chain of models, and lists what was left out of it, in words.
///
/// A name `provider/model` is taken apart when a provider of that name is known; otherwise the
/// slash belongs to the model, which is asked at the first provider. Where settings name nothing,
/// the other providers are asked for the same model, in their order.
pub fn chain(settings: &Settings, providers: &[Provider]) -> (Vec<ChainModel>, Vec<String>) {
    let first = ChainModel { provider: 0, model: settings.model.as_str().into() };
    let mut links = vec![first];
    let mut problems = Vec::new();
    let place = |name: &str| providers.iter().position(|it| &*it.name == name);
    let mut add = |link: ChainModel| {
        if !links.contains(&link) && links.len() <= MAX_FALLBACKS {
            links.push(link);
        }
    };
    if settings.fallback.is_empty() {
        let model: Arc<str> = settings.model.as_str().into();
        (1..providers.len())
            .for_each(|provider| add(ChainModel { provider, model: Arc::clone(&model) }));
    }
    for fallback in &settings.fallback {
        let FallbackModel { provider, model } = fallback;
        let link = match provider {
            Some(name) => place(name).map(|provider| (provider, model.as_str())),
            None => {
                let parts = model.split_once('/');
                let named = parts.and_then(|(name, model)| Some((place(name)?, model)));
                Some(named.unwrap_or((0, model)))
            }
        };
        match link {
            Some((provider, model)) => {
                add(ChainModel { provider, model: settings.models.resolve(model).into() });
            }
            None => problems.push(format!(
                "the fallback model {model} is left out: there is no provider {}",
                provider.as_deref().unwrap_or_default()
            )),
        }
    }
    (links, problems)
}

/// Returns what bounds requests to a model: for the first of the chain the settings, for another the catalogue. A model
/// that is not in the catalogue is assumed to do the same.
pub(crate) fn model_limits(settings: &Settings, model: &str) -> ModelLimits {
    let of_other = || (settings.model != model).then(|| settings.models.find(model)).flatten();
    match of_other() {
        Some(known) => ModelLimits { window: known.window, max_output: known.max_output },
        None => ModelLimits {
            window: settings.context_window,
            max_output: settings.model_max_output_tokens,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str) -> Provider {
        Provider { name: name.into(), format: Default::default() }
    }

    /// `fallback` as in settings; an apart provider is written `name>model`.
    #[track_caller]
    fn check(fallback: &[&str], providers: &[&str], expected: &[(usize, &str)], n_problems: usize) {
        let read = |text: &&str| match text.split_once('>') {
            Some((provider, model)) => {
                FallbackModel { provider: Some(provider.into()), model: model.into() }
            }
            None => FallbackModel { provider: None, model: (*text).into() },
        };
        let fallback = fallback.iter().map(read).collect();
        let settings = Settings { model: "m".into(), fallback, ..Settings::default() };
        let providers: Vec<_> = providers.iter().map(|it| provider(it)).collect();
        let (links, problems) = chain(&settings, &providers);
        let found: Vec<_> = links.iter().map(|it| (it.provider, &*it.model)).collect();
        assert_eq!(found, expected);
        assert_eq!(problems.len(), n_problems, "{problems:?}");
    }

    // REQ: MDL-8
    #[test]
    fn chain_is_the_model_and_at_most_three_others() {
        check(&[], &["a"], &[(0, "m")], 0);
        check(&["x"], &["a"], &[(0, "m"), (0, "x")], 0);
        check(&["1", "2", "3", "4"], &["a"], &[(0, "m"), (0, "1"), (0, "2"), (0, "3")], 0);
        check(&["m", "x", "x"], &["a"], &[(0, "m"), (0, "x")], 0);
    }

    // REQ: MDL-8
    #[test]
    fn model_of_another_provider_is_named_with_it() {
        check(&["b/x", "c>y"], &["a", "b", "c"], &[(0, "m"), (1, "x"), (2, "y")], 0);
        check(&["vendor/x"], &["a", "b"], &[(0, "m"), (0, "vendor/x")], 0);
        check(&["b/vendor/x"], &["a", "b"], &[(0, "m"), (1, "vendor/x")], 0);
        check(&["z>x", "y"], &["a"], &[(0, "m"), (0, "y")], 1);
    }

    // REQ: MDL-8
    #[test]
    fn other_providers_are_asked_for_the_same_model_when_nothing_is_named() {
        check(&[], &["a", "b", "c"], &[(0, "m"), (1, "m"), (2, "m")], 0);
        check(&["x"], &["a", "b"], &[(0, "m"), (0, "x")], 0);
    }
}
