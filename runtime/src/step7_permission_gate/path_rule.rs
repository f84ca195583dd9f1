//! Path patterns: gitignore's language, anchored by where a rule is.
//!
//! A pattern has the same meaning in rules, in hidden paths and in searching tools.

mod meeting;

use std::{borrow::Cow, collections::BTreeMap};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use self::meeting::Components;
use super::{ResolvedPath, command::PathTarget};
use crate::permission::{RuleKind, Scope};

/// The directories that patterns are relative to; all absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchors {
    /// Of `x` and `./x`, and of `/x` in local and command line rules.
    pub workspace: String,
    /// The directory that `/x` in project rules is below.
    pub project_root: String,
    /// Of `~/x`; `/x` in user rules means `.claude` in it.
    pub home: String,
    /// Directories above that are reached through links: as written, and where they really are.
    pub real: BTreeMap<String, String>,
}

/// One pattern, ready to match.
#[derive(Clone, Debug)]
pub struct PathPattern {
    globs: GlobSet,
    absolute: Vec<String>,
    /// What of each is in front of the first sign of a pattern, folded where the pattern is.
    written: Vec<String>,
    /// The same as they are compared with patterns of a shell.
    components: Vec<Components<'static>>,
    folded: bool,
    /// A text that every path has which it covers; empty where there is none. Most paths do not have it, and to
    /// look for it costs less than to match.
    literal: String,
    /// Absolute paths that it does not cover, nor what is in them; compared byte for byte.
    excepted: Vec<String>,
    /// Further patterns, each with exceptions of its own.
    others: Vec<PathPattern>,
}

/// What is between a pattern and a path that it does not cover. Two slashes follow one another in no other pattern
/// that means something.
const EXCEPTION: &str = ":!//";

impl PathPattern {
    /// Reads the pattern of a rule (cases B2). Deny and ask rules compare composed and without
    /// case, allow rules byte for byte.
    ///
    /// # Errors
    ///
    /// [`globset::Error`] when it cannot be read; such a pattern is to match nothing.
    pub(crate) fn of_rule(
        pattern: &str,
        kind: RuleKind,
        scope: Scope,
        anchors: &Anchors,
    ) -> Result<Self, globset::Error> {
        let (pattern, excepted) = match kind {
            // An exception could only make it narrower than it seems.
            RuleKind::Allow => (pattern, Vec::new()),
            RuleKind::Deny | RuleKind::Ask => with_exceptions(pattern),
        };
        let (anchor, rest) = anchored(pattern, kind, scope, anchors);
        let mut absolute = vec![join(&escape(anchor), &rest)];
        for (written, real) in &anchors.real {
            if written != real && lies_in(anchor, written) {
                let below = anchor[written.len()..].trim_matches('/');
                let moved = if below.is_empty() { real.clone() } else { join(real, below) };
                absolute.push(join(&escape(&moved), &rest));
            }
        }
        Ok(Self { excepted, ..Self::compile(absolute, kind != RuleKind::Allow)? })
    }

    /// Reads what [`Permit::hidden`](super::Permit::hidden) holds. Patterns that cannot be read
    /// are left out.
    pub fn hidden(patterns: &[String]) -> Self {
        let mut others = Vec::new();
        let mut absolute = Vec::new();
        for pattern in patterns {
            let (pattern, excepted) = with_exceptions(pattern);
            let own = pattern.strip_prefix('/').unwrap_or(pattern).to_owned();
            if excepted.is_empty() {
                absolute.push(own);
            } else if let Ok(compiled) = Self::compile(vec![own], true) {
                others.push(Self { excepted, ..compiled });
            }
        }
        // Nearly always all of them can be read, and each costs as much as a turn.
        let readable = |all: &[String]| {
            let is_readable = |it: &&String| Self::compile(vec![(*it).clone()], true).is_ok();
            Self::compile(all.iter().filter(is_readable).cloned().collect(), true)
        };
        let all = Self::compile(absolute.clone(), true).or_else(|_| readable(&absolute));
        let all = all.unwrap_or_else(|_| Self {
            globs: GlobSet::empty(),
            absolute: Vec::new(),
            written: Vec::new(),
            components: Vec::new(),
            folded: true,
            literal: String::new(),
            excepted: Vec::new(),
            others: Vec::new(),
        });
        Self { others, ..all }
    }

