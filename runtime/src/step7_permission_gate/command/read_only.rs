//! Commands that only read, and need no rule (cases A7).

use super::{
    CommandContext, CommandPart,
    composed::literal_start,
    dirs::{PathTarget, target},
    escapes::{self, call},
    named::{NamedFile, named},
    options::{has_letter, is_long, operands},
    programs::{HARMLESS, PRINTERS, READERS},
    walk::destination,
};
use crate::step7_permission_gate::{
    path_resolution::by_text,
    shell::{
        tree::Redirect,
        word::{PieceKind, Word, WordSpan},
    },
};

/// Returns whether a part only reads, and only in the workspace.
pub(in super::super) fn reads_only(part: &CommandPart, around: &CommandContext) -> bool {
    has_harmless_assignments(part)
        && part.fault.is_none()
        && !part.is_function
        && reads_elsewhere(part, around).next().is_none()
        && (part.words.is_empty() || is_in_set(part, around))
}

/// Returns whether every variable that is set is harmless, and its value known.
pub(super) fn has_harmless_assignments(part: &CommandPart) -> bool {
    part.assignments.iter().all(|it| {
        let is_known = it.value.is_known() && it.value.inner.is_empty();
        is_known && HARMLESS.contains(it.name.as_str())
    })
}

/// Returns the files from which a part is redirected that do not lie in the workspace, or of which that is not known.
pub(in super::super) fn reads_elsewhere(
    part: &CommandPart,
    around: &CommandContext,
) -> impl Iterator<Item = NamedFile> {
    part.redirections.iter().filter_map(move |(kind, word)| {
        let opens = matches!(kind, Redirect::Read | Redirect::ReadWrite);
        if !opens || is_device(&word.text) || is_of_process(word) {
            return None;
        }
        Some(named(word, part, around)).filter(|it| !it.is_inside(&part.dirs, around))
    })
}

/// Whether a word is a process substitution alone: its commands are parts of their own.
fn is_of_process(word: &Word) -> bool {
    let is_whole = |it: &WordSpan| it.start == 0 && it.end == word.text.len();
    !word.inner.is_empty() && word.text.starts_with("<(") && word.spans.iter().all(is_whole)
}

fn is_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdin")
}

fn is_in_set(part: &CommandPart, around: &CommandContext) -> bool {
    let name = part.name();
    if escapes::escapes(part) || escapes::may_escape(part) {
        return false;
    }
    let opens = match name {
        "cd" | "pushd" => return enters_workspace(part, around),
        "command" => return asks(part),
        "git" if reads_repository(part) => true,
        "git" => return false,
        _ if READERS.contains(name) => true,
        _ if PRINTERS.contains(name) => false,
        _ => return false,
    };
    // What its input names is not known.
    if opens && part.is_fed {
        return false;
    }
    (name != "date" || names_known_files(part.args()))
        && part.args().iter().all(|it| is_inside(it, opens, part, around))
}

/// Whether every word of a `date` is known that may name a file: all but its format, and the time after `-d`.
fn names_known_files(args: &[Word]) -> bool {
    let is_one =
        |it: &Word| it.spans.iter().all(|it| it.piece != PieceKind::Open { quoted: false });
    let is_time = |text: &str| is_long(text, "--date") || has_letter(text, 'd', "frsI");
    let takes_next = |text: &str| {
        is_time(text) && !text.contains('=') && (text.starts_with("--") || text.ends_with('d'))
    };
    args.iter().enumerate().all(|(i, arg)| {
        let follows = || i > 0 && args[i - 1].is_known() && takes_next(&args[i - 1].text);
        let text = literal_start(arg);
        let begins = text.starts_with('+') || text.contains('=') && is_time(text);
        let is_attached = !text.starts_with("--") && is_time(text);
        arg.is_known() || is_one(arg) && (begins || is_attached || follows())
    })
}

/// `command -v` and `-V`.
fn asks(part: &CommandPart) -> bool {
    part.args().first().is_some_and(|it| matches!(&*it.text, "-v" | "-V" | "-pv" | "-pV"))
}

/// Returns whether a `cd` stays in the workspace wherever it starts.
pub(super) fn enters_workspace(part: &CommandPart, around: &CommandContext) -> bool {
    let Some(PathTarget::Known(to)) = destination(part, &around.home) else { return false };
    let is_placed = to.starts_with('/') || !part.is_lost;
    let to = part.dirs.join(&to, around);
    is_placed && to.all().is_some_and(|mut all| all.all(|it| around.hold(it)))
}

/// Whether a word names nothing outside the workspace.
fn is_inside(word: &Word, opens: bool, part: &CommandPart, around: &CommandContext) -> bool {
    let text = word.text.as_str();
    if opens && !word.is_known() {
        return false;
    }
    if let Some((option, value)) = text.split_once('=').filter(|it| it.0.starts_with('-')) {
        let _ = option;
        return !leads_away(value) || holds(value, part, around);
    }
    if text.starts_with('-') && text.len() > 1 {
        let may_open = (opens || part.name() == "date") && !text.starts_with("--");
        let mut files = attached(part.name(), text).filter(|it| it.len() > 1 && leads_away(it));
        return !may_open || files.all(|it| holds(it, part, around));
    }
    if !opens && !leads_away(text) {
        return true;
    }
    let NamedFile { target, paths } = named(word, part, around);
    match target {
        PathTarget::Open(_) if opens || word.has_tilde() => false,
        PathTarget::Open(text) => !leads_away(&text),
        PathTarget::Known(text) if is_device(&text) => true,
        PathTarget::Known(text) | PathTarget::Glob(text) => {
            let is_placed = text.starts_with('/') || !part.dirs.is_unknown();
            is_placed && !climbs_by_glob(&text) && paths.iter().all(|it| around.hold(it))
        }
    }
}

