//! Calls that only read, of programs that do more than that otherwise; data.
//!
//! They count for the class of a command alone: the read-only set that needs no rule is smaller. Sources: the manuals of the
//! programs, as of 2025.

use super::cloud;
use crate::step7_permission_gate::command::options::has_letter;

/// Programs that read whatever they are given.
const PROGRAMS: &[&str] = &[
    "netstat",
    "iostat",
    "mpstat",
    "lspci",
    "lsusb",
    "lsmod",
    "lsattr",
    "getfacl",
    "namei",
    "pathchk",
    "sensors",
    "findmnt",
    "getent",
    "fc-list",
    "tput",
    "clear",
    "zstdcat",
    "lzcat",
    "zipinfo",
    "delta",
    "help",
    "zless",
    "zmore",
    "zdiff",
    "zcmp",
    "bzgrep",
    "xzgrep",
    "pidof",
    "pmap",
    "pwdx",
    "lslogins",
    "logname",
    "diffstat",
    "c++filt",
    "expand",
    "unexpand",
    "apt-cache",
];

/// Programs, and the operands with which their calls begin that read.
const CALLS: &[(&[&str], &[&[&str]])] = &[
    (
        &["docker", "podman"],
        &[
            &["compose", "ps"],
            &["compose", "logs"],
            &["compose", "config"],
            &["compose", "ls"],
            &["compose", "images"],
            &["compose", "top"],
            &["volume", "ls"],
            &["volume", "inspect"],
            &["network", "ls"],
            &["network", "inspect"],
            &["container", "ls"],
            &["container", "logs"],
            &["container", "inspect"],
            &["image", "ls"],
            &["image", "inspect"],
            &["image", "history"],
            &["system", "df"],
            &["system", "info"],
            &["context", "ls"],
        ],
    ),
    (&["docker-compose"], &[&["ps"], &["logs"], &["config"], &["images"], &["top"]]),
    (
        &["kubectl"],
        &[
            &["config", "get-contexts"],
            &["config", "current-context"],
            &["config", "view"],
            &["config", "get-clusters"],
            &["rollout", "status"],
            &["rollout", "history"],
            &["auth", "can-i"],
        ],
    ),
    (
        &["npm", "pnpm", "yarn"],
        &[&["config", "get"], &["config", "list"], &["config", "ls"], &["pkg", "get"]],
    ),
    (
        &["terraform", "tofu"],
        &[&["state", "list"], &["state", "show"], &["workspace", "list"], &["workspace", "show"]],
    ),
    (&["rustup"], &[&["toolchain", "list"], &["target", "list"], &["component", "list"]]),
    (&["systemctl"], &[&["list-unit-files"], &["list-timers"], &["is-failed"]]),
    (&["loginctl"], &[&["list-sessions"], &["list-users"], &["show-session"]]),
    (&["timedatectl"], &[&["status"], &["show"], &["list-timezones"]]),
    (&["hostnamectl"], &[&["status"]]),
    (&["apt"], &[&["list"], &["show"], &["search"], &["policy"]]),
    (&["brew"], &[&["list"], &["ls"], &["config"], &["deps"]]),
    (&["snap", "flatpak"], &[&["list"]]),
    (&["7z", "7za", "7zz"], &[&["l"], &["t"]]),
];

/// Options with which such a call writes, or asks another machine.
const OTHERWISE: &[&str] = &[
    "-o",
    "--output",
    "-H",
    "--host",
    "--context",
    "-c",
    "--kubeconfig",
    "--kube-context",
    "--lock-image-digests",
];

/// Programs that read where nothing follows their name.
const ALONE: &[&str] = &[
    "mount",
    "ifconfig",
    "alias",
    "export",
    "timedatectl",
    "hostnamectl",
    "loginctl",
    "route",
    "stty",
];

/// Programs, and the only options with which they read.
const OPTIONS: &[(&str, &[&str])] = &[
    ("mount", &["-l"]),
    ("ifconfig", &["-a"]),
    ("alias", &["-p"]),
    ("export", &["-p"]),
    ("route", &["-n"]),
    ("stty", &["-a", "--all", "size", "-g"]),
    ("crontab", &["-l"]),
    ("cargo", &["--list"]),
    ("nginx", &["-v", "-V"]),
    ("perl", &["-v", "-V"]),
    ("openssl", &["version"]),
    ("sqlite3", &["--version", "-version"]),
    ("hyperfine", &["--version", "--help"]),
];

