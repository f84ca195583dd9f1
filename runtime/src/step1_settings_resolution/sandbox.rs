//! What settings say about the sandbox of shell commands.
//!
//! A repository has no say: commands may write its files, and one that could switch its own sandbox
//! off would not be in one.

use serde_json::{Map, Value};

use super::layer::SettingsLayer;
use crate::{
    permission::Scope,
    sandbox::{HostRules, SandboxNetwork, SandboxSettings},
};

/// Merges the settings of the sandbox, of layers with the weakest first.
pub(super) fn sandbox(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> SandboxSettings {
    let mut settings = SandboxSettings::default();
    let mut is_unread = false;
    for layer in layers {
        let Some(section) = layer.values.get("sandbox") else { continue };
        let mut found = Vec::new();
        match (layer.scope, section) {
            (Scope::Project | Scope::Local, _) => found.push(
                "`sandbox` does not count here; set it in the user's settings or with --settings"
                    .to_owned(),
            ),
            (_, Value::Object(section)) => {
                settings.take(section, &mut found);
                is_unread |= section.get("network").is_some_and(denies_what_cannot_be_read);
            }
            _ => found.push("`sandbox` has the wrong type; it is ignored".to_owned()),
        }
        warnings.extend(found.into_iter().map(|it| format!("{}: {it}", layer.source)));
    }
    if is_unread && settings.network == SandboxNetwork::Listed {
        // To go on without it would allow what it denies.
        settings.unsupported.push("sandbox.network.deniedDomains".to_owned());
    }
    settings.unsupported.sort_unstable();
    settings.unsupported.dedup();
    settings
}

impl SandboxSettings {
    fn take(&mut self, section: &Map<String, Value>, warnings: &mut Vec<String>) {
        for (key, value) in section {
            let fits = match key.as_str() {
                "enabled" => read_switch(value, &mut self.enabled),
                "required" | "failIfUnavailable" => read_switch(value, &mut self.required),
                "autoAllow" | "autoAllowBashIfSandboxed" => {
                    read_switch(value, &mut self.auto_allow)
                }
                "network" => self.take_network(value, warnings),
                "filesystem" => self.take_files(value, warnings),
                "excludedCommands" => {
                    let mut patterns = Vec::new();
                    let fits = read_list(value, &mut patterns);
                    let (known, open): (Vec<_>, Vec<_>) =
                        patterns.into_iter().partition(|it| is_pattern(it));
                    warnings.extend(open.iter().map(|it| {
                        format!(
                            "`sandbox.excludedCommands`: {it:?} is ignored; a pattern is words, \
                             with ` *` at most at their end"
                        )
                    }));
                    self.excluded.extend(known);
                    fits
                }
                "allowUnsandboxedCommands" => read_switch(value, &mut self.allow_unsandboxed),
                "home" => read_path(value, &mut self.home),
                "tmpdir" => read_path(value, &mut self.tmpdir),
                _ => {
                    warnings.push(format!("`sandbox.{key}` is not a setting; it is ignored"));
                    true
                }
            };
            if !fits {
                warnings.push(format!("`sandbox.{key}` has the wrong type; it is ignored"));
            }
        }
    }

    fn take_network(&mut self, value: &Value, warnings: &mut Vec<String>) -> bool {
        match value {
            Value::String(word) if word == "off" => self.network = SandboxNetwork::Off,
            Value::String(word) if word == "open" => self.network = SandboxNetwork::Open,
            Value::Object(section) => self.take_hosts(section, warnings),
            _ => return false,
        }
        true
    }

    /// Takes lists of hosts. Lists of several files are one; without an allowed host the network is off.
    fn take_hosts(&mut self, section: &Map<String, Value>, warnings: &mut Vec<String>) {
        for (key, value) in section {
            let list = match key.as_str() {
                "allowedDomains" => &mut self.hosts.allowed,
                "deniedDomains" => &mut self.hosts.denied,
                _ => {
                    self.refuse("network", [(key, value)]);
                    continue;
                }
            };
            let mut found = Vec::new();
            if !read_list(value, &mut found) {
                warnings.push(format!("`sandbox.network.{key}` has the wrong type; it is ignored"));
            }
            let (known, open): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|it| HostRules::is_pattern(it));
            list.extend(known);
            warnings.extend(open.iter().map(|it| {
                format!(
                    "`sandbox.network.{key}`: {it:?} is ignored; a host is a name, `*.name`, `*` or \
                     an address"
                )
            }));
        }
        self.network = if self.hosts.allowed.is_empty() {
            SandboxNetwork::Off
        } else {
            SandboxNetwork::Listed
        };
    }

    fn take_files(&mut self, value: &Value, warnings: &mut Vec<String>) -> bool {
        let Value::Object(section) = value else { return false };
        for (key, value) in section {
            let list = match key.as_str() {
                "allowWrite" => &mut self.allow_write,
                "allowRead" => &mut self.allow_read,
                "denyRead" => &mut self.deny_read,
                _ => {
                    self.refuse("filesystem", [(key, value)]);
                    continue;
                }
            };
            if !read_list(value, list) {
                warnings
                    .push(format!("`sandbox.filesystem.{key}` has the wrong type; it is ignored"));
            }
        }
        true
    }

    /// Takes note of the keys that ask for something: what is empty or switched off does not.
    fn refuse<'a>(&mut self, group: &str, keys: impl IntoIterator<Item = (&'a String, &'a Value)>) {
        let asks = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        let asked = keys.into_iter().filter(|it| asks(it.1));
        self.unsupported.extend(asked.map(|(key, _)| format!("sandbox.{group}.{key}")));
    }
}

/// Whether hosts are denied in a way that has no meaning.
fn denies_what_cannot_be_read(network: &Value) -> bool {
    network.get("deniedDomains").is_some_and(|it| {
        let mut hosts = Vec::new();
        !it.is_null() && !read_list(it, &mut hosts)
            || hosts.iter().any(|it| !HostRules::is_pattern(it))
    })
}

fn read_switch(value: &Value, into: &mut bool) -> bool {
    value.as_bool().map(|it| *into = it).is_some()
}

fn read_path(value: &Value, into: &mut Option<String>) -> bool {
    value.as_str().map(|it| *into = Some(it.to_owned())).is_some()
}

fn read_list(value: &Value, into: &mut Vec<String>) -> bool {
    let Some(list) = value.as_array() else { return false };
    let Some(texts) = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return false;
    };
    for text in texts {
        if !into.iter().any(|it| it == text) {
            into.push(text.to_owned());
        }
    }
    true
}

/// Whether a pattern of an excluded command can be read.
fn is_pattern(text: &str) -> bool {
    let text = text.trim();
    let words = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")).unwrap_or(text);
    !words.trim().is_empty() && !words.contains('*')
}

#[cfg(test)]
mod tests;