/// What may be the value of the last letter of a cluster: the rest after its first letter, and after each further
/// one that has none in front of it that takes the rest itself.
fn attached<'a>(name: &str, cluster: &'a str) -> impl Iterator<Item = &'a str> {
    // GNU grep 3.8, ripgrep 13: all but `-f`, whose value is a file.
    let valued = match name {
        "grep" | "egrep" | "fgrep" => "ABCDdem",
        "rg" => "ABCEMdegjmrtT",
        _ => "",
    };
    let letters = cluster.bytes().skip(1).take_while(u8::is_ascii_alphanumeric);
    let n_flags = letters.take_while(|it| !valued.as_bytes().contains(it)).count();
    (2..n_flags.max(1) + 2).filter_map(|at| cluster.get(at..))
}

/// Whether a text is a path to elsewhere, whatever the command.
fn leads_away(text: &str) -> bool {
    text.starts_with(['/', '~'])
        || text == ".."
        || text.starts_with("../")
        || text.contains("/../")
        || text.ends_with("/..")
        || text.starts_with("..")
}

fn holds(text: &str, part: &CommandPart, around: &CommandContext) -> bool {
    let word = Word::plain(text);
    match target(&word, &around.home, part.is_lost) {
        PathTarget::Known(text) if text.starts_with('/') => {
            is_device(&text) || around.hold(&by_text(&text))
        }
        PathTarget::Known(_) => named(&word, part, around).is_inside(&part.dirs, around),
        _ => false,
    }
}

/// `.*` matches `..`, too.
fn climbs_by_glob(text: &str) -> bool {
    text.split('/').any(|it| {
        it.starts_with('.')
            && it[1..].starts_with(['*', '?', '[', '.'])
            && it != "..."
            && it.contains(['*', '?', '['])
    })
}

/// Commands of git that change nothing.
fn reads_repository(part: &CommandPart) -> bool {
    let call = call(part.args());
    // Another directory has another configuration, and that may run programs.
    let stays = call.global.iter().all(|it| matches!(&*it.text, "--no-pager" | "-P"))
        && !part.has_moved
        && !part.dirs.is_unknown();
    let options = || call.args.iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    let first = call.args.first().map_or("", |it| it.text.as_str());
    let is_reader = match call.command {
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "blame" | "describe"
        | "shortlog" | "cat-file" | "grep" | "ls-tree" | "rev-list" | "merge-base" => true,
        "branch" => lists_branches(call.args),
        "remote" => call.args.iter().all(|it| matches!(&*it.text, "-v" | "--verbose")),
        "tag" => call.args.is_empty() || lists_tags(call.args),
        "stash" => matches!(first, "list" | "show"),
        "config" => escapes::reads_config(call.args),
        "" => call.args.is_empty() && part.args().iter().all(|it| it.text == "--version"),
        _ => false,
    };
    // Help is shown by whatever program is configured.
    stays && is_reader && !options().any(|it| it == "--help")
}

/// `tag` with options that list.
fn lists_tags(args: &[Word]) -> bool {
    let options = || args.iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    let known = |it: &str| {
        let name = it.split_once('=').map_or(it, |it| it.0);
        let is_number =
            name.strip_prefix("-n").is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        is_number
            || matches!(
                name,
                "-l" | "--list"
                    | "-i"
                    | "--ignore-case"
                    | "--sort"
                    | "--format"
                    | "--contains"
                    | "--no-contains"
                    | "--merged"
                    | "--no-merged"
                    | "--points-at"
                    | "--color"
                    | "--column"
                    | "--no-column"
            )
    };
    options().all(known) && options().any(|it| it == "--list" || has_letter(it, 'l', ""))
}

/// `branch` with options that list.
fn lists_branches(args: &[Word]) -> bool {
    let lists = |text: &str| {
        let name = text.split_once('=').map_or(text, |it| it.0);
        let short = "-arvilq";
        matches!(
            name,
            "--all"
                | "--remotes"
                | "--verbose"
                | "--list"
                | "--show-current"
                | "--contains"
                | "--no-contains"
                | "--merged"
                | "--no-merged"
                | "--sort"
                | "--format"
                | "--points-at"
                | "--color"
                | "--no-color"
                | "--column"
                | "--no-column"
                | "--ignore-case"
                | "--abbrev"
                | "--no-abbrev"
                | "--quiet"
        ) || !name.starts_with("--") && name.bytes().all(|it| short.as_bytes().contains(&it))
    };
    let options = || args.iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    let takes_names = options().any(|it| {
        let name = it.split_once('=').map_or(it, |it| it.0);
        matches!(
            name,
            "--list" | "--contains" | "--no-contains" | "--merged" | "--no-merged" | "--points-at"
        ) || !it.starts_with("--") && it.contains('l')
    });
    options().all(lists) && (takes_names || operands(args).next().is_none())
}
