//! Files that a part reads, changes and takes away, as far as its words say.

use super::{
    CommandContext, Part,
    dirs::{Dirs, Target, target},
    options::{has_letter, is_long, operands, value_of},
    part::base,
    programs::{LISTERS, MORE_READERS, READERS, WRITERS},
    scripts::starts,
};
use crate::step7_permission_gate::{
    path_resolution::by_text,
    path_rule::lies_in,
    protected::is_protected,
    shell::{
        tree::Redirect,
        word::{Piece, Word},
    },
};

/// One file that a part names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// What the word represents.
    pub(crate) target: Target,
    /// Where it may be, by text; as written where the directory is not known.
    pub(crate) paths: Vec<String>,
}

impl Named {
    /// Whether it is known, and lies in the workspace wherever the shell is.
    pub(crate) fn is_inside(&self, dirs: &Dirs, around: &CommandContext) -> bool {
        let is_known = matches!(self.target, Target::Known(_));
        let is_placed = self.target.text().starts_with('/') || !dirs.is_unknown();
        is_known && is_placed && self.paths.iter().all(|it| around.hold(it))
    }
}

/// What a part does to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Files that it reads.
    pub(crate) reads: Vec<Named>,
    /// Files and directories of which it reads all that is in them.
    pub(crate) trees: Vec<Named>,
    /// Files that operands name which it changes.
    pub(crate) changes: Vec<Named>,
    /// Targets of redirections and operands of `tee`.
    pub(crate) writes: Vec<Named>,
    /// Files and directories that it removes or moves away; `dir/*` for the files in it that have no
    /// dot in front, `dir/**` for the directories, too.
    pub(crate) removes: Vec<Named>,
    /// It removes what nobody should remove unasked.
    pub(crate) is_critical: bool,
}

impl Changes {
    /// Everything that is not as it was afterwards.
    pub(crate) fn altered(&self) -> impl Iterator<Item = &Named> {
        self.changes.iter().chain(&self.writes).chain(&self.removes)
    }
}

/// What a part does to files.
pub(crate) fn changes(part: &Part, around: &CommandContext) -> Changes {
    let mut found = Changes::default();
    for (kind, word) in &part.redirections {
        match kind {
            Redirect::Read => found.reads.push(named(word, part, around)),
            Redirect::Write => found.writes.push(named(word, part, around)),
            Redirect::ReadWrite => {
                found.reads.push(named(word, part, around));
                found.writes.push(named(word, part, around));
            }
            Redirect::Copy | Redirect::Text | Redirect::Document(_) => {}
        }
    }
    for start in starts(&part.words) {
        if let Some((name, args)) = part.words[start..].split_first() {
            operands_of(base(&name.text), args, part, around, &mut found);
        }
    }
    found
}

/// Where a word leads from every directory.
pub(super) fn named(word: &Word, part: &Part, around: &CommandContext) -> Named {
    place_in(target(word, &around.home, part.is_lost), &part.dirs)
}

/// Where something leads from these directories.
pub(super) fn place_in(target: Target, dirs: &Dirs) -> Named {
    let text = target.text();
    let paths = match (text.starts_with('/'), dirs.all()) {
        (true, _) => vec![by_text(text)],
        (false, Some(all)) => all.map(|it| by_text(&format!("{it}/{text}"))).collect(),
        (false, None) => vec![by_text(text).trim_start_matches('/').to_owned()],
    };
    Named { target, paths }
}

fn operands_of(
    name: &str,
    args: &[Word],
    part: &Part,
    around: &CommandContext,
    found: &mut Changes,
) {
    let at = |word: &Word| named(word, part, around);
    super::outputs::outputs(name, args, part, around, found);
    if WRITERS.contains(&name) {
        writer(name, args, part, around, found);
    } else if READERS.contains(&name) || MORE_READERS.contains(&name) {
        let n_skipped = usize::from(has_pattern(name, args));
        let files: Vec<Named> = operands(args).skip(n_skipped).map(at).collect();
        let runs = |it: &Word| it.text.starts_with("-exec") || it.text.starts_with("-ok");
        if !LISTERS.contains(&name) || name == "find" && args.iter().any(runs) {
            found.trees.extend(files.iter().cloned());
        }
        if reads_below(name, args) {
            // Options with values make it uncertain whether any operand is a file.
            found.trees.push(at(&Word::plain(".")));
        }
        found.reads.extend(files);
        let valued =
            args.iter().filter_map(|it| it.text.split_once('=')).filter(|it| it.0.starts_with('-'));
        found.reads.extend(valued.map(|it| at(&Word::plain(it.1))));
        if matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk") {
            let attached = args.iter().filter_map(|it| it.text.strip_prefix("-f"));
            found.reads.extend(attached.filter(|it| !it.is_empty()).map(|it| at(&Word::plain(it))));
        }
    } else if matches!(name, "curl" | "wget") {
        let letter = if name == "curl" { "-o" } else { "-O" };
        let long = if name == "curl" { "--output" } else { "--output-document" };
        for (i, arg) in args.iter().enumerate() {
            if arg.text == letter || arg.text == long {
                found.changes.extend(args.get(i + 1).map(at));
            } else if let Some(to) = value_of(&arg.text, long).or(arg.text.strip_prefix(letter)) {
                found.changes.push(at(&Word::plain(to)));
            }
        }
    } else if name == "git" {
        super::git_files::reads(args, part, around, found);
    } else if name == "date" {
        for arg in args.iter().filter(|it| !it.text.starts_with('+')) {
            let text = arg.text.as_str();
            let value = match text.strip_prefix("--") {
                Some(long) => long.split_once('=').map(|it| it.1),
                None if text.starts_with('-') => text.split_once(['f', 'r']).map(|it| it.1),
                None => Some(text),
            };
            found.reads.extend(value.map(|it| at(&shortened(arg, it))));
        }
    }
}

