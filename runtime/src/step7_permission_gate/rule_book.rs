//! The rules of a gate, read once and ready to match.
//!
//! Compiling patterns is expensive and matching is not: a book is made once per turn, and every
//! call looks things up in it.

mod specifiers;

use std::sync::Arc;

use serde_json::Value;

pub(super) use self::specifiers::{CallFields, Match, host, specifier};
use self::specifiers::{is_private, parameter, yes};
use super::{
    ResolvedPath, RuleRef,
    call_input::CallInput,
    command::{
        CommandContext, CommandPart, CommandPattern, Mention, NamedFile, PathTarget, Ruled,
        ShellCommand,
    },
    path_rule::{Anchors, PathPattern, before_glob, lies_in},
    rule::Rule,
};
use crate::{
    permission::{RuleKind, RuleText},
    tool::Access,
};

/// What the rules look at in one call.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) tool: &'a str,
    pub(super) access: &'a Access,
    pub(super) input: &'a CallInput,
    pub(super) path: Option<&'a ResolvedPath>,
    pub(super) command: Option<&'a ShellCommand>,
}

/// All rules, in the order in which they are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleBook {
    rules: Vec<Compiled>,
    hidden: Arc<[String]>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Compiled {
    rule: Rule,
    spec: Spec,
}

#[derive(Clone, Debug)]
enum Spec {
    Whole,
    /// A path, of a `Read` or `Edit` rule.
    Path(PathPattern),
    /// Anything else; what it means depends on the tool. With what it means for shell commands.
    Text(String, CommandPattern),
}

impl RuleBook {
    pub(super) fn read(texts: &[RuleText], anchors: &Anchors) -> Self {
        let mut book = Self::default();
        let mut hidden = Vec::new();
        for text in texts {
            let rule = match Rule::parse(text) {
                Ok(rule) => rule,
                Err(bad) => {
                    book.warnings.push(format!("{bad}; it is ignored"));
                    continue;
                }
            };
            let spec = match (&rule.spec, rule.tool.as_str()) {
                (None, _) => Spec::Whole,
                (Some(pattern), "Read" | "Edit") => {
                    match PathPattern::of_rule(pattern, rule.kind, rule.scope, anchors) {
                        Ok(pattern) => Spec::Path(pattern),
                        Err(error) => {
                            let text = &rule.text;
                            book.warnings
                                .push(format!("the rule `{text}` matches nothing: {error}"));
                            continue;
                        }
                    }
                }
                (Some(_), "Write" | "NotebookEdit" | "MultiEdit" | "Glob") => {
                    let text = &rule.text;
                    let hint = "paths are governed by Read(...) and Edit(...) rules";
                    book.warnings.push(format!("the rule `{text}` has no effect: {hint}"));
                    continue;
                }
                (Some(text), _) => Spec::Text(text.clone(), CommandPattern::read(text)),
            };
            if rule.kind == RuleKind::Deny && rule.tool == "Read" {
                match &spec {
                    Spec::Path(pattern) => hidden.extend(pattern.as_hidden()),
                    Spec::Whole => hidden.push("//**".into()),
                    Spec::Text(..) => {}
                }
            }
            book.rules.push(Compiled { rule, spec });
        }
        // Stable: rules of one scope stay in the order in which they were written.
        book.rules.sort_by_key(|it| it.rule.scope);
        book.hidden = hidden.into();
        book
    }

