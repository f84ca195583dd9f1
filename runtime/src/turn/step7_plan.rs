//! Step 7 of a turn: the calls that begin the mode `plan` and end it.
//!
//! Both are asked about. The question of the one that ends it holds the plan, so that a person sees what is
//! approved; a yes puts the session into the mode before, or into one that comes with the yes.

use serde_json::{Map, Value};

use super::{Awaits, Effect, Turn};
use crate::{
    approval::may_change_to,
    event::Event,
    ids::ToolUseId,
    permission::PermissionMode,
    tool::{Access, ToolCall, ToolSpec},
};

/// The field of the input that holds the plan.
const PLAN: &str = "plan";

/// The field of the input that names the file of the plan.
const FILE: &str = "planFilePath";

/// Bytes of a plan that a person is shown.
pub const MAX_PLAN_BYTES: usize = 50_000;

/// A tool that changes the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanTool {
    /// The mode `plan` begins.
    Enter,
    /// A plan is to be approved.
    Exit,
}

impl PlanTool {
    /// The tool, if it is one of these. A tool of an embedder that has such a name is none.
    pub(super) fn of(spec: &ToolSpec) -> Option<Self> {
        match spec.name.as_str() {
            _ if spec.access != Access::Person => None,
            "EnterPlanMode" => Some(Self::Enter),
            "ExitPlanMode" => Some(Self::Exit),
            _ => None,
        }
    }
}

impl Turn {
    /// Returns which of these tools the call with this index is for, if it is for one.
    pub(super) fn plan_tool(&self, index: usize) -> Option<PlanTool> {
        PlanTool::of(self.state.calls.get(index)?.spec.as_ref()?)
    }

    /// Asks about a call that begins the mode `plan` or ends it; about the approval of a plan when that is read.
    pub(super) fn ask_about_plan(
        &mut self,
        tool: PlanTool,
        reason: String,
        suggestions: Vec<String>,
    ) {
        let plans = self.mode() == PermissionMode::Plan;
        match tool {
            PlanTool::Enter if plans => self.refuse("plan mode holds already"),
            PlanTool::Exit if !plans => {
                self.refuse("plan mode does not hold, so there is no plan to be approved");
            }
            PlanTool::Exit => match (self.plan_file(), &self.state.gate) {
                (Some(file), Some((_, gate))) => {
                    let call = gate.call().id.clone();
                    self.state.asking = Some((reason, suggestions));
                    self.awaits = Some(Awaits::Plan);
                    self.effects.push(Effect::ReadPlan { call, file });
                }
                _ => self.refuse("the session has no file for a plan"),
            },
            PlanTool::Enter => self.raise(reason, suggestions),
        }
    }

    /// The plan was read, or there is none.
    pub(super) fn plan_read(&mut self, call: &ToolUseId, plan: Option<String>) {
        if !self.is_at_gate(call) || !self.was_awaited(Awaits::Plan) || self.has_outrun(call) {
            return;
        }
        let file = self.plan_file().unwrap_or_default();
        let asking = self.state.asking.take();
        let (Some(plan), Some((reason, suggestions)), Some((_, gate))) =
            (plan, asking, &mut self.state.gate)
        else {
            let why = format!(
                "there is no plan in {file} that a person could be shown; write it there, in at most \
                 {MAX_PLAN_BYTES} bytes, and call again"
            );
            return self.refuse(&why);
        };
        let mut input: Map<String, Value> =
            serde_json::from_str(&gate.call().input).unwrap_or_default();
        input.insert(PLAN.into(), plan.into());
        input.insert(FILE.into(), file.into());
        gate.complete(Value::from(input).to_string().into());
        self.raise(reason, suggestions);
    }

    /// The file that holds the plan of the session; absolute.
    pub(super) fn plan_file(&self) -> Option<String> {
        let settings = self.settings();
        let directory = settings.permissions.plans_directory.as_deref();
        self.facts.plan_files(directory).into_iter().next()
    }

    /// The input of a call about a plan, which the harness completed.
    pub(super) fn completed(&self, call: &ToolCall) -> Option<String> {
        let (index, _) = self.state.gate.as_ref()?;
        let is_completed = self.plan_tool(*index) == Some(PlanTool::Exit);
        is_completed.then(|| call.input.to_string())
    }

    /// A call was decided about. One about the mode that was allowed changes it.
    pub(super) fn plan_decided(&mut self, index: usize, is_allowed: bool) {
        let chosen = self.state.chosen_mode.take();
        let Some(tool) = self.plan_tool(index).filter(|_| is_allowed) else { return };
        let settings = self.settings();
        let permissions = &settings.permissions;
        let has_leave =
            self.facts.may_bypass || permissions.mode == PermissionMode::BypassPermissions;
        let chosen = chosen.filter(|it| may_change_to(*it, has_leave, &permissions.off).is_ok());
        let mode = match tool {
            PlanTool::Enter => PermissionMode::Plan,
            PlanTool::Exit => {
                chosen.unwrap_or_else(|| self.memory.overrides.mode_after_plan(&settings))
            }
        };
        if mode != self.mode() {
            let call = self.state.calls[index].call.id.clone();
            self.take_mode(mode, Some(call));
            self.publish(Event::ModeChanged { mode });
        }
    }
}

/// The plan in the input of a call.
pub(crate) fn plan_in(input: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input).ok()?;
    Some(input.get(PLAN)?.as_str()?.to_owned())
}
