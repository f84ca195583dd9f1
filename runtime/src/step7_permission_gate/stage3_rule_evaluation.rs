//! Stage 3: rules, then the mode.
//!
//! First hit decides: deny rules, what can never pass, what can never pass unasked, ask rules, the
//! mode, allow rules.
//! How specific a rule is never matters.

mod command;
mod coverage;

pub(super) use coverage::Coverage;

use serde_json::Value;

use super::{
    GateSetup, PathKind, ResolvedPath, RuleRef,
    call_input::CallInput,
    command::{Follower, ShellCommand},
    mode::{self, ModeDecision},
    path_rule::lies_in,
    protected::is_protected,
    rule_book::Subject,
    stage2_pre_tool_use_hooks::Remembered,
    web_hosts::{WEB_FETCH, is_documentation},
};
use crate::{
    permission::{PermissionMode, RuleKind},
    tool::{ASK_USER_QUESTION, Access, ToolEffect},
};

/// Why a change is asked about in the mode `plan`.
const PLANNED: &str = "in plan mode nothing is changed unasked";

/// Why a call is asked about that only a person decides.
const PERSONAL: &str = "only a person decides about it";

/// Why a change of a file is asked about that would pass otherwise.
const CONFIRMED: &str = "as many files as may be have been changed in this turn without a question";

/// What rules and mode say. Stricter ones are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleVerdict {
    Deny,
    Ask,
    Allow,
}

/// What a question is about that no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionCause {
    /// In the mode `plan` nothing is changed unasked.
    Plan,
    /// Only a person decides about the call.
    Person,
    /// As many files as pass without a question have been changed in the turn.
    Confirmation,
}

/// The answer with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleOutcome {
    pub(super) answer: RuleVerdict,
    pub(super) rule: Option<RuleRef>,
    pub(super) reason: String,
    /// Why it is asked, where an answer of somebody is all that it wants.
    pub(super) cause: Option<QuestionCause>,
    /// Not allowed for want of an allow rule, and for nothing else.
    pub(super) wants_rule: bool,
}

/// One call, with everything that was found out about it.
#[derive(Debug)]
pub(super) struct CallFacts<'a> {
    pub(super) tool: &'a str,
    pub(super) access: &'a Access,
    pub(super) effect: ToolEffect,
    pub(super) input: &'a CallInput,
    pub(super) path: Option<&'a ResolvedPath>,
    pub(super) hooks: &'a Remembered,
}

/// Returns the shell command of a call, if it runs one. Where it runs is the same for the gates around this one: they
/// differ in what rules mean.
pub(super) fn command_of(
    access: &Access,
    input: &CallInput,
    setup: &GateSetup,
    links: Follower,
) -> Option<ShellCommand> {
    let Access::Command { field } = access else { return None };
    let raw = input.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
    Some(ShellCommand::read(raw, setup.surroundings(links)))
}

/// Returns the stricter of this gate's answer and its parent's.
pub(super) fn evaluate(
    facts: &CallFacts<'_>,
    command: Option<&Coverage<'_>>,
    setup: &GateSetup,
) -> RuleOutcome {
    let mut own = evaluate_alone(facts, command, setup);
    if own.answer == RuleVerdict::Ask && setup.mode() == PermissionMode::DontAsk {
        own.answer = RuleVerdict::Deny;
        own.reason = format!("{}, and the mode dontAsk denies what would be asked", own.reason);
    }
    let Some(parent) = setup.parent() else { return own };
    let of_parent = command.map(|it| it.for_gate(parent));
    let parents = evaluate(facts, of_parent.as_ref(), parent);
    // A rule helps where it lacks; the other gate must let the call pass, or lack it as well.
    let would_pass = |it: &RuleOutcome| it.wants_rule || it.answer == RuleVerdict::Allow;
    let wants_rule = would_pass(&own) && would_pass(&parents);
    let stricter = if parents.answer < own.answer { parents } else { own };
    RuleOutcome { wants_rule: wants_rule && stricter.wants_rule, ..stricter }
}