    fn compile(absolute: Vec<String>, folded: bool) -> Result<Self, globset::Error> {
        let mut globs = GlobSetBuilder::new();
        for pattern in &absolute {
            let pattern = if folded { fold(pattern) } else { pattern.clone() };
            let pattern = without_alternates(&pattern);
            let mut add = |pattern: &str| {
                let glob = GlobBuilder::new(pattern)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .build()?;
                globs.add(glob);
                Ok::<_, globset::Error>(())
            };
            add(&pattern)?;
            if !pattern.ends_with("/**") {
                // What names a directory covers what is in it.
                add(&join(&pattern, "**"))?;
            }
        }
        let mut literals = absolute.iter().map(|it| last_literal(it));
        let first = literals.next().unwrap_or_default();
        let literal = if literals.all(|it| it == first) { first } else { "" };
        let literal = if folded { fold(literal) } else { literal.to_owned() };
        let components = absolute.iter().map(|it| {
            let own = if folded { Cow::Owned(fold(it)) } else { Cow::Borrowed(it.as_str()) };
            Components::of(&own).into_owned()
        });
        let components = components.collect();
        let written = absolute.iter().map(|it| {
            let written = before_sign(it);
            if folded { fold(written) } else { written.to_owned() }
        });
        let written = written.collect();
        let (globs, excepted, others) = (globs.build()?, Vec::new(), Vec::new());
        Ok(Self { globs, absolute, written, components, folded, literal, excepted, others })
    }

    /// Returns whether it covers this absolute path.
    pub fn matches(&self, path: &str) -> bool {
        let is_match = if self.folded && !is_folded(path) {
            self.globs.is_match(fold(path))
        } else {
            path.contains(&self.literal) && self.globs.is_match(path)
        };
        is_match && !self.excepts(path) || self.others.iter().any(|it| it.matches(path))
    }

    /// Returns whether this absolute path is an exception, or lies in one.
    fn excepts(&self, path: &str) -> bool {
        self.excepted.iter().any(|it| lies_in(path, it))
    }

    /// Returns whether it covers any path that was passed through.
    pub(crate) fn matches_any(&self, path: &ResolvedPath) -> bool {
        self.matches(&path.lexical)
            || self.matches(&path.real)
            || path.passed.iter().any(|it| self.matches(it))
    }

    /// Returns whether it may cover a file that a shell's pattern names. The pattern is an absolute path.
    pub(super) fn may_meet(&self, pattern: &str) -> bool {
        // One that leads upwards may meet what is not in the directories in front of its first sign.
        if self.excepts(before_glob(pattern)) && !pattern.contains("/..") {
            return false;
        }
        let own = self.as_compared(pattern);
        let shell = Components::of(&own);
        self.components.iter().any(|it| meeting::meet(&shell, it))
    }

    /// Returns whether it covers what is in a directory. Where the shell chooses among all names, it is as if the
    /// directory above were named, and that is not covered.
    pub(super) fn holds_tree(&self, target: &PathTarget, path: &str) -> bool {
        match target {
            PathTarget::Glob(text) => {
                text != "*" && !text.ends_with("/*") && self.may_meet(&format!("{path}/\u{1}"))
                    || self.matches(&format!("{}/", before_glob(path)))
            }
            PathTarget::Known(_) | PathTarget::Open(_) => self.matches(&format!("{path}/")),
        }
    }

    /// Returns whether what it covers may lie in a directory, as far as it is written out.
    pub(super) fn begins_in(&self, directory: &str) -> bool {
        let directory = self.as_compared(directory);
        self.written.iter().any(|it| lies_in(it, &directory))
    }

    /// Returns whether what it covers may lie in a directory with all that is below. A pattern for any depth counts
    /// where the directory that it is relative to lies there, or a root of the workspace.
    pub(super) fn may_lie_below(&self, directory: &str, holds_root: bool) -> bool {
        let is_excepted = self.excepts(directory);
        let directory = self.as_compared(directory);
        let is_above = || {
            let mut all = self.absolute.iter().zip(&self.written);
            all.any(|(it, written)| {
                it[before_sign(it).len()..].starts_with("**") && lies_in(&directory, written)
            })
        };
        self.written.iter().any(|it| lies_in(it, &directory))
            || holds_root && !is_excepted && is_above()
    }

    /// A path as this pattern compares it.
    fn as_compared<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.folded && !is_folded(path) { fold(path).into() } else { path.into() }
    }

    /// Returns whether `is_one` holds for the name of what it covers, where that is one name: of a file, or of a
    /// directory with all that is in it.
    pub(super) fn is_named(&self, is_one: impl Fn(&str, bool) -> bool) -> bool {
        !self.absolute.is_empty()
            && self.absolute.iter().all(|it| {
                let (path, is_directory) = match it.strip_suffix("/**") {
                    Some(path) => (path, true),
                    None => (it.as_str(), false),
                };
                let name = path.rsplit_once('/').map_or(path, |it| it.1);
                !name.contains(['*', '?', '[', '\\']) && is_one(name, is_directory)
            })
    }

    /// Returns whether it covers the path both as written and as reached.
    pub(crate) fn covers(&self, path: &ResolvedPath) -> bool {
        self.matches(&path.lexical) && self.matches(&path.real)
    }

    /// Returns the pattern in the form of [`Permit::hidden`](super::Permit::hidden): `//` and absolute, with its
    /// exceptions.
    pub(crate) fn as_hidden(&self) -> impl Iterator<Item = String> {
        let exceptions: String = self.excepted.iter().map(|it| format!(":!/{it}")).collect();
        self.absolute.iter().map(move |it| format!("/{it}{exceptions}"))
    }
}

