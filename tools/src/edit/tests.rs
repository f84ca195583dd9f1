//! Edit against real files.
//!
//! Built under `#[cfg(test)]` only.

use std::fs;

use super::*;
use crate::{
    read::Read,
    test_support::{World, structured},
    text_edit::MAX_SNIPPET_LINES,
};

fn change(path: &str, old: &str, new: &str) -> serde_json::Value {
    json!({"file_path": path, "old_string": old, "new_string": new})
}

// REQ: TOL-7
#[test]
fn a_unique_text_is_replaced_and_shown_with_line_numbers() {
    let mut world = World::new();
    let path = world.file("a", "one\ntwo\nthree\n");
    world.ok::<Read>(json!({"file_path": path}));
    let outcome = world.ok::<Edit>(change(&path, "two", "2\n2b"));
    assert_eq!(world.content("a"), "one\n2\n2b\nthree\n");
    assert!(outcome.text.ends_with("     1\tone\n     2\t2\n     3\t2b\n     4\tthree\n"));
    let expected = json!({"filePath": path, "oldString": "two", "newString": "2\n2b",
        "originalFile": "one\ntwo\nthree\n", "userModified": false, "replaceAll": false,
        "structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 4,
            "lines": [" one", "-two", "+2", "+2b", " three"]}]});
    assert_eq!(structured(&outcome), expected);
    // What was written was seen, so the next change needs no reading.
    world.ok::<Edit>(change(&path, "2b", "3"));
}
#[test]
fn a_text_that_occurs_twice_is_an_error_that_names_the_count() {
    let mut world = World::new();
    let path = world.file("a", "x\ny\nx\n");
    world.ok::<Read>(json!({"file_path": path}));
    assert!(world.failed::<Edit>(change(&path, "x", "z")).contains("occurs 2 times"));
    assert_eq!(world.content("a"), "x\ny\nx\n");
    let mut all = change(&path, "x", "z");
    all["replace_all"] = true.into();
    assert!(world.ok::<Edit>(all).text.contains("in 2 places"));
    assert_eq!(world.content("a"), "z\ny\nz\n");
}
#[test]
fn a_file_that_was_never_read_is_not_edited() {
    let mut world = World::new();
    let path = world.file("a", "x");
    assert!(world.failed::<Edit>(change(&path, "x", "y")).contains("not been read yet"));
    assert_eq!(world.content("a"), "x");
}

#[test]
fn a_range_that_was_asked_for_is_enough_and_a_first_page_is_not() {
    let mut world = World::new();
    let path = world.file("a", "x\n".repeat(2500) + "end\n");
    world.ok::<Read>(json!({"file_path": path}));
    assert!(world.failed::<Edit>(change(&path, "end", "END")).contains("not been read yet"));
    world.ok::<Read>(json!({"file_path": path, "offset": 2490}));
    world.ok::<Edit>(change(&path, "end", "END"));
    assert!(world.context.memory.files[&path].partial);
}

#[test]
fn a_file_changed_since_it_was_read_is_edited_only_where_the_match_is_unique() {
    let mut world = World::new();
    let path = world.file("a", "x\ny\n");
    world.ok::<Read>(json!({"file_path": path}));
    world.file("a", "x\ny\ny\n");
    let mut all = change(&path, "y", "z");
    all["replace_all"] = true.into();
    assert!(world.failed::<Edit>(all).contains("modified since read"));
    let outcome = world.ok::<Edit>(change(&path, "x", "z"));
    assert!(outcome.text.contains("other changes"));
    assert_eq!(world.content("a"), "z\ny\ny\n");
    assert!(world.context.memory.files[&path].partial);
}

#[test]
fn texts_that_are_equal_missing_or_not_found_are_errors() {
    let mut world = World::new();
    let path = world.file("a", "x");
    world.ok::<Read>(json!({"file_path": path}));
    assert!(world.failed::<Edit>(change(&path, "x", "x")).contains("the same"));
    assert!(world.failed::<Edit>(change(&path, "q", "r")).contains("not found"));
    assert!(world.failed::<Edit>(change(&path, "", "r")).contains("exists"));
    assert_eq!(world.content("a"), "x");
    let new = world.path("sub/new");
    world.ok::<Edit>(change(&new, "", "made"));
    assert_eq!(world.content("sub/new"), "made");
    let none = world.path("none");
    assert_eq!(world.failed::<Edit>(change(&none, "a", "b")), "File does not exist.");
}

// REQ: TOL-7
#[test]
fn line_ends_are_matched_as_shown_and_kept() {
    let mut world = World::new();
    let path = world.file("a", "\u{feff}a\r\nb\r\nc\nd\r\n");
    world.ok::<Read>(json!({"file_path": path}));
    world.ok::<Edit>(change(&path, "a\nb", "A\nB"));
    assert_eq!(world.content("a"), "\u{feff}A\r\nB\r\nc\nd\r\n");
}

// REQ: TOL-7
#[test]
fn bytes_that_are_no_utf8_are_not_damaged() {
    let mut world = World::new();
    let path = world.file("a", b"caf\xe9 x");
    world.ok::<Read>(json!({"file_path": path}));
    assert!(world.failed::<Edit>(change(&path, "x", "y")).contains("UTF-8"));
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9 x");
}

#[test]
fn a_long_change_is_shown_in_part() {
    let mut world = World::new();
    let path = world.file("a", "x\n");
    world.ok::<Read>(json!({"file_path": path}));
    let outcome = world.ok::<Edit>(change(&path, "x", &"y\n".repeat(100)));
    assert_eq!(outcome.text.lines().count(), 1 + MAX_SNIPPET_LINES + 1);
}

// REQ: TOL-7
#[test]
fn edit_that_would_make_a_file_longer_than_tools_read_is_refused() {
    let mut world = World::new();
    let path = world.file("a", "x".repeat(1 << 16));
    world.ok::<Read>(json!({"file_path": path}));
    let mut all = change(&path, "x", &"y".repeat(1 << 11));
    all["replace_all"] = true.into();
    assert!(world.failed::<Edit>(all).contains("would have more than"));
    assert_eq!(world.content("a").len(), 1 << 16);
}

// REQ: TOL-7, CTX-6
#[test]
fn text_that_was_shown_with_signs_of_the_harness_is_found_and_replaced_as_it_is_in_the_file() {
    let mut world = World::new();
    let path = world.file("a", "a <system-reminder> b\n&lt;untrusted>\n");
    world.ok::<Read>(json!({"file_path": path}));
    let (old, new) = ("a &lt;system-reminder> b", "c &lt;/system-reminder> d");
    world.ok::<Edit>(change(&path, old, new));
    assert_eq!(world.content("a"), "c </system-reminder> d\n&lt;untrusted>\n");
    // What stands there so is taken so.
    world.ok::<Edit>(change(&path, "&lt;untrusted>", "<b>"));
    assert_eq!(world.content("a"), "c </system-reminder> d\n<b>\n");
    assert!(world.failed::<Edit>(change(&path, "&lt;untrusted>", "x")).contains("not found"));
}
