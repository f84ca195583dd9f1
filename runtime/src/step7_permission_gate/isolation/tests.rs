//! Which commands an agent in a worktree is refused.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::step7_permission_gate::command::CommandContext;

fn refused_in(command: &str, checkout: &str) -> bool {
    let worktree = format!("{checkout}/.claude/worktrees/agent-1");
    let isolation = Isolation { worktree: vec![worktree.clone()], checkout: vec![checkout.into()] };
    let access = Access::Command { field: "command".into() };
    isolation.refuses(&access, None, Some(&read(command, &worktree))).is_some()
}

fn read(command: &str, worktree: &str) -> ShellCommand {
    let workspace = vec![worktree.to_owned()].into();
    let around = CommandContext {
        links: crate::step7_permission_gate::command::Follower::default(),
        cwd: worktree.into(),
        home: "/h".into(),
        workspace,
    };
    ShellCommand::read(command, around)
}

fn refused(command: &str) -> bool {
    refused_in(command, "/r")
}

#[track_caller]
fn check(refused_ones: &[&str], others: &[&str]) {
    for (commands, expected) in [(refused_ones, true), (others, false)] {
        let wrong: Vec<_> = commands.iter().filter(|it| refused(it) != expected).collect();
        assert!(wrong.is_empty(), "not {expected}: {wrong:#?}");
    }
}

// REQ: AGT-9
#[test]
fn git_is_not_pointed_to_the_checkout() {
    check(
        &[
            "git -C /r status",
            "git -C ../../.. commit -m x",
            "git -C \"/r\" log",
            "git -c user.name=x -C /r/sub log",
            "git --git-dir /r/.git log",
            "git --git-dir=/r/.git --work-tree=. add .",
            "git --work-tree ../../../ checkout .",
            "git -c core.worktree=/r checkout .",
            "GIT_DIR=/r/.git git log",
            "export GIT_DIR=../../../.git",
            "env GIT_DIR=/r/.git git log",
            "GIT_WORK_TREE=/r git checkout .",
            "bash -c 'git -C /r log'",
            "/usr/bin/git -C /r log",
            "echo a && git -C /r log",
            // The target is not known.
            "git -C $DIR log",
            "git -C \"$(cat x)\" log",
            "git -C `cat x` log",
            "git -C ~/x log",
            "GIT_DIR=$X git log",
            "git -C",
            "git $OPTIONS log",
        ],
        &[
            "git status",
            "git commit -m 'see git -C'x",
            "git -C . log",
            "git -C sub log",
            "git -C /r/.claude/worktrees/agent-1/sub log",
            "git -C /elsewhere log",
            "git log --format=%H -C",
            "make -C /r/sub",
            "grep -C 3 x y",
        ],
    );
}

// REQ: AGT-9
#[test]
fn no_command_works_in_the_checkout() {
    check(
        &[
            "cd /r && make",
            "cd ../../..; ls",
            "cd sub && cd ../.. && ls",
            "(cd /r/sub; git commit)",
            "pushd /r",
            "cd -P /r",
            "bash -c 'cd /r && make'",
            "cd $X && git commit",
            "cd \"$(git rev-parse --show-toplevel)/..\"",
            "cd -",
            "echo x > /r/a",
            "echo x > ../../../a",
            "tee /r/a",
        ],
        &[
            "cd sub && cd .. && make",
            "cd /r/.claude/worktrees/agent-1",
            "cd /tmp && ls",
            "cd sub && echo x > ../a",
            "echo $HOME > a",
            "cat /r/a",
            "for i in 1 2; do echo $i; done",
        ],
    );
}

// REQ: AGT-9
#[test]
fn files_are_written_where_the_shell_may_be() {
    check(
        &[
            "cd . && echo x > ../../../b.txt",
            "cd sub && rm -rf /r/src",
            "cd . && tee /r/a",
            "cd sub && echo x > ../../../../a",
            "cd / && rm -rf r/src",
            "echo x >| /r/a",
            "echo x &> /r/a",
            "cp -t /r a",
            "cp -rt/r a",
            "cp a --target-directory=/r",
            "cp a /r/b 2>/dev/null",
            "ln -sf x /r/a",
            "mv /r/x .",
            "sed -i s/a/b/ /r/a",
            "dd if=a of=/r/a",
            "rm -rf /r*/src",
            "rm -f \"$(git rev-parse --show-toplevel)\"/../../../a.txt",
        ],
        &[
            "cp /r/a .",
            "ln -s /r/node_modules node_modules",
            "sed -n 1,5p /r/a",
            "dd if=/r/a of=a",
            "cat a | tee /dev/null",
            "ls /r 2>/dev/null",
            "rm *.o",
            "for f in *.rs; do echo x > \"$f\"; done",
            "git show HEAD:a > /tmp/x",
        ],
    );
}

