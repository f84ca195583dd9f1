//! Why an option cannot be taken as it is given.

use ennead_runtime::{hook::BadMatcher, step7_permission_gate::rule::BadRule};

/// Why an option is refused where it is given.
///
/// ```
/// use ennead::{OptionError, settings::Settings};
///
/// let refused = Settings::new().deny("Bash(rm");
/// assert!(matches!(refused, Err(OptionError::Rule(_))));
/// ```
#[derive(Debug, thiserror::Error)]
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
}
