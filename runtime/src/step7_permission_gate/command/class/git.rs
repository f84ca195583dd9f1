//! Classes of git's commands: what reads, what can be taken back, and the rest.
//!
//! Source: the manual pages of git 2.39.

use super::{
    CommandClass::{self, Dangerous, ReadOnly, WorkspaceWrite},
    escapes::{call, git_escapes, reads_config},
};
use crate::step7_permission_gate::shell::word::Word;

/// Commands of git that only read.
const READS: [&str; 33] = [
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "blame",
    "describe",
    "shortlog",
    "cat-file",
    "grep",
    "ls-tree",
    "rev-list",
    "merge-base",
    "diff-tree",
    "diff-index",
    "for-each-ref",
    "name-rev",
    "whatchanged",
    "show-ref",
    "count-objects",
    "check-ignore",
    "cherry",
    "var",
    "verify-commit",
    "verify-tag",
    "check-attr",
    "check-mailmap",
    "check-ref-format",
    "range-diff",
    "diff-files",
    "show-branch",
    "get-tar-commit-id",
];

/// Commands whose changes stay in the repository and can be taken back.
const CHANGES: [&str; 18] = [
    "add",
    "commit",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "mv",
    "rm",
    "init",
    "apply",
    "am",
    "notes",
    "bisect",
    "switch",
    "checkout",
    "format-patch",
    "reset",
    "stage",
];

/// Options with which `branch` and `tag` list.
const LISTING: [&str; 8] = [
    "--list",
    "-l",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--show-current",
];

/// Returns the class of a call; `args` are the words after `git`.
pub(super) fn class(args: &[Word]) -> CommandClass {
    let call = call(args);
    let texts: Vec<&str> = call.args.iter().map(|it| it.text.as_str()).collect();
    let has = |options: &[&str]| texts.iter().any(|it| options.contains(it));
    let first = texts.first().copied().unwrap_or_default();
    if git_escapes(args) {
        return Dangerous;
    }
    match call.command {
        "" | "help" | "version" => ReadOnly,
        "config" if has(&["--global", "--system"]) && !reads_config(call.args) => Dangerous,
        "config" => {
            // A name alone is asked for its value.
            let asks = matches!(&texts[..], [name] if !name.starts_with('-'));
            if asks || reads_config(call.args) { ReadOnly } else { WorkspaceWrite }
        }
        "branch" if has(&["-D", "--force", "-f", "-M"]) => Dangerous,
        "branch" => {
            let lists = call.args.iter().all(|it| it.text.starts_with('-'))
                && !has(&["-d", "-m", "-c", "-u"]);
            if lists || has(&LISTING) { ReadOnly } else { WorkspaceWrite }
        }
        "tag" => {
            let lists = texts.is_empty() || has(&LISTING) || has(&["-n"]);
            if lists { ReadOnly } else { WorkspaceWrite }
        }
        "remote" => match first {
            "" | "-v" | "--verbose" | "get-url" => ReadOnly,
            "show" if texts.len() == 1 => ReadOnly,
            "add" | "rename" | "remove" | "set-url" => WorkspaceWrite,
            _ => Dangerous,
        },
        "stash" => match first {
            "list" | "show" => ReadOnly,
            "drop" | "clear" => Dangerous,
            _ => WorkspaceWrite,
        },
        "reflog" | "worktree" => match first {
            "" | "show" | "list" => ReadOnly,
            _ => Dangerous,
        },
        "submodule" if matches!(first, "status" | "summary") => ReadOnly,
        "bisect" if matches!(first, "log" | "view") => ReadOnly,
        "notes" if matches!(first, "" | "list" | "show") => ReadOnly,
        "bundle" if matches!(first, "verify" | "list-heads") => ReadOnly,
        "archive" if texts == ["--list"] || texts == ["-l"] => ReadOnly,
        "symbolic-ref" if texts.len() == 1 => ReadOnly,
        "fsck" if !has(&["--lost-found"]) => ReadOnly,
        "apply" if has(&["--check", "--stat", "--numstat", "--summary"]) && !has(&["--apply"]) => {
            ReadOnly
        }
        "reset" if has(&["--hard"]) => Dangerous,
        "checkout" if has(&["--", ".", "-f", "--force"]) => Dangerous,
        "switch" if has(&["-f", "--force", "--discard-changes"]) => Dangerous,
        "restore" => {
            if has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) {
                WorkspaceWrite
            } else {
                Dangerous
            }
        }
        "clean" => {
            if has(&["-n", "--dry-run"]) {
                ReadOnly
            } else {
                Dangerous
            }
        }
        command if READS.contains(&command) => ReadOnly,
        command if CHANGES.contains(&command) => WorkspaceWrite,
        _ => Dangerous,
    }
}
