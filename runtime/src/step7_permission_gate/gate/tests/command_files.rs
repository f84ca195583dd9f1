//! Files that programs open by operands and options which are easily overlooked.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

const DENIED: &[&str] =
    &["deny project Read(.env)", "deny project Read(secrets/**)", "allow project Bash"];

#[track_caller]
pub(super) fn check_all(texts: &[&str], commands: &[&str], expected: &str) {
    check_each(Mode::Default, texts, commands, expected);
}

/// Checks what becomes of each command under these rules.
#[track_caller]
pub(super) fn check_each(mode: Mode, texts: &[&str], commands: &[&str], expected: &str) {
    let setup = setup(mode, Handler::Approver, texts);
    let found = commands.iter().map(|it| (it, outcome(&bash(), &setup, &run(it))));
    let misses: Vec<_> = found.filter(|(_, it)| !it.starts_with(expected)).collect();
    assert!(misses.is_empty(), "not {expected}: {misses:#?}");
}

// REQ: PRM-8
#[test]
fn read_deny_rules_hold_for_what_git_and_date_print() {
    let prints = [
        "git diff --no-index /dev/null .env",
        "git grep --no-index '' .env",
        "git grep -e '' -- .env",
        "git blame --contents ./.env src/a.txt",
        "git blame --contents=.env src/a.txt",
        "git show HEAD:secrets/prod.key",
        "git show :secrets/prod.key",
        "git show :0:secrets/prod.key",
        "git cat-file -p HEAD:secrets/prod.key",
        "git blame secrets/prod.key",
        "git log -p -- secrets/prod.key",
        "git log -p -- secrets",
        "git log -p -- ':(top)secrets/prod.key'",
        "git log -p -- ':/secrets/prod.key'",
        "git log -p -- '.en?'",
        "git log -L1,5:secrets/prod.key",
        "git -C secrets show HEAD:./prod.key",
        "git -C secrets grep x",
        "date -f .env",
        "date -f.env",
        "date -uf .env",
        "date --file=.env",
        "date --file .env",
        "date -r secrets/prod.key",
        "date --reference=secrets/prod.key",
    ];
    check_all(DENIED, &prints, "deny");
    let anchored = ["deny project Read(./keys/a)", "allow project Bash"];
    check_all(&anchored, &["cd src && git show HEAD:keys/a"], "deny");
    let harmless = [
        "git show HEAD:src/lib.rs",
        "git log --oneline -10 -- src",
        "git commit -m 'docs: say what a/.env is'",
        "git commit -am secrets/x",
        "git grep '.env' src",
        "git checkout -b feature",
        "git status",
        "date +%s",
        "date -d yesterday",
    ];
    check_all(DENIED, &harmless, "allow");
}

// REQ: PRM-4
#[test]
fn no_rule_lets_a_command_write_a_protected_path_by_an_option() {
    let allow = &["allow project Bash"];
    let writes = [
        "sort -o .git/config x",
        "sort -uo.git/config x",
        "sort --output=.git/config x",
        "find . -fprint .git/q",
        "find . -fprintf .git/q %p",
        "find .git -type f -delete",
        "find .git -type f -exec rm {} +",
        "tar cf .git/q.tar src",
        "tar -cf .git/q.tar src",
        "tar -c --file=.git/q.tar src",
        "tar cCf . .git/q.tar src",
        "tar xf a.tar -C .git",
        "tar xf a.tar --directory=.git",
        "tar xf a.tar .git/config",
        "split x .git/q",
        "uniq x .git/q",
        "gzip -k .git/q",
        "awk '{print > \".git/q6\"}' x",
        "sed -n 'w .git/q' x",
        "perl -i -pe 1 .git/config",
        "perl -pi.bak -e 1 .git/config",
        "git config core.hooksPath src",
        "git config set core.hooksPath src",
        "git config --unset core.hooksPath",
        "git config --global core.hooksPath src",
        "git diff --output=.git/config HEAD",
        "git archive -o .git/q HEAD",
        "env sort -o .git/config x",
    ];
    check_all(allow, &writes, "ask");
    let harmless = [
        "sort -o out x",
        "find . -name x -not -path './.git/*' -delete",
        "find .git -name x",
        "tar czf a.tgz --exclude=.git .",
        "tar cf a.tar .git",
        "tar tf .git/a.tar",
        "tar xf a.tar -C out",
        "tar czf a.tgz *",
        "gzip -k x",
        "awk '{print > \"out\"}' x",
        "git config --get core.hooksPath",
        "git config user.name",
        "git diff --output=out HEAD",
        "perl -ne 'print if /.git/' x",
        "rsync -a --exclude .git src/ out/",
    ];
    check_all(allow, &harmless, "allow");
}

