//! The class of a command: the least permission that it needs (cases C).

mod cloud;
mod git;
mod kinds;
mod names;
mod nested;
mod reading;
mod tables;

pub use kinds::CommandClass;
pub(super) use names::READS;
pub(super) use tables::is_run;

use CommandClass::{Dangerous, ReadOnly, WorkspaceWrite};

use super::{
    CommandContext, CommandPart, ShellCommand,
    changes::Changes,
    dirs::PathTarget,
    edits::{is_device, opens_connection},
    escapes::{self, escapes},
    files::changes,
    named::{NamedFile, named, shortened},
    options::{has_letter, is_long},
    programs::{PRINTERS, READERS, SHELLS},
    written,
};
use crate::step7_permission_gate::{
    protected::is_protected,
    shell::{tree::Redirect, word::Word},
};

impl ShellCommand {
    /// Returns the class of the command: the highest of its parts.
    pub(crate) fn class(&self) -> CommandClass {
        if self.fault().is_some() {
            return Dangerous;
        }
        let around = self.around();
        let of_each = |(part, found): (&CommandPart, &Changes)| match nested::in_loops(part) {
            Some(part) => of_part(&part, &changes(&part, around), around),
            None => of_part(part, found, around),
        };
        self.changes().map(of_each).max().unwrap_or(ReadOnly)
    }
}

fn of_part(part: &CommandPart, found: &Changes, around: &CommandContext) -> CommandClass {
    let writes = found.writes.iter().map(|it| of_write(it, part, around));
    let mut redirected = part.redirections.iter().filter(|it| it.0 == Redirect::Read);
    if redirected.any(|it| opens_connection(&it.1.text)) {
        return Dangerous;
    }
    let sets = part.assignments.iter().any(|it| tables::is_run(&it.name));
    let sets = if sets { Dangerous } else { ReadOnly };
    let words = part.inner();
    let runs = match words {
        // The parts of a function are judged where it is called.
        _ if words.is_empty() || part.is_call => ReadOnly,
        words if part.is_fed && part.piped.is_some() => nested::fed(words, "", part, around),
        words => of_words(words, part, found, around),
    };
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
    if tables::only_tells(name, &texts) || reading::reads(name, &texts) {
        return ReadOnly;
    }
    if let Some(class) = nested::class(name, args, part, around) {
        return class;
    }
    if let Some((files, rest)) = written::taken_apart(name, args) {
        let writes = files.iter().map(|it| of_write(&named(it, part, around), part, around));
        let of_rest = rest.map_or(ReadOnly, |rest| of_rest(&words[0], rest, part, around));
        return writes.max().unwrap_or(ReadOnly).max(of_rest);
    }
    match name {
        "git" => {
            let class = git::class(args, |it| of_write(&named(it, part, around), part, around));
            here(class, part, around)
        }
        "tar" => of_tar(args, part, around),
        // What it edits is not known.
        "sed" if part.is_fed && !escapes::sed_reads(args) => Dangerous,
        "sed" if escapes::sed_starts_nothing(args) => changed(found, part, around),
        "rm" | "rmdir" | "unlink" => {
            let is_deep = args.iter().take_while(|it| it.text != "--").any(|it| {
                has_letter(&it.text, 'r', "")
                    || has_letter(&it.text, 'R', "")
                    || is_long(&it.text, "--recursive")
            });
            let is_deep = is_deep || part.is_fed || part.is_bulk;
            if is_deep { Dangerous } else { changed(found, part, around) }
        }
        "cp" | "mv" | "ln" | "mkdir" | "touch" | "truncate" | "chmod" | "dd" | "install"
            if !part.is_fed =>
        {
            changed(found, part, around)
        }
        "tee" => ReadOnly,
        "export" => {
            let sets = |it: &&str| tables::is_run(it.split('=').next().unwrap_or_default());
            if texts.iter().any(sets) { Dangerous } else { ReadOnly }
        }
        "command" => ReadOnly,
        "trap" | "eval" if args.iter().all(Word::is_known) => ReadOnly,
        _ if SHELLS.contains(name) => of_shell(args, &texts, part),
        _ if escapes(part) => Dangerous,
        _ if READERS.contains(name) || PRINTERS.contains(name) => ReadOnly,
        "cd" | "pushd" | "popd" => ReadOnly,
        _ => match tables::class(name, &texts) {
            WorkspaceWrite if leads_out(name, args, part, around) => Dangerous,
            class => here(class, part, around),
        },
    }
}

/// The class of what changes the directory in which it runs.
fn here(class: CommandClass, part: &CommandPart, around: &CommandContext) -> CommandClass {
    // Options of these lead to a package of the workspace, and where that is is not known.
    let is_of_packages = matches!(part.name(), "npm" | "pnpm" | "yarn" | "bun");
    let is_inside = match part.dirs.all() {
        Some(mut all) => all.all(|it| around.hold(it)),
        None => is_of_packages,
    };
    if class == WorkspaceWrite && !is_inside { Dangerous } else { class }
}

/// The class of a program without the arguments that are judged already.
fn of_rest(
    name: &Word,
    args: Vec<Word>,
    part: &CommandPart,
    around: &CommandContext,
) -> CommandClass {
    let words = [name.clone()].into_iter().chain(args).collect();
    let mut rest = CommandPart::new(Vec::new(), words, Vec::new(), part.dirs.clone());
    (rest.is_fed, rest.is_lost, rest.n_outer) = (part.is_fed, part.is_lost, part.n_outer);
    of_part(&rest, &changes(&rest, around), around)
}

/// The class of a shell: what a known script does is in parts of its own.
fn of_shell(args: &[Word], texts: &[&str], part: &CommandPart) -> CommandClass {
    let is_script = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('c');
    let is_document =
        |it: &(Redirect, Word)| matches!(it.0, Redirect::Document(_) | Redirect::Text);
    let document = args.is_empty() && part.redirections.iter().any(is_document);
    let is_known = args.iter().all(Word::is_known);
    if (texts.iter().any(is_script) || document) && is_known { ReadOnly } else { Dangerous }
}

/// Whether a program that changes files is given one that does not lie in the workspace. What comes after `--` is for
/// the program that it runs.
fn leads_out(name: &str, args: &[Word], part: &CommandPart, around: &CommandContext) -> bool {
    let is_output = |option: &str| ["out", "dir", "target"].iter().any(|it| option.contains(it));
    args.iter().take_while(|it| it.text != "--").any(|arg| {
        let file = match arg.text.split_once('=') {
            Some((option, value)) if option.starts_with("--") && is_output(option) => {
                shortened(arg, value)
            }
            _ => arg.clone(),
        };
        let value = file.text.as_str();
        let is_label = name == "bazel" && value.starts_with("//");
        let is_path = value.starts_with(['/', '~']) || value == ".." || value.starts_with("../");
        is_path && !is_label && of_write(&named(&file, part, around), part, around) == Dangerous
    })
}

/// Changes of known files.
fn changed(found: &Changes, part: &CommandPart, around: &CommandContext) -> CommandClass {
    if found.is_critical {
        return Dangerous;
    }
    found.altered().map(|it| of_write(it, part, around)).max().unwrap_or(ReadOnly)
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