    /// Returns what `Read` deny rules hide from searching tools.
    pub(super) fn hidden(&self) -> &Arc<[String]> {
        &self.hidden
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the first rule that denies the tool as a whole.
    pub(super) fn denies_whole(&self, tool: &str) -> Option<RuleRef> {
        self.of_kind(RuleKind::Deny)
            .find(|it| matches!(it.spec, Spec::Whole) && it.rule.names(tool))
            .map(Compiled::reference)
    }

    /// Returns whether a rule denies sub-agents of this type.
    pub(super) fn denies_agent(&self, agent_type: &str) -> bool {
        let name = Value::from(agent_type);
        let field = |field: &str| (field == "subagent_type").then_some(&name);
        let call = CallFields { tool: "Agent", field: &field };
        self.of_kind(RuleKind::Deny).filter(|it| it.rule.names("Agent")).any(|it| match &it.spec {
            Spec::Text(text, _) => specifier(text, RuleKind::Deny, &call) == Match::Yes,
            Spec::Whole | Spec::Path(_) => false,
        })
    }

    /// Returns the first rule of this kind that covers the call.
    pub(super) fn first(&self, kind: RuleKind, subject: &Subject<'_>) -> Option<RuleRef> {
        self.of_kind(kind).find(|it| it.matches(subject) == Match::Yes).map(Compiled::reference)
    }

    /// Returns the first deny or ask rule for this tool whose specifier is not understood.
    pub(super) fn first_unknown(&self, subject: &Subject<'_>) -> Option<RuleRef> {
        // Of a command every specifier is understood: it is a pattern.
        if subject.command.is_some() {
            return None;
        }
        self.rules
            .iter()
            .filter(|it| it.rule.kind != RuleKind::Allow)
            .find(|it| it.matches(subject) == Match::Unknown)
            .map(Compiled::reference)
    }

    /// Returns whether any deny or ask rule is about a part of what this tool does.
    pub(super) fn restricts(&self, tool: &str) -> bool {
        self.rules.iter().any(|it| it.rule.kind != RuleKind::Allow && it.rule.names(tool))
    }

    /// Returns whether a rule denies files by their paths.
    pub(super) fn denies_paths(&self) -> bool {
        self.of_kind(RuleKind::Deny).any(|it| matches!(it.spec, Spec::Path(_)))
    }

    /// Returns the first rule that denies to change a file which a program of the command may change.
    pub(super) fn denies_suspected(&self, command: &ShellCommand) -> Option<RuleRef> {
        let is_one = |it: &&Compiled| match &it.spec {
            Spec::Path(pattern) if it.rule.tool == "Edit" => {
                command.mentions().iter().any(|it| it.may_write && names(pattern, it))
            }
            _ => false,
        };
        self.of_kind(RuleKind::Deny).find(is_one).map(Compiled::reference)
    }

    /// Returns the first deny or ask rule that may be about a part of the command once the shell has expanded it.
    pub(super) fn may_restrict(&self, tool: &str, command: &ShellCommand) -> Option<RuleRef> {
        let is_one = |it: &&Compiled| match &it.spec {
            Spec::Text(_, pattern) => {
                it.rule.kind != RuleKind::Allow
                    && it.rule.names(tool)
                    && pattern.may_be_about(command)
            }
            Spec::Whole | Spec::Path(_) => false,
        };
        self.rules.iter().find(is_one).map(Compiled::reference)
    }

    /// Returns whether something that gets another name may hold what a rule denies.
    pub(super) fn denies_inside(&self, command: &ShellCommand) -> bool {
        self.of_kind(RuleKind::Deny).any(|it| match &it.spec {
            Spec::Path(pattern) => command.linked().any(|it| pattern.begins_in(it)),
            Spec::Whole | Spec::Text(..) => false,
        })
    }

    /// Returns whether a rule denies to read files by their paths.
    pub(super) fn denies_reads(&self) -> bool {
        self.of_kind(RuleKind::Deny)
            .any(|it| it.rule.tool == "Read" && matches!(it.spec, Spec::Path(_)))
    }

    /// Returns the first rule that denies to read what may lie in a directory which the command reads as a whole.
    pub(super) fn denies_below(&self, command: &ShellCommand) -> Option<RuleRef> {
        let searched = command.searched();
        let lies_below = |pattern: &PathPattern| {
            searched.iter().any(|(part, target, path)| {
                let is_out =
                    |name: &str, is_dir: bool| ShellCommand::leaves_out(part, name, is_dir);
                may_lie_in(pattern, target, path, command) && !pattern.is_named(is_out)
            })
        };
        let is_one = |it: &&Compiled| match &it.spec {
            Spec::Path(pattern) => it.rule.tool == "Read" && lies_below(pattern),
            Spec::Whole | Spec::Text(..) => false,
        };
        self.of_kind(RuleKind::Deny).find(is_one).map(Compiled::reference)
    }

    /// Returns the first rule that denies to change what may lie in a directory in which the command changes files that
    /// it does not name.
    pub(super) fn denies_changes_below(&self, command: &ShellCommand) -> Option<RuleRef> {
        let lies_below = |pattern: &PathPattern, tool: &str| {
            let mut below = command.changed_below().filter(|it| !it.only_brings || tool == "Edit");
            below.any(|it| {
                let is_out = |name: &str, is_dir: bool| it.leaves_out(name, is_dir);
                let NamedFile { target, paths } = &it.directory;
                paths.iter().any(|path| may_lie_in(pattern, target, path, command))
                    && !pattern.is_named(is_out)
            })
        };
        let is_one = |it: &&Compiled| match &it.spec {
            Spec::Path(pattern) => lies_below(pattern, &it.rule.tool),
            Spec::Whole | Spec::Text(..) => false,
        };
        self.of_kind(RuleKind::Deny).find(is_one).map(Compiled::reference)
    }

    /// Returns the first allow rule that covers a part of a command.
    pub(super) fn covering(
        &self,
        tool: &str,
        part: &CommandPart,
        around: &CommandContext,
    ) -> Option<RuleRef> {
        // Code that is not in the text may do what another rule is about.
        let is_hidden = part.is_unseen && self.restricts(tool);
        let ruled = Ruled::of(part, around);
        let covers = |it: &&Compiled| match &it.spec {
            _ if !it.rule.names(tool) => false,
            Spec::Whole => !is_hidden,
            Spec::Text(_, pattern) if is_hidden && pattern.is_open() => false,
            Spec::Text(_, pattern) => ruled.is_covered_by(pattern),
            Spec::Path(_) => false,
        };
        self.of_kind(RuleKind::Allow).find(covers).map(Compiled::reference)
    }

    /// Returns the first allow rule for the whole tool, where it covers this part.
    pub(super) fn allows_whole(&self, tool: &str, part: &CommandPart) -> Option<RuleRef> {
        let is_one = |it: &&Compiled| matches!(it.spec, Spec::Whole) && it.rule.names(tool);
        let is_hidden = part.is_unseen && self.restricts(tool);
        let rule = self.of_kind(RuleKind::Allow).find(is_one).filter(|_| !is_hidden);
        rule.map(Compiled::reference)
    }

    /// Returns the first allow rule that lets a file be changed.
    pub(super) fn lets_edit(&self, path: &str) -> Option<RuleRef> {
        let lets = |it: &&Compiled| match &it.spec {
            _ if it.rule.tool != "Edit" => false,
            Spec::Whole => true,
            Spec::Path(pattern) => pattern.matches(path),
            Spec::Text(..) => false,
        };
        self.of_kind(RuleKind::Allow).find(lets).map(Compiled::reference)
    }

    /// Returns the first allow rule that lets a file be read. What may be changed may be read.
    pub(super) fn lets_read(&self, path: &str) -> Option<RuleRef> {
        let lets = |it: &&Compiled| match &it.spec {
            _ if !matches!(it.rule.tool.as_str(), "Read" | "Edit") => false,
            Spec::Whole => it.rule.tool == "Read",
            Spec::Path(pattern) => pattern.matches(path),
            Spec::Text(..) => false,
        };
        self.of_kind(RuleKind::Allow).find(lets).map(Compiled::reference)
    }

    fn of_kind(&self, kind: RuleKind) -> impl Iterator<Item = &Compiled> {
        self.rules.iter().filter(move |it| it.rule.kind == kind)
    }
}

impl Compiled {
    fn reference(&self) -> RuleRef {
        RuleRef { scope: self.rule.scope, text: self.rule.text.clone() }
    }

