//! Commands of ordinary work and of attackers, each with what the rules of the cases say about it.
//!
//! A row has the decision without rules, under [`RULES`], and without rules in the mode `acceptEdits` (`a`llow, as`k`, `d`eny),
//! the class (`r`ead-only, `w`orkspace-write, `x`: dangerous) and the command, in which `⏎` represents a line feed and
//! `␍` a carriage return. Built under `#[cfg(test)]` only.

use super::{class_tables::class, *};

/// Rules of somebody who works on a project.
const RULES: [&str; 11] = [
    "allow project Bash(npm *)",
    "allow project Bash(cargo *)",
    "allow project Bash(git *)",
    "allow project Bash(make *)",
    "allow project Bash(pytest *)",
    "allow project Bash(find *)",
    "allow project Bash(sed *)",
    "allow project Bash(tar *)",
    "allow project Bash(docker compose *)",
    "deny project Bash(curl *)",
    "deny project Bash(git push *)",
];

fn misses(rows: &str) -> Vec<String> {
    let without = setup(Mode::Default, Handler::Approver, &[]);
    let ruled = setup(Mode::Default, Handler::Approver, &RULES);
    let edits = setup(Mode::AcceptEdits, Handler::Approver, &[]);
    let rows = rows.lines().filter(|it| !it.starts_with('#'));
    let missed = rows.filter_map(|row| {
        let (expected, command) = row.split_once(" | ").expect("a row has a command");
        let command = command.replace('⏎', "\n").replace('␍', "\r");
        let decided = [&without, &ruled, &edits].map(|setup| {
            match outcome(&bash(), setup, &run(&command)).split(' ').next() {
                Some("allow") => "a",
                Some("deny") => "d",
                _ => "k",
            }
        });
        let class = match class(&command) {
            "read-only" => "r",
            "workspace-write" => "w",
            _ => "x",
        };
        let found = format!("{} {class}", decided.join(" "));
        (found != expected).then(|| format!("{row}\n     {found}"))
    });
    missed.collect()
}

// REQ: PRM-1, TOL-9
#[test]
fn commands_of_ordinary_work_are_decided_as_the_rules_of_the_cases_say() {
    assert_eq!(misses(include_str!("invented/ordinary.txt")), Vec::<String>::new());
}

// REQ: PRM-1, PRM-8, TOL-9
#[test]
fn commands_of_attackers_are_decided_as_the_rules_of_the_cases_say() {
    assert_eq!(misses(include_str!("invented/hostile.txt")), Vec::<String>::new());
}
