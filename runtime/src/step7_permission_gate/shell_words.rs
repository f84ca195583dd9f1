//! Programs that the gate knows something about; data.
//!
//! From cases A3 to A7.

/// Programs that run another command given as arguments.
pub(super) const WRAPPERS: &[&str] = &[
    "timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "xargs", "sudo", "doas",
    "env", "watch", "setsid", "ionice", "flock", "chrt", "taskset", "unshare", "nsenter", "chroot",
    "strace", "ltrace", "script", "parallel", "exec", "su", "runuser", "busybox", "npx", "direnv",
    "devbox", "mise", "coproc", "noglob", "docker", "podman", "ssh",
];

/// Programs that run text given as argument.
pub(super) const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "eval",
    "trap",
    "source",
    ".",
    "mapfile",
    "readarray",
];

/// Words of the grammar behind which a command may stand.
pub(super) const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "for", "in", "case", "select", "!",
    "function",
];

/// Variables that an allow rule sees past.
pub(super) const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_COLLATE",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "NODE_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CI",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
];

/// Programs whose operands are files that they read.
pub(super) const FILE_READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "wc",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "find",
    "stat",
    "du",
    "file",
    "diff",
    "cmp",
    "sort",
    "uniq",
    "cut",
    "paste",
    "nl",
    "od",
    "hexdump",
    "strings",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "tree",
    "realpath",
    "readlink",
    "comm",
    "rev",
    "tac",
    "column",
    "sed",
    "awk",
    "ls",
    "less",
    "more",
    "xxd",
    "base64",
    "source",
    ".",
];

/// Programs whose operands are files that they write.
pub(super) const FILE_WRITERS: &[&str] = &[
    "cp", "mv", "ln", "install", "rm", "rmdir", "mkdir", "touch", "truncate", "chmod", "chown",
    "tee", "dd", "sed",
];

/// Arguments that a wildcard rule does not cover, by program. `-x` means that letter in any
/// cluster, `--long` any abbreviation of it, `word*` any word that begins so.
pub(super) const ESCAPES: &[(&str, &[&str])] = &[
    ("find", &["-exec*", "-ok*", "-delete", "-fprint*", "-fls"]),
    (
        "git",
        &[
            "-c",
            "-u",
            "-O",
            "-x",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--output",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "--exec",
            "bisect",
            "submodule",
            "filter-branch",
            "-C",
            "--git-dir",
            "--work-tree",
        ],
    ),
    ("sed", &["*"]),
    ("awk", &["*"]),
    ("gawk", &["*"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("man", &["-P", "-H", "--pager", "--html"]),
    ("sort", &["-o", "--output", "--compress-program", "--files0-from"]),
    ("uniq", &["*"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("split", &["--filter"]),
    ("file", &["-C", "-m", "-f", "--magic-file", "--files-from", "--compile"]),
    ("date", &["-s", "--set"]),
    ("tree", &["-o"]),
    ("xxd", &["-r"]),
    ("printf", &["-v"]),
    ("test", &["-v"]),
];
