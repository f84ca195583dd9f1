//! The files that words of a part name: where each may be.

use super::{
    CommandContext, CommandPart,
    dirs::{Dirs, PathTarget, target, through_process},
    options::{has_letter, is_long},
    part::base,
    piped::Piped,
    searches::lists_here,
};
use crate::step7_permission_gate::{
    path_resolution::by_text,
    shell::word::{PieceKind, Word},
};

/// Letters of a cluster of options after which the value of the last may begin.
const MAX_LETTERS: usize = 3;

/// One file that a part names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// What the word represents.
    pub(crate) target: PathTarget,
    /// Where it may be, by text; as written where the directory is not known.
    pub(crate) paths: Vec<String>,
}

impl NamedFile {
    /// Returns whether it is known, and is in the workspace wherever the shell is.
    pub(crate) fn is_inside(&self, dirs: &Dirs, around: &CommandContext) -> bool {
        let is_known = matches!(self.target, PathTarget::Known(_));
        let is_placed = self.target.text().starts_with('/') || !dirs.is_unknown();
        is_known && is_placed && self.paths.iter().all(|it| around.hold(it))
    }
}

/// Returns where a word leads from every directory.
pub(super) fn named(word: &Word, part: &CommandPart, around: &CommandContext) -> NamedFile {
    place_in(target(word, &around.home, part.is_lost), &part.dirs, around)
}

/// Returns where something leads from these directories.
pub(super) fn place_in(target: PathTarget, dirs: &Dirs, around: &CommandContext) -> NamedFile {
    let text = target.text();
    let written = match (through_process(text, dirs), dirs.all()) {
        (Some(paths), _) if paths.is_empty() => {
            return NamedFile { target: PathTarget::Open(text.to_owned()), paths };
        }
        (Some(paths), _) => paths,
        (None, _) if text.starts_with('/') => vec![text.to_owned()],
        (None, Some(all)) => all.map(|it| format!("{it}/{text}")).collect(),
        (None, None) => {
            let paths = vec![by_text(text).trim_start_matches('/').to_owned()];
            return NamedFile { target, paths };
        }
    };
    let mut paths: Vec<String> = Vec::with_capacity(written.len());
    let mut add = |path: String| {
        if !paths.contains(&path) {
            paths.push(path);
        }
    };
    let mut is_lost = false;
    for path in written {
        add(by_text(&path));
        let places = match target {
            PathTarget::Glob(_) => around.places_of_pattern(&path),
            PathTarget::Known(_) | PathTarget::Open(_) => around.places(&path),
        };
        places.iter().cloned().for_each(&mut add);
        is_lost |= around.is_of_process(&path);
    }
    // Where its process will be is not known.
    let target = if is_lost { PathTarget::Open(target.text().to_owned()) } else { target };
    NamedFile { target, paths }
}

/// Returns the files of which the names come that a program in front of this part lists.
pub(super) fn listed(
    piped: &Piped,
    part: &CommandPart,
    around: &CommandContext,
) -> impl Iterator<Item = NamedFile> {
    // Patterns of names in quotes are those of `find`.
    let of = |word: &Word| match target(word, &around.home, part.is_lost) {
        PathTarget::Known(text) if text.contains(['*', '?', '[']) => PathTarget::Glob(text),
        other => other,
    };
    let words = &*piped.words;
    let files = words.iter().skip(1).filter(|it| !it.text.starts_with('-'));
    let here = words.split_first().filter(|(name, args)| lists_here(base(&name.text), args));
    let here = here.map(|_| named(&Word::plain("."), part, around));
    files.map(move |it| place_in(of(it), &part.dirs, around)).chain(here)
}

/// Returns whether the first operand is a pattern or a script.
pub(super) fn has_pattern(name: &str, args: &[Word]) -> bool {
    let given = |it: &Word| {
        has_letter(&it.text, 'e', "")
            || has_letter(&it.text, 'f', "")
            || is_long(&it.text, "--regexp")
            || is_long(&it.text, "--file")
            || is_long(&it.text, "--expression")
            || is_long(&it.text, "--from-file")
            || it.text == "--files"
    };
    let has = [
        "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "nawk", "ag", "ack", "zgrep",
        "jq", "yq",
    ];
    // A file of that name is one.
    let is_only = name == "yq" && super::options::operands(args).nth(1).is_none();
    has.contains(&name) && !is_only && !args.iter().any(given)
}

/// Returns a word without what is in front of a value.
pub(super) fn shortened(word: &Word, value: &str) -> Word {
    if word.is_literal() {
        Word::plain(value)
    } else {
        let mut short = Word::plain(value);
        short.mark(0, PieceKind::Open { quoted: false });
        short
    }
}

/// Returns a word, and what may be the value in it.
pub(super) fn values(word: &Word) -> Vec<Word> {
    let text = word.text.as_str();
    let mut found = vec![word.clone()];
    found.extend(text.split_once('=').map(|it| shortened(word, it.1)));
    if text.starts_with('-') && !text.starts_with("--") {
        let at = text.find(['.', '/', '~', '$']);
        found.extend(at.map(|it| shortened(word, &text[it..])));
        let attached = text.char_indices().skip(2).take(MAX_LETTERS);
        found.extend(attached.map(|it| shortened(word, &text[it.0..])));
    }
    found
}
