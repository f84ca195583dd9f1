//! The mode `plan`: its plan file is written, and nothing else.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

const PLAN: &str = "/h/.claude/plans/s.md";

fn planning(mode: Mode, rules: &[&str]) -> GateSetup {
    let plan = [PLAN.to_owned(), "/real/.claude/plans/s.md".to_owned()];
    setup(mode, Handler::Approver, rules).planning_in(plan)
}

/// `/w/link.md` leads to the plan, and `plans/s.md` of another home to a script.
fn linked(path: &str) -> PathEntry {
    match path {
        "/w" | "/h" | "/h/.claude" | "/h/.claude/plans" | "/real" => PathEntry::Directory,
        "/w/link.md" => PathEntry::Link(PLAN.into()),
        _ => PathEntry::Missing,
    }
}

fn away(path: &str) -> PathEntry {
    match path {
        PLAN => PathEntry::Link("/w/src/a.md".into()),
        "/h/.claude/plans" | "/w/src" => PathEntry::Directory,
        _ => linked(path),
    }
}

#[track_caller]
fn check(spec: &ToolSpec, setup: &GateSetup, path: &str, expected: &str) {
    let looks = Look { at: linked, list: |_, _| Some(Listing::default()) };
    let found = outcome_in(looks, spec, setup, &format!(r#"{{"file_path":"{path}"}}"#));
    assert!(found.starts_with(expected), "{path}: {found}");
}

// REQ: PRM-4
#[test]
fn plan_file_is_written_in_plan_mode_and_nothing_else_is() {
    for rules in [&[][..], &["allow user Edit", "allow user Write", "allow user Bash"]] {
        let setup = planning(Mode::Plan, rules);
        check(&write(), &setup, PLAN, "allow it is the plan of the session");
        check(&write(), &setup, "/h/x/../.claude/plans/s.md", "allow it is the plan");
        check(&read(), &setup, PLAN, "allow");
        for other in [
            "/h/.claude/plans/other.md",
            "/h/.claude/plans/s.md/below.md",
            "/h/.claude/plans",
            "/h/.claude/settings.json",
            "/w/a.md",
            "/w/s.md",
            "/w/link.md",
        ] {
            check(&write(), &setup, other, "ask");
        }
        let command = outcome(&bash(), &setup, &format!(r#"{{"command":"echo x > {PLAN}"}}"#));
        assert!(command.starts_with("ask"), "{command}");
    }
}

// REQ: PRM-2
#[test]
fn deny_and_ask_rules_hold_for_the_plan_file() {
    let of = |rule| planning(Mode::Plan, &[rule]);
    check(&write(), &of("deny user Edit(~/.claude/**)"), PLAN, "deny");
    check(&write(), &of("ask user Edit(~/.claude/**)"), PLAN, "ask");
    check(&read(), &of("deny user Read(~/.claude/**)"), PLAN, "deny");
}

// REQ: PRM-4
#[test]
fn plan_file_is_read_in_every_mode_and_written_in_plan_mode_alone() {
    for mode in [Mode::Default, Mode::AcceptEdits] {
        let setup = planning(mode, &["allow user Edit"]);
        check(&read(), &setup, PLAN, "allow");
        check(&write(), &setup, PLAN, "ask it writes to a protected path");
    }
}

#[test]
fn plan_file_that_is_a_link_to_another_file_is_asked_about() {
    let looks = Look { at: away, list: |_, _| Some(Listing::default()) };
    let setup = planning(Mode::Plan, &[]);
    let found = outcome_in(looks, &write(), &setup, &format!(r#"{{"file_path":"{PLAN}"}}"#));
    assert!(found.starts_with("ask"), "{found}");
}

#[test]
fn setup_without_a_plan_file_has_every_write_asked_about_in_plan_mode() {
    check(&write(), &setup(Mode::Plan, Handler::Approver, &[]), PLAN, "ask");
}
