//! Reads just enough of a command to know what its exit code means, and whether it is worth waiting for.

use ennead_runtime::step7_permission_gate::shell::outline;

/// Returns whether exit code 1 of this command is an answer and not a failure.
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

/// Returns whether a command that has reached its time limit may go on. One that only sleeps does nothing, one of git
/// holds locks that others wait for, and what one does that cannot be read is not known.
pub(super) fn is_worth_waiting_for(command: &str) -> bool {
    let Some(all) = outline(command) else { return false };
    let program = |words: &[String]| {
        let program = words.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program).to_owned()
    };
    let sleeps = all.first().is_some_and(|it| program(&it.words) == "sleep");
    let words = command.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    !sleeps && words.into_iter().all(|it| it != "git")
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-8
    #[test]
    fn sleep_git_and_what_cannot_be_read_do_not_go_on_at_their_time_limit() {
        let cases = [
            ("make slow", true),
            ("cargo test && sleep 5", true),
            ("ls .github; digit", true),
            ("sleep 5", false),
            ("/bin/sleep 5; make", false),
            ("cd sub && git fetch", false),
            ("(git gc)", false),
            ("echo 'open", false),
        ];
        for (command, goes_on) in cases {
            assert_eq!(is_worth_waiting_for(command), goes_on, "{command}");
        }
    }

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
