//! Reads just enough of a command to know what its exit code means.

use ennead_runtime::step7_permission_gate::shell::outline;

/// Whether exit code 1 of this command is an answer and not a failure.
pub(super) fn one_is_valid(command: &str) -> bool {
    let Some(all) = outline(command) else { return false };
    let Some(last) = all.last() else { return false };
    let mut words = last.words.iter().map(String::as_str);
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    match program {
        "grep" | "rg" | "egrep" | "fgrep" | "find" | "diff" | "test" | "[" => true,
        "git" => matches!(words.next(), Some("diff" | "grep")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_says_what_exit_code_one_means() {
        let cases = [
            ("grep nope f", true),
            ("/usr/bin/grep -r 'a b' .", true),
            ("cat f | grep nope", true),
            ("cd sub && LC_ALL=C rg x", true),
            ("[ -f x ]", true),
            ("git diff --exit-code", true),
            ("grep a f > b", true),
            ("git status", false),
            ("pgrep nope", false),
            ("grep a f; false", false),
            ("grep a f &", false),
            ("if grep a f; then b; fi", false),
            ("echo 'grep'", false),
            ("echo \"; grep\"", false),
            ("grep 'open", false),
            ("", false),
        ];
        for (command, valid) in cases {
            assert_eq!(one_is_valid(command), valid, "{command}");
        }
    }
}
