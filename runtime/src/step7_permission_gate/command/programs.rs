//! Names of programs that the gate knows something about; data. From cases A3, A4 and A7.

use super::names::{Glance, Names};

/// Programs that run another one given as arguments, and change something about it.
pub(crate) static OPAQUE: Names = Names::of(&[
    "sudo", "doas", "env", "xargs", "watch", "setsid", "ionice", "flock", "chrt", "taskset",
    "unshare", "nsenter", "chroot", "strace", "ltrace", "script", "parallel", "exec", "su",
    "runuser", "busybox",
]);

/// More of them, which only deny and ask rules look through.
pub(crate) static LOOKED_THROUGH: Names = Names::of(&[
    "abduco",
    "alacritty",
    "asdf",
    "aws-vault",
    "bunx",
    "bwrap",
    "caffeinate",
    "capsh",
    "catatonit",
    "catchsegv",
    "ccache",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "coverage",
    "cross-env",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "devbox",
    "direnv",
    "distcc",
    "doppler",
    "dotenv",
    "dtach",
    "dumb-init",
    "eatmydata",
    "entr",
    "envdir",
    "envuidgid",
    "execlineb",
    "fakechroot",
    "fakeroot",
    "faketime",
    "firejail",
    "flatpak",
    "fnm",
    "foot",
    "foreman",
    "gdbserver",
    "gnome-terminal",
    "gosu",
    "guix",
    "heaptrack",
    "honcho",
    "hyperfine",
    "i386",
    "kcov",
    "kitty",
    "konsole",
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux.so.2",
    "ld-musl-aarch64.so.1",
    "ld-musl-x86_64.so.1",
    "ld.so",
    "lerna",
    "linux32",
    "linux64",
    "logsave",
    "memusage",
    "mise",
    "multitime",
    "newgrp",
    "nocorrect",
    "nodemon",
    "noglob",
    "npx",
    "numactl",
    "nvm",
    "op",
    "perf",
    "pipx",
    "pixi",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "qemu-aarch64",
    "qemu-x86_64",
    "rlwrap",
    "rr",
    "run-one",
    "run-parts",
    "runc",
    "runcon",
    "s6-envdir",
    "s6-setlock",
    "s6-setuidgid",
    "s6-softlimit",
    "samply",
    "sccache",
    "setarch",
    "setlock",
    "setpriv",
    "setuidgid",
    "sg",
    "softlimit",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "su-exec",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-run",
    "tini",
    "torify",
    "torsocks",
    "toybox",
    "tsocks",
    "uftrace",
    "unbuffer",
    "urxvt",
    "uvx",
    "valgrind",
    "volta",
    "watchexec",
    "wine",
    "winpty",
    "x86_64",
    "xfce4-terminal",
    "xterm",
    "xvfb-run",
]);

/// Programs that run another one after a subcommand. Sources: their manuals, as of 2025.
pub(crate) const WITH_SUBCOMMAND: &[(&str, &str)] = &[
    ("buildah", "run"),
    ("bundle", "exec"),
    ("cabal", "exec"),
    ("cmake", "-E"),
    ("conda", "run"),
    ("distrobox", "enter"),
    ("docker", "exec"),
    ("docker", "run"),
    ("docker-compose", "exec"),
    ("docker-compose", "run"),
    ("dune", "exec"),
    ("goenv", "exec"),
    ("hatch", "run"),
    ("incus", "exec"),
    ("ip", "exec"),
    ("jenv", "exec"),
    ("kubectl", "exec"),
    ("lima", "shell"),
    ("limactl", "shell"),
    ("lxc", "exec"),
    ("mamba", "run"),
    ("micromamba", "run"),
    ("multipass", "exec"),
    ("nerdctl", "exec"),
    ("nerdctl", "run"),
    ("nix", "--command"),
    ("nix", "-c"),
    ("nodenv", "exec"),
    ("npm", "exec"),
    ("npm", "x"),
    ("opam", "exec"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("plenv", "exec"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("podman", "exec"),
    ("podman", "run"),
    ("podman", "unshare"),
    ("poetry", "run"),
    ("pyenv", "exec"),
    ("rbenv", "exec"),
    ("rustup", "run"),
    ("rvm", "do"),
    ("rye", "run"),
    ("stack", "exec"),
    ("toolbox", "run"),
    ("uv", "run"),
    ("uv", "tool"),
    ("wezterm", "start"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
    ("zellij", "run"),
];

/// The programs of [`WITH_SUBCOMMAND`], at a glance.
static HAVE_SUBCOMMAND: Glance = have_subcommand();

const fn have_subcommand() -> Glance {
    let mut glance = Glance::new();
    let mut i = 0;
    while i < WITH_SUBCOMMAND.len() {
        glance = glance.with(&[WITH_SUBCOMMAND[i].0]);
        i += 1;
    }
    glance
}

/// Whether one of these words makes a program run another one.
pub(crate) fn has_runner<'a>(name: &str, words: impl Iterator<Item = &'a str> + Clone) -> bool {
    HAVE_SUBCOMMAND.may_hold(name)
        && WITH_SUBCOMMAND.iter().any(|it| it.0 == name && words.clone().any(|word| word == it.1))
}

/// Programs that read shell scripts.
pub(crate) static SHELLS: Names =
    Names::of(&["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"]);

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

/// Whether a variable may be set without anybody being asked, other than by an assignment.
pub(crate) fn is_ordinary(name: &str) -> bool {
    name.bytes().any(|it| it.is_ascii_lowercase())
        || name.len() <= 1
        || HARMLESS.contains(name)
        || ORDINARY.contains(name)
}
