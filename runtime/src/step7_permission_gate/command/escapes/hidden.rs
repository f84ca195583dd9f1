//! Options of the tables that an expansion or a pattern completes: `--fil${x}ter`, `-del*`.
//!
//! What is written in front of the first such piece decides: once it is no beginning of an option that escapes, or
//! the name of a long one is over, the rest does not matter.

use super::{TABLES, git, is_action};
use crate::step7_permission_gate::{
    command::{
        composed::literal_start,
        names::Names,
        options::{Table, operands},
    },
    shell::word::{PieceKind, Word},
};

/// Programs of the tables whose arguments are seldom what an expansion begins with. One that does may be an option.
static SELDOM_EXPANDED: Names = Names::of(&[
    "rsync",
    "rg",
    "split",
    "man",
    "tree",
    "xxd",
    "zip",
    "cpio",
    "bsdtar",
    "fd",
    "fdfind",
    "fzf",
    "tcpdump",
    "ssh-keygen",
]);

/// Returns whether an argument may come to be one that escapes.
pub(super) fn may_become(name: &str, args: &[Word]) -> bool {
    let mut options = args.iter().take_while(|it| it.text != "--").filter(|it| !it.is_literal());
    let begins_open = |it: &Word| {
        it.spans.first().is_some_and(|it| it.start == 0 && it.piece != PieceKind::Quoted)
    };
    options.any(|it| {
        let start = literal_start(it);
        begins_open(it) && SELDOM_EXPANDED.contains(name)
            || start.starts_with('-')
                && !(start.starts_with("--") && start.contains('='))
                && may_begin(name, args, start)
    })
}

/// Whether an option that escapes may begin so.
fn may_begin(name: &str, args: &[Word], start: &str) -> bool {
    let in_table = |it: &Table| {
        let is_cluster = !start.starts_with("--");
        let has_value = || start.chars().skip(1).any(|c| it.valued.contains(c));
        it.long.iter().any(|it| it.starts_with(start))
            || is_cluster && !it.short.is_empty() && !has_value()
    };
    match name {
        "find" => is_action(start) || super::ACTIONS.iter().any(|it| it.starts_with(start)),
        "git" => git::may_begin(args, start),
        // Their own readers know all options that are harmless.
        "sed" | "awk" | "gawk" | "mawk" | "nawk" => false,
        "wait" => start == "-",
        _ => TABLES.iter().any(|it| it.name == name && in_table(it)),
    }
}

/// Returns whether an operand may come to be several.
pub(super) fn may_be_several(args: &[Word]) -> bool {
    let splits =
        |it: &Word| it.spans.iter().any(|it| it.piece == PieceKind::Open { quoted: false });
    operands(args).any(splits)
}
