//! Files that the words of a part name, whatever its program does with them.
//!
//! There are more programs that read what their arguments name than a list can hold. So a rule that denies a
//! path holds for each word that names it, except of programs that are known to open no such word.

use std::collections::BTreeSet;

use super::{
    CommandContext, CommandPart,
    class::{READS, is_run},
    dirs::{Dirs, PathTarget, target},
    escapes,
    file_url::file_url,
    git_files,
    interpreters::is_interpreter,
    named::{NamedFile, has_pattern, place_in, shortened, values},
    names::Names,
    options::included,
    outputs,
    part::base,
    programs::{LISTERS, MORE_READERS, PRINTERS, READERS, SHELLS, WRITERS},
    starts::program_at,
    suspects::of_program,
};
use crate::step7_permission_gate::shell::{braces, tree::Redirect, word::Word};

/// A file that a word names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) named: NamedFile,
    /// The program may read it.
    pub(crate) may_read: bool,
    /// The program may change it.
    pub(crate) may_write: bool,
    /// If it is a directory, the program may go through what is in it.
    pub(crate) is_tree: bool,
    /// It is known which file that is, as far as its text is.
    pub(crate) is_placed: bool,
}

/// Builtins that open no operand, and programs that are looked at elsewhere.
static OPEN_NOTHING: Names = Names::of(&[
    "cd", "pushd", "popd", "dirs", "export", "local", "declare", "typeset", "readonly", "set",
    "unset", "let", "exit", "return", "umask", "ulimit", "getopts", "shift", "jobs", "fg", "bg",
    "kill", "eval", "trap", "alias", "unalias", "shopt", "git", "mkfifo", "mknod", "mktemp",
]);

/// Programs whose bare operands are names of targets, scripts or tests. A word with a slash or a dot is a path.
static TAKE_TARGETS: Names = Names::of(&[
    "make", "gmake", "cargo", "npm", "npx", "yarn", "pnpm", "bun", "just", "task", "rake", "ninja",
    "docker", "pytest",
]);

/// Options whose value is a text for people.
static MESSAGES: Names = Names::of(&[
    "-m",
    "--message",
    "--body",
    "--title",
    "--description",
    "--notes",
    "--text",
    "--label",
]);

/// Returns the files that the words of parts name, each once.
pub(super) fn mentioned(parts: &[CommandPart], around: &CommandContext) -> Vec<Mention> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut last = None;
    for part in parts {
        // From the same place the same word names the same file.
        let here = (&part.dirs, part.is_displaced, part.is_lost);
        if last.replace(here).is_none_or(|it| it != here) {
            seen.clear();
        }
        let kinds = |it: &Word| (it.is_known(), it.has_glob(), it.has_tilde());
        let mut add = |word: &Word, kind: FileUse<'_>| {
            let FileUse { may_read, may_write, is_tree, .. } = kind;
            let is_new = kind.dirs.is_some()
                || seen.insert((word.text.clone(), kinds(word), may_read, may_write, is_tree));
            if word.text.is_empty() || !is_new {
                return;
            }
            let target = target(word, &around.home, part.is_lost);
            let dirs = kind.dirs.unwrap_or(&part.dirs);
            let is_path = is_tree && !word.text.starts_with('-');
            let leads = part.leads(&target, dirs);
            let is_open = matches!(target, PathTarget::Open(_));
            let named = place_in(target, dirs, around);
            let is_lost = !is_open && matches!(named.target, PathTarget::Open(_));
            let is_placed = !is_path || leads && !is_lost;
            found.push(Mention { named, may_read, may_write, is_tree, is_placed });
        };
        of_part(part, around, &mut add);
    }
    found
}

/// What becomes of the file that a word names.
#[derive(Clone, Copy)]
struct FileUse<'a> {
    may_read: bool,
    may_write: bool,
    is_tree: bool,
    /// Where a relative path begins, if not where the part runs.
    dirs: Option<&'a Dirs>,
}

const READ: FileUse<'static> =
    FileUse { may_read: true, may_write: false, is_tree: true, dirs: None };
const WRITE: FileUse<'static> =
    FileUse { may_read: false, may_write: true, is_tree: true, dirs: None };
const BOTH: FileUse<'static> =
    FileUse { may_read: true, may_write: true, is_tree: true, dirs: None };

