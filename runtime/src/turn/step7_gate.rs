//! Step 7 of a turn: each call goes through the gate, one after another.

use std::sync::Arc;

use super::{
    Awaits, Effect, Turn, count,
    step7_plan::PlanTool,
    step7_question::{ANSWERED, answers_itself},
};
use crate::{
    event::Event,
    hook::{Firing, HookDecision, HookEvent, HookVerdict},
    ids::ToolUseId,
    run::{
        RunEnd,
        agent_types::{AgentType, listing},
        facts::{HOOKS_ANSWER, LISTS_PERMITTED_AGENTS},
    },
    step::Step,
    step2_state_initialization::{CallStage, FiringReason},
    step7_permission_gate::{
        Decision, Gate, GateSetup, GateStep, Judged, Permit, ResolvedPath, denies_agent, offered,
    },
    tool::{ToolErrorKind, ToolOutcome, ToolSpec},
    transcript::entry::{LinksRecord, RecordKind, StepDetail},
};

/// Bytes of a path as JSON that fit its record in addition to everything else.
const MAX_PATH_BYTES: usize = 3072;

impl Turn {
    /// Returns the tools that the model is offered: stage 1 of the gate, before there is any call.
    pub(super) fn offered_tools(&self) -> Vec<Arc<ToolSpec>> {
        let Some(setup) = &self.state.gate_setup else { return Vec::new() };
        let offered = offered(&self.facts.tools, setup);
        let nests = self.facts.may_nest(setup.settings().agents);
        let tools = self.facts.tools.iter().zip(offered);
        let plans = self.facts.plans.is_some();
        let tools = tools.filter(|(it, offered)| {
            *offered
                && (nests || it.name.as_str() != "Agent")
                && (plans || PlanTool::of(it).is_none())
        });
        let mut tools: Vec<_> = tools.map(|(tool, _)| self.as_permitted(tool, setup)).collect();
        // The one that registered them, and in which order: equal sets make equal requests.
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        tools
    }

    /// Takes the types of sub-agents that a rule denies out of the list that the model reads.
    fn as_permitted(&self, tool: &Arc<ToolSpec>, setup: &GateSetup) -> Arc<ToolSpec> {
        let own = &self.facts.agent_types;
        let is_denied = |it: &&AgentType| denies_agent(&it.name, setup);
        if tool.name.as_str() != "Agent"
            || self.facts.revision < LISTS_PERMITTED_AGENTS
            || !own.iter().any(|it| is_denied(&it))
        {
            return Arc::clone(tool);
        }
        let whole = listing(own).unwrap_or_default();
        let Some(before) = tool.description.strip_suffix(&*whole) else { return Arc::clone(tool) };
        let permitted = listing(own.iter().filter(|it| !is_denied(it))).unwrap_or_default();
        let description = format!("{before}{permitted}").into();
        Arc::new(ToolSpec { description, ..ToolSpec::clone(tool) })
    }

    pub(super) fn open_gate(&mut self) {
        if self.state.calls.is_empty() {
            self.record_step(StepDetail::Nothing { nothing: "there is no call".into() });
            return self.next(Step::ToolExecution);
        }
        self.gate_next();
    }

    /// Opens the gate for the first call that is still open.
    pub(super) fn gate_next(&mut self) {
        if self.state.is_cut_off {
            self.deny_the_rest();
        }
        let open = self.state.calls.iter().position(|it| matches!(it.stage, CallStage::Open));
        let setup = self.setup_of_call();
        let (Some(index), Some(setup)) = (open, setup) else { return self.gate_closed() };
        let state = &self.state.calls[index];
        let Some(spec) = &state.spec else { return self.gate_closed() };
        let (mut gate, mut step) = Gate::open(state.call.clone(), spec, &setup);
        if answers_itself(&state.call, spec) && !matches!(step, GateStep::Decided { .. }) {
            step = gate.refuse(ANSWERED);
        }
        self.state.gate = Some((index, gate));
        self.gate_step(step);
    }

    /// Returns what the next call is judged by: a command from where it will start, a change of a file by how many there
    /// are already.
    pub(super) fn setup_of_call(&self) -> Option<GateSetup> {
        let setup = self.state.gate_setup.as_ref()?;
        Some(setup.with_cwd(self.cwd()).after_changes(self.state.unasked_changes))
    }

    pub(super) fn gate_step(&mut self, step: GateStep) {
        let Some((index, _)) = &self.state.gate else { return };
        let index = *index;
        let call = self.state.calls[index].call.id.clone();
        match step {
            GateStep::RunHooks { input, .. } => self.pre_tool_use(index, &input),
            GateStep::ResolvePath { given } => {
                self.awaits = Some(Awaits::Path);
                self.effects.push(Effect::ResolvePath { call, given });
            }
            GateStep::Judge(order) => {
                self.awaits = Some(Awaits::Judgement);
                self.effects.push(Effect::JudgeCommand { call, order });
            }
            GateStep::Ask { reason, suggestions } => self.ask_about(index, reason, suggestions),
            GateStep::Decided { decision, permit } => self.decided(index, decision, permit),
        }
    }

    /// Asks about the call with this index, to which the rules give no answer. Every question goes through here; one
    /// about the mode `plan` waits for the text of the plan.
    fn ask_about(&mut self, index: usize, reason: String, suggestions: Vec<String>) {
        match self.plan_tool(index) {
            Some(tool) => self.ask_about_plan(tool, reason, suggestions),
            None => self.raise(reason, suggestions),
        }
    }

