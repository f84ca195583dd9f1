//! What it costs to judge a shell command.
//!
//! `cargo bench -p ennead-runtime --bench shell_gate` prints microseconds for an ordinary command and
//! for one of 1,000 parts, each judged by a gate with fifty rules. The best of many runs counts.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    collections::BTreeMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use ennead_runtime::{
    permission::{PermissionMode, Scope},
    step1_settings_resolution::{LayerText, merge},
    step7_permission_gate::{Gate, GateSetup, GateStep, Handler, Places},
    tool::{Access, Concurrency, ToolCall, ToolEffect, ToolSpec},
};
use serde_json::json;

/// Rules of each kind but deny.
const RULES: usize = 20;

fn main() {
    let setup = setup();
    let ordinary = "cd src && RUST_BACKTRACE=1 cargo test --workspace 2>&1 | grep -E 'FAILED|panicked' | head -20";
    let long = vec!["cargo test \"$(git log -1)\" > /dev/null"; 500].join(" && ");
    for (name, command, n) in [("ordinary", ordinary, 2_000), ("1,000 parts", &long, 50)] {
        let mut best = Duration::MAX;
        for _ in 0..n {
            #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
            let started = Instant::now();
            black_box(judge(&setup, black_box(command)));
            best = best.min(started.elapsed());
        }
        println!("{name}: {} bytes, {:.1} µs", command.len(), best.as_secs_f64() * 1e6);
    }
}

fn judge(setup: &GateSetup, command: &str) -> bool {
    let spec = ToolSpec {
        name: "Bash".into(),
        description: "".into(),
        input_schema: "{}".into(),
        effect: ToolEffect::SideEffects,
        concurrency: Concurrency::Alone,
        access: Access::Command { field: "command".into() },
        output_cap: None,
        timeout_ms: None,
        polls: false,
    };
    let input = json!({ "command": command }).to_string().into();
    let call = ToolCall { id: "c".into(), name: "Bash".into(), input };
    match Gate::open(call, &spec, setup) {
        (mut gate, GateStep::Judge(order)) => {
            matches!(gate.command_judged(order.judge()), GateStep::Decided { permit: Some(_), .. })
        }
        _ => false,
    }
}

fn setup() -> GateSetup {
    let mut allow: Vec<String> = (0..RULES).map(|i| format!("Bash(tool{i} *)")).collect();
    allow.push("Bash(cargo *)".into());
    let ask: Vec<String> = (0..RULES).map(|i| format!("Bash(other{i} * x)")).collect();
    let deny = ["Bash(rm *)", "Bash(curl *)", "Read(.env)", "Read(secrets/**)"];
    let text = json!({ "permissions": { "allow": allow, "ask": ask, "deny": deny } }).to_string();
    let layer = LayerText { scope: Scope::CliArg, source: "the benchmark".into(), text };
    let places = Places {
        workspace: "/w".into(),
        home: "/h".into(),
        project_root: None,
        real: BTreeMap::new(),
    };
    let settings = Arc::new(merge(&[layer]).settings);
    GateSetup::new(settings, PermissionMode::Default, places, Handler::None)
}
