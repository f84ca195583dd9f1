//! Texts that programs run which are not shells: in their arguments, and in the values of their options.

use super::{
    nested::{NestedScripts, joined, values},
    of_shells,
};
use crate::step7_permission_gate::{
    command::{
        CommandPart,
        class::is_run,
        escapes::{self, git_runs_unseen},
        shells,
        starts::MAX_STARTS,
    },
    shell::word::Word,
};

/// Adds what follows `--`, which `capsh` hands to a shell.
pub(super) fn capsh(args: &[Word], part: &CommandPart, found: &mut NestedScripts) {
    if let Some(at) = args.iter().position(|it| matches!(&*it.text, "--" | "==")) {
        of_shells::shell(&args[at + 1..], part, found);
    }
}

/// Adds a text that `env` splits: it is more words of the same call.
pub(super) fn env(args: &[Word], found: &mut NestedScripts) {
    for text in values(args, 'S', "--split-string") {
        found.text(&format!("env {text}"));
        found.is_unseen |= !args.iter().all(Word::is_known);
    }
}

/// Adds what is run by programs that run a command as another user or group, with a lock or on a terminal of its own.
pub(super) fn as_another(name: &str, args: &[Word], part: &CommandPart, found: &mut NestedScripts) {
    found.add_values(args, 'c', "--command");
    // Without an option what follows the group is the command.
    if name == "sg" && args.len() > 1 {
        found.text(&joined(&args[1..]));
    }
    // A shell that runs what another process writes to it.
    found.is_unseen |= matches!(name, "su" | "runuser") && part.piped.is_some();
}

/// Adds what is run by programs that run a command on another machine: it may begin at any word.
pub(super) fn elsewhere(args: &[Word], found: &mut NestedScripts) {
    for at in 1..args.len().min(MAX_STARTS) {
        found.text(&joined(&args[at..args.len().min(at + MAX_STARTS)]));
    }
    // Without a command it is a shell that runs what another process writes to it.
    found.is_unseen |= args.len() < 2 || !args.iter().all(Word::is_known);
}

/// Adds what is run by programs that run any word that looks like a text for a shell.
pub(super) fn runner(args: &[Word], found: &mut NestedScripts) {
    for arg in args.iter().take(MAX_STARTS) {
        let value = arg.text.split_once('=').map_or("", |it| it.1);
        for text in [arg.text.as_str(), value] {
            if text.contains([' ', ';', '|', '&', '\n', '$', '`']) {
                found.word(text, arg);
            }
        }
    }
}

/// Adds the programs that variables of `make` hold; `-f -` is its input.
pub(super) fn make(args: &[Word], found: &mut NestedScripts) {
    for (i, arg) in args.iter().enumerate() {
        if let Some((name, value)) = arg.text.split_once('=').filter(|it| !it.0.starts_with('-')) {
            found.is_unseen |= is_run(name);
            if value.contains([' ', ';', '|', '&', '$', '`', '(', '\n']) {
                found.word(value, arg);
            }
        }
        let file = match arg.text.as_str() {
            "-f" | "--file" | "--makefile" => args.get(i + 1),
            text => text.starts_with("-f").then_some(arg),
        };
        found.is_unseen |= file.is_some_and(|it| {
            !it.inner.is_empty() || shells::is_input(it.text.trim_start_matches("-f"))
        });
    }
}

/// Adds texts of options and aliases, and commands that follow a word of git. What git runs, it runs at the top of a
/// repository.
pub(super) fn git(args: &[Word], found: &mut NestedScripts) {
    let first = found.texts.len();
    git_values(args, found);
    git_commands(args, found);
    found.leave_from(first);
    found.is_unseen |= git_runs_unseen(args);
}

fn git_values(args: &[Word], found: &mut NestedScripts) {
    let escapes = escapes::git_escapes(args);
    for arg in args {
        // `-c alias.x='!rm'`, and what `--exec` and its like are given.
        let text = arg.text.as_str();
        if let Some((_, text)) = text.split_once("=!") {
            found.word(text, arg);
        }
        // Next to an option that runs something, any text may be what it runs.
        let value = text.split_once('=').filter(|it| it.0.starts_with("--")).map(|it| it.1);
        let attached = text.strip_prefix('-').and_then(|it| it.get(1..)).unwrap_or(text);
        for text in [value, Some(attached).filter(|it| it.contains(' '))] {
            if let Some(text) = text.filter(|_| escapes) {
                found.word(text, arg);
            }
        }
    }
}

fn git_commands(args: &[Word], found: &mut NestedScripts) {
    for at in 0..args.len().min(MAX_STARTS) {
        let runs = match args[at].text.as_str() {
            "foreach" | "-x" | "--exec" | "--tree-filter" | "--index-filter" => true,
            "run" => at > 0 && args[at - 1].text == "bisect",
            _ => false,
        };
        if runs {
            let is_option = |it: &&Word| it.text.starts_with('-');
            let n_options = args[at + 1..].iter().take_while(is_option).count();
            found.text(&joined(&args[at + 1 + n_options..]));
        }
    }
}

/// Adds what is run by programs with options that run what they are given.
pub(super) fn escape(name: &str, args: &[Word], found: &mut NestedScripts) {
    for (i, arg) in args.iter().enumerate().take(MAX_STARTS) {
        let text = arg.text.as_str();
        // The value may be the next word, and what follows the arguments of it.
        if escapes::is_one(name, text) {
            found.text(&joined(&args[i + 1..args.len().min(i + 1 + MAX_STARTS)]));
        }
        let value = text.split_once("exec=").or(text.split_once('=')).map(|it| it.1);
        let rest = text.strip_prefix('-').and_then(|it| it.get(1..));
        for text in [Some(text), value, rest].into_iter().flatten() {
            if text.contains(' ') || Some(text) == value {
                found.word(text, arg);
            }
        }
    }
}

/// Adds what `tar` runs. Options without a dash have their values after all of them.
pub(super) fn tar(args: &[Word], found: &mut NestedScripts) {
    if escapes::holds("tar", args) {
        escape("tar", args, found);
    }
    let bundle = args.first().filter(|it| !it.text.starts_with('-'));
    if bundle.is_some_and(|it| it.text.contains(['I', 'F'])) {
        args.iter().skip(1).take(MAX_STARTS).for_each(|it| found.word(&it.text, it));
    }
}

/// Adds the program into which `strace` writes. Source: strace 6.1, strace(1).
pub(super) fn strace(args: &[Word], found: &mut NestedScripts) {
    for arg in args.iter().take(MAX_STARTS) {
        let text = arg.text.trim_start_matches("-o").trim_start_matches("--output=");
        if let Some(text) = text.strip_prefix(['|', '!']) {
            found.word(text, arg);
        }
    }
}

/// Adds the commands that a pager runs at the start.
pub(super) fn pager(args: &[Word], found: &mut NestedScripts) {
    for arg in args.iter().filter(|it| it.text.starts_with('+')) {
        match arg.text.split_once('!') {
            Some((_, text)) => found.word(text, arg),
            None => found.is_unseen = true,
        }
    }
    if escapes::holds("less", args) {
        escape("less", args, found);
    }
}

/// Adds the program as which one binary of all runs: `coreutils --coreutils-prog=rm x`.
pub(super) fn coreutils(args: &[Word], found: &mut NestedScripts) {
    if let Some((first, rest)) = args.split_first()
        && let Some((_, name)) = first.text.split_once('=')
    {
        found.text(&format!("{name} {}", joined(rest)));
    }
}
