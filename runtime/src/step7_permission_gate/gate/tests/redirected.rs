//! Files from which a command is redirected: a rule for the program does not let it read outside the workspace.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    command_files::{check_all, check_each},
    *,
};

const TESTS: &str = "allow project Bash(npm test *)";

const OUTSIDE: &[&str] = &[
    "npm test < /etc/shadow",
    "npm test 3< /etc/shadow",
    "npm test <> /etc/shadow",
    "npm test < ~/.ssh/id_rsa",
    "npm test < ../secret",
    "npm test < src/../../secret",
    "npm test < /proc/self/environ",
    "npm test < /dev/tcp/host/80",
    "npm test < \"$FILE\"",
    "timeout 5 npm test < /etc/shadow",
    "cd src && npm test < ../../secret",
    "{ npm test; } < /etc/shadow",
    "while npm test; do :; done < /etc/shadow",
    "npm test \"$(npm test < /etc/shadow)\"",
];

const INSIDE: &[&str] = &[
    "npm test < input.txt",
    "npm test 3< src/a.txt",
    "npm test < /dev/null",
    "npm test < src/../a",
    "cd src && npm test < ../a",
    "npm test <<< 'x y'",
    "npm test <<'E'\n$(x)\nE",
    "npm test < <(git log)",
    "cat < <(git log)",
    "while read -r line; do echo \"$line\"; done < <(git log)",
    "{ npm test; } < input.txt",
];

// REQ: PRM-8
#[test]
fn rule_for_a_program_does_not_let_it_be_redirected_from_outside_the_workspace() {
    check_all(&[TESTS], OUTSIDE, "ask");
    check_all(&[TESTS], INSIDE, "allow");
    check_each(Mode::DontAsk, &[TESTS], OUTSIDE, "deny");
    check_each(Mode::AcceptEdits, &[], &["touch a < /etc/shadow", "mkdir a < ~/x"], "ask");
}

// REQ: PRM-8
#[test]
fn rules_for_reading_and_for_all_commands_cover_what_a_command_is_redirected_from() {
    let outside =
        ["npm test < /etc/hosts", "{ npm test; } < /etc/hosts", "npm test \"$(< /etc/hosts)\""];
    check_all(&[TESTS, "allow project Read(//etc/**)"], &outside, "allow");
    check_all(&[TESTS, "allow project Edit(//etc/**)"], &outside, "allow");
    check_all(&[TESTS, "allow project Read"], &outside, "allow");
    check_all(&[TESTS, "allow project Read(//usr/**)"], &outside, "ask");
    check_all(&["allow project Bash"], &outside, "allow");
    check_all(&["allow project Bash", "deny project Read(//etc/**)"], &outside, "deny");
    check_each(Mode::Plan, &[TESTS, "allow project Read"], &outside, "ask");
    check_each(Mode::BypassPermissions, &[], &outside, "allow");
}

// REQ: PRM-3
#[test]
fn question_about_a_file_outside_names_the_rule_that_would_let_it_be_read() {
    let setup = setup(Mode::Default, Handler::Approver, &[TESTS]);
    let asked = outcome(&bash(), &setup, &run("npm test < /etc/hosts"));
    assert!(asked.contains("to read /etc/hosts"), "{asked}");
    assert!(asked.contains("Read(//etc/hosts)"), "{asked}");
}

// REQ: PRM-8
#[test]
fn rule_for_git_does_not_lead_it_to_the_configuration_of_another_place() {
    let rule = &["allow project Bash(git *)"];
    let elsewhere = [
        "git -C /srv/x log",
        "git -C ../x status",
        "git -C \"$DIR\" pull",
        "git --no-pager -C ~/x log",
        "timeout 5 git -C /srv/x log",
    ];
    check_all(rule, &elsewhere, "ask");
    check_all(rule, &["git -C sub log", "git -C /w/sub pull", "git -C . add -A"], "allow");
    check_all(&["allow project Bash(git -C /srv/x log)"], &elsewhere[..1], "allow");
    check_all(&["allow project Bash"], &elsewhere, "allow");
}

// REQ: PRM-4
#[test]
fn pattern_without_a_beginning_is_no_removal_of_a_protected_file() {
    let rule = &["allow project Bash"];
    let all = ["rm -rf build/*", "rm -f *.json", "rm *.toml", "rm -f src/?.yml"];
    check_all(rule, &all, "allow");
    check_each(Mode::BypassPermissions, &[], &all, "allow");
    let protected = [
        "rm -rf .g*",
        "rm -f lefth*",
        "rm -f [b]unfig.toml",
        "rm -rf src/.*",
        "sed -i s/a/b/ *.yml",
    ];
    check_each(Mode::BypassPermissions, rule, &protected, "ask");
}

// REQ: PRM-8
#[test]
fn patterns_of_files_to_count_need_no_rule_unless_a_rule_denies_to_read_files() {
    let counts = ["wc -l *.rs", "du -sh *", "wc -c *"];
    check_all(&[], &counts, "allow");
    check_all(&["deny project Read(.env)"], &counts, "ask");
    check_all(&["deny project Read(.env)", "allow project Bash"], &counts[..1], "allow");
    check_all(&[], &["wc -l --files0-from=list", "du --files0-from /x"], "ask");
}
