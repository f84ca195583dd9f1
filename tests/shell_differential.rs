//! The gate against the real bash: what it lets pass starts no program that it did not see.
//!
//! Random commands come from a grammar and are then spoilt here and there. Programs are stubs that
//! log what they are called with. Rules cover some of them, and those only with the first argument
//! `ok`; every command that the gate allows is run in an empty directory, and no stub may start that no
//! rule covers. `ENNEAD_SHELL_TRIALS` sets the number of commands.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use ennead_runtime::{permission::PermissionMode, step7_permission_gate::GateSetup};
use serde_json::json;

mod grammar;

use grammar::Draws;

use crate::gate_fuzz::judged::{self, Outcome};

/// Commands in a run that nobody asked to be longer.
const TRIALS: u64 = 2_000;

/// Programs that rules cover, if their first argument is `ok`.
const COVERED: [&str; 3] = ["aa", "bb", "cc"];

/// Programs that no rule covers.
const OTHERS: [&str; 2] = ["xx", "yy"];

/// Commands that one shell runs after another.
const BATCH: usize = 50;

fn setup(workspace: &str, mode: PermissionMode) -> GateSetup {
    let allow: Vec<String> = COVERED.iter().map(|it| format!("Bash({it} ok *)")).collect();
    let permissions = match mode {
        PermissionMode::BypassPermissions => json!({"deny": ["Bash(xx *)", "Bash(yy *)"]}),
        _ => json!({"allow": allow}),
    };
    judged::setup(mode, workspace, &permissions)
}

/// Runs commands, each in a subshell of its own; what stubs were called with is in `log`.
fn run(commands: &[String], place: &Path) -> Vec<String> {
    let (bin, log, dir) = (place.join("bin"), place.join("log"), place.join("work"));
    fs::remove_dir_all(&dir).ok();
    fs::create_dir(&dir).unwrap();
    let mut script = String::new();
    for (i, command) in commands.iter().enumerate() {
        fs::write(place.join(format!("command.{i}")), command).unwrap();
        let _ = writeln!(
            script,
            "( LOG={0}.{i}; export LOG; eval \"$(<{1}/command.{i})\" ) </dev/null >/dev/null 2>&1",
            log.display(),
            place.display()
        );
        fs::remove_file(format!("{}.{i}", log.display())).ok();
    }
    script.push_str("wait\n");
    let mut child = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &format!("ulimit -t 20; {script}")])
        .current_dir(&dir)
        .env_clear()
        .env("PATH", bin)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let read = |i| fs::read_to_string(format!("{}.{i}", log.display())).unwrap_or_default();
    (0..commands.len()).map(read).collect()
}

fn install(place: &Path) {
    let bin = place.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for name in COVERED.iter().chain(&OTHERS) {
        let path = bin.join(name);
        // One line for each start, whatever the argument holds.
        let stub = "first=${1%%'\n'*}\nprintf '%s %s\\n'";
        fs::write(&path, format!("#!/bin/sh\n{stub} {name} \"$first\" >>\"$LOG\"\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (name, path) in [("sh", "/bin/sh"), ("bash", "/bin/bash")] {
        std::os::unix::fs::symlink(path, bin.join(name)).unwrap();
    }
    for name in ["env", "timeout", "nice", "nohup", "xargs", "cat"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), bin.join(name)).unwrap();
    }
}

// REQ: PRM-8
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn nothing_starts_that_the_gate_did_not_see() {
    let n_trials = std::env::var("ENNEAD_SHELL_TRIALS").ok().and_then(|it| it.parse().ok());
    let n_trials: u64 = n_trials.unwrap_or(TRIALS);
    let place = tempfile::tempdir().unwrap();
    install(place.path());
    let workspace = place.path().join("work").to_str().unwrap().to_owned();
    let setups = [PermissionMode::AcceptEdits, PermissionMode::BypassPermissions];
    let setups = setups.map(|mode| setup(&workspace, mode));
    let (mut n_allowed, mut n_started, mut waiting) = (0, 0, Vec::new());
    let mut unseen = Vec::new();
    let mut flush = |waiting: &mut Vec<(String, bool)>, n_started: &mut usize| {
        let commands: Vec<String> = waiting.iter().map(|it| it.0.clone()).collect();
        for (log, (command, bypasses)) in run(&commands, place.path()).iter().zip(waiting.drain(..))
        {
            for line in log.lines() {
                *n_started += 1;
                let (name, first) = line.split_once(' ').unwrap_or((line, ""));
                let is_covered = COVERED.contains(&name) && (bypasses || first == "ok");
                if !is_covered {
                    unseen.push(format!("{command:?} started {line:?}"));
                }
            }
        }
    };
    for seed in 0..n_trials {
        let command = Draws::new(seed).command();
        for (setup, bypasses) in setups.iter().zip([false, true]) {
            if judged::outcome(setup, &command) == Outcome::Allowed {
                n_allowed += 1;
                waiting.push((command.clone(), bypasses));
                break;
            }
        }
        if waiting.len() == BATCH {
            flush(&mut waiting, &mut n_started);
        }
    }
    flush(&mut waiting, &mut n_started);
    println!(
        "{n_trials} commands, {n_allowed} allowed and run, {n_started} programs started, {} unseen",
        unseen.len()
    );
    assert!(unseen.is_empty(), "{unseen:#?}");
    // It has to try something.
    assert!(
        n_allowed * 10 >= n_trials && n_started as u64 >= n_allowed,
        "{n_allowed}, {n_started}"
    );
}
