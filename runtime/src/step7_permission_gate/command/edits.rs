//! Files that a command may change unasked in the mode `acceptEdits` (cases A8).

use super::{
    CommandContext, CommandPart, escapes,
    files::changes,
    named::NamedFile,
    options::{Table, is_long},
    read_only::has_harmless_assignments,
    writers::edits_in_place,
};
use crate::step7_permission_gate::{protected::is_protected, shell::word::Word};

/// Options that are known to change no other file, for each command. Source: GNU coreutils 9.1; sed 4.9.
const OPTIONS: [Table; 7] = [
    Table { name: "mkdir", short: "pv", valued: "m", long: &["--parents", "--verbose", "--mode"] },
    Table {
        name: "rmdir",
        short: "pv",
        valued: "",
        long: &["--parents", "--verbose", "--ignore-fail-on-non-empty"],
    },
    Table {
        name: "touch",
        short: "acmh",
        valued: "dt",
        long: &["--no-create", "--date", "--time", "--no-dereference"],
    },
    Table {
        name: "rm",
        short: "firRdvI",
        valued: "",
        long: &[
            "--force",
            "--recursive",
            "--dir",
            "--verbose",
            "--interactive",
            "--one-file-system",
            "--preserve-root",
        ],
    },
    Table {
        name: "mv",
        short: "finuvbTt",
        valued: "tS",
        long: &[
            "--force",
            "--interactive",
            "--no-clobber",
            "--update",
            "--verbose",
            "--backup",
            "--target-directory",
            "--no-target-directory",
            "--suffix",
        ],
    },
    Table {
        name: "cp",
        short: "afinuvbrRpdTtPxl",
        valued: "tS",
        long: &[
            "--archive",
            "--force",
            "--interactive",
            "--no-clobber",
            "--update",
            "--verbose",
            "--backup",
            "--recursive",
            "--preserve",
            "--target-directory",
            "--no-target-directory",
            "--parents",
            "--no-dereference",
            "--link",
            "--reflink",
            "--suffix",
        ],
    },
    Table {
        name: "sed",
        short: "inEersuzl",
        valued: "iel",
        long: &[
            "--in-place",
            "--quiet",
            "--silent",
            "--regexp-extended",
            "--expression",
            "--separate",
            "--unbuffered",
            "--null-data",
            "--posix",
        ],
    },
];

/// Returns whether a part changes known files of the workspace and nothing else.
pub(in super::super) fn is_accepted(part: &CommandPart, around: &CommandContext) -> bool {
    let name = part.name();
    let Some(table) = OPTIONS.iter().find(|it| it.name == name) else { return false };
    let args = part.args();
    let is_fine = part.fault.is_none() && !part.is_fed && has_harmless_assignments(part);
    if !is_fine || !args.iter().all(|it| is_known_option(table, it)) {
        return false;
    }
    if name == "sed" {
        let edits = args.iter().any(|it| edits_in_place(&it.text));
        if !edits || !escapes::runs_nothing(args) {
            return false;
        }
    }
    let found = changes(part, around);
    let mut all = found.altered().chain(&found.reads);
    !found.is_critical && all.all(|it| is_editable(it, part, around))
}

/// Whether a file is known, in the workspace and not protected.
fn is_editable(file: &NamedFile, part: &CommandPart, around: &CommandContext) -> bool {
    file.is_inside(&part.dirs, around) && !file.paths.iter().any(|it| is_protected(it))
}

fn is_known_option(table: &Table, word: &Word) -> bool {
    let text = word.text.as_str();
    if !text.starts_with('-') || text == "-" || text == "--" {
        return true;
    }
    if text.starts_with("--") {
        return table.long.iter().any(|it| is_long(text, it));
    }
    for c in text[1..].chars() {
        if table.valued.contains(c) {
            return true;
        }
        if !table.short.contains(c) {
            return false;
        }
    }
    true
}

/// Returns whether a file is a device that keeps nothing, so that a write to it is always accepted.
pub(in super::super) fn is_device(file: &NamedFile) -> bool {
    file.paths.iter().all(|it| matches!(&**it, "/dev/null" | "/dev/stdout" | "/dev/stderr"))
        && !file.paths.is_empty()
}

/// Returns whether bash makes a connection to another machine of a redirection from or to this path.
pub(in super::super) fn opens_connection(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}
