//! What is read out of a shell command.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

fn command(raw: &str) -> ShellCommand {
    ShellCommand::read(raw, "/w", "/h")
}

#[track_caller]
fn check_allowed(pattern: &str, raw: &str, expected: bool) {
    assert_eq!(command(raw).allowed_by(pattern), expected, "{pattern} on {raw}");
}

#[track_caller]
fn check_named(pattern: &str, raw: &str, expected: bool) {
    assert_eq!(command(raw).named_by(pattern), expected, "{pattern} on {raw}");
}

// T2.1 to T2.5, T2.7  REQ: PRM-8
#[test]
fn allow_covers_plain_commands_only() {
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
    for raw in ["echo $(rm -rf build)", "echo `x`", "echo > x", "echo \"a\"", "echo a\nb", "echo *"]
    {
        check_allowed("echo *", raw, false);
        check_allowed("*", raw, false);
    }
    check_allowed("*", "", false);
}

// T2.3, D1, D5  REQ: PRM-8
#[test]
fn deny_finds_every_piece_that_may_run() {
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
    ] {
        check_named("rm *", raw, true);
    }
    check_named("rm *", "echo rm x", false);
    check_named("git push *", "git -C /x --no-pager push origin", true);
}

// T2.12
#[test]
fn files_of_known_programs_are_found() {
    let found =
        |raw: &str, written| command(raw).files(written).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(found("cat sub/.env", false), ["/w/sub/.env"]);
    assert_eq!(found("x < a > ~/b", false), ["/w/a", "/h/b"]);
    assert_eq!(found("x < a > ~/b", true), ["/h/b"]);
    assert_eq!(found("python -c open('.env')", false), Vec::<String>::new());
}

#[test]
fn endless_wrapper_is_not_plain() {
    let long = format!("sudo {} rm x", "a ".repeat(20_000));
    check_allowed("*", &long, false);
    assert!(command(&long).is_unclear());
}
