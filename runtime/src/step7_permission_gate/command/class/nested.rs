//! Classes of programs that run others, and of what is done to each file that a search or a loop finds.

use super::{
    CommandClass::{self, Dangerous, ReadOnly},
    of_part, of_write, tables,
};
use crate::step7_permission_gate::{
    command::{
        CommandContext, CommandPart,
        files::changes,
        named::{NamedFile, listed, named, shortened},
        options::{has_letter, is_long},
        part::base,
        piped::Piped,
        programs::SHELLS,
        searches::{lists_here, start_of_find},
        starts::xargs_command,
    },
    shell::word::{PieceKind, Word},
};

/// Programs that run each other, and commands that one `find` runs. Who writes more of them has something
/// to hide, and to look into each would take twice the work for each more.
const MAX_INNER: usize = 8;

/// Programs that run another one after words of their own that name no file.
const RUNNERS: [&str; 8] =
    ["env", "setsid", "ionice", "watch", "nohup", "time", "timeout", "stdbuf"];

/// Returns the class of a program that runs others; `None` if it does not.
pub(super) fn class(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
) -> Option<CommandClass> {
    let class = match name {
        "find" => of_find(args, part, around),
        "xargs" => of_xargs(args, part, around),
        "flock" => of_flock(args, part, around),
        "env" if args.iter().all(|it| it.text.is_empty()) => ReadOnly,
        // What it is redirected to the shell itself writes.
        "exec" if args.is_empty() => ReadOnly,
        "exec" if args[0].is_literal() && !args[0].text.starts_with('-') => {
            of_inner(args, MoreWords::with(part), part, around)
        }
        _ if RUNNERS.contains(&name) => {
            let inner = args.iter().position(|it| {
                let is_number = it.text.bytes().all(|it| it.is_ascii_digit());
                !it.text.starts_with('-') && !it.text.contains('=') && !is_number && it.is_literal()
            });
            match inner {
                Some(at) if !args[..at].iter().any(|it| decides(&it.text)) => {
                    of_inner(&args[at..], MoreWords::with(part), part, around)
                }
                _ => Dangerous,
            }
        }
        _ => return None,
    };
    Some(class)
}

/// Where more words of an inner command come from.
#[derive(Clone, Copy)]
enum MoreWords {
    /// It has all of its words.
    Nothing,
    /// They come from an input that is not known.
    Unknown,
    /// They are there, and represent what a search finds.
    Search,
}

impl MoreWords {
    fn with(outer: &CommandPart) -> Self {
        if outer.is_fed { Self::Unknown } else { Self::Nothing }
    }
}

/// The class of a command that another one runs.
fn of_inner(
    words: &[Word],
    fed: MoreWords,
    outer: &CommandPart,
    around: &CommandContext,
) -> CommandClass {
    if MAX_INNER <= outer.n_outer {
        return Dangerous;
    }
    let mut inner = CommandPart::new(Vec::new(), words.to_vec(), Vec::new(), outer.dirs.clone());
    inner.n_outer = outer.n_outer + 1;
    inner.is_fed |= matches!(fed, MoreWords::Unknown);
    inner.is_bulk = outer.is_bulk || matches!(fed, MoreWords::Search);
    inner.is_lost = outer.is_lost;
    match inner.fault {
        Some(_) => Dangerous,
        None => of_part(&inner, &changes(&inner, around), around),
    }
}

/// Whether an argument of `env` decides what runs.
fn decides(arg: &str) -> bool {
    let sets = arg.split_once('=').is_some_and(|it| tables::is_run(it.0));
    sets || arg.starts_with("-S") || is_long(arg, "--split-string")
}

