//! The state of the git repository that a session works in, as git prints it, once per session.
//!
//! Git runs programs that a repository's own configuration names: monitors, filters, hooks, pagers,
//! verifiers of signatures, helpers of transports. None of them may run because a session starts, so
//! each is switched off by name, and in a repository that is not trusted git is not run at all.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::Stdio,
    time::Duration,
};

use ennead_runtime::{ports::WorkGuard, step1_settings_resolution::trust::Trust};
use ennead_tools::{
    process_tree::{ProcessInput, ProcessLaunch, Rest, new_mark},
    source_file::Root,
};
use tokio::{io::AsyncReadExt, time::timeout};

/// What all calls of git for a session may take together: a prompt waits for them. Git needs 10 to
/// 100 ms for a repository of some ten thousand files whose index is fresh.
const LIMIT: Duration = Duration::from_secs(2);

/// Bytes of an output that are read.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Changed files that are shown.
const MAX_CHANGES: usize = 40;

/// Commits that are shown.
const N_COMMITS: &str = "-5";

/// Characters of a line that are shown.
const MAX_LINE: usize = 200;

/// Characters of `.git/HEAD` that are shown; names of branches have 255 bytes at most.
const MAX_HEAD: usize = 300;

/// What a repository cannot say otherwise.
const SETTINGS: [&str; 12] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.editor=false",
    "credential.helper=",
    "diff.external=",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
];

/// Describes branch, changed files and last commits; empty outside a repository.
pub(super) async fn state(workspace: &Path, trust: Trust) -> String {
    let has_repository = workspace.ancestors().any(|it| it.join(".git").exists());
    if !has_repository {
        return String::new();
    }
    if trust == Trust::Untrusted {
        return head(workspace);
    }
    match timeout(LIMIT, ask_git(workspace)).await {
        Ok(Some(state)) => state,
        Ok(None) => head(workspace),
        Err(_) => {
            let seconds = LIMIT.as_secs();
            let why = format!("(git did not tell its status within {seconds} s)");
            [head(workspace), why].join("\n").trim().to_owned()
        }
    }
}

async fn ask_git(workspace: &Path) -> Option<String> {
    let filters = filters(workspace).await;
    let status = ["status", "--short", "--branch", "--ignore-submodules=all"];
    let log = ["log", N_COMMITS, "--no-show-signature", "--no-ext-diff", "--format=%h %cs %s"];
    let (status, log) =
        tokio::join!(git(workspace, &status, &filters), git(workspace, &log, &filters));
    let status = status?;
    let mut lines = status.lines();
    let branch = lines.next().and_then(|it| it.strip_prefix("## ")).unwrap_or_default();
    let mut shown = vec![format!("branch {}", one_line(branch))];
    let changes: Vec<&str> = lines.collect();
    match changes.len() {
        0 => shown.push("no changes".into()),
        n => {
            shown.push("changes:".into());
            shown.extend(changes.iter().take(MAX_CHANGES).map(|it| one_line(it)));
            if MAX_CHANGES < n {
                shown.push(format!("and {} more", n - MAX_CHANGES));
            }
        }
    }
    let log = log.unwrap_or_default();
    if !log.trim().is_empty() {
        shown.push("last commits:".into());
        shown.extend(log.lines().map(one_line));
    }
    Some(shown.join("\n"))
}

/// Settings that name a program through which files go; each with an empty value.
async fn filters(workspace: &Path) -> Vec<(String, String)> {
    let names = r"^filter\..*\.(clean|smudge|process)$";
    let arguments = ["config", "--null", "--name-only", "--get-regexp", names];
    let found = git(workspace, &arguments, &[]).await.unwrap_or_default();
    let mut filters = Vec::new();
    for name in found.split('\0').filter(|it| !it.is_empty()) {
        filters.push((name.to_owned(), String::new()));
        if let Some((filter, _)) = name.rsplit_once('.') {
            filters.push((format!("{filter}.required"), "false".into()));
        }
    }
    filters
}

/// What git says; `None` when it fails.
async fn git(workspace: &Path, arguments: &[&str], more: &[(String, String)]) -> Option<String> {
    let launch = ProcessLaunch {
        program: OsStr::new("git"),
        input: ProcessInput::Nothing,
        rest: Rest::Ends,
        mark: new_mark("git"),
        confine: None,
        guard: WorkGuard::new(()),
    };
    let started = launch.start(|command| {
        command.arg("-C").arg(workspace).args(["--no-pager", "--no-optional-locks"]);
        command.args(SETTINGS.iter().flat_map(|it| ["-c", it]));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        // Nothing that the environment says about another repository or other settings counts.
        let of_git = |name: &OsString| name.to_string_lossy().starts_with("GIT_");
        for name in std::env::vars_os().map(|it| it.0).filter(of_git) {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
        command.env("GIT_CONFIG_COUNT", more.len().to_string());
        for (i, (name, value)) in more.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{i}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{i}"), value);
        }
        Ok(())
    });
    let mut started = started.await.ok()?;
    let mut summary = Vec::new();
    if let Some(output) = started.stdout.take() {
        let _as_far_as_it_goes = output.take(MAX_OUTPUT).read_to_end(&mut summary).await;
    }
    // One that prints more than is read ends when its pipe is closed.
    let status = started.tree.wait().await.ok()?;
    let is_cut = MAX_OUTPUT <= summary.len() as u64;
    (status.success() || is_cut).then(|| String::from_utf8_lossy(&summary).into_owned())
}

/// A line without signs that move a terminal, of bounded length.
fn one_line(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect()
}

/// What the repository's `HEAD` says, without running anything.
fn head(workspace: &Path) -> String {
    // The innermost repository counts: that of a submodule or a linked worktree has a file there, which says
    // nothing by itself, and what is around it is another.
    let top = workspace.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok());
    let read = |it: &Path| Root::open(it).ok()?.read_text(Path::new(".git/HEAD")).ok();
    let head = top.and_then(read).unwrap_or_default();
    // A file of this name can hold anything.
    let head: String = head.lines().next().unwrap_or_default().chars().take(MAX_HEAD).collect();
    match head.trim().strip_prefix("ref: refs/heads/") {
        _ if head.trim().is_empty() => String::new(),
        Some(branch) => format!("branch {branch}"),
        None => format!("detached at {}", head.trim()),
    }
}

#[cfg(test)]
mod tests;
