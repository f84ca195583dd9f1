//! Searches: which programs go down into directories, and which look where they run when no word names a place.

use super::{
    CommandPart,
    options::{has_letter, is_long, operands},
    part::base,
};
use crate::step7_permission_gate::shell::word::Word;

/// Programs that always go down into a directory that they read.
const GO_DOWN: [&str; 12] =
    ["rg", "ag", "ack", "find", "fd", "bfs", "tar", "gtar", "bsdtar", "rsync", "zip", "ugrep"];

/// Programs that do so with `-r`, `-R` or `-a`.
const RECURSE: [&str; 12] = [
    "grep", "egrep", "fgrep", "zgrep", "cp", "diff", "scp", "git", "rgrep", "7z", "gzip", "gunzip",
];

/// Returns whether a program of a part reads what is in the directories below those that it names.
pub(super) fn goes_down(part: &CommandPart) -> bool {
    part.starts.iter().filter_map(|it| part.words.get(*it..)?.split_first()).any(|(name, args)| {
        let name = base(&name.text);
        let is_one = |it: &Word| {
            has_letter(&it.text, 'a', "efmABCdD")
                || ["--archive", "--no-index"].iter().any(|long| is_long(&it.text, long))
        };
        GO_DOWN.contains(&name)
            || RECURSE.contains(&name) && (args.iter().any(is_one) || recurses(args))
    })
}

/// Returns whether options of `grep` and its like make it go down: `-r`, `-d recurse` in any abbreviation.
pub(super) fn recurses(args: &[Word]) -> bool {
    args.iter().enumerate().any(|(i, arg)| {
        let text = arg.text.as_str();
        let of_directories = match text.strip_prefix("--") {
            Some(_) if is_long(text, "--directories") => text.split_once('=').map_or("", |it| it.1),
            None if has_letter(text, 'd', "efmABCD") => text.split_once('d').map_or("", |it| it.1),
            _ => {
                return ['r', 'R'].iter().any(|it| has_letter(text, *it, "efmABCdD"))
                    || ["--recursive", "--dereference-recursive"]
                        .iter()
                        .any(|it| is_long(text, it));
            }
        };
        match of_directories {
            "" => args.get(i + 1).is_none_or(|it| it.text.starts_with('r') || !it.is_known()),
            value => value.starts_with('r') || !arg.is_known(),
        }
    })
}

/// Options of a search by content or by name.
struct Options {
    names: &'static [&'static str],
    /// Letters whose value is the rest of the cluster or the next word.
    valued: &'static str,
    /// Long options whose value is the next word.
    long_valued: &'static [&'static str],
    /// Long options without a value, or with one after `=` alone.
    flags: &'static [&'static str],
}

/// Sources: GNU grep 3.8, ripgrep 13, fd 8.6. With an option that is not here a search may be of the place where it
/// runs.
const OPTIONS: [Options; 3] = [
    Options {
        names: &["grep", "egrep", "fgrep", "zgrep"],
        valued: "efmABCdD",
        long_valued: &[
            "--after-context",
            "--before-context",
            "--context",
            "--exclude",
            "--exclude-dir",
            "--file",
            "--include",
            "--max-count",
            "--regexp",
        ],
        flags: &[
            "--color",
            "--count",
            "--extended-regexp",
            "--files-with-matches",
            "--fixed-strings",
            "--ignore-case",
            "--invert-match",
            "--line-number",
            "--no-filename",
            "--null",
            "--only-matching",
            "--perl-regexp",
            "--quiet",
            "--recursive",
            "--with-filename",
            "--word-regexp",
        ],
    },
    Options {
        names: &["rg"],
        valued: "efgmABCtTjdEMr",
        long_valued: &[
            "--after-context",
            "--before-context",
            "--context",
            "--file",
            "--glob",
            "--iglob",
            "--max-count",
            "--max-depth",
            "--regexp",
            "--replace",
            "--sort",
            "--type",
            "--type-not",
        ],
        flags: &[
            "--count",
            "--files-with-matches",
            "--fixed-strings",
            "--heading",
            "--hidden",
            "--ignore-case",
            "--json",
            "--line-number",
            "--multiline",
            "--no-heading",
            "--no-ignore",
            "--only-matching",
            "--pcre2",
            "--smart-case",
            "--vimgrep",
            "--word-regexp",
        ],
    },
    Options {
        names: &["fd", "fdfind"],
        valued: "eEtdjcxXSo",
        long_valued: &["--exclude", "--extension", "--max-depth", "--type"],
        flags: &["--absolute-path", "--glob", "--hidden", "--no-ignore", "--print0"],
    },
];

