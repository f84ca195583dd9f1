//! Whom a user names to vouch for model servers, by the variables that other programs read.
//!
//! The scope of the key counts: a repository that could name an authority could
//! read what goes to the model.

use std::sync::Arc;

use serde_json::Value;

use super::layer::SettingsLayer;
use crate::permission::Scope;

/// Files, in PEM, of certificate authorities that vouch for model servers in addition to the
/// system's own. Each is as the environment of the process says where it is `None`, and there is
/// none where it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Certificates {
    /// Path that `NODE_EXTRA_CA_CERTS` names; its certificates are added.
    pub extra: Option<Arc<str>>,
    /// Path that `SSL_CERT_FILE` names; its certificates are added.
    pub file: Option<Arc<str>>,
}

impl Certificates {
    /// Names files of authorities in addition to the system's, and in their place; an empty name is not a file, and `None` is
    /// as the environment of the process says.
    pub fn new(extra: Option<Arc<str>>, file: Option<Arc<str>>) -> Self {
        Self { extra, file }
    }
}

/// Reads the certificates that `env` of the user's own layers names, weakest first. Those that a repository names are
/// for the commands that are run there, and not for the model call.
pub(super) fn certificates(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> Certificates {
    let mut certificates = Certificates::default();
    for layer in layers {
        let Some(env) = layer.values.get("env") else { continue };
        for (name, file) in [
            ("NODE_EXTRA_CA_CERTS", &mut certificates.extra),
            ("SSL_CERT_FILE", &mut certificates.file),
        ] {
            let Some(value) = env.get(name).and_then(Value::as_str) else { continue };
            match layer.scope {
                Scope::User | Scope::CliArg | Scope::Session | Scope::Policy => {
                    *file = Some(value.into())
                }
                Scope::Project | Scope::Local => warnings.push(format!(
                    "{}: `env.{name}` does not count for model servers here; set it in the \
                     environment or in the user's settings",
                    layer.source
                )),
            }
        }
    }
    certificates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step1_settings_resolution::{LayerText, merge};

    #[track_caller]
    fn check(layers: &[(Scope, &str)], extra: Option<&str>, file: Option<&str>, n_warnings: usize) {
        let text = |&(scope, env): &(Scope, &str)| LayerText {
            scope,
            source: "s".into(),
            text: format!(r#"{{"env":{env}}}"#),
        };
        let layers: Vec<_> = layers.iter().map(text).collect();
        let resolved = merge(&layers);
        let expected = Certificates { extra: extra.map(Into::into), file: file.map(Into::into) };
        assert_eq!(resolved.settings.certificates, expected);
        assert_eq!(resolved.warnings.len(), n_warnings, "{:?}", resolved.warnings);
    }

    // REQ: MDL-1
    #[test]
    fn the_user_says_whom_to_believe_and_a_repository_does_not() {
        check(&[(Scope::User, "{}")], None, None, 0);
        let named = r#"{"NODE_EXTRA_CA_CERTS":"/a","SSL_CERT_FILE":"/b"}"#;
        for scope in [Scope::User, Scope::CliArg, Scope::Policy] {
            check(&[(scope, named)], Some("/a"), Some("/b"), 0);
        }
        for scope in [Scope::Project, Scope::Local] {
            check(&[(scope, named)], None, None, 2);
        }
        let other = r#"{"NODE_EXTRA_CA_CERTS":"/c"}"#;
        let layers = [(Scope::Policy, other), (Scope::Local, named), (Scope::User, named)];
        check(&layers, Some("/c"), Some("/b"), 2);
        // Unset for the model call, whatever the environment says.
        let unset = r#"{"NODE_EXTRA_CA_CERTS":""}"#;
        check(&[(Scope::User, named), (Scope::CliArg, unset)], Some(""), Some("/b"), 0);
    }
}