    /// Refuses the call at the gate for a reason that the model reads, without a question.
    pub(super) fn refuse(&mut self, reason: &str) {
        let Some((_, gate)) = &mut self.state.gate else { return };
        let step = gate.refuse(reason);
        self.gate_step(step);
    }

    fn pre_tool_use(&mut self, index: usize, input: &str) {
        let call = self.state.calls[index].call.clone();
        let (id, tool) = (call.id.clone(), call.name.clone());
        let firing = Firing::PreToolUse { id, tool, input: input.into() };
        if !self.fire(firing, Some(&call), FiringReason::PreToolUse) {
            self.pre_tool_use_answered(HookVerdict::default());
        }
    }

    pub(super) fn pre_tool_use_answered(&mut self, mut verdict: HookVerdict) {
        if let Some(HookDecision::Defer { reason }) = &verdict.decision {
            if self.state.calls.len() == 1 {
                self.end_with(RunEnd::ToolDeferred, Some(reason.clone()));
            } else {
                // One of several cannot be left alone.
                let why =
                    "a PreToolUse hook said `defer` to one of several calls, which has no effect";
                verdict.decision = None;
                self.alert(why);
            }
        }
        let added = verdict.additional_context.iter().cloned();
        self.state.reminders.extend(added.map(|it| (Some(HookEvent::PreToolUse), it)));
        if let Some(reason) = &verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason.clone()));
        }
        verdict.answers &= HOOKS_ANSWER <= self.facts.revision;
        let Some((_, gate)) = &mut self.state.gate else { return };
        let step = gate.hooks_answered(&verdict);
        self.gate_step(step);
    }

    pub(super) fn path_resolved(&mut self, call: &ToolUseId, path: ResolvedPath) {
        if !self.is_at_gate(call) || !self.was_awaited(Awaits::Path) || self.has_outrun(call) {
            return;
        }
        // A path that is too long for its record is cut there, so all of it is kept next to it.
        let text = serde_json::to_string(&path).unwrap_or_default();
        let whole = (MAX_PATH_BYTES < text.len()).then(|| self.journal.stored(&text));
        let what = RecordKind::Path { call: call.clone(), path: path.clone(), whole };
        self.journal.record(self.now, what);
        let Some((_, gate)) = &mut self.state.gate else { return };
        let step = gate.path_resolved(path);
        self.gate_step(step);
    }

    pub(super) fn command_judged(&mut self, call: &ToolUseId, judged: Judged) {
        if !self.is_at_gate(call) || !self.was_awaited(Awaits::Judgement) || self.has_outrun(call) {
            return;
        }
        if !judged.links().is_empty() {
            let text = serde_json::to_string(judged.links()).unwrap_or_default();
            let seen = self.journal.stored(&text);
            self.journal
                .record(self.now, RecordKind::Links(LinksRecord { call: call.clone(), seen }));
        }
        let Some((_, gate)) = &mut self.state.gate else { return };
        let step = gate.command_judged(judged);
        self.gate_step(step);
    }

    pub(super) fn is_at_gate(&self, call: &ToolUseId) -> bool {
        self.state.gate.as_ref().is_some_and(|(_, gate)| gate.call().id == *call)
    }

    fn decided(&mut self, index: usize, decision: Decision, permit: Option<Permit>) {
        let Some((_, gate)) = self.state.gate.take() else { return };
        self.state.unasked_changes += u32::from(gate.is_unasked_change(&decision));
        let allow_rules = if decision.allowed { Vec::new() } else { gate.allow_rules() };
        let state = &mut self.state.calls[index];
        let rewritten = (state.call.input != gate.call().input).then(|| gate.call().input.clone());
        state.call = gate.call().clone();
        state.is_rewritten = rewritten.is_some();
        let (call, tool) = (state.call.id.clone(), state.call.name.clone());
        let digest = permit.as_ref().map_or_else(|| state.call.digest(), Permit::digest);
        state.stage = match permit {
            Some(permit) => CallStage::Allowed(Box::new(permit)),
            None => CallStage::Refused(Box::new(ToolOutcome::failed(
                ToolErrorKind::PermissionDenied,
                format!("Permission denied: {}", decision.reason),
            ))),
        };
        let input = rewritten.map(|it| self.journal.stored(&it));
        self.publish(Event::PermissionDecided {
            call: call.clone(),
            tool: tool.clone(),
            allowed: decision.allowed,
            reason: decision.reason.as_str().into(),
            allow_rules: allow_rules.into(),
        });
        let (mode, is_allowed) = (self.mode(), decision.allowed);
        let what = RecordKind::Permission { call, tool, digest, input, mode, decision };
        self.journal.record(self.now, what);
        self.plan_decided(index, is_allowed);
        self.gate_next();
    }

    /// Every call is decided about.
    fn gate_closed(&mut self) {
        let allowed =
            self.state.calls.iter().filter(|it| matches!(it.stage, CallStage::Allowed(_))).count();
        let denied = self.state.calls.iter().filter(|it| is_denied(&it.stage)).count();
        self.record_step(StepDetail::Gate { allowed: count(allowed), denied: count(denied) });
        if self.state.is_cut_off {
            self.withdraw_permits();
        }
        self.next(Step::ToolExecution);
    }
}

fn is_denied(stage: &CallStage) -> bool {
    match stage {
        CallStage::Refused(outcome) => outcome.error == Some(ToolErrorKind::PermissionDenied),
        _ => false,
    }
}
