//! Commands in the sandbox, and calls that ask to leave it.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

const STAYS: &str = r#"{"command":"make"}"#;
const LEAVES: &str = r#"{"command":"make","dangerouslyDisableSandbox":true}"#;

fn sandboxed(mode: Mode, may_leave: bool, texts: &[&str]) -> GateSetup {
    let plain = setup(mode, Handler::Approver, texts);
    let mut settings = Settings::clone(plain.settings());
    settings.permissions.mode = mode;
    settings.sandbox.enabled = true;
    settings.sandbox.allow_unsandboxed = may_leave;
    plain.with_settings(&Arc::new(settings))
}

#[track_caller]
fn check(setup: &GateSetup, input: &str, expected: &str) {
    let found = outcome(&bash(), setup, input);
    assert!(found.starts_with(expected), "{input}: {found}");
}

// REQ: TOL-10, PRM-2
#[test]
fn call_that_asks_to_leave_the_sandbox_is_asked_about_where_the_sandbox_would_let_it_pass() {
    let setup = sandboxed(Mode::Default, true, &[]);
    check(&setup, STAYS, "allow it runs in the sandbox");
    check(&setup, LEAVES, "ask it asks to run outside the sandbox, and ");
    let falsely = LEAVES.replace("true", "false");
    check(&setup, &falsely, "allow it runs in the sandbox");
    // What is not the word `true` asks for nothing; the schema refuses it before.
    check(&setup, &LEAVES.replace("true", "\"true\""), "allow it runs in the sandbox");
    check(&sandboxed(Mode::DontAsk, true, &[]), LEAVES, "deny");
}

// REQ: TOL-10
#[test]
fn wish_to_leave_the_sandbox_is_ignored_where_settings_do_not_let_calls_leave() {
    let setup = sandboxed(Mode::Default, false, &[]);
    check(&setup, LEAVES, "allow it runs in the sandbox");
}

// REQ: PRM-2
#[test]
fn usual_rules_hold_for_a_call_that_asks_to_leave_the_sandbox() {
    let of = |rule| sandboxed(Mode::Default, true, &[rule]);
    check(&of("allow user Bash(make *)"), LEAVES, "allow");
    check(&of("deny user Bash(make *)"), LEAVES, "deny");
    check(&of("ask user Bash(make *)"), LEAVES, "ask to be asked");
    let reads = LEAVES.replace("make", "ls");
    check(&sandboxed(Mode::Default, true, &[]), &reads, "allow every part of it only reads");
}

// REQ: PRM-9
#[test]
fn answer_does_not_hold_when_calls_may_leave_the_sandbox_no_more() {
    let (may, may_not) =
        (sandboxed(Mode::Default, true, &[]), sandboxed(Mode::Default, false, &[]));
    assert_ne!(may.epoch(), may_not.epoch());
}
