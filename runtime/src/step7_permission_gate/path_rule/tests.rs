//! Rules about paths: what they match.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

#[track_caller]
fn check(kind: RuleKind, scope: Scope, pattern: &str, path: &str, expected: bool) {
    let anchors = Anchors {
        workspace: "/w [x]".into(),
        project_root: "/w [x]".into(),
        home: "/h".into(),
        real: BTreeMap::from([("/w [x]".into(), "/real".into())]),
    };
    let pattern = PathPattern::of_rule(pattern, kind, scope, &anchors).unwrap();
    assert_eq!(pattern.matches(path), expected, "{pattern:?} on {path}");
}

// REQ: PRM-8
#[test]
fn patterns_are_anchored_by_where_the_rule_stands() {
    use RuleKind::{Allow, Deny};
    use Scope::{Project, User};
    check(Deny, User, "Read", "/h/Read", false);
    check(Deny, User, "/secrets/**", "/w [x]/secrets/k", false);
    check(Deny, User, "/secrets/**", "/h/.claude/secrets/k", true);
    check(Deny, Project, "/secrets/**", "/w [x]/secrets/k", true);
    check(Deny, Project, "~/.ssh/**", "/h/.ssh/id", true);
    check(Deny, Project, "//etc/*", "/etc/hosts", true);
    check(Deny, Project, "src/**", "/w [x]/vendor/src/a", true);
    check(Allow, Project, "src/**", "/w [x]/vendor/src/a", false);
    check(Allow, Project, "src/**", "/w [x]/src/a", true);
    check(Deny, Project, ".env", "/w [x]/a/.ENV", true);
    check(Deny, Project, ".env", "/.env", false);
    check(Deny, Project, "secrets-*/config.json", "/w [x]/secrets-a/config.json", true);
    check(Deny, Project, "{a,b}", "/w [x]/a", false);
    check(Deny, Project, "{a,b}", "/w [x]/{a,b}", true);
    check(Allow, Project, "**", "/w [x]/deep/er", true);
}

#[test]
fn linked_workspace_is_matched_in_both_places() {
    check(RuleKind::Deny, Scope::Project, ".env", "/real/a/.env", true);
    check(RuleKind::Allow, Scope::Project, "src/**", "/real/src/a", true);
    check(RuleKind::Deny, Scope::Project, ".env", "/realer/a/.env", false);
}

#[test]
fn folding_is_the_same_for_composed_and_decomposed_names() {
    assert_eq!(fold("CAFE\u{301}.txt"), fold("caf\u{e9}.TXT"));
    assert_eq!(fold("\u{3a3}"), fold("\u{3c2}"));
}

#[test]
fn hidden_patterns_read_back() {
    let hidden = PathPattern::hidden(&["//w/**/.env".into(), "//w/[".into()]);
    assert!(hidden.matches("/w/a/.env"));
    assert!(!hidden.matches("/w/a/env"));
}

// REQ: PRM-8, SUR-5
#[test]
fn exception_of_a_deny_rule_is_exact_and_leaves_out_a_directory_with_all_that_is_in_it() {
    use RuleKind::{Allow, Deny};
    use Scope::CliArg;
    let rule = "//host/desks:!//host/desks/acme:!//host/desks/both/x.jsonl";
    for (path, expected) in [
        ("/host/desks", true),
        ("/host/desks/globex/a", true),
        ("/HOST/Desks/globex/a", true),
        ("/host/desks/acme", false),
        ("/host/desks/acme/a/b", false),
        ("/host/desks/ACME/a", true),
        ("/host/desks/acme2/a", true),
        ("/host/desks/both/x.jsonl", false),
        ("/host/desks/both/x.jsonl2", true),
        ("/host/desktops", false),
    ] {
        check(Deny, CliArg, rule, path, expected);
        // An allow rule has no exceptions: it is a pattern that meets nothing.
        check(Allow, CliArg, rule, path, false);
    }
    let anchors = Anchors {
        workspace: "/host/desks/acme/s".into(),
        project_root: "/host/desks/acme/s".into(),
        home: "/h".into(),
        real: BTreeMap::new(),
    };
    let rule = PathPattern::of_rule(rule, Deny, CliArg, &anchors).unwrap();
    assert!(rule.may_meet("/host/desks/*/key") && !rule.may_meet("/host/desks/acme/s/*.rs"));
    assert!(rule.may_meet("/host/desks/acme/*/../../globex/key"), "it leads out of the exception");
    assert!(rule.may_lie_below("/host", false) && rule.may_lie_below("/host/desks", true));
    assert!(!rule.may_lie_below("/host/desks/acme/s", true));
    let hidden: Vec<String> = rule.as_hidden().chain(["//w/.env".to_owned()]).collect();
    let hidden = PathPattern::hidden(&hidden);
    for (path, expected) in [
        ("/host/desks/globex/a", true),
        ("/host/desks", true),
        ("/host/desks/acme/a", false),
        ("/w/.env", true),
        ("/w/a", false),
    ] {
        assert_eq!(hidden.matches(path), expected, "{path}");
    }
}
