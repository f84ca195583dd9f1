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
    Table {
        name: "rsync",
        short: "e",
        valued: "fTBM",
        long: &["--rsh", "--rsync-path", "--daemon"],
    },
    // man-db 2.11, man(1).
    Table {
        name: "man",
        short: "PHCX",
        valued: "RLmMSserEpt",
        long: &["--pager", "--html", "--config-file", "--gxditview"],
    },
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
    // tree 2.1, tree(1): long options may not be cut, and no letter takes the rest of its cluster.
    Table { name: "tree", short: "oR", valued: "", long: &["--output"] },
    // vim's xxd(1).
    Table { name: "xxd", short: "r", valued: "colsgn", long: &["-revert"] },
    // Info-ZIP 3.0, zip(1): `-T` runs what `-TT` names.
    Table { name: "zip", short: "T", valued: "btn", long: &["--unzip-command", "--test"] },
    // bsdtar 3.6, bsdtar(1).
    Table { name: "bsdtar", short: "I", valued: "fCTXbs", long: &["--use-compress-program"] },
    // GNU cpio 2.13, cpio(1).
    Table { name: "cpio", short: "F", valued: "CDEHIMOR", long: &["--rsh-command", "--file"] },
    // less 590, less(1): what follows a `+` is a command.
    Table {
        name: "less",
        short: "kOo",
        valued: "bhjpPtTxyz",
        long: &["--lesskey-file", "--lesskey-src", "--log-file", "--LOG-FILE"],
    },
    // fd 8.6, fd(1).
    Table { name: "fd", short: "xX", valued: "dEeStcoj", long: &["--exec", "--exec-batch"] },
    Table { name: "fdfind", short: "xX", valued: "dEeStcoj", long: &["--exec", "--exec-batch"] },
    // fzf 0.38, fzf(1).
    Table { name: "fzf", short: "", valued: "", long: &["--preview", "--bind", "--listen"] },
    // bat 0.22, bat(1); delta 0.18; ack 3.6.
    Table { name: "bat", short: "", valued: "", long: &["--pager"] },
    Table { name: "delta", short: "", valued: "", long: &["--pager"] },
    Table { name: "ack", short: "", valued: "", long: &["--pager", "--ackrc", "--output"] },
    Table { name: "ag", short: "", valued: "", long: &["--pager"] },
    // GNU wget 1.21; its configuration names programs as well.
    Table {
        name: "wget",
        short: "e",
        valued: "aBDAIiloOPQRtTUwX",
        long: &["--execute", "--use-askpass", "--config"],
    },
    // curl 8.5, curl(1): a configuration may hold any option; an engine is a library.
    Table {
        name: "curl",
        short: "K",
        valued: "AbcCdDeEFhHmoPQrtTuUwxXyYz",
        long: &["--config", "--engine"],
    },
    // apt 2.6, apt.conf(5): hooks are programs.
    Table { name: "apt", short: "oc", valued: "tq", long: &["--option", "--config-file"] },
    Table { name: "apt-get", short: "oc", valued: "tq", long: &["--option", "--config-file"] },
    // Cargo 1.80: settings name compilers, wrappers and aliases. pip 23: another interpreter.
    Table { name: "cargo", short: "", valued: "", long: &["--config"] },
    Table { name: "pip", short: "", valued: "", long: &["--python"] },
    Table { name: "pip3", short: "", valued: "", long: &["--python"] },
    // npm 10, config(7): programs, options for programs, and more configuration.
    Table {
        name: "npm",
        short: "",
        valued: "",
        long: &[
            "--script-shell",
            "--node-options",
            "--git",
            "--editor",
            "--viewer",
            "--shell",
            "--userconfig",
            "--globalconfig",
        ],
    },
    // tcpdump 4.99, tcpdump(8): what it runs for each file.
    Table { name: "tcpdump", short: "z", valued: "BcCDEFGijMmrsTVwWyQ", long: &[] },
    // pandoc 2.17.
    Table {
        name: "pandoc",
        short: "FL",
        valued: "cDfHAoMTtVB",
        long: &["--filter", "--lua-filter", "--pdf-engine", "--defaults"],
    },
    // helm 3; kubectl 1.30: a configuration names programs that log in.
    Table { name: "helm", short: "", valued: "", long: &["--post-renderer", "--kubeconfig"] },
    Table { name: "kubectl", short: "", valued: "", long: &["--kubeconfig"] },
    // mutt 2.2, s-nail 14.9: commands, and files of them.
    Table { name: "mutt", short: "eF", valued: "abcfHimQs", long: &[] },
    Table { name: "mail", short: "SX:", valued: "abcfqrsTu", long: &[] },
    Table { name: "mailx", short: "SX:", valued: "abcfqrsTu", long: &[] },
    // nmap 7.93.
    Table { name: "nmap", short: "", valued: "", long: &["--script", "--datadir"] },
    // GNU coreutils 9.1, install(1); dpkg 1.21, dpkg(1); rpm 4.18, rpm(8).
    Table { name: "install", short: "", valued: "", long: &["--strip-program"] },
    Table { name: "dpkg", short: "", valued: "", long: &["--pre-invoke", "--post-invoke"] },
    Table {
        name: "rpm",
        short: "ED",
        valued: "",
        long: &["--eval", "--pipe", "--define", "--load", "--macros", "--rcfile"],
    },
    // GnuPG 2.2, gpg(1).
    Table {
        name: "gpg",
        short: "",
        valued: "",
        long: &[
            "--agent-program",
            "--dirmngr-program",
            "--pinentry-program",
            "--photo-viewer",
            "--exec-path",
            "--options",
            "--homedir",
        ],
    },
    // Bazel 7, command-line reference.
    Table {
        name: "bazel",
        short: "",
        valued: "",
        long: &["--run_under", "--bazelrc", "--shell_executable"],
    },
    // OpenSSH 9.2: libraries of tokens.
    Table { name: "ssh-add", short: "s", valued: "EHhSt", long: &[] },
    Table { name: "ssh-keygen", short: "Dw", valued: "aCbEfFImnNOPrRsStVYz", long: &[] },
];
