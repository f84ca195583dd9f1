//! What is denied, run, read or written by way of another program: a runner that is given the name in a variable, a
//! trap, a list of names, a shell's own history.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

const ALL_BUT_RM: &[&str] = &["deny user Bash(rm *)", "allow user Bash"];

// REQ: PRM-8
#[test]
fn program_that_another_one_runs_is_named_in_the_text() {
    let unknown = [
        "exec /bin/r? x",
        "exec $(echo rm) x",
        "env /bin/r? x",
        "env -i A=b \"$c\" x",
        "sudo $c",
        "busybox $c",
        "for c in rm; do env $c x; done",
        "for c in rm; do find . -exec $c {} \\; ; done",
        "find . -type f -execdir \"$@\" {} +",
        "set -- rm x; exec \"$@\"",
        "set -- rm x; env \"$@\"",
        "set -- rm x; setsid \"$@\"",
        "sh -c 'exec \"$@\"' sh rm x",
        "sh -c 'exec $0 x' rm",
        "sh -c 'env \"$1\" y' sh rm",
        "flock lock $c x",
        "chroot --userspec=a / $c",
        "ls | xargs -n 1 $c",
        "history -s rm x; fc -s",
        "fc -e -",
        "read PS4 <<< '$(rm x)'; set -x; ls",
        "printf -v PS4 '$(rm x)'; set -x; ls",
        "for PS4 in '$(rm x)'; do set -x; ls; done",
        "tcsh -c 'rm x'",
        "xonsh -c 'rm x'",
    ];
    check_each(Mode::Default, ALL_BUT_RM, &unknown, "ask");
    let denied = [
        "eval -- rm x",
        "rbash -c 'rm x'",
        "ksh93 -c 'rm x'",
        "yash <<< 'rm x'",
        "capsh -- -c 'rm x'",
        "capsh --user=a -- -c 'rm x'",
        "compgen -W '$(rm x)'",
        "complete -C 'rm x' y",
        "sg root 'rm x'",
        "sg root -c 'rm x'",
        "rg --pre rm x",
        "fd -x rm",
        "fdfind . -x rm",
        "infisical run -- rm x",
        "cpulimit -l 5 -- rm x",
        "apptainer exec a rm x",
        "fd -e o -X rm x",
        "tcpdump -z rm -r x",
        "tar -I rm -cf a b",
        "uclampset -m 5 rm x",
        "aa-exec -p a rm x",
        "env_parallel ::: 'rm x'",
        "autossh host rm x",
        "adb shell rm x",
        "oc exec pod -- rm x",
        "kubectl run a --image=b -- rm x",
        "kubectl debug a -- rm x",
        "lxc-attach -n a -- rm x",
    ];
    check_each(Mode::Default, ALL_BUT_RM, &denied, "deny");
    let known = [
        "env -i A=b cargo test",
        "env A=\"$x\" cargo test",
        "sudo -u www ls x",
        "exec ls x",
        "setsid make all",
        "flock lock make all",
        "find . -name '*.o' -exec ls {} +",
        "ls | xargs -n 1 cat",
        "sh -c 'ls \"$1\"' sh x",
        "history",
        "fc -l",
        "trap 'echo done' EXIT",
        "compgen -W 'a b' a",
        "fd -e rs x",
        "rg -n x src",
        "nice -n 5 make",
    ];
    check_each(Mode::Default, ALL_BUT_RM, &known, "allow");
}

// REQ: PRM-8
#[test]
fn denied_file_is_not_read_by_way_of_a_program_that_opens_it() {
    let rules = &["deny project Read(secrets/**)", "allow project Bash"];
    let denied = [
        "python3 -c 'print(open(\"secrets/k\").read())'",
        "python3 -c \"print(open('secrets').read())\"",
        "node -p 'require(\"fs\").readFileSync(\"secrets/k\")'",
        "ruby -e 'puts File.read(\"secrets/k\")'",
        "php -r 'readfile(\"secrets/k\");'",
        "sqlite3 x '.read secrets/k'",
        "make -pfsecrets/k",
        "aws s3api put --cli-input-json file://secrets/k",
        "aws s3api put --body fileb://secrets/k",
        "grep -vf secrets/k x",
        "grep -vfsecrets/k x",
    ];
    check_each(Mode::Default, rules, &denied, "deny");
    let unclear = [
        "trap 'cd secrets' DEBUG; cat k",
        "trap -- 'pushd secrets' USR1; cat k",
        "shopt -s dotglob; cat *",
        "bash -O dotglob -c 'cat *'",
        "GLOBIGNORE=x; cat *",
        "grep -d recurse . *",
        "grep -d rec x .",
        "grep -drecurse x .",
        "grep --directories=recurse . .",
        "grep --dir recurse . .",
    ];
    check_each(Mode::Default, rules, &unclear, "ask");
    let others = [
        "python3 -c 'print(open(\"src/k\").read())'",
        "python3 -c 'print(1/2)'",
        "trap 'cd /; ls' EXIT; cat k",
        "trap 'echo x' INT; cat k",
        "make -pf other/k",
        "grep -d skip x *",
    ];
    check_each(Mode::Default, rules, &others, "allow");
}

// REQ: PRM-4, PRM-8
#[test]
fn protected_file_is_not_written_by_way_of_another_program() {
    let asked = [
        "bash -c 'echo x > \"$1\"' _ .git/config",
        "sh -c 'cp a $0' .git/config",
        "HISTFILE=.git/config; history -s x; history -w",
        "history -w .git/config",
        "compgen -W '$(echo x > .git/config)'",
        "rm -rf .[a-z]*",
        "rm -rf .[!.]*",
        "cp x .[g]it/config",
    ];
    check_each(Mode::Default, &["allow user Bash"], &asked, "ask");
    check_each(Mode::BypassPermissions, &[], &asked, "ask");
    let unclear =
        ["trap 'cd .git' DEBUG; echo x > config", "printf -v 'a[$(echo > .git/config)]' x"];
    check_each(Mode::Default, &["allow user Bash"], &unclear, "ask");
}

// REQ: PRM-4
#[test]
fn workspace_is_not_emptied_by_way_of_a_list_or_a_move() {
    let asked = [
        "find . | xargs rm -rf",
        "find . -type f -print0 | xargs -0 rm",
        "ls -A | xargs rm -rf",
        "ls | xargs rm -rf",
        "git ls-files | xargs rm",
        "rsync -a --delete empty/ .",
        "mv /w /tmp",
        "mv ../w ../v",
    ];
    check_each(Mode::Default, &["allow user Bash"], &asked, "ask");
    check_each(Mode::BypassPermissions, &[], &asked, "ask");
    let others = [
        "find . -name '*.tmp' | xargs rm",
        "find . | grep tmp | xargs rm",
        "ls build | xargs echo",
        "find . | xargs ls",
        "rsync -a --delete a/ b/",
        "mv a b",
    ];
    check_each(Mode::Default, &["allow user Bash"], &others, "allow");
}
