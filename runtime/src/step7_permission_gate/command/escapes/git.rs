//! What git can be made to run.
//!
//! Sources: git(1) and the manual pages of its commands, git 2.39; gitremote-helpers(7) for `ext::`.

use crate::step7_permission_gate::{command::options::is_long, shell::word::Word};

/// Global options with a value in the next word.
const VALUED: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--super-prefix",
    "--attr-source",
];

/// Options that run a program or write a file, in every command.
const ANYWHERE: [&str; 9] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--extcmd",
    "--exec",
];

/// Commands that run what they are given, or what is configured.
const RUNNERS: [&str; 7] =
    ["filter-branch", "difftool", "mergetool", "daemon", "instaweb", "shell", "hook"];

/// Pieces of configuration keys whose values are run, or point to more configuration.
const RUN_KEYS: [&str; 26] = [
    "alias.",
    "pager",
    "editor",
    "sshcommand",
    "hookspath",
    "fsmonitor",
    "textconv",
    ".cmd",
    ".path",
    "command",
    "external",
    "helper",
    "program",
    "filter.",
    "driver",
    "include",
    "templatedir",
    "uploadpack",
    "receivepack",
    "askpass",
    "gitproxy",
    "proxy",
    ".vcs",
    "worktree",
    "insteadof",
    "tool",
];

/// A call of git.
#[derive(Debug)]
pub(in super::super) struct GitCall<'a> {
    /// Words in front of the command.
    pub(in super::super) global: &'a [Word],
    /// The command; empty when there is none.
    pub(in super::super) command: &'a str,
    /// Words that follow the command.
    pub(in super::super) args: &'a [Word],
}

/// Takes the words after `git` apart.
pub(in super::super) fn call(args: &[Word]) -> GitCall<'_> {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            return GitCall { global: &args[..at], command: text, args: &args[at + 1..] };
        }
        at += 1 + usize::from(VALUED.contains(&text));
    }
    GitCall { global: args, command: "", args: &[] }
}

/// Whether a call runs another program, or the configuration of another place.
pub(in super::super) fn escapes(args: &[Word]) -> bool {
    let call = call(args);
    let mut options = call.global.iter();
    while let Some(option) = options.next() {
        match option.text.as_str() {
            "--no-pager"
            | "-P"
            | "-p"
            | "--paginate"
            | "--version"
            | "--help"
            | "-h"
            | "-v"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-optional-locks"
            | "--bare"
            | "--html-path"
            | "--man-path"
            | "--info-path"
            | "--exec-path" => {}
            "-C" => drop(options.next()),
            _ => return true,
        }
    }
    let texts = || call.args.iter().map(|it| it.text.as_str()).take_while(|it| *it != "--");
    let has = |option: &str| texts().any(|it| it == option);
    let has_short = |letter| {
        texts().any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(letter))
    };
    texts().any(|it| ANYWHERE.iter().any(|option| is_long(it, option)))
        || call.args.iter().any(|it| it.text.contains("ext::") || it.text.starts_with("fd::"))
        || RUNNERS.contains(&call.command)
        || match call.command {
            "grep" => has_short('O'),
            "rebase" => has_short('x'),
            "clone" => {
                has_short('u')
                    || has_short('c')
                    || texts().any(|it| is_long(it, "--config") || is_long(it, "--template"))
            }
            "fetch" | "pull" => {
                has("-u") || texts().any(|it| it.starts_with("-u") && !it.starts_with("--"))
            }
            "bisect" => has("run"),
            "submodule" => has("foreach"),
            "archive" => has_short('o'),
            "config" => {
                call.args.iter().any(|it| {
                    let key = it.text.to_ascii_lowercase();
                    RUN_KEYS.iter().any(|run| key.contains(run)) || !it.is_known()
                }) && !reads_config(call.args)
                    || has_short('e')
                    || has("--edit")
            }
            _ => false,
        }
}

/// Whether a `config` only prints.
pub(in super::super) fn reads_config(args: &[Word]) -> bool {
    let gets =
        ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list", "get", "list"];
    args.iter().find(|it| !is_scope(&it.text)).is_some_and(|it| gets.contains(&it.text.as_str()))
}

/// Options of `config` that say where to look.
fn is_scope(option: &str) -> bool {
    matches!(
        option,
        "--global"
            | "--system"
            | "--local"
            | "--worktree"
            | "--show-origin"
            | "--show-scope"
            | "--name-only"
            | "-z"
            | "--null"
            | "--type"
            | "--bool"
            | "--int"
            | "--path"
    )
}
