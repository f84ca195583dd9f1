//! One call on its way through the four stages.
//!
//! A state machine: each step says what is needed next, the caller finds it out and hands it back.
//! Only here a [`Permit`] is issued, at most one per call.

use std::sync::Arc;

use serde_json::Value;

use super::{
    CommandClass, CommandOrder, Decision, GateSetup, GateStage, Judged, LinksSeen,
    PermissionAnswer, Permit, ResolvedPath, RuleRef,
    call_input::CallInput,
    stage1_prefilter, stage2_pre_tool_use_hooks as stage2,
    stage3_rule_evaluation::{self as stage3, CallFacts, QuestionCause},
    stage4_permission_handler as stage4,
};
use crate::{
    digest::Digest,
    hook::HookVerdict,
    tool::{Access, ToolCall, ToolEffect, ToolSpec},
};

/// One call at the gate.
#[derive(Debug)]
pub struct Gate {
    call: ToolCall,
    access: Access,
    effect: ToolEffect,
    setup: GateSetup,
    hooks: stage2::Remembered,
    path: Option<ResolvedPath>,
    class: Option<CommandClass>,
    waiting: GateWait,
    /// Allow rules of which one is all that is missing.
    lacking: Vec<String>,
    /// What somebody allowed with another input, while that is judged; with the rule that had it asked.
    changed: Option<(PermissionAnswer, Option<RuleRef>)>,
    /// Whether a hook, a policy or a model answered in the place of a person.
    is_stood_in_for: bool,
}

/// What the gate waits for.
#[derive(Debug)]
enum GateWait {
    Hooks,
    Path,
    Judgement,
    Answer(Option<RuleRef>),
    Nothing,
}

/// What is needed next.
#[derive(Debug, PartialEq, Eq)]
pub enum GateStep {
    /// Run the PreToolUse hooks that match; answer with `Gate::hooks_answered`.
    RunHooks {
        /// What matchers are held against.
        subject: String,
        /// The input, JSON text of an object.
        input: Arc<str>,
    },
    /// Find out where a path leads; answer with [`Gate::path_resolved`].
    ResolvePath {
        /// As the model wrote it; `.` when a tool that reads was given none.
        given: String,
    },
    /// Judge a shell command; answer with [`Gate::command_judged`].
    Judge(Box<CommandOrder>),
    /// Ask somebody; answer with `Gate::permission_answered`.
    Ask {
        /// Why it is asked.
        reason: String,
        /// Allow rules that would let it pass next time, narrowest first.
        suggestions: Vec<String>,
    },
    /// It is decided. There is a permit exactly when the call is allowed.
    Decided {
        /// The decision, with its stage and its reason.
        decision: Decision,
        /// What a tool needs to run.
        permit: Option<Permit>,
    },
}

impl Gate {
    /// Begins with a call whose input was found to fit the tool's schema.
    pub fn open(call: ToolCall, spec: &ToolSpec, setup: &GateSetup) -> (Self, GateStep) {
        let mut gate = Self {
            call,
            access: spec.access.clone(),
            effect: spec.effect,
            setup: setup.clone(),
            hooks: stage2::Remembered::Nothing,
            path: None,
            class: None,
            waiting: GateWait::Nothing,
            lacking: Vec::new(),
            changed: None,
            is_stood_in_for: false,
        };
        let tool = gate.call.name.as_str();
        let step = if let Some(rule) = stage1_prefilter::denied(tool, setup) {
            let reason = format!("denied by rule {rule}");
            gate.deny(GateStage::PreFilter, Some(rule), reason)
        } else if stage2::needed(tool, setup) {
            gate.waiting = GateWait::Hooks;
            GateStep::RunHooks {
                subject: gate.call.name.to_string(),
                input: Arc::clone(&gate.call.input),
            }
        } else {
            gate.look_at_path()
        };
        (gate, step)
    }

    /// Returns where the path of the call leads, as an absolute path; `None` if that is in the workspace.
    pub(crate) fn blocked_path(&self) -> Option<&str> {
        let path = self.path.as_ref().filter(|it| !stage3::lies_in_workspace(it, &self.setup))?;
        Some(&path.real)
    }

