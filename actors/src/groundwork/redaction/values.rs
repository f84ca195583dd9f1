//! The values that are secrets in a session.

use std::sync::{Arc, Mutex, PoisonError};

use ennead_runtime::{
    redaction::{Patterns, SecretValue},
    step1_settings_resolution::{LayerText, Merged, Settings, merge},
};

use super::Redaction;
use crate::handle::options::{Endpoint, Environment};

/// Parts of the keys that say what is secret, in each of their spellings, and of the variables that
/// settings set.
const SPEAKING: [&str; 5] = ["ecret", "ECRET", "edact", "EDACT", "\"env\""];

/// The values of the variables that settings name as secrets, wherever they are set, and what the model
/// servers are logged in to with.
fn values(
    settings: &Settings,
    environment: &Environment,
    endpoints: &[Endpoint],
) -> Vec<SecretValue> {
    let names = settings.secrets.all().chain(settings.redact.variables.iter().map(String::as_str));
    let of_name = |name: &str| [environment.variable(name), settings.env.get(name).cloned()];
    let variables = names.flat_map(of_name).flatten();
    let credentials = endpoints.iter().flat_map(Endpoint::credentials).map(str::to_owned);
    let value = |is_credential| move |value| SecretValue { is_credential, value };
    variables.map(value(false)).chain(credentials.map(value(true))).collect()
}

/// The patterns of the session that was opened last: the next one mostly has the same values.
#[derive(Debug, Default)]
pub(crate) struct PatternsInUse(Mutex<Option<(Vec<SecretValue>, Arc<Patterns>)>>);

impl PatternsInUse {
    /// What takes secrets out of the texts of a session: by the settings that were merged of the
    /// embedder's `layers`, and those of the layers that were `read` of files. Fixed when it is opened.
    pub(crate) fn redaction(
        &self,
        merged: &Merged,
        layers: &[LayerText],
        read: &[LayerText],
        environment: &Environment,
        endpoints: &[Endpoint],
    ) -> Redaction {
        // Most files say nothing of it, and merging is not for nothing.
        let speaks = |it: &LayerText| SPEAKING.iter().any(|word| it.text.contains(word));
        let merged_anew = read.iter().any(speaks).then(|| {
            let all: Vec<_> = layers.iter().chain(read).cloned().collect();
            merge(&all).settings
        });
        let settings = merged_anew.as_ref().unwrap_or(&merged.resolved.settings);
        let patterns = self.of(values(settings, environment, endpoints));
        Redaction::new(patterns, settings.redact.model)
    }

    /// Those for these values.
    fn of(&self, values: Vec<SecretValue>) -> Arc<Patterns> {
        // Whole values are put in, so a panic elsewhere spoils nothing.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, patterns)) if *known == values => Arc::clone(patterns),
            _ => {
                let patterns = Arc::new(Patterns::new(values.iter().cloned()));
                *last = Some((values, Arc::clone(&patterns)));
                patterns
            }
        }
    }
}
