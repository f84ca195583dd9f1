//! What other settings leave of hooks: which servers they may ask, and which variables they may send
//! (`allowedHttpHookUrls`, `httpHookAllowedEnvVars`).
//!
//! A repository has no say: it could let its own hooks ask whom it likes.

use serde_json::Value;

use super::layer::SettingsLayer;
use crate::{
    hook::{HookAction, HookTable},
    permission::Scope,
    step7_permission_gate::rule::{Rule, wildcard},
};

/// The setting with patterns of the addresses that hooks may ask.
const URLS: &str = "allowedHttpHookUrls";

/// The setting with names of the variables that hooks may send.
const VARIABLES: &str = "httpHookAllowedEnvVars";

/// What the user's and the organisation's settings leave of handlers that ask servers.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpHookLimits {
    /// Patterns of addresses, in which `*` is anything; `None`: every address may be asked.
    urls: Option<Vec<String>>,
    /// Names of variables; `None`: each handler may use those that it names.
    variables: Option<Vec<String>>,
}

impl HttpHookLimits {
    /// Takes from a handler what is not allowed. Returns whether it may run.
    fn restrict(&self, action: &mut HookAction) -> bool {
        let HookAction::Http(http) = action else { return true };
        if let Some(allowed) = &self.variables {
            http.variables.retain(|it| allowed.contains(it));
        }
        self.urls.as_ref().is_none_or(|urls| urls.iter().any(|it| covers(it, &http.url)))
    }
}

/// Whether a pattern of addresses covers this one. `*` in front of the path is part of a host or a port, and an address
/// with a user or a backslash, which readers take for different hosts, is covered by `*` alone.
fn covers(pattern: &str, url: &str) -> bool {
    let Some((schemes, pattern)) = pattern.split_once("://") else { return pattern == "*" };
    let Some((scheme, url)) = url.split_once("://") else { return false };
    let apart = |it: &str| {
        let (authority, path) = it.split_at(it.find(['/', '?', '#']).unwrap_or(it.len()));
        (authority.to_ascii_lowercase(), path.to_owned())
    };
    let ((mut hosts, mut paths), (host, path)) = (apart(pattern), apart(url));
    // `https://host*` is every path of that host.
    let all_of = hosts.strip_suffix('*').filter(|it| paths.is_empty() && !it.is_empty());
    if let Some(all_of) = all_of.filter(|it| !it.ends_with(['.', ':', '*'])).map(str::to_owned) {
        (hosts, paths) = (all_of, "*".to_owned());
    }
    let is_all = |paths: &str| matches!(paths, "*" | "/*") && path.is_empty();
    !host.contains(['@', '\\'])
        && wildcard(schemes, scheme)
        && wildcard(&hosts, &host)
        && (wildcard(&paths, &path) || is_all(&paths))
}

/// Reads what the layers allow, those of the user and of the organisation together.
pub(super) fn limits(layers: &[SettingsLayer], warnings: &mut Vec<String>) -> HttpHookLimits {
    let mut of_key = |key: &str| {
        let mut allowed: Option<Vec<String>> = None;
        for layer in layers {
            let Some(value) = layer.values.get(key) else { continue };
            let source = &layer.source;
            match (layer.scope, value.as_array()) {
                (Scope::Project | Scope::Local, _) => warnings.push(format!(
                    "{source}: `{key}` does not count here; set it in the user's settings"
                )),
                (_, Some(list)) => {
                    let texts = list.iter().filter_map(Value::as_str).map(str::to_owned);
                    allowed.get_or_insert_default().extend(texts);
                }
                (_, None) => {
                    // What was to restrict must not let everything pass.
                    allowed.get_or_insert_default();
                    warnings.push(format!("{source}: `{key}` is not a list; it allows nothing"));
                }
            }
        }
        allowed
    };
    HttpHookLimits { urls: of_key(URLS), variables: of_key(VARIABLES) }
}

