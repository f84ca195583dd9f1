//! The class of a command: the least permission that it needs (cases C).

mod git;
mod names;
mod reading;
mod tables;

pub(super) use names::READS;
pub(super) use tables::is_run;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    CommandContext, CommandPart, ShellCommand,
    changes::Changes,
    dirs::PathTarget,
    edits::is_device,
    escapes::{self, escapes},
    files::changes,
    named::{NamedFile, named, shortened},
    options::{has_letter, is_long},
    programs::{PRINTERS, READERS, SHELLS},
};
use crate::step7_permission_gate::{
    protected::is_protected,
    shell::{tree::Redirect, word::Word},
};

/// What a command needs at least. Smaller ones are freer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CommandClass {
    /// It changes no file, process, network peer or setting.
    ReadOnly,
    /// Its changes stay in the workspace and can be taken back.
    WorkspaceWrite,
    /// Everything else, and what is not known or cannot be read.
    Dangerous,
}

impl CommandClass {
    /// Returns the name that transcripts use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Dangerous => "dangerous",
        }
    }
}

impl fmt::Display for CommandClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

use CommandClass::{Dangerous, ReadOnly, WorkspaceWrite};

/// Programs that run each other, and commands that one `find` runs. Who writes more of them has something
/// to hide, and to look into each would take twice the work for each more.
const MAX_INNER: usize = 8;

/// Returns the class of a command: the highest of its parts.
pub(crate) fn class(command: &ShellCommand) -> CommandClass {
    if command.fault().is_some() {
        return Dangerous;
    }
    let around = command.around();
    command.changes().map(|(part, it)| of_part(part, it, around)).max().unwrap_or(ReadOnly)
}

fn of_part(part: &CommandPart, found: &Changes, around: &CommandContext) -> CommandClass {
    let writes = found.writes.iter().map(|it| of_write(it, part, around));
    let sets = part.assignments.iter().any(|it| tables::is_run(&it.name));
    let sets = if sets { Dangerous } else { ReadOnly };
    let words = part.inner();
    let runs = if words.is_empty() { ReadOnly } else { of_words(words, part, found, around) };
    writes.max().unwrap_or(ReadOnly).max(sets).max(runs)
}

fn of_write(file: &NamedFile, part: &CommandPart, around: &CommandContext) -> CommandClass {
    if is_device(file) {
        return ReadOnly;
    }
    let is_protected = file.paths.iter().any(|it| is_protected(it));
    let is_glob = matches!(file.target, PathTarget::Glob(_));
    let is_inside = file.is_inside(&part.dirs, around)
        || is_glob && !part.dirs.is_unknown() && file.paths.iter().all(|it| around.hold(it));
    if is_inside && !is_protected { WorkspaceWrite } else { Dangerous }
}

fn of_words(
    words: &[Word],
    part: &CommandPart,
    found: &Changes,
    around: &CommandContext,
) -> CommandClass {
    let Some((name, args)) = words.split_first() else { return ReadOnly };
    let Some(name) = name.literal() else { return Dangerous };
    let texts: Vec<&str> = args.iter().map(|it| it.text.as_str()).collect();
    let first = texts.first().copied().unwrap_or_default();
    if tables::only_tells(name, &texts) || reading::reads(name, &texts) {
        return ReadOnly;
    }
    match name {
        "find" => of_find(args, part, around),
        "git" => git::class(args),
        "tar" => of_tar(args, part, around),
        "sed" if escapes::runs_nothing(args) => changed(found, part, around),
        "rm" | "rmdir" | "unlink" => {
            let is_deep = args.iter().any(|it| {
                has_letter(&it.text, 'r', "")
                    || has_letter(&it.text, 'R', "")
                    || is_long(&it.text, "--recursive")
            });
            if is_deep || part.is_fed { Dangerous } else { changed(found, part, around) }
        }
        "cp" | "mv" | "ln" | "mkdir" | "touch" | "truncate" | "chmod" | "dd" | "install"
            if !part.is_fed =>
        {
            changed(found, part, around)
        }
        "tee" => ReadOnly,
        "env" | "printenv" if texts.iter().all(|it| it.is_empty()) => ReadOnly,
        "env" | "xargs" | "setsid" | "ionice" | "watch" | "nohup" | "time" | "timeout" => {
            let inner = args.iter().position(|it| {
                let is_number = it.text.bytes().all(|it| it.is_ascii_digit());
                !it.text.starts_with('-') && !it.text.contains('=') && !is_number && it.is_literal()
            });
            match inner {
                Some(at) if !texts[..at].iter().any(|it| decides(it)) => {
                    of_inner(&args[at..], name == "xargs" || part.is_fed, part, around)
                }
                _ => Dangerous,
            }
        }
        "command" => ReadOnly,
        "trap" | "eval" if args.iter().all(Word::is_known) => ReadOnly,
        _ if SHELLS.contains(name) => {
            let script = texts
                .iter()
                .any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains('c'));
            let document = args.is_empty()
                && part
                    .redirections
                    .iter()
                    .any(|it| matches!(it.0, Redirect::Document(_) | Redirect::Text));
            let is_known = args.iter().all(Word::is_known);
            if (script || document) && is_known { ReadOnly } else { Dangerous }
        }
        _ if escapes(part) => Dangerous,
        _ if READERS.contains(name) || PRINTERS.contains(name) => ReadOnly,
        "cd" | "pushd" | "popd" => ReadOnly,
        _ => match tables::class(name, first, &texts) {
            WorkspaceWrite if leads_out(name, args, part, around) => Dangerous,
            class => class,
        },
    }
}

