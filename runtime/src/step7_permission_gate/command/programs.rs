//! Names of programs that the gate knows something about; data. From cases A3, A4 and A7.

use super::names::Names;

/// Programs that read shell scripts.
pub(crate) static SHELLS: Names = Names::of(&[
    "sh", "bash", "rbash", "dash", "posh", "ash", "zsh", "ksh", "ksh93", "rksh", "mksh", "lksh",
    "oksh", "loksh", "pdksh", "yash", "bosh", "osh", "fish",
]);

/// Builtins that run a text or a file, or change what names mean.
pub(crate) static RUNS_TEXT: Names = Names::of(&[
    "eval", "trap", "source", ".", "alias", "enable", "hash", "bind", "complete", "compgen",
    "shopt",
]);

/// Variables that change no more than how things look.
pub(crate) static HARMLESS: Names = Names::of(&[
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
]);

/// Names in capitals that scripts use for what they go through.
pub(crate) static ORDINARY: Names = Names::of(&[
    "LINE", "REPLY", "FILE", "DIR", "NAME", "OPTARG", "OPTIND", "OPT", "KEY", "VALUE", "COUNT",
    "INDEX", "NUM", "TOTAL", "RANDOM", "SECONDS", "LINENO",
]);

/// Programs of the read-only set that open the files that their operands name.
pub(crate) static READERS: Names = Names::of(&[
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
]);

/// Readers that show names and sizes, and nothing of what is in a directory's files.
pub(crate) static LISTERS: Names =
    Names::of(&["ls", "find", "stat", "du", "file", "tree", "realpath", "readlink"]);

/// Programs of the read-only set that open no operand.
pub(crate) static PRINTERS: Names = Names::of(&[
    "tr", "test", "[", "[[", "echo", "printf", "pwd", "true", "false", ":", "whoami", "id",
    "uname", "date", "seq", "sleep", "basename", "dirname", "which", "type", "read", "wait",
    "break", "continue", "shift", "hostname",
]);

/// Programs that are not in the set, but whose operands are files that they read.
pub(crate) static MORE_READERS: Names = Names::of(&[
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
]);

/// Programs whose operands are files that they change.
pub(crate) static WRITERS: Names = Names::of(&[
    "cp", "mv", "ln", "install", "rm", "rmdir", "mkdir", "touch", "truncate", "chmod", "chown",
    "chgrp", "tee", "dd", "sed", "unlink", "shred",
]);

/// Returns whether a variable may be set without a question, other than by an assignment.
pub(crate) fn is_ordinary(name: &str) -> bool {
    name.bytes().any(|it| it.is_ascii_lowercase())
        || name.len() <= 1
        || HARMLESS.contains(name)
        || ORDINARY.contains(name)
}
