//! Values that a command gives to its variables itself, and words that may become what a rule is about.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

// REQ: PRM-4
#[test]
fn a_variable_hides_no_critical_removal_and_no_protected_file() {
    let commands = [
        "for d in / ~; do rm -rf \"$d\"; done",
        "for d in / ~; do rm -r $d; done",
        "for d in 'a /'; do rm -rf $d; done",
        "for d in {build,/etc}; do rm -rf $d; done",
        "for d in .git; do rm -rf $d; done",
        "for d in src; do for e in / out; do rm -rf \"$e\"; done; done",
        "for d in /; do rm -rf ${d}; done",
        "rm -rf $(ls)",
        "rm -rf \"$(git rev-parse --show-toplevel)\"",
        "rm -rf \"$x\"",
        "for d; do rm -rf \"$d\"; done",
    ];
    check_each(
        Mode::Default,
        &["allow user Bash(rm *)", "allow user Bash(git *)"],
        &commands,
        "ask",
    );
    let more = [
        "for r in ~/.ssh/authorized_keys; do echo k >> $r; done",
        "for r in .git/config; do cp a $r; done",
        "d=/; rm -rf \"$d\"",
        "cd \"$X\"; rm -rf .",
        "cd \"$X\" && rm -rf *",
        "cp a .g${x}it/config",
        "echo x > .g${x}it/config",
    ];
    let all: Vec<&str> = commands.into_iter().chain(more).collect();
    check_each(Mode::Default, &["allow user Bash"], &all, "ask");
    check_each(Mode::BypassPermissions, &[], &all, "ask");
    let ordinary = [
        "for d in build out; do rm -rf \"$d\"; done",
        "t=$(mktemp -d); touch \"$t/x\"; rm -rf \"$t\"",
        "rm \"$f\"",
        "for f in a b; do cp \"$f\" out; done",
        "cd \"$X\" && rm -rf build",
    ];
    check_each(Mode::BypassPermissions, &[], &ordinary, "allow");
    check_each(Mode::Default, &["allow user Bash(rm *)"], &ordinary[..1], "allow");
}

// REQ: PRM-3
#[test]
fn a_rule_is_asked_about_that_an_expansion_may_meet() {
    let commands = [
        "git pu${x}sh --force",
        "git $x push",
        "git $x",
        "for c in push; do git $c; done",
        "git p[u]sh",
        "git pus? origin",
        "git -C src pu${x}sh",
        "timeout 5 git pu${x}sh",
        "git \"$x\" origin",
    ];
    let rules = ["allow user Bash(git *)", "deny user Bash(git push *)"];
    check_each(Mode::Default, &rules, &commands, "ask");
    check_each(Mode::BypassPermissions, &rules[1..], &commands, "ask");
    check_each(Mode::BypassPermissions, &["ask user Bash(git push *)"], &commands, "ask");
    let others = [
        "git add \"$f\"",
        "git add *.rs",
        "git commit -m \"$msg\"",
        "git checkout $branch",
        "git log -- src/*.rs",
        "git -C src status",
    ];
    check_each(Mode::Default, &rules, &others, "allow");
    let removal = ["allow user Bash", "deny user Bash(rm -rf *)"];
    check_each(Mode::Default, &removal, &["rm *.o", "rm a b"], "allow");
    check_each(Mode::Default, &removal, &["rm $x", "rm -r\"$x\" a"], "ask");
}
