//! Cases of merging that are about texts and not about places.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{
    hook::HookEvent,
    step1_settings_resolution::{Durability, RuleKind},
};

fn layers(texts: &[(Scope, &str)]) -> Vec<LayerText> {
    texts
        .iter()
        .enumerate()
        .map(|(i, (scope, text))| LayerText {
            scope: *scope,
            source: format!("{}-{i}", scope.name()),
            text: (*text).into(),
        })
        .collect()
}

fn resolve(texts: &[(Scope, &str)]) -> Resolved {
    merge(&layers(texts))
}

// T1.1  REQ: TRN-4
#[test]
fn strongest_scope_gives_the_scalar() {
    let texts = [
        (Scope::Policy, r#"{"model":"d"}"#),
        (Scope::CliArg, r#"{"model":"c"}"#),
        (Scope::Local, "{}"),
        (Scope::Project, r#"{"model":"b"}"#),
        (Scope::User, r#"{"model":"a"}"#),
    ];
    let model = |texts: &[(Scope, &str)]| resolve(texts).settings.model;
    assert_eq!(model(&texts[3..]), "b");
    assert_eq!(model(&texts[1..]), "c");
    assert_eq!(model(&texts), "d");
    assert_eq!(resolve(&texts).provenance["model"], "policy-0");
    let mut turned = texts;
    turned.reverse();
    assert_eq!(resolve(&turned).settings, resolve(&texts).settings);
}

// T1.2, T1.3  REQ: PRM-3
#[test]
fn rules_of_all_scopes_hold_in_the_order_of_scopes() {
    let found = resolve(&[
        (Scope::User, r#"{"permissions":{"allow":["Bash(rm *)"]}}"#),
        (Scope::Project, r#"{"permissions":{"deny":["Bash(rm *)"],"allow":["Bash(git status)"]}}"#),
    ]);
    let rules: Vec<_> = found
        .settings
        .permissions
        .rules
        .iter()
        .map(|it| (it.kind, it.scope, &it.text[..]))
        .collect();
    assert_eq!(
        rules,
        [
            (RuleKind::Deny, Scope::Project, "Bash(rm *)"),
            (RuleKind::Allow, Scope::Project, "Bash(git status)"),
            (RuleKind::Allow, Scope::User, "Bash(rm *)"),
        ]
    );
}

// T1.4, T1.5  REQ: TRN-4
#[test]
fn lists_are_joined_without_repetitions_but_for_the_fallback_chain() {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
    let user = object(r#"{"fallbackModel":["x","y"],"sandbox":{"excludedCommands":["docker *"]}}"#);
    let project =
        object(r#"{"fallbackModel":["z"],"sandbox":{"excludedCommands":["docker *","gh *"]}}"#);
    let merged = Value::Object(merge_values([&user, &project]));
    assert_eq!(merged["fallbackModel"], serde_json::json!(["z"]));
    assert_eq!(merged["sandbox"]["excludedCommands"], serde_json::json!(["docker *", "gh *"]));
}

// T1.7  REQ: TRN-4
#[test]
fn bad_entry_is_dropped_and_the_rest_of_the_file_holds() {
    let found = resolve(&[(
        Scope::Project,
        r#"{"permissions":{"allow":["Bash(ls", 7],"additionalDirectories":["/a"]},"env":{"A":"1","B":2},
            "model":5,"ennead":{"maxTurns":0,"durability":"never","maxToolCalls":7},"noSuchKey":{}}"#,
    )]);
    assert_eq!(found.settings.permissions.rules, []);
    assert_eq!(found.settings.permissions.additional_directories, ["/a"]);
    assert_eq!(found.settings.env, BTreeMap::from([("A".into(), "1".into())]));
    assert_eq!(found.settings.model, Settings::default().model);
    assert_eq!(found.settings.max_turns, Settings::default().max_turns);
    assert_eq!(found.settings.max_tool_calls, 7);
    assert_eq!(found.warnings.len(), 6, "{:?}", found.warnings);
}

// T1.8  REQ: TRN-4
#[test]
fn file_that_is_no_object_is_skipped_whole() {
    for text in [r#"{"model":"b",}"#, "[]", "", "null"] {
        let found = resolve(&[(Scope::User, r#"{"model":"a"}"#), (Scope::Project, text)]);
        assert_eq!(found.settings.model, "a");
        assert_eq!(found.warnings.len(), 1);
    }
}

// T1.9, T1.11  REQ: TRN-4
#[test]
fn variables_merge_one_by_one_and_later_drop_ins_win() {
    let found = resolve(&[
        (Scope::Policy, r#"{"env":{"X":"1"}}"#),
        (Scope::Policy, r#"{"env":{"X":"2","Y":"3"}}"#),
        (Scope::User, r#"{"env":{"A":"","Y":"0"}}"#),
    ]);
    let env: Vec<_> = found.settings.env.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    assert_eq!(env, [("A", ""), ("X", "2"), ("Y", "3")]);
}

#[test]
fn own_keys_are_read_in_both_spellings() {
    let found = resolve(&[
        (
            Scope::User,
            r#"{"ennead":{"maxTurns":3,"shapers":{"keepNewest":2},"runTokenBudget":10}}"#,
        ),
        (
            Scope::Project,
            r#"{"autoCompactEnabled":false,"hooks":{"fail_closed":true},
               "ennead":{"shapers":{"HISTORY_SNIP":true},"auto_compact":{"max_tokens":900},
                         "agents":{"max_depth":1},"durability":"entry"}}"#,
        ),
    ]);
    let settings = &found.settings;
    assert_eq!(found.warnings, Vec::<String>::new());
    assert_eq!((settings.max_turns.get(), settings.run_token_budget), (3, Some(10)));
    assert_eq!((settings.shapers.keep_newest, settings.shapers.history_snip), (2, true));
    assert_eq!(settings.shapers.auto_compact_max_tokens, Some(900));
    assert!(!settings.shapers.auto_compact && settings.hooks_fail_closed);
    assert_eq!((settings.agents.max_depth, settings.agents.max_at_once), (1, 5));
    assert_eq!(settings.durability, Durability::Entry);
}

#[test]
fn repository_cannot_switch_the_questions_off() {
    let mode = |scope, mode: &str| {
        let text = format!(r#"{{"permissions":{{"defaultMode":"{mode}"}}}}"#);
        resolve(&[(scope, &text)]).settings.permissions.mode
    };
    assert_eq!(mode(Scope::Project, "bypassPermissions"), PermissionMode::Default);
    assert_eq!(mode(Scope::Project, "auto"), PermissionMode::Default);
    assert_eq!(mode(Scope::User, "bubble"), PermissionMode::Default);
    assert_eq!(mode(Scope::User, "bypassPermissions"), PermissionMode::BypassPermissions);
    assert_eq!(mode(Scope::Project, "acceptEdits"), PermissionMode::AcceptEdits);
    let locked = resolve(&[
        (Scope::User, r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#),
        (Scope::Policy, r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#),
    ]);
    assert_eq!(locked.settings.permissions.mode, PermissionMode::Default);
}

// REQ: TRN-4
#[test]
fn hooks_of_all_layers_run_and_equal_layers_give_equal_settings() {
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}"#;
    let other = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"b"}]}]}}"#;
    let texts = [(Scope::User, hook), (Scope::Project, hook), (Scope::Local, other)];
    let found = resolve(&texts);
    let commands: Vec<_> =
        found.settings.hooks[&HookEvent::Stop].iter().map(|it| &it.command[..]).collect();
    assert_eq!(commands, ["a", "b"]);
    assert_eq!(found, resolve(&texts));
    assert_ne!(found.digest, resolve(&texts[..2]).digest);
}
