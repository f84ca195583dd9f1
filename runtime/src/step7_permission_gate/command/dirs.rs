//! The directories that a command may be in, and where its words lead from there.

use std::{collections::BTreeSet, sync::Arc};

use super::CommandContext;
use crate::step7_permission_gate::{
    path_resolution::{by_text, joined},
    shell::word::{PieceKind, Word},
};

/// Directories that are followed; more are as good as unknown. Each relative path is looked at from each of them.
const MAX_DIRS: usize = 8;

/// Expansions that give the directory the shell is in.
const HERE: [&str; 5] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`", "~+"];

/// Directories that the shell may be in; unknown when there is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dirs(Option<Arc<BTreeSet<String>>>);

impl Dirs {
    /// Returns this directory alone, by whatever name it was given.
    pub(crate) fn one(directory: &str, around: &CommandContext) -> Self {
        Self::of([directory.to_owned()], around)
    }

    /// These paths, and where they lead.
    fn of(paths: impl IntoIterator<Item = String>, around: &CommandContext) -> Self {
        let mut all = BTreeSet::new();
        for path in paths {
            all.extend(around.places(&path).iter().cloned());
            if around.is_of_process(&path) {
                return Self::unknown();
            }
            all.insert(by_text(&path));
        }
        Self((all.len() <= MAX_DIRS).then(|| Arc::new(all)))
    }

    pub(crate) fn unknown() -> Self {
        Self(None)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// Returns all directories; `None` when they are not known.
    pub(crate) fn all(&self) -> Option<impl Iterator<Item = &str>> {
        self.0.as_ref().map(|it| it.iter().map(String::as_str))
    }

    /// Returns the union; unknown where either set is, or where it would grow too large.
    pub(crate) fn or(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (Some(left), Some(right)) if Arc::ptr_eq(left, right) || left.is_superset(right) => {
                self.clone()
            }
            (Some(left), Some(right)) => {
                let both: BTreeSet<String> = left.union(right).cloned().collect();
                Self((both.len() <= MAX_DIRS).then(|| Arc::new(both)))
            }
            _ => Self::unknown(),
        }
    }

    /// Returns where a path leads from each.
    pub(crate) fn join(&self, path: &str, around: &CommandContext) -> Self {
        if let Some(paths) = through_process(path, self) {
            return if paths.is_empty() { Self::unknown() } else { Self::of(paths, around) };
        }
        if path.starts_with('/') {
            return Self::one(path, around);
        }
        let Some(all) = &self.0 else { return Self::unknown() };
        Self::of(all.iter().map(|it| format!("{it}/{path}")), around)
    }
}

/// Returns where a path leads that goes through what a process has open: `/proc/self/cwd/x`, `/dev/fd/3/x`. `None` for
/// every other path; nothing where that is not known.
pub(super) fn through_process(text: &str, dirs: &Dirs) -> Option<Vec<String>> {
    if !text.contains("proc") && !text.contains("fd") {
        return None;
    }
    let starts: Vec<&str> = match dirs.all() {
        _ if text.starts_with('/') => vec![""],
        Some(all) => all.collect(),
        None => return None,
    };
    let mut found = Vec::new();
    let mut is_one = false;
    for start in starts {
        match process_link(&format!("{start}/{text}")) {
            Some(Through::Root(rest)) => found.push(by_text(&rest)),
            Some(Through::Directory(rest)) => {
                let all = dirs.all().into_iter().flatten();
                found.extend(all.map(|it| joined(it, &rest)));
            }
            Some(Through::Nowhere) => return Some(Vec::new()),
            None => {
                found.push(joined(start, text));
                continue;
            }
        }
        is_one = true;
    }
    is_one.then_some(found)
}

/// What a path goes on from.
enum Through {
    Root(String),
    Directory(String),
    Nowhere,
}

/// Links of a process that a path goes through, before `..` is taken out of what follows.
fn process_link(path: &str) -> Option<Through> {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = path.trim_start_matches('/');
    let mut is_root = false;
    while !rest.is_empty() {
        let (part, after) = rest.split_once('/').unwrap_or((rest, ""));
        rest = after.trim_start_matches('/');
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
        let (whose, link) = match parts[..] {
            ["proc", whose, link] | ["proc", whose, "task", _, link] => (whose, link),
            // A descriptor of its own is what was opened, and that was judged there.
            ["dev", "fd", _] if !rest.is_empty() => return Some(Through::Nowhere),
            ["proc", whose, "fd", _] if !rest.is_empty() || !is_own(whose) => {
                return Some(Through::Nowhere);
            }
            _ => continue,
        };
        match link {
            "root" if is_own(whose) => {
                is_root = true;
                parts.clear();
            }
            "cwd" if is_own(whose) => return Some(Through::Directory(rest.to_owned())),
            "root" | "cwd" => return Some(Through::Nowhere),
            _ => {}
        }
    }
    is_root.then(|| Through::Root(format!("/{}", parts.join("/"))))
}

/// Watches where a walk along links comes into `/proc`: whose links differ from process to process.
#[derive(Debug, Default)]
pub(super) struct ProcessWalk {
    /// It came to the directory of a process, or to its root.
    is_lost: bool,
    /// What a process has open, and that the walk came to.
    opened: Option<String>,
}

impl ProcessWalk {
    /// Returns whether a path that the walk comes to is not to be looked at.
    pub(super) fn enters(&mut self, at: &str) -> bool {
        let Some(rest) = at.strip_prefix("/proc") else { return false };
        let parts: Vec<&str> = rest.split('/').collect();
        match parts[..] {
            ["", _, "cwd" | "root"] | ["", _, "task", _, "cwd" | "root"] => self.is_lost = true,
            ["", _, "fd", _] | ["", _, "task", _, "fd", _] => self.opened = Some(at.to_owned()),
            _ => {}
        }
        parts[0].is_empty()
    }

    /// Returns whether a walk with this end leads on from what is known to a process only.
    pub(super) fn leads_on(&self, end: Option<&str>) -> bool {
        self.is_lost || self.opened.is_some() && self.opened.as_deref() != end
    }
}

/// Whether a process of this name is the one that asks.
fn is_own(whose: &str) -> bool {
    matches!(whose, "self" | "thread-self")
}

/// A path that a word represents, as far as that is known before the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// This text; from the current directory if it is relative.
    Known(String),
    /// A pattern of paths.
    Glob(String),
    /// Something that the shell has yet to work out; the text as far as it is written.
    Open(String),
}

impl PathTarget {
    /// Returns the path as written, with a tilde replaced by its directory.
    pub(crate) fn text(&self) -> &str {
        let (Self::Known(text) | Self::Glob(text) | Self::Open(text)) = self;
        text
    }
}

/// Returns what a word represents as a path. `is_lost` is whether the command may change what its home or its current
/// directory is called.
pub(crate) fn target(word: &Word, home: &str, is_lost: bool) -> PathTarget {
    if word.has_tilde() {
        let end = word.spans.first().map_or(word.text.len(), |it| it.start);
        let user = &word.text[1..end];
        let rest = &word.text[1..];
        let is_own = user.starts_with('/') || (user.is_empty() && end == word.text.len());
        return match (is_own && word.is_known(), word.has_glob()) {
            _ if is_lost => PathTarget::Open(word.text.clone()),
            (true, false) => PathTarget::Known(format!("{home}{rest}")),
            (true, true) => PathTarget::Glob(format!("{home}{rest}")),
            (false, _) => PathTarget::Open(word.text.clone()),
        };
    }
    let opens: Vec<_> = word.spans.iter().filter(|it| it.piece != PieceKind::Quoted).collect();
    match opens[..] {
        [] if word.has_glob() => PathTarget::Glob(word.text.clone()),
        [] => PathTarget::Known(word.text.clone()),
        [span] if span.start == 0 && !is_lost => {
            let rest = &word.text[span.end..];
            let is_whole = rest.is_empty() || rest.starts_with('/');
            match &word.text[..span.end] {
                open if HERE.contains(&open) && is_whole => PathTarget::Known(format!(".{rest}")),
                "$HOME" | "${HOME}" if is_whole => PathTarget::Known(format!("{home}{rest}")),
                _ => PathTarget::Open(word.text.clone()),
            }
        }
        _ => PathTarget::Open(word.text.clone()),
    }
}
