//! Classes of git's commands: what reads, what can be taken back, and the rest.
//!
//! Source: the manual pages of git 2.39.

use super::{
    CommandClass::{self, Dangerous, ReadOnly, WorkspaceWrite},
    escapes::{call, git_escapes, reads_config},
};
use crate::step7_permission_gate::{
    command::{
        options::{has_letter, operands},
        written::git_output,
    },
    shell::word::Word,
};

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

/// Options with which a command only says what it would do.
const TRIES: [(&str, &[&str]); 3] =
    [("add", &["-n", "--dry-run"]), ("commit", &["--dry-run"]), ("rm", &["-n", "--dry-run"])];

/// Returns the class of a call; `args` are the words after `git`, and `of_write` judges a file that is written.
pub(super) fn class(args: &[Word], of_write: impl Fn(&Word) -> CommandClass) -> CommandClass {
    let call = call(args);
    let texts: Vec<&str> = call.args.iter().map(|it| it.text.as_str()).collect();
    let has = |options: &[&str]| texts.iter().any(|it| options.contains(it));
    let first = texts.first().copied().unwrap_or_default();
    if let Some((file, rest)) = git_output(&call) {
        return of_write(&file).max(class(&rest, of_write));
    }
    if git_escapes(args) {
        return Dangerous;
    }
    if texts == ["--help"] || TRIES.iter().any(|it| it.0 == call.command && has(it.1)) {
        return ReadOnly;
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
                && !has(&["-d", "-m", "-c", "-u", "--unset-upstream", "--edit-description"])
                && !texts.iter().any(|it| it.starts_with("--set-upstream"));
            if lists || has(&LISTING) { ReadOnly } else { WorkspaceWrite }
        }
        "tag" => {
            let orders = |it: &&str| {
                let number = it.strip_prefix("-n");
                number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
                    || it.starts_with("--sort")
                    || it.starts_with("--format")
            };
            let lists = has(&LISTING) || texts.iter().all(orders);
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
        "worktree" if first == "add" => {
            // The name of a branch is inside if it is taken for a path.
            operands(call.args).skip(1).map(of_write).max().unwrap_or(Dangerous)
        }
        "reflog" | "worktree" => match first {
            "" | "show" | "list" => ReadOnly,
            first if call.command == "reflog" && first.starts_with('-') => ReadOnly,
            _ => Dangerous,
        },
        "submodule" if matches!(first, "status" | "summary") => ReadOnly,
        "bisect" if matches!(first, "log" | "view") => ReadOnly,
        "notes" if matches!(first, "" | "list" | "show") => ReadOnly,
        "bundle" if matches!(first, "verify" | "list-heads") => ReadOnly,
        "symbolic-ref" if operands(call.args).count() == 1 && !has(&["-d", "--delete"]) => ReadOnly,
        "archive" if texts.iter().any(|it| it.starts_with("--remote")) => Dangerous,
        // To the output.
        "archive" => ReadOnly,
        "bundle" if first == "create" => operands(call.args).nth(1).map_or(Dangerous, of_write),
        "fsck" if !has(&["--lost-found"]) => ReadOnly,
        "apply" if has(&["--check", "--stat", "--numstat", "--summary"]) && !has(&["--apply"]) => {
            ReadOnly
        }
        "rm" if call
            .args
            .iter()
            .any(|it| has_letter(&it.text, 'f', "") || it.text == "--force") =>
        {
            Dangerous
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
