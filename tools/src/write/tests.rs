//! Write against real files.
//!
//! Built under `#[cfg(test)]` only.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead_runtime::{
    ports::{BoxFuture, Cancel},
    tool::ToolErrorKind,
};

use super::*;
use crate::{
    read::Read,
    test_support::{World, block_on, structured},
};

// REQ: TOL-7
#[test]
fn a_new_file_is_made_with_its_directories_and_counts_as_seen() {
    let mut world = World::new();
    let path = world.path("a/b/c.txt");
    let outcome = world.ok::<Write>(json!({"file_path": path, "content": "x\n"}));
    assert_eq!(world.content("a/b/c.txt"), "x\n");
    let expected = json!({"type": "create", "filePath": path, "content": "x\n",
        "structuredPatch": [], "originalFile": null});
    assert_eq!(structured(&outcome), expected);
    world.ok::<Write>(json!({"file_path": path, "content": "y\n"}));
    assert_eq!(world.content("a/b/c.txt"), "y\n");
    assert_eq!(fs::read_dir(world.root.join("a/b")).unwrap().count(), 1);
}

// REQ: TOL-7
#[test]
fn a_file_must_have_been_read_whole_and_not_have_changed() {
    let mut world = World::new();
    let path = world.file("a", "1\n2\n");
    let write = json!({"file_path": path, "content": "x"});
    assert!(world.failed::<Write>(write.clone()).contains("not been read yet"));
    world.ok::<Read>(json!({"file_path": path, "limit": 1}));
    assert!(world.failed::<Write>(write.clone()).contains("only in part"));
    world.ok::<Read>(json!({"file_path": path}));
    world.file("a", "1\n3\n");
    assert!(world.failed::<Write>(write.clone()).contains("modified since read"));
    assert_eq!(world.content("a"), "1\n3\n");
    world.ok::<Read>(json!({"file_path": path}));
    let outcome = world.ok::<Write>(write);
    let result = structured(&outcome);
    assert_eq!((&result["type"], &result["originalFile"]), (&json!("update"), &json!("1\n3\n")));
}
#[test]
fn a_partial_page_is_not_enough_to_replace_the_file() {
    let mut world = World::new();
    let path = world.file("a", "x\n".repeat(2001));
    assert!(world.ok::<Read>(json!({"file_path": path})).text.contains("PARTIAL view"));
    let why = world.failed::<Write>(json!({"file_path": path, "content": "x"}));
    assert!(why.contains("not been read yet"), "{why}");
}

// REQ: TOL-7
#[test]
fn mode_line_ends_and_mark_are_kept() {
    let mut world = World::new();
    let path = world.file("run.sh", "\u{feff}a\r\nb\r\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    world.ok::<Read>(json!({"file_path": path}));
    world.ok::<Write>(json!({"file_path": path, "content": "c\nd\r\n"}));
    assert_eq!(world.content("run.sh"), "\u{feff}c\r\nd\r\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
}

/// Cancelled from the given poll on; sees what lies in a directory at each poll.
#[derive(Debug)]
struct CancelledAt {
    poll: usize,
    n_polls: AtomicUsize,
    directory: PathBuf,
    seen: Mutex<Vec<usize>>,
}

impl Cancel for CancelledAt {
    fn is_cancelled(&self) -> bool {
        self.seen.lock().unwrap().push(fs::read_dir(&self.directory).unwrap().count());
        self.n_polls.fetch_add(1, Ordering::SeqCst) + 1 >= self.poll
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

// REQ: TOL-7
#[test]
fn a_cancel_just_before_the_rename_leaves_the_file_as_it_was() {
    let mut world = World::new();
    let path = world.file("a", "old");
    world.ok::<Read>(json!({"file_path": path}));
    let cancel = Arc::new(CancelledAt {
        poll: 2,
        n_polls: AtomicUsize::new(0),
        directory: world.root.clone(),
        seen: Mutex::default(),
    });
    world.context.cancel = cancel.clone();
    let outcome = block_on(world.run::<Write>(json!({"file_path": path, "content": "new"})));
    assert_eq!(outcome.error, Some(ToolErrorKind::Interrupted));
    assert_eq!(world.content("a"), "old");
    // At the last poll the new content was already on disk, and afterwards it is gone.
    assert_eq!(*cancel.seen.lock().unwrap(), [1, 2]);
    assert_eq!(fs::read_dir(&world.root).unwrap().count(), 1);
}

#[test]
fn the_outcome_is_settled_once_the_file_is_in_its_place() {
    let world = World::new();
    let context = world.context.clone();
    let input = WriteInput { file_path: world.path("a"), content: "x".into() };
    let path = crate::test_support::resolve(&input.file_path);
    let call = BuiltInCall { id: "t".into(), input, path: Some(path), hidden: Arc::default() };
    let outcome = block_on(Write::call(call, context.clone()));
    assert_eq!(context.committed.get(), Some(&outcome));
}

// REQ: TOL-7
#[test]
fn what_the_system_refuses_is_an_error_in_words() {
    let mut world = World::new();
    let path = world.file("a", "x");
    let below = format!("{path}/b");
    let why = world.failed::<Write>(json!({"file_path": below, "content": ""}));
    assert!(why.contains("ENOTDIR"), "{why}");
    let directory = world.path("");
    let why = world.failed::<Write>(json!({"file_path": directory, "content": ""}));
    assert!(why.contains("EISDIR"), "{why}");
    // Nobody, root included, makes files there.
    world.failed::<Write>(json!({"file_path": "/proc/self/ennead", "content": ""}));
}
