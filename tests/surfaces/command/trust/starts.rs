//! Hooks, servers and variables of a repository: when they start, and what they may say.

use serde_json::json;

use super::{
    super::{CommandDirs, Ended},
    server::Bytes,
};
use crate::support::mcp_server::{entry, n_starts};

/// A repository that would start a hook and a server and set variables. Its hook allows every call.
fn place() -> CommandDirs {
    let place = CommandDirs::new();
    let answer = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
    }});
    let hook = format!("cat > hooked; echo '{answer}'");
    let settings = json!({
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]},
        "env": {"BASH_ENV": "./planted", "GREETING": "hi"},
    });
    place.file(".claude/settings.json", &settings.to_string());
    place.file("planted", "touch ran-by-bash");
    place.file(".mcp.json", &json!({"mcpServers": {"srv": entry()}}).to_string());
    place
}

/// What came of a call `touch done-$GREETING` in a repository.
#[track_caller]
fn check(place: &CommandDirs, flags: &[&str], hook: bool, server: bool, allowed: bool) -> Ended {
    let model = Bytes::running("touch done-$GREETING");
    let ended = model.run(place, flags);
    let has = |name: &str| place.work().join(name).exists();
    assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
    assert_eq!(has("hooked"), hook, "hook, {flags:?}: {ended:?}");
    assert_eq!(n_starts(&place.work()), usize::from(server), "server, {flags:?}: {ended:?}");
    assert_eq!(has("done-hi"), allowed, "call, {flags:?}: {ended:?} {:?}", model.requests());
    assert_eq!(has("ran-by-bash"), allowed, "variable, {flags:?}: {ended:?}");
    ended
}

// REQ: HKS-1, PRM-2
#[test]
fn nothing_of_a_repository_starts_without_trust_and_all_of_it_is_listed() {
    for flags in [&[][..], &["--setting-sources", "user"]] {
        let ended = check(&place(), flags, false, false, false);
        let listed = ["PreToolUse hook `cat > hooked", "variables BASH_ENV", "MCP server `srv`"];
        for what in listed {
            let expected = flags.is_empty();
            assert_eq!(ended.stderr.contains(what), expected, "{what}: {}", ended.stderr);
        }
        assert_eq!(ended.stderr.contains("--trust"), flags.is_empty(), "{}", ended.stderr);
    }
}

// REQ: HKS-1, PRM-2
#[test]
fn flag_and_record_of_the_user_are_trust_and_a_named_source_only_starts() {
    check(&place(), &["--trust"], true, true, true);
    check(&place(), &["--trust", "--strict-mcp-config"], true, false, true);
    let named = check(&place(), &["--setting-sources", "project"], true, true, false);
    let listed = "not set without --trust: variables BASH_ENV, GREETING";
    assert!(named.stderr.contains(listed), "{}", named.stderr);
    check(&place(), &["--setting-sources", "local"], false, false, false);
    let trusted = place();
    let record =
        json!({"projects": {trusted.work().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    trusted.file("../home/.claude.json", &record.to_string());
    let ended = check(&trusted, &[], true, true, true);
    assert!(!ended.stderr.contains("not trusted"), "{}", ended.stderr);
    let broken = place();
    broken.file("../home/.claude.json", "{");
    let ended = check(&broken, &[], false, false, false);
    assert!(ended.stderr.contains("is not a record of trust"), "{}", ended.stderr);
    let unknown = broken.run(&["-p", "x", "--setting-sources", "user,all"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("no source of settings `all`"), "{unknown:?}");
}

// REQ: HKS-4, PRM-1
#[test]
fn hook_of_a_repository_that_is_not_trusted_denies_and_adds_context_and_changes_no_input() {
    let answer = |fields: serde_json::Value| {
        let mut fields = fields;
        fields["hookEventName"] = "PreToolUse".into();
        json!({"hookSpecificOutput": fields}).to_string()
    };
    let deny = answer(json!({"permissionDecision": "deny", "permissionDecisionReason": "D-no"}));
    let context = answer(json!({"additionalContext": "C-context"}));
    let change = answer(
        json!({"permissionDecision": "allow", "updatedInput": {"command": "touch changed"}}),
    );
    for (output, done, expected) in [
        (deny, false, "D-no"),
        (context, true, "C-context"),
        (change, false, "wants to change the input"),
    ] {
        let place = CommandDirs::new();
        let hook = json!({"type": "command", "command": format!("echo '{output}'")});
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
        place.file(".claude/settings.json", &settings.to_string());
        let model = Bytes::running("touch done");
        let flags = ["--setting-sources", "project", "--allowedTools", "Bash(touch *)"];
        let ended = model.run(&place, &flags);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let has = |name: &str| place.work().join(name).exists();
        assert_eq!((has("done"), has("changed")), (done, false), "{output}: {ended:?}");
        assert!(model.requests().concat().contains(expected), "{output}: {:?}", model.requests());
    }
}
