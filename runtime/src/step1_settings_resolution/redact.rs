//! What settings say about the redaction of secrets ([`crate::redaction`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::layer::SettingsLayer;
use crate::permission::Scope;

/// The settings under `ennead.redact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RedactSettings {
    /// Whether the model, too, reads placeholders in the place of secrets. Disk and listeners always
    /// do.
    pub model: bool,
    /// Names of variables whose values are secrets, in addition to those that child processes do
    /// not get. Child processes get these.
    pub variables: BTreeSet<String>,
}

impl Default for RedactSettings {
    fn default() -> Self {
        Self { model: true, variables: BTreeSet::new() }
    }
}

/// What one layer says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LayerNames {
    model: Option<bool>,
    variables: BTreeSet<String>,
}

/// Merges the settings of redaction, of layers with the weakest first. A repository may name variables, but not decide
/// what the model sees.
pub(super) fn redact(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> RedactSettings {
    let mut settings = RedactSettings::default();
    for layer in layers {
        let section = layer.values.get("ennead").and_then(|it| it.get("redact"));
        let Some(LayerNames { model, variables }) =
            section.and_then(|it| LayerNames::deserialize(it).ok())
        else {
            continue;
        };
        settings.variables.extend(variables);
        match layer.scope {
            Scope::Project | Scope::Local if model.is_some() => warnings.push(format!(
                "{}: `ennead.redact.model` does not count here; set it in the user's settings",
                layer.source
            )),
            _ => settings.model = model.unwrap_or(settings.model),
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::step1_settings_resolution::{LayerText, merge};

    // REQ: SES-8
    #[test]
    fn repository_names_variables_and_does_not_say_what_the_model_sees() {
        let layer = |scope, section: Value| LayerText {
            scope,
            source: "s".into(),
            text: json!({"ennead": {"redact": section}}).to_string(),
        };
        let resolved = merge(&[
            layer(Scope::Project, json!({"model": false, "variables": ["ITS"]})),
            layer(Scope::User, json!({"variables": ["MINE"]})),
        ]);
        let redact = &resolved.settings.redact;
        assert!(redact.model);
        assert!(redact.variables.iter().eq(["ITS", "MINE"]));
        assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
        let off = merge(&[layer(Scope::User, json!({"model": false}))]);
        assert!(!off.settings.redact.model);
    }
}
