//! What is in the brackets of rules for tools that neither open a path nor run a command.

use serde_json::Value;

use crate::{
    permission::RuleKind,
    sandbox::{Host, is_public},
    step7_permission_gate::rule::wildcard,
};

/// What a specifier is compared with.
pub(in super::super) struct CallFields<'a> {
    pub(in super::super) tool: &'a str,
    /// A field of the input.
    pub(in super::super) field: &'a dyn Fn(&str) -> Option<&'a Value>,
}

/// How a rule answers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Match {
    Yes,
    No,
    /// The specifier means nothing to this version. It never allows, and it makes a call that a
    /// deny or ask rule may be about a question.
    Unknown,
}

pub(super) fn yes(holds: bool) -> Match {
    if holds { Match::Yes } else { Match::No }
}

/// Returns whether a specifier is about a call.
pub(in super::super) fn specifier(text: &str, kind: RuleKind, call: &CallFields<'_>) -> Match {
    let field = |name: &str| (call.field)(name).and_then(Value::as_str);
    match call.tool {
        "Agent" | "Task" if !text.contains(':') => {
            yes(field("subagent_type").unwrap_or("general-purpose") == text.trim())
        }
        "WebFetch" => match text.trim().strip_prefix("domain:") {
            Some(domain) => match field("url").map(host) {
                Some(_) if !is_domain(domain) => Match::Unknown,
                Some(Some(host)) => yes(in_domain(domain, &host)),
                None => Match::No,
                // Nobody knows whether the rule is about it.
                Some(None) => Match::Unknown,
            },
            None => Match::Unknown,
        },
        "Skill" => {
            let (name, args) = (field("skill").unwrap_or_default(), field("args"));
            match text.strip_suffix(" *") {
                Some(prefix) => yes(name == prefix),
                None => yes(name == text && args.is_none_or(str::is_empty)),
            }
        }
        _ if kind == RuleKind::Allow => Match::Unknown,
        _ => parameter(text, call),
    }
}

/// Matches `param:value` of deny and ask rules.
pub(super) fn parameter(text: &str, call: &CallFields<'_>) -> Match {
    let Some((name, value)) = text.split_once(':') else { return Match::Unknown };
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return Match::Unknown;
    }
    let found = match (call.field)(name) {
        Some(Value::String(text)) => text.clone(),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => scalar.to_string(),
        _ => return Match::No,
    };
    yes(wildcard(value, &found))
}

/// Returns the host of an http(s) URL, in lower case; `None` when it is not certain.
pub(in super::super) fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // A user part is how one host is made to look like another.
    if authority.contains('@') {
        return None;
    }
    // Of an address in brackets the colons belong to it.
    let end = authority.starts_with('[').then(|| authority.find(']')).flatten();
    let host = match end {
        Some(end) => authority.get(..=end)?,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    (!host.is_empty()).then_some(host)
}

/// Returns whether a URL leads to this machine or into a private network, as far as its text shows: its host is an address that is
/// not public, or `localhost`, or cannot be read. Such a host has to be named by the rule that allows it: a permission for the
/// web does not extend to what a firewall protects.
pub(super) fn is_private(url: &str) -> bool {
    host(url).is_some_and(|it| match Host::read(&it) {
        Some(Host::Address(address)) => !is_public(address),
        Some(Host::Name(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => true,
    })
}

/// Whether a pattern is one of hosts as addresses write them: letters of ASCII, and neither a port nor a path.
fn is_domain(pattern: &str) -> bool {
    let is_of_host = |it: u8| it.is_ascii_alphanumeric() || b"-_.*".contains(&it);
    let pattern = pattern.trim();
    let inner = pattern.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match inner {
        Some(inner) => inner.bytes().all(|it| it.is_ascii_hexdigit() || b":.*".contains(&it)),
        None => !pattern.is_empty() && pattern.bytes().all(is_of_host),
    }
}

fn in_domain(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim().to_ascii_lowercase();
    let pattern = pattern.strip_suffix('.').unwrap_or(&pattern);
    if pattern == "*" {
        return true;
    }
    if let Some(parent) = pattern.strip_prefix("*.").filter(|it| !it.contains('*')) {
        return host.strip_suffix(parent).is_some_and(|it| it.len() > 1 && it.ends_with('.'));
    }
    let (parts, labels): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), host.split('.').collect());
    parts.len() == labels.len()
        && parts.iter().zip(labels).all(|(part, label)| wildcard(part, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-8
    #[test]
    fn domains_match_by_label() {
        for (pattern, url, expected) in [
            ("*.example.com", "https://API.example.com./x", true),
            ("*.example.com", "https://example.com", false),
            ("example.*", "http://example.evil.com", false),
            ("example.com", "https://example.com@evil.com/", false),
            ("example.com", "https://example.com:8443/a", true),
            ("*", "ftp://example.com", false),
            ("[::1]", "http://[::1]:80/", true),
            ("[::1]", "http://[::2]/", false),
        ] {
            let found = host(url).is_some_and(|it| in_domain(pattern, &it));
            assert_eq!(found, expected, "{pattern} on {url}");
        }
    }
}
