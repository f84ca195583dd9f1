//! Programs that run what a text says which the gate cannot read: other languages, editors and
//! clients with an escape to a shell, debuggers, schedulers.
//!
//! A rule for the whole tool does not cover them where other rules deny or ask about commands, since
//! the gate cannot see whether such a command is in the text. A program that runs a file by its name is not
//! among them: what a file does is the sandbox's work. Sources: the manual of each program, as of 2025.

use super::{
    names::Glance,
    options::{has_letter, is_long},
};
use crate::step7_permission_gate::shell::word::Word;

/// Where a program takes such a text from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From options in front of its first operand, and from its input when it has no operand.
    Input,
    /// Programs come from options, wherever they are.
    Options,
    /// From a subcommand of one of the names under `long`.
    Subcommand,
    /// Programs come from any argument.
    Anything,
}

/// One kind of such programs.
pub(crate) struct Interpreter {
    pub(crate) names: &'static [&'static str],
    pub(crate) source: Source,
    /// Letters of options that bring a text.
    pub(crate) short: &'static str,
    /// The same as words, with as many dashes as they have.
    pub(crate) long: &'static [&'static str],
}

const fn row(
    names: &'static [&'static str],
    source: Source,
    short: &'static str,
    long: &'static [&'static str],
) -> Interpreter {
    Interpreter { names, source, short, long }
}

/// The interpreters, by family.
pub(crate) const INTERPRETERS: &[Interpreter] = &[
    // Languages.
    row(&["python", "pypy", "ipython", "micropython"], Source::Input, "c", &[]),
    row(&["perl"], Source::Input, "eEMm", &[]),
    row(&["ruby", "irb", "jruby"], Source::Input, "e", &[]),
    row(&["node", "nodejs", "bun"], Source::Input, "ep", &["--eval", "--print"]),
    row(&["deno"], Source::Subcommand, "", &["eval", "repl"]),
    row(&["php"], Source::Input, "rBRE", &["--run", "--process-begin", "--process-code"]),
    row(&["lua", "luajit", "texlua"], Source::Input, "e", &[]),
    row(&["tclsh", "wish", "m4", "gforth"], Source::Input, "e", &[]),
    row(&["guile", "racket", "clojure", "clj", "bb"], Source::Input, "ce", &["--eval"]),
    row(&["Rscript", "R", "julia", "octave"], Source::Input, "eE", &["--eval", "--print"]),
    row(&["groovy", "scala", "elixir", "iex", "erl", "escript"], Source::Input, "e", &["--eval"]),
    row(&["ocaml", "ghci", "runghc", "swift"], Source::Input, "e", &[]),
    row(&["ghc"], Source::Options, "e", &[]),
    row(&["sbcl", "clisp", "ecl"], Source::Input, "x", &["--eval"]),
    row(&["osascript", "gnuplot", "dc"], Source::Input, "e", &["--expression"]),
    // Shells of another grammar.
    row(
        &["csh", "tcsh", "nu", "xonsh", "elvish", "rc", "es"],
        Source::Input,
        "cse",
        &["--commands"],
    ),
    row(&["pwsh", "powershell", "jshell", "expect", "zsh", "fish"], Source::Anything, "", &[]),
    // Editors.
    row(&["vi", "vim", "nvim", "view", "vimdiff", "ex", "ed"], Source::Anything, "", &[]),
    row(&["gvim", "gview", "gvimdiff", "rvim", "rview", "vimx", "mvim"], Source::Anything, "", &[]),
    row(&["nano", "pico"], Source::Options, "s", &["--speller"]),
    row(&["emacs", "emacsclient"], Source::Anything, "", &[]),
    // Clients and debuggers with an escape to a shell.
    row(&["sqlite3", "psql", "mysql", "mariadb"], Source::Anything, "", &[]),
    row(&["ftp", "sftp", "lftp", "telnet", "socat"], Source::Anything, "", &[]),
    row(&["gdb", "lldb", "ansible"], Source::Anything, "", &[]),
    row(&["nc", "ncat", "netcat"], Source::Options, "ec", &["--exec", "--sh-exec", "--lua-exec"]),
    // What runs later or elsewhere.
    row(
        &["at", "batch", "crontab", "tmux", "screen", "parallel", "sem"],
        Source::Anything,
        "",
        &[],
    ),
    row(&["ssh", "scp", "mosh"], Source::Options, "oFS", &[]),
    row(&["npm", "npx", "pnpm"], Source::Options, "c", &["--call", "--script-shell"]),
    // Build tools whose options bring programs.
    row(&["make", "gmake"], Source::Options, "E", &["--eval"]),
    row(&["cargo"], Source::Options, "", &["--config"]),
    row(&["go"], Source::Options, "", &["-exec", "-toolexec", "-vettool"]),
    row(&["gcc", "g++", "cc", "c++"], Source::Options, "", &["-wrapper"]),
    row(&["wget"], Source::Options, "e", &["--execute", "--use-askpass"]),
    row(&["curl"], Source::Options, "K", &["--config"]),
    row(&["apt", "apt-get"], Source::Options, "o", &["--option"]),
    row(&["zip"], Source::Options, "T", &["--unzip-command"]),
];