fn evaluate_alone(
    facts: &CallFacts<'_>,
    coverage: Option<&Coverage<'_>>,
    setup: &GateSetup,
) -> RuleOutcome {
    let command = coverage.map(Coverage::command);
    let subject = Subject {
        tool: facts.tool,
        access: facts.access,
        input: facts.input,
        path: facts.path,
        command,
    };
    let book = setup.book();
    if let Some(rule) = book.first(RuleKind::Deny, &subject) {
        return ruled(RuleVerdict::Deny, "denied", rule);
    }
    match facts.path.map(|it| it.kind) {
        Some(PathKind::Invalid) => return plain(RuleVerdict::Deny, "the path cannot be used"),
        Some(PathKind::Special) => {
            return plain(RuleVerdict::Deny, "the path is a device, FIFO or socket");
        }
        Some(PathKind::Missing | PathKind::File | PathKind::Directory) | None => {}
    }
    let isolation = setup.isolation();
    if let Some(why) = isolation.and_then(|it| it.refuses(facts.access, facts.path, command)) {
        return plain(RuleVerdict::Deny, why);
    }
    // Nobody can be asked about this: the one that said yes would lose what is recorded from then
    // on.
    if setup.transcripts().are_changed(written(facts), command) {
        return plain(RuleVerdict::Deny, "it would change the transcript of this session");
    }
    if let Some(coverage) = coverage {
        return command::evaluate(facts, coverage, &subject);
    }
    let is_note = facts.path.is_some_and(|it| is_note(it, setup));
    if !is_note && setup.is_for_notes(facts.tool) {
        return plain(RuleVerdict::Deny, "the agent has this tool for its notes alone");
    }
    let plans = setup.mode() == PermissionMode::Plan;
    let is_plan = plans && facts.path.is_some_and(|it| is_plan(it, setup));
    if !is_note && !is_plan && writes_protected(facts, setup) {
        return plain(RuleVerdict::Ask, "it writes to a protected path");
    }
    if let Some(rule) = book.first(RuleKind::Ask, &subject) {
        return ruled(RuleVerdict::Ask, "to be asked", rule);
    }
    if let Some(rule) = book.first_unknown(&subject) {
        return ruled(RuleVerdict::Ask, "asked because this specifier is not understood:", rule);
    }
    if *facts.access == Access::Person {
        return if is_answered(facts, setup) {
            plain(RuleVerdict::Allow, "a PreToolUse hook allowed it and gave its input")
        } else {
            asked(QuestionCause::Person, PERSONAL)
        };
    }
    if let Remembered::Ask(reason) = facts.hooks {
        return plain(RuleVerdict::Ask, &format!("a PreToolUse hook wants it asked: {reason}"));
    }
    let is_file = matches!(facts.access, Access::ReadPath { .. } | Access::WritePath { .. });
    if is_note && is_file && !plans {
        return plain(RuleVerdict::Allow, "it is a note of the model");
    }
    if is_plan && is_file {
        return plain(RuleVerdict::Allow, "it is the plan of the session");
    }
    let found = evaluate_leave(facts, &subject, setup);
    // In this mode a model would decide about what no rule allows.
    let passes = found.answer == RuleVerdict::Allow
        || found.wants_rule && setup.mode() == PermissionMode::Auto;
    match setup.used_up_changes() {
        Some(limit) if passes && written(facts).is_some() => {
            let reason = format!("{CONFIRMED} ({limit}, `ennead.codeEdit`)");
            asked(QuestionCause::Confirmation, &reason)
        }
        _ => found,
    }
}

/// What gives leave where nothing denies and nothing has to be asked: the mode, allow rules, hooks.
fn evaluate_leave(facts: &CallFacts<'_>, subject: &Subject<'_>, setup: &GateSetup) -> RuleOutcome {
    let in_workspace =
        facts.path.is_some_and(|it| lies_in_workspace(it, setup) || is_kept(facts, it, setup));
    let otherwise = match mode::says(setup.mode(), facts.access, facts.effect, in_workspace) {
        ModeDecision::Allow => return plain(RuleVerdict::Allow, "the mode lets it pass"),
        ModeDecision::Ask => return asked_by_plan(),
        ModeDecision::Rules { otherwise } => otherwise,
    };
    if let Some(rule) = setup.book().first(RuleKind::Allow, subject) {
        return ruled(RuleVerdict::Allow, "allowed", rule);
    }
    if matches!(facts.hooks, Remembered::Allow { .. }) {
        return plain(RuleVerdict::Allow, "a PreToolUse hook allowed it");
    }
    if reads_documentation(facts) {
        return plain(RuleVerdict::Allow, "it reads a host of documentation");
    }
    match (otherwise, facts.path) {
        (true, Some(_)) => plain(RuleVerdict::Allow, "it reads inside the workspace"),
        (true, None) => plain(RuleVerdict::Allow, "the tool needs no permission"),
        (false, Some(_)) if !in_workspace => unruled("the path is outside the workspace"),
        (false, _) => unruled("no rule allows it"),
    }
}