/// Returns whether the call of a program only reads. `args` are the words after its name.
pub(super) fn reads(name: &str, args: &[&str]) -> bool {
    if PROGRAMS.contains(&name) || args.is_empty() && ALONE.contains(&name) {
        return true;
    }
    if let [arg] = args
        && OPTIONS.iter().any(|it| it.0 == name && it.1.contains(arg))
    {
        return true;
    }
    let words: Vec<&str> = args.iter().filter(|it| !it.starts_with('-')).copied().collect();
    let writes =
        args.iter().any(|it| OTHERWISE.contains(&it.split_once('=').map_or(*it, |it| it.0)));
    let mut calls = CALLS.iter().filter(|it| it.0.contains(&name)).flat_map(|it| it.1);
    calls.any(|it| words.starts_with(it)) && !writes
        || cloud::reads(name, args)
        || reads_by_options(name, args, &words)
}

/// The same for programs whose options decide.
fn reads_by_options(name: &str, args: &[&str], words: &[&str]) -> bool {
    let has = |letters: &str| letters.chars().any(|c| args.iter().any(|it| has_letter(it, c, "")));
    let begins = |options: &[&str]| {
        args.iter().any(|it| options.iter().any(|option| it.starts_with(option)))
    };
    match name {
        "ip" => {
            let shows = |it: &&str| matches!(*it, "show" | "list" | "ls" | "get");
            let is_known = ["a", "addr", "address", "r", "route", "l", "link", "n", "neigh"];
            words.first().is_some_and(|it| is_known.contains(it))
                && words.get(1).is_none_or(shows)
                && !has("b")
        }
        "ss" => !has("KD") && !begins(&["--kill", "--diag"]),
        "dmesg" => {
            !has("cCDEn")
                && !begins(&["--clear", "--read-clear", "--console", "--cl", "--re", "--co"])
        }
        "journalctl" => {
            !begins(&["--vac", "--rot", "--fl", "--sy", "--rel", "--sm", "--set", "--upd", "--cur"])
        }
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" => {
            has("clt") || begins(&["--list", "--test", "--stdout"])
        }
        "zstd" | "unzstd" => (has("clt") || begins(&["--list", "--stdout"])) && !has("o"),
        "history" => !has("acdrwps"),
        "rustc" => begins(&["--print"]) && !has("o") && !args.iter().any(|it| it.ends_with(".rs")),
        "kill" => matches!(args.first(), Some(&"-l" | &"-L" | &"-0" | &"--list" | &"--table")),
        "service" => {
            matches!(words, [_, "status"] | []) && (args.len() == 2 || begins(&["--status-all"]))
        }
        "iptables" | "ip6tables" => {
            has("LS") && !has("ADIRFXPNEZ") && !args.iter().any(|it| it.starts_with("--"))
        }
        "ufw" => matches!(args, ["status", ..]),
        "sysctl" => !has("wpf") && !begins(&["--"]) && !args.iter().any(|it| it.contains('=')),
        "unzip" => args.first().is_some_and(|_| has("lptvz")) && !has("d"),
        "jar" => archive_key(args, 't', "cxui"),
        "ar" => archive_key(args, 't', "cxurdqms"),
        "cpio" => {
            (has("t") || begins(&["--list"]))
                && !has("op")
                && !begins(&["--file", "--create", "--pass"])
        }
        "rpm" => args.first().is_some_and(|it| it.starts_with("-q")),
        "pacman" => args.first().is_some_and(|it| it.starts_with("-Q")),
        "dpkg" => args.first().is_some_and(|it| {
            matches!(*it, "-l" | "-L" | "-s" | "-S" | "--list" | "--get-selections")
        }),
        _ => false,
    }
}

/// Whether the first word of an archiver holds the letter that lists, and none that does more.
fn archive_key(args: &[&str], lists: char, more: &str) -> bool {
    args.first().is_some_and(|it| {
        !it.starts_with("--") && it.contains(lists) && !it.contains(|c| more.contains(c))
    })
}
