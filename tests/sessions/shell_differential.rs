//! The gate against the real bash: what it lets pass starts no program that it did not see.
//!
//! Random commands come from a grammar and are then spoilt here and there. Programs are stubs that
//! log what they are called with. Rules cover some of them, and those only with the first argument
//! `ok`; every command that the gate allows is run in an empty directory, and no stub may start that no
//! rule covers. `ENNEAD_SHELL_TRIALS` sets the number of commands; the counts so far are printed twenty
//! times on the way.
//!
//! A spoilt loop may have no end (`while aa ok; do bre; done`), so a command is stopped after two
//! seconds, and at once when its log is full. What it started until then counts.

#![expect(clippy::print_stdout, reason = "the counts are worth knowing")]

mod grammar;
mod shell;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use ennead_runtime::{permission::PermissionMode, step7_permission_gate::GateSetup};
use serde_json::json;

use grammar::Grammar;
use shell::Shell;

use crate::sessions::gate_fuzz::judged::{self, Outcome};

/// Commands in a run that nobody asked to be longer.
const TRIALS: u64 = 2_000;

/// Programs that rules cover, if their first argument is `ok`.
const COVERED: [&str; 3] = ["aa", "bb", "cc"];

/// Programs that no rule covers.
const OTHERS: [&str; 2] = ["xx", "yy"];

fn setup(workspace: &str, mode: PermissionMode) -> GateSetup {
    let allow: Vec<String> = COVERED.iter().map(|it| format!("Bash({it} ok *)")).collect();
    let permissions = match mode {
        PermissionMode::BypassPermissions => json!({"deny": ["Bash(xx *)", "Bash(yy *)"]}),
        _ => json!({"allow": allow}),
    };
    judged::setup(mode, workspace, &permissions)
}

/// What came of the commands so far.
#[derive(Debug, Default)]
struct DifferentialCounts {
    n_done: u64,
    n_allowed: u64,
    /// Allowed, and not run as they may write outside the directory.
    n_left_out: u64,
    n_started: u64,
    n_stopped: u64,
    unseen: Vec<String>,
}

impl DifferentialCounts {
    fn print(&self) {
        println!(
            "{} commands, {} allowed, {} of them left out and {} stopped, {} programs started, {} not seen",
            self.n_done,
            self.n_allowed,
            self.n_left_out,
            self.n_stopped,
            self.n_started,
            self.unseen.len()
        );
    }

    /// Adds a command that was run, with the log of its stubs.
    fn add(&mut self, command: &str, bypasses: bool, ran: &shell::CommandRun) {
        self.n_stopped += u64::from(ran.is_stopped);
        for line in ran.log.lines() {
            self.n_started += 1;
            let (name, first) = line.split_once(' ').unwrap_or((line, ""));
            let is_covered = COVERED.contains(&name) && (bypasses || first == "ok");
            if !is_covered {
                self.unseen.push(format!("{command:?} started {line:?}"));
            }
        }
    }
}

/// Whether a command that no rule holds writes nowhere but below its directory: no text of the grammar has
/// a slash but the null device, and a spoilt one names another file.
fn stays_here(command: &str) -> bool {
    let mut pieces = command.split("/dev/null");
    let is_first_plain = pieces.next().is_some_and(|it| !it.contains('/'));
    is_first_plain
        && pieces.all(|it| {
            let ends = it.chars().next().is_none_or(|c| " \t\n;|&)<>".contains(c));
            ends && !it.contains('/')
        })
}

/// Judges commands, and runs those that pass, until there are none left.
fn work(next: &AtomicU64, n_trials: u64, counts: &Mutex<DifferentialCounts>) {
    let place = tempfile::tempdir().unwrap();
    let shell = Shell::new(place.path(), &[&COVERED[..], &OTHERS[..]].concat());
    let workspace = shell.work.to_str().unwrap();
    let modes = [PermissionMode::AcceptEdits, PermissionMode::BypassPermissions];
    let setups = modes.map(|mode| setup(workspace, mode));
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if n_trials <= seed {
            return;
        }
        let command = Grammar::new(seed).command();
        let passed = setups
            .iter()
            .zip([false, true])
            .find(|(setup, _)| judged::outcome(setup, &command) == Outcome::Allowed);
        let bypasses = passed.map(|it| it.1);
        let runs = bypasses.filter(|bypasses| !bypasses || stays_here(&command));
        let ran = runs.map(|bypasses| (bypasses, shell.run(&command)));
        let mut counts = counts.lock().unwrap();
        counts.n_done += 1;
        counts.n_allowed += u64::from(bypasses.is_some());
        counts.n_left_out += u64::from(bypasses.is_some() && runs.is_none());
        if let Some((bypasses, ran)) = ran {
            counts.add(&command, bypasses, &ran);
        }
        if counts.n_done.is_multiple_of((n_trials / 20).max(1)) {
            counts.print();
        }
    }
}

// REQ: PRM-8
#[test]
fn nothing_starts_that_the_gate_did_not_see() {
    let n_trials = std::env::var("ENNEAD_SHELL_TRIALS").ok().and_then(|it| it.parse().ok());
    let n_trials: u64 = n_trials.unwrap_or(TRIALS);
    let (next, counts) = (AtomicU64::new(0), Mutex::new(DifferentialCounts::default()));
    let n_workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| work(&next, n_trials, &counts));
        }
    });
    let counts = counts.into_inner().unwrap();
    counts.print();
    assert!(counts.unseen.is_empty(), "{:#?}", counts.unseen);
    // It has to try something.
    assert!(
        counts.n_done == n_trials
            && n_trials <= counts.n_allowed * 10
            && counts.n_allowed <= counts.n_started
            && counts.n_stopped * 50 <= counts.n_allowed,
        "{counts:?}"
    );
}

#[test]
fn commands_that_may_write_elsewhere_are_told_apart() {
    for (command, expected) in [
        ("aa ok >/dev/null 2>&1", true),
        ("aa ok > /dev/null; aa ok >f", true),
        ("(aa ok >/dev/null)", true),
        ("aa ok >/devnull", false),
        ("aa ok >/dev/null=", false),
        ("aa ok >/dev/null\\\nx", false),
        ("aa ok >/de#v/null", false),
    ] {
        assert_eq!(stays_here(command), expected, "{command}");
    }
}
