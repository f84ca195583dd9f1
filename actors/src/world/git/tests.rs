//! What git reports of repositories, linked worktrees and submodules, and what it does not run.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, path::PathBuf, process::Command};

use super::*;

struct Repository {
    directory: tempfile::TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(repository.path("main")).unwrap();
        repository.git("main", &["init", "-q", "-b", "trunk"]);
        repository.commit("main", "a.txt", "the first step");
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    #[track_caller]
    fn git(&self, at: &str, arguments: &[&str]) {
        let identity =
            ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path(at)).args(identity).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn commit(&self, at: &str, file: &str, subject: &str) {
        fs::write(self.path(at).join(file), subject).unwrap();
        self.git(at, &["add", "."]);
        self.git(at, &["commit", "-q", "-m", subject]);
    }
}

// REQ: CTX-1, CTX-3
#[tokio::test]
async fn branch_changes_and_commits_are_told_also_in_worktrees_and_submodules() {
    let repository = Repository::new();
    repository.git("main", &["worktree", "add", "-q", "-b", "side", "../linked"]);
    fs::write(repository.path("linked/new.txt"), "x").unwrap();
    fs::create_dir(repository.path("outer")).unwrap();
    repository.git("outer", &["init", "-q", "-b", "outer-trunk"]);
    repository.git("outer", &["submodule", "add", "-q", "../main", "inner"]);
    let main = state(&repository.path("main"), Trust::Trusted).await;
    assert!(main.starts_with("branch trunk\nno changes\nlast commits:\n"), "{main}");
    assert!(main.ends_with("the first step"), "{main}");
    let linked = state(&repository.path("linked"), Trust::Headless).await;
    assert!(linked.starts_with("branch side\nchanges:\n?? new.txt\n"), "{linked}");
    let inner = state(&repository.path("outer/inner"), Trust::Trusted).await;
    assert!(inner.contains("the first step") && inner.starts_with("branch "), "{inner}");
    assert_eq!(state(repository.directory.path(), Trust::Trusted).await, "");
}

// REQ: CTX-6
#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let repository = Repository::new();
    let ran = repository.path("ran");
    let program = repository.path("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0\" >> '{}'\ncat\n", ran.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    for name in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.process",
        "filter.a=b.clean",
        "gpg.program",
        "pager.log",
        "pager.status",
    ] {
        repository.git("main", &["config", name, &program]);
    }
    repository.git("main", &["config", "log.showSignature", "true"]);
    repository
        .git("main", &["config", "core.hooksPath", &repository.path("").display().to_string()]);
    for hook in ["post-index-change", "fsmonitor-watchman"] {
        fs::copy(&program, repository.path(hook)).unwrap();
    }
    fs::write(repository.path("main/.gitattributes"), "* filter=evil\n*.b filter=a=b\n").unwrap();
    fs::write(repository.path("main/a.txt"), "THE FIRST STEP").unwrap();
    let shown = state(&repository.path("main"), Trust::Headless).await;
    assert!(shown.contains("a.txt"), "{shown}");
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    // The same repository does run its programs when git is asked as usual.
    let mut as_usual = Command::new("git");
    as_usual.arg("-C").arg(repository.path("main")).args(["status", "--short"]).output().unwrap();
    assert!(ran.exists());
}

// REQ: CTX-6
#[tokio::test]
async fn repository_that_is_not_trusted_is_read_and_git_is_not_run() {
    let repository = Repository::new();
    fs::write(repository.path("main/new.txt"), "x").unwrap();
    assert_eq!(state(&repository.path("main"), Trust::Untrusted).await, "branch trunk");
    // A file in the place of the directory may point anywhere.
    repository.git("main", &["worktree", "add", "-q", "../linked"]);
    assert_eq!(state(&repository.path("linked"), Trust::Untrusted).await, "");
}

// REQ: CTX-1, CTX-6
#[tokio::test]
async fn branch_of_the_repository_around_another_is_not_taken_for_its_own() {
    let repository = Repository::new();
    fs::create_dir(repository.path("outer")).unwrap();
    repository.git("outer", &["init", "-q", "-b", "outer-trunk"]);
    repository.git("outer", &["submodule", "add", "-q", "../main", "inner"]);
    repository.commit("outer", "b.txt", "the outer step");
    repository.git("outer", &["worktree", "add", "-q", "-b", "side", "linked"]);
    for inside in ["outer/inner", "outer/linked"] {
        assert_eq!(state(&repository.path(inside), Trust::Untrusted).await, "", "{inside}");
    }
    fs::create_dir(repository.path("outer/folder")).unwrap();
    let folder = state(&repository.path("outer/folder"), Trust::Untrusted).await;
    assert_eq!(folder, "branch outer-trunk");
}
