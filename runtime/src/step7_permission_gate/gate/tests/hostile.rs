//! Commands that are made to cost: judged in linear work, and denied all the same.
//!
//! A step for every pair of their bytes, words or commands would take hours, and no test may.
//! Built under `#[cfg(test)]` only.

use super::*;

/// Bytes of a command that is read whole.
const BYTES: usize = 30 * 1024;

/// Repetitions that make more than is read.
const TOO_LONG: usize = 32 * 1024;

/// What is repeated to fill a command.
const REPEATED: [&str; 44] = [
    "$(",
    "\"$(",
    "`",
    "\\`",
    "'",
    "\"",
    "$'",
    "${",
    "${x:-",
    "${x[",
    "$((",
    "((",
    "<(",
    "(",
    "{ ",
    "{a,b}",
    "{a,",
    "{1..9}",
    "a{b,c}d ",
    "cat <<X\n",
    "cat <<'X'\nX\n",
    "<<<a ",
    ";",
    ": ;",
    "a; ",
    "a | ",
    "a && ",
    "a\n",
    "! ",
    "if a; then ",
    "case a in a) ",
    "for i in a; do ",
    "f() { f; }; f; ",
    "x=1 ",
    "cd a; ",
    "cd a && cat b > c; ",
    "sudo ",
    "env a=b ",
    "timeout 1 ",
    "xargs ",
    "find . -exec ",
    "bash -c 'a' ; ",
    "git -c a=b ",
    "*/**/?[a-z]",
];

// REQ: PRM-2
#[test]
fn hostile_commands_are_judged_in_linear_work_and_what_is_denied_is_found() {
    let texts: Vec<String> = (0..6)
        .map(|n| match n % 3 {
            0 => format!("deny project Bash(rm{n} * -f *)"),
            1 => format!("ask user Read(**/secret{n}/**)"),
            _ => format!("allow user Bash(tool{n} *)"),
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let setup = setup(Mode::Default, Handler::Approver, &texts);
    let long = [";".repeat(100_000), ": ;".repeat(TOO_LONG), "$(".repeat(TOO_LONG)];
    let all = REPEATED.iter().map(|it| it.repeat(BYTES / it.len()));
    for command in all.chain(long) {
        // What is denied is found, whatever comes after it.
        let command = format!("rm0 a -f b; {command}");
        let found = outcome(&bash(), &setup, &run(&command));
        assert!(found.starts_with("deny"), "{}: {found}", &command[..40]);
    }
}

#[test]
fn programs_that_run_each_other_are_looked_into_so_deep_and_no_deeper() {
    let class = |command: &str| {
        let setup = setup(Mode::Default, Handler::Approver, &[]);
        match Gate::open(call(&bash(), &run(command)), &bash(), &setup).1 {
            GateStep::Judge(order) => order.judge(EYES).class,
            _ => None,
        }
    };
    let nested = |part: &str, n: usize| format!("{}ls", part.repeat(n));
    for part in ["env a=b ", "find . -exec ", "setsid ionice env "] {
        assert_eq!(class(&nested(part, 2)), Some(CommandClass::ReadOnly), "{part}");
        assert_eq!(class(&nested(part, 3_000)), Some(CommandClass::Dangerous), "{part}");
    }
}
