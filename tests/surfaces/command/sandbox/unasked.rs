//! Commands that must not do unasked what they are for, though confined commands run unasked: each goes through a
//! whole session, and is denied, or asked about, which nobody answers here, or runs in the sandbox.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::{Cell, at_each_level, text};

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttackFate {
    /// It is denied or asked about, so that it does not run at all.
    Refused,
    /// It runs, and the sandbox holds it.
    Confined,
}

use AttackFate::{Confined, Refused};

/// An attack: its name, how the model calls it, the command, what becomes of it, and more settings of the sandbox.
type Attack = (&'static str, &'static str, &'static str, AttackFate, &'static str);

/// Each prints `RAN` first where it can, and what it is for shows: `OUT/new`, the word of a key, a connection, a workspace
/// without its file.
const ATTACKS: &[Attack] = &[
    ("write outside", "run", "echo R''AN; touch OUT/new", Confined, "{}"),
    ("redirect outside", "run", "echo R''AN; echo x > OUT/new", Confined, "{}"),
    (
        "read a denied key",
        "run",
        "echo R''AN; f=$(echo HOMEDIR/.s*/id_test); cat $f",
        Confined,
        "{}",
    ),
    (
        "network that is off",
        "run",
        "echo R''AN; perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:PORT\") and print \"ESC\".\"APED\"'",
        Confined,
        "{}",
    ),
    ("command of git", "run", "echo R''AN; git -c alias.x='!touch OUT/new' x", Confined, "{}"),
    (
        "pager of git",
        "run",
        "echo R''AN; git -c core.pager='touch OUT/new' -c core.fsmonitor='touch OUT/new' --paginate status",
        Confined,
        "{}",
    ),
    ("assignment of PATH", "run", "echo R''AN; PATH=./bin:$PATH attack", Confined, "{}"),
    (
        "assignment of LD_PRELOAD",
        "run",
        "echo R''AN; LD_PRELOAD=./no.so touch OUT/new",
        Confined,
        "{}",
    ),
    ("in the background", "behind", "echo R''AN; touch OUT/new; echo x > ended", Confined, "{}"),
    ("out of the sandbox", "outside", "touch OUT/new", Refused, "{}"),
    (
        "out of the sandbox, which no call may leave",
        "outside",
        "echo R''AN; touch OUT/new",
        Confined,
        r#"{"allowUnsandboxedCommands": false}"#,
    ),
    ("excluded command", "run", "touch OUT/new", Refused, r#"{"excludedCommands": ["touch *"]}"#),
    (
        "excluded command and another",
        "run",
        "touch inside; echo R''AN; touch OUT/new",
        Confined,
        r#"{"excludedCommands": ["touch *"]}"#,
    ),
    ("removal of the workspace", "run", "echo R''AN; rm -rf ../work", Refused, "{}"),
    ("removal of where it is", "run", "echo R''AN; rm -rf \"$PWD\"", Refused, "{}"),
    ("removal of the home directory", "run", "echo R''AN; rm -rf ~", Refused, "{}"),
];

/// Plays an attack, and returns what was printed and whether what it is for was reached.
fn play(cell: &Cell, attack: &Attack, flags: &[&str]) -> (String, bool) {
    let (_, how, command, ..) = *attack;
    cell.place.file("kept", "kept\n");
    let new = cell.dir("outside/new");
    let git = Command::new("git").args(["init", "-q"]).current_dir(cell.place.work()).status();
    assert!(git.unwrap().success());
    cell.place.file("bin/attack", &format!("#!/bin/sh\ntouch {}\n", text(&new)));
    let program = cell.place.work().join("bin/attack");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = command
        .replace("OUT", text(&cell.dir("outside")))
        .replace("HOMEDIR", text(&cell.dir("home")))
        .replace("PORT", cell.server.address.rsplit(':').next().unwrap());
    let ended = cell.command(&format!("{how}: {command}"), flags).output().unwrap();
    assert!(ended.status.success(), "{}: {ended:?}", attack.0);
    let printed = String::from_utf8(ended.stdout).unwrap();
    let kept = cell.place.work().join("kept");
    let reached = new.exists() || printed.contains("ESCAPED") || !kept.exists();
    (printed, reached || !cell.dir("home/.ssh/id_test").exists())
}

// REQ: TOL-10, PRM-8
#[test]
fn nothing_runs_unasked_but_in_the_sandbox() {
    for attack in ATTACKS {
        let removes = attack.0.starts_with("removal");
        let free = ["--permission-mode", "bypassPermissions"];
        let (printed, reached) = play(&Cell::new(), attack, &free);
        // Those that are critical are denied or asked about in every mode.
        assert!(reached || removes, "{} shows nothing: {printed}", attack.0);
    }
    at_each_level("attacks on what runs unasked", |level| {
        for attack in ATTACKS {
            let (name, _, command, fate, more) = *attack;
            let cell = Cell::at(level);
            let more: Value = serde_json::from_str(more).unwrap();
            let mut own = json!({"autoAllow": true});
            own.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let (printed, reached) = play(&cell, attack, &["--settings", &cell.settings(&own)]);
            assert!(!reached, "{name}, by {level}: {printed}");
            let has_run = printed.contains("RAN") || cell.place.work().join("ended").exists();
            assert!(has_run || !command.contains("R''AN") || fate == Refused, "{name}: {printed}");
            assert!(
                !has_run || fate == Confined,
                "{name} is not asked about, by {level}: {printed}"
            );
        }
    });
}