    fn matches(&self, subject: &Subject<'_>) -> Match {
        let kind = self.rule.kind;
        let named = self.rule.names(subject.tool);
        let field = |name: &str| subject.input.get(name);
        let call = CallFields { tool: subject.tool, field: &field };
        if kind == RuleKind::Allow && self.is_too_wide(subject) {
            return Match::No;
        }
        match &self.spec {
            // What allows a command is found part by part.
            Spec::Whole if named => yes(subject.command.is_none() || kind != RuleKind::Allow),
            Spec::Whole => yes(subject.path.is_some() && self.governs(subject)),
            Spec::Path(pattern) => match (subject.path, subject.command) {
                (Some(path), _) if self.governs(subject) => match kind {
                    RuleKind::Allow => yes(pattern.covers(path)),
                    RuleKind::Deny | RuleKind::Ask => yes(pattern.matches_any(path)),
                },
                (None, Some(command)) if kind == RuleKind::Deny => {
                    let reads = command.read_from().filter(|_| self.rule.tool == "Read");
                    let changed = command.altered().chain(command.removed());
                    let mut files = reads.chain(changed).chain(command.linked());
                    let mut globs = command.globs(self.rule.tool == "Edit");
                    let trees = command.trees().filter(|_| self.rule.tool == "Read");
                    let mut trees = trees.chain(command.altered_trees());
                    yes(files.any(|it| pattern.matches(it))
                        || globs.any(|it| pattern.may_meet(it))
                        || trees.any(|it| pattern.holds_tree(it.0, it.1))
                        || self.rule.tool == "Read"
                            && command
                                .mentions()
                                .iter()
                                .any(|it| it.may_read && names(pattern, it)))
                }
                _ => Match::No,
            },
            Spec::Text(..) if !named => Match::No,
            Spec::Text(text, pattern) => match subject.command {
                Some(_) if kind == RuleKind::Allow => Match::No,
                Some(command) => {
                    let is_about = pattern.is_about(command);
                    yes(is_about || parameter(text, &call) == Match::Yes)
                }
                None => specifier(text, kind, &call),
            },
        }
    }

