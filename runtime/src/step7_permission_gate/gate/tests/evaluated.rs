//! Words that the shell itself evaluates: names of variables in builtins, and what arithmetic makes of values.
//!
//! Built under `#[cfg(test)]` only.

use super::{command_files::check_each, *};

/// Commands of builtins alone that run `rm x`: a subscript is arithmetic, and arithmetic expands.
const RUN_ANOTHER: [&str; 52] = [
    "[ $(echo -v) 'a[$(rm x)]' ]",
    "test $(echo -v) 'a[$(rm x)]'",
    "test -? 'a[$(rm x)]'",
    "test [-]v 'a[$(rm x)]'",
    "test * 'a[$(rm x)]'",
    "test -v 'a[$(rm x)]'",
    "test -f x -a -v 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "[ -R 'a[$(rm x)]' ]",
    "[[ -v 'a[$(rm x)]' ]]",
    "for x in -v; do [ $x 'a[$(rm x)]' ]; done",
    "for x in 'a[$(rm x)]'; do [ -v \"$x\" ]; done",
    "set -- 'a[$(rm x)]'; [ -v $1 ]",
    "set -- 'a[$(rm x)]'; echo $(($1))",
    "f() { echo $(($1)); }; f 'a[$(rm x)]'",
    "printf -v 'a[$(rm x)]' 1",
    "printf '-va[$(rm x)]' 1",
    "printf $(echo -v) 'a[$(rm x)]' x",
    "for x in -v; do printf $x 'a[$(rm x)]' 1; done",
    "wait -p 'a[$(rm x)]' -n",
    "sleep 0 & wait -fp 'a[$(rm x)]' -n",
    "sleep 0 & wait -fn $(echo -p) 'a[$(rm x)]'",
    "read 'a[$(rm x)]' <<< 1",
    "read -a 'a[$(rm x)]' <<< 1",
    "read -ra'a[$(rm x)]' <<< 1",
    "mapfile 'a[$(rm x)]' <<< 1",
    "readarray -O 'a[$(rm x)]' y <<< 1",
    "unset 'a[$(rm x)]'",
    "getopts a 'b[$(rm x)]' -a",
    "let 'a[$(rm x)]=1'",
    "let y='x[$(rm x)]'",
    "declare -a 'a=($(rm x))'",
    "declare 'a[$(rm x)]=1'",
    "declare -i 'y=a[$(rm x)]'",
    "declare -n r='a[$(rm x)]'; echo $r",
    "export -a 'q=($(rm x))'",
    "local -a 'a=($(rm x))'",
    "x='a[$(rm x)]'; echo $((x))",
    "x='a[$(rm x)]'; y=x; echo $((y + 1))",
    "x='a[$(rm x)]'; [[ x -eq 1 ]]",
    "x='a[$(rm x)]'; echo ${HOME:x}",
    "printf -v x %s 'a[$(rm x)]'; echo $((x))",
    "for x in 'a[$(rm x)]'; do echo $((x)); done",
    "echo 'a[$(rm x)]'; echo $((_))",
    "echo 'a[$(rm x)]'; [[ _ -eq 1 ]]",
    ": 'a[$(rm x)]'; echo ${a[_]}",
    ": 'a[$(rm x)]'; ((_))",
    "true 'a[$(rm x)]'; echo ${HOME:_}",
    "cat 'a[$(rm x)]'; seq $((_))",
    "read <<< 'a[$(rm x)]'; echo $((REPLY))",
    "mapfile <<< 'a[$(rm x)]'; echo $((MAPFILE))",
    "[[ 'a[$(rm x)]' =~ .* ]]; echo $((BASH_REMATCH))",
];

// REQ: PRM-8
#[test]
fn what_is_evaluated_as_arithmetic_is_a_name_or_a_number() {
    check_each(Mode::Default, &[], &RUN_ANOTHER, "ask");
    let later = [
        "x=-v; [ $x 'a[$(rm x)]' ]",
        "x='-v a[1]'; test $x",
        "for x in -p; do wait $x 'a[$(rm x)]' -n; done",
        "declare -i x; x='a[$(rm x)]'",
        "declare -i x; read x <<< 'a[$(rm x)]'",
        "env x='a[$(rm x)]' bash -c 'echo $((x))'",
    ];
    check_each(Mode::Default, &["allow user Bash"], &later, "ask");
    check_each(Mode::Plan, &[], &RUN_ANOTHER, "ask");
    check_each(Mode::Default, &["deny user Bash(rm *)", "allow user Bash"], &RUN_ANOTHER, "ask");
}

// REQ: PRM-8
#[test]
fn tests_and_sums_of_every_day_need_no_rule() {
    let commands = [
        "[ -f \"$f\" ] && cat x",
        "[ -n \"$1\" ]",
        "[ $# -gt 0 ]",
        "[ $? -eq 0 ] && echo ok",
        "[ \"$(ls | wc -l)\" -gt 3 ]",
        "[ $(ls | wc -l) -gt 3 ]",
        "test -d src -a -f x",
        "test ! -e x || cat x",
        "[[ -z $x && $y == a* ]]",
        "for i in 1 2 3; do echo $((i * 2)); done",
        "for ((i = 0; i < 3; i++)); do echo $i; done",
        "printf '%s\\n' \"$x\"",
        "printf \"%d files\\n\" $(ls | wc -l)",
        "read -r line < x; echo \"$line\"",
        "wait",
        "sleep 1 & wait $!",
        "echo $((16#ff)) $((1 << 4))",
        "echo ${x:0:3} ${x#a} ${#x}",
    ];
    check_each(Mode::Default, &[], &commands, "allow");
    let ruled = [
        "while IFS= read -r line; do echo \"$line\"; done < x",
        "n=$(ls | wc -l); echo $((n + 1))",
        "a=5; b=a; echo $((b))",
        "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i + 1)); done",
        "export $(grep -v '^#' .env | xargs)",
        "declare -A m; m[a]=1; echo ${m[a]}",
        "local x=$1",
        "x=$(date +%s); echo $((x - 5))",
        "let i=i+1",
        "unset x y",
        "mapfile -t lines < x; echo ${lines[0]}",
    ];
    check_each(Mode::Default, &["allow user Bash"], &ruled, "allow");
}
