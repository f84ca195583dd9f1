//! Whether a shell command may run: the part of the gate whose work grows with what the model
//! wrote.
//!
//! The driver of the gate does it on a thread where it delays no other session. It is a pure
//! function of the order, so a replay does it again.

use std::sync::Arc;

use super::{
    CommandClass, Decision, GateSetup, GateStage, LinksSeen, Look, RuleRef,
    call_input::CallInput,
    command::Follower,
    stage2_pre_tool_use_hooks::Remembered,
    stage3_rule_evaluation::{self as stage3, CallFacts, Coverage, QuestionCause, RuleVerdict},
};
use crate::{
    ids::ToolName,
    tool::{Access, ToolEffect},
};

/// Bytes of an input that are judged in place: well below a millisecond with the rules of a person.
const SHORT: usize = 1024;

/// Paths that are looked at in place for one command; each takes about a microsecond.
const LOOKS_IN_PLACE: usize = 256;

/// Paths that are looked at for one command at most. With more it is asked.
const LOOKS: usize = 20_000;

/// What a decision says whose judgement broke off.
const CRASHED: &str = "what judges commands crashed";

/// Everything that the judgement of one command needs.
#[derive(Clone, Debug)]
pub struct CommandOrder {
    pub(super) tool: ToolName,
    pub(super) access: Access,
    pub(super) effect: ToolEffect,
    pub(super) input: Arc<str>,
    pub(super) hooks: Remembered,
    pub(super) setup: GateSetup,
}

/// An order is for one input of one tool; the rules are those of the gate that made it.
impl PartialEq for CommandOrder {
    fn eq(&self, other: &Self) -> bool {
        self.tool == other.tool && self.input == other.input && self.hooks == other.hooks
    }
}

impl Eq for CommandOrder {}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub(super) answer: RuleVerdict,
    pub(super) rule: Option<RuleRef>,
    pub(super) reason: String,
    /// Why it is asked, where an answer of somebody is all that it wants.
    pub(super) cause: Option<QuestionCause>,
    pub(super) class: Option<CommandClass>,
    pub(super) suggestions: Vec<String>,
    /// Any one of the suggestions is all that is missing.
    pub(super) wants_rule: bool,
    /// Links that its paths lead through.
    pub(super) links: LinksSeen,
}

impl CommandOrder {
    /// Returns whether it is short enough to be judged where others wait.
    pub fn is_short(&self) -> bool {
        self.input.len() <= SHORT
    }

    /// Judges the command where others wait; `None` when it looks at more than that has time for.
    pub fn judge_in_place(&self, look: Look) -> Option<Judged> {
        let links = Follower::looking(look, LOOKS_IN_PLACE);
        let judged = self.judge_with(links.clone());
        (!links.is_cut()).then(|| self.repeated_with_all_links(judged, &links))
    }

    /// Judges the command, and follows its paths. Work is linear in its bytes, and in the number of rules.
    pub fn judge(&self, look: Look) -> Judged {
        let links = Follower::looking(look, LOOKS);
        self.repeated_with_all_links(self.judge_with(links.clone()), &links)
    }

    /// What links decide is decided by all of them at once: the order in which they were met does not
    /// matter, and a replay that is given them decides the same. Nearly always that is what was decided
    /// already.
    fn repeated_with_all_links(&self, judged: Judged, links: &Follower) -> Judged {
        if judged.links.is_empty() || links.is_repeated_by(judged.links.clone()) {
            judged
        } else {
            self.judge_again(judged.links)
        }
    }

    /// Judges the command with the links that were seen when it was judged first.
    pub(crate) fn judge_again(&self, seen: LinksSeen) -> Judged {
        self.judge_with(Follower::remembering(seen))
    }

    fn judge_with(&self, links: Follower) -> Judged {
        let input = CallInput::new(Arc::clone(&self.input));
        let facts = CallFacts {
            tool: self.tool.as_str(),
            access: &self.access,
            effect: self.effect,
            input: &input,
            path: None,
            hooks: &self.hooks,
        };
        let command = stage3::command_of(&self.access, &input, &self.setup, links.clone());
        let coverage = command.as_ref().map(|it| Coverage::new(facts.tool, it, &self.setup));
        let found = stage3::evaluate(&facts, coverage.as_ref(), &self.setup);
        let suggestions = match (&coverage, found.answer) {
            (Some(coverage), answer) if answer == RuleVerdict::Ask || found.wants_rule => {
                coverage.suggestions()
            }
            _ => Vec::new(),
        };
        Judged {
            answer: found.answer,
            rule: found.rule,
            reason: found.reason,
            cause: found.cause,
            class: command.map(|it| it.class()),
            wants_rule: found.wants_rule && !suggestions.is_empty(),
            suggestions,
            links: links.links(),
        }
    }
}

impl Judged {
    /// Returns the judgement of a command whose judging broke off: it is denied.
    pub fn crashed() -> Self {
        Self {
            answer: RuleVerdict::Deny,
            rule: None,
            reason: CRASHED.into(),
            cause: None,
            class: Some(CommandClass::Dangerous),
            suggestions: Vec::new(),
            wants_rule: false,
            links: LinksSeen::default(),
        }
    }

    /// Returns the links that were seen.
    pub(crate) fn links(&self) -> &LinksSeen {
        &self.links
    }

    /// Returns the judgement that led to a recorded decision which is not judged again: it broke off, or was made
    /// before commands had classes, by rules that are no longer the same. `was_asked` is whether somebody answered.
    pub(crate) fn recorded(decision: &Decision, was_asked: bool) -> Option<Self> {
        if decision.reason == CRASHED {
            return Some(Self::crashed());
        }
        if decision.class.is_some() {
            return None;
        }
        let nobody = ("permission was needed (", ") and nobody can be asked for it");
        let unanswered =
            decision.reason.strip_prefix(nobody.0).and_then(|it| it.strip_suffix(nobody.1));
        let is_by_rules = decision.stage == GateStage::RuleEvaluation;
        let (answer, reason) = match unanswered {
            Some(reason) => (RuleVerdict::Ask, reason),
            None if was_asked || !is_by_rules => (RuleVerdict::Ask, ""),
            None if decision.allowed => (RuleVerdict::Allow, decision.reason.as_str()),
            None => (RuleVerdict::Deny, decision.reason.as_str()),
        };
        let (rule, reason) = (decision.rule.clone(), reason.to_owned());
        Some(Self {
            answer,
            rule,
            reason,
            cause: None,
            class: None,
            suggestions: Vec::new(),
            wants_rule: false,
            links: LinksSeen::default(),
        })
    }
}
