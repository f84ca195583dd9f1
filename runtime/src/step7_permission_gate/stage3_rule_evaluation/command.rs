//! Shell commands: what rules and the mode say about the parts (cases A10).

use super::{
    CallFacts, RuleOutcome, RuleVerdict, asked_by_plan,
    coverage::{Coverage, Uncovered},
    plain, ruled,
};
use crate::{
    permission::{PermissionMode, RuleKind},
    sandbox::{SandboxNetwork, is_excluded},
    step7_permission_gate::{
        GateSetup,
        command::{Changes, NamedFile, PathTarget, ShellCommand},
        protected::{is_protected, may_be_protected},
        rule_book::Subject,
        shell::Fault,
        stage2_pre_tool_use_hooks::Remembered,
    },
};

/// Bytes of a part that a reason shows.
const SHOWN: usize = 160;

/// The field with which a call asks for its command to run outside the sandbox.
const LEAVES: &str = "dangerouslyDisableSandbox";

/// Why a rule for the whole tool does not cover a part where others deny or ask about commands.
const UNSEEN: &str = "it runs what cannot be seen, and rules deny or ask about commands";

/// Returns the answer for a command that no rule denies.
pub(super) fn evaluate(
    facts: &CallFacts<'_>,
    coverage: &Coverage<'_>,
    subject: &Subject<'_>,
) -> RuleOutcome {
    let Coverage { command, setup, .. } = *coverage;
    let book = setup.book();
    if command.changes().any(|(_, it)| it.is_critical) {
        return plain(RuleVerdict::Ask, "it removes a directory that much depends on");
    }
    if writes_protected(command, setup) {
        return plain(RuleVerdict::Ask, "it writes to a protected path");
    }
    if let Some(rule) = book.denies_suspected(command) {
        return ruled(RuleVerdict::Ask, "asked because it may change a file of this rule:", rule);
    }
    if let Some(rule) = book.denies_below(command) {
        let why = "asked because it reads a directory in which there may be a file of this rule:";
        return ruled(RuleVerdict::Ask, why, rule);
    }
    if let Some(rule) = book.denies_changes_below(command) {
        let why = "asked because it may change a file of this rule, in a directory that it names:";
        return ruled(RuleVerdict::Ask, why, rule);
    }
    if let Some(rule) = book.first(RuleKind::Ask, subject) {
        return ruled(RuleVerdict::Ask, "to be asked", rule);
    }
    if let Some(rule) = book.may_restrict(facts.tool, command) {
        let why = "asked because it may become what this rule is about:";
        return ruled(RuleVerdict::Ask, why, rule);
    }
    if let Some(rule) = book.first_unknown(subject) {
        return ruled(RuleVerdict::Ask, "asked because this specifier is not understood:", rule);
    }
    if let Remembered::Ask(reason) = facts.hooks {
        return plain(RuleVerdict::Ask, &format!("a PreToolUse hook wants it asked: {reason}"));
    }
    if command.around().links.is_cut() {
        return plain(RuleVerdict::Ask, "it names more paths than can be followed");
    }
    let bypasses = setup.mode() == PermissionMode::BypassPermissions;
    if let Some(why) = unclear(command, setup) {
        return if bypasses && !book.restricts(facts.tool) && !book.denies_paths() {
            plain(RuleVerdict::Allow, "the mode lets it pass")
        } else {
            plain(RuleVerdict::Ask, &format!("the command cannot be judged: {why}"))
        };
    }
    if bypasses && command.is_unseen() && book.restricts(facts.tool) {
        return plain(RuleVerdict::Ask, &format!("the command cannot be judged: {UNSEEN}"));
    }
    if bypasses {
        return plain(RuleVerdict::Allow, "the mode lets it pass");
    }
    let uncovered = match coverage.of_all() {
        Ok(Some(rule)) => return ruled(RuleVerdict::Allow, "allowed", rule),
        Ok(None) => {
            return plain(
                RuleVerdict::Allow,
                "every part of it only reads, or edits the workspace",
            );
        }
        Err(uncovered) => uncovered,
    };
    match setup.mode() {
        PermissionMode::Plan => asked_by_plan(),
        _ if matches!(facts.hooks, Remembered::Allow { .. }) => {
            plain(RuleVerdict::Allow, "a PreToolUse hook allowed it")
        }
        _ if is_confined(facts, command, setup) => {
            let network = match setup.settings().sandbox.network {
                SandboxNetwork::Off => "off",
                SandboxNetwork::Open => "open",
                SandboxNetwork::Listed => "open for listed hosts",
            };
            plain(RuleVerdict::Allow, &format!("it runs in the sandbox (network {network})"))
        }
        _ => {
            let wants_rule = coverage.lacks_one();
            let mut reason = uncovered.words(coverage);
            if leaves_sandbox(facts, setup) {
                reason.insert_str(0, "it asks to run outside the sandbox, and ");
            }
            RuleOutcome { wants_rule, ..plain(RuleVerdict::Ask, &reason) }
        }
    }
}

