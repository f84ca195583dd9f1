//! A process that can be seen to live: it holds a pipe open.

use std::{fs::File, io::Read, path::Path, process::Command};

use super::barrier::Barrier;

pub(crate) fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Reads a pipe to its end, which comes when nobody has it open for writing any more. The barrier
/// of the result says that the first byte has come.
pub(crate) fn read_to_end(path: &Path) -> (Barrier, tokio::task::JoinHandle<String>) {
    let (path, first) = (path.to_owned(), Barrier::closed());
    let first_copy = first.clone();
    let reader = tokio::task::spawn_blocking(move || {
        let mut file = File::open(path).unwrap();
        let mut byte = [0];
        file.read_exact(&mut byte).unwrap();
        first_copy.open();
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        rest
    });
    (first, reader)
}

/// A shell command whose grandchild holds the pipe `alive` open for writing.
pub(crate) const GRANDCHILD: &str = "sh -c 'echo up; exec sleep 100000' > alive & wait";