// REQ: AGT-9
#[test]
fn change_of_directory_that_may_not_last_is_not_relied_on() {
    check(
        &[
            "(cd a/b/c); cd ../../.. && git commit",
            "(cd a/b/c && make); tee ../../../x",
            "cd nosuch/b/c; cd ../../..",
            "cd a/b/c | cat; cd ../../..",
            "true | cd a/b/c && cd ../../..",
            "true |\ncd a/b/c && cd ../../..",
            "{ cd a/b/c; } | cat && cd ../../..",
            "cd a/b/c & cd ../../..; git status",
            "false && cd a/b/c; cd ../../..",
            "false && cd a/b/c && true; cd ../../..",
            "! cd a/b/c && cd ../../..",
            "cd a/b/c || cd ../../..",
            "bash -c 'cd a/b/c'; cd ../../..",
            "bash -c 'cd a/b/c' && cd ../../..",
            "echo $(cd a/b/c) && cd ../../..",
            "env cd a/b/c && cd ../../..",
            "pushd a/b/c; popd; git status",
            "pushd a/b/c && pushd && ls",
            "cd a/b/c/d && for i in 1 2 3 4 5 6 7; do cd ..; done; git commit",
            "f() { cd ..; }; cd a/b && f && f && f && f",
        ],
        &[
            "(cd sub && make) && (cd other && make)",
            "cd sub && make 2>&1 | tail && cd .. && ls",
            "cd a; make; cd /tmp; ls",
            "cd sub || exit 1; make",
            "cd sub &&\n  cd .. && ls",
            "if cd sub; then make; fi",
        ],
    );
}

// REQ: AGT-9
#[test]
fn words_end_where_the_shell_ends_them() {
    for command in [
        "cd \"/r x\" && git commit -m x",
        "git -C '/r x' log",
        "git --git-dir='/r x/.git' log",
        "cd /r\\ x",
        "GIT_DIR='/r x/.git' git log",
        "cp a '/r x/a'",
        "echo a > '/r x/a'",
        "cd ../../.. && git status",
        "bash -c \"cd '/r x' && git commit\"",
    ] {
        assert!(refused_in(command, "/r x"), "{command}");
    }
    check(
        &[
            "cd \"/r\"/sub",
            "cd /\\\nr",
            "bash <<E\ncd /r\nE",
            "bash <<< 'cd /r'",
            "echo 'cd /r' | sh",
            "eval cd /r",
            "eval 'cd' /r",
            "sh -c 'sh -c \"cd /r\"'",
            "cat <<E\n$(cd /r)\nE",
            "cat <<'E'\ndon't\nE\ncd /r && git commit -m 'x'",
            "ls # don't\ncd /r # don't",
            "echo \"$(cd /r; ls)\"",
            "source <(cd /r)",
            "echo $((1 << 2))\ncd /r",
            "echo \"$(case x in x) cd /r;; esac)\"",
            "cd $'\\x2fr'",
            "cd /{r,x}",
            "echo 'open",
        ],
        &[
            "git commit -m \"fix: (cd /r works); cd - too\"",
            "git commit -m \"$(cat <<'EOF'\nDon't (cd /r);\n\ncd - is kept\nEOF\n)\"",
            "cat > n.md <<'EOF'\ncd /r\nEOF",
            "cd 'app/[id]' && ls",
            "cd \"$PWD\" && git -C \"$(pwd)\" log",
            "cd ${PWD}/sub && ls",
            "find . -name x -exec rm {} +",
        ],
    );
}

// REQ: AGT-9
#[test]
fn other_ways_to_a_directory_are_known() {
    check(
        &[
            "cd /; cd r; git status",
            "HOME=/r; cd; git status",
            "git -C / -C r status",
            "env -C /r make",
            "env --chdir=/r git commit -m x",
            "env -C / git -C r status",
            "git -c Core.WorkTree=/r checkout .",
            "git --config-env=core.worktree=X checkout .",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.worktree GIT_CONFIG_VALUE_0=/r git add .",
            "git config core.worktree /r",
            "CDPATH=/ cd r",
            "PWD=/r; cd $PWD",
            "if cd /r; then ls; fi",
            "command cd /r",
            "$g -C /r log",
            "ls | xargs -I{} git -C {} log",
        ],
        &[
            "cd && ls",
            "git -C .. -C agent-1 status",
            "git config --get core.worktree",
            "GIT_DIR= git status",
            "grep -rn \"GIT_DIR=\" src",
            "which git $X",
            "echo use git ~/x",
            "apt-get install -y git \"$PKG\"",
        ],
    );
    let isolated = Isolation { worktree: vec!["/h/.w".into()], checkout: vec!["/h".into()] };
    assert_eq!(isolated.command(&read("cd", "/h/.w"), 0), Err(THERE));
}

// REQ: AGT-9
#[test]
fn command_that_takes_long_to_follow_is_refused() {
    for command in [
        "cd a;".repeat(8_000),
        "ls ".repeat(30_000),
        "$(".repeat(20_000),
        "(".repeat(20_000),
        "env ".to_owned() + &"cd a ".repeat(8_000),
        "<<X\n".repeat(10_000),
        format!("rm {}", "../x ".repeat(12_000)),
        "eval ".repeat(90) + "x y",
    ] {
        assert!(refused(&command), "{}", &command[..20]);
    }
}