/// Takes away what is not allowed, and notes conditions that cannot be read.
pub(super) fn restrict(table: &mut HookTable, limits: &HttpHookLimits, warnings: &mut Vec<String>) {
    for (event, handlers) in table {
        handlers.retain_mut(|handler| {
            if let Some(Err(bad)) = handler.condition.as_ref().map(Rule::of_condition) {
                let label = handler.label();
                warnings.push(format!("`if` of the hook `{label}` counts as always met: {bad}"));
            }
            let may_run = limits.restrict(&mut handler.action);
            if !may_run {
                let (event, label) = (event.name(), handler.label());
                warnings.push(format!(
                    "the {event} hook `{label}` never runs: `{URLS}` does not have its address"
                ));
            }
            may_run
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        hook::{HookAction, HookEvent},
        step1_settings_resolution::{LayerText, Resolved, merge},
    };

    fn merged(layers: &[(Scope, Value)]) -> Resolved {
        let text = |(scope, value): &(Scope, Value)| LayerText {
            scope: *scope,
            source: scope.name().into(),
            text: value.to_string(),
        };
        merge(&layers.iter().map(text).collect::<Vec<_>>())
    }

    // REQ: HKS-1
    #[test]
    fn user_and_organisation_say_which_servers_are_asked_and_a_repository_does_not() {
        let handler = |url: &str| json!({"type": "http", "url": url, "allowedEnvVars": ["A", "B"], "headers": {"h": "$A$B"}});
        let hooks = [handler("https://in.example/x"), handler("https://out.example/?in.example")];
        let user = json!({
            "hooks": {"Stop": [{"hooks": hooks}]},
            "allowedHttpHookUrls": ["https://in.example/*"], "httpHookAllowedEnvVars": ["B"],
        });
        let project = json!({"allowedHttpHookUrls": ["*"], "httpHookAllowedEnvVars": ["A"]});
        let found = merged(&[(Scope::User, user.clone()), (Scope::Project, project)]);
        let [handler] = &found.settings.hooks[&HookEvent::Stop][..] else { panic!("{found:?}") };
        let HookAction::Http(http) = &handler.action else { panic!("{handler:?}") };
        assert_eq!(http.url, "https://in.example/x");
        assert_eq!(http.headers_with(&|name| Some(name.into()))[0].1, "B");
        let never = "the Stop hook `https://out.example/…` never runs";
        let starts = |start: &str| found.warnings.iter().filter(|it| it.starts_with(start)).count();
        assert_eq!((starts(never), starts("project: ")), (1, 2), "{:?}", found.warnings);
        // The organisation's list is added to the user's.
        let policy = json!({"allowedHttpHookUrls": ["https://out.example/*"]});
        let found = merged(&[(Scope::User, user), (Scope::Policy, policy)]);
        assert_eq!(found.settings.hooks[&HookEvent::Stop].len(), 2);
    }

    // REQ: HKS-1
    #[test]
    fn star_in_a_host_does_not_reach_into_the_path() {
        for (pattern, url, expected) in [
            ("*", "http://anything/", true),
            ("https://*.example.com/*", "https://a.example.com/x?y", true),
            ("https://*.example.com/*", "https://a.example.com", true),
            ("https://*.example.com/*", "https://evil.org/?.example.com/", false),
            ("https://*.example.com/*", "https://evil.org#.example.com/", false),
            ("https://*.example.com/*", "https://evil.org\\.example.com/", false),
            ("https://*.example.com/*", "https://u@a.example.com/", false),
            ("https://*.example.com/*", "http://a.example.com/", false),
            ("https://hooks.example.com*", "https://HOOKS.example.com/x", true),
            ("https://hooks.example.com*", "https://hooks.example.com.evil.org/", false),
            ("https://hooks.example.com*", "https://hooks.example.com@evil.org/", false),
            ("http://localhost:*", "http://localhost:80", true),
            ("http://localhost:*/in/*", "http://localhost:80/in/x", true),
            ("http://localhost:*/in/*", "http://localhost:80/out", false),
            ("hooks.example.com", "https://hooks.example.com", false),
        ] {
            assert_eq!(covers(pattern, url), expected, "{pattern} of {url}");
        }
    }

    // REQ: HKS-1
    #[test]
    fn list_that_is_none_allows_nothing() {
        for list in [json!([]), json!("https://*"), json!([1])] {
            let hooks = json!({"Stop": [{"hooks": [{"type": "http", "url": "https://h/"}]}]});
            let user = json!({"hooks": hooks, "allowedHttpHookUrls": list});
            let found = merged(&[(Scope::User, user)]);
            assert_eq!(found.settings.hooks[&HookEvent::Stop], []);
        }
    }
}
