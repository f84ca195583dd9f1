//! What model servers named of their models' limits, by address and model.
//!
//! Sessions share it as long as their `Ennead` lives: what one was refused, the next does
//! not ask for. A session that is open learns for itself, from the same words.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    catalogue::Catalogue,
    step5_model_call::{FailureClass, ModelFailure, named_limits::NamedLimits},
};

use crate::options::Endpoint;
use ennead_tools::locked::Locked as _;

/// Models that are remembered; further ones are learned by each session.
const MAX_MODELS: usize = 256;

/// The lowest limits that were named, by address and model.
type KnownLimits = BTreeMap<(Arc<str>, Arc<str>), NamedLimits>;

/// See the module. Copies share what they know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned(Arc<Mutex<KnownLimits>>);

impl Learned {
    /// Notes what a failure names.
    pub(crate) fn take_in(&self, base: &Arc<str>, model: &Arc<str>, failure: &ModelFailure) {
        if !matches!(failure.class, FailureClass::OutputOverflow | FailureClass::ContextOverflow) {
            return;
        }
        let named = NamedLimits { prompt: None, ..NamedLimits::read(&failure.message) };
        let mut known = self.lock();
        let key = (Arc::clone(base), Arc::clone(model));
        if named == NamedLimits::default()
            || (MAX_MODELS <= known.len() && !known.contains_key(&key))
        {
            return;
        }
        let lowest = known.entry(key).or_default();
        lowest.window = lowest.window.into_iter().chain(named.window).min();
        lowest.max_output = lowest.max_output.into_iter().chain(named.max_output).min();
    }

    /// Applies what is known of the models at these addresses to a catalogue.
    pub(crate) fn apply_to(
        &self,
        catalogue: &Arc<Catalogue>,
        endpoints: &[Endpoint],
    ) -> Arc<Catalogue> {
        let known = self.lock();
        let mut all = Arc::clone(catalogue);
        for ((base, model), named) in known.iter() {
            if endpoints.iter().any(|it| it.base == *base) {
                all = named.apply_to(&all, model).map_or(all, Arc::new);
            }
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, KnownLimits> {
        // Whole values are put in, so a panic elsewhere spoils nothing.
        self.0.locked()
    }
}