    /// Returns the call as it would be run now. After hooks its input may be another; the caller checks that against
    /// the schema before it goes on.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Takes the merged answer of the hooks. Afterwards [`Gate::call`] holds the input that counts.
    pub(crate) fn hooks_answered(&mut self, verdict: &HookVerdict) -> GateStep {
        if !matches!(self.waiting, GateWait::Hooks) {
            return self.out_of_order();
        }
        match stage2::read(verdict) {
            Err(reason) => self.deny(GateStage::PreToolUseHooks, None, reason),
            Ok((remembered, input)) => {
                self.hooks = remembered;
                if let Some(input) = input {
                    self.call.input = input.into();
                }
                self.look_at_path()
            }
        }
    }

    /// Takes where the path leads.
    pub fn path_resolved(&mut self, path: ResolvedPath) -> GateStep {
        if !matches!(self.waiting, GateWait::Path) {
            return self.out_of_order();
        }
        self.path = Some(path);
        self.evaluate()
    }

    /// Takes what somebody answered. Another input that comes with a yes is judged first.
    pub(crate) fn permission_answered(&mut self, mut answer: PermissionAnswer) -> GateStep {
        match std::mem::replace(&mut self.waiting, GateWait::Nothing) {
            GateWait::Answer(rule) => {
                if let Some(input) = answer.input.take_if(|_| answer.allowed) {
                    self.call.input = input;
                    // What hooks wanted asked was asked.
                    self.hooks = stage2::Remembered::Nothing;
                    self.changed = Some((answer, rule));
                    return self.look_at_path();
                }
                let decision = stage4::answered(answer, rule);
                self.decide(decision)
            }
            GateWait::Hooks | GateWait::Path | GateWait::Judgement | GateWait::Nothing => {
                self.out_of_order()
            }
        }
    }

    /// Returns allow rules of which any one would let the call pass, narrowest first. Empty when it needs none, and
    /// when none would help: a deny or ask rule, a hook or a protected path decides.
    pub(crate) fn allow_rules(&self) -> Vec<String> {
        self.lacking.clone()
    }

    /// Returns the directory in which the call would run.
    pub fn cwd(&self) -> &Arc<str> {
        self.setup.cwd()
    }

    /// Returns the digest of what it decides by; see [`GateSetup::epoch`].
    pub fn epoch(&self) -> Digest {
        self.setup.epoch()
    }

    /// Returns what a shell command needs at least, once it was judged.
    pub(crate) fn class(&self) -> Option<CommandClass> {
        self.class
    }

    /// Whether somebody allowed the call with another input, which is being judged.
    pub(crate) fn has_leave(&self) -> bool {
        self.changed.is_some()
    }

    /// Notes that no person gives the answer that follows.
    pub(crate) fn stand_in(&mut self) {
        self.is_stood_in_for = true;
    }

    /// Returns whether this decision has a file changed that no person was asked about.
    pub(crate) fn is_unasked_change(&self, decision: &Decision) -> bool {
        let is_own = |it: &ResolvedPath| stage3::is_of_the_model(it, &self.setup);
        decision.allowed
            && (decision.stage == GateStage::RuleEvaluation || self.is_stood_in_for)
            && matches!(self.access, Access::WritePath { .. })
            && !self.path.as_ref().is_some_and(is_own)
    }

    /// Puts the call under another mode. Hooks, rules and paths are as they were.
    pub(crate) fn put_under(&mut self, setup: GateSetup) {
        self.setup = setup;
    }

    /// Completes the input of a call that is to be asked about with what only the harness knows.
    pub(crate) fn complete(&mut self, input: Arc<str>) {
        self.call.input = input;
    }

    /// Refuses a call that is to be asked about, for a reason that the model reads.
    pub(crate) fn refuse(&mut self, reason: &str) -> GateStep {
        self.deny(GateStage::RuleEvaluation, None, reason.to_owned())
    }

    /// Evaluates rules and mode once more.
    pub(crate) fn judge_again(&mut self) -> GateStep {
        self.evaluate()
    }

    fn look_at_path(&mut self) -> GateStep {
        let (field, missing) = match &self.access {
            Access::ReadPath { field } => (field, "."),
            Access::WritePath { field } => (field, ""),
            Access::Free | Access::Command { .. } | Access::Ask | Access::Person => {
                return self.evaluate();
            }
        };
        let input = CallInput::new(Arc::clone(&self.call.input));
        let given = match input.get(field) {
            None | Some(Value::Null) => missing,
            // Something that is not a text leads nowhere.
            Some(path) => path.as_str().unwrap_or_default(),
        };
        let given = given.to_owned();
        self.waiting = GateWait::Path;
        GateStep::ResolvePath { given }
    }

