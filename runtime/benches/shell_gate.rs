//! What it costs to judge a shell command.
//!
//! `cargo bench -p ennead-runtime --bench shell_gate` prints microseconds for an ordinary command and
//! for ones of up to 1,000 parts, each judged by a gate with fifty rules. The best of many runs counts.
//!
//! With `ENNEAD_GATE_ONCE=KIND` one command of that kind, or the one in a file of that name, is judged once, so
//! that the instructions can be counted, which other programs on the machine do not change:
//! `valgrind --tool=callgrind --toggle-collect='*judged_once*' PROGRAM`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use ennead_runtime::{permission::PermissionMode, step7_permission_gate::GateSetup};
use serde_json::json;

#[allow(dead_code, reason = "the benchmark looks at one answer")]
#[path = "../../tests/gate_fuzz/judged.rs"]
mod judged;

/// Rules of each kind but deny.
const RULES: usize = 20;

/// Parts of the commands that show whether the work is in proportion to them.
const SIZES: [usize; 3] = [250, 500, 1_000];

/// A command as it is typed.
const ORDINARY: &str =
    "cd src && RUST_BACKTRACE=1 cargo test --workspace 2>&1 | grep -E 'FAILED|panicked' | head -20";

/// Kinds of commands: what is repeated, and how many parts each repetition has.
const LONG: [(&str, &str, &str, usize); 12] = [
    ("reads", "cat a/b.rs", "; ", 1),
    ("pipes", "grep -rn 'x y' src", " | ", 1),
    ("directories", "cd a", "; ", 1),
    ("branches", "cd a && ls ../b", " || ", 2),
    ("git", "git -C . log --oneline -- a/b", "; ", 1),
    ("writes", "sed -n 1p a > b/c 2>&1", "\n", 1),
    ("wrapped", "sudo nice -n 5 timeout 5 rm -r a/b", "; ", 1),
    ("scripts", "sh -c 'rm a; ls b'", "; ", 3),
    ("links", "ln -s a b", "; ", 1),
    ("substitutions", "cargo test \"$(git log -1)\" > /dev/null", " && ", 2),
    ("unknown programs", "tool --in=a/b.c -ox x:y", "; ", 1),
    ("copies", "env A=b cp -r a/b c", "\n", 1),
];

fn main() {
    let setup = setup();
    if let Ok(kind) = std::env::var("ENNEAD_GATE_ONCE") {
        let long = LONG.iter().find(|it| it.0 == kind);
        let other = || std::fs::read_to_string(&kind).unwrap_or_else(|_| ORDINARY.to_owned());
        let command = long.map_or_else(other, |it| repeated(it, 1_000));
        // What is made at the first use is no part of it.
        black_box(judged::outcome(&setup, ORDINARY));
        println!("{kind}: {:?}", judged_once(&setup, &command));
        return;
    }
    measure("ordinary", &setup, ORDINARY, 2_000);
    for kind in &LONG {
        for size in SIZES {
            measure(&format!("{size} parts, {}", kind.0), &setup, &repeated(kind, size), 50);
        }
    }
}

/// A command of so many parts.
fn repeated((_, one, joint, n_parts): &(&str, &str, &str, usize), size: usize) -> String {
    vec![*one; size / n_parts].join(joint)
}

#[inline(never)]
fn judged_once(setup: &GateSetup, command: &str) -> judged::Outcome {
    black_box(judged::outcome(setup, black_box(command)))
}

/// Prints the best time of many runs.
fn measure(name: &str, setup: &GateSetup, command: &str, n: usize) {
    let mut best = Duration::MAX;
    for _ in 0..n {
        #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
        let started = Instant::now();
        black_box(judged::outcome(setup, black_box(command)));
        best = best.min(started.elapsed());
    }
    println!("{name}: {} bytes, {:.1} µs", command.len(), best.as_secs_f64() * 1e6);
}

fn setup() -> GateSetup {
    let mut allow: Vec<String> = (0..RULES).map(|i| format!("Bash(tool{i} *)")).collect();
    allow.push("Bash(cargo *)".into());
    let ask: Vec<String> = (0..RULES).map(|i| format!("Bash(other{i} * x)")).collect();
    let deny = ["Bash(rm *)", "Bash(curl *)", "Read(.env)", "Read(secrets/**)"];
    let permissions = json!({ "allow": allow, "ask": ask, "deny": deny });
    judged::setup(PermissionMode::Default, "/w", &permissions)
}