/// Whether a program that changes files is given one that does not lie in the workspace. What comes after `--` is for
/// the program that it runs.
fn leads_out(name: &str, args: &[Word], part: &CommandPart, around: &CommandContext) -> bool {
    let is_output = |option: &str| ["out", "dir", "target"].iter().any(|it| option.contains(it));
    args.iter().take_while(|it| it.text != "--").any(|arg| {
        let value = match arg.text.split_once('=') {
            Some((option, value)) if option.starts_with("--") && is_output(option) => value,
            _ => arg.text.as_str(),
        };
        let is_label = name == "bazel" && value.starts_with("//");
        let is_path = value.starts_with(['/', '~']) || value == ".." || value.starts_with("../");
        is_path
            && !is_label
            && !named(&shortened(arg, value), part, around).is_inside(&part.dirs, around)
    })
}

/// Changes of known files.
fn changed(found: &Changes, part: &CommandPart, around: &CommandContext) -> CommandClass {
    if found.is_critical {
        return Dangerous;
    }
    found.altered().map(|it| of_write(it, part, around)).max().unwrap_or(ReadOnly)
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
    let classes = begins.map(|(i, _)| {
        let inner = &args[i + 1..];
        let end = inner.iter().position(|it| matches!(&*it.text, ";" | "+")).unwrap_or(inner.len());
        of_inner(&inner[..end], true, part, around)
    });
    classes.max().unwrap_or(ReadOnly)
}

/// Whether an argument of `env` decides what runs.
fn decides(arg: &str) -> bool {
    let sets = arg.split_once('=').is_some_and(|it| tables::is_run(it.0));
    sets || arg.starts_with("-S") || is_long(arg, "--split-string")
}

/// The class of a command that another one runs.
fn of_inner(
    words: &[Word],
    is_fed: bool,
    outer: &CommandPart,
    around: &CommandContext,
) -> CommandClass {
    if MAX_INNER <= outer.n_outer {
        return Dangerous;
    }
    let mut inner = CommandPart::new(Vec::new(), words.to_vec(), Vec::new(), outer.dirs.clone());
    inner.n_outer = outer.n_outer + 1;
    inner.is_fed |= is_fed;
    inner.is_lost = outer.is_lost;
    match inner.fault {
        Some(_) => Dangerous,
        None => of_part(&inner, &changes(&inner, around), around),
    }
}

fn of_tar(args: &[Word], part: &CommandPart, around: &CommandContext) -> CommandClass {
    if escapes(part) {
        return Dangerous;
    }
    let has = |letter, long: &str| {
        let bundle =
            args.first().is_some_and(|it| !it.text.starts_with('-') && it.text.contains(letter));
        bundle
            || args.iter().any(|it| has_letter(&it.text, letter, "fC") || is_long(&it.text, long))
    };
    if has('t', "--list") {
        return ReadOnly;
    }
    let leads_out = |it: &Word| {
        let name = named(it, part, around);
        !it.text.starts_with('-') && !name.is_inside(&part.dirs, around)
    };
    let extracts = has('x', "--extract") && !has('P', "--absolute-names");
    let packs = has('c', "--create") || has('r', "--append") || has('u', "--update");
    if (extracts || packs) && !args.iter().skip(1).any(leads_out) {
        WorkspaceWrite
    } else {
        Dangerous
    }
}
