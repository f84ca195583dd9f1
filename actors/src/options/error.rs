//! Why an option cannot be taken as it is given.

use std::fmt;

use ennead_runtime::{hook::BadMatcher, step7_permission_gate::rule::BadRule};

/// Why an option is refused where it is given, or why the environment names no endpoint; those messages name
/// the variable to set.
///
/// ```
/// use ennead::{Endpoint, Environment, OptionError, settings::Settings};
///
/// let refused = Settings::new().deny("Bash(rm");
/// assert!(matches!(refused, Err(OptionError::Rule(_))));
///
/// let error = Endpoint::from_environment(&Environment::empty()).unwrap_err();
/// assert!(matches!(error, OptionError::NotSet { provider: "anthropic", .. }));
/// assert!(error.to_string().contains("ANTHROPIC_API_KEY"));
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The permission rule cannot be read.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// The matcher of a hook is not a regular expression.
    #[error(transparent)]
    Matcher(#[from] BadMatcher),
    /// The JSON value given as settings is not an object.
    #[error("settings are a JSON object")]
    NotAnObject,
    /// `ENNEAD_PROVIDER` has none of the known values.
    #[error(
        "there is no provider `{0}`; set ENNEAD_PROVIDER to one of anthropic, openai-chat, \
         openai-responses, bedrock, bedrock-mantle, vertex, or to several with commas"
    )]
    UnknownProvider(String),
    /// Neither a key nor an address is set.
    #[error("ENNEAD_PROVIDER={provider} needs {key}, or {base} for a server without a key")]
    NotSet {
        /// The provider that was looked for.
        provider: &'static str,
        /// The variables that hold a key.
        key: &'static str,
        /// The variable that holds the address.
        base: &'static str,
    },
    /// A variable that a provider needs next to its key is not set.
    #[error("ENNEAD_PROVIDER={provider} needs {variable}")]
    Incomplete {
        /// The provider that was looked for.
        provider: &'static str,
        /// Name of the variable to set.
        variable: &'static str,
    },
    /// A name with signs that cannot be a part of an address.
    #[error("{variable} `{value}` is not a name of a region, a location or a project")]
    BadName {
        /// Name of the variable to correct.
        variable: &'static str,
        /// The name as the variable holds it.
        value: String,
    },
    /// A key that cannot be sent in a header.
    #[error("{variable} has a line break or another sign that no key has")]
    BadKey {
        /// Name of the variable to correct.
        variable: &'static str,
    },
    /// An address that cannot be asked.
    #[error("{variable} `{base}` {why}; set it to http(s)://host[:port]")]
    BadAddress {
        /// Name of the variable to correct.
        variable: &'static str,
        /// The address as the variable holds it.
        base: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An address with a user's name or a password. The message leaves it out.
    #[error("{variable} holds a name or password; set the key in its own variable")]
    Credentials {
        /// Name of the variable to correct.
        variable: &'static str,
    },
}

impl fmt::Debug for OptionError {
    // `main` shows an error by its `Debug`, and what is to be set is in the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionError: {self}")
    }
}
