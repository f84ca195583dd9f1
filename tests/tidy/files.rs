//! Every file: how long it is, how it opens, where it lies, and what its text may not hold.

use super::{code::Code, files_below, read, root, rust_files};

/// The top of the command.
const COMMAND: &str = "actors/command/src/bin/ennead/main.rs";

/// The most lines a source file may have, its own tests included.
const MAX_LINES: usize = 400;

#[test]
fn every_source_file_is_short_enough_to_read_at_once() {
    let long: Vec<_> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| MAX_LINES < *lines)
        .collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines: {long:#?}");
}

#[test]
fn every_source_file_opens_with_what_it_is_for() {
    let silent: Vec<_> =
        rust_files().into_iter().filter(|path| !read(path).starts_with("//! ")).collect();
    assert!(silent.is_empty(), "no `//!` on the first line: {silent:#?}");
}

#[test]
fn a_module_stands_beside_its_folder() {
    let inside: Vec<_> = rust_files().into_iter().filter(|path| path.ends_with("mod.rs")).collect();
    assert!(inside.is_empty(), "name it after its folder, beside it: {inside:#?}");
}

#[test]
fn every_source_file_of_a_crate_is_part_of_it() {
    for (folder, tops) in [
        ("runtime/src", &["runtime/src/lib.rs"][..]),
        ("runtime/simulated/src", &["runtime/simulated/src/lib.rs"]),
        ("tools/src", &["tools/src/lib.rs"]),
        ("actors/src", &["actors/src/lib.rs"]),
        ("actors/command/src", &["actors/command/src/lib.rs", COMMAND]),
        ("tests", &["tests/main.rs"]),
    ] {
        let code: Vec<Code> = tops.iter().map(Code::of_crate).collect();
        let left_over: Vec<_> = files_below(folder)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|it| it == "rs"))
            .filter(|path| !code.iter().any(|code| code.has(path)))
            .collect();
        assert!(left_over.is_empty(), "no `mod` names them: {left_over:#?}");
    }
}

#[test]
fn nothing_is_left_to_do() {
    let open: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| {
            let code = Code::of_text(&read(path));
            ["todo", "unimplemented"].iter().any(|name| code.calls_macro(name))
        })
        .collect();
    assert!(open.is_empty(), "{open:#?}");
}

#[test]
fn no_text_names_a_place_outside_the_project() {
    // In pieces, for this file is searched too.
    let elsewhere = [concat!("..", "/shared"), concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    let mut wrong = Vec::new();
    for path in files_below("") {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            // The kernel's own links are on every machine.
            let line = line.replace("/proc/self/root/", "").replace("/proc/12/root/", "");
            if elsewhere.iter().any(|it| line.contains(it)) {
                wrong.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
