//! What settings say about the redaction of secrets ([`crate::redaction`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::layer::SettingsLayer;
use crate::{permission::Scope, redaction::VaultKey};

/// The settings under `ennead.redact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RedactSettings {
    /// Whether the model, too, reads placeholders in the place of secrets. Disk and listeners always
    /// do.
    pub model: bool,
    /// What is kept of secrets that the model is shown is sealed to this key; `None`: nothing is kept. Without effect
    /// while the model reads placeholders.
    pub vault: Option<VaultKey>,
    /// Names of variables whose values are secrets, in addition to those that child processes do
    /// not get. Child processes get these.
    pub variables: BTreeSet<String>,
}

impl Default for RedactSettings {
    fn default() -> Self {
        Self { model: true, vault: None, variables: BTreeSet::new() }
    }
}

/// What one layer says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LayerNames {
    model: Option<bool>,
    vault: Option<VaultKey>,
    variables: BTreeSet<String>,
}

/// Merges the settings of redaction, of layers with the weakest first. A repository may name variables, but not decide
/// what the model sees, nor who can read what it saw.
pub(super) fn redact(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> RedactSettings {
    let mut settings = RedactSettings::default();
    for layer in layers {
        let section = layer.values.get("ennead").and_then(|it| it.get("redact"));
        let Some(LayerNames { model, vault, variables }) =
            section.and_then(|it| LayerNames::deserialize(it).ok())
        else {
            continue;
        };
        settings.variables.extend(variables);
        if matches!(layer.scope, Scope::Project | Scope::Local) {
            let given = [("model", model.is_some()), ("vault", vault.is_some())];
            warnings.extend(given.iter().filter(|it| it.1).map(|(name, _)| {
                format!(
                    "{}: `ennead.redact.{name}` does not count here; set it in the user's settings",
                    layer.source
                )
            }));
            continue;
        }
        settings.model = model.unwrap_or(settings.model);
        settings.vault = vault.or(settings.vault);
    }
    settings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        redaction::secret_key_text,
        step1_settings_resolution::{LayerText, Resolved, merge},
    };

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

    // REQ: SES-8
    #[test]
    fn vault_has_the_key_of_the_strongest_layer_that_is_no_repositorys() {
        let layer = |scope, key: &str| LayerText {
            scope,
            source: "s".into(),
            text: json!({"ennead": {"redact": {"vault": key}}}).to_string(),
        };
        let [mine, theirs, its] = [1, 2, 3].map(|it| VaultKey::new([it; 32]));
        let resolved = merge(&[
            layer(Scope::User, &mine.to_string()),
            layer(Scope::Policy, &theirs.to_string()),
            layer(Scope::Project, &its.to_string()),
        ]);
        assert_eq!(resolved.settings.redact.vault, Some(theirs));
        assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
        assert!(resolved.warnings[0].contains("redact.vault` does not count here"));
        // The secret key by mistake, which is not repeated.
        let secret = secret_key_text(&[7; 32]);
        for wrong in ["", "x", &secret] {
            let Resolved { settings, warnings, .. } =
                merge(&[layer(Scope::User, &mine.to_string()), layer(Scope::Policy, wrong)]);
            assert_eq!(settings.redact.vault, Some(mine));
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains("`ennead.redact.vault` is not a public key of a vault"));
            assert!(!warnings[0].contains("0707"), "{warnings:?}");
        }
    }
}