// REQ: PRM-8
#[test]
fn directory_that_is_denied_is_not_read_as_a_whole() {
    let reads = [
        "grep -r x secrets",
        "grep -r x secrets/",
        "rg x secrets",
        "rg x s*",
        "diff -r src secrets",
        "git grep x secrets",
        "git diff --no-index src secrets",
        "tar cf a.tar secrets",
        "cp -r secrets out",
        "find secrets -type f -exec cat {} +",
        "cd secrets && grep -r x .",
        "cd secrets && grep -r x",
        "cd secrets && rg x",
        "cd secrets && git grep x",
        "cd secrets/a && grep -rn --include '*' x",
    ];
    check_all(DENIED, &reads, "deny");
    let harmless = [
        "grep -r x src",
        "grep -rn -A 3 --include '*.rs' x src",
        "grep -r --exclude=.env --exclude-dir=secrets x .",
        "rg x src tests",
        "rg -n -t rust -g '!*.md' x src",
        "cat *",
        "wc -l *.md",
        "ls -R .",
        "find . -name x",
        "du -a .",
        "git grep x",
        "git ls-files '*.rs' | xargs wc -l",
        "ls secrets",
        "find secrets -name x",
        "grep -r secrets src",
        "cd src && rg x",
        "diff -r --no-dereference src out",
    ];
    check_all(DENIED, &harmless, "allow");
}

// REQ: PRM-8
#[test]
fn directory_above_a_denied_one_is_not_read_as_a_whole_unasked() {
    let reads = [
        "grep -r x .",
        "grep -r x",
        "grep -r -m 9 x",
        "grep -r --max-count 9 x",
        "grep -r --no-such-option 9 x",
        "grep -re x",
        "grep -r --exclude=.env x .",
        "grep -r x *",
        "grep -r x ../w",
        "cd src && grep -r x ..",
        "rg x",
        "rg -e x",
        "rg x *",
        "rg --hidden -g '*' x",
        "rg --sortr 1 x",
        "find . -type f -exec cat {} +",
        "find -newer a -exec cat {} +",
        "find -newer a | xargs cat",
        "find . -newer a | xargs cat",
        "find . -name '*.rs' | xargs grep -n TODO",
        "ls -a | xargs cat",
        "rg -l x | xargs cat",
        "fd -H x | xargs cat",
        "git ls-files | xargs cat",
        "git ls-files -o -x '*.o' | xargs cat",
        "cp -r . /w/out",
        "cp -a * out",
        "tar cf a.tar .",
        "diff -r --no-dereference . out",
        "git grep --no-index x",
    ];
    check_all(DENIED, &reads, "ask");
    for mode in [Mode::AcceptEdits, Mode::BypassPermissions] {
        check_each(mode, DENIED, &reads, "ask");
    }
    check_all(&["allow project Bash", "deny project Edit(.env)"], &reads[..20], "allow");
    let beside = ["allow project Bash", "deny project Read(//**/*.pem)"];
    check_all(&beside, &["grep -r x src", "rg x src"], "allow");
    check_all(&beside, &["grep -r x .", "rg x"], "ask");
}

// REQ: PRM-8
#[test]
fn file_whose_name_is_not_known_is_asked_about_where_reads_are_denied() {
    let nameless = [
        "cat $d/prod.key",
        "cat \"$d\"",
        "cat $(echo .env)",
        "sort < $d",
        "d=secrets; cat $d/prod.key",
        "git show HEAD:$d/prod.key",
        "date -f $d",
        "cp $d out",
        "echo HEAD:secrets/prod.key | git cat-file --batch",
    ];
    check_all(DENIED, &nameless, "ask");
    check_all(&["allow project Bash"], &nameless, "allow");
    check_all(&["deny project Edit(.env)", "allow project Bash"], &nameless, "allow");
    let known = ["echo $d", "git commit -m \"$message\"", "cat $PWD/src/a", "make $target"];
    check_all(DENIED, &known, "allow");
}
