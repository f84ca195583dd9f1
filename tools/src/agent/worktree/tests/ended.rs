//! Git that does not come to an end by itself. Built under `#[cfg(test)]` only.

use ennead_runtime::ports::WorkGuard;
use tokio::{io::AsyncReadExt, net::unix::pipe, sync::oneshot};

use super::*;

/// A repository in which a checkout writes a line to the FIFO and then never ends.
fn endless() -> (World, PathBuf) {
    let world = repository();
    let fifo = world.root.with_file_name("begun");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let filter = format!("echo begun > '{}'; sleep 100000", fifo.display());
    git(&world.root, ["config", "filter.endless.smudge", &filter]);
    fs::write(world.root.join(".gitattributes"), "file filter=endless\n").unwrap();
    commit_all(&world.root, "with a filter");
    (world, fifo)
}

/// Waits until the checkout has begun, and then ends it. Returns when nothing works for the call
/// any more, and the text of the call's result.
fn ended_by(
    end: impl FnOnce(&Switch, &mut Option<tokio::task::JoinHandle<Result<HeldWorktree, WorktreeError>>>),
) -> (World, Option<WorktreeError>) {
    let (mut world, fifo) = endless();
    let switch = Arc::new(Switch::default());
    world.context.cancel = switch.clone();
    let error = block_on(async {
        let (kept, is_gone) = oneshot::channel::<()>();
        let mut context = world.context.clone();
        context.guard = WorkGuard::new(kept);
        let mut begun = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo).unwrap();
        #[expect(clippy::disallowed_methods, reason = "stands for the executor of the call")]
        let waiting = tokio::spawn(async move { HeldWorktree::new(&context, wanted("a")).await });
        let mut waiting = Some(waiting);
        begun.read_exact(&mut [0; 6]).await.unwrap();
        end(&switch, &mut waiting);
        is_gone.await.unwrap_err();
        match waiting {
            Some(waiting) => Some(waiting.await.unwrap().unwrap_err()),
            None => None,
        }
    });
    (world, error)
}

// REQ: TOL-8, AGT-1
#[test]
fn interrupt_ends_git_with_all_that_it_started() {
    let (mut world, error) = ended_by(|switch, _| switch.cancel());
    let error = error.unwrap();
    assert!(matches!(error, WorktreeError::Git(GitError::Interrupted)), "{error}");
    // What was half made goes with the next one.
    world.context.cancel = Arc::new(Switch::default());
    git(&world.root, ["config", "filter.endless.smudge", "cat"]);
    let _next = held(&world, "next").unwrap();
    assert_eq!(left(&world), (1, 1));
}

// REQ: TOL-8, AGT-1
#[test]
fn git_ends_with_the_call_that_waits_for_it() {
    let (world, _) = ended_by(|_, waiting| waiting.take().unwrap().abort());
    git(&world.root, ["config", "filter.endless.smudge", "cat"]);
    let _next = held(&world, "next").unwrap();
    assert_eq!(left(&world), (1, 1));
}

// REQ: TOL-8, AGT-1
#[test]
fn git_that_takes_too_long_is_ended_and_it_is_said() {
    let world = repository();
    let git = Git::new(world.context.clone()).within(Duration::ZERO);
    let (input, _never_written) = std::io::pipe().unwrap();
    let input = fs::File::from(std::os::fd::OwnedFd::from(input));
    let wait = git.run_on(&world.root, ["cat-file", "--batch"], input);
    let error = block_on(wait).unwrap_err();
    assert!(matches!(error, GitError::TooLong { .. }), "{error}");
    assert_eq!(error.to_string(), "git cat-file --batch: it was ended after 0 seconds");
}

// REQ: AGT-1
#[test]
fn hook_of_the_repository_is_not_run() {
    use std::os::unix::fs::PermissionsExt;

    let world = repository();
    let hook = world.root.join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(held(&world, "a").is_ok());
}
