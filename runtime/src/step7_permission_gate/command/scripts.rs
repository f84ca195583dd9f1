//! Texts that a part runs: scripts in scripts, shown to deny and ask rules only.

use super::{
    Part,
    options::is_long,
    part::base,
    programs::{LOOKED_THROUGH, OPAQUE, SHELLS},
};
use crate::step7_permission_gate::shell::{tree::Redirect, word::Word};

/// Words after a program that runs others at which the inner command may begin. A longer line is cut
/// there; without a limit the work would grow with the square of its length.
pub(crate) const MAX_STARTS: usize = 100;

/// One text that is run.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// The shell itself runs it, so it may move the shell.
    pub(super) is_own: bool,
    /// Nobody knows in which directory.
    pub(super) is_elsewhere: bool,
}

/// The texts that a part runs.
pub(super) fn texts(part: &Part) -> Vec<Text> {
    let mut found = Vec::new();
    for start in starts(&part.words) {
        let words = &part.words[start..];
        let Some((name, args)) = words.split_first() else { continue };
        texts_of(base(&name.text), args, part, start == part.start, &mut found);
    }
    found
}

/// Where commands may begin in a part: at its start, and where something runs others, at every later
/// word.
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
    // By a path they are not the wrappers that are stepped over, and with unknown options neither.
    let wraps = |it: &str| {
        let same =
            matches!(it, "timeout" | "time" | "nice" | "nohup" | "stdbuf" | "command" | "builtin");
        same || OPAQUE.contains(&it) || LOOKED_THROUGH.contains(&it)
    };
    let next = words.get(stripped.start + 1).map_or("", |it| it.text.as_str());
    let asks = name == "command" && next.starts_with('-') && next.contains(['v', 'V']);
    if wraps(name) && !asks || name == "find" {
        let runs = |it: &Word| it.text.starts_with("-exec") || it.text.starts_with("-ok");
        let later = match name {
            "find" => words.iter().position(runs).map(|it| it + 1),
            _ => Some(stripped.start + 1),
        };
        starts.extend((later.unwrap_or(words.len())..words.len()).take(MAX_STARTS));
    }
    starts
}

fn texts_of(name: &str, args: &[Word], part: &Part, is_first: bool, found: &mut Vec<Text>) {
    let mut add = |text: &str, is_own: bool| {
        found.push(Text { text: text.to_owned(), is_own, is_elsewhere: false });
    };
    match name {
        _ if SHELLS.contains(&name) => match script_of_shell(args) {
            Some(script) => add(&script.text, false),
            None if args.iter().all(|it| it.text.starts_with(['-', '+'])) => {
                for (kind, word) in &part.redirections {
                    if matches!(kind, Redirect::Document(_) | Redirect::Text) {
                        add(&word.text, false);
                    }
                }
            }
            None => {}
        },
        "eval" => {
            let all: Vec<&str> = args.iter().map(|it| it.text.as_str()).collect();
            add(&all.join(" "), is_first);
        }
        "trap" => {
            if let Some(action) = args.iter().find(|it| !it.text.starts_with('-')) {
                let text = action.text.clone();
                found.push(Text { text, is_own: false, is_elsewhere: true });
            }
        }
        "mapfile" | "readarray" | "complete" | "compgen" => {
            for text in values(args, 'C', "--none") {
                add(text, false);
            }
        }
        "env" => {
            for text in values(args, 'S', "--split-string") {
                add(text, false);
            }
        }
        "alias" => {
            for arg in args {
                if let Some((_, text)) = arg.text.split_once('=') {
                    add(text, false);
                }
            }
        }
        "su" | "runuser" | "script" | "flock" | "sg" => {
            for text in values(args, 'c', "--command") {
                add(text, false);
            }
        }
        "watch" | "ssh" | "parallel" => {
            let texts = args.iter().take(MAX_STARTS).map(|it| it.text.as_str());
            for text in texts.filter(|it| it.contains([' ', ';', '|', '&'])) {
                add(text, false);
            }
        }
        "git" => {
            for arg in args {
                // `-c alias.x='!rm'`, and what `--exec` and `foreach` are given.
                let shell = arg.text.split_once("=!").map(|it| it.1);
                if let Some(text) = shell.or(arg.text.strip_prefix("--exec=")) {
                    add(text, false);
                }
            }
            let names: Vec<&str> = args.iter().map(|it| it.text.as_str()).collect();
            for at in 0..names.len().min(MAX_STARTS) {
                let runs = match names[at] {
                    "foreach" | "-x" | "--exec" | "--tree-filter" | "--index-filter" => true,
                    "run" => at > 0 && names[at - 1] == "bisect",
                    _ => false,
                };
                if runs {
                    add(&names[at + 1..].join(" "), false);
                }
            }
        }
        "tar" | "rsync" | "man" | "sort" | "split" | "rg" => {
            for arg in args.iter().filter(|it| super::escapes::is_listed(name, &it.text)) {
                if let Some((_, text)) = arg.text.split_once("exec=").or(arg.text.split_once('=')) {
                    add(text, false);
                }
            }
        }
        _ => {}
    }
}

/// What follows `-c` in whatever cluster.
fn script_of_shell(args: &[Word]) -> Option<&Word> {
    let mut has_command = false;
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" || !text.starts_with(['-', '+']) || text == "-" {
            let at = at + usize::from(matches!(text, "--" | "-"));
            return args.get(at).filter(|_| has_command);
        }
        if text.starts_with("--") {
            at += usize::from(matches!(text, "--rcfile" | "--init-file"));
        } else {
            has_command |= text.starts_with('-') && text.contains('c');
            at += usize::from(text.ends_with(['o', 'O']));
        }
        at += 1;
    }
    None
}

/// The values of an option, wherever they are.
fn values<'a>(args: &'a [Word], short: char, long: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        let after = if is_long(text, long) {
            Some(text.split_once('=').map_or("", |it| it.1))
        } else if text.starts_with('-') && !text.starts_with("--") {
            text.split_once(short).map(|it| it.1)
        } else {
            None
        };
        match after {
            Some("") => found.extend(args.get(i + 1).map(|it| it.text.as_str())),
            Some(after) => found.push(after),
            None => {}
        }
    }
    found
}

/// Whether a part runs a text, or a program in a way that a rule with a `*` cannot mean.
pub(crate) fn is_interpreter(name: &str, args: &[Word]) -> bool {
    if super::programs::RUNS_TEXT.contains(&name) {
        return true;
    }
    match name {
        _ if SHELLS.contains(&name) => {
            // With the name of a script it runs that, as any program does what is in it.
            let first = args.iter().find(|it| !it.text.starts_with(['-', '+']));
            let asks = args.iter().any(|it| it.text == "--version" || it.text == "--help");
            let has_command = args.iter().any(|it| {
                it.text.starts_with('-')
                    && !it.text.starts_with("--")
                    && it.text.contains(['c', 's', 'i'])
            });
            has_command || first.is_none() && !asks || !args.iter().all(Word::is_known)
        }
        "mapfile" | "readarray" => !values(args, 'C', "--none").is_empty(),
        _ => false,
    }
}