/// Whether it fetches a page from a host that needs no rule.
fn reads_documentation(facts: &CallFacts<'_>) -> bool {
    facts.tool == WEB_FETCH
        && facts.effect == ToolEffect::ReadOnly
        && facts.input.get("url").and_then(Value::as_str).is_some_and(is_documentation)
}

/// Whether a hook gave what a person would: answers to the questions of the model, or a plan that is approved.
fn is_answered(facts: &CallFacts<'_>, setup: &GateSetup) -> bool {
    if *facts.hooks != (Remembered::Allow { answers: true }) {
        return false;
    }
    let holds_text =
        |field| facts.input.get(field).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    match facts.tool {
        ASK_USER_QUESTION => {
            let answers = facts.input.get("answers").and_then(Value::as_object);
            answers.is_some_and(|it| !it.is_empty()) || holds_text("response")
        }
        "ExitPlanMode" => setup.mode() == PermissionMode::Plan && holds_text("plan"),
        _ => false,
    }
}

/// Returns whether a path holds what the model keeps for itself: the plan of the session, or its notes.
pub(super) fn is_of_the_model(path: &ResolvedPath, setup: &GateSetup) -> bool {
    is_note(path, setup) || setup.mode() == PermissionMode::Plan && is_plan(path, setup)
}

/// The path that a tool writes to.
fn written<'a>(facts: &CallFacts<'a>) -> Option<&'a ResolvedPath> {
    facts.path.filter(|_| matches!(facts.access, Access::WritePath { .. }))
}

fn writes_protected(facts: &CallFacts<'_>, setup: &GateSetup) -> bool {
    let is_one = |path: &str| is_protected(path) || setup.transcripts().hold(path);
    written(facts).is_some_and(|it| {
        is_one(&it.lexical) || is_one(&it.real) || it.passed.iter().any(|passed| is_one(passed))
    })
}

pub(super) fn lies_in_workspace(path: &ResolvedPath, setup: &GateSetup) -> bool {
    let inside = |path: &str| setup.directories().iter().any(|it| lies_in(path, it));
    inside(&path.lexical) && inside(&path.real)
}

/// Whether it reads what the harness keeps for the model, or the plan of the session. Only where the path
/// really leads counts.
fn is_kept(facts: &CallFacts<'_>, path: &ResolvedPath, setup: &GateSetup) -> bool {
    let reads = matches!(facts.access, Access::ReadPath { .. });
    reads && (setup.kept().iter().any(|it| lies_in(&path.real, it)) || is_plan(path, setup))
}

/// Whether it is the file that holds the plan of the session, and no link leads there or elsewhere.
fn is_plan(path: &ResolvedPath, setup: &GateSetup) -> bool {
    matches!(path.kind, PathKind::File | PathKind::Missing)
        && path.passed.iter().chain([&path.lexical, &path.real]).all(|it| setup.plan().contains(it))
}

/// Whether it is a Markdown file in the directory of the model's notes, with no link on its way out.
fn is_note(path: &ResolvedPath, setup: &GateSetup) -> bool {
    let is_inside = |it: &str| setup.notes().iter().any(|notes| lies_in(it, notes));
    matches!(path.kind, PathKind::File | PathKind::Missing)
        && path.real.ends_with(".md")
        && is_inside(&path.lexical)
        && is_inside(&path.real)
        && path.passed.iter().all(|it| is_inside(it))
}

fn ruled(answer: RuleVerdict, what: &str, rule: RuleRef) -> RuleOutcome {
    let reason = match what.strip_suffix(':') {
        Some(what) => format!("{what}: {rule}"),
        None => format!("{what} by rule {rule}"),
    };
    RuleOutcome { answer, reason, rule: Some(rule), cause: None, wants_rule: false }
}

/// Asked because no rule allows it.
fn unruled(reason: &str) -> RuleOutcome {
    RuleOutcome { wants_rule: true, ..plain(RuleVerdict::Ask, reason) }
}

/// Asked in the mode `plan`.
fn asked_by_plan() -> RuleOutcome {
    asked(QuestionCause::Plan, PLANNED)
}

/// Asked for this cause, which an answer settles.
fn asked(cause: QuestionCause, reason: &str) -> RuleOutcome {
    RuleOutcome { cause: Some(cause), ..plain(RuleVerdict::Ask, reason) }
}

fn plain(answer: RuleVerdict, reason: &str) -> RuleOutcome {
    RuleOutcome { answer, rule: None, reason: reason.into(), cause: None, wants_rule: false }
}
