//! Programs and options that a text hides from who reads it: signs that touch a word, words put together by
//! expansions and patterns.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

// REQ: PRM-8
#[test]
fn a_sign_that_closes_a_descriptor_hides_no_program() {
    let commands = [
        "<&-touch echo pwned",
        ">&-touch echo pwned",
        "<& -touch echo pwned",
        "3<&-touch echo pwned",
        "<&\\\n-touch echo pwned",
        "echo $(<&-touch echo pwned)",
        "if <&-touch echo pwned; then :; fi",
        "LANG=C <&-touch echo pwned",
        "<&-rm -rf src",
        "<&-rm ls -rf /",
        "<&-#c\ntouch echo pwned",
    ];
    check_each(Mode::Default, &["allow user Bash(echo *)"], &commands, "ask");
    let denied = ["deny user Bash(touch *)", "deny user Bash(rm *)"];
    check_each(Mode::BypassPermissions, &denied, &commands, "deny");
    check_each(Mode::Default, &[], &["<&1-x touch y", "<&1-touch y"], "ask");
    let closed = ["cat x <&-", "cat x 3>&- 2>&1", "<&- cat x", "exec_me=1; cat x 3<&1-"];
    check_each(Mode::Default, &["allow user Bash"], &closed, "allow");
    check_each(Mode::Default, &[], &closed[..3], "allow");
}

// REQ: PRM-8
#[test]
fn a_here_document_in_what_is_no_sum_is_not_read() {
    let commands = [
        "((cat <<'E'\ntouch pwned\nE\n) )",
        "((cat <<'E'\ntouch pwned\nE\n); echo x)",
        "((cat <<E\ntouch pwned\nE\n) )",
        "cat <<'E'; ((echo hi\ntouch pwned\n) )\ntouch it\nE",
        "(\\\n(cat <<'E'\ntouch pwned\nE\n) )",
        "echo $( ((cat <<'E'\ntouch pwned\nE\n) ) )",
        "f() ((cat <<'E'\ntouch pwned\nE\n) ); f",
    ];
    check_each(Mode::Default, &["allow user Bash"], &commands, "ask");
    check_each(Mode::BypassPermissions, &["deny user Bash(x)"], &commands, "ask");
    let plain =
        ["( (cat <<'E'\ntext\nE\n) )", "((1 + 2)) && cat <<'E'\ntext\nE", "((echo a); echo b)"];
    check_each(Mode::Default, &[], &plain, "allow");
}

// REQ: PRM-8
#[test]
fn an_option_that_is_put_together_names_a_variable_all_the_same() {
    let commands = [
        "[ -${x}v 'a[$(touch pwned)]' ]",
        "[ \"-${x}v\" 'a[$(touch pwned)]' ]",
        "test -v$x 'a[$(touch pwned)]'",
        "test -$x 'a[$(touch pwned)]'",
        "test \"${x}-v\" 'a[$(touch pwned)]'",
        "[ a -a \"${x:--v}\" 'a[$(touch pwned)]' ]",
        "[ a -o \"-${x}v\" 'a[$(touch pwned)]' ]",
        "for x in -; do [ ${x}v 'a[$(touch pwned)]' ]; done",
        "for x in -; do for y in v; do [ $x$y 'a[$(touch pwned)]' ]; done; done",
        "for x in -; do for y in v; do printf \"$x$y\" 'a[$(touch pwned)]' hi; done; done",
        "printf \"-${x}v\" 'a[$(touch pwned)]' hi",
        "printf -v\"$x\" hi",
        "printf \"${x}-v\" 'a[$(touch pwned)]' hi",
        "sleep 0 & wait -${x}p 'a[$(touch pwned)]' -n",
        "sleep 0 & wait -n$x 'a[$(touch pwned)]'",
        "read -${x}a 'a[$(touch pwned)]' <<< 1",
        "read \"$x\"'[$(touch pwned)]' <<< 1",
        "unset \"$x\"'[$(touch pwned)]'",
    ];
    let setups = [&[][..], &["allow user Bash"][..]];
    setups.iter().for_each(|it| check_each(Mode::Default, it, &commands, "ask"));
    let plain = [
        "[ \"-$x\" = -q ]",
        "[ -n \"$a$b\" ]",
        "[ \"x$a\" = x ]",
        "[ a -a \"$b\" ]",
        "printf \"--- $x\\n\"",
        "printf \"${GREEN}$x${NC}\\n\"",
        "printf \"- $x\\n\"",
        "wait \"$pid\"",
    ];
    check_each(Mode::Default, &[], &plain, "allow");
}

// REQ: PRM-8
#[test]
fn an_option_that_is_put_together_escapes_all_the_same() {
    let programs =
        ["find", "rg", "git", "sort", "tar", "split", "rsync", "tree", "xxd", "uniq", "sed"];
    let rules: Vec<String> = programs.iter().map(|it| format!("allow user Bash({it} *)")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let commands = [
        "find . -d*",
        "find . -del${x}ete",
        "find . \"-e\"$x id",
        "rg --pre* x",
        "rg --pr${y}e=id x",
        "rg $x id",
        "git log --outpu*",
        "git log --out${x}put=f",
        "git grep -$x id",
        "git fetch --upl*",
        "sort -* f",
        "sort -n$x f",
        "sort --out* f",
        "tar --to${y}-command=id -xf a.tar",
        "tar x$y a.tar",
        "split --fil${x}ter=id f",
        "rsync $x id a: b",
        "rsync -a$x id a: b",
        "tree -Lo 1 src/main.rs",
        "tree -PR x",
        "xxd -$x a",
        "uniq $x",
        "sed -${x}i s/a/b/ f",
        "sed -i* s/a/b/ f",
    ];
    check_each(Mode::Default, &rules, &commands, "ask");
    check_each(Mode::Default, &[], &commands, "ask");
    let plain = [
        "ls *.rs",
        "grep -rn x src/*.rs",
        "find . -name '*.rs'",
        "find . -maxdepth 2 -type f",
        "tree -L 2 -I target",
        "sort -k2 -t, f",
        "git log --oneline -n 5",
    ];
    check_each(Mode::Default, &[], &plain, "allow");
    let ruled = [
        "git log --author=\"$x\"",
        "git log -n$n",
        "git commit -m\"$msg\"",
        "git add \"$f\"",
        "git checkout $branch",
        "sort -k$n f",
        "tar -czf$x src",
        "rsync -av src/* out",
    ];
    check_each(Mode::Default, &rules, &ruled, "allow");
}

// REQ: PRM-8
#[test]
fn date_reads_only_files_that_are_known() {
    let commands = [
        "date --file=\"$HOME/.ssh/id_rsa\"",
        "date -f$HOME/.netrc",
        "date -f $HOME/.netrc",
        "date -uf \"$x\"",
        "date --fi=$x",
        "date -r\"$x\"",
        "date -d $x",
    ];
    check_each(Mode::Default, &[], &commands, "ask");
    let plain = ["date +%s", "date \"+$fmt\"", "date --date=\"$x\"", "date -d\"$x\""];
    check_each(Mode::Default, &[], &plain, "allow");
}
