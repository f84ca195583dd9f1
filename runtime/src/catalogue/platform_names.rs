//! Models by the names that other platforms give them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use super::{ModelFacts, PlatformIds};

type ModelOfName = BTreeMap<Arc<str>, Arc<str>>;

/// The model that each name of a platform is of, made when a name is first looked for that no model has
/// itself. It follows from the models of a catalogue: a clone, which others may be added to, makes its own.
#[derive(Debug, Default)]
pub(super) struct PlatformNames(OnceLock<ModelOfName>);

impl PlatformNames {
    /// Returns the first of the models, by id, that a platform calls by one of these names.
    pub(super) fn find(
        &self,
        models: &BTreeMap<Arc<str>, Arc<ModelFacts>>,
        names: [&str; 2],
    ) -> Option<&Arc<str>> {
        let known = self.0.get_or_init(|| {
            let mut all = ModelOfName::new();
            for (id, facts) in models {
                let PlatformIds { bedrock_runtime, vertex } = &facts.ids;
                for name in bedrock_runtime.iter().chain(vertex) {
                    all.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(id));
                }
            }
            all
        });
        names.into_iter().filter_map(|it| known.get(it)).min()
    }
}

impl Clone for PlatformNames {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Equal models have equal names.
impl PartialEq for PlatformNames {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PlatformNames {}
