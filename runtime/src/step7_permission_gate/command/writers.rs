//! What programs do to files whose trade it is to change them: `cp`, `dd`, `rm` and their like.

use super::{
    CommandContext, CommandPart,
    changes::Changes,
    dirs::PathTarget,
    escapes::sed_files,
    named::{NamedFile, has_pattern, named, place_in, shortened},
    options::{has_letter, is_long, operands},
    part::base,
};
use crate::step7_permission_gate::{
    path_rule::lies_in,
    protected::is_protected,
    shell::word::{PieceKind, Word, WordSpan},
};

/// Directories of `-t` that are looked at. `cp` refuses a second one; with more of them it is not known where it
/// writes.
const MAX_INTO: usize = 4;

/// Adds what such a program does to its operands.
pub(super) fn writer(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let at = |word: &Word| named(word, part, around);
    let plain: Vec<&Word> = operands(args).collect();
    let mut into = into(args);
    if into.len() > MAX_INTO {
        into.clear();
        let anywhere = PathTarget::Open(String::new());
        found.changes.push(NamedFile { target: anywhere, paths: Vec::new() });
    }
    match name {
        "cp" | "mv" | "install" | "ln" => {
            place_copies(name, args, (&plain, &into), part, around, found)
        }
        "sed" => {
            if let Some(files) = sed_files(args) {
                found.reads.extend(files.reads.iter().map(&at));
                found.changes.extend(files.writes.iter().map(&at));
            }
            let n_skipped = usize::from(has_pattern("sed", args));
            let files = plain.iter().skip(n_skipped).map(|it| at(it));
            if args.iter().any(|it| edits_in_place(&it.text)) {
                found.changes.extend(files);
                let copies = plain.iter().skip(n_skipped).flat_map(|it| sed_copies(args, it));
                found.changes.extend(copies.map(|it| at(&it)));
            } else {
                found.reads.extend(files)
            }
        }
        "dd" => {
            for arg in args {
                if let Some(to) = arg.text.strip_prefix("of=") {
                    found.changes.push(at(&shortened(arg, to)));
                } else if let Some(from) = arg.text.strip_prefix("if=") {
                    found.reads.push(at(&shortened(arg, from)));
                }
            }
        }
        "tee" => found.writes.extend(plain.iter().map(|it| at(it))),
        "rm" | "rmdir" | "unlink" | "shred" => remove(&plain, args, part, around, found),
        // The first operand is a mode or an owner.
        "chmod" | "chown" | "chgrp" => found.changes.extend(plain.iter().skip(1).map(|it| at(it))),
        _ => found.changes.extend(plain.iter().map(|it| at(it))),
    }
}

/// Adds what `cp`, `mv`, `install` and `ln` put at their destinations, and what they read or remove for it. `plain` are
/// their operands, `into` the directories of `-t`.
fn place_copies(
    name: &str,
    args: &[Word],
    (plain, into): (&[&Word], &[Word]),
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let at = |word: &Word| named(word, part, around);
    let makes_directories = name == "install"
        && args
            .iter()
            .any(|it| has_letter(&it.text, 'd', "mogtS") || is_long(&it.text, "--directory"));
    let (sources, destinations) = match (into, plain) {
        _ if makes_directories => (&[][..], plain.iter().copied().cloned().collect()),
        ([], [from @ .., last]) if !from.is_empty() => (from, vec![Word::clone(last)]),
        // A link to a single operand is made where the shell is.
        ([], all) => (all, vec![Word::plain(".")]),
        (into, all) => (all, into.to_vec()),
    };
    for to in &destinations {
        let to = at(to);
        for source in sources {
            // If it is a directory, the file gets its name in there.
            let name = base(source.text.trim_end_matches('/'));
            let below = match &to.target {
                PathTarget::Known(text) if source.is_literal() => {
                    PathTarget::Known(format!("{text}/{name}"))
                }
                other => PathTarget::Open(format!("{}/{name}", other.text())),
            };
            let below = place_in(below, &part.dirs, around);
            if below.paths.iter().any(|it| is_protected(it)) {
                found.changes.push(below);
            }
        }
        found.changes.push(to);
    }
    super::links::renamed(name, args, (sources, &destinations), part, around, found);
    let is_whole = |it: &&&Word| name == "mv" && !it.has_glob();
    found.is_critical |=
        sources.iter().filter(is_whole).any(|it| is_critical(it, &at(it), part, around));
    let sources = sources.iter().map(|it| at(it));
    match name {
        "mv" => found.removes.extend(sources),
        _ => {
            found.reads.extend(sources.clone());
            found.trees.extend(sources);
        }
    }
}

