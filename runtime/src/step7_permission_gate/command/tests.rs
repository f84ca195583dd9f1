//! What is read out of a shell command.

use super::*;

mod tables;

pub(crate) fn surroundings(cwd: &str) -> CommandContext {
    CommandContext {
        links: Follower::default(),
        cwd: cwd.into(),
        home: "/h".into(),
        workspace: vec!["/w".to_owned()].into(),
    }
}

fn command(raw: &str) -> ShellCommand {
    ShellCommand::read(raw, surroundings("/w"))
}

/// What the shell itself runs.
fn visible(command: &ShellCommand) -> impl Iterator<Item = &CommandPart> {
    command.parts().iter().filter(|it| !it.is_hidden)
}

/// Whether a rule covers every part of a command.
fn is_allowed(pattern: &str, raw: &str) -> bool {
    let command = command(raw);
    let pattern = CommandPattern::read(pattern);
    command.fault().is_none()
        && visible(&command).all(|it| Ruled::of(it, command.around()).is_covered_by(&pattern))
}

#[track_caller]
fn check_allowed(pattern: &str, raw: &str, expected: bool) {
    assert_eq!(is_allowed(pattern, raw), expected, "{pattern} on {raw}");
}

#[track_caller]
fn check_named(pattern: &str, raw: &str, expected: bool) {
    let command = command(raw);
    let found = CommandPattern::read(pattern).is_about(&command);
    assert_eq!(found, expected, "{pattern} on {raw}: {:#?}", command.parts());
}

// REQ: PRM-8
#[test]
fn allow_rules_cover_parts_by_their_words() {
    check_allowed("ls *", "ls", true);
    check_allowed("ls *", "ls -la", true);
    check_allowed("ls *", "lsof", false);
    check_allowed("ls*", "lsof", true);
    check_allowed("npm run test:*", "npm run test --watch", true);
    check_allowed("npm run test:*", "npm run test:unit", false);
    check_allowed("git:* push", "git origin push", false);
    check_allowed("git commit *", "git  commit   now", true);
    check_allowed("git *", "git status && rm -rf x", false);
    check_allowed("git *", "git -c core.pager=x log", false);
    check_allowed("npm test *", "NODE_ENV=test npm test", true);
    check_allowed("npm test *", "LD_PRELOAD=x npm test", false);
    check_allowed("npm test *", "sudo npm test", false);
    check_allowed("sudo *", "sudo npm test", false);
    check_allowed("sudo npm test", "sudo npm test", true);
    check_allowed("find *", "find . -delete", false);
    check_allowed("echo *", "echo 'a b' \"c\" > x", true);
    check_allowed("echo *", "echo $(rm -rf build)", false);
    check_allowed("grep *", "xargs grep foo", true);
    check_allowed("grep *", "xargs -n1 grep foo", false);
}

