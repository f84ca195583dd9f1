//! Files that a part reads, changes and takes away, as far as its words say.

use super::{
    CommandContext, CommandPart,
    changed_below::{self, ChangedBelow},
    dirs::{Dirs, PathTarget, target, through_process},
    links_below, lists,
    options::{has_letter, included, is_long, operands},
    part::base,
    piped::Piped,
    programs::{LISTERS, MORE_READERS, PRINTERS, READERS, WRITERS},
    searches::{self, is_here, lists_here},
    starts::{fed_at, program_at},
    suspects, writers,
};
use crate::step7_permission_gate::{
    path_resolution::by_text,
    protected::is_protected,
    shell::{
        tree::Redirect,
        word::{PieceKind, Word},
    },
};

/// One file that a part names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// What the word represents.
    pub(crate) target: PathTarget,
    /// Where it may be, by text; as written where the directory is not known.
    pub(crate) paths: Vec<String>,
}

impl Named {
    /// Whether it is known, and lies in the workspace wherever the shell is.
    pub(crate) fn is_inside(&self, dirs: &Dirs, around: &CommandContext) -> bool {
        let is_known = matches!(self.target, PathTarget::Known(_));
        let is_placed = self.target.text().starts_with('/') || !dirs.is_unknown();
        is_known && is_placed && self.paths.iter().all(|it| around.hold(it))
    }
}

/// What a part does to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Files that it reads.
    pub(crate) reads: Vec<Named>,
    /// Files and directories of which it reads all that is in them.
    pub(crate) trees: Vec<Named>,
    /// More of them, if some operand is none.
    pub(crate) doubtful_trees: Vec<Named>,
    /// Files that operands name which it changes.
    pub(crate) changes: Vec<Named>,
    /// Targets of redirections and operands of `tee`.
    pub(crate) writes: Vec<Named>,
    /// Files and directories that it removes or moves away; `dir/*` for the files in it that have no
    /// dot in front, `dir/**` for the directories, too.
    pub(crate) removes: Vec<Named>,
    /// Directories below which it changes or removes files that it does not name.
    pub(crate) below: Vec<ChangedBelow>,
    /// Files and directories that it gives another name, or that it shows elsewhere.
    pub(crate) links: Vec<Named>,
    /// Some of those are links: what climbs from there climbs from where they lead.
    pub(crate) makes_links: bool,
    /// It puts whole directories out of the workspace, or to a place that is not known.
    pub(crate) leads_out: bool,
    /// It goes through links that it meets below what it names, and reads what is there.
    pub(crate) follows_links: bool,
    /// The same, and it changes or removes what is there, or hands it on to what may.
    pub(crate) alters_through_links: bool,
    /// Protected paths that it names, of a program whose use of them is not known.
    pub(crate) suspected: Vec<Named>,
    /// It removes something that needs a question first.
    pub(crate) is_critical: bool,
}

impl Changes {
    /// Everything that is not as it was afterwards.
    pub(crate) fn altered(&self) -> impl Iterator<Item = &Named> {
        self.changes.iter().chain(&self.writes).chain(&self.removes)
    }
}

/// What a part does to files.
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
                    .push(Named { target: PathTarget::Open(String::new()), paths: Vec::new() });
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
        let files: Vec<Named> = listed(piped, part, around).collect();
        found.trees.extend(files.iter().cloned());
        found.reads.extend(files);
    } else if reads {
        found.reads.push(Named { target: PathTarget::Open(String::new()), paths: Vec::new() });
    }
}

/// The places of which the names come that a program in front of this part lists.
pub(super) fn listed(
    piped: &Piped,
    part: &CommandPart,
    around: &CommandContext,
) -> impl Iterator<Item = Named> {
    // Patterns of names in quotes are those of `find`.
    let of = |word: &Word| match target(word, &around.home, part.is_lost) {
        PathTarget::Known(text) if text.contains(['*', '?', '[']) => PathTarget::Glob(text),
        other => other,
    };
    let words = &*piped.words;
    let files = words.iter().skip(1).filter(|it| !it.text.starts_with('-'));
    let here = words.split_first().filter(|(name, args)| lists_here(base(&name.text), args));
    let here = here.map(|_| named(&Word::plain("."), part, around));
    files.map(move |it| place_in(of(it), &part.dirs, around)).chain(here)
}

/// Where a word leads from every directory.
pub(super) fn named(word: &Word, part: &CommandPart, around: &CommandContext) -> Named {
    place_in(target(word, &around.home, part.is_lost), &part.dirs, around)
}

/// Where something leads from these directories.
pub(super) fn place_in(target: PathTarget, dirs: &Dirs, around: &CommandContext) -> Named {
    let text = target.text();
    let written = match (through_process(text, dirs), dirs.all()) {
        (Some(paths), _) if paths.is_empty() => {
            return Named { target: PathTarget::Open(text.to_owned()), paths };
        }
        (Some(paths), _) => paths,
        (None, _) if text.starts_with('/') => vec![text.to_owned()],
        (None, Some(all)) => all.map(|it| format!("{it}/{text}")).collect(),
        (None, None) => {
            let paths = vec![by_text(text).trim_start_matches('/').to_owned()];
            return Named { target, paths };
        }
    };
    let mut paths: Vec<String> = Vec::with_capacity(written.len());
    let mut add = |path: String| {
        if !paths.contains(&path) {
            paths.push(path);
        }
    };
    let mut is_lost = false;
    for path in written {
        add(by_text(&path));
        let places = match target {
            PathTarget::Glob(_) => around.places_of_pattern(&path),
            PathTarget::Known(_) | PathTarget::Open(_) => around.places(&path),
        };
        places.iter().cloned().for_each(&mut add);
        is_lost |= around.is_of_process(&path);
    }
    // Where its process will be is not known.
    let target = if is_lost { PathTarget::Open(target.text().to_owned()) } else { target };
    Named { target, paths }
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
        let files: Vec<Named> = match name == "find" && !runs_any(args) {
            true => searches::opened_by_find(args).map(at).collect(),
            false => operands(&words).skip(n_skipped).map(at).collect(),
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
fn of_awk(args: &[Word], at: impl Fn(&Word) -> Named, found: &mut Changes) {
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
        found.reads.push(Named { target: PathTarget::Open(String::new()), paths: Vec::new() });
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

/// Whether the first operand is a pattern or a script.
pub(super) fn has_pattern(name: &str, args: &[Word]) -> bool {
    let given = |it: &Word| {
        has_letter(&it.text, 'e', "")
            || has_letter(&it.text, 'f', "")
            || is_long(&it.text, "--regexp")
            || is_long(&it.text, "--file")
            || is_long(&it.text, "--expression")
            || is_long(&it.text, "--from-file")
            || it.text == "--files"
    };
    let has = [
        "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "nawk", "ag", "ack", "zgrep",
        "jq", "yq",
    ];
    has.contains(&name) && !args.iter().any(given)
}

/// A word without what is in front of a value.
pub(super) fn shortened(word: &Word, value: &str) -> Word {
    match word.is_literal() {
        true => Word::plain(value),
        false => {
            let mut short = Word::plain(value);
            short.mark(0, PieceKind::Open { quoted: false });
            short
        }
    }
}
