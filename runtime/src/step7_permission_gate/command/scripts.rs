//! Texts that a part runs: scripts in scripts, shown to deny and ask rules only; and whether it runs
//! code that is not in the text.

use super::{
    CommandPart,
    class::is_run,
    escapes::{self, git_runs_unseen},
    interpreters,
    options::{has_letter, is_long},
    part::base,
    programs::{RUNS_TEXT, SHELLS},
    shells::{self, ShellInput},
    starts::{MAX_STARTS, fed_at, is_wrapper, starts_unknown},
};
use crate::step7_permission_gate::shell::word::Word;

/// One text that is run.
#[derive(Debug)]
pub(super) struct ScriptText {
    pub(super) text: String,
    /// The shell itself runs it, so it may move the shell.
    pub(super) is_own: bool,
    /// The shell itself may run it at any time later.
    pub(super) is_later: bool,
    /// In a directory that is not known.
    pub(super) is_elsewhere: bool,
}

impl ScriptText {
    /// A text that runs once, where the part runs.
    fn here(text: String, is_own: bool) -> Self {
        Self { text, is_own, is_later: false, is_elsewhere: false }
    }
}

/// What a part runs besides the program that it names.
#[derive(Debug, Default)]
pub(super) struct NestedScripts {
    pub(super) texts: Vec<ScriptText>,
    /// There is more of it than is written here, or it cannot be read.
    pub(super) is_unseen: bool,
}

impl NestedScripts {
    fn text(&mut self, text: &str) {
        self.texts.push(ScriptText::here(text.to_owned(), false));
    }

    /// What git runs, it runs at the top of a repository.
    fn leave_from(&mut self, first: usize) {
        self.texts.iter_mut().skip(first).for_each(|it| it.is_elsewhere = true);
    }

    /// A text that is a word, or the end of one.
    fn word(&mut self, text: &str, word: &Word) {
        self.text(text);
        self.is_unseen |= !word.is_known();
    }
}

/// What a part runs.
pub(super) fn runs(part: &CommandPart) -> NestedScripts {
    let mut found = NestedScripts::default();
    of_variables(part, &mut found);
    let Some(name) = part.inner().first() else { return found };
    let name = base(&name.text);
    let fed = fed_at(part);
    // Where `find` runs nothing at a word, that is no program.
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

fn texts_of(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    is_first: bool,
    found: &mut NestedScripts,
) {
    let from_input = |found: &mut NestedScripts, is_own: bool| {
        let (texts, is_unseen) = shells::input(part);
        found.texts.extend(texts.into_iter().map(|text| ScriptText::here(text, is_own)));
        found.is_unseen |= is_unseen;
    };
    match name {
        _ if SHELLS.contains(name) => match shells::program(args) {
            ShellInput::Text(script) => found.word(&script.text, script),
            ShellInput::Input => from_input(found, false),
            ShellInput::File => found.is_unseen = true,
            ShellInput::Nothing => {}
        },
        "source" | "." => match args.first() {
            Some(file) if shells::is_input(&file.text) => from_input(found, is_first),
            _ => found.is_unseen = true,
        },
        "eval" => {
            let is_end = args.first().is_some_and(|it| it.text == "--");
            let text = joined(&args[usize::from(is_end)..]);
            found.texts.push(ScriptText::here(text, is_first));
            found.is_unseen |= !args.iter().all(Word::is_literal);
        }
        "trap" => {
            let mut words = args.iter().skip_while(|it| it.text.starts_with('-'));
            if let Some(action) = words.next() {
                let text = action.text.clone();
                // At its end a shell moves for nobody else.
                let is_later = !words.all(|it| matches!(&*it.text, "EXIT" | "0"));
                found.texts.push(ScriptText { text, is_own: false, is_later, is_elsewhere: true });
                found.is_unseen |= !action.is_known();
            }
        }
        "mapfile" | "readarray" => add_values(args, 'C', "--none", found),
        "complete" | "compgen" => {
            add_values(args, 'C', "--none", found);
            // A list of words is expanded.
            for words in values(args, 'W', "--none") {
                found.text(&format!(": {words}"));
            }
        }
        // What it runs was typed before, here or in another shell.
        "fc" => found.is_unseen |= !args.iter().any(|it| has_letter(&it.text, 'l', "e")),
        "capsh" => {
            if let Some(at) = args.iter().position(|it| matches!(&*it.text, "--" | "==")) {
                texts_of("bash", &args[at + 1..], part, false, found);
            }
        }
        // The text is more words of the same call.
        "env" => {
            for text in values(args, 'S', "--split-string") {
                found.text(&format!("env {text}"));
                found.is_unseen |= !args.iter().all(Word::is_known);
            }
        }
        "su" | "runuser" | "script" | "flock" | "sg" => {
            add_values(args, 'c', "--command", found);
            // Without an option what follows the group is the command.
            if name == "sg" && args.len() > 1 {
                found.text(&joined(&args[1..]));
            }
            // A shell that runs what another process writes to it.
            found.is_unseen |= matches!(name, "su" | "runuser") && part.piped.is_some();
        }
        "enable" | "hash" | "bind" => {
            let sets = |it: &Word| it.text.starts_with('-') && it.text.contains(['f', 'p', 'x']);
            found.is_unseen |= args.iter().any(sets);
        }
        "jobs" => {
            if let Some(at) = args.iter().position(|it| it.text == "-x") {
                found.text(&joined(&args[at + 1..]));
            }
        }
        "alias" => {
            for arg in args {
                if let Some((_, text)) = arg.text.split_once('=') {
                    found.word(text, arg);
                }
            }
        }
        "ssh" | "mosh" | "autossh" => {
            for at in 1..args.len().min(MAX_STARTS) {
                found.text(&joined(&args[at..args.len().min(at + MAX_STARTS)]));
            }
            // Without a command it is a shell that runs what another process writes to it.
            found.is_unseen |= args.len() < 2 || !args.iter().all(Word::is_known);
        }
        "watch" | "parallel" | "env_parallel" | "entr" | "hyperfine" | "watchexec"
        | "concurrently" | "nodemon" | "nix-shell" | "nix" | "npx" | "npm" | "ncat" | "nc"
        | "snap" | "execlineb" => {
            for arg in args.iter().take(MAX_STARTS) {
                let value = arg.text.split_once('=').map_or("", |it| it.1);
                for text in [arg.text.as_str(), value] {
                    if text.contains([' ', ';', '|', '&', '\n', '$', '`']) {
                        found.word(text, arg);
                    }
                }
            }
        }
        "make" | "gmake" => of_make(args, found),
        "awk" | "gawk" | "mawk" | "nawk" | "sed" => {
            found.is_unseen |= match name {
                "sed" => !escapes::runs_nothing(args),
                _ => escapes::is_escape(name, args),
            };
        }
        "git" => {
            let first = found.texts.len();
            of_git(args, found);
            found.leave_from(first);
            found.is_unseen |= git_runs_unseen(args);
        }
        _ if escapes::holds(name, args) => {
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
        _ => {}
    }
}

fn joined(words: &[Word]) -> String {
    let all: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
    all.join(" ")
}

/// Variables of `make` hold programs, and `-f -` is its input.
fn of_make(args: &[Word], found: &mut NestedScripts) {
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

fn of_git(args: &[Word], found: &mut NestedScripts) {
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

fn add_values(args: &[Word], short: char, long: &str, found: &mut NestedScripts) {
    for text in values(args, short, long) {
        found.text(text);
    }
    // A value that is not known is not known to be none either.
    found.is_unseen |= !values(args, short, long).is_empty() && !args.iter().all(Word::is_known);
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
