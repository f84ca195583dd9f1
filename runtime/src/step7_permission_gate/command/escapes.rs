//! Arguments with which a harmless program runs others or writes: a rule with a `*` does not cover
//! them, and neither does the read-only set (cases A6).

mod awk;
mod git;
mod hidden;
mod pattern;
mod sed;
mod tables;

pub(super) use tables::TABLES;

pub(super) use git::{
    GitCall, call, escapes as git_escapes, reads_config, runs_unseen as git_runs_unseen,
};
pub(super) use sed::{
    files as sed_files, is_harmless as sed_reads, scripts_are_harmless as runs_nothing,
    start_nothing as sed_starts_nothing,
};

use super::{
    CommandPart,
    names::{Glance, Names},
    options::{Table, has_letter, is_long},
    part::base,
};
use crate::step7_permission_gate::shell::word::Word;

/// Returns whether a part has an argument with which its program runs others or writes.
pub(crate) fn escapes(part: &CommandPart) -> bool {
    let name = base(part.name());
    let args = part.args();
    if part.is_fed && takes_options(name) {
        // What comes from the input is not known.
        return true;
    }
    holds(name, args) || is_escape(name, args) || hidden::may_become(name, args)
}

/// Returns whether an argument may become one that escapes: what a pattern meets may be named like an option.
pub(super) fn may_escape(part: &CommandPart) -> bool {
    let name = base(part.name());
    let options = || part.args().iter().take_while(|it| it.text != "--");
    options().any(may_be_option) && takes_options(name)
}

/// Returns whether an argument may become an option that has the program read the files which another file names.
pub(in super::super) fn may_name_files(part: &CommandPart) -> bool {
    let options = || part.args().iter().take_while(|it| it.text != "--");
    ONLY_READ.contains(&part.name()) && options().any(may_be_option)
}

/// Programs whose options in the tables read more files, and do nothing else.
const ONLY_READ: [&str; 2] = ["wc", "du"];

/// Whether a program has options that run something or write.
fn takes_options(name: &str) -> bool {
    let has = |it: &Table| it.name == name && !ONLY_READ.contains(&name);
    SPECIAL.contains(name) || TABLES.iter().any(has)
}

/// The programs of [`TABLES`], at a glance.
static IN_TABLES: Glance = in_tables();

const fn in_tables() -> Glance {
    let mut glance = Glance::new();
    let mut i = 0;
    while i < TABLES.len() {
        glance = glance.with(&[TABLES[i].name]);
        i += 1;
    }
    glance
}

/// Returns whether one of the arguments is in the table of the program.
pub(super) fn holds(name: &str, args: &[Word]) -> bool {
    IN_TABLES.may_hold(name) && TABLES.iter().any(|it| it.name == name && it.holds(args))
}

/// Returns whether an argument is in the table of the program.
pub(super) fn is_one(name: &str, arg: &str) -> bool {
    TABLES.iter().any(|it| it.name == name && it.has(arg))
}

/// Programs whose arguments are looked at more closely than a table can say.
pub(super) static SPECIAL: Names =
    Names::of(&["find", "git", "sed", "awk", "gawk", "mawk", "nawk", "tar", "uniq", "hostname"]);

/// Returns whether it has an argument that a table cannot hold.
pub(super) fn is_escape(name: &str, args: &[Word]) -> bool {
    match name {
        // Sources: the manuals of GNU findutils 4.9 and GNU tar 1.34.
        "find" => args.iter().any(|it| may_be_option(it) || is_action(&it.text)),
        "sort" => args.iter().any(may_be_option),
        "tar" => {
            let bundle = args.first().filter(|it| !it.text.starts_with('-'));
            bundle.is_some_and(|it| it.text.contains(['I', 'F']) || !it.is_literal())
                || args.iter().any(may_be_option)
        }
        "git" => git::escapes(args),
        "sed" => !sed::is_harmless(args),
        "awk" | "gawk" | "mawk" | "nawk" => !awk::is_harmless(args),
        // The second file is the one that is written.
        "uniq" | "xxd" => {
            let mut operands = super::options::operands(args);
            operands.next().is_some_and(Word::has_glob)
                || operands.next().is_some()
                || hidden::may_be_several(args)
        }
        "date" => args.iter().any(|it| sets_date(&it.text)),
        "ssh" | "scp" | "sftp" => runs_for_connection(name, args),
        _ if runs_another(name, args) => true,
        "hostname" => !args.is_empty(),
        "printf" => args.first().is_some_and(|it| it.text.starts_with("-v")),
        "test" | "[" | "[[" => args.iter().any(|it| matches!(&*it.text, "-v" | "-R")),
        // A name with a subscript is arithmetic.
        "read" | "getopts" | "unset" => {
            args.iter().any(|it| it.text.contains('[') || !it.is_known())
        }
        "wait" => args.iter().any(|it| it.text.starts_with("-p")),
        _ => false,
    }
}

