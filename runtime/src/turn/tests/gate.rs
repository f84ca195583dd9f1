//! Step 7: every call gets one decision, with its reason, and only a permit runs it.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::{Play, play},
    script::{calls, facts, hook, layer, text},
    world::World,
};
use crate::{
    permission::Scope,
    run::facts::REVISION,
    step7_permission_gate::{GateStage, Handler},
    transcript::entry::{RecordKind, Stored},
};

/// `(allowed, stage)` of all decisions.
fn decisions(play: &Play) -> Vec<(bool, GateStage)> {
    let decision = |what: &RecordKind| match what {
        RecordKind::Permission { decision, .. } => Some((decision.allowed, decision.stage)),
        _ => None,
    };
    play.records().filter_map(|it| decision(&it.what)).collect()
}

#[track_caller]
fn check(
    settings: serde_json::Value,
    handler: Handler,
    call: &str,
    log: &str,
    by: GateStage,
) -> Play {
    let mut world = World::new(vec![calls(&[call])]);
    world.facts = std::sync::Arc::new(facts(handler));
    world.layers = [vec![layer(Scope::User, settings)]].into();
    let play = play(world);
    let whole = play.log();
    let part = whole.split(" 7 ").nth(1).unwrap().split(" 9 ").next().unwrap();
    assert_eq!(part, log, "{whole}");
    assert_eq!(decisions(&play), [(log.contains("result"), by)]);
    play
}

// REQ: PRM-1, PRM-2, PRM-5
#[test]
fn rules_people_and_nobody_decide() {
    use GateStage::{PermissionHandler, PreFilter, RuleEvaluation};
    let none = json!({});
    let allow = json!({ "permissions": { "allow": ["Bash"] } });
    let deny = json!({ "permissions": { "allow": ["Bash"], "deny": ["Bash(rm *)"] } });
    let never = json!({ "permissions": { "deny": ["Note"] } });
    let approver = Handler::Approver;
    check(allow, Handler::None, "x:Bash:rm y", "8 result:x", RuleEvaluation);
    check(deny, approver, "x:Bash:rm y", "8 error:x", RuleEvaluation);
    check(none.clone(), approver, "x:Bash:make", "ask:x 8 result:x", PermissionHandler);
    check(none.clone(), approver, "x:Bash:no", "ask:x 8 error:x", PermissionHandler);
    check(none.clone(), Handler::None, "x:Bash:make", "8 error:x", PermissionHandler);
    check(none.clone(), Handler::None, "x:Read:src/a.rs", "8 result:x", RuleEvaluation);
    check(none, Handler::None, "x:Read:link/passwd", "8 error:x", PermissionHandler);
    // A tool that is denied as a whole is not offered, so it is not known.
    let world = World::with(never, vec![calls(&["x:Note:x"])]);
    assert!(play(world).log().contains("6 7 8 error:x"));
    let _ = PreFilter;
}

// REQ: PRM-1, HKS-4
#[test]
fn hooks_deny_ask_allow_and_rewrite() {
    use GateStage::{PermissionHandler, PreToolUseHooks, RuleEvaluation};
    let says = |what: &str| {
        let json = format!(r#"0 {{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{what}}}}}"#);
        hook("PreToolUse", "Bash", &[&json])
    };
    let deny = says(r#""permissionDecision":"deny","permissionDecisionReason":"not today""#);
    let play =
        check(deny, Handler::Approver, "x:Bash:ls", "hook:PreToolUse 8 error:x", PreToolUseHooks);
    let result = play
        .conversation
        .history
        .iter()
        .find_map(|it| it.blocks[0].as_tool_result().map(|it| it.1.to_owned()));
    assert_eq!(result.as_deref(), Some("Permission denied: not today"));

    let allow = says(r#""permissionDecision":"allow""#);
    check(allow, Handler::None, "x:Bash:ls", "hook:PreToolUse 8 result:x", RuleEvaluation);

    let ask = says(r#""permissionDecision":"ask""#);
    check(
        ask,
        Handler::Approver,
        "x:Bash:ls",
        "hook:PreToolUse ask:x 8 result:x",
        PermissionHandler,
    );

    let rewrite = says(r#""permissionDecision":"allow","updatedInput":{"command":"ls -l"}"#);
    let play =
        check(rewrite, Handler::None, "x:Bash:ls", "hook:PreToolUse 8 result:x", RuleEvaluation);
    let input = play.records().find_map(|it| match &it.what {
        RecordKind::Permission { input, .. } => input.clone(),
        _ => None,
    });
    assert_eq!(input, Some(Stored::Text(r#"{"command":"ls -l"}"#.into())));
}

// REQ: HKS-2, HKS-4
#[test]
fn hooks_that_fail_are_passed_over_and_hooks_that_cannot_run_deny() {
    let check = |command: &str, log: &str, by| {
        let settings = hook("PreToolUse", "Note", &[command]);
        check(settings, Handler::None, "x:Note:x", log, by);
    };
    use GateStage::{PreToolUseHooks, RuleEvaluation};
    for failing in ["1 oops", "timeout", "crash"] {
        check(failing, "hook:PreToolUse alert 8 result:x", RuleEvaluation);
    }
    check("2 never", "hook:PreToolUse 8 error:x", PreToolUseHooks);
    check("refused", "hook:PreToolUse alert 8 error:x", PreToolUseHooks);
}

// REQ: TRN-3
#[test]
fn every_call_that_reaches_the_gate_has_one_decision() {
    let asked = ["a:Read:a.rs", "b:Bash:no", "c:Nope:x", "d:Note:x"];
    let mut world = World::new(vec![calls(&asked)]);
    world.layers = [vec![]].into();
    let play = play(world);
    assert_eq!(decisions(&play).iter().map(|it| it.0).collect::<Vec<_>>(), [true, false, true]);
}

// REQ: PRM-3
#[test]
fn rules_that_cannot_hold_are_told_when_they_come_into_force() {
    let rules = json!({ "permissions": {
        "deny": ["Raed", "Glob(x)", "mcp__later__tool"], "ask": ["Bsh(x)", "Bash(rm *)"],
    }});
    let mut play = play(World::with(rules, vec![text("done"), text("done")]));
    play.run("again");
    assert_eq!(play.log().matches("alert").count(), 3, "{}", play.log());
    assert!(play.log().starts_with("1 alert alert alert 2"), "{}", play.log());
}

// REQ: SES-4, TOL-12
#[test]
fn confirmation_of_changes_has_no_effect_in_sessions_from_before_there_was_one() {
    for (revision, n_asked) in [(22, 0), (REVISION, 1)] {
        let settings = json!({
            "permissions": { "defaultMode": "acceptEdits" },
            "ennead": { "codeEdit": { "maxChangesPerTurn": 0 } },
        });
        let mut world = World::with(settings, vec![calls(&["b:Edit:b.rs"]), text("done")]);
        std::sync::Arc::make_mut(&mut world.facts).revision = revision;
        let play = play(world);
        assert_eq!(play.questions.len(), n_asked, "{revision}");
        play.check_replay();
    }
}
