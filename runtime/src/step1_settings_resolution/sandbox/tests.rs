//! Settings of the sandbox, as layers have them.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::*;
use crate::step1_settings_resolution::{LayerText, Resolved, merge};

fn of(scope: Scope, section: &Value) -> Resolved {
    let text = json!({ "sandbox": section }).to_string();
    merge(&[LayerText { scope, source: "s".into(), text }])
}

// REQ: TOL-10
#[test]
fn a_repository_has_no_say_about_the_sandbox() {
    for scope in [Scope::Project, Scope::Local] {
        let found = of(scope, &json!({"enabled": true, "excludedCommands": ["docker *"]}));
        assert_eq!(found.settings.sandbox, SandboxSettings::default());
        assert!(found.warnings[0].contains("does not count here"), "{:?}", found.warnings);
    }
}

// REQ: TOL-10
#[test]
fn names_of_other_programs_mean_the_same() {
    let own = json!({"enabled": true, "required": true, "autoAllow": false, "network": "off"});
    let other = json!({
        "enabled": true, "failIfUnavailable": true, "autoAllowBashIfSandboxed": false,
        "network": {"allowedDomains": [], "allowLocalBinding": false},
    });
    let found = of(Scope::User, &own).settings.sandbox.clone();
    assert!(found.enabled && found.required && !found.auto_allow);
    assert_eq!(found, of(Scope::User, &other).settings.sandbox);
}

// REQ: TOL-10
#[test]
fn what_is_not_supported_is_named_and_never_an_open_network() {
    let section = json!({
        "enabled": true,
        "network": {"allowUnixSockets": ["/x"], "deniedDomains": [], "httpProxyPort": 8},
        "filesystem": {"denyWrite": ["/x"], "disabled": true, "allowWrite": ["/y"]},
    });
    let found = of(Scope::User, &section).settings.sandbox.clone();
    assert_eq!(found.network, SandboxNetwork::Off);
    assert_eq!(found.allow_write, ["/y"]);
    let named = [
        "sandbox.filesystem.denyWrite",
        "sandbox.filesystem.disabled",
        "sandbox.network.allowUnixSockets",
        "sandbox.network.httpProxyPort",
    ];
    assert_eq!(found.unsupported, named);
}

// REQ: TOL-10
#[test]
fn hosts_of_all_files_are_one_list_and_without_one_the_network_is_off() {
    let layer = |scope, section: &Value| LayerText {
        scope,
        source: "s".into(),
        text: json!({ "sandbox": { "network": section } }).to_string(),
    };
    let user = json!({"allowedDomains": ["a.example", "http://b"]});
    let cli = json!({"allowedDomains": ["*.c.example"], "deniedDomains": ["x.c.example"]});
    let found = merge(&[layer(Scope::User, &user), layer(Scope::CliArg, &cli)]);
    let sandbox = found.settings.sandbox.clone();
    assert_eq!(sandbox.network, SandboxNetwork::Listed);
    assert_eq!(sandbox.hosts.allowed, ["a.example", "*.c.example"]);
    assert_eq!(sandbox.hosts.denied, ["x.c.example"]);
    assert!(found.warnings[0].contains("\"http://b\" is ignored"), "{:?}", found.warnings);
    assert!(sandbox.unsupported.is_empty());
    for denied in [json!(["a*b"]), json!("x.c.example")] {
        let cli = json!({ "deniedDomains": denied });
        let found = merge(&[layer(Scope::User, &user), layer(Scope::CliArg, &cli)]);
        let named = found.settings.sandbox.unsupported.clone();
        assert_eq!(named, ["sandbox.network.deniedDomains"], "{denied}");
    }
    let denied = of(Scope::User, &json!({"network": {"deniedDomains": ["a.example"]}}));
    assert_eq!(denied.settings.sandbox.network, SandboxNetwork::Off);
    let closed = merge(&[layer(Scope::User, &user), layer(Scope::CliArg, &json!("off"))]);
    assert_eq!(closed.settings.sandbox.network, SandboxNetwork::Off);
}

// REQ: TOL-10
#[test]
fn key_without_effect_is_told() {
    let found =
        of(Scope::User, &json!({"enable": true, "enableWeakerNestedSandbox": true, "home": "/h"}));
    assert!(!found.settings.sandbox.enabled);
    let told = found.warnings.join("; ");
    assert!(told.contains("`sandbox.enable` is not a setting"), "{told}");
    assert!(told.contains("`sandbox.enableWeakerNestedSandbox` is not a setting"), "{told}");
}

// REQ: TOL-10, PRM-9
#[test]
fn digest_of_recorded_questions_holds_where_calls_may_ask_to_leave_the_sandbox() {
    let mut settings = SandboxSettings { enabled: true, ..SandboxSettings::default() };
    let decides = settings.decides();
    let recorded = "SandboxSettings { enabled: true, required: false, auto_allow: true, \
        network: Off, hosts: HostRules { allowed: [], denied: [] }, excluded: [], \
        allow_write: [], allow_read: [], deny_read: [], home: None, tmpdir: None, \
        unsupported: [] }";
    assert_eq!(decides, recorded);
    settings.allow_unsandboxed = false;
    assert_ne!(settings.decides(), decides);
}

#[test]
fn patterns_that_mean_nothing_are_left_out_with_a_word() {
    let found =
        of(Scope::User, &json!({"excludedCommands": ["gh *", "*", "a*b", "docker:*", "make"]}));
    assert_eq!(found.settings.sandbox.excluded, ["gh *", "docker:*", "make"]);
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
}
