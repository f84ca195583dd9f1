//! What is known about models: windows, ceilings, prices, caches, thinking (CTX-4).
//!
//! Data, not code: the built-in facts are in `catalogue/*.toml`, each with its source, and a
//! user's settings lie over them. The one that holds a [`Catalogue`] hands it down; there is no
//! global one. What is not in it is not guessed: an unknown model has the limits of
//! [`ModelFacts::default`], no prices and no thinking.

mod names;
mod overrides;
mod platform_names;
mod price;
mod thinking;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

pub(crate) use names::canonical;
use names::without_region;
pub use overrides::{CatalogueOverrides, NotACatalogue};
use platform_names::PlatformNames;
pub use price::{LongPrompt, Money, Prices};
pub use thinking::{Disabling, Effort, Sampling, ThinkingDisplay, ThinkingSupport};

/// The facts that are compiled in, as JSON.
const BUILT_IN: &str = concat!(
    include_str!("catalogue/models.toml"),
    "\n",
    include_str!("catalogue/openai_models.toml"),
    "\n",
    include_str!("catalogue/open_models.toml"),
);

/// Facts about models, by canonical name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Catalogue {
    models: BTreeMap<Arc<str>, Arc<ModelFacts>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    aliases: BTreeMap<String, Arc<str>>,
    #[serde(skip)]
    platform_names: PlatformNames,
}

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelFacts {
    /// Its name on the first-party API, without date; see `canonical`.
    pub id: Arc<str>,
    /// Tokens of input and output together.
    pub window: u64,
    /// Tokens that one answer can have.
    pub max_output: u32,
    /// Output ceiling of a call without a configured one.
    pub default_output: u32,
    /// The shortest prefix that is cached, in tokens; 0 when not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub min_cached: u32,
    /// What its tokens cost; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// How it takes thinking, effort and sampling.
    #[serde(skip_serializing_if = "ThinkingSupport::is_none")]
    pub thinking: ThinkingSupport,
    /// The month that its knowledge reaches to, as `2026-01`; empty when not known.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub knowledge: String,
    /// A line for the system prompt; empty for none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub style: String,
    /// Hundredths of the output ceiling that are the thinking budget of a model which takes one and is
    /// asked to reason as it sees fit.
    pub reasoning_percent: u8,
    /// Its names on platforms that do not use `id`; it is found under each.
    #[serde(skip_serializing_if = "PlatformIds::is_empty")]
    pub ids: PlatformIds,
    /// Where these facts are from, and when they were looked up.
    #[serde(skip_serializing)]
    pub source: String,
}

/// Names of a model on other platforms, such as the ARN of an inference profile. [`Catalogue::find`] knows
/// them, in addition to those that its rules make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PlatformIds {
    /// Name of the model on `bedrock-runtime`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bedrock_runtime: Option<Arc<str>>,
    /// Name of the model on Vertex AI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertex: Option<Arc<str>>,
}

impl Default for ModelFacts {
    fn default() -> Self {
        Self {
            id: "".into(),
            window: 200_000,
            max_output: 64_000,
            default_output: 32_000,
            min_cached: 0,
            prices: None,
            thinking: ThinkingSupport::default(),
            knowledge: String::new(),
            style: String::new(),
            reasoning_percent: 50,
            ids: PlatformIds::default(),
            source: String::new(),
        }
    }
}

impl ModelFacts {
    /// Returns the thinking budget under this output ceiling where none is configured, in tokens.
    pub(crate) fn reasoning_budget(&self, max_tokens: u32) -> u32 {
        let budget = u64::from(max_tokens) * u64::from(self.reasoning_percent) / 100;
        u32::try_from(budget).unwrap_or(max_tokens)
    }
}

impl PlatformIds {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Catalogue {
    /// Reads the built-in facts. Each call reads them anew, so the caller keeps them.
    pub fn built_in() -> Self {
        // That they can be read is a test.
        overrides::read(BUILT_IN).unwrap_or_default()
    }

    /// Makes a catalogue of these models and no aliases.
    pub(crate) fn of(models: impl IntoIterator<Item = ModelFacts>) -> Self {
        let models = models.into_iter().map(|it| (it.id.clone(), Arc::new(it))).collect();
        Self { models, ..Self::default() }
    }

    /// Returns the name that an alias (`opus`, `sonnet`, …) has in full; any other name is given back.
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, |it| it)
    }

    /// Returns what is known about a model, whatever platform the name or alias is from.
    pub fn find(&self, name: &str) -> Option<&Arc<ModelFacts>> {
        let name = self.resolve(name);
        let by_rule = || Some(canonical(name)).filter(|it| *it != name);
        let by_platform = || {
            // With a region in front or without.
            let names = [name, without_region(name)];
            self.models.get(self.platform_names.find(&self.models, names)?)
        };
        self.models.get(name).or_else(|| self.models.get(by_rule()?)).or_else(by_platform)
    }

    /// Returns what is known under these names and no others.
    #[must_use]
    pub(crate) fn excerpt<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut excerpt = Self::default();
        for name in names {
            if let Some(of) = self.aliases.get(name) {
                excerpt.aliases.insert(name.into(), of.clone());
            }
            if let Some(facts) = self.find(name) {
                excerpt.models.insert(facts.id.clone(), Arc::clone(facts));
            }
        }
        excerpt
    }

    /// Replaces what is known about one model by these facts.
    #[must_use]
    pub(crate) fn with_model(&self, facts: ModelFacts) -> Self {
        let mut all = self.clone();
        all.models.insert(facts.id.clone(), Arc::new(facts));
        all
    }

    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty() && self.aliases.is_empty()
    }

    /// Returns all models, by name.
    pub fn models(&self) -> impl Iterator<Item = &Arc<ModelFacts>> {
        self.models.values()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(amount: &u32) -> bool {
    *amount == 0
}

#[cfg(test)]
mod tests;