/// Returns what is in front of the exceptions of a pattern, and these as absolute paths.
fn with_exceptions(pattern: &str) -> (&str, Vec<String>) {
    let mut parts = pattern.split(EXCEPTION);
    let pattern = parts.next().unwrap_or_default();
    (pattern, parts.map(|it| format!("/{}", it.trim_end_matches('/'))).collect())
}

/// The last piece of a pattern that is written out and not short: what is in front of it is often the workspace,
/// which all paths have.
fn last_literal(pattern: &str) -> &str {
    // What is in brackets is one of several.
    let plain = &pattern[..pattern.find('[').unwrap_or(pattern.len())];
    let mut pieces = plain.split(['/', '*', '?', '\\']);
    pieces.rfind(|it| it.len() > 2 && it.is_ascii()).unwrap_or_default()
}

/// What of a pattern is in front of its first sign.
fn before_sign(pattern: &str) -> &str {
    &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len())]
}

/// Returns the directories of a shell's pattern that are written out.
pub(super) fn before_glob(path: &str) -> &str {
    let end = path.find(['*', '?', '[']).unwrap_or(path.len());
    path[..end].rsplit_once('/').map_or("", |it| it.0)
}

/// The directory in front of a pattern, and what is left of the pattern.
fn anchored<'a>(
    pattern: &str,
    kind: RuleKind,
    scope: Scope,
    anchors: &'a Anchors,
) -> (&'a str, String) {
    let pattern = pattern.trim_end_matches('/');
    if let Some(rest) = pattern.strip_prefix("//") {
        return ("", rest.into());
    }
    if pattern == "~" {
        return (&anchors.home, String::new());
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        return (&anchors.home, rest.into());
    }
    if let Some(rest) = pattern.strip_prefix('/') {
        return match scope {
            Scope::Project => (&anchors.project_root, rest.into()),
            Scope::User => (&anchors.home, join(".claude", rest)),
            Scope::CliArg | Scope::Session | Scope::Local | Scope::Policy => {
                (&anchors.workspace, rest.into())
            }
        };
    }
    if let Some(rest) = pattern.strip_prefix("./") {
        return (&anchors.workspace, rest.into());
    }
    let one_directory = pattern.strip_suffix("/**").is_some_and(|it| !it.contains('/'));
    let floats = !pattern.contains('/') || (one_directory && kind != RuleKind::Allow);
    let rest = if floats && pattern != "**" { join("**", pattern) } else { pattern.into() };
    (&anchors.workspace, rest)
}

/// `a/b` with exactly one slash between; `a` alone when there is no `b`.
fn join(a: &str, b: &str) -> String {
    let a = a.trim_end_matches('/');
    if b.is_empty() { a.into() } else { format!("{a}/{b}") }
}

/// Takes the meaning from characters that a pattern would read.
pub(crate) fn escape(path: &str) -> String {
    const MEANT: [char; 5] = ['*', '?', '[', ']', '\\'];
    if !path.contains(MEANT) {
        return path.to_owned();
    }
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        if MEANT.contains(&c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// gitignore knows no `{a,b}`; globset does.
fn without_alternates(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut in_class, mut escaped) = (false, false);
    for c in pattern.chars() {
        if !escaped && !in_class && matches!(c, '{' | '}') {
            out.push('\\');
        }
        if !escaped {
            in_class = (in_class || c == '[') && c != ']';
        }
        escaped = !escaped && c == '\\';
        out.push(c);
    }
    out
}

/// Composes and takes the case away, character by character, so that a name and a pattern fold
/// alike wherever a character is.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower: String = composed(text.into())
        .chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    composed(lower.into()).into_owned()
}

/// Whether folding changes nothing for sure.
fn is_folded(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii() && !it.is_ascii_uppercase())
}

/// The same text with each character in its composed form (NFC).
fn composed(text: Cow<'_, str>) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text,
        IsNormalized::No | IsNormalized::Maybe => text.nfc().collect::<String>().into(),
    }
}

/// Returns whether `path` is `directory` or lies in it, by whole components.
pub(super) fn lies_in(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