fn of_find(args: &[Word], part: &CommandPart, around: &CommandContext) -> CommandClass {
    let acts = |it: &Word| {
        ["-delete", "-fprint", "-fls", "-ok"].iter().any(|action| it.text.starts_with(action))
            || !it.is_known()
    };
    if args.iter().any(acts) {
        return Dangerous;
    }
    let begins = args.iter().enumerate().filter(|it| it.1.text.starts_with("-exec"));
    if MAX_INNER < begins.clone().count() {
        return Dangerous;
    }
    let mut roots: Vec<NamedFile> = start_of_find(args)
        .filter(|it| !it.text.starts_with('-'))
        .map(|it| named(it, part, around))
        .collect();
    if lists_here("find", args) {
        roots.push(named(&Word::plain("."), part, around));
    }
    let classes = begins.map(|(i, _)| {
        let inner = &args[i + 1..];
        let end = inner.iter().position(|it| matches!(&*it.text, ";" | "+")).unwrap_or(inner.len());
        of_each(&inner[..end], "{}", &roots, part, around)
    });
    classes.max().unwrap_or(ReadOnly)
}

/// The class of a command that is run for all that lies below these places. `mark` represents one of them.
fn of_each(
    words: &[Word],
    mark: &str,
    roots: &[NamedFile],
    part: &CommandPart,
    around: &CommandContext,
) -> CommandClass {
    if takes_into_script(words, mark) {
        return Dangerous;
    }
    let mut all: Vec<Word> = Vec::new();
    for word in words {
        if !mark.is_empty() && word.text.contains(mark) {
            all.extend(below(roots).map(|it| shortened(word, &word.text.replace(mark, &it.text))));
        } else {
            all.push(word.clone());
        }
    }
    if mark.is_empty() {
        all.extend(below(roots));
    }
    of_inner(&all, MoreWords::Search, part, around)
}

/// Whether what is found becomes part of a text that a shell runs: its parts do not show that.
fn takes_into_script(words: &[Word], mark: &str) -> bool {
    let is_within = |it: &Word| !mark.is_empty() && it.text != mark && it.text.contains(mark);
    words.iter().any(|it| SHELLS.contains(base(&it.text))) && words.iter().any(is_within)
}

/// A word with each of the lines in the place of the mark.
fn filled_in(word: &Word, mark: &str, lines: &str) -> Vec<Word> {
    if !word.text.contains(mark) {
        return vec![word.clone()];
    }
    let lines = lines.lines().map(str::trim_start);
    lines.map(|it| shortened(word, &word.text.replace(mark, it))).collect()
}

/// Patterns for all that lies below these places.
fn below(roots: &[NamedFile]) -> impl Iterator<Item = Word> {
    roots.iter().flat_map(|it| &it.paths).map(|it| {
        let at = it.trim_end_matches(['*', '/']);
        Word::plain(&format!("{at}/*"))
    })
}

fn of_xargs(args: &[Word], part: &CommandPart, around: &CommandContext) -> CommandClass {
    // Without a command it prints.
    let Some(at) = xargs_command(args) else { return ReadOnly };
    let (options, words) = args.split_at(at);
    let mark = options.iter().enumerate().find_map(|(i, it)| {
        let text = it.text.as_str();
        if let Some(mark) = text.strip_prefix("-I") {
            return Some(if mark.is_empty() { options.get(i + 1)?.text.as_str() } else { mark });
        }
        let is_short = has_letter(text, 'i', "adEILnPs");
        (is_short || is_long(text, "--replace")).then(|| {
            let mark = text.split_once('=').map(|it| it.1).or(text.strip_prefix("-i"));
            mark.filter(|it| !it.is_empty()).unwrap_or("{}")
        })
    });
    let is_own = options
        .iter()
        .any(|it| has_letter(&it.text, 'a', "dEILnPs") || is_long(&it.text, "--arg-file"));
    if is_own {
        return of_inner(words, MoreWords::Unknown, part, around);
    }
    fed(words, mark.unwrap_or_default(), part, around)
}

/// Returns the class of a command that `xargs` runs with what comes through the pipe, in the place of `mark` or after
/// the other words.
pub(super) fn fed(
    words: &[Word],
    mark: &str,
    part: &CommandPart,
    around: &CommandContext,
) -> CommandClass {
    if takes_into_script(words, mark) {
        return Dangerous;
    }
    let piped = part.piped.as_ref();
    if let Some(more) = piped.and_then(Piped::arguments) {
        let text = piped.and_then(|it| it.text.as_deref()).unwrap_or_default();
        let words: Vec<Word> = match mark {
            "" => words.iter().cloned().chain(more).collect(),
            mark => words.iter().flat_map(|it| filled_in(it, mark, text)).collect(),
        };
        return of_inner(&words, MoreWords::Nothing, part, around);
    }
    match piped.filter(|it| it.lists_files() && !it.is_filtered) {
        Some(piped) => {
            let roots: Vec<NamedFile> = listed(piped, part, around).collect();
            of_each(words, mark, &roots, part, around)
        }
        None => of_inner(words, MoreWords::Unknown, part, around),
    }
}

