//! Protected paths that a program names of which nobody knows what it does with them: `gcc -o`,
//! `wget -P`, `python -c`.
//!
//! The other way round than for what only reads: there are more programs that write what they are
//! told to than a list can hold. A path that is read after all costs a question and nothing more.

use super::{
    CommandContext, Part,
    class::READS,
    files::{Changes, named, shortened},
    interpreters::is_interpreter,
    outputs::values,
    programs::{
        LOOKED_THROUGH, MORE_READERS, OPAQUE, PRINTERS, READERS, RUNS_TEXT, SHELLS, WRITERS,
    },
};
use crate::step7_permission_gate::{
    protected::is_protected,
    shell::{tree::Redirect, word::Word},
};

/// Programs that are looked at elsewhere, and builtins that open no file.
const LOOKED_AT: [&str; 34] = [
    "cd", "pushd", "popd", "dirs", "export", "local", "declare", "typeset", "readonly", "set",
    "unset", "let", "exit", "return", "umask", "ulimit", "getopts", "shift", "jobs", "fg", "bg",
    "kill", "git", "find", "tar", "rsync", "scp", "gzip", "gunzip", "xz", "unxz", "zstd", "unzstd",
    "ssh",
];

/// Adds the protected paths among the words of a program that is not known to leave them alone.
pub(super) fn suspected(
    name: &str,
    args: &[Word],
    part: &Part,
    around: &CommandContext,
    found: &mut Changes,
) {
    // Each protected name has a dot.
    let is_dotted = part.dirs.all().is_none_or(|mut it| it.any(|it| it.contains('.')));
    let mut add = |word: &Word| {
        if !is_dotted && !word.text.contains(['.', '~', '$']) {
            return;
        }
        let file = named(word, part, around);
        if file.paths.iter().any(|it| is_protected(it)) {
            found.suspected.push(file);
        }
    };
    for it in &part.assignments {
        // Where the history is kept is no file that is written.
        if it.name != "GIT_DIR" {
            add(&it.value);
        }
    }
    if is_interpreter(name) {
        let texts = part
            .redirections
            .iter()
            .filter(|it| matches!(it.0, Redirect::Text | Redirect::Document(_)));
        for word in args.iter().chain(texts.map(|it| &it.1)) {
            of_program(&word.text, &mut add);
        }
        if let Some(text) = part.piped.as_ref().and_then(|it| it.text.as_ref()) {
            of_program(text, &mut add);
        }
        return;
    }
    let lists: [&[&str]; 9] = [
        READERS,
        PRINTERS,
        MORE_READERS,
        WRITERS,
        SHELLS,
        RUNS_TEXT,
        OPAQUE,
        LOOKED_THROUGH,
        READS,
    ];
    if LOOKED_AT.contains(&name) || lists.iter().any(|it| it.contains(&name)) {
        return;
    }
    let mut leaves_out = false;
    for arg in args {
        let text = arg.text.as_str();
        let is_left_out = std::mem::replace(&mut leaves_out, excludes(text) && !text.contains('='));
        if is_left_out || excludes(text) || text.starts_with('!') || text.contains("://") {
            continue;
        }
        for value in values(arg) {
            add(&value);
            if value.text.contains([':', ',']) {
                value.text.split([':', ',', '=']).for_each(|it| add(&shortened(arg, it)));
            }
        }
    }
}

/// Whether an option names what is left alone.
fn excludes(option: &str) -> bool {
    let name = option.split_once('=').map_or(option, |it| it.0);
    name.starts_with('-')
        && ["exclude", "ignore", "skip", "except"].iter().any(|it| name.contains(it))
}

/// The texts in a program of another language that may be names of files.
fn of_program(text: &str, add: &mut impl FnMut(&Word)) {
    let ends = |c: char| c.is_whitespace() || "\"'`(){}[];,=|<>".contains(c);
    for piece in text.split(ends) {
        let piece = piece.trim_start_matches(['+', '&']);
        // A pattern, as in `/.git/`.
        let is_pattern = piece.len() > 1 && piece.starts_with('/') && piece.ends_with('/');
        if piece.contains('.') && !is_pattern {
            add(&Word::plain(piece));
        }
    }
}
