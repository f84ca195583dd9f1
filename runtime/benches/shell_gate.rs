//! What it costs to judge a shell command.
//!
//! `cargo bench -p ennead-runtime --bench shell_gate` prints microseconds for an ordinary command and
//! for ones of up to 1,000 parts, each judged by a gate with fifty rules. The best of many runs counts.

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

/// Kinds of commands: what is repeated, and how many parts each repetition has.
const LONG: [(&str, &str, &str, usize); 3] = [
    ("substitutions", "cargo test \"$(git log -1)\" > /dev/null", " && ", 2),
    ("unknown programs", "tool --in=a/b.c -ox x:y", "; ", 1),
    ("copies", "env A=b cp -r a/b c", "\n", 1),
];

fn main() {
    let setup = setup();
    let ordinary = "cd src && RUST_BACKTRACE=1 cargo test --workspace 2>&1 | grep -E 'FAILED|panicked' | head -20";
    measure("ordinary", &setup, ordinary, 2_000);
    for (name, one, joint, n_parts) in LONG {
        for size in SIZES {
            let command = vec![one; size / n_parts].join(joint);
            measure(&format!("{size} parts, {name}"), &setup, &command, 50);
        }
    }
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
