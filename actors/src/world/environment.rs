//! What the harness takes from its surroundings: variables, and directories of the user and the machine.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use ennead_tools::withdrawn_keys;

use crate::world::hook_process::CHAIN;

/// Everything that an [`Ennead`](crate::Ennead) reads of the process and the machine around it: variables
/// of the environment, the user's home, and the directory of an organisation's settings.
///
/// With [`Environment::empty`] nothing of them is read, and no proxy of the system is used; single
/// values can then be set. Child processes (commands, hooks, MCP servers) inherit the variables of the
/// process all the same, without those that hold a credential of an endpoint.
///
/// ```
/// use ennead::{Environment, Options};
///
/// let environment = Environment::empty().with("MCP_TIMEOUT", "500").home("/home/agent");
/// let options = Options::default().environment(environment);
/// assert_eq!(options.mcp_limits().start.as_millis(), 500);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    managed: Option<PathBuf>,
    uses_system_proxy: bool,
}

impl Environment {
    /// Returns the environment of this process as it is now, the home directory of its user, and `/etc/claude-code` for
    /// the settings of an organisation.
    pub fn of_process() -> Self {
        Self {
            variables: withdrawn_keys::variables().collect(),
            home: std::env::home_dir(),
            managed: Some("/etc/claude-code".into()),
            uses_system_proxy: true,
        }
    }

    /// Returns an environment that reads nothing: it has no variables, no home, no organisation and no proxy. Sessions
    /// then take `/` for the home directory unless [`SessionOptions::home`](crate::SessionOptions::home) names one.
    pub fn empty() -> Self {
        Self { variables: BTreeMap::new(), home: None, managed: None, uses_system_proxy: false }
    }

    /// Adds a variable, or replaces its value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Takes a variable away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(OsStr::new(name));
        self
    }

    /// Sets the home directory, for sessions that name none.
    #[must_use]
    pub fn home(self, home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..self }
    }

    /// Reads the settings and instructions of an organisation from this directory; `None`: it has none.
    #[must_use]
    pub fn managed(self, managed: Option<PathBuf>) -> Self {
        Self { managed, ..self }
    }

    /// Sets whether requests go through the proxy that the system names.
    #[must_use]
    pub fn system_proxy(self, uses_system_proxy: bool) -> Self {
        Self { uses_system_proxy, ..self }
    }

    /// Returns the value of a variable. Bytes that are not UTF-8 are replaced.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.var_os(name).map(|it| it.to_string_lossy().into_owned())
    }

    fn var_os(&self, name: &str) -> Option<&OsString> {
        self.variables.get(OsStr::new(name))
    }

    /// Returns the user's configuration directory; `None` unless `CLAUDE_CONFIG_DIR` names one.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        let value = self.var_os("CLAUDE_CONFIG_DIR");
        value.filter(|it| !it.is_empty()).map(PathBuf::from)
    }

    /// Returns the user's home; `None` if there is none.
    pub(crate) fn user_home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn home_directory(&self) -> PathBuf {
        self.home.clone().unwrap_or_else(|| "/".into())
    }

    /// Returns the directory for temporary files: `TMPDIR`, else `/tmp`.
    pub(crate) fn temporary_directory(&self) -> PathBuf {
        let named = self.var_os("TMPDIR").filter(|it| !it.is_empty());
        named.map_or_else(|| "/tmp".into(), PathBuf::from)
    }

    pub(crate) fn managed_directory(&self) -> Option<PathBuf> {
        self.managed.clone()
    }

    #[cfg(feature = "http")]
    pub(crate) fn uses_system_proxy(&self) -> bool {
        self.uses_system_proxy
    }

    /// Returns the hooks that started this process, outermost first.
    pub(crate) fn hook_chain(&self) -> Vec<String> {
        let chain = self.variable(CHAIN).unwrap_or_default();
        chain.split(':').filter(|it| !it.is_empty()).map(str::to_owned).collect()
    }
}

impl fmt::Debug for Environment {
    // Values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("home", &self.home)
            .field("managed", &self.managed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_environment_has_nothing_of_the_process() {
        let empty = Environment::empty();
        let of_process = Environment::of_process();
        assert!(of_process.variable("PATH").is_some());
        assert_eq!(empty.variables, BTreeMap::new());
        assert_eq!(empty.config_directory(), None);
        assert_eq!(empty.managed_directory(), None);
        assert_eq!(empty.home_directory(), PathBuf::from("/"));
        assert_eq!(empty.hook_chain(), [""; 0]);
        assert_eq!(empty.temporary_directory(), PathBuf::from("/tmp"));
        let named = empty.clone().with("TMPDIR", "/named");
        assert_eq!(named.temporary_directory(), PathBuf::from("/named"));
        assert!(!empty.uses_system_proxy);
    }
}