// REQ: PRM-8
#[test]
fn options_that_run_others_or_write_are_not_covered_by_a_star() {
    for (program, raw) in [
        ("tar", "tar cIf ./p out src"),
        ("tar", "tar -cI ./p -f out src"),
        ("tar", "tar cf out --use-compress=./p src"),
        ("tar", "tar cf out * src"),
        ("git", "git difftool --extcmd=./p"),
        ("git", "git difftool -x ./p"),
        ("git", "git --attr-source HEAD push"),
        ("git", "git log --output=x"),
        ("git", "git clone 'ext::sh -c id'"),
        ("git", "git config alias.x '!id'"),
        ("git", "git rebase -x id"),
        ("git", "git bisect run id"),
        ("/usr/bin/env", "/usr/bin/env rm x"),
        ("/bin/sh", "/bin/sh -c 'rm x'"),
        ("sh", "sh -c 'rm x'"),
        ("bash", "bash -s"),
        ("sed", "sed 's/a/b/w x' f"),
        ("sed", "sed -n '1!{e id\n}' f"),
        ("sed", "sed -f x f"),
        ("awk", "awk '{print | \"sh\"}' f"),
        ("awk", "awk '{print $1 > \"x\"}' f"),
        ("awk", "awk '{\"id\" | getline x}' f"),
        ("sort", "sort --outp=x f"),
        ("sort", "sort -uo x f"),
        ("sort", "sort *.txt"),
        ("find", "find . -fprintf x %p"),
        ("find", "find $X -name y"),
        ("uniq", "uniq a b"),
        ("rg", "rg --pre ./p x"),
        ("rsync", "rsync -ae ./p a b"),
        ("man", "man -P ./p ls"),
        ("split", "split --filter=./p f"),
        ("file", "file -m x f"),
        ("date", "date --set=now"),
        ("date", "date 0101"),
        ("tree", "tree -o x"),
        ("xxd", "xxd -r a b"),
        ("printf", "printf -v x y"),
        ("test", "test -v x"),
        ("read", "read 'x[$(id)]'"),
        ("source", "source x"),
        ("alias", "alias x=y"),
        ("eval", "eval x"),
        ("trap", "trap x EXIT"),
        ("xargs", "xargs -I{} sh -c {}"),
        ("xargs", "xargs sort"),
    ] {
        check_allowed(&format!("{program} *"), raw, false);
    }
    for raw in [
        "sed -n '10,20p;30q' f",
        "sed -e 's/a/b/g' -e '/x/d' f",
        "sed 's|a|b|' f",
        "awk -F'|' '$3 > 100 || /a|b/ { print $1, \"x > y\" }' f",
        "tar tzf f.tgz",
        "git log --oneline -5",
        "git commit -m 'a; b' -c HEAD",
        "git push -u origin main",
        "sort -k2,2 -t, f",
        "bash scripts/run.sh a",
        "date +%s",
        "find . -name '*.rs'",
    ] {
        let name = raw.split(' ').next().unwrap();
        check_allowed(&format!("{name} *"), raw, true);
    }
}

