//! Directories in which a command changes or removes files that its text does not name: `rm -r`, `chmod -R`,
//! `find -delete`, what `find` runs for each, `ls | xargs rm`, `git clean`, `rsync --delete`.
//!
//! What is unpacked or copied into a directory brings names of its own: it may overwrite files there, but removes
//! none. Sources: GNU coreutils 9.1, GNU findutils 4.9, GNU tar 1.34, Info-ZIP 6.0, 7-Zip 23, git 2.39, rsync 3.2.

use super::{
    CommandContext, CommandPart,
    changes::{ChangedBelow, Changes},
    escapes::call,
    named::{listed, named, shortened},
    options::{has_letter, is_long, operands},
    part::base,
    programs::{MORE_READERS, PRINTERS, READERS},
    searches::{lists_here, start_of_find},
    unpackers::is_unpacker,
    writers::{self, edits_in_place, is_critical},
};
use crate::step7_permission_gate::shell::word::Word;

/// Whether a program may change files that are given to it.
fn may_change(name: &str, args: &[Word]) -> bool {
    if MORE_READERS.contains(name) {
        args.iter().any(|it| edits_in_place(&it.text))
    } else {
        !READERS.contains(name) && !PRINTERS.contains(name)
    }
}

/// Returns whether a search changes what it finds, or runs a program for it that may.
pub(super) fn changes_found(args: &[Word]) -> bool {
    args.iter().enumerate().any(|(i, arg)| {
        let text = arg.text.as_str();
        let runs = text.starts_with("-exec") || text.starts_with("-ok");
        let run = args.get(i + 1..).and_then(<[Word]>::split_first).filter(|_| runs);
        text == "-delete" || run.is_some_and(|(name, args)| may_change(base(&name.text), args))
    })
}

/// The names that a search chooses, where one test alone does.
fn chosen_by_find(args: &[Word]) -> Option<String> {
    let mut tests = args.windows(2).filter(|it| it[0].text == "-name");
    let (Some(test), None) = (tests.next(), tests.next()) else { return None };
    let joins =
        |it: &Word| matches!(&*it.text, "-o" | "-or" | "!" | "-not" | "," | "(" | ")" | "-prune");
    let is_plain = !test[1].text.contains(['?', '[', '\\']) && test[1].is_known();
    (is_plain && !args.iter().any(joins)).then(|| test[1].text.clone())
}

/// Tests and options of `find` that leave out no file, and how many words follow each.
const TAKES_ALL: [(&str, usize); 9] = [
    ("-delete", 0),
    ("-depth", 0),
    ("-maxdepth", 1),
    ("-mindepth", 1),
    ("-mount", 0),
    ("-print", 0),
    ("-print0", 0),
    ("-type", 1),
    ("-xdev", 0),
];

/// Whether a search removes all that it finds, and finds all that there is.
fn empties(args: &[Word]) -> bool {
    finds_all(args) == Some(true)
}

/// Whether a search that finds all that there is removes it; `None` for one that leaves some out.
fn finds_all(args: &[Word]) -> Option<bool> {
    let mut tests = args.iter().skip(start_of_find(args).count()).map(|it| it.text.as_str());
    let mut removes = false;
    while let Some(test) = tests.next() {
        if test.starts_with("-exec") {
            removes |= tests.next().is_some_and(|it| matches!(base(it), "rm" | "shred" | "unlink"));
            // Up to the end of what is run; what follows are tests again.
            let _end = tests.by_ref().find(|it| matches!(*it, ";" | "+"));
            continue;
        }
        let (_, n_values) = TAKES_ALL.iter().find(|it| it.0 == test)?;
        tests.by_ref().take(*n_values).for_each(drop);
        removes |= test == "-delete";
    }
    Some(removes)
}

