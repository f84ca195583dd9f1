//! Changes of files that are asked about though they would pass (`ennead.codeEdit`).
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{approval::PermissionAnswer, step1_settings_resolution::merge};

/// A gate after this many changes, of settings that let two pass.
fn after(n_changes: u32, mode: Mode, handler: Handler, texts: &[&str]) -> GateSetup {
    let gate = setup(mode, handler, texts);
    let mut settings = Settings::clone(gate.settings());
    let text = r#"{"ennead":{"codeEdit":{"maxChangesPerTurn":2}}}"#;
    let layer = crate::step1_settings_resolution::LayerText::new(Scope::User, "s", text);
    settings.code_edit = merge(&[layer]).settings.code_edit;
    settings.permissions.mode = mode;
    gate.with_settings(&Arc::new(settings)).after_changes(n_changes)
}

#[track_caller]
fn check_after(
    n_changes: u32,
    (mode, texts): (Mode, &[&str]),
    (spec, input): (&ToolSpec, &str),
    expected: &str,
) {
    let found = outcome(spec, &after(n_changes, mode, Handler::Approver, texts), input);
    assert!(found.starts_with(expected), "{mode:?} {texts:?} {input}: {found}, not {expected}");
}

const ASKED: &str = "ask as many files as may be have been changed in this turn without a question \
    (2, `ennead.codeEdit`)";

// REQ: TOL-12
#[test]
fn change_that_a_mode_or_a_rule_allows_is_asked_about_after_as_many_as_pass() {
    let allow = &["allow user Edit"][..];
    let inside = file("x");
    for leave in
        [(Mode::AcceptEdits, &[][..]), (Mode::Default, allow), (Mode::BypassPermissions, &[])]
    {
        check_after(0, leave, (&write(), &inside), "allow");
        check_after(1, leave, (&write(), &inside), "allow");
        check_after(2, leave, (&write(), &inside), ASKED);
        check_after(3, leave, (&write(), &inside), ASKED);
        // Neither what reads nor a command is a change of this kind.
        check_after(3, leave, (&read(), &inside), "allow");
    }
    // No model decides in place of a person.
    check_after(1, (Mode::Auto, &[]), (&write(), &inside), "ask no rule allows it");
    check_after(2, (Mode::Auto, &[]), (&write(), &inside), ASKED);
    let (gate, _) = asked(Mode::Auto);
    assert!(gate.allow_rules().is_empty(), "then a model would be asked");
    check_after(3, (Mode::BypassPermissions, &[]), (&bash(), &run("touch x")), "allow");
    check_after(2, (Mode::DontAsk, allow), (&write(), &inside), "deny as many files as may be");
    let alone = after(2, Mode::AcceptEdits, Handler::None, &[]);
    assert!(outcome(&write(), &alone, &inside).starts_with("deny permission was needed (as many"));
}

// REQ: TOL-12, PRM-2
#[test]
fn what_is_denied_or_asked_about_for_another_reason_stays_so() {
    let denied = &["deny user Edit(x)"][..];
    check_after(
        2,
        (Mode::BypassPermissions, denied),
        (&write(), &file("x")),
        "deny denied by rule",
    );
    check_after(
        2,
        (Mode::AcceptEdits, &["ask user Edit"]),
        (&write(), &file("x")),
        "ask to be asked",
    );
    check_after(2, (Mode::AcceptEdits, &[]), (&write(), &file(".git/config")), "ask it writes");
    check_after(2, (Mode::Default, &[]), (&write(), &file("x")), "ask no rule allows it");
}

/// A gate at its question about a third change, and the rules that are offered.
fn asked(mode: Mode) -> (Gate, Vec<String>) {
    let setup = after(2, mode, Handler::Approver, &[]);
    let (mut gate, _) = Gate::open(call(&write(), &file("x")), &write(), &setup);
    match gate.path_resolved(resolve("x", "/w", "/h", &mut look)) {
        GateStep::Ask { suggestions, .. } => (gate, suggestions),
        other => panic!("{other:?}"),
    }
}

// REQ: TOL-12
#[test]
fn yes_of_a_hook_a_policy_or_a_model_counts_as_unasked_and_no_rule_is_offered() {
    for stands_in in [false, true] {
        let (mut gate, suggestions) = asked(Mode::AcceptEdits);
        assert!(suggestions.is_empty(), "{suggestions:?}");
        if stands_in {
            gate.stand_in();
        }
        let GateStep::Decided { decision, .. } =
            gate.permission_answered(PermissionAnswer::allow())
        else {
            panic!("it is decided");
        };
        assert_eq!(gate.is_unasked_change(&decision), stands_in);
    }
}

// REQ: TOL-12
#[test]
fn yes_to_it_lets_another_input_pass_and_is_no_unasked_change() {
    let setup = after(2, Mode::AcceptEdits, Handler::Approver, &[]);
    let (mut gate, _) = Gate::open(call(&write(), &file("x")), &write(), &setup);
    let at = |path: &str| resolve(path, "/w", "/h", &mut look);
    assert!(matches!(gate.path_resolved(at("x")), GateStep::Ask { .. }));
    let other = PermissionAnswer { input: Some(file("y").into()), ..PermissionAnswer::allow() };
    gate.permission_answered(other);
    let GateStep::Decided { decision, permit: Some(permit) } = gate.path_resolved(at("y")) else {
        panic!("it is decided");
    };
    assert!(permit.path().unwrap().real.ends_with("/w/y"));
    assert!(!gate.is_unasked_change(&decision));
    let (mut gate, _) = Gate::open(call(&write(), &file("x")), &write(), &setup.after_changes(1));
    let GateStep::Decided { decision, .. } = gate.path_resolved(at("x")) else {
        panic!("it is decided");
    };
    assert!(gate.is_unasked_change(&decision));
}

// REQ: TOL-12
#[test]
fn answer_that_was_given_under_another_number_is_not_taken() {
    let gate = || after(0, Mode::AcceptEdits, Handler::Approver, &[]);
    let off = setup(Mode::AcceptEdits, Handler::Approver, &[]);
    assert_ne!(gate().epoch(), off.epoch());
    assert_eq!(gate().epoch(), gate().after_changes(2).epoch());
}
