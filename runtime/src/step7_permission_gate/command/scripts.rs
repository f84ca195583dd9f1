//! Texts that a part runs: scripts in scripts, shown to deny and ask rules only; and whether it runs
//! code that is not in the text.

mod nested;
mod of_programs;
mod of_shells;

use super::{
    CommandPart,
    class::is_run,
    escapes, interpreters,
    part::base,
    programs::{RUNS_TEXT, SHELLS},
    starts::{MAX_STARTS, fed_at, is_wrapper, starts_unknown},
    written::without_outputs,
};
use crate::step7_permission_gate::shell::word::Word;
use nested::values;
pub(super) use nested::{NestedScripts, ScriptText};

/// Returns what a part runs.
pub(super) fn runs(part: &CommandPart) -> NestedScripts {
    let mut found = NestedScripts::default();
    of_variables(part, &mut found);
    let Some(name) = part.inner().first() else { return found };
    let name = base(&name.text);
    let fed = fed_at(part);
    // Where `find` runs nothing at a word, that is not a program.
    let is_certain = |start: usize| {
        let before = start.checked_sub(1).map_or("", |it| part.words[it].text.as_str());
        name != "find"
            || start <= part.start
            || before.starts_with("-exec")
            || before.starts_with("-ok")
    };
    for start in part.starts.iter().copied() {
        let words = &part.words[start..];
        let Some((name, args)) = words.split_first() else { continue };
        let name = base(&name.text);
        let is_unseen = found.is_unseen;
        texts_of(name, args, part, start == part.start, &mut found);
        let is_fed = fed == Some(start);
        found.is_unseen |= interpreters::runs_unseen(name, args, is_fed);
        found.is_unseen |= is_fed && chooses(name, args);
        found.is_unseen |= starts_unknown(name, args);
        if !is_certain(start) {
            found.is_unseen = is_unseen;
        }
    }
    found
}

/// Whether more arguments may decide what a program runs.
fn chooses(name: &str, args: &[Word]) -> bool {
    let is_program = |it: &str| {
        is_wrapper(it)
            || SHELLS.contains(it)
            || RUNS_TEXT.contains(it)
            || escapes::TABLES.iter().any(|table| table.name == it)
    };
    match name {
        "git" => escapes::call(args).command.is_empty(),
        "find" | "tar" | "awk" | "gawk" | "mawk" | "nawk" => true,
        // The text that is put in its place is the program.
        _ => name.contains(['{', '%']) || is_program(name),
    }
}

/// Variables that decide what runs, and the programs in them.
fn of_variables(part: &CommandPart, found: &mut NestedScripts) {
    let mut add = |name: &str, value: &Word, text: &str| {
        if is_run(name) {
            found.is_unseen = true;
            found.word(text, value);
        }
    };
    for it in &part.assignments {
        add(&it.name, &it.value, &it.value.text);
    }
    let sets = ["export", "declare", "typeset", "readonly", "local", "env", "sudo", "doas"];
    if sets.contains(&base(part.name())) {
        for arg in part.args().iter().take(MAX_STARTS) {
            if let Some((name, value)) = arg.text.split_once('=') {
                add(name, arg, value);
            }
        }
    }
}

/// What one program of a part runs, by its name and arguments; the first of a part may be the shell's
/// own.
fn texts_of(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    is_first: bool,
    found: &mut NestedScripts,
) {
    let others = without_outputs(name, args);
    let args = others.as_deref().unwrap_or(args);
    match name {
        _ if SHELLS.contains(name) => of_shells::shell(args, part, found),
        "source" | "." => of_shells::source(args, part, is_first, found),
        "eval" => of_shells::eval(args, is_first, found),
        "trap" => of_shells::trap(args, found),
        "mapfile" | "readarray" => found.add_values(args, 'C', "--none"),
        "complete" | "compgen" => of_shells::completion(args, found),
        "fc" => of_shells::history(args, found),
        "enable" | "hash" | "bind" => of_shells::binding(args, found),
        "jobs" => of_shells::jobs(args, found),
        "alias" => of_shells::alias(args, found),
        "capsh" => of_programs::capsh(args, part, found),
        "env" => of_programs::env(args, found),
        "su" | "runuser" | "script" | "flock" | "sg" => {
            of_programs::as_another(name, args, part, found)
        }
        "ssh" | "mosh" | "autossh" => of_programs::elsewhere(args, found),
        "watch" | "parallel" | "env_parallel" | "entr" | "hyperfine" | "watchexec"
        | "concurrently" | "nodemon" | "nix-shell" | "nix" | "npx" | "npm" | "ncat" | "nc"
        | "snap" | "execlineb" => of_programs::runner(args, found),
        "make" | "gmake" => of_programs::make(args, found),
        "sed" => found.is_unseen |= !escapes::runs_nothing(args),
        "awk" | "gawk" | "mawk" | "nawk" => found.is_unseen |= escapes::is_escape(name, args),
        "git" => of_programs::git(args, found),
        "strace" => of_programs::strace(args, found),
        "less" | "more" => of_programs::pager(args, found),
        "coreutils" => of_programs::coreutils(args, found),
        "tar" => of_programs::tar(args, found),
        _ => {
            found.is_unseen |= escapes::runs_another(name, args);
            if escapes::holds(name, args) {
                of_programs::escape(name, args, found);
            }
        }
    }
}

/// Returns whether a part runs a text, or a program in a way that a rule with a `*` cannot mean.
pub(crate) fn is_interpreter(name: &str, args: &[Word]) -> bool {
    if RUNS_TEXT.contains(name) {
        return true;
    }
    match name {
        _ if SHELLS.contains(name) => {
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