fn of_part(part: &CommandPart, around: &CommandContext, add: &mut impl FnMut(&Word, FileUse<'_>)) {
    for it in part.assignments.iter().filter(|it| is_run(&it.name)) {
        each(&it.value, |word| add(word, BOTH));
    }
    let program = program_at(part);
    for word in part.words.iter().take(program) {
        each(word, |word| add(word, BOTH));
    }
    let Some((word, args)) = part.words.get(program..).and_then(|it| it.split_first()) else {
        return;
    };
    // A program that is called by its path, and a file that is taken for one.
    if word.text.contains(['/', '.']) {
        add(word, FileUse { is_tree: false, ..READ });
    }
    let name = base(&word.text);
    if name == "git" {
        let call = escapes::call(args);
        let dirs = git_files::directories(&call, part, around);
        // Before `--` it may be a branch.
        let is_tree = call.command != "checkout" || args.iter().any(|it| it.text == "--");
        for word in outputs::of_git(args) {
            add(&word, FileUse { is_tree, dirs: Some(&dirs), ..WRITE });
        }
        return;
    }
    for word in outputs::words(name, args) {
        add(&word, WRITE);
    }
    if OPEN_NOTHING.contains(name) || PRINTERS.contains(name) {
        return;
    }
    if is_interpreter(name) {
        let is_text = |it: &Redirect| matches!(it, Redirect::Text | Redirect::Document(_));
        let texts = part.redirections.iter().filter(|it| is_text(&it.0)).map(|it| &it.1.text);
        for text in args.iter().map(|it| &it.text).chain(texts) {
            of_program(text, &mut |word| add(word, BOTH));
        }
    }
    if name == "sed" && escapes::sed_files(args).is_none() {
        outputs::of_script(args).iter().for_each(|it| add(it, READ));
    }
    if READERS.contains(name) || MORE_READERS.contains(name) || WRITERS.contains(name) {
        of_options(name, args, add);
        return;
    }
    let only_reads = SHELLS.contains(name) || READS.contains(name);
    let kind = if only_reads { READ } else { BOTH };
    let has_targets = TAKE_TARGETS.contains(name);
    let mut is_skipped = false;
    let mut is_value = false;
    for arg in included(args) {
        let text = arg.text.as_str();
        let is_message = std::mem::replace(&mut is_skipped, MESSAGES.contains(text));
        if is_message && file_url(text).is_none() {
            continue;
        }
        // The text after `-c` is taken apart as a command.
        if SHELLS.contains(name) && text.contains(char::is_whitespace) {
            continue;
        }
        let follows = std::mem::replace(&mut is_value, text.starts_with('-'));
        let is_target = has_targets
            && !(follows && name.ends_with("make"))
            && !text.contains(['/', '.', '=', ':']);
        each(arg, |word| add(word, FileUse { is_tree: !is_target, ..kind }));
    }
}

/// Values that are joined to options of a program whose operands are looked at elsewhere.
fn of_options(name: &str, args: &[Word], add: &mut impl FnMut(&Word, FileUse<'_>)) {
    if matches!(name, "find" | "chmod" | "chown" | "chgrp") || LISTERS.contains(name) {
        return;
    }
    let takes_pattern = has_pattern(name, &[]);
    let options = included(args).take_while(|it| it.text != "--");
    for arg in options.filter(|it| it.text.starts_with('-')) {
        let is_pattern = takes_pattern && arg.text.starts_with("-e");
        if !is_pattern && !arg.text.starts_with("--") {
            values(arg).iter().skip(1).for_each(|it| add(it, READ));
        }
    }
}

/// The word, and the pieces of it that may be names of files: `--file=x`, `x@file`, `src=file,dst=y`.
fn each(word: &Word, mut add: impl FnMut(&Word)) {
    let text = word.text.as_str();
    if let Some(url) = file_url(text) {
        // `curl` expands braces itself.
        let url = shortened(word, &url);
        let all = braces::expanded(&url).unwrap_or_else(|| vec![url]);
        all.iter().for_each(&mut add);
        // The clients of AWS take the rest as a path.
        let path = text.split_once("file://").or(text.split_once("fileb://"));
        path.into_iter().for_each(|it| add(&shortened(word, it.1)));
    }
    if !text.contains("://") {
        values(word).iter().for_each(&mut add);
    }
    let divides = |c: char| "=:,;@<>|+{}".contains(c);
    if text.contains(char::is_whitespace) || !text.contains(divides) {
        return;
    }
    for piece in text.split(|c| divides(c) && c != ':').filter(|it| !it.contains("://")) {
        add(&shortened(word, piece));
        if piece.contains(':') {
            piece.split(':').for_each(|it| add(&shortened(word, it)));
        }
    }
}