/// The programs of [`INTERPRETERS`], at a glance.
static NAMED: Glance = named();

const fn named() -> Glance {
    let mut glance = Glance::new();
    let mut i = 0;
    while i < INTERPRETERS.len() {
        glance = glance.with(INTERPRETERS[i].names);
        i += 1;
    }
    glance
}

/// Returns whether a program runs a text that cannot be read.
pub(super) fn runs_unseen(name: &str, args: &[Word], is_fed: bool) -> bool {
    let Some(row) = find_interpreter(name) else { return false };
    let asks = |it: &Word| matches!(&*it.text, "--version" | "--help" | "-V" | "-v" | "-version");
    if is_fed {
        return true;
    }
    match row.source {
        Source::Anything => args.is_empty() || !args.iter().all(asks),
        Source::Subcommand => args.iter().any(|it| row.long.contains(&it.text.as_str())),
        Source::Options => options(args).any(|it| row.brings(&it.text)),
        Source::Input => !args.iter().all(asks) && reads_text(row, name, args) || args.is_empty(),
    }
}

/// Returns whether a program runs texts of another language.
pub(super) fn is_interpreter(name: &str) -> bool {
    find_interpreter(name).is_some_and(|it| matches!(it.source, Source::Input | Source::Anything))
}

/// The row of a program; `python3.11` is a `python`.
fn find_interpreter(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_numbered = plain.len() < name.len();
    if !(NAMED.may_hold(name) || is_numbered && NAMED.may_hold(plain)) {
        return None;
    }
    INTERPRETERS
        .iter()
        .find(|it| it.names.contains(&name) || is_numbered && it.names.contains(&plain))
}

impl Interpreter {
    fn brings(&self, arg: &str) -> bool {
        self.short.chars().any(|it| has_letter(arg, it, ""))
            || self.long.iter().any(|it| {
                arg.strip_prefix(it).is_some_and(|it| it.is_empty() || it.starts_with('='))
                    || is_long(arg, it)
            })
    }
}

fn options(args: &[Word]) -> impl Iterator<Item = &Word> {
    args.iter().take_while(|it| it.text != "--")
}

/// Whether an option in front of its file brings a text, or there is no file.
fn reads_text(row: &Interpreter, name: &str, args: &[Word]) -> bool {
    let mut after_option = false;
    for arg in args {
        let text = arg.text.as_str();
        let is_option = text.starts_with('-') && text.len() > 1;
        if is_option && row.brings(text) {
            return true;
        }
        // What follows the name of a module is the module's.
        if name.starts_with("py") && has_letter(text, 'm', "WXQ") {
            return false;
        }
        let is_input = matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
        if !is_option && (is_input || !arg.inner.is_empty()) {
            return true;
        }
        // After an option it may be the value of that.
        if !is_option && !after_option {
            return false;
        }
        after_option = is_option;
    }
    // The last word is a file, unless it is an option.
    after_option
}
