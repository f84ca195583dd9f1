//! Where commands begin in a part: at its start, and where something runs another one.

use super::{
    CommandPart,
    names::Names,
    options::is_long,
    part::base,
    runners::{LOOKED_THROUGH, OPAQUE, has_runner, is_loader},
};
use crate::step7_permission_gate::shell::word::{PieceKind, Word};

/// Words after a program that runs others at which the inner command may begin. A longer line is cut
/// there; without a limit the work would grow with the square of its length.
pub(crate) const MAX_STARTS: usize = 100;

/// Returns where commands may begin in a part: at its start, and where something runs others, at every later word.
pub(crate) fn starts(words: &[Word]) -> Vec<usize> {
    let mut starts = Vec::new();
    let stripped = super::wrappers::strip(words);
    for start in [0, stripped.start] {
        if start < words.len() && !starts.contains(&start) {
            starts.push(start);
        }
    }
    let Some(name) = words.get(stripped.start) else { return starts };
    let name = base(&name.text);
    let next = words.get(stripped.start + 1).map_or("", |it| it.text.as_str());
    let asks = name == "command" && next.starts_with('-') && next.contains(['v', 'V']);
    let first_words = || words.iter().take(MAX_STARTS).map(|it| it.text.as_str());
    if is_wrapper(name) && !asks || name == "find" || has_runner(name, first_words()) {
        let runs = |it: &Word| it.text.starts_with("-exec") || it.text.starts_with("-ok");
        let later = match name {
            "find" => words.iter().position(runs).map(|it| it + 1),
            _ => Some(stripped.start + 1),
        };
        // No program is called like an option.
        let later = later.unwrap_or(words.len())..words.len();
        starts.extend(later.take(MAX_STARTS).filter(|it| !words[*it].text.starts_with('-')));
    }
    starts
}

/// Returns whether a program runs another one. By a path it is not one that is skipped, and with unknown options
/// neither.
pub(super) fn is_wrapper(name: &str) -> bool {
    let same =
        matches!(name, "timeout" | "time" | "nice" | "nohup" | "stdbuf" | "command" | "builtin");
    same || OPAQUE.contains(name) || LOOKED_THROUGH.contains(name) || is_loader(name)
}

/// Returns where the command begins that gets more arguments from the input.
pub(super) fn fed_at(part: &CommandPart) -> Option<usize> {
    if part.is_fed {
        return Some(part.start);
    }
    let at = part.words.iter().take(MAX_STARTS).position(|it| base(&it.text) == "xargs")?;
    let runs = at == part.start || starts(&part.words[..=at]).contains(&at);
    runs.then(|| xargs_command(&part.words[at + 1..]).map(|it| at + 1 + it)).flatten()
}

/// Returns where the program begins that does the work, as far as that is plain: after `sudo`, `env` and so on.
pub(super) fn program_at(part: &CommandPart) -> usize {
    let mut at = part.start;
    for _ in 0..MAX_STARTS {
        let Some(name) = part.words.get(at).map(|it| base(&it.text)) else { break };
        let rest = &part.words[at + 1..];
        let next = match name {
            "xargs" => xargs_command(rest),
            _ if is_wrapper(name) => rest.iter().position(|it| {
                !it.text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                    && !it.text.contains('=')
            }),
            _ => None,
        };
        match next {
            Some(n_words) => at += 1 + n_words,
            None => break,
        }
    }
    at
}

/// Programs that run another one after one operand of their own. Sources: util-linux 2.38, coreutils 9.1,
/// daemontools 0.76, s6 2.11, moreutils and others of 2025.
static AFTER_OPERAND: Names = Names::of(&[
    "flock",
    "chroot",
    "gosu",
    "su-exec",
    "setuidgid",
    "s6-setuidgid",
    "envdir",
    "s6-envdir",
    "envuidgid",
    "setlock",
    "s6-setlock",
    "logsave",
    "faketime",
    "runcon",
]);

/// Returns whether a program runs another one that the text does not name: `env $x`, `find -exec "$@"`.
pub(super) fn starts_unknown(name: &str, args: &[Word]) -> bool {
    let is_open = |it: Option<&Word>| it.is_some_and(|it| !it.is_literal());
    match name {
        "find" | "bfs" => {
            let runs = |it: &Word| it.text.starts_with("-exec") || it.text.starts_with("-ok");
            args.windows(2).any(|it| runs(&it[0]) && is_open(it.get(1)))
        }
        "xargs" => is_open(xargs_command(args).and_then(|it| args.get(it))),
        _ if is_wrapper(name) => {
            let is_one =
                |it: &Word| it.spans.iter().all(|it| it.piece != PieceKind::Open { quoted: false });
            let is_own = |it: &&Word| {
                it.is_literal() && it.text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                    || is_one(it) && it.text.contains('=')
            };
            let mut words = args.iter().take(MAX_STARTS).skip_while(is_own);
            let first = words.next();
            is_open(first) || AFTER_OPERAND.contains(name) && is_open(words.find(|it| !is_own(it)))
        }
        _ => false,
    }
}

/// Returns where the command of `xargs` begins. Source: findutils 4.9, xargs(1).
pub(super) fn xargs_command(args: &[Word]) -> Option<usize> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if !text.starts_with('-') {
            return Some(at);
        }
        let valued = ["--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs"];
        let is_apart = match text.strip_prefix("--") {
            Some("") => return (at + 1 < args.len()).then_some(at + 1),
            Some(_) => !text.contains('=') && valued.iter().any(|it| is_long(text, it)),
            // The first letter with a value takes the rest of the cluster as that.
            None => text
                .find(['a', 'E', 'I', 'L', 'n', 'P', 's', 'd', 'e', 'i', 'l'])
                .is_some_and(|it| it + 1 == text.len() && !text.ends_with(['e', 'i', 'l'])),
        };
        at += 1 + usize::from(is_apart);
    }
    None
}
