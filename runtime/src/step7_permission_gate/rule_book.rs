//! The rules of a gate, read once and ready to match.
//!
//! Compiling patterns is expensive and matching is not: a book is made once per turn, and every
//! call looks things up in it.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ResolvedPath, RuleRef,
    command::{CommandContext, Mention, Part, Pattern, Ruled, ShellCommand, Target},
    gate::CallInput,
    path_rule::{Anchors, PathPattern},
    rule::{Rule, wildcard},
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
    Text(String, Pattern),
}

/// How a rule answers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    /// The specifier means nothing to this version. It never allows, and it makes a call that a
    /// deny or ask rule may be about a question.
    Unknown,
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
                (Some(text), _) => Spec::Text(text.clone(), Pattern::read(text)),
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

    /// What `Read` deny rules hide from searching tools.
    pub(super) fn hidden(&self) -> &Arc<[String]> {
        &self.hidden
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The first rule that denies the tool as a whole.
    pub(super) fn denies_whole(&self, tool: &str) -> Option<RuleRef> {
        self.of_kind(RuleKind::Deny)
            .find(|it| matches!(it.spec, Spec::Whole) && it.rule.names(tool))
            .map(Compiled::reference)
    }

    /// The first rule of this kind that covers the call.
    pub(super) fn first(&self, kind: RuleKind, subject: &Subject<'_>) -> Option<RuleRef> {
        self.of_kind(kind).find(|it| it.matches(subject) == Match::Yes).map(Compiled::reference)
    }

    /// The first deny or ask rule for this tool whose specifier is not understood.
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

    /// Whether any deny or ask rule is about a part of what this tool does.
    pub(super) fn restricts(&self, tool: &str) -> bool {
        self.rules.iter().any(|it| it.rule.kind != RuleKind::Allow && it.rule.names(tool))
    }

    /// Whether a rule denies files by their paths.
    pub(super) fn denies_paths(&self) -> bool {
        self.of_kind(RuleKind::Deny).any(|it| matches!(it.spec, Spec::Path(_)))
    }

    /// The first rule that denies to change a file which a program of the command may change.
    pub(super) fn denies_suspected(&self, command: &ShellCommand) -> Option<RuleRef> {
        let is_one = |it: &&Compiled| match &it.spec {
            Spec::Path(pattern) if it.rule.tool == "Edit" => {
                command.mentions().iter().any(|it| it.may_write && names(pattern, it))
            }
            _ => false,
        };
        self.of_kind(RuleKind::Deny).find(is_one).map(Compiled::reference)
    }

    /// Whether something that gets another name may hold what a rule denies.
    pub(super) fn denies_inside(&self, command: &ShellCommand) -> bool {
        self.of_kind(RuleKind::Deny).any(|it| match &it.spec {
            Spec::Path(pattern) => command.linked().any(|it| pattern.begins_in(it)),
            Spec::Whole | Spec::Text(..) => false,
        })
    }

    /// Whether a rule denies to read files by their paths.
    pub(super) fn denies_reads(&self) -> bool {
        self.of_kind(RuleKind::Deny)
            .any(|it| it.rule.tool == "Read" && matches!(it.spec, Spec::Path(_)))
    }

    /// The first allow rule that covers a part of a command.
    pub(super) fn covering(
        &self,
        tool: &str,
        part: &Part,
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

    /// The first allow rule for the whole tool, where it covers this part.
    pub(super) fn allows_whole(&self, tool: &str, part: &Part) -> Option<RuleRef> {
        let is_one = |it: &&Compiled| matches!(it.spec, Spec::Whole) && it.rule.names(tool);
        let is_hidden = part.is_unseen && self.restricts(tool);
        let rule = self.of_kind(RuleKind::Allow).find(is_one).filter(|_| !is_hidden);
        rule.map(Compiled::reference)
    }

    /// The first allow rule that lets a file be changed.
    pub(super) fn lets_edit(&self, path: &str) -> Option<RuleRef> {
        let lets = |it: &&Compiled| match &it.spec {
            _ if it.rule.tool != "Edit" => false,
            Spec::Whole => true,
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
                    yes(is_about || parameter(text, subject) == Match::Yes)
                }
                None => specifier(text, kind, subject),
            },
        }
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

/// Whether a pattern covers a file that a word names.
fn names(pattern: &PathPattern, mention: &Mention) -> bool {
    let Mention { named, is_tree, .. } = mention;
    let is_glob = matches!(named.target, Target::Glob(_));
    named.paths.iter().any(|it| {
        pattern.matches(it)
            || is_glob && pattern.may_meet(it)
            || *is_tree && pattern.holds_tree(&named.target, it)
    })
}

fn yes(holds: bool) -> Match {
    if holds { Match::Yes } else { Match::No }
}

/// Specifiers of tools that neither open a path nor run a command.
fn specifier(text: &str, kind: RuleKind, subject: &Subject<'_>) -> Match {
    let field = |name: &str| subject.input.get(name).and_then(Value::as_str);
    match subject.tool {
        "Agent" | "Task" if !text.contains(':') => {
            yes(field("subagent_type").unwrap_or("general-purpose") == text.trim())
        }
        "WebFetch" => match text.trim().strip_prefix("domain:") {
            Some(domain) => {
                yes(field("url").and_then(host).is_some_and(|it| in_domain(domain, &it)))
            }
            None => Match::Unknown,
        },
        "Skill" => {
            let (name, args) = (field("skill").unwrap_or_default(), field("args"));
            match text.strip_suffix(" *") {
                Some(prefix) => yes(name == prefix),
                None => yes(name == text && args.is_none_or(str::is_empty)),
            }
        }
        _ if kind == RuleKind::Allow => Match::Unknown,
        _ => parameter(text, subject),
    }
}

/// `param:value` of deny and ask rules.
fn parameter(text: &str, subject: &Subject<'_>) -> Match {
    let Some((name, value)) = text.split_once(':') else { return Match::Unknown };
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return Match::Unknown;
    }
    let found = match subject.input.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => scalar.to_string(),
        _ => return Match::No,
    };
    yes(wildcard(value, &found))
}

/// The host of an http(s) URL, in lower case; `None` when it is not certain.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // A user part is how one host is made to look like another.
    if authority.contains('@') {
        return None;
    }
    let host = authority.split_once(':').map_or(authority, |(host, _)| host).to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    (!host.is_empty()).then_some(host)
}

fn in_domain(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim().to_ascii_lowercase();
    let pattern = pattern.strip_suffix('.').unwrap_or(&pattern);
    if pattern == "*" {
        return true;
    }
    if let Some(parent) = pattern.strip_prefix("*.").filter(|it| !it.contains('*')) {
        return host.strip_suffix(parent).is_some_and(|it| it.len() > 1 && it.ends_with('.'));
    }
    let (parts, labels): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), host.split('.').collect());
    parts.len() == labels.len()
        && parts.iter().zip(labels).all(|(part, label)| wildcard(part, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-8
    #[test]
    fn domains_match_by_label() {
        for (pattern, url, expected) in [
            ("*.example.com", "https://API.example.com./x", true),
            ("*.example.com", "https://example.com", false),
            ("example.*", "http://example.evil.com", false),
            ("example.com", "https://example.com@evil.com/", false),
            ("example.com", "https://example.com:8443/a", true),
            ("*", "ftp://example.com", false),
        ] {
            let found = host(url).is_some_and(|it| in_domain(pattern, &it));
            assert_eq!(found, expected, "{pattern} on {url}");
        }
    }
}
