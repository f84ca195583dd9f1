//! The values that are secrets in a session.

use std::sync::{Arc, Mutex};

use ennead_runtime::{
    redaction::{Patterns, SecretValue},
    step1_settings_resolution::{LayerText, MergeOrder, Merged, Settings},
};

use super::Redaction;
use crate::{groundwork::merging, options::Endpoint, world::environment::Environment};
use ennead_tools::locked::Locked as _;

/// Parts of the keys that say what is secret, in each of their spellings, and of the variables that
/// settings set.
const SPEAKING: [&str; 5] = ["ecret", "ECRET", "edact", "EDACT", "\"env\""];

/// The values of the variables that settings name as secrets, wherever they are set.
fn variables(settings: &Settings, environment: &Environment) -> Vec<SecretValue> {
    let names = settings.secrets.all().chain(settings.redact.variables.iter().map(String::as_str));
    let of_name = |name: &str| [environment.variable(name), settings.env.get(name).cloned()];
    let value = |value| SecretValue { is_credential: false, value };
    names.flat_map(of_name).flatten().map(value).collect()
}

/// What the model servers are logged in to with.
fn credentials(endpoints: &[Endpoint]) -> impl Iterator<Item = SecretValue> {
    let credentials = endpoints.iter().flat_map(Endpoint::credentials).map(str::to_owned);
    credentials.map(|value| SecretValue { is_credential: true, value })
}

/// What the session that was opened last took for secrets: the next one mostly has the same. The
/// environment is that of an [`Ennead`](crate::Ennead) and never changes.
#[derive(Debug, Default)]
pub(crate) struct PatternsInUse(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    /// Settings, and the values of the variables that they name.
    variables: Option<(Arc<Merged>, Vec<SecretValue>)>,
    patterns: Option<(Vec<SecretValue>, Arc<Patterns>)>,
}

impl PatternsInUse {
    /// Makes the redaction of a session's texts: by the settings that were merged of the embedder's `layers`, and those
    /// of the layers that were `read` of files. It is fixed when the session is opened. Long layers are merged on the
    /// blocking pool; where that breaks off, those of the embedder apply.
    pub(crate) async fn redaction(
        &self,
        merged: Arc<Merged>,
        layers: &[LayerText],
        read: &[LayerText],
        environment: &Environment,
        endpoints: &[Endpoint],
    ) -> Redaction {
        // Most files say nothing of it, and merging is not for nothing.
        let speaks = |it: &LayerText| SPEAKING.iter().any(|word| it.text.contains(word));
        let merged_anew = if read.iter().any(speaks) {
            let order = MergeOrder::new(&Arc::default()).with(layers.to_vec()).with(read.to_vec());
            merging::merged(order).await
        } else {
            None
        };
        let merged = merged_anew.unwrap_or(merged);
        let redact = &merged.resolved.settings.redact;
        let (for_model, vault) = (redact.model, redact.vault);
        let patterns = self.of(merged, environment, credentials(endpoints));
        Redaction::new(patterns, for_model).with_vault(vault)
    }

    /// Returns the patterns for the values of a session.
    fn of(
        &self,
        merged: Arc<Merged>,
        environment: &Environment,
        credentials: impl Iterator<Item = SecretValue>,
    ) -> Arc<Patterns> {
        // Whole values are put in, so a panic elsewhere spoils nothing.
        let mut last = self.0.locked();
        let Last { variables: last_variables, patterns } = &mut *last;
        let mut values = match last_variables {
            Some((known, values)) if Arc::ptr_eq(known, &merged) => values.clone(),
            _ => {
                let values = variables(&merged.resolved.settings, environment);
                last_variables.insert((merged, values)).1.clone()
            }
        };
        values.extend(credentials);
        match patterns {
            Some((known, patterns)) if *known == values => Arc::clone(patterns),
            _ => {
                let made = Arc::new(Patterns::new(values.iter().cloned()));
                Arc::clone(&patterns.insert((values, made)).1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ennead_runtime::permission::Scope;
    use futures::FutureExt;

    use super::*;

    fn file_of(n_bytes: usize) -> LayerText {
        let filler = "x".repeat(n_bytes);
        let text = format!(r#"{{"ennead":{{"secretEnv":["TOKEN"]}},"filler":"{filler}"}}"#);
        LayerText::new(Scope::User, "user.json", text)
    }

    // REQ: TRN-1
    #[tokio::test]
    async fn long_settings_that_name_secrets_are_merged_where_no_session_waits() {
        let in_use = PatternsInUse::default();
        let nothing = Arc::new(MergeOrder::new(&Arc::default()).merge());
        let environment = Environment::empty().with("TOKEN", "a-secret-value-1234");
        for (n_bytes, is_in_place) in [(0, true), (32 << 20, false)] {
            let read = [file_of(n_bytes)];
            let mut finding =
                Box::pin(in_use.redaction(Arc::clone(&nothing), &[], &read, &environment, &[]));
            let found = finding.as_mut().now_or_never();
            assert_eq!(found.is_some(), is_in_place, "{n_bytes}");
            let redaction = match found {
                Some(found) => found,
                None => finding.await,
            };
            let mut shown = "it is a-secret-value-1234".to_owned();
            redaction.redactor().in_place(&mut shown);
            assert!(!shown.contains("a-secret-value"), "{n_bytes}: {shown}");
        }
    }
}
