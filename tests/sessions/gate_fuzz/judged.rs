//! What becomes of a shell command at the gate: shared by the fuzz targets, the differential test and the benchmark.

use std::collections::BTreeMap;

use ennead_runtime::{
    permission::{PermissionMode, Scope},
    step1_settings_resolution::{LayerText, merge},
    step7_permission_gate::{Gate, GateSetup, GateStep, Handler, Look, Places},
    tool::{Access, ToolCall, ToolSpec},
};
use serde_json::{Value, json};

/// What becomes of a call. Stricter answers are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// It does not run.
    Denied,
    /// Somebody is asked.
    Asked,
    /// It runs.
    Allowed,
}

/// A gate with `permissions` as settings have them, where somebody can be asked.
pub(crate) fn setup(mode: PermissionMode, workspace: &str, permissions: &Value) -> GateSetup {
    let text = json!({ "permissions": permissions }).to_string();
    let layer = LayerText::new(Scope::CliArg, "the caller", text);
    let places = Places {
        workspace: workspace.into(),
        home: "/nowhere".into(),
        project_root: None,
        real: BTreeMap::new(),
    };
    GateSetup::new(merge(&[layer]).settings, mode, places, Handler::Approver)
}

/// What becomes of a command where there are no files.
pub(crate) fn outcome(setup: &GateSetup, command: &str) -> Outcome {
    outcome_looking(setup, command, Look::nowhere())
}

/// What becomes of a command among these files.
pub(crate) fn outcome_looking(setup: &GateSetup, command: &str, look: Look) -> Outcome {
    let spec =
        ToolSpec::new("Bash", "", "{}").with_access(Access::Command { field: "command".into() });
    let input = json!({ "command": command }).to_string();
    let call = ToolCall::new("c".into(), "Bash".into(), input);
    let (mut gate, mut step) = Gate::open(call, &spec, setup);
    if let GateStep::Judge(order) = step {
        step = gate.command_judged(order.judge(look));
    }
    match step {
        GateStep::Decided { permit: Some(_), .. } => Outcome::Allowed,
        GateStep::Decided { permit: None, .. } => Outcome::Denied,
        _ => Outcome::Asked,
    }
}