/// A file that is locked, and made for that, and a command.
fn of_flock(args: &[Word], part: &CommandPart, around: &CommandContext) -> CommandClass {
    let valued =
        |it: &str| matches!(it, "-w" | "-E" | "--wait" | "--timeout" | "--conflict-exit-code");
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|it| it.text.starts_with('-')) {
        at += 1 + usize::from(valued(&arg.text));
    }
    let Some((lock, rest)) = args.get(at..).and_then(<[Word]>::split_first) else {
        return Dangerous;
    };
    let is_number = lock.is_literal() && lock.text.bytes().all(|it| it.is_ascii_digit());
    let locks =
        if is_number { ReadOnly } else { of_write(&named(lock, part, around), part, around) };
    let runs = match rest.split_first() {
        None => ReadOnly,
        // The text is in parts of its own.
        Some((option, _)) if option.text.starts_with('-') => {
            let is_known = rest.len() == 2 && rest.iter().all(Word::is_known);
            if is_known { ReadOnly } else { Dangerous }
        }
        Some(_) => of_inner(rest, MoreWords::with(part), part, around),
    };
    locks.max(runs)
}

/// Returns a part with its loop variables replaced by what represents their values; `None` if it has none.
pub(super) fn in_loops(part: &CommandPart) -> Option<CommandPart> {
    if part.bound.is_empty() {
        return None;
    }
    let replaced = |it: &Word| replace(it, &part.bound);
    let words: Vec<Word> = part.words.iter().map(replaced).collect();
    let redirections = part.redirections.iter().map(|it| (it.0, replaced(&it.1))).collect();
    let mut found =
        CommandPart::new(part.assignments.clone(), words, redirections, part.dirs.clone());
    // A program whose name is a variable stays unknown.
    if part.fault.is_some()
        || part.inner().first().map(|it| &it.text) != found.inner().first().map(|it| &it.text)
    {
        return None;
    }
    (found.is_lost, found.is_call, found.is_fed) = (part.is_lost, part.is_call, part.is_fed);
    found.piped = part.piped.clone();
    Some(found)
}

/// A word with these variables replaced.
fn replace(word: &Word, bound: &[(String, Word)]) -> Word {
    let mut found = Word { inner: word.inner.clone(), sets: word.sets, ..Word::default() };
    let mut at = 0;
    for span in &word.spans {
        found.text.push_str(&word.text[at..span.start]);
        let text = &word.text[span.start..span.end];
        let start = found.text.len();
        let follows = word.text.as_bytes().get(span.end);
        let value = match span.piece {
            PieceKind::Open { .. } => {
                bound.iter().rev().find_map(|it| value_in(text, it, follows == Some(&b'/')))
            }
            PieceKind::Quoted => None,
        };
        match value {
            Some(value) => found.text.push_str(value),
            None => {
                found.text.push_str(text);
                found.mark(start, span.piece);
            }
        }
        at = span.end;
    }
    found.text.push_str(&word.text[at..]);
    found
}

/// What an expansion gives, if it is that of the variable: its value, or some name without an end or its directories.
fn value_in<'a>(
    text: &str,
    (name, value): &'a (String, Word),
    is_in_path: bool,
) -> Option<&'a str> {
    let rest = text.strip_prefix('$')?;
    let braced = rest.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let rest = braced.unwrap_or(rest).strip_prefix(name.as_str())?;
    match rest {
        "" => Some(&value.text),
        _ if braced.is_none() || is_in_path || rest.contains(['$', '`']) => None,
        "##*/" => Some("*"),
        // Without an end of it.
        rest if rest.starts_with('%') => Some("*"),
        _ => None,
    }
}
