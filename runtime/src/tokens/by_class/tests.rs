//! What the kinds of characters weigh.

use proptest::prelude::*;

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

/// The same as [`weight`], character by character.
fn weight_by_character(text: &str) -> u64 {
    let (mut weight, mut run) = (0_u64, LetterRun::default());
    let (mut last, mut n, mut n_letters) = (None, 0_u64, 0_u64);
    for c in text.chars() {
        let ascii =
            u8::try_from(c).ok().and_then(|it| ASCII.get(usize::from(NUMBERS[usize::from(it)])));
        let class = ascii.copied().unwrap_or_else(|| CharClass::of(c));
        match class {
            CharClass::Lower | CharClass::Upper | CharClass::Digit => run.take(class, 1, weight),
            CharClass::Mark if matches!(c, '+' | '/' | '=') => run.take(class, 1, weight),
            _ => weight = run.end(weight),
        }
        let is_single = |it| last == Some(it) && n == 1;
        let n_before = if last == Some(class) { n } else { 0 };
        let piece = |begins: bool| if begins { PIECE } else { 0 };
        weight += match class {
            CharClass::Lower | CharClass::Upper | CharClass::Accented => {
                let goes_on = last.is_some_and(CharClass::is_of_word)
                    && (class != CharClass::Upper || last != Some(CharClass::Lower));
                n_letters = if goes_on { n_letters + 1 } else { 1 };
                let accent = if class == CharClass::Accented { LETTER } else { 0 };
                accent
                    + match n_letters {
                        1 if is_single(CharClass::Mark) => PIECE - JOINED,
                        1 => PIECE,
                        2..=6 => 0,
                        _ => LETTER,
                    }
            }
            CharClass::Digit => {
                piece(n_before.is_multiple_of(3))
                    + piece(n_before == 0 && is_single(CharClass::Space))
            }
            CharClass::Mark => piece(n_before.is_multiple_of(4)),
            CharClass::Line => piece(n_before == 0 && last != Some(CharClass::Mark)),
            CharClass::Space => piece(n_before % 16 == 1),
            CharClass::Ideograph => IDEOGRAPH,
            CharClass::OtherLetter => OTHER_LETTER,
            CharClass::Symbol => PIECE,
        };
        (last, n) = (Some(class), n_before + 1);
    }
    run.end(weight)
}

proptest! {
    // REQ: CTX-8
    #[test]
    fn what_is_alike_weighs_as_its_characters_one_by_one(
        text in "([a-z]{1,9}|[A-Z]{1,9}|[0-9]{1,9}|[.:(+/=]{1,6}|[\\n\\r]{1,3}|[ \\t]{1,40}|[äÖé日본к→~]{1,3}|\\PC{0,3}){0,20}",
    ) {
        prop_assert_eq!(weight(&text), weight_by_character(&text));
    }

    // REQ: CTX-8
    #[test]
    fn digests_weigh_as_their_characters_one_by_one(text in "[a-f0-9+/=A-C]{20,60}( |-)?[a-z0-9]{0,40}") {
        prop_assert_eq!(weight(&text), weight_by_character(&text));
    }
}
