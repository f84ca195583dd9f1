//! Ways to set a variable that decides what runs which are not assignments, and scripts of `sed` and `awk` that look
//! like others.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Builtins and grammar that set `PATH`, or evaluate what is in quotes. Source: bash 5.2.
const SETTING: [&str; 20] = [
    "printf %n PATH; ls",
    "printf 'abc%-3n' PATH; ls",
    "printf -- '%d %ln' 1 PATH; ls",
    "printf '%%%n' PATH; ls",
    "printf \"$f\" PATH; ls",
    "printf \"$f\" \"$x\"; ls",
    "read -aPATH <<< .; ls",
    "read -raPATH < x; ls",
    "[[ PATH=5 -eq 5 ]]; ls",
    "[[ 'PATH=5' -eq 5 ]]; ls",
    "[[ 5 -lt PATH+=5 ]]; ls",
    "true {PATH}>/dev/null; ls",
    "true {PATH}<x; ls",
    "true {PATH}>&1; ls",
    "true {PATH[0]}>/dev/null; ls",
    "true {a['$(rm x)']}>/dev/null",
    "coproc PATH { ls; }; ls",
    "coproc PATH (ls); ls",
    "coproc PA\\\nTH { ls; }; ls",
    "echo name | xargs hostname",
];

// REQ: PRM-8
#[test]
fn variable_that_decides_what_runs_is_set_by_no_command_unasked() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
        check_each(mode, &[], &SETTING, "ask");
    }
    check_each(
        Mode::Default,
        &["allow user Bash(printf *)", "allow user Bash(read *)"],
        &SETTING,
        "ask",
    );
    let harmless = [
        "printf '%s\\n' PATH",
        "printf '%%n' PATH",
        "printf \"$f\" x",
        "printf \"${GREEN}%s\\n\" 5",
        "read -ra words < x",
        "read -r -p 'a PATH: ' line < x",
        "[[ 5-1 -eq i ]]",
        "ls {fd}>/dev/null",
        "ls {a,b} {a[b],c}",
        "coproc X { ls; }",
        "hostname",
    ];
    check_each(Mode::Default, &[], &harmless, "allow");
}

/// Scripts that run `rm x`, or what their input says, where a reader that ends a pattern too early sees none of it.
const RUNNING: [&str; 23] = [
    "sed -i 's/[]/]/p;#/e' x",
    "sed -i 's/[^]/]/p;#/e' x",
    "sed -i 's/[[:alpha:]/]/p;#/e' x",
    "sed -i 's/[[.].]/]/p;#/e' x",
    "sed -i 's,[]a,],p;#,e' x",
    "sed -i '/[]/]/p;#/e rm x' x",
    "sed -i '\\,[^],],p;#,e rm x' x",
    "sed -i ':a e rm x' x",
    "sed -i 'b a e rm x' x",
    "sed -i 't e rm x' x",
    "sed -i ':a #;e rm x' x",
    "awk 'BEGIN{1system(\"rm x\")}'",
    "awk 'BEGIN { length /~/; system(\"rm x\") /1 }'",
    "awk 'BEGIN { n++ /=*;#/; system(\"rm x\") }'",
    "awk 'BEGIN { n++ /1; system(\"rm x\") /1 }'",
    "awk 'BEGIN { n-- /1; system(\"rm x\") /1 }'",
    "awk 'BEGIN { if (1) /\"/; system(\"rm x\"); /\"/ }'",
    "awk 'BEGIN { if (0) n = 1; else /\"/; system(\"rm x\"); /\"/ }'",
    "awk 'BEGIN { while (n++ < 1) /#/; system(\"rm x\") }'",
    "awk 'BEGIN { do /\"/; while (0); system(\"rm x\"); /\"/ }'",
    "awk 'BEGIN { /[/]\"/; system(\"rm x\"); /\"/ }'",
    "awk 'BEGIN { /[]/]\"/; system(\"rm x\"); /\"/ }'",
    "awk 'BEGIN { for (;;) /\"/; system(\"rm x\"); /\"/ }'",
];

// REQ: PRM-8
#[test]
fn script_of_sed_or_awk_hides_nothing_that_it_runs_in_a_pattern() {
    let rules = &["allow user Bash(sed *)", "allow user Bash(awk *)"];
    check_each(Mode::Default, rules, &RUNNING, "ask");
    check_each(Mode::AcceptEdits, &[], &RUNNING, "ask");
    let edits = [
        "sed -i -E 's/[[:space:]]+$//' x",
        "sed -i 's/[^\\/]*$//' x",
        "sed -i 's/[^]]*/x/' x",
        "sed -i 's/[\\[\\]]//g' x",
        "sed -i 's/null/[]/' x",
        "sed -i '/^\\[a\\]/,/^\\[b\\]/s/x = .*/x = 1/' x",
        "sed -i 'y/[]/()/' x",
        "sed -i ':a;N;$!ba;s/\\n/ /g' x",
        "sed -i '/a/{n; b }; s/b/c/' x",
        "sed -i -e ':a' -e 's/a/b/;ta' x",
    ];
    check_each(Mode::AcceptEdits, &[], &edits, "allow");
    let prints = [
        "awk '{ print $1/2, (a + b)/2, n/3.5, length($1)/2 }' x",
        "awk '/a/ && !/b/ { x[$1]++ } END { for (k in x) print k, x[k]/NR }' x",
        "awk 'NR % 2 == 0 { if ($1 ~ /[[:digit:]]+/) print }' x",
        "awk '{ if ($1) /x/; else print }' x",
        "awk '{ i++; --j; print i - -j }' x",
    ];
    check_each(Mode::Default, rules, &prints, "allow");
}

// REQ: PRM-4, PRM-8
#[test]
fn copy_that_sed_keeps_is_a_file_that_it_writes() {
    let outside = [
        "sed -i'/etc/*' s/a/b/ x",
        "sed -i'../*' s/a/b/ x",
        "sed --in-place='/etc/*' s/a/b/ x",
        "sed --in-p='/etc/*' s/a/b/ x",
        "sed -ni'/etc/*' p x",
        "sed -i'.git/hooks/*' s/a/b/ x",
        "sed -irc s/a/b/ .bash",
        "sed -i'.bash*' s/a/b/ rc",
        "sed -i'*/../../../y' s/a/b/ sub/x",
    ];
    check_each(Mode::AcceptEdits, &[], &outside, "ask");
    let protected =
        ["sed -i'.git/hooks/*' s/a/b/ x", "sed -i'.git/hooks/*' s/a/b/ *.sh", "sed -irc p .bash"];
    check_each(Mode::Default, &["allow user Bash"], &protected, "ask");
    check_each(Mode::BypassPermissions, &[], &protected, "ask");
    let denied = ["sed -i'locked/*' s/a/b/ x"];
    let rules = &["allow user Bash", "deny user Edit(locked/**)"];
    check_each(Mode::Default, rules, &denied, "deny");
    let kept = ["sed -i.bak s/a/b/ x", "sed -i.bak s/a/b/ src/x", "sed -i'old/*' s/a/b/ x"];
    check_each(Mode::AcceptEdits, &[], &kept, "allow");
    check_each(Mode::Default, rules, &["sed -i.bak s/a/b/ *.rs"], "allow");
}
