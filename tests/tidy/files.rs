//! Every file: how long it is, how it opens, where it lies, and what its text may not hold.

use super::{code::Code, files_below, read, root, rust_files};

/// The top of the command.
const COMMAND: &str = "actors/command/src/bin/command/main.rs";

/// The most lines a source file may have, its own tests included.
const MAX_LINES: usize = 400;

/// The most lines a function may have.
const MAX_FUNCTION_LINES: usize = 107;

#[test]
fn every_source_file_is_short_enough_to_read_at_once() {
    let long: Vec<_> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| MAX_LINES < *lines)
        .collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines: {long:#?}");
}

/// Returns each function of a formatted text by its first line, with its length from there to its closing brace, which
/// is as far indented.
pub(super) fn function_lengths(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        // `pub(in path)` has a bracket before that of the parameters.
        let head =
            code.strip_prefix("pub(").and_then(|it| it.split_once(") ")).map_or(code, |it| it.1);
        let before_name = head.split(['(', '<']).next().and_then(|it| it.rsplit_once(' '));
        let qualifiers = before_name.map_or("", |it| it.0);
        if head.starts_with("//") || qualifiers.split(' ').next_back() != Some("fn") {
            continue;
        }
        let indent = line.len() - code.len();
        let ends = |line: &&str| {
            let is_as_far = line.get(indent..).is_some_and(|it| !it.starts_with(' '));
            is_as_far && line.ends_with(['}', ';'])
        };
        let length = 1 + lines[at..].iter().position(ends).unwrap_or_default();
        found.push((code, length));
    }
    found
}

#[test]
fn every_function_is_short_enough_to_read_at_once() {
    let mut long = Vec::new();
    for path in rust_files().into_iter().filter(|it| it.iter().any(|it| it == "src")) {
        let lengths = read(&path);
        let lengths = function_lengths(&lengths).into_iter();
        let over = lengths.filter(|(_, length)| MAX_FUNCTION_LINES < *length);
        long.extend(over.map(|(name, length)| (path.clone(), name.to_owned(), length)));
    }
    assert!(long.is_empty(), "over {MAX_FUNCTION_LINES} lines: {long:#?}");
}

#[test]
fn a_function_is_as_long_as_from_its_name_to_its_brace() {
    let text = "// fn none() {\npub(in a::b) async fn one<T>(\n    a: u8,\n) {\n    if a {\n    }\n}\ntrait A {\n    \
                fn two();\n    fn three() {\n        a;\n    }\n}\nlet it: fn(u8);\n";
    let lengths: Vec<usize> = function_lengths(text).into_iter().map(|it| it.1).collect();
    assert_eq!(lengths, [6, 1, 3]);
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
    assert!(inside.is_empty(), "name it after its folder, next to it: {inside:#?}");
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
