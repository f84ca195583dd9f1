//! Variables of the environment that MCP servers do not get.

use std::collections::BTreeSet;

use ennead_runtime::step1_settings_resolution::{LayerText, SecretEnv, merge};

use crate::options::{Endpoint, credentials::secret_variables};

/// Variables that servers do not get.
pub(super) struct WithheldVariables {
    secret_env: SecretEnv,
    /// Those that hold a credential of a model server, whatever their names are.
    held: BTreeSet<String>,
}

impl WithheldVariables {
    pub(super) fn of(layers: &[LayerText], endpoints: &[Endpoint]) -> Self {
        let held = secret_variables(endpoints).iter().map(|(name, _)| name.clone()).collect();
        Self { secret_env: merge(layers).settings.secrets.clone(), held }
    }

    pub(super) fn is_for(&self, server: &str, name: &str) -> bool {
        let is_named = self.secret_env.by_server.get(server).is_some_and(|it| it.contains(name));
        is_named || (self.secret_env.is_for(server, name) && !self.held.contains(name))
    }

    pub(super) fn withheld_from(&self, server: &str) -> Vec<String> {
        let all = self.secret_env.all().chain(self.held.iter().map(String::as_str));
        let withheld: BTreeSet<&str> = all.filter(|it| !self.is_for(server, it)).collect();
        withheld.into_iter().map(str::to_owned).collect()
    }
}
