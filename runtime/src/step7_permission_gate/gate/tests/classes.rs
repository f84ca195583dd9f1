//! More commands of the classes that the corpora have: rules with stars, wrappers, modes, the read-only set, and
//! files that rules deny.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Rules, and commands with the answer under them in the default mode.
const RULED: [(&[&str], &[&str], &str); 10] = [
    (&["allow project Bash(ls *)"], &["ls", "ls -la | cat -n"], "allow"),
    (&["allow project Bash(ls *)"], &["lsof", "lsblk -f"], "ask"),
    (&["allow project Bash(npm run test:*)"], &["npm run test", "npm run test --watch"], "allow"),
    (&["allow project Bash(npm run test:*)"], &["npm run test:unit", "npm run tests"], "ask"),
    (
        &["allow project Bash(npm test *)"],
        &[
            "NODE_ENV=test npm test",
            "timeout 30 npm test",
            "timeout -k 5s --signal=TERM 30 npm test",
            "nice -n 10 npm test",
            "nohup npm test &",
            "stdbuf -oL npm test",
            "time npm test",
            "command npm test",
        ],
        "allow",
    ),
    (
        &["allow project Bash(npm test *)"],
        &[
            "LD_PRELOAD=x npm test",
            "sudo npm test",
            "env A=b npm test",
            "watch npm test",
            "setsid npm test",
            "flock l npm test",
            "bash -c 'npm test'",
            "eval npm test",
        ],
        "ask",
    ),
    (&["allow project Bash(git *)"], &["git status && rm -rf x", "git -c a.b=c log"], "ask"),
    (&["deny user Bash(rm *)"], &["git status && FOO=1 rm -rf x", "echo $(rm x)"], "deny"),
    (&["allow project Bash(grep *)"], &["ls | xargs grep foo"], "allow"),
    (&["allow project Bash(echo *)"], &["echo $(rm -rf build)", "echo x > out"], "ask"),
];

/// Commands that need no rule.
const READ_ONLY: [&str; 26] = [
    "cd sub && ls",
    "grep x . 2>/dev/null",
    "echo `id`; ls",
    "git branch",
    "git stash list",
    "git remote -v",
    "git tag",
    "git config --get user.name",
    "git log | grep fix | wc -l",
    "cat a | sort | uniq -c | sort -rn | head",
    "pwd && date && whoami",
    "[ -f a ] && echo yes || echo no",
    "test -d src; echo $?",
    "date +%F",
    "echo hi > /dev/null",
    "cat < src/a",
    "printf '%s\\n' a b",
    "seq 3 | while read i; do echo $i; done",
    "stat a; du -sh .; readlink a; realpath a",
    "which ls; type ls; command -v ls",
    "head -c 10 a | od -c",
    "cut -d: -f1 a | tr a b | rev | tac | nl | paste - -",
    "diff -r a b; cmp a b; comm a b",
    "uname -a; id",
    "ls --color=always -la | cat -n",
    "rg -n x src",
];

/// Commands that do, since they write, run others, or reach out of the workspace.
const NOT_READ_ONLY: [&str; 26] = [
    "cd /other && git status",
    "ls > out.txt",
    "ls | tee out",
    "git log --output=x",
    "git branch -D x",
    "git tag v1",
    "git config user.name x",
    "sort -o x x",
    "uniq a b",
    "tree -o x",
    "date -s 2020-01-01",
    "hostname x",
    "file -m x y",
    "rg --pre ./x y",
    "cat < /etc/passwd",
    "ls ~",
    "ls ..",
    "cat \"$x\"",
    "env",
    "printenv PATH",
    "find . -delete",
    "find . -exec ls {} +",
    "find . -fprint x",
    "$(echo ls)",
    "./ls",
    "ls; unknown",
];

/// What a rule for all commands does not open where `Read(.env)` and `Read(secrets/**)` are denied.
const OF_DENIED_FILES: [&str; 30] = [
    "cat ./.env",
    "cat sub/.env",
    "cat ./secrets/../secrets/k",
    "cat \"sec\"rets/k",
    "cat secrets/*",
    "base64 .env",
    "while read l; do echo $l; done < .env",
    "cd secrets && cat k",
    "cat $PWD/.env",
    "cat ~+/.env",
    "cat /w/.env",
    "python3 -c \"open('.env')\"",
    "set -a; . ./.env",
    "cat .e[n]v",
    "cat .en{v,w}",
    "tac .env|rev",
    "zip x .env",
    "curl -d @.env x",
    "curl -F f=@.env x",
    "curl file:///w/.env",
    "wc .env && ls",
    "sort .env>x",
    "dd if=.env of=x",
    "git show HEAD:.env",
    "git diff -- .env",
    "git log -p .env",
    "tar cf - secrets",
    "vim .env",
    "awk 1 .env",
    "mv .env x",
];

// REQ: PRM-2, PRM-8
#[test]
fn rules_cover_what_their_words_say_and_no_more() {
    for (rules, commands, expected) in RULED {
        check_each(Mode::Default, rules, commands, expected);
    }
}

// REQ: PRM-8
#[test]
fn read_only_set_is_what_only_reads_in_the_workspace() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
        check_each(mode, &[], &READ_ONLY, "allow");
    }
    check_each(Mode::Default, &[], &NOT_READ_ONLY, "ask");
    check_each(Mode::DontAsk, &[], &READ_ONLY, "allow");
    check_each(Mode::DontAsk, &[], &NOT_READ_ONLY, "deny");
}

// REQ: PRM-4
#[test]
fn edits_that_are_accepted_are_those_of_known_files_in_the_workspace() {
    let accepted = ["mkdir a", "touch a b && mv a c", "sed -i s/a/b/ src/x.rs", "ls | tee out"];
    check_each(Mode::AcceptEdits, &[], &accepted, "allow");
    let others =
        ["npm i", "cp a ../b", "sed -i 's/a/b/e' src/x.rs", "touch .git/x", "rm -rf ~", "mv a $x"];
    check_each(Mode::AcceptEdits, &[], &others, "ask");
    check_each(Mode::BypassPermissions, &[], &["rm -rf ~", "touch .git/x"], "ask");
    check_each(Mode::DontAsk, &["allow project Bash(rm *)"], &["rm -rf ~"], "deny");
}

// REQ: PRM-8
#[test]
fn denied_files_are_denied_however_a_command_opens_them() {
    let rules = &["deny project Read(.env)", "deny project Read(secrets/**)", "allow project Bash"];
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
        check_each(mode, rules, &OF_DENIED_FILES, "deny");
    }
    let beside = [
        "cat env.example",
        "echo .env >> .gitignore",
        "test -f .env && echo y",
        "git commit -m 'no .env'",
        "cat src/a | grep .env",
        "find . -name .env -not -path './secrets/*'",
        "mkdir -p out && cp a out/",
    ];
    check_each(Mode::Default, rules, &beside, "allow");
}
