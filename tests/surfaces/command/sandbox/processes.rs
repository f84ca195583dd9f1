//! Processes of the sandbox's own: what is seen of others, and that none outlives its helpers.

use std::{
    fs,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Cell, at_each_level, doctor_at};
use crate::surfaces::command::processes::{LIMIT, watch};

/// Whether a command has a PID namespace of its own here.
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
fn has_own(level: &str, what: &str) -> bool {
    let has_own = doctor_at(level)["own_processes"] == true;
    if !has_own {
        println!("1 skipped: {what}: there is no PID namespace of a command's own");
    }
    has_own
}

// REQ: TOL-10
#[test]
fn confined_command_sees_its_own_processes_and_no_others() {
    at_each_level("processes outside", |level| {
        if !has_own(level, "processes outside") {
            return;
        }
        let cell = Cell::at(level);
        // Told apart from those of other tests.
        let seconds = format!("1000.{}77", std::process::id());
        let mut other = Command::new("sleep").arg(&seconds).stdin(Stdio::null()).spawn().unwrap();
        // The shell's own command line does not hold what it looks for.
        let (whole, fraction) = seconds.split_once('.').unwrap();
        let look = format!(
            "echo found=$(cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep {whole}[.]{fraction}')"
        );
        let free = cell.run(&look, &["--permission-mode", "bypassPermissions"]);
        assert!(free.stdout.contains("found=1"), "it is seen without a sandbox: {free:?}");
        let confined = cell.run_confined(&look);
        assert!(confined.stdout.contains("found=0"), "{confined:?}");
        // What belongs to the command works as ever.
        let own = cell.run_confined(
            "sleep 1000 & kill $!; wait $!; echo ended $?; \
         [ \"$(readlink /proc/self)\" -gt 1 ] && [ -e /proc/$$/cmdline ] && echo own; exit 3",
        );
        for part in ["ended 143", "own", "exit code 3"] {
            assert!(own.stdout.to_lowercase().contains(part), "{part}: {own:?}");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    });
}

// REQ: TOL-10, TOL-8
#[test]
fn no_confined_process_outlives_an_ennead_or_a_helper_that_is_killed() {
    at_each_level("ends of confined processes", |level| {
        let victims = ["ennead", "ennead-reaper", "bwrap"];
        let n_victims = if level == "bubblewrap" { 3 } else { 2 };
        for victim in victims.into_iter().take(n_victims) {
            let cell = Cell::at(level);
            let pipe = cell.place.work().join("alive");
            let held = watch(&pipe);
            let settings = cell.settings(&json!({}));
            let command = "run: exec 9> alive; (setsid sh -c \"sleep 1000 & exit\" &); sleep 1000";
            let flags = ["--permission-mode", "bypassPermissions", "--settings", &settings];
            let mut ennead = cell.command(command, &flags).stdout(Stdio::null()).spawn().unwrap();
            held.recv_timeout(LIMIT).unwrap();
            let below = |parent: u32| {
                let threads = fs::read_dir(format!("/proc/{parent}/task")).unwrap().flatten();
                let children =
                    threads.flat_map(|it| fs::read_to_string(it.path().join("children")));
                children.collect::<String>().split(' ').find_map(|it| it.parse::<u32>().ok())
            };
            let number = |it: Option<u32>| Pid::from_raw(it.unwrap().cast_signed()).unwrap();
            let target = match victim {
                "ennead" => Pid::from_child(&ennead),
                "bwrap" => number(below(ennead.id()).and_then(below)),
                _ => number(below(ennead.id())),
            };
            kill_process(target, Signal::KILL).unwrap();
            held.recv_timeout(LIMIT)
                .unwrap_or_else(|_| panic!("a process is left after {victim} was killed"));
            let _ended = ennead.kill();
            ennead.wait().unwrap();
        }
    });
}