    /// Whether it allows pages of all hosts or of several, and the page is not on the web but in a network of somebody.
    fn is_too_wide(&self, subject: &Subject<'_>) -> bool {
        let names_host = match &self.spec {
            Spec::Text(text, _) => text.starts_with("domain:") && !text.contains('*'),
            Spec::Whole | Spec::Path(_) => false,
        };
        let url = || subject.input.get("url").and_then(serde_json::Value::as_str);
        subject.tool == "WebFetch" && !names_host && url().is_some_and(is_private)
    }

    /// `Read` rules are for what reads files, `Edit` rules for what changes them. A `Read` deny
    /// also stops changes, an `Edit` allow also lets read.
    fn governs(&self, subject: &Subject<'_>) -> bool {
        matches!(
            (self.rule.tool.as_str(), subject.access, self.rule.kind),
            ("Read", Access::ReadPath { .. }, _)
                | ("Read", Access::WritePath { .. }, RuleKind::Deny)
                | ("Edit", Access::WritePath { .. }, _)
                | ("Edit", Access::ReadPath { .. }, RuleKind::Allow)
        )
    }
}

/// Whether what a pattern covers may lie in a directory that a command names, or below it.
fn may_lie_in(
    pattern: &PathPattern,
    target: &PathTarget,
    path: &str,
    command: &ShellCommand,
) -> bool {
    let path = match target {
        PathTarget::Glob(_) => before_glob(path),
        PathTarget::Known(_) | PathTarget::Open(_) => path,
    };
    let holds_root = command.around().workspace.iter().any(|it| lies_in(it, path));
    pattern.may_lie_below(path, holds_root)
}

/// Whether a pattern covers a file that a word names.
fn names(pattern: &PathPattern, mention: &Mention) -> bool {
    let Mention { named, is_tree, .. } = mention;
    let is_glob = matches!(named.target, PathTarget::Glob(_));
    named.paths.iter().any(|it| {
        pattern.matches(it)
            || is_glob && pattern.may_meet(it)
            || *is_tree && pattern.holds_tree(&named.target, it)
    })
}
