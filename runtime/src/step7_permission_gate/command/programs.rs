//! Names of programs that the gate knows something about; data. From cases A3, A4 and A7.

/// Programs that run another one given as arguments, and change something about it.
pub(crate) const OPAQUE: &[&str] = &[
    "sudo", "doas", "env", "xargs", "watch", "setsid", "ionice", "flock", "chrt", "taskset",
    "unshare", "nsenter", "chroot", "strace", "ltrace", "script", "parallel", "exec", "su",
    "runuser", "busybox",
];

/// More of them, which only deny and ask rules look through.
pub(crate) const LOOKED_THROUGH: &[&str] = &[
    "bunx",
    "bwrap",
    "caffeinate",
    "cgexec",
    "choom",
    "chronic",
    "cross-env",
    "dbus-run-session",
    "devbox",
    "direnv",
    "dotenv",
    "dumb-init",
    "entr",
    "fakeroot",
    "firejail",
    "gosu",
    "hyperfine",
    "ld.so",
    "linux32",
    "linux64",
    "mise",
    "nocorrect",
    "nodemon",
    "noglob",
    "npx",
    "numactl",
    "perf",
    "pipx",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "rlwrap",
    "rr",
    "setarch",
    "setpriv",
    "sshpass",
    "su-exec",
    "systemd-run",
    "tini",
    "torsocks",
    "toybox",
    "unbuffer",
    "uvx",
    "valgrind",
    "watchexec",
    "xvfb-run",
];

/// Programs that run another one after a subcommand. Sources: their manuals, as of 2025.
pub(crate) const WITH_SUBCOMMAND: &[(&str, &str)] = &[
    ("bundle", "exec"),
    ("cabal", "exec"),
    ("conda", "run"),
    ("docker", "exec"),
    ("docker", "run"),
    ("dune", "exec"),
    ("hatch", "run"),
    ("kubectl", "exec"),
    ("mamba", "run"),
    ("micromamba", "run"),
    ("nix", "--command"),
    ("nix", "-c"),
    ("npm", "exec"),
    ("npm", "x"),
    ("opam", "exec"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("podman", "exec"),
    ("podman", "run"),
    ("poetry", "run"),
    ("pyenv", "exec"),
    ("rbenv", "exec"),
    ("rustup", "run"),
    ("rye", "run"),
    ("stack", "exec"),
    ("uv", "run"),
    ("uv", "tool"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
];

/// Programs that read shell scripts.
pub(crate) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"];

/// Builtins that run a text or a file, or change what names mean.
pub(crate) const RUNS_TEXT: &[&str] = &[
    "eval", "trap", "source", ".", "alias", "enable", "hash", "bind", "complete", "compgen",
    "shopt",
];

/// Variables that change no more than how things look.
pub(crate) const HARMLESS: &[&str] = &[
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

/// Names in capitals that scripts use for what they go through.
pub(crate) const ORDINARY: &[&str] = &[
    "LINE", "REPLY", "FILE", "DIR", "NAME", "OPTARG", "OPTIND", "OPT", "KEY", "VALUE", "COUNT",
    "INDEX", "NUM", "TOTAL", "RANDOM", "SECONDS", "LINENO",
];

/// Programs of the read-only set that open the files that their operands name.
pub(crate) const READERS: &[&str] = &[
    "ls",
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
];

/// Readers that show names and sizes, and nothing of what is in a directory's files.
pub(crate) const LISTERS: &[&str] =
    &["ls", "find", "stat", "du", "file", "tree", "realpath", "readlink"];

/// Programs of the read-only set that open no operand.
pub(crate) const PRINTERS: &[&str] = &[
    "tr", "test", "[", "[[", "echo", "printf", "pwd", "true", "false", ":", "whoami", "id",
    "uname", "date", "seq", "sleep", "basename", "dirname", "which", "type", "read", "wait",
    "break", "continue", "shift", "hostname",
];

/// Programs that are not in the set, but whose operands are files that they read.
pub(crate) const MORE_READERS: &[&str] = &[
    "sed",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "less",
    "more",
    "most",
    "bat",
    "batcat",
    "xxd",
    "base64",
    "base32",
    "source",
    ".",
    "jq",
    "yq",
    "tar",
    "gzip",
    "gunzip",
    "zcat",
    "bzcat",
    "xzcat",
    "zgrep",
    "ag",
    "ack",
    "vim",
    "vi",
    "view",
    "nano",
    "emacs",
    "ed",
    "fold",
    "fmt",
    "pr",
    "join",
    "split",
    "csplit",
    "shuf",
    "sha512sum",
    "sha224sum",
    "sha384sum",
    "b2sum",
    "cksum",
    "sum",
    "iconv",
    "dos2unix",
    "open",
    "xdg-open",
    "scp",
    "rsync",
    "vimdiff",
    "sdiff",
    "diff3",
    "colordiff",
];

/// Programs whose operands are files that they change.
pub(crate) const WRITERS: &[&str] = &[
    "cp", "mv", "ln", "install", "rm", "rmdir", "mkdir", "touch", "truncate", "chmod", "chown",
    "chgrp", "tee", "dd", "sed", "unlink", "shred",
];

/// Whether a variable may be set without anybody being asked, other than by an assignment.
pub(crate) fn is_ordinary(name: &str) -> bool {
    name.contains(|c: char| c.is_ascii_lowercase())
        || name.len() <= 1
        || HARMLESS.contains(&name)
        || ORDINARY.contains(&name)
}
