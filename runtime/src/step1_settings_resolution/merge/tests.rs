//! Cases of merging that are about texts and not about places.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    hook::HookEvent,
    output::{Break, OutputSettings},
    permission::RuleKind,
    step1_settings_resolution::Durability,
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

// REQ: TRN-4
#[test]
fn strongest_scope_gives_the_scalar() {
    let texts = [
        (Scope::Policy, r#"{"model":"d"}"#),
        (Scope::CliArg, r#"{"model":"c"}"#),
        (Scope::Local, "{}"),
        (Scope::Project, r#"{"model":"b"}"#),
        (Scope::User, r#"{"model":"a"}"#),
    ];
    let model = |texts: &[(Scope, &str)]| resolve(texts).settings.model.clone();
    assert_eq!(model(&texts[3..]), "b");
    assert_eq!(model(&texts[1..]), "c");
    assert_eq!(model(&texts), "d");
    assert_eq!(resolve(&texts).provenance["model"], "policy-0");
    let mut turned = texts;
    turned.reverse();
    assert_eq!(resolve(&turned).settings, resolve(&texts).settings);
}

// REQ: PRM-3
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

// REQ: TRN-4
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

/// `provider>model`, or the name as written.
#[track_caller]
fn check_chain(texts: &[(Scope, &str)], models: &[&str], max_retries: u32, n_warnings: usize) {
    let found = resolve(texts);
    let name = |it: &FallbackModel| match &it.provider {
        Some(provider) => format!("{provider}>{}", it.model),
        None => it.model.clone(),
    };
    assert_eq!(found.settings.fallback.iter().map(name).collect::<Vec<_>>(), models);
    assert_eq!(found.settings.max_retries, max_retries);
    assert_eq!(found.warnings.len(), n_warnings, "{:?}", found.warnings);
}

// REQ: TRN-4, MDL-8
#[test]
fn models_to_turn_to_are_those_of_the_strongest_list() {
    let (user, project) = (Scope::User, Scope::Project);
    check_chain(&[(user, r#"{"fallbackModel":["x","y"]}"#)], &["x", "y"], 10, 0);
    let both = [
        (user, r#"{"fallbackModel":["x","y"],"ennead":{"fallback":["u"]}}"#),
        (project, r#"{"fallbackModel":"z"}"#),
    ];
    check_chain(&both[1..], &["z"], 10, 0);
    check_chain(&both, &["u"], 10, 0);
    let own = r#"{"ennead":{"fallback":["a/x",{"provider":"b","model":"y"},{"model":"z"}]}}"#;
    check_chain(&[both[0], (project, own)], &["a/x", "b>y", "z"], 10, 0);
    check_chain(&[(user, r#"{"fallbackModel":7,"ennead":{"fallback":[{}]}}"#)], &[], 10, 2);
    check_chain(&[(user, r#"{"fallbackModel":["x",7]}"#)], &[], 10, 1);
}

// REQ: MDL-6
#[test]
fn retries_are_at_most_fifteen_and_the_own_key_counts_before_the_variable() {
    let of = |text: &'static str| [(Scope::User, text)];
    check_chain(&of(r#"{"ennead":{"maxRetries":3}}"#), &[], 3, 0);
    check_chain(&of(r#"{"ennead":{"max_retries":16}}"#), &[], 15, 0);
    check_chain(&of(r#"{"env":{"CLAUDE_CODE_MAX_RETRIES":"4"}}"#), &[], 4, 0);
    check_chain(&of(r#"{"env":{"CLAUDE_CODE_MAX_RETRIES":"many"}}"#), &[], 10, 0);
    let both = r#"{"env":{"CLAUDE_CODE_MAX_RETRIES":"4"},"ennead":{"maxRetries":0}}"#;
    check_chain(&of(both), &[], 0, 0);
}

// REQ: TRN-4
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

// REQ: TRN-4
#[test]
fn file_that_is_no_object_is_skipped_whole() {
    for text in [r#"{"model":"b",}"#, "[]", "", "null"] {
        let found = resolve(&[(Scope::User, r#"{"model":"a"}"#), (Scope::Project, text)]);
        assert_eq!(found.settings.model, "a");
        assert_eq!(found.warnings.len(), 1);
    }
}

// REQ: TRN-4
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
            r#"{"ennead":{"maxTurns":3,"shapers":{"keepNewest":2},"runTokenBudget":10,
               "output":{"chunkMin":7,"breakPreference":"newline","flushIdleMs":"soon"}}}"#,
        ),
        (
            Scope::Project,
            r#"{"autoCompactEnabled":false,"hooks":{"fail_closed":true},
               "ennead":{"shapers":{"HISTORY_SNIP":true},"auto_compact":{"max_tokens":900},
                         "output":{"heartbeat_tokens":["PING"]},
                         "agents":{"max_depth":1},"durability":"entry",
                         "shell":{"backgroundAtLimit":false,"maxBackground":2}}}"#,
        ),
    ]);
    let settings = &found.settings;
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert!(found.warnings[0].contains("`ennead.output.flush_idle_ms`"), "{:?}", found.warnings);
    let output = OutputSettings {
        chunk_min: 7,
        break_preference: Break::Newline,
        heartbeat_tokens: Arc::new(["PING".into()]),
        ..OutputSettings::default()
    };
    assert_eq!(settings.output, output);
    assert_eq!((settings.max_turns.get(), settings.run_token_budget), (3, Some(10)));
    assert_eq!((settings.shapers.keep_newest, settings.shapers.history_snip), (2, true));
    assert_eq!(settings.shapers.auto_compact_max_tokens, Some(900));
    assert!(!settings.shapers.auto_compact && settings.hooks_fail_closed);
    assert_eq!((settings.agents.max_depth, settings.agents.max_at_once), (1, 5));
    assert_eq!(settings.durability, Durability::Entry);
    assert!(!settings.shell.background_at_limit);
    assert_eq!((settings.shell.max_background, settings.shell.max_background_seconds), (2, None));
}

#[test]
fn repository_cannot_switch_the_questions_off() {
    let mode = |scope, mode: &str| {
        let text = format!(r#"{{"permissions":{{"defaultMode":"{mode}"}}}}"#);
        resolve(&[(scope, &text)]).settings.permissions.mode
    };
    assert_eq!(mode(Scope::Project, "bypassPermissions"), PermissionMode::Default);
    assert_eq!(mode(Scope::User, "bubble"), PermissionMode::Default);
    assert_eq!(mode(Scope::User, "bypassPermissions"), PermissionMode::BypassPermissions);
    assert_eq!(mode(Scope::Project, "acceptEdits"), PermissionMode::AcceptEdits);
    let locked = resolve(&[
        (Scope::User, r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#),
        (Scope::Policy, r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#),
    ]);
    assert_eq!(locked.settings.permissions.mode, PermissionMode::Default);
}

// REQ: PRM-4
#[test]
fn mode_auto_holds_and_that_of_a_repository_is_ignored_with_a_word() {
    use PermissionMode::{Auto, Default, Plan};
    const AUTO: &str = r#"{"permissions":{"defaultMode":"auto"}}"#;
    const PLAN: &str = r#"{"permissions":{"defaultMode":"plan"}}"#;
    const OFF: &str = r#"{"permissions":{"disableAutoMode":"disable"}}"#;
    for (layers, expected, warned) in [
        (&[(Scope::User, AUTO)][..], Auto, false),
        (&[(Scope::CliArg, AUTO)], Auto, false),
        (&[(Scope::Policy, AUTO), (Scope::CliArg, PLAN)], Auto, false),
        (&[(Scope::Project, AUTO)], Default, true),
        (&[(Scope::Local, AUTO), (Scope::User, PLAN)], Plan, true),
        (&[(Scope::Local, AUTO), (Scope::User, AUTO)], Auto, true),
        (&[(Scope::User, AUTO), (Scope::CliArg, PLAN)], Plan, false),
        (&[(Scope::User, AUTO), (Scope::Policy, OFF)], Default, true),
    ] {
        let found = resolve(layers);
        let warned_of = found.warnings.iter().any(|it| it.contains("\"auto\""));
        assert_eq!(warned_of, warned, "{layers:?}: {:?}", found.warnings);
        assert_eq!(found.settings.permissions.mode, expected, "{layers:?}");
    }
}

// REQ: TRN-4
#[test]
fn hooks_of_all_layers_run_and_equal_layers_give_equal_settings() {
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}"#;
    let other = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"b"}]}]}}"#;
    let texts = [(Scope::User, hook), (Scope::Project, hook), (Scope::Local, other)];
    let found = resolve(&texts);
    let commands: Vec<_> =
        found.settings.hooks[&HookEvent::Stop].iter().map(|it| it.label()).collect();
    assert_eq!(commands, ["a", "b"]);
    assert_eq!(found, resolve(&texts));
    assert_ne!(found.digest, resolve(&texts[..2]).digest);
}

// REQ: HKS-1
#[test]
fn hooks_are_switched_off_as_the_strongest_layer_says_and_those_of_the_organisation_by_it_alone() {
    let hook = |scope: Scope| {
        let handler = json!({ "type": "command", "command": scope.name() });
        json!({ "Stop": [{ "hooks": [handler] }] })
    };
    let all = [Scope::Policy, Scope::CliArg, Scope::Local, Scope::Project, Scope::User];
    let own = all[1..].to_vec();
    let cases = [
        (vec![], Vec::new()),
        (vec![(Scope::User, json!(true))], own.clone()),
        (vec![(Scope::CliArg, json!(true))], own.clone()),
        (vec![(Scope::User, json!(true)), (Scope::Project, json!(false))], Vec::new()),
        (vec![(Scope::Project, json!(true)), (Scope::User, json!(false))], own),
        (vec![(Scope::Policy, json!(true))], all.to_vec()),
        (vec![(Scope::Policy, json!(false)), (Scope::CliArg, json!(true))], Vec::new()),
        (vec![(Scope::User, json!("yes"))], Vec::new()),
    ];
    for (written, off) in cases {
        let texts: Vec<(Scope, String)> = all
            .into_iter()
            .map(|scope| {
                let mut text = json!({ "hooks": hook(scope) });
                if let Some((_, value)) = written.iter().find(|it| it.0 == scope) {
                    text["disableAllHooks"] = value.clone();
                }
                (scope, text.to_string())
            })
            .collect();
        let texts: Vec<(Scope, &str)> = texts.iter().map(|it| (it.0, it.1.as_str())).collect();
        let hooks = resolve(&texts).settings.hooks.clone();
        let on = hooks.get(&HookEvent::Stop).map_or(&[][..], Vec::as_slice);
        let mut found: Vec<Scope> = on.iter().map(|it| it.scope).collect();
        found.sort();
        let mut expected: Vec<Scope> = all.into_iter().filter(|it| !off.contains(it)).collect();
        expected.sort();
        assert_eq!(found, expected, "{written:?}");
    }
}

// REQ: MDL-8
#[test]
fn reasoning_and_effort_are_said_by_either_name() {
    use crate::{
        catalogue::Effort,
        step5_model_call::adaptation::{Parameters, Thinking},
    };
    let parameters = |text: &str| {
        let resolved =
            merge(&[LayerText { scope: Scope::User, source: "u".into(), text: text.into() }]);
        (resolved.settings.parameters.clone(), resolved.warnings.len())
    };
    let (written, _) = parameters(r#"{"alwaysThinkingEnabled":true,"effortLevel":"xhigh"}"#);
    let thinking = Some(Thinking::Adaptive { display: None });
    let effort = Some(Effort::Xhigh);
    assert_eq!(written, Parameters { thinking, effort, ..Parameters::default() });
    let (written, n_warnings) = parameters(
        r#"{"alwaysThinkingEnabled":false,"effortLevel":"loud","ennead":{"thinking":{"type":"enabled",
           "budgetTokens":2048},"temperature":0.5,"topK":"many","stopSequences":["x"],"betas":["b"]}}"#,
    );
    let thinking = Some(Thinking::Enabled { budget_tokens: 2_048, display: None });
    assert_eq!((written.thinking, written.effort, written.top_k), (thinking, None, None));
    assert_eq!((written.stop_sequences, written.betas), (vec!["x".into()], vec!["b".into()]));
    assert_eq!(written.temperature.unwrap().to_string(), "0.5");
    assert_eq!(n_warnings, 2);
    assert_eq!(parameters("{}"), (Parameters::default(), 0));
}
