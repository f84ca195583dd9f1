//! Reading the built-in facts, and laying a user's over them.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Catalogue, ModelFacts};

/// What a user says about models: `ennead.catalogue` in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogueOverrides {
    /// By name; members that are left out stay as they are known, or as they are for an unknown
    /// model.
    pub models: BTreeMap<String, Map<String, Value>>,
    /// Full model names, by the alias that a user writes.
    pub aliases: BTreeMap<String, String>,
}

/// Why a text or an entry is not part of a catalogue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotACatalogue {
    /// The text cannot be read.
    #[error("the catalogue cannot be read: {0}")]
    Unreadable(String),
    /// An entry has a member that is wrong.
    #[error("the catalogue's entry for `{model}` is left out: {what}")]
    Entry {
        /// Name of the model in the entry.
        model: String,
        /// What is wrong with the entry, in words.
        what: String,
    },
}

/// The form of the built-in facts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    aliases: BTreeMap<String, Arc<str>>,
    model: Vec<ModelFacts>,
}

pub(super) fn read(text: &str) -> Result<Catalogue, NotACatalogue> {
    let unreadable = |it: toml::de::Error| NotACatalogue::Unreadable(it.message().into());
    let File { aliases, model } = toml::from_str(text).map_err(unreadable)?;
    Ok(Catalogue { aliases, ..Catalogue::of(model) })
}

#[doc(hidden)]
impl Catalogue {
    /// Applies a user's overrides to this catalogue. Entries that are wrong are left out and come back as errors; the
    /// others hold.
    #[must_use]
    pub fn with(&self, over: &CatalogueOverrides) -> (Self, Vec<NotACatalogue>) {
        let mut all = self.clone();
        let mut wrong = Vec::new();
        for (name, members) in &over.models {
            match self.entry(name, members) {
                Ok(entry) => {
                    all.models.insert(entry.id.clone(), Arc::new(entry));
                }
                Err(what) => wrong.push(NotACatalogue::Entry { model: name.clone(), what }),
            }
        }
        let aliases = over.aliases.iter().map(|(name, of)| (name.clone(), of.as_str().into()));
        all.aliases.extend(aliases);
        (all, wrong)
    }

    fn entry(&self, name: &str, members: &Map<String, Value>) -> Result<ModelFacts, String> {
        let known = self.find(name).map(|it| ModelFacts::clone(it));
        let known = known.unwrap_or_else(|| ModelFacts { id: name.into(), ..Default::default() });
        let (id, source) = (known.id.clone(), known.source.clone());
        let mut all = match serde_json::to_value(&known) {
            Ok(Value::Object(known)) => known,
            _ => Map::new(),
        };
        lay_over(&mut all, members);
        let entry = ModelFacts::deserialize(Value::Object(all)).map_err(|it| it.to_string())?;
        if entry.window <= u64::from(entry.default_output) {
            return Err("`window` must be larger than `default_output`".into());
        }
        if entry.default_output == 0 || entry.max_output < entry.default_output {
            return Err("`default_output` must be between 1 and `max_output`".into());
        }
        if 100 < entry.reasoning_percent {
            return Err("`reasoning_percent` must be at most 100".into());
        }
        Ok(ModelFacts { id, source, ..entry })
    }
}

/// Objects member by member, anything else whole: a model that takes fewer efforts must be able to
/// say so.
fn lay_over(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lay_over(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}