/// Whether a program reads everything below the directory that it runs in.
fn reads_below(name: &str, args: &[Word]) -> bool {
    let recurses = |it: &Word| {
        has_letter(&it.text, 'r', "efmABC")
            || has_letter(&it.text, 'R', "efmABC")
            || is_long(&it.text, "--recursive")
            || is_long(&it.text, "--dereference-recursive")
            || it.text.ends_with("recurse")
    };
    match name {
        "rg" | "ag" | "ack" => true,
        "grep" | "egrep" | "fgrep" | "zgrep" => args.iter().any(recurses),
        _ => false,
    }
}

/// Whether the first operand is a pattern or a script.
pub(super) fn has_pattern(name: &str, args: &[Word]) -> bool {
    let given = |it: &Word| {
        has_letter(&it.text, 'e', "")
            || has_letter(&it.text, 'f', "")
            || is_long(&it.text, "--regexp")
            || is_long(&it.text, "--file")
            || is_long(&it.text, "--expression")
            || it.text == "--files"
    };
    let has = [
        "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "nawk", "ag", "ack", "zgrep",
        "jq", "yq",
    ];
    has.contains(&name) && !args.iter().any(given)
}

fn writer(name: &str, args: &[Word], part: &Part, around: &CommandContext, found: &mut Changes) {
    let at = |word: &Word| named(word, part, around);
    let plain: Vec<&Word> = operands(args).collect();
    let into = into(args);
    match name {
        "cp" | "mv" | "install" | "ln" => {
            let makes_directories = name == "install"
                && args.iter().any(|it| {
                    has_letter(&it.text, 'd', "mogtS") || is_long(&it.text, "--directory")
                });
            let (sources, destinations) = match (&into[..], &plain[..]) {
                _ if makes_directories => (&[][..], plain.iter().copied().cloned().collect()),
                ([], [sources @ .., last]) if !sources.is_empty() => {
                    (sources, vec![Word::clone(last)])
                }
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
                        Target::Known(text) if source.is_literal() => {
                            Target::Known(format!("{text}/{name}"))
                        }
                        other => Target::Open(format!("{}/{name}", other.text())),
                    };
                    let below = place_in(below, &part.dirs);
                    if below.paths.iter().any(|it| is_protected(it)) {
                        found.changes.push(below);
                    }
                }
                found.changes.push(to);
            }
            let sources = sources.iter().map(|it| at(it));
            match name {
                "mv" => found.removes.extend(sources),
                _ => {
                    found.reads.extend(sources.clone());
                    found.trees.extend(sources);
                }
            }
        }
        "sed" => {
            let n_skipped = usize::from(has_pattern("sed", args));
            let files = plain.iter().skip(n_skipped).map(|it| at(it));
            match args.iter().any(|it| edits_in_place(&it.text)) {
                true => found.changes.extend(files),
                false => found.reads.extend(files),
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
        "rm" | "rmdir" | "unlink" | "shred" => {
            let is_recursive = args.iter().any(|it| {
                has_letter(&it.text, 'r', "")
                    || has_letter(&it.text, 'R', "")
                    || is_long(&it.text, "--recursive")
            });
            for word in plain {
                let mut named = at(word);
                found.is_critical |= is_critical(word, &named, part, around);
                if is_recursive {
                    named
                        .paths
                        .iter_mut()
                        .filter(|it| it.ends_with("/*"))
                        .for_each(|it| it.push('*'));
                }
                found.removes.push(named);
            }
        }
        // The first operand is a mode or an owner.
        "chmod" | "chown" | "chgrp" => found.changes.extend(plain.iter().skip(1).map(|it| at(it))),
        _ => found.changes.extend(plain.iter().map(|it| at(it))),
    }
}

/// A word without what is in front of a value.
pub(super) fn shortened(word: &Word, value: &str) -> Word {
    match word.is_literal() {
        true => Word::plain(value),
        false => {
            let mut short = Word::plain(value);
            short.mark(0, Piece::Open { quoted: false });
            short
        }
    }
}

/// The directories of `-t` and `--target-directory`.
fn into(args: &[Word]) -> Vec<Word> {
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

/// The root, a top directory, home, the workspace or what they lie in; and what an empty variable
/// makes of a word.
fn is_critical(word: &Word, named: &Named, part: &Part, around: &CommandContext) -> bool {
    let text = word.text.as_str();
    let follows_open = word.spans.iter().any(|it| {
        it.start == 0 && it.piece != Piece::Quoted && text[it.end..].starts_with(['/', '*'])
    });
    if follows_open {
        return true;
    }
    let is_bare_expansion = matches!(named.target, Target::Open(_));
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
