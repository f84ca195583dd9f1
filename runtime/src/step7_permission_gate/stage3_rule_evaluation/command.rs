//! Shell commands: what rules and the mode say about the parts (cases A10).

use super::{Evaluated, Facts, PLANNED, RuleVerdict, plain, ruled};
use crate::{
    permission::{PermissionMode, RuleKind},
    sandbox::{SandboxNetwork, is_excluded},
    step7_permission_gate::{
        GateSetup, RuleRef,
        command::{Changes, Named, Part, ShellCommand, Target, edits, reads_only},
        path_rule::escape,
        protected::{is_protected, may_be_protected},
        rule_book::Subject,
        shell::Fault,
        stage2_pre_tool_use_hooks::Remembered,
    },
};

/// Bytes of a part that a reason shows.
const SHOWN: usize = 160;

/// Files for which a rule is named.
const MAX_WRITES: usize = 3;

/// Why a rule for the whole tool does not cover a part where others deny or ask about commands.
const UNSEEN: &str = "it runs what cannot be seen, and rules deny or ask about commands";

/// The answer for a command that no rule denies.
pub(super) fn evaluate(
    facts: &Facts<'_>,
    command: &ShellCommand,
    subject: &Subject<'_>,
    setup: &GateSetup,
) -> Evaluated {
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
    if let Some(rule) = book.first(RuleKind::Ask, subject) {
        return ruled(RuleVerdict::Ask, "to be asked", rule);
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
        return match bypasses && !book.restricts(facts.tool) && !book.denies_paths() {
            true => plain(RuleVerdict::Allow, "the mode lets it pass"),
            false => plain(RuleVerdict::Ask, &format!("the command cannot be judged: {why}")),
        };
    }
    if bypasses && command.is_unseen() && book.restricts(facts.tool) {
        return plain(RuleVerdict::Ask, &format!("the command cannot be judged: {UNSEEN}"));
    }
    if bypasses {
        return plain(RuleVerdict::Allow, "the mode lets it pass");
    }
    let uncovered = match covered(facts, command, setup) {
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
        PermissionMode::Plan => plain(RuleVerdict::Ask, PLANNED),
        _ if *facts.hooks == Remembered::Allow => {
            plain(RuleVerdict::Allow, "a PreToolUse hook allowed it")
        }
        _ if is_confined(facts, command, setup) => {
            let network = match setup.settings().sandbox.network {
                SandboxNetwork::Off => "off",
                SandboxNetwork::Open => "open",
            };
            plain(RuleVerdict::Allow, &format!("it runs in the sandbox (network {network})"))
        }
        _ => {
            let wants_rule = lacks_one(facts.tool, command, setup);
            let reason = uncovered.words(facts.tool, command, setup);
            Evaluated { wants_rule, ..plain(RuleVerdict::Ask, &reason) }
        }
    }
}

/// Whether the sandbox holds what no rule allows. Code that is not in the text may still not do what rules are about.
fn is_confined(facts: &Facts<'_>, command: &ShellCommand, setup: &GateSetup) -> bool {
    let sandbox = &setup.settings().sandbox;
    let book = setup.book();
    let is_ruled = book.restricts(facts.tool) || book.denies_paths();
    sandbox.enabled
        && sandbox.auto_allow
        && facts.tool == "Bash"
        && !is_excluded(&sandbox.excluded, command.raw())
        && !(is_ruled && command.is_unseen())
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
    let anywhere = command.writes_anywhere().then_some("nobody knows where a part of it writes");
    command.fault().map(Fault::words).or(placeless).or(nameless).or(relinked).or(anywhere)
}

/// What no rule covers.
enum Uncovered<'a> {
    Part(&'a Part),
    Write(&'a Named),
}

/// The first rule that it took, when every part and every write is covered.
fn covered<'a>(
    facts: &Facts<'_>,
    command: &'a ShellCommand,
    setup: &GateSetup,
) -> Result<Option<RuleRef>, Uncovered<'a>> {
    let mut first = None;
    for (part, changes) in command.changes().filter(|it| !it.0.is_hidden) {
        match covers(facts.tool, part, command, setup) {
            Some(rule) => first = first.or(rule),
            None => return Err(Uncovered::Part(part)),
        }
        for file in &changes.writes {
            match accepts(facts.tool, file, part, command, setup) {
                Some(rule) => first = first.or(rule),
                None => return Err(Uncovered::Write(file)),
            }
        }
    }
    Ok(first)
}

/// Whether a rule for a single part is all that is missing.
fn lacks_one(tool: &str, command: &ShellCommand, setup: &GateSetup) -> bool {
    let visible = || command.changes().filter(|it| !it.0.is_hidden);
    let n_uncovered = visible().filter(|it| covers(tool, it.0, command, setup).is_none()).count();
    n_uncovered + refused(tool, command, setup).count() == 1
}

/// The files that it writes and nothing accepts.
fn refused<'a>(
    tool: &'a str,
    command: &'a ShellCommand,
    setup: &'a GateSetup,
) -> impl Iterator<Item = (&'a Part, &'a Named)> {
    let visible = command.changes().filter(|it| !it.0.is_hidden);
    let writes = visible.flat_map(|(part, it)| it.writes.iter().map(move |it| (part, it)));
    writes.filter(|(part, it)| accepts(tool, it, part, command, setup).is_none())
}

