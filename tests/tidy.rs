//! The rules of the project that no compiler checks.
//!
//! They are tests because a rule that only a page states is broken within a month.

mod cases;
mod code;
mod configuration_page;
mod doc_verbs;
mod files;
mod floors;
mod front_door;
mod listing;
mod manifests;
mod messages;
mod named_elsewhere;
mod public_names;
mod purity;
mod references;
mod requirements;
mod structure;
mod trust_page;
mod type_names;
mod waits;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders that hold our Rust.
const CODE: [&str; 5] = ["runtime", "actors", "tools", "tests", "examples"];

/// The project's folder.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text of a file, its path given from the root.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in a folder, sorted. Its path is given from the root.
fn names(dir: impl AsRef<Path>) -> Vec<String> {
    let dir = root().join(dir);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every file below a folder, sorted, as paths from the root. What git does not keep is left out.
fn files_below(dir: impl AsRef<Path>) -> Vec<PathBuf> {
    let dir = dir.as_ref();
    let mut found = Vec::new();
    for name in names(dir) {
        if [".git", "target", ".transcripts"].contains(&name.as_str()) {
            continue;
        }
        let path = dir.join(name);
        if root().join(&path).is_dir() {
            found.extend(files_below(path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Every Rust file of ours, sorted.
fn rust_files() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = CODE.iter().flat_map(files_below).collect();
    found.retain(|path| path.extension().is_some_and(|it| it == "rs"));
    assert!(found.iter().any(|it| it.ends_with("runtime/src/lib.rs")), "found {found:#?}");
    found
}
