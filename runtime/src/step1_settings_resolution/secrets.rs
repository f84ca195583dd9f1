//! Variables that are for the harness alone: keys of providers, and what `ennead.secretEnv` names.
//!
//! They are taken away from shell commands, hooks and MCP servers. Only the one that runs the
//! session can hand one to a server, by `ennead.serverEnv`; a repository cannot.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::layer::SettingsLayer;
use crate::permission::Scope;

/// Keys of providers and of collectors of spans, by the names that their own documentation gives to them.
pub const PROVIDER_KEYS: [&str; 27] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "GROQ_API_KEY",
    "LITELLM_API_KEY",
    "LITELLM_MASTER_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_ADMIN_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// What settings say about secret variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretEnv {
    /// `ennead.secretEnv` of all layers: names next to [`PROVIDER_KEYS`].
    pub names: BTreeSet<String>,
    /// `ennead.serverEnv` of the user's own layers: secrets that a server gets, by its name.
    pub by_server: BTreeMap<String, BTreeSet<String>>,
}

impl SecretEnv {
    /// Reads it from layers.
    pub(super) fn of(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> Self {
        let mut secrets = Self::default();
        for layer in layers {
            let own = |key: &str| layer.values.get("ennead").and_then(|it| it.get(key));
            // A repository may keep more from its commands, too.
            let names = own("secret_env").and_then(|it| Vec::deserialize(it).ok());
            secrets.names.extend(names.into_iter().flatten());
            let Some(servers) = own("server_env").and_then(Value::as_object) else { continue };
            match layer.scope {
                Scope::User | Scope::Policy | Scope::CliArg | Scope::Session => {
                    for (server, names) in servers {
                        let names: Vec<String> = Vec::deserialize(names).unwrap_or_default();
                        secrets.by_server.entry(server.clone()).or_default().extend(names);
                    }
                }
                Scope::Project | Scope::Local => warnings.push(format!(
                    "{}: `ennead.serverEnv` does not count here; set it in the user's settings",
                    layer.source
                )),
            }
        }
        secrets
    }

    /// Returns all names, in order.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let own = self.names.iter().map(String::as_str).filter(|it| !PROVIDER_KEYS.contains(it));
        PROVIDER_KEYS.into_iter().chain(own)
    }

    /// Returns whether a variable is kept from everything that a session starts.
    pub(crate) fn is_secret(&self, name: &str) -> bool {
        PROVIDER_KEYS.contains(&name) || self.names.contains(name)
    }

    /// Returns whether a server may have this variable, secret or not.
    pub fn is_for(&self, server: &str, name: &str) -> bool {
        !self.is_secret(name) || self.by_server.get(server).is_some_and(|it| it.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::step1_settings_resolution::{LayerText, Resolved, merge};

    fn merged(layers: &[(Scope, Value)]) -> Resolved {
        let layer = |(scope, value): &(Scope, Value)| LayerText {
            scope: *scope,
            source: "s".into(),
            text: json!({ "ennead": value }).to_string(),
        };
        merge(&layers.iter().map(layer).collect::<Vec<_>>())
    }

    #[test]
    fn every_layer_may_name_secrets_and_only_the_users_own_may_hand_them_out() {
        let resolved = merged(&[
            (Scope::User, json!({"secretEnv": ["MINE"], "serverEnv": {"s": ["OPENAI_API_KEY"]}})),
            (Scope::Project, json!({"secretEnv": ["ITS"], "serverEnv": {"s": ["MINE"]}})),
            (Scope::Policy, json!({"serverEnv": {"s": ["ITS"], "t": ["MINE"]}})),
        ]);
        let secrets = &resolved.settings.secrets;
        for (server, name, expected) in [
            ("s", "OPENAI_API_KEY", true),
            ("s", "ITS", true),
            ("s", "MINE", false),
            ("t", "MINE", true),
            ("t", "OPENAI_API_KEY", false),
            ("t", "PATH", true),
        ] {
            assert_eq!(secrets.is_for(server, name), expected, "{server} {name}");
        }
        assert!(["MINE", "ITS", "ANTHROPIC_API_KEY"].iter().all(|it| secrets.is_secret(it)));
        assert_eq!(secrets.all().count(), PROVIDER_KEYS.len() + 2);
        assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
    }

    #[test]
    fn lists_that_are_none_are_told_and_count_for_nothing() {
        let resolved = merged(&[(Scope::User, json!({"secretEnv": "A", "serverEnv": {"s": "A"}}))]);
        assert_eq!(resolved.settings.secrets, SecretEnv::default());
        assert_eq!(resolved.warnings.len(), 2, "{:?}", resolved.warnings);
    }
}
