//! Options that run another program or write, one table for each program.

use crate::step7_permission_gate::command::options::Table;

/// The tables. Sources: the manual of each program, in the version named.
pub(in super::super) const TABLES: &[Table] = &[
    // GNU tar 1.34, "Invoking tar".
    Table {
        name: "tar",
        short: "IF",
        valued: "fCTXbgHKLNV",
        long: &[
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    },
    // rsync 3.2, rsync(1).
    Table { name: "rsync", short: "e", valued: "fTBM", long: &["--rsh", "--rsync-path"] },
    // man-db 2.11, man(1).
    Table { name: "man", short: "PH", valued: "CRLmMSserEpt", long: &["--pager", "--html"] },
    // GNU coreutils 9.1.
    Table {
        name: "sort",
        short: "o",
        valued: "kStT",
        long: &["--output", "--compress-program", "--files0-from"],
    },
    Table { name: "split", short: "", valued: "", long: &["--filter"] },
    Table { name: "date", short: "s", valued: "dfrI", long: &["--set"] },
    Table { name: "wc", short: "", valued: "", long: &["--files0-from"] },
    Table { name: "du", short: "", valued: "", long: &["--files0-from"] },
    // ripgrep 13, rg(1).
    Table { name: "rg", short: "", valued: "", long: &["--pre", "--hostname-bin"] },
    // file 5.44, file(1).
    Table {
        name: "file",
        short: "Cmf",
        valued: "eFP",
        long: &["--compile", "--magic-file", "--files-from"],
    },
    // tree 2.1, tree(1): long options may not be cut.
    Table { name: "tree", short: "oR", valued: "LPIH", long: &["--output"] },
    // vim's xxd(1).
    Table { name: "xxd", short: "r", valued: "colsgn", long: &["-revert"] },
];