/// What covers a part: `Some(None)` where it needs no rule.
fn covers(
    tool: &str,
    part: &Part,
    command: &ShellCommand,
    setup: &GateSetup,
) -> Option<Option<RuleRef>> {
    let around = command.around();
    // What is written by `tee` is judged as a write.
    let only_writes = part.name() == "tee"
        && part.fault.is_none()
        && part.assignments.is_empty()
        && !part.is_fed
        && part
            .args()
            .iter()
            .all(|it| !it.text.starts_with('-') || matches!(&*it.text, "-a" | "--append" | "-i"));
    if reads_only(part, around) || only_writes {
        return Some(None);
    }
    if setup.mode() == PermissionMode::AcceptEdits && edits::is_accepted(part, around) {
        return Some(None);
    }
    if setup.mode() == PermissionMode::Plan {
        return None;
    }
    setup.book().covering(tool, part, around).map(Some)
}

/// What accepts a file that is written.
fn accepts(
    tool: &str,
    file: &Named,
    part: &Part,
    command: &ShellCommand,
    setup: &GateSetup,
) -> Option<Option<RuleRef>> {
    if edits::is_device(file) {
        return Some(None);
    }
    let around = command.around();
    if !is_acceptable(file, part) || setup.mode() == PermissionMode::Plan {
        return None;
    }
    if file.is_inside(&part.dirs, around) {
        if setup.mode() == PermissionMode::AcceptEdits {
            return Some(None);
        }
        // Who allows every command allows it to write where it works.
        if let Some(rule) = setup.book().allows_whole(tool, part) {
            return Some(Some(rule));
        }
    }
    let mut rule = None;
    for path in &file.paths {
        rule = Some(setup.book().lets_edit(path)?);
    }
    rule.map(Some)
}

/// Whether a rule may accept a file: it is known where it is, and is no peer.
fn is_acceptable(file: &Named, part: &Part) -> bool {
    let is_known = matches!(file.target, Target::Known(_));
    let is_placed = file.target.text().starts_with('/') || !part.dirs.is_unknown();
    let is_net = |it: &String| it.starts_with("/dev/tcp/") || it.starts_with("/dev/udp/");
    is_known && is_placed && !file.paths.iter().any(is_net)
}

fn writes_protected(command: &ShellCommand, setup: &GateSetup) -> bool {
    let transcripts = setup.transcripts();
    let is_one = |changes: &Changes| {
        changes.altered().chain(&changes.links).chain(&changes.suspected).any(|it| {
            let is_open = it.target != Target::Known(it.target.text().to_owned());
            it.paths.iter().any(|path| {
                is_protected(path) || transcripts.hold(path) || is_open && may_be_protected(path)
            })
        })
    };
    command.changes().any(|(_, it)| is_one(it))
}

/// Allow rules that would let a command pass next time.
pub(in super::super) fn suggestions(
    tool: &str,
    command: &ShellCommand,
    setup: &GateSetup,
) -> Vec<String> {
    if command.fault().is_some() {
        return Vec::new();
    }
    let specs = command.suggestions(|it| covers(tool, it, command, setup).is_some());
    let mut rules: Vec<String> = specs.into_iter().map(|it| format!("{tool}({it})")).collect();
    if setup.mode() != PermissionMode::Plan {
        let files = refused(tool, command, setup).filter(|(part, it)| is_acceptable(it, part));
        // Where it may be one of several, no rule for one of them is enough.
        let paths =
            files.filter_map(|(_, it)| if let [path] = &it.paths[..] { Some(path) } else { None });
        rules.extend(paths.take(MAX_WRITES).map(|it| format!("Edit(/{})", escape(it))));
    }
    rules
}

impl Uncovered<'_> {
    /// In words, with what would cover it.
    fn words(&self, tool: &str, command: &ShellCommand, setup: &GateSetup) -> String {
        let clipped = |text: &str| match text.len() > SHOWN {
            true => format!("{}...", &text[..text.floor_char_boundary(SHOWN)]),
            false => text.to_owned(),
        };
        match self {
            Self::Write(file) => {
                let name = clipped(file.target.text());
                let rules = suggestions(tool, command, setup);
                let rule = rules.iter().find(|it| it.starts_with("Edit(")).map(|it| clipped(it));
                let rule = rule.unwrap_or_else(|| "Edit(...) for that file".to_owned());
                format!("no rule allows it to write {name}; a rule that would: {rule}")
            }
            Self::Part(part) => {
                let rules = suggestions(tool, command, setup);
                let shown =
                    if part.text.is_empty() { "what it sets or reads" } else { part.text.as_str() };
                let shown = clipped(shown);
                let is_hidden = part.is_unseen && setup.book().restricts(tool);
                let why = if is_hidden { format!("{UNSEEN}; ") } else { String::new() };
                match rules.get(..2).unwrap_or(&rules) {
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
