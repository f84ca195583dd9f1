//! Built under `#[cfg(test)]` only.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::mcp::config::Address;

fn http(name: &str, url: &str) -> ServerConfig {
    let address = Address { url: url.into(), headers: BTreeMap::new() };
    ServerConfig { name: name.into(), reach: ServerTransport::Http(address), timeout_ms: None }
}

fn policy(layers: &[(Scope, Value)], trust: Trust) -> Policy {
    let layers: Vec<LayerText> = layers
        .iter()
        .map(|(scope, value)| LayerText {
            scope: *scope,
            source: "s".into(),
            text: value.to_string(),
        })
        .collect();
    Policy::of(&layers, trust, &|name| (name == "BIN").then(|| "/bin".to_owned()))
}

#[track_caller]
fn check(value: Value, server: &ServerConfig, may: bool) {
    let blocked = policy(&[(Scope::User, value)], Trust::Headless).blocks(server, true);
    assert_eq!(blocked.is_none(), may, "{server:?}: {blocked:?}");
}
#[test]
fn project_servers_connect_unless_they_are_switched_off() {
    let server = ServerConfig::stdio("a", "x", &[]);
    check(json!({}), &server, true);
    let disabled = json!({"disabledMcpjsonServers": ["a"]});
    check(disabled.clone(), &server, false);
    let policy = policy(&[(Scope::Project, disabled)], Trust::Untrusted);
    assert_eq!(policy.blocks(&server, false), None, "it is about servers of a project");
    assert_eq!(policy.blocks(&server, true), Some(Blocked::Disabled("a".into())));
}
#[test]
fn an_address_entry_makes_remote_servers_need_one() {
    let list = [json!({"serverUrl": "https://*.ex.com/*"}), json!({"serverName": "gh"})];
    let value = json!({ "allowedMcpServers": list });
    check(value.clone(), &http("gh", "https://other"), false);
    check(value.clone(), &http("x", "https://a.ex.com/mcp"), true);
    check(value.clone(), &ServerConfig::stdio("gh", "x", &[]), true);
    check(value, &ServerConfig::stdio("other", "x", &[]), false);
}

#[test]
fn a_command_entry_is_the_whole_command() {
    let value = json!({"allowedMcpServers": [
        {"serverCommand": ["${BIN}/run", "-x"]}, {"serverName": "gh"},
    ]});
    check(value.clone(), &ServerConfig::stdio("a", "/bin/run", &["-x"]), true);
    check(value.clone(), &ServerConfig::stdio("a", "/bin/run", &["-x", "-y"]), false);
    check(value.clone(), &ServerConfig::stdio("gh", "other", &[]), false);
    check(value, &http("gh", "https://x"), true);
}

#[test]
fn deny_wins_and_an_empty_allow_list_allows_nothing() {
    let server = ServerConfig::stdio("gh", "x", &[]);
    let name = json!([{"serverName": "gh"}]);
    check(json!({"allowedMcpServers": name, "deniedMcpServers": name}), &server, false);
    check(json!({"allowedMcpServers": name}), &server, true);
    check(json!({"allowedMcpServers": []}), &server, false);
    check(json!({"allowedMcpServers": "all"}), &server, false);
    check(json!({"deniedMcpServers": [{"serverName": "gh", "serverUrl": "u"}]}), &server, true);
}

#[test]
fn an_untrusted_repository_adds_nothing_to_what_others_allow() {
    let allows = |name: &str| json!({"allowedMcpServers": [{"serverName": name}]});
    let server = ServerConfig::stdio("own", "x", &[]);
    let both = [(Scope::User, allows("gh")), (Scope::Project, allows("own"))];
    assert!(policy(&both, Trust::Headless).blocks(&server, true).is_some());
    assert!(policy(&both, Trust::Trusted).blocks(&server, true).is_none());
    let alone = [(Scope::Project, allows("gh"))];
    assert!(policy(&alone, Trust::Headless).blocks(&server, true).is_some(), "stricter is fine");
    let managed = [(Scope::Policy, json!({"allowManagedMcpServersOnly": true})), both[0].clone()];
    let gh = ServerConfig::stdio("gh", "x", &[]);
    assert!(policy(&managed, Trust::Trusted).blocks(&gh, true).is_some());
}

#[test]
fn patterns_of_addresses_know_hosts_from_paths() {
    for (pattern, url, matches) in [
        ("https://*.ex.com/*", "https://a.ex.com/x/y", true),
        ("https://*.ex.com/*", "https://A.EX.com./x", true),
        ("https://*.ex.com/*", "https://a.ex.com", true),
        ("https://*.ex.com/*", "https://ex.com/x", false),
        ("https://*.ex.com/*", "https://evil.com/.ex.com/x", false),
        ("https://*.ex.com/*", "https://evil.com?.ex.com/x", false),
        ("https://*.ex.com/*", "https://a.ex.com@evil.com/x", false),
        ("https://ex.com", "https://ex.com/any/path", true),
        ("https://ex.com", "https://ex.com:8080/", false),
        ("https://ex.com:*", "https://ex.com:8080/", true),
        ("https://ex.com/a", "https://ex.com/a/b", false),
        ("*://ex.com/*", "http://ex.com/a", true),
        ("https://ex.com/*a*b", "https://ex.com/xaxb", true),
        ("https://ex.com/ab*ba", "https://ex.com/aba", false),
    ] {
        assert_eq!(url_matches(pattern, url), matches, "{pattern} {url}");
    }
}

// REQ: TOL-11
#[test]
fn lists_by_address_hold_for_both_transports_over_http() {
    let address = |url: &str| Address { url: url.into(), headers: BTreeMap::new() };
    let sse = ServerConfig { reach: ServerTransport::Sse(address("https://h/x")), ..http("a", "") };
    for server in [sse, http("a", "https://h/x")] {
        check(json!({"deniedMcpServers": [{"serverUrl": "https://h"}]}), &server, false);
        check(json!({"allowedMcpServers": [{"serverUrl": "https://h/*"}]}), &server, true);
        let names = json!([{"serverUrl": "https://other"}, {"serverName": "a"}]);
        check(json!({"allowedMcpServers": names}), &server, false);
    }
}