/// Whether the sandbox holds what no rule allows. Code that is not in the text may still not do what rules are about.
fn is_confined(facts: &CallFacts<'_>, command: &ShellCommand, setup: &GateSetup) -> bool {
    let sandbox = &setup.settings().sandbox;
    let book = setup.book();
    let is_ruled = book.restricts(facts.tool) || book.denies_paths();
    sandbox.enabled
        && sandbox.auto_allow
        && facts.tool == "Bash"
        && !leaves_sandbox(facts, setup)
        && !is_excluded(&sandbox.excluded, command.raw())
        && !(is_ruled && command.is_unseen())
}

/// Whether the command runs outside the sandbox because the call asks for that.
fn leaves_sandbox(facts: &CallFacts<'_>, setup: &GateSetup) -> bool {
    let sandbox = &setup.settings().sandbox;
    let asks = || facts.input.get(LEAVES).and_then(serde_json::Value::as_bool) == Some(true);
    sandbox.enabled && sandbox.allow_unsandboxed && asks()
}

/// Why the parts do not show what the command does.
fn unclear(command: &ShellCommand, setup: &GateSetup) -> Option<&'static str> {
    let is_placeless = setup.book().denies_paths() && command.is_placeless();
    let placeless = is_placeless.then_some("nobody knows in which directory a part of it runs");
    let is_nameless = setup.book().denies_reads() && command.is_nameless();
    let nameless = is_nameless.then_some("nobody knows which file a part of it reads");
    let is_relinked = setup.book().denies_paths()
        && (command.is_relinked() || setup.book().denies_inside(command));
    let relinked = is_relinked.then_some("what its paths mean changes while it runs");
    let is_unpacked = setup.book().denies_paths() && command.enters_unpacked();
    let unpacked =
        is_unpacked.then_some("it opens what it unpacks, checks out or moves there itself");
    let anywhere = command.writes_anywhere().then_some("nobody knows where a part of it writes");
    let is_led_on = setup.book().denies_paths() && command.follows_links();
    let led_on = is_led_on.then_some("it follows links that it meets, and rules deny files");
    let alters = command.alters_through_links();
    let altered = alters.then_some("it may change files after links that it meets");
    let why = command.fault().map(Fault::words).or(placeless).or(nameless).or(relinked);
    let why = why.or(unpacked);
    why.or(anywhere).or(led_on).or(altered)
}

fn writes_protected(command: &ShellCommand, setup: &GateSetup) -> bool {
    let transcripts = setup.transcripts();
    let is_one = |file: &NamedFile, is_removed: bool| {
        let is_open = !matches!(file.target, PathTarget::Known(_));
        file.paths.iter().any(|path| {
            is_protected(path)
                || transcripts.hold(path)
                || is_open && may_be_protected(path, is_removed)
        })
    };
    let has_one = |changes: &Changes| {
        let written = changes.changes.iter().chain(&changes.writes);
        let mut written = written.chain(&changes.links).chain(&changes.suspected);
        written.any(|it| is_one(it, false)) || changes.removes.iter().any(|it| is_one(it, true))
    };
    command.changes().any(|(_, it)| has_one(it))
}

impl Uncovered<'_> {
    /// In words, with what would cover it.
    fn words(&self, coverage: &Coverage<'_>) -> String {
        let (tool, setup) = (coverage.tool, coverage.setup);
        let clipped = |text: &str| {
            if text.len() > SHOWN {
                format!("{}...", &text[..text.floor_char_boundary(SHOWN)])
            } else {
                text.to_owned()
            }
        };
        let by_file = |verb: &str, head: &str, file: &NamedFile| {
            let name = clipped(file.target.text());
            let rules = coverage.suggestions();
            let rule = rules.iter().find(|it| it.starts_with(head)).map(|it| clipped(it));
            let rule = rule.unwrap_or_else(|| format!("{head}...) for that file"));
            format!("no rule allows it to {verb} {name}; a rule that would: {rule}")
        };
        match self {
            Self::Write(file) => by_file("write", "Edit(", file),
            Self::Read(file) => by_file("read", "Read(", file),
            Self::Part(part) => {
                let rules = coverage.suggestions();
                let shown =
                    if part.text.is_empty() { "what it sets or reads" } else { part.text.as_str() };
                let shown = clipped(shown);
                let is_hidden = part.is_unseen && setup.book().restricts(tool);
                let why = if is_hidden { format!("{UNSEEN}; ") } else { String::new() };
                match rules.get(..2).unwrap_or(&rules) {
                    // Assignments, functions: what a rule with a text cannot name.
                    [] if part.fault.is_none() && !setup.book().restricts(tool) => {
                        format!(
                            "{why}no rule allows it: `{shown}`; only {tool}, for every command, would"
                        )
                    }
                    [] => format!("{why}no rule allows it: `{shown}`"),
                    rules => format!(
                        "{why}no rule allows it: `{shown}`; a rule that would: {}",
                        clipped(&rules.join(" or "))
                    ),
                }
            }
        }
    }
}
