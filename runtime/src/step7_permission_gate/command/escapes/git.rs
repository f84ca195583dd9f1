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
const ANYWHERE: [&str; 15] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--extcmd",
    "--exec",
    // git-send-email(1), git-init(1): hooks come with a template.
    "--sendmail-cmd",
    "--smtp-server",
    "--to-cmd",
    "--cc-cmd",
    "--header-cmd",
    "--template",
];

/// Commands that run what they are given, or what is configured.
const RUNNERS: [&str; 14] = [
    "filter-branch",
    "difftool",
    "mergetool",
    "daemon",
    "instaweb",
    "shell",
    "hook",
    "for-each-repo",
    "credential",
    "web--browse",
    "quiltimport",
    // gitremote-helpers(7); the script that git 2.39 has for submodules.
    "remote-ext",
    "remote-fd",
    "submodule--helper",
];

/// Strategies of merging that git has itself. Any other is a program of that name. Source: git-merge(1).
const STRATEGIES: [&str; 6] = ["ours", "octopus", "ort", "recursive", "resolve", "subtree"];

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

/// Returns whether a call runs another program, or the configuration of another place.
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
        || MERGERS.contains(&call.command) && merges_by_program(call.args)
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
            "help" => has_short('w') || texts().any(|it| is_long(it, "--web")),
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

/// Returns whether an option with which a call runs others may begin so.
pub(super) fn may_begin(args: &[Word], start: &str) -> bool {
    let has_letters = matches!(
        call(args).command,
        "grep" | "rebase" | "clone" | "fetch" | "pull" | "help" | "archive" | "config"
    );
    let more = ["--config", "--web", "--edit", "--strategy"];
    ANYWHERE.iter().chain(&more).any(|it| it.starts_with(start))
        || has_letters && !start.starts_with("--")
}

/// Commands that take a strategy.
const MERGERS: [&str; 5] = ["merge", "pull", "rebase", "cherry-pick", "revert"];

/// Whether an option names a strategy that git does not have itself.
fn merges_by_program(args: &[Word]) -> bool {
    let own = |it: &str| STRATEGIES.contains(&it);
    let next = |i: usize| args.get(i + 1).map_or("", |it| it.text.as_str());
    args.iter().enumerate().take_while(|it| it.1.text != "--").any(|(i, arg)| {
        let text = arg.text.as_str();
        match text.strip_prefix("-s") {
            Some("") => !own(next(i)) && !next(i).starts_with('-'),
            Some(attached) => !own(attached),
            None if is_long(text, "--strategy") => {
                !own(text.split_once('=').map_or_else(|| next(i), |it| it.1))
            }
            None => false,
        }
    })
}

/// Commands of git itself: what is not one of them is an alias of whatever configuration holds, or a
/// program. Source: `git --list-cmds=builtins`, git 2.39, and the scripts that come with it.
const COMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "fmt-merge-msg",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "grep",
    "hash-object",
    "help",
    "index-pack",
    "init",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-tree",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// Returns whether a call runs code that is not in the text: an alias, or what a value of the configuration names.
pub(in super::super) fn runs_unseen(args: &[Word]) -> bool {
    let call = call(args);
    let mut options = call.global.iter();
    while let Some(option) = options.next() {
        let is_fine = match option.text.as_str() {
            "-c" => options.next().is_some_and(sets_nothing_run),
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => options.next().is_some(),
            "--attr-source" => options.next().is_some(),
            text => {
                let name = text.split_once('=').map_or(text, |it| it.0);
                !matches!(name, "--config-env" | "--exec-path") || name == text
            }
        };
        if !is_fine || option.text == "--config-env" {
            return true;
        }
    }
    let is_known = call.command.is_empty() || COMMANDS.contains(&call.command);
    let is_alias_here = args.iter().any(|it| it.text.starts_with("alias."));
    !is_known && !is_alias_here || escapes(&args[call.global.len()..])
}

/// Whether a `-c key=value` makes nothing run but a text that is written there.
fn sets_nothing_run(word: &Word) -> bool {
    let (key, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
    let key = key.to_ascii_lowercase();
    let is_seen = key.starts_with("alias.") && value.starts_with('!');
    word.is_known() && (is_seen || !RUN_KEYS.iter().any(|it| key.contains(it)))
}

/// Returns whether a `config` only prints.
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