/// Adds what `rm` and its like remove, with all below it if they go into directories.
fn remove(
    plain: &[&Word],
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let is_recursive = args.iter().any(|it| {
        has_letter(&it.text, 'r', "")
            || has_letter(&it.text, 'R', "")
            || is_long(&it.text, "--recursive")
    });
    for word in plain {
        let mut named = named(word, part, around);
        found.is_critical |= is_critical(word, &named, part, around);
        if is_recursive {
            found.is_critical |= part.dirs.is_unknown() && is_all_here(&named);
            found.unknown_trees.extend(is_unknown(word).then(|| Word::clone(word)));
            named.paths.iter_mut().filter(|it| it.ends_with("/*")).for_each(|it| it.push('*'));
        }
        found.removes.push(named);
    }
}

/// Whether a word is an expansion alone, so that it may be the root or home.
fn is_unknown(word: &Word) -> bool {
    let is_whole = |it: &WordSpan| it.start == 0 && it.end == word.text.len();
    let is_open = |it: &WordSpan| it.piece != PieceKind::Quoted;
    !matches!(&*word.text, "$PWD" | "${PWD}" | "$HOME" | "${HOME}")
        && word.spans.first().is_some_and(|it| is_open(it) && is_whole(it))
}

/// Whether it is the directory that the shell is in, all in it, or what it lies in.
fn is_all_here(named: &NamedFile) -> bool {
    let mut parts = named.target.text().split('/');
    !named.target.text().starts_with('/')
        && parts.all(|it| matches!(it, "" | "." | ".." | "*" | ".*" | "**"))
}

/// Returns the directories of `-t` and `--target-directory`.
pub(super) fn into(args: &[Word]) -> Vec<Word> {
    let mut found = Vec::new();
    for (i, arg) in args.iter().enumerate().take_while(|it| it.1.text != "--") {
        let text = arg.text.as_str();
        let value = if is_long(text, "--target-directory") {
            text.split_once('=').map_or("", |it| it.1)
        } else if has_letter(text, 't', "SmogZ") {
            text.split_once('t').map_or("", |it| it.1)
        } else {
            continue;
        };
        match value {
            "" => found.extend(args.get(i + 1).cloned()),
            value => found.push(shortened(arg, value)),
        }
    }
    found
}

pub(super) fn edits_in_place(option: &str) -> bool {
    has_letter(option, 'i', "efl") || is_long(option, "--in-place")
}

/// Where `sed -i` keeps a file as it was: under its name with the suffix, or under the suffix with the name in the place
/// of each `*`; that may be in another directory. Source: the manual of GNU sed 4.9.
fn sed_copies(args: &[Word], file: &Word) -> Vec<Word> {
    let suffix = |it: &str| {
        if has_letter(it, 'i', "efl") {
            it.split_once('i').map(|it| it.1.to_owned())
        } else if is_long(it, "--in-place") {
            it.split_once('=').map(|it| it.1.to_owned())
        } else {
            None
        }
    };
    let options = args.iter().take_while(|it| it.text != "--");
    let suffixes = options.filter_map(|it| suffix(&it.text)).filter(|it| !it.is_empty());
    let name = base(&file.text);
    let directory = &file.text[..file.text.len() - name.len()];
    let mut found = Vec::new();
    for suffix in suffixes {
        // Whatever a pattern meets gets a copy there.
        if !file.is_literal() {
            let elsewhere = suffix.rsplit_once('/').map(|it| format!("{}/", it.0));
            found.extend(elsewhere.map(|it| Word::plain(&it)));
            continue;
        }
        let copy = if suffix.contains('*') {
            suffix.replace('*', name)
        } else {
            format!("{name}{suffix}")
        };
        found.push(Word::plain(&format!("{directory}{copy}")));
        if copy.contains('/') {
            found.push(Word::plain(&copy));
        }
    }
    found
}

/// Returns whether a word is the root, a top directory, home, the workspace or what they lie in, or becomes one with an
/// empty variable.
pub(super) fn is_critical(
    word: &Word,
    named: &NamedFile,
    part: &CommandPart,
    around: &CommandContext,
) -> bool {
    let text = word.text.as_str();
    let follows_open = word.spans.iter().any(|it| {
        it.start == 0 && it.piece != PieceKind::Quoted && text[it.end..].starts_with(['/', '*'])
    });
    if follows_open || is_home_of_somebody(word) {
        return true;
    }
    let is_bare_expansion = matches!(named.target, PathTarget::Open(_));
    if is_bare_expansion || part.dirs.is_unknown() && !named.target.text().starts_with('/') {
        return false;
    }
    let holds = |path: &str, inner: &str| lies_in(inner, path);
    named.paths.iter().any(|path| {
        let path = path.strip_suffix("/*").unwrap_or(path);
        let is_top = path.matches('/').count() <= 1;
        is_top || holds(path, &around.home) || around.workspace.iter().any(|it| holds(path, it))
    })
}

/// Whether a word is `~name`, `~+` or `~-`: a home directory, or one that the shell works or worked in.
fn is_home_of_somebody(word: &Word) -> bool {
    let name = word.text.strip_prefix('~').map(|it| it.trim_end_matches(['/', '*', '.']));
    let is_quoted = word.spans.iter().any(|it| it.start == 0 && it.piece == PieceKind::Quoted);
    !is_quoted && name.is_some_and(|it| !it.contains('/'))
}
