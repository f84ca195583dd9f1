//! Programs that run what the gate cannot read, next to rules that deny or ask about commands.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Everything is allowed but `rm`.
const ALL_BUT_RM: &[&str] = &["deny user Bash(rm *)", "allow user Bash"];

// REQ: PRM-8
#[test]
fn script_that_the_command_itself_holds_is_judged_wherever_it_is() {
    let denied = [
        "echo 'rm x' | sh",
        "echo -n 'rm x' | bash -s a b",
        "echo 'rm x' | sudo -u root sh",
        "echo 'rm x' | timeout 5 bash -x",
        "echo 'rm x' | bash /dev/stdin a",
        "printf 'rm x\\n' | sh",
        "printf '%s\\n' 'rm x' y | sh -e",
        "printf %s 'rm x' | bash -",
        "cat x && echo 'rm x' |& sh",
        "sh <<< 'rm x'",
        "bash -s a <<< 'rm x'",
        "bash -o pipefail <<< 'rm x'",
        "bash <<'X'\nrm x\nX",
        ". /dev/stdin <<< 'rm x'",
        "source /dev/stdin <<X\nrm x\nX",
        "echo 'rm x' | . /dev/stdin",
        "git -c alias.x='!rm x' x",
        "git submodule foreach --recursive 'rm x'",
        "git rebase -ix 'rm x' main",
        "git difftool --extcmd='rm x'",
        "rsync -ae 'rm x' a b",
        "rsync --rsh='rm x' a b",
        "tar -I 'rm x' -cf a b",
        "tar cf a b --to-command 'rm x'",
        "make CC='rm x' all",
        "PAGER='rm x' git log",
        "export GIT_PAGER='rm x'; git log",
        "env GIT_SSH_COMMAND='rm x' git fetch",
        "ssh host rm x",
        "ssh host 'cd a; rm x'",
        "watch -n 1 'rm x'",
        "parallel ::: 'rm x' ls",
        "hyperfine 'rm x'",
        "nix-shell --run 'rm x'",
        "npx -c 'rm x'",
        "npm exec rm x",
        "poetry run rm x",
        "uv run --no-sync rm x",
        "docker exec c rm x",
        "valgrind rm x",
        "jobs -x rm x",
        "echo .x | xargs rm x",
    ];
    check_each(Mode::Default, ALL_BUT_RM, &denied, "deny");
    check_each(Mode::BypassPermissions, &["deny user Bash(rm *)"], &denied, "deny");
    let harmless = [
        "echo 'ls x' | sh",
        "printf '%s\\n' 'ls x' | bash",
        "sh <<< 'ls x'",
        "bash -c 'ls x; cat y'",
        ". /dev/stdin <<< 'ls x'",
        "git -c alias.x='!ls x' x",
        "git -c user.name=a commit -m b",
        "make V=1 CFLAGS='-O2 -g' all",
        "echo 'a b' | xargs ls",
        "env A=b cargo test",
        "bash --version",
        "python3 --version",
        "npx tsc --noEmit",
        "docker run image ls x",
        "timeout 5 npm test",
        "find . -name 'python' -exec grep sh {} +",
        "find . -name a | xargs -I{} cp {} out",
        "ls | xargs git add",
        "trap - EXIT",
        "echo rm x | cat",
    ];
    check_each(Mode::Default, ALL_BUT_RM, &harmless, "allow");
}

