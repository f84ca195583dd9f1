//! Which configured servers may be started.
//!
//! Settings may switch off servers of a project by name, and allow and deny lists of all scopes are
//! taken together. A deny always wins. What an untrusted repository says can only make it stricter.

use serde_json::Value;

use super::{
    config::{ServerConfig, ServerTransport},
    expansion::{Environment, expand},
};
use crate::{
    permission::Scope,
    step1_settings_resolution::{LayerText, trust::Trust},
};

/// Why a server is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Blocked {
    /// The setting `disabledMcpjsonServers` names the server.
    #[error("MCP server `{0}` is switched off by `disabledMcpjsonServers`")]
    Disabled(String),
    /// `deniedMcpServers` has an entry for it.
    #[error("MCP server `{0}` is not started: `deniedMcpServers` has it")]
    Denied(String),
    /// `allowedMcpServers` has no entry for it.
    #[error("MCP server `{0}` is not started: `allowedMcpServers` does not have it")]
    NotAllowed(String),
}

/// What the settings say about servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    disabled: Vec<String>,
    denied: Vec<ServerPattern>,
    /// `None`: everything is allowed.
    allowed: Option<Vec<ServerPattern>>,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerPattern {
    Name(String),
    Command(Vec<String>),
    Url(String),
}

impl Policy {
    /// Reads it from layers of settings. Keys that cannot be read count for nothing, except an
    /// allow list that is none: that allows nothing.
    pub fn of(layers: &[LayerText], trust: Trust, environment: Environment<'_>) -> Self {
        let mut policy = Self::default();
        let mut lists: Vec<(Scope, Vec<ServerPattern>)> = Vec::new();
        let mut managed_only = false;
        for layer in layers {
            let Ok(settings) = serde_json::from_str::<Value>(&layer.text) else { continue };
            let disabled = settings.get("disabledMcpjsonServers").and_then(Value::as_array);
            let names = disabled.into_iter().flatten().filter_map(Value::as_str);
            policy.disabled.extend(names.map(str::to_owned));
            policy.denied.extend(patterns(settings.get("deniedMcpServers"), environment));
            if let Some(list) = settings.get("allowedMcpServers") {
                lists.push((layer.scope, patterns(Some(list), environment)));
            }
            managed_only |= layer.scope == Scope::Policy
                && settings.get("allowManagedMcpServersOnly") == Some(&Value::Bool(true));
        }
        if managed_only {
            lists.retain(|(scope, _)| *scope == Scope::Policy);
            policy.allowed = Some(Vec::new());
        } else if trust != Trust::Trusted
            && lists.iter().any(|(scope, _)| !scope.is_of_repository())
        {
            // It may not add to what others allow; alone it makes things stricter.
            lists.retain(|(scope, _)| !scope.is_of_repository());
        }
        for (_, list) in lists {
            policy.allowed.get_or_insert_default().extend(list);
        }
        policy
    }

    /// Returns why this server may not be started; `None`: it may.
    pub fn blocks(&self, server: &ServerConfig, of_project: bool) -> Option<Blocked> {
        let name = || server.name.to_string();
        if of_project && self.disabled.iter().any(|it| **it == *server.name) {
            return Some(Blocked::Disabled(name()));
        }
        if self.denied.iter().any(|it| it.matches(server)) {
            return Some(Blocked::Denied(name()));
        }
        let allowed = self.allowed.as_ref()?;
        // An entry about the way to a server is stricter than one about its name, so a list that
        // has any of those takes names no more.
        let by_way = allowed.iter().any(|it| match &server.reach {
            ServerTransport::Stdio(_) => matches!(it, ServerPattern::Command(_)),
            ServerTransport::Http(_) | ServerTransport::Sse(_) => {
                matches!(it, ServerPattern::Url(_))
            }
        });
        let counts = |it: &&ServerPattern| !(by_way && matches!(it, ServerPattern::Name(_)));
        let is_allowed = allowed.iter().filter(counts).any(|it| it.matches(server));
        (!is_allowed).then(|| Blocked::NotAllowed(name()))
    }
}

impl ServerPattern {
    fn of(entry: &Value, environment: Environment<'_>) -> Option<Self> {
        let entry = entry.as_object().filter(|it| it.len() == 1)?;
        let expanded = |text: &str| expand(text, environment, &mut Vec::new());
        let (kind, what) = entry.iter().next()?;
        match kind.as_str() {
            "serverName" => Some(Self::Name(what.as_str()?.to_owned())),
            "serverUrl" => Some(Self::Url(expanded(what.as_str()?))),
            "serverCommand" => {
                let words: Option<Vec<&str>> = what.as_array()?.iter().map(Value::as_str).collect();
                Some(Self::Command(words?.into_iter().map(expanded).collect()))
            }
            _ => None,
        }
    }

    fn matches(&self, server: &ServerConfig) -> bool {
        match (self, &server.reach) {
            (Self::Name(name), _) => **name == *server.name,
            (Self::Command(words), ServerTransport::Stdio(program)) => words
                .split_first()
                .is_some_and(|(first, rest)| *first == program.command && rest == program.args),
            (Self::Url(pattern), reach) => {
                reach.address().is_some_and(|it| url_matches(pattern, &it.url))
            }
            (Self::Command(_), ServerTransport::Http(_) | ServerTransport::Sse(_)) => false,
        }
    }
}

fn patterns(list: Option<&Value>, environment: Environment<'_>) -> Vec<ServerPattern> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|it| ServerPattern::of(it, environment)).collect()
}

/// `*` matches anything, but what matches a host is not part of a path: host and path are
/// looked at apart. A pattern without a path matches every path.
fn url_matches(pattern: &str, url: &str) -> bool {
    let (pattern_host, pattern_path) = halves(pattern);
    let (host, path) = halves(url);
    // Who is named before an `@` is a user, and no host.
    let host = match (host.split_once("://"), host.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, authority))) => format!("{scheme}://{authority}"),
        _ => host,
    };
    let any_path = pattern_path.is_empty();
    glob(&pattern_host, &host)
        && (any_path || glob(pattern_path, if path.is_empty() { "/" } else { path }))
}

/// Scheme and host in lower case without the dot at its end, and the rest.
fn halves(url: &str) -> (String, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '\\', '?', '#']).map_or(url.len(), |at| start + at);
    let host = url[..end].to_ascii_lowercase();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => {
            (name, format!(":{port}"))
        }
        _ => (host.as_str(), String::new()),
    };
    (format!("{}{port}", name.strip_suffix('.').unwrap_or(name)), &url[end..])
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