/// Returns whether a search names no place, so that it is of the directory where it runs; `true` in doubt.
pub(super) fn is_here(name: &str, args: &[Word]) -> bool {
    let Some(options) = OPTIONS.iter().find(|it| it.names.contains(&name)) else { return true };
    let (mut n_operands, mut has_pattern) = (0, false);
    let mut words = args.iter().map(|it| it.text.as_str());
    while let Some(word) = words.next() {
        if word == "--" {
            n_operands += words.by_ref().count();
        } else if word.starts_with("--") {
            let long = word.split_once('=').map_or(word, |it| it.0);
            has_pattern |= matches!(long, "--regexp" | "--file");
            if options.long_valued.contains(&word) {
                words.next();
            } else if long == word && !options.flags.contains(&word) {
                return true;
            }
        } else if let Some(cluster) = word.strip_prefix('-').filter(|it| !it.is_empty()) {
            let Some(at) = cluster.find(|it| options.valued.contains(it)) else { continue };
            has_pattern |=
                name != "fd" && name != "fdfind" && cluster[at..].starts_with(['e', 'f']);
            if cluster.len() == at + 1 {
                words.next();
            }
        } else {
            n_operands += 1;
        }
    }
    n_operands + usize::from(has_pattern) < 2
}

/// Returns whether a program that lists files names no place, so that it lists those where it runs; `true` in doubt.
pub(super) fn lists_here(name: &str, args: &[Word]) -> bool {
    match name {
        // Places come first, after the options that say how links are followed.
        "find" | "bfs" => {
            let mut words = args.iter().map(|it| it.text.as_str());
            let first = words.find(|it| !is_leading(it));
            first.is_none_or(|it| it.starts_with(['-', '(', '!', ')', ',']))
        }
        "ls" => operands(args).next().is_none(),
        // The first operand is the command. Values of options may be taken for patterns of names.
        "git" => {
            let has_value = |it: &Word| {
                it.text.starts_with("-x")
                    || it.text.starts_with("-X")
                    || it.text.contains("exclude")
            };
            operands(args).nth(1).is_none() || args.iter().any(has_value)
        }
        _ => is_here(name, args),
    }
}

/// Returns what `find` looks at where it runs nothing: the places where it starts, and files that it compares with. Its
/// other words are patterns of names.
pub(super) fn opened_by_find(args: &[Word]) -> impl Iterator<Item = &Word> {
    let compares = |it: &str| {
        it.starts_with("-newer")
            || matches!(it, "-anewer" | "-cnewer" | "-samefile" | "-files0-from")
    };
    let compared = args.windows(2).filter(move |it| compares(&it[0].text)).map(|it| &it[1]);
    start_of_find(args).chain(compared)
}

/// Returns the places where `find` starts, and the options in front of them.
pub(super) fn start_of_find(args: &[Word]) -> impl Iterator<Item = &Word> {
    let is_test = |it: &Word| it.text.starts_with(['-', '(', '!', ')', ',']);
    args.iter().take_while(move |it| !is_test(it) || is_leading(&it.text))
}

/// Whether a word in front of the places where `find` starts says how it goes.
fn is_leading(word: &str) -> bool {
    matches!(word, "-H" | "-L" | "-P" | "-D") || word.starts_with("-O")
}

/// Returns whether a search leaves out anything.
pub(super) fn leaves_some_out(part: &CommandPart) -> bool {
    part.args().iter().any(|it| it.text.starts_with("--exclude"))
}

/// Returns whether a search leaves out files or directories of this name.
pub(super) fn leaves_out(part: &CommandPart, name: &str, is_directory: bool) -> bool {
    let option = if is_directory { "--exclude-dir=" } else { "--exclude=" };
    matches!(base(part.name()), "grep" | "egrep" | "fgrep")
        && part.args().iter().take_while(|it| it.text != "--").any(|it| {
            let value = it.literal().and_then(|it| it.strip_prefix(option));
            value.is_some_and(|it| it.trim_end_matches('/') == name)
        })
}