/// Returns whether an argument, but for those of the tables, has a program run another one or load a library.
pub(super) fn runs_another(name: &str, args: &[Word]) -> bool {
    let begins = |starts: &[&str]| {
        args.iter().any(|it| starts.iter().any(|start| it.text.starts_with(start)))
    };
    let holds =
        |pieces: &[&str]| args.iter().any(|it| pieces.iter().any(|piece| it.text.contains(piece)));
    match name {
        // less 590: commands, of which `!` runs others.
        "less" | "more" | "man" => begins(&["+"]),
        // gcc 12, clang 14, GNU binutils 2.40: files of options, shown in complaints about them; plugins, and what
        // precedes each step.
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" => {
            let runs =
                ["@", "-wrapper", "-specs", "--specs", "-B", "-Xclang", "--config", "--ld-path"];
            begins(&runs) || begins(&["-fuse-ld=/", "-fuse-ld=."]) || holds(&["plugin"])
        }
        "strings" | "ar" | "as" | "ld" | "nm" | "objcopy" | "objdump" | "readelf" => {
            begins(&["@"]) || holds(&["-plugin"])
        }
        // TeX Live 2022.
        "latex" | "pdflatex" | "xelatex" | "lualatex" | "tex" | "latexmk" => {
            holds(&["shell-escape", "write18", "-e", "-latex", "-pdflatex"])
        }
        // go 1.22, go help build, go help testflag, go help vet, go help env, go tool link.
        "go" => {
            let runs = ["exec", "toolexec", "vettool"];
            let is_option = |it: &Word| {
                let option = it.text.trim_start_matches('-');
                let name = option.split_once('=').map_or(option, |it| it.0);
                option.len() < it.text.len() && runs.contains(&name)
            };
            let sets = args.first().is_some_and(|it| it.text == "env") && begins(&["-w", "--w"]);
            sets || args.iter().any(is_option) || holds(&["-extld"])
        }
        // rustc 1.80, codegen options; java(1) of OpenJDK 21.
        "rustc" => begins(&["@"]) || holds(&["linker=", "sysroot", "codegen-backend"]),
        "java" => {
            begins(&["@", "-agent", "-javaagent", "-XX:On", "-XX:Flags", "-XX:VMOptionsFile"])
        }
        // iproute2 6.1, ip(8); OpenSSL 3.0.
        "ip" => args.iter().any(|it| {
            "exec".starts_with(&it.text) && it.text.starts_with('e') || it.text.starts_with("-b")
        }),
        "openssl" => {
            let loads = ["-engine", "-config", "-provider", "--engine", "--config", "--provider"];
            begins(&loads) || args.first().is_some_and(|it| it.text == "engine")
        }
        // CMake 3.25, "Run a Command-Line Tool".
        "cmake" => args
            .windows(2)
            .any(|it| it[0].text == "-E" && matches!(&*it[1].text, "env" | "time" | "chdir")),
        // gh 2.40: aliases may run a shell, and settings name programs. Docker 24: a directory with plug-ins.
        "gh" => {
            let words: Vec<&str> = args.iter().map(|it| it.text.as_str()).take(3).collect();
            match words[..] {
                ["alias", "set" | "import", ..] | ["extension" | "ext", "exec", ..] => true,
                ["config", "set", key] => matches!(key, "editor" | "pager" | "browser"),
                _ => false,
            }
        }
        "docker" => {
            let is_global = |it: &&Word| it.text.starts_with('-');
            args.iter().take_while(is_global).any(|it| is_long(&it.text, "--config"))
        }
        _ => false,
    }
}

/// Keys of `ssh_config` that name programs, libraries or more configuration. Source: OpenSSH 9.2.
const SSH_KEYS: [&str; 10] = [
    "proxycommand",
    "localcommand",
    "permitlocalcommand",
    "knownhostscommand",
    "authorizedkeyscommand",
    "pkcs11provider",
    "securitykeyprovider",
    "xauthlocation",
    "include",
    "match",
];

/// Whether options of `ssh` and its like run a program here, or read another configuration.
fn runs_for_connection(name: &str, args: &[Word]) -> bool {
    let valued = "BbcDEeIiJLlmOopQRSWwFPXs";
    let programs: &[char] = if name == "ssh" { &['F', 'I'] } else { &['F', 'S', 'D'] };
    let options = args.iter().enumerate().filter(|it| it.1.text.starts_with('-'));
    options.into_iter().any(|(i, arg)| {
        let text = arg.text.as_str();
        if programs.iter().any(|it| has_letter(text, *it, &valued.replace(*it, ""))) {
            return true;
        }
        if !has_letter(text, 'o', &valued.replace('o', "")) {
            return false;
        }
        let rest = text.split_once('o').map_or("", |it| it.1);
        let value = if rest.is_empty() { args.get(i + 1) } else { Some(arg) };
        let Some(value) = value else { return true };
        let key = if rest.is_empty() { value.text.as_str() } else { rest };
        let key = key.trim_start().to_ascii_lowercase();
        !value.is_known() || SSH_KEYS.iter().any(|it| key.starts_with(it))
    })
}

/// Whether an argument may become an option before the program sees it: a file may be called so.
fn may_be_option(arg: &Word) -> bool {
    let begins_open = arg.spans.first().is_some_and(|it| {
        it.start == 0 && it.piece != crate::step7_permission_gate::shell::word::PieceKind::Quoted
    });
    let is_plain = arg.spans.first().is_none_or(|it| it.start > 0);
    begins_open || is_plain && arg.text.starts_with(['*', '?', '['])
}

/// What actions of `find` begin with that run something or write.
const ACTIONS: [&str; 6] = ["-exec", "-ok", "-fprint", "-delete", "-fls", "-files0-from"];

/// Whether it is one of them.
fn is_action(arg: &str) -> bool {
    ACTIONS.iter().any(|it| arg.starts_with(it))
}

/// `-s`, or a time in place of a format.
fn sets_date(arg: &str) -> bool {
    let is_time = !arg.is_empty() && arg.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    is_time || is_long(arg, "--set")
}
