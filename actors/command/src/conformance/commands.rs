//! Cases of `bash_permissions.jsonl` and `bash_classify.jsonl`: a shell command at a whole gate.

use std::collections::BTreeMap;

use ennead_runtime::{
    ids::ToolName,
    permission::{PermissionMode, Scope},
    step1_settings_resolution::{LayerText, merge},
    step7_permission_gate::{Gate, GateSetup, GateStep, Handler, Places},
    tool::ToolCall,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Outcome, compare};

#[derive(Deserialize)]
struct CommandCase {
    #[serde(default)]
    mode: PermissionMode,
    tool: ToolName,
    #[serde(default)]
    settings: Value,
    cwd: String,
    home: String,
    input: Value,
}

/// Runs a parsed case whose answer is a decision.
pub(super) fn decide(case: &Value) -> Outcome {
    outcome(case, Handler::Approver, |step| match step {
        GateStep::Ask { .. } => Ok("ask"),
        GateStep::Decided { permit: Some(_), .. } => Ok("allow"),
        GateStep::Decided { permit: None, .. } => Ok("deny"),
        _ => Err("the gate asks for more"),
    })
}

/// Runs a parsed case whose answer is a class.
pub(super) fn classify(case: &Value) -> Outcome {
    outcome(case, Handler::None, |step| match step {
        GateStep::Decided { decision, .. } => {
            decision.class.map(|it| it.name()).ok_or("the decision has no class")
        }
        _ => Err("the gate asks for more"),
    })
}

fn outcome(
    case: &Value,
    handler: Handler,
    read: impl Fn(GateStep) -> Result<&'static str, &'static str>,
) -> Outcome {
    match step(case, handler).and_then(|it| read(it).map_err(str::to_owned)) {
        Ok(got) => compare::accepted(case, got.into()),
        Err(why) => (Value::Null, Err(why)),
    }
}

fn step(case: &Value, handler: Handler) -> Result<GateStep, String> {
    let case: CommandCase =
        serde_json::from_value(case.clone()).map_err(|error| error.to_string())?;
    let layer = {
        let text = json!({ "permissions": case.settings }).to_string();
        LayerText::new(Scope::Project, "the case", text)
    };
    let settings = merge(&[layer]).settings;
    let places = Places {
        workspace: case.cwd.as_str().into(),
        home: case.home.as_str().into(),
        project_root: None,
        real: BTreeMap::new(),
    };
    let setup = GateSetup::new(settings, case.mode, places, handler);
    let tools = ennead_tools::registry::builtin_tools();
    let tool = tools.iter().find(|it| it.spec().name == case.tool);
    let spec = tool.map(|it| it.spec()).ok_or_else(|| format!("there is no tool {}", case.tool))?;
    let input = case.input.to_string();
    let call = ToolCall::new("call".into(), case.tool, input);
    Ok(match Gate::open(call, spec, &setup) {
        (mut gate, GateStep::Judge(order)) => {
            gate.command_judged(order.judge(ennead_runtime::step7_permission_gate::Look::nowhere()))
        }
        (_, step) => step,
    })
}
