//! Files that a part reads, changes and takes away, as far as its words say.

use super::{
    CommandContext, CommandPart, changed_below,
    changes::Changes,
    dirs::PathTarget,
    links_below, lists,
    named::{NamedFile, has_pattern, listed, named, shortened},
    options::{included, is_long, operands},
    part::base,
    piped::Piped,
    programs::{LISTERS, MORE_READERS, PRINTERS, READERS, WRITERS},
    searches::{self, is_here, lists_here},
    starts::{fed_at, program_at},
    suspects, writers,
};
use crate::step7_permission_gate::{
    protected::is_protected,
    shell::{tree::Redirect, word::Word},
};

/// Returns what a part does to files.
pub(crate) fn changes(part: &CommandPart, around: &CommandContext) -> Changes {
    let mut found = Changes::default();
    for (kind, word) in &part.redirections {
        match kind {
            Redirect::Read => {
                // A directory that is held open is one that others reach.
                found.trees.push(named(word, part, around));
                found.reads.push(named(word, part, around));
            }
            Redirect::Write => found.writes.push(named(word, part, around)),
            Redirect::ReadWrite => {
                found.reads.push(named(word, part, around));
                found.writes.push(named(word, part, around));
            }
            Redirect::Copy | Redirect::Text | Redirect::Document(_) => {}
        }
    }
    // The shell writes there what was typed.
    let history = part.assignments.iter().filter(|it| it.name == "HISTFILE");
    found.writes.extend(history.map(|it| named(&it.value, part, around)));
    let program = program_at(part);
    for start in part.starts.iter().copied() {
        if let Some((name, args)) = part.words[start..].split_first() {
            let name = base(&name.text);
            operands_of(name, args, part, around, &mut found);
            links_below::add(name, args, part, around, &mut found);
            changed_below::of_program(name, args, part, around, &mut found);
            if lists::names_files(name, args) {
                found
                    .reads
                    .push(NamedFile { target: PathTarget::Open(String::new()), paths: Vec::new() });
            }
            if start == program {
                suspects::suspected(name, args, part, around, &mut found);
            }
        }
    }
    suspects::of_wrappers(program, part, around, &mut found);
    if let Some(start) = fed_at(part) {
        fed(start, part, around, &mut found);
        changed_below::of_fed(&part.words[start..], part, around, &mut found);
    }
    found
}

/// What a program does to files whose names come from its input.
fn fed(start: usize, part: &CommandPart, around: &CommandContext, found: &mut Changes) {
    let Some((name, args)) = part.words[start..].split_first() else { return };
    let name = base(&name.text);
    let at = |word: &Word| named(word, part, around);
    let only_reads = READERS.contains(name) || PRINTERS.contains(name);
    let reads = READERS.contains(name) && !LISTERS.contains(name)
        || MORE_READERS.contains(name)
        || matches!(name, "cp" | "install" | "git");
    let piped = part.piped.as_ref();
    if let Some(words) = piped.and_then(Piped::arguments) {
        let all: Vec<Word> = args.iter().cloned().chain(words).collect();
        operands_of(name, &all, part, around, found);
        suspects::suspected(name, &all, part, around, found);
        return;
    }
    let words = piped.map(|it| &*it.words).unwrap_or_default();
    if !only_reads {
        let protected =
            words.iter().map(at).filter(|it| it.paths.iter().any(|it| is_protected(it)));
        found.suspected.extend(protected);
    }
    if let Some(piped) = piped.filter(|it| reads && it.lists_files()) {
        let files: Vec<NamedFile> = listed(piped, part, around).collect();
        found.trees.extend(files.iter().cloned());
        found.reads.extend(files);
    } else if reads {
        found.reads.push(NamedFile { target: PathTarget::Open(String::new()), paths: Vec::new() });
    }
}

fn operands_of(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let at = |word: &Word| named(word, part, around);
    super::outputs::outputs(name, args, part, around, found);
    if WRITERS.contains(name) {
        writers::writer(name, args, part, around, found);
    } else if READERS.contains(name) || MORE_READERS.contains(name) {
        let n_skipped = usize::from(has_pattern(name, args));
        let words: Vec<Word> = included(args).cloned().collect();
        let files: Vec<NamedFile> = if name == "find" && !runs_any(args) {
            searches::opened_by_find(args).map(at).collect()
        } else {
            operands(&words).skip(n_skipped).map(at).collect()
        };
        if !LISTERS.contains(name) || name == "find" && runs_any(args) {
            found.trees.extend(files.iter().cloned());
        }
        if reads_below(name, args) && !is_here(name, args) {
            // As an option that is not known may make an operand another one's value.
            found.doubtful_trees.push(at(&Word::plain(".")));
        } else if reads_below(name, args)
            || name == "find" && runs_any(args) && lists_here(name, args)
        {
            found.trees.push(at(&Word::plain(".")));
        }
        found.reads.extend(files);
        if name == "strings" {
            // Options from a file; what is in it is shown when they are none.
            let given = words.iter().filter_map(|it| it.text.strip_prefix('@'));
            found.reads.extend(given.map(|it| at(&Word::plain(it))));
        }
        let valued = words.iter().filter_map(|it| it.text.split_once('='));
        let valued = valued.filter(|it| it.0.starts_with('-'));
        found.reads.extend(valued.map(|it| at(&Word::plain(it.1))));
        if name.ends_with("awk") {
            of_awk(args, at, found);
        }
        if matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk") {
            let attached = args.iter().filter_map(|it| it.text.strip_prefix("-f"));
            found.reads.extend(attached.filter(|it| !it.is_empty()).map(|it| at(&Word::plain(it))));
        }
    } else if matches!(name, "curl" | "wget") {
        super::outputs::of_download(name, args, at, found);
    } else if matches!(name, "mount" | "link") {
        super::links::shown_elsewhere(args, part, around, found);
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

/// Files that a program of `awk` opens itself: those of its texts, and others that it works out.
fn of_awk(args: &[Word], at: impl Fn(&Word) -> NamedFile, found: &mut Changes) {
    let opens = |it: &&Word| ["getline", "ARGV", "@"].iter().any(|word| it.text.contains(word));
    // Files of programs and libraries.
    for (i, arg) in args.iter().enumerate().take_while(|it| it.1.text != "--") {
        let text = arg.text.as_str();
        let long = ["--include", "--load", "--exec", "--file"].iter().any(|it| is_long(text, it));
        let is_short = ["-i", "-l", "-E", "-f"].iter().any(|it| text.starts_with(it));
        if long || is_short {
            let attached =
                text.split_once('=').map(|it| it.1).or(text.get(2..).filter(|_| is_short));
            found.reads.extend(attached.map(|it| at(&shortened(arg, it))));
            found.reads.extend(args.get(i + 1).map(&at));
        }
    }
    for arg in args.iter().filter(opens) {
        let texts = arg.text.split('"').skip(1).filter(|it| !it.is_empty());
        found.reads.extend(texts.map(|it| at(&Word::plain(it))));
        found.reads.push(NamedFile { target: PathTarget::Open(String::new()), paths: Vec::new() });
    }
}

/// Whether a search runs others for what it finds.
fn runs_any(args: &[Word]) -> bool {
    args.iter().any(|it| it.text.starts_with("-exec") || it.text.starts_with("-ok"))
}

/// Whether a program reads everything below the directory that it runs in.
fn reads_below(name: &str, args: &[Word]) -> bool {
    match name {
        "rg" | "ag" | "ack" => true,
        "grep" | "egrep" | "fgrep" | "zgrep" => searches::recurses(args),
        _ => false,
    }
}