    /// Takes what a command was judged to be.
    pub fn command_judged(&mut self, judged: Judged) -> GateStep {
        if !matches!(self.waiting, GateWait::Judgement) {
            return self.out_of_order();
        }
        self.conclude(judged)
    }

    fn evaluate(&mut self) -> GateStep {
        if matches!(self.access, Access::Command { .. }) {
            self.waiting = GateWait::Judgement;
            return GateStep::Judge(Box::new(CommandOrder {
                tool: self.call.name.clone(),
                access: self.access.clone(),
                effect: self.effect,
                input: Arc::clone(&self.call.input),
                hooks: self.hooks.clone(),
                setup: self.setup.clone(),
            }));
        }
        let input = CallInput::new(Arc::clone(&self.call.input));
        let facts = CallFacts {
            tool: self.call.name.as_str(),
            access: &self.access,
            effect: self.effect,
            input: &input,
            path: self.path.as_ref(),
            hooks: &self.hooks,
        };
        let found = stage3::evaluate(&facts, None, &self.setup);
        let stage3::RuleOutcome { answer, rule, reason, cause, wants_rule } = found;
        let suggestions = match cause == Some(QuestionCause::Confirmation) {
            // No rule has the next one pass.
            true => Vec::new(),
            false => stage4::suggestions(&self.call, &self.access, self.path.as_ref()),
        };
        let links = LinksSeen::default();
        let class = None;
        self.conclude(Judged { answer, rule, reason, cause, class, suggestions, wants_rule, links })
    }

    fn conclude(&mut self, judged: Judged) -> GateStep {
        let Judged { answer, rule, reason, cause, class, suggestions, wants_rule, links: _ } =
            judged;
        self.class = class;
        if let Some((given, asked_by)) = self.changed.take() {
            let is_settled = match answer {
                stage3::RuleVerdict::Allow => true,
                stage3::RuleVerdict::Deny => false,
                // Somebody was asked, and that is all that these want.
                stage3::RuleVerdict::Ask => rule.is_some() || wants_rule || cause.is_some(),
            };
            if is_settled {
                let decision = stage4::answered(given, asked_by);
                return self.decide(decision);
            }
            let reason = format!("the changed input may not run: {reason}");
            return self.deny(GateStage::PermissionHandler, rule, reason);
        }
        if wants_rule {
            self.lacking.clone_from(&suggestions);
        }
        let allowed = match answer {
            stage3::RuleVerdict::Allow => true,
            stage3::RuleVerdict::Deny => false,
            stage3::RuleVerdict::Ask => return self.ask(reason, rule, suggestions),
        };
        let stage = GateStage::RuleEvaluation;
        self.decide(Decision { allowed, stage, rule, reason, class })
    }

    fn ask(&mut self, reason: String, rule: Option<RuleRef>, suggestions: Vec<String>) -> GateStep {
        if !self.setup.may_ask() {
            return self.decide(stage4::without_handler(&reason, rule));
        }
        let reason = match self.class {
            Some(class) => format!("{reason} (class: {class})"),
            None => reason,
        };
        self.waiting = GateWait::Answer(rule);
        GateStep::Ask { reason, suggestions }
    }

    fn deny(&mut self, stage: GateStage, rule: Option<RuleRef>, reason: String) -> GateStep {
        self.decide(Decision { allowed: false, stage, rule, reason, class: None })
    }

    fn decide(&mut self, decision: Decision) -> GateStep {
        self.waiting = GateWait::Nothing;
        let decision = Decision { class: self.class, ..decision };
        let permit = decision.allowed.then(|| {
            let hidden = match self.access {
                Access::ReadPath { .. } => self.setup.hidden(self.path.as_ref()),
                _ => Arc::default(),
            };
            Permit::issue(self.call.clone(), self.path.clone(), hidden)
        });
        GateStep::Decided { decision, permit }
    }

    /// An answer to a question that is not open changes nothing and permits nothing.
    fn out_of_order(&mut self) -> GateStep {
        let reason = "the gate was answered out of order".into();
        self.deny(GateStage::PermissionHandler, None, reason)
    }
}

#[cfg(test)]
mod tests;