/// Adds the directories below which a program with these arguments changes files.
pub(super) fn of_program(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let at = |word: &Word| named(word, part, around);
    let all_in = |word: &Word| ChangedBelow::all_in(at(word));
    let recurses = |letters: &[char]| {
        let is_one = |it: &Word| {
            letters.iter().any(|letter| has_letter(&it.text, *letter, ""))
                || is_long(&it.text, "--recursive")
        };
        args.iter().take_while(|it| it.text != "--").any(is_one)
    };
    match name {
        "rm" if recurses(&['r', 'R']) => found.below.extend(operands(args).map(all_in)),
        "chmod" | "chown" | "chgrp" if recurses(&['R']) => {
            found.below.extend(operands(args).skip(1).map(all_in));
        }
        "find" | "bfs" if changes_found(args) => {
            let (chosen, empties) = (chosen_by_find(args), empties(args));
            let here = lists_here(name, args).then(|| Word::plain("."));
            for word in start_of_find(args).cloned().chain(here) {
                let directory = at(&word);
                found.is_critical |= empties && is_critical(&word, &directory, part, around);
                found.below.push(ChangedBelow {
                    directory,
                    chosen: chosen.clone(),
                    only_brings: false,
                });
            }
        }
        "git" => {
            let call = call(args);
            let is_trial =
                |it: &Word| has_letter(&it.text, 'n', "e") || is_long(&it.text, "--dry-run");
            if call.command == "clean" && !call.args.iter().any(is_trial) {
                let mut places = operands(call.args).peekable();
                match places.peek() {
                    Some(_) => found.below.extend(places.map(all_in)),
                    None => found.below.push(all_in(&Word::plain("."))),
                }
            }
        }
        "rsync" if args.iter().any(|it| it.text.starts_with("--del")) => {
            let to = operands(args).last();
            found.is_critical |= to.is_some_and(|it| is_critical(it, &at(it), part, around));
            found.below.extend(to.map(all_in));
        }
        "rsync" => {
            let to = operands(args).skip(1).last().filter(|it| !it.text.contains(':'));
            found.below.extend(to.map(|it| ChangedBelow::brought_to(at(it))));
        }
        "cp" if recurses(&['r', 'R', 'a'])
            || args.iter().any(|it| is_long(&it.text, "--archive")) =>
        {
            let into = writers::into(args);
            let last = operands(args).skip(1).last().filter(|_| into.is_empty()).cloned();
            let all = into.iter().chain(&last);
            found.below.extend(all.map(|it| ChangedBelow::brought_to(at(it))));
        }
        _ if unpacks(name, args) => {
            let to = unpacked_to(name, args).unwrap_or_else(|| Word::plain("."));
            found.below.push(ChangedBelow::brought_to(at(&to)));
        }
        _ => {}
    }
}

/// Whether a program takes files out of an archive and onto the disk.
fn unpacks(name: &str, args: &[Word]) -> bool {
    let has = |letters: &str| {
        args.iter().any(|it| letters.chars().any(|letter| has_letter(&it.text, letter, "dxo")))
    };
    match name {
        "tar" | "gtar" | "bsdtar" => {
            let prints = args.iter().any(|it| {
                has_letter(&it.text, 'O', "bCfgFHIKLNTVX") || is_long(&it.text, "--to-stdout")
            });
            is_unpacker(name, args) && !prints
        }
        "unzip" => !has("lptvzZ"),
        "7z" | "7za" | "7zr" | "7zz" => {
            args.first().is_some_and(|it| matches!(&*it.text, "x" | "e"))
        }
        "cpio" | "bsdcpio" => has("i") || args.iter().any(|it| is_long(&it.text, "--extract")),
        _ => false,
    }
}

/// The directory that an option names, for what is unpacked.
fn unpacked_to(name: &str, args: &[Word]) -> Option<Word> {
    let (short, long) = match name {
        "unzip" => ("-d", "--none"),
        "7z" | "7za" | "7zr" | "7zz" => ("-o", "--none"),
        _ => ("-C", "--directory"),
    };
    let mut found = None;
    for (i, arg) in args.iter().enumerate() {
        let value = match arg.text.strip_prefix(short) {
            Some(value) => value,
            None if is_long(&arg.text, long) => arg.text.split_once('=').map_or("", |it| it.1),
            None => continue,
        };
        found = match value {
            "" => args.get(i + 1).cloned(),
            value => Some(shortened(arg, value)),
        };
    }
    found
}

/// Adds the directories of which the names come that a program is given on its input.
pub(super) fn of_fed(
    words: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let Some((name, args)) = words.split_first() else { return };
    let Some(piped) = part.piped.as_ref().filter(|it| it.lists_files()) else { return };
    if !may_change(base(&name.text), args) {
        return;
    }
    let chosen = match piped.words.split_first() {
        Some((name, args)) if base(&name.text) == "find" => chosen_by_find(args),
        _ => None,
    };
    let lists_all = !piped.is_filtered
        && match piped.words.split_first().map(|(name, args)| (base(&name.text), args)) {
            Some(("find", args)) => finds_all(args).is_some(),
            Some(("ls" | "fd" | "fdfind" | "git", _)) => true,
            _ => false,
        };
    let removes = lists_all && matches!(base(&name.text), "rm" | "rmdir" | "shred" | "unlink");
    for directory in listed(piped, part, around) {
        let unnamed = Word::default();
        found.is_critical |= removes && is_critical(&unnamed, &directory, part, around);
        found.below.push(ChangedBelow { directory, chosen: chosen.clone(), only_brings: false });
    }
}
