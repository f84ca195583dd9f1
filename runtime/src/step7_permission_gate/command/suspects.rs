//! Protected paths that are named to a program whose use of them is not known: `gcc -o`,
//! `wget -P`, `python -c`.
//!
//! The other way round than for what only reads: there are more programs that write what they are
//! recognised by an argument than a list can hold. A path that is read after all costs a question and nothing more.

use super::{
    CommandContext, CommandPart,
    changes::Changes,
    class::READS,
    interpreters::is_interpreter,
    named::{named, shortened, values},
    names::Names,
    options::included,
    part::base,
    programs::{MORE_READERS, PRINTERS, READERS, RUNS_TEXT, SHELLS, WRITERS},
    runners::{LOOKED_THROUGH, OPAQUE},
    starts::MAX_STARTS,
};
use crate::step7_permission_gate::{
    protected::is_protected,
    shell::{tree::Redirect, word::Word},
};

/// Programs that are looked at elsewhere, and builtins that open no file.
static LOOKED_AT: Names = Names::of(&[
    "cd", "pushd", "popd", "dirs", "export", "local", "declare", "typeset", "readonly", "set",
    "unset", "let", "exit", "return", "umask", "ulimit", "getopts", "shift", "jobs", "fg", "bg",
    "kill", "git", "find", "tar", "rsync", "scp", "gzip", "gunzip", "xz", "unxz", "zstd", "unzstd",
    "ssh",
]);

/// Programs that run another one and write files of their own. Sources: GNU time 1.9, strace 6.1, ltrace 0.7,
/// util-linux 2.38 (`script`, `flock`), perf 6.1, valgrind 3.19, rr 5.6.
pub(crate) static WRITING_WRAPPERS: Names = Names::of(&[
    "time",
    "strace",
    "ltrace",
    "script",
    "flock",
    "perf",
    "valgrind",
    "rr",
    "logsave",
    "uftrace",
    "heaptrack",
    "gdbserver",
    "systemd-run",
    "bwrap",
]);

/// Adds the protected paths among the words of a program that is not known to leave them alone.
pub(super) fn suspected(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let mut add = |word: &Word| {
        let file = named(word, part, around);
        if file.paths.iter().any(|it| is_protected(it)) {
            found.suspected.push(file);
        }
    };
    for it in &part.assignments {
        // The directory of the history is not a file that is written.
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
        let plain = args.iter().filter(|it| !it.text.contains(char::is_whitespace));
        plain.for_each(|it| of_word(it, &mut add));
        if let Some(text) = part.piped.as_ref().and_then(|it| it.text.as_ref()) {
            of_program(text, &mut add);
        }
        return;
    }
    if SHELLS.contains(name) {
        // What follows the text is for its `$1`.
        let is_text = |it: &&Word| it.text.contains(char::is_whitespace);
        args.iter().filter(|it| !is_text(it)).for_each(|it| of_word(it, &mut add));
        return;
    }
    let lists: [&Names; 8] = [
        &READERS,
        &PRINTERS,
        &MORE_READERS,
        &WRITERS,
        &RUNS_TEXT,
        &OPAQUE,
        &LOOKED_THROUGH,
        &READS,
    ];
    if LOOKED_AT.contains(name) || lists.iter().any(|it| it.contains(name)) {
        return;
    }
    for arg in included(args) {
        let text = arg.text.as_str();
        if text.starts_with('!') || text.contains("://") {
            continue;
        }
        of_word(arg, &mut add);
    }
}

/// Adds the protected paths among the words in front of the program: `flock FILE`, `strace -o FILE`.
pub(super) fn of_wrappers(
    program: usize,
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let names = |it: &Word| WRITING_WRAPPERS.contains(base(&it.text));
    let writes = part.words.iter().take(MAX_STARTS.min(program + 1)).any(names);
    // Those with options for files take them wherever they are.
    let n_words = if writes { part.words.len() } else { program };
    let mut add = |word: &Word| {
        let file = named(word, part, around);
        if file.paths.iter().any(|it| is_protected(it)) {
            found.suspected.push(file);
        }
    };
    part.words.iter().take(n_words).for_each(|it| of_word(it, &mut add));
    // What would run is as likely the value of an option.
    if program > 0 && !writes {
        part.words.get(program).into_iter().for_each(add);
    }
}

/// A word, and the values and paths in it.
fn of_word(word: &Word, add: &mut impl FnMut(&Word)) {
    for value in values(word) {
        add(&value);
        if value.text.contains([':', ',']) {
            value.text.split([':', ',', '=']).for_each(|it| add(&shortened(word, it)));
        }
    }
}

/// Finds the texts in a program of another language that may be names of files.
pub(super) fn of_program(text: &str, add: &mut impl FnMut(&Word)) {
    let ends = |c: char| c.is_whitespace() || "\"'`(){}[];,=|<>".contains(c);
    let mut is_quoted = false;
    for piece in text.split_inclusive(ends) {
        let end = piece.chars().next_back().filter(|it| ends(*it));
        let begins_text = std::mem::replace(&mut is_quoted, matches!(end, Some('"' | '\'' | '`')));
        let piece = end.map_or(piece, |it| &piece[..piece.len() - it.len_utf8()]);
        let piece = piece.trim_start_matches(['+', '&']);
        // A pattern, as in `/.git/`.
        let is_pattern = piece.len() > 1 && piece.starts_with('/') && piece.ends_with('/');
        let may_be_path = begins_text && !piece.is_empty() || piece.contains(['.', '/']);
        if may_be_path && !is_pattern {
            add(&Word::plain(piece));
        }
    }
}
