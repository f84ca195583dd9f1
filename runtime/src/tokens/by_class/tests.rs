//! What the kinds of characters weigh.

use super::*;

#[track_caller]
fn check(text: &str, hundredths: u64) {
    assert_eq!(weight(text), hundredths, "{text:?}");
}

// REQ: CTX-8
#[test]
fn words_numbers_marks_and_lines_are_pieces() {
    check("", 0);
    check("the quick fox", 300);
    check("quickFox", 200);
    check("HTTPServer", 100 + 4 * 25);
    check("responsible", 100 + 5 * 25);
    check("1234567", 300);
    check("at 12", 300);
    check("a, b", 300);
    check("map.get", 250);
    check("::::::", 200);
    check("a\n\n    b", 400);
    check("a;\nb", 300);
    check("für", 125);
}

// REQ: CTX-8
#[test]
fn other_scripts_weigh_by_the_letter() {
    check("кот", 90);
    check("日本語", 213);
    check("고양이", 213);
    check("→", 100);
}

// REQ: CTX-8
#[test]
fn only_a_long_run_of_changing_kinds_is_no_words() {
    let digest = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    check(digest, 32 * 66);
    assert!(weight(&digest[..23]) != 23 * 66);
    // A long name of words, and a path.
    check("aVeryLongNameOfSomethingThatDoesWork", 900 + 3 * 25);
    check(&"x".repeat(406), 100 + 400 * 25);
    let path = "usr/share/perl/modules/IO/Socket";
    assert!(weight(path) < path.len() as u64 * 40);
}

// REQ: CTX-8
#[test]
fn sizes_add_up_and_round_once() {
    let parts = ["кот ", "日本語", "a lot"].map(Size::of);
    let whole: Size = parts.into_iter().sum();
    assert_eq!((whole.chars, whole.weight), (12, 90 + 213 + 200));
    assert_eq!(whole.by_class(), 6);
    assert_eq!(Size::of_chars(6_400).by_class(), 1_600);
}

// REQ: CTX-8
#[test]
fn characters_of_a_part_are_as_dense_as_the_whole() {
    assert_eq!(Size::of(&"日".repeat(100)).chars_of(71), 100);
    assert_eq!(Size::of_chars(4_000).chars_of(10), 40);
    assert_eq!(Size::default().chars_of(10), 0);
}
