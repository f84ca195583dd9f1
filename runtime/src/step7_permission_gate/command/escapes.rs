//! Arguments with which a harmless program runs others or writes: a rule with a `*` does not cover
//! them, and neither does the read-only set (cases A6).

mod awk;
mod git;
mod sed;
mod tables;

pub(super) use tables::TABLES;

pub(super) use git::{
    GitCall, call, escapes as git_escapes, reads_config, runs_unseen as git_runs_unseen,
};
pub(super) use sed::scripts_are_harmless as runs_nothing;

use super::{Part, options::is_long, part::base};
use crate::step7_permission_gate::shell::word::Word;

/// Whether a part has such an argument.
pub(crate) fn escapes(part: &Part) -> bool {
    let name = base(part.name());
    let args = part.args();
    if part.is_fed && (TABLES.iter().any(|it| it.name == name) || SPECIAL.contains(&name)) {
        // Nobody knows what comes from the input.
        return true;
    }
    holds(name, args) || is_escape(name, args)
}

/// Whether one of the arguments is in the table of the program.
pub(super) fn holds(name: &str, args: &[Word]) -> bool {
    TABLES.iter().any(|it| it.name == name && it.holds(args))
}

/// Programs whose arguments are looked at more closely than a table can say.
pub(super) const SPECIAL: [&str; 9] =
    ["find", "git", "sed", "awk", "gawk", "mawk", "nawk", "tar", "uniq"];

/// Whether it has an argument that a table cannot say.
pub(super) fn is_escape(name: &str, args: &[Word]) -> bool {
    match name {
        // Sources: the manuals of GNU findutils 4.9 and GNU tar 1.34.
        "find" => args.iter().any(|it| may_be_option(it) || is_action(&it.text)),
        "sort" => args.iter().any(may_be_option),
        "tar" => {
            let bundle = args.first().filter(|it| !it.text.starts_with('-'));
            bundle.is_some_and(|it| it.text.contains(['I', 'F'])) || args.iter().any(may_be_option)
        }
        "git" => git::escapes(args),
        "sed" => !sed::is_harmless(args),
        "awk" | "gawk" | "mawk" | "nawk" => !awk::is_harmless(args),
        // The second file is the one that is written.
        "uniq" => super::options::operands(args).count() > 1,
        "date" => args.iter().any(|it| sets_date(&it.text)),
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

/// Whether an argument may become an option before the program sees it: a file may be called so.
fn may_be_option(arg: &Word) -> bool {
    let begins_open = arg.spans.first().is_some_and(|it| {
        it.start == 0 && it.piece != crate::step7_permission_gate::shell::word::Piece::Quoted
    });
    let is_plain = arg.spans.first().is_none_or(|it| it.start > 0);
    begins_open || is_plain && arg.text.starts_with(['*', '?', '['])
}

/// Actions of `find` that run something or write.
fn is_action(arg: &str) -> bool {
    let acts = ["-exec", "-ok", "-fprint", "-delete", "-fls", "-files0-from"];
    acts.iter().any(|it| arg.starts_with(it))
}

/// `-s`, or a time in place of a format.
fn sets_date(arg: &str) -> bool {
    let is_time = !arg.is_empty() && arg.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    is_time || is_long(arg, "--set")
}