// REQ: PRM-8
#[test]
fn deny_finds_every_part_that_may_run() {
    for raw in [
        "rm x",
        "git status && FOO=1 rm -rf x",
        "cd x && ls | rm y",
        "echo $(rm -rf build)",
        "sudo -u root /bin/rm  x",
        "sh -c 'rm x'",
        "r\"m\" x",
        "if true; then rm x; fi",
        "find . -exec rm {} +",
        "[[ a =~ $(rm x) ]]",
        ">/dev/null rm -rf x",
        "2>&1 rm x",
        "A='x y' rm x",
        "for i do rm x; done",
        "env '-Srm x'",
        "env -S 'rm x'",
        "env --split-string='rm x' y",
        "git -c alias.x='!rm x' x",
        "git bisect run rm x",
        "xargs -a f rm x",
        "timeout --odd 5 rm x",
        "/usr/bin/timeout 5 rm x",
        "bash <<X\nrm x\nX",
        "bash <<<'rm x'",
        "a[1 + 2]=x rm y",
        "trap 'rm x' EXIT",
        "mapfile -C 'rm x' -c 1 y",
        "eval 'eval \"rm x\"'",
        "su -c 'rm x'",
        "watch 'rm x'",
        "coproc rm x",
        "coproc ! rm x",
        "f() { rm x; }",
        "time -p rm x",
        "! rm x",
        "x=(a $(rm y))",
        "cat <<X\n$(rm y)\nX",
        "echo ${x:=$(rm y)}",
        "echo \"${x#\"`rm y`\"}\"",
        "a <(rm y)",
        "case x in $(rm y)) ;; esac",
        "rm \"x",
        "a | | rm x",
    ] {
        check_named("rm *", raw, true);
    }
    for raw in [
        "echo rm x",
        "echo 'rm x'",
        "echo a # rm x",
        "cat <<'X'\n$(rm x)\nX",
        "docker rm x",
        "grep 'rm *' f",
    ] {
        check_named("rm *", raw, false);
    }
    check_named("git push *", "git -C /x --no-pager push origin", true);
    check_named("git push *", "git --attr-source HEAD push", true);
    check_named("git * all", "git checkout main; make all", false);
}
#[test]
fn files_of_known_programs_are_found() {
    let reads = |raw: &str| command(raw).read_from().map(str::to_owned).collect::<Vec<_>>();
    let writes = |raw: &str| {
        let command = command(raw);
        command.altered().chain(command.removed()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(reads("cat sub/.env"), ["/w/sub/.env"]);
    assert_eq!(reads("grep KEY .env"), ["/w/.env"]);
    assert_eq!(reads("grep -e KEY .env"), ["/w/KEY", "/w/.env"]);
    assert_eq!(reads("x < a > ~/b"), ["/w/a"]);
    assert_eq!(writes("x < a > ~/b"), ["/h/b"]);
    assert_eq!(writes("echo x >| .git/config"), ["/w/.git/config"]);
    assert_eq!(writes("echo x >& .git/config"), ["/w/.git/config"]);
    assert_eq!(writes("echo x &>> a 2>&1"), ["/w/a"]);
    assert_eq!(writes("cp --target-directory=.git x"), ["/w/.git/x", "/w/.git"]);
    assert!(writes("cp -t .git x").contains(&"/w/.git/x".to_owned()));
    assert_eq!(writes("cp a/.npmrc ."), ["/w/.npmrc", "/w"]);
    assert_eq!(writes("rm -r a"), ["/w/a"]);
    assert_eq!(writes("sed -n p a"), Vec::<String>::new());
    assert_eq!(writes("sed -i s/a/b/ a"), ["/w/a"]);
    assert_eq!(reads("cd secrets && cat k"), ["/w/secrets/k"]);
    assert_eq!(reads("(cd secrets); cat k"), ["/w/k"]);
    assert_eq!(reads("cd secrets; cat k"), ["/w/k", "/w/secrets/k"]);
    assert_eq!(reads("f() { cat k; }; cd secrets && f").last().unwrap(), "/w/secrets/k");
    assert_eq!(reads("python -c open('.env')"), Vec::<String>::new());
}

// REQ: PRM-8
#[test]
fn what_a_command_reads_for_itself_needs_no_rule() {
    let reads = |raw: &str| {
        let command = command(raw);
        command.fault().is_none() && visible(&command).all(|it| reads_only(it, command.around()))
    };
    for raw in [
        "ls | head -2",
        "cat x /dev/null < y",
        "cd sub && ls",
        "cut -d/ -f2 x",
        "git branch --list 'a*'",
        "git log --oneline -5 -- src",
        "find . -name '*.rs' | wc -l",
        "while read -r line; do echo \"$line\"; done < x",
        "for i in 1 2; do echo $((i + 1)); done",
    ] {
        assert!(reads(raw), "{raw}");
    }
    for raw in [
        "x=1",
        "cat /etc/passwd",
        "cat ../x",
        "cat a/../../x",
        "cat .*",
        "cat $X",
        "cat ~/x",
        "grep -f/etc/passwd x",
        "grep --file=/etc/passwd x",
        "ls -I x --hide=/y ~root",
        "cd .. && ls",
        "cd sub && git status",
        "cd $X && ls",
        "echo a | xargs cat",
        "git branch x",
        "git config user.name x",
        "git -C sub status",
        "git remote add a b",
        "/bin/ls",
        "env",
        "read -r n; echo $((n))",
        "for n in 'a[$(id)]'; do echo $((n)); done",
        "for PATH in .; do ls; done",
        "read PATH; ls",
        "((PATH=1)); ls",
        "find . -files0-from x",
        "wc --files0-from=x",
        "hostname x",
        "cat {/etc/passwd,x}",
        ":(){ :|:& };:",
        "ls() { cat \"$@\"; }; ls a",
        "for i in 1 2; do ls a; ls() { pwd; }; done",
        "git tag -l --del v1",
        "git log --help",
    ] {
        assert!(!reads(raw), "{raw}");
    }
}

// REQ: PRM-8
#[test]
fn work_is_in_proportion_to_the_bytes() {
    for raw in [
        "cd a;".repeat(6_000),
        "sudo ".repeat(6_000),
        "f() { f; f; }; f; ".repeat(1_000),
        (0..200).map(|i| format!("f{}() {{ f{i}; f{i}; }}; ", i + 1)).collect::<String>() + "f200",
        "eval ".repeat(6_000),
        "{a,b}".repeat(5_000),
        "for i in 1; do cd a; ".repeat(60),
        "for i in 1; do cd /a; ".repeat(50) + &"done; ".repeat(50),
    ] {
        let command = command(&raw);
        assert!(command.parts().len() <= 20_001, "{}", &raw[..20]);
    }
}