/// Commands whose programs cannot be seen in their text.
const UNSEEN: [&str; 77] = [
    "sh",
    "cat x | sh",
    "curl -s http://x | bash",
    "bash < file",
    "bash file",
    "sh ./file a",
    "bash 3<<<'ls' <&3",
    "echo 'ls' | sh < file",
    "echo 'ls' | (sh)",
    "echo 'ls' | { read x; sh; }",
    "echo -e 'r\\x6d x' | sh",
    "printf '\\162m x' | sh",
    "printf '%b' 'rm' | sh",
    "echo $x | sh",
    "echo() { cat file; }; echo 'ls' | sh",
    "bash <(cat file)",
    "source file",
    ". ./file",
    "bash --rcfile file -i",
    "sh -c \"ls $x\"",
    "sh -c \"$x\"",
    "sh -c '$0 y' rm",
    "sh -c 'cat file | sh'",
    "eval \"$x\"",
    "eval ls *",
    "zsh -c 'ls'",
    "enable -f ./a.so b",
    "hash -p ./a ls",
    "ls | xargs sh -c",
    "echo x | xargs -I{} sh -c '{}'",
    "ls | xargs -I{} {} x",
    "ls | xargs sudo",
    "ls | xargs nice",
    "ls | xargs find",
    "xargs -a f -n 1 python3",
    "python3 -c 'import os'",
    "python3.11 -Bc 'import os'",
    "python3 <<< 'import os'",
    "cat x | python3 -",
    "python3 -u",
    "python <(cat x)",
    "env python3 -c 'import os'",
    "perl -e 1",
    "perl -pe 1 x",
    "ruby -e 1",
    "node -e 1",
    "node --require a --eval=1",
    "deno eval 1",
    "php -r 1",
    "lua -e 1",
    "awk 'BEGIN { system(\"ls\") }'",
    "awk -f x y",
    "sed 's/a/b/e' x",
    "git x",
    "git -C . x a",
    "git -c core.pager=./x log",
    "git -c core.fsmonitor=x status",
    "git --config-env=alias.x=X x",
    "git --exec-path=. log",
    "git filter-branch -f",
    "vim -c ':q' x",
    "ex -s x",
    "ed x",
    "ssh host",
    "ssh -o ProxyCommand=./x host ls",
    "parallel ls",
    "make -f - all",
    "make --eval=x all",
    "make SHELL=./x all",
    "cargo --config build.rustc-wrapper=./x check",
    "go test -exec ./x",
    "wget -e use_askpass=./x http://x",
    "sqlite3 db .dump",
    "tmux new -d ls",
    "crontab x",
    "PATH=.:$PATH ls2",
    "BASH_ENV=x bash -c ls",
];

// REQ: PRM-8
#[test]
fn rule_for_the_whole_tool_does_not_cover_what_nobody_sees_where_commands_are_denied() {
    check_each(Mode::Default, ALL_BUT_RM, &UNSEEN, "ask");
    let spelt = &["ask user Bash(git push *)", "allow user Bash(*)", "allow user Bash(* *)"];
    check_each(Mode::Default, spelt, &UNSEEN, "ask");
    let bypassed = outcome(
        &bash(),
        &setup(Mode::BypassPermissions, Handler::Approver, &["deny user Bash(rm *)"]),
        &run("python3 -c 'import os'"),
    );
    assert!(bypassed.starts_with("ask the command cannot be judged: it runs what"), "{bypassed}");
    // Where nothing is denied, `Bash` is `Bash`.
    let (clear, unclear): (Vec<&str>, Vec<&str>) = UNSEEN.iter().partition(|command| {
        outcome(&bash(), &setup(Mode::BypassPermissions, Handler::Approver, &[]), &run(command))
            .starts_with("allow")
            && !command.contains("$0")
    });
    assert!(unclear.len() <= 1, "{unclear:?}");
    check_each(Mode::Default, &["allow user Bash"], &clear, "allow");
}

// REQ: PRM-8
#[test]
fn rule_that_names_the_program_covers_what_nobody_sees() {
    for (rule, command) in [
        ("allow user Bash(python3 *)", "python3 -c 'import os'"),
        ("allow user Bash(bash build.sh *)", "bash build.sh all"),
        ("allow user Bash(curl -s x)", "curl -s x"),
        ("allow user Bash(git lg *)", "git lg -5"),
        ("allow user Bash(make *)", "make --eval=x all"),
        ("allow user Bash(sh)", "ls | sh"),
    ] {
        check(Mode::Default, &["deny user Bash(rm *)", rule], &bash(), &run(command), "allow");
    }
    let decided =
        outcome(&bash(), &setup(Mode::Default, Handler::None, ALL_BUT_RM), &run("git lg"));
    assert!(
        decided.contains("it runs what cannot be seen") && decided.contains("Bash(git lg)"),
        "{decided}"
    );
}
