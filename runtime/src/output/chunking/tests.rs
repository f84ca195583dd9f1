//! Where texts are cut. Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::{Chunker, Piece};
use crate::output::policy::{Break, Chunking};

fn cut(text: &str, step: usize, rule: Chunking) -> Vec<Piece> {
    let (mut chunker, mut out) = (Chunker::new(rule), Vec::new());
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(step.max(1)) {
        chunker.push(&String::from_iter(piece), &mut out);
    }
    chunker.finish(&mut out);
    out
}

fn rule(min: usize, max: usize, prefer: Break) -> Chunking {
    Chunking { min, max, prefer }
}

/// The texts of the pieces.
#[track_caller]
fn check(text: &str, rule: Chunking, texts: &[&str]) {
    for step in [1, 2, 5, text.len()] {
        let pieces = cut(text, step, rule);
        let found: Vec<&str> = pieces.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(found, texts, "{text:?} in steps of {step}");
    }
}

/// The pieces as they are shown.
#[track_caller]
fn check_shown(text: &str, rule: Chunking, shown: &[&str]) {
    for step in [1, 2, 5, text.len()] {
        let found: Vec<String> = cut(text, step, rule).iter().map(Piece::shown).collect();
        assert_eq!(found, shown, "{text:?} in steps of {step}");
    }
}

// REQ: OUT-3
#[test]
fn block_ends_at_the_preferred_break_once_it_is_long_enough() {
    let text = "One two. Three four.\nFive six.\n\nSeven eight. Nine.\nTen";
    for (min, prefer, texts) in [
        (
            1,
            Break::Paragraph,
            &["One two. Three four.\nFive six.\n\n", "Seven eight. Nine.\nTen"][..],
        ),
        (
            1,
            Break::Newline,
            &["One two. Three four.\n", "Five six.\n\n", "Seven eight. Nine.\n", "Ten"],
        ),
        (
            10,
            Break::Sentence,
            &["One two. Three four.\n", "Five six.\n\n", "Seven eight. ", "Nine.\nTen"],
        ),
        (33, Break::Sentence, &["One two. Three four.\nFive six.\n\nSeven eight. ", "Nine.\nTen"]),
        (60, Break::Sentence, &[text]),
    ] {
        check(text, rule(min, 60, prefer), texts);
    }
}

// REQ: OUT-3
#[test]
fn full_block_ends_at_the_best_break_in_it() {
    for (text, texts) in [
        ("aaa\n\nbbb\nccc. ddd eee", &["aaa\n\n", "bbb\nccc. ddd eee"][..]),
        ("aaaa bbb\nccc. ddd eee", &["aaaa bbb\n", "ccc. ddd eee"]),
        ("aaaa bbb ccc. ddd eee", &["aaaa bbb ccc. ", "ddd eee"]),
        ("aaaa bbb ccc ddd eee", &["aaaa bbb ccc ddd ", "eee"]),
        ("aaaabbbbccccddddeeee", &["aaaabbbbccccdddd", "eeee"]),
        ("aa bbbbccccddddeeee", &["aa ", "bbbbccccddddeeee"]),
        ("一二。三四五六七八九十一二三四五六七", &["一二。", "三四五六七八九十一二三四五六七"]),
        ("aaa.bbb.ccc.ddd.eee", &["aaa.bbb.ccc.ddd.", "eee"]),
        ("aaaaaaaaaaaaaaaa", &["aaaaaaaaaaaaaaaa"]),
        ("aaaaaaaaaaaaaaaa\n\nb", &["aaaaaaaaaaaaaaaa\n\n", "b"]),
        ("aaaaaaaaaaaaaa              b", &["aaaaaaaaaaaaaa              ", "b"]),
        ("aaaaaaaaaaaa\n    bbbbbbbb", &["aaaaaaaaaaaa\n", "    bbbbbbbb"]),
    ] {
        check(text, rule(2, 16, Break::Paragraph), texts);
    }
}

// REQ: OUT-3
#[test]
fn what_a_reader_takes_for_one_character_is_not_cut() {
    // Each is one grapheme cluster: e and an accent, a family, a flag, a line end of two.
    for (text, texts) in [
        ("aaaaaaaaaaaaaaae\u{301}b", &["aaaaaaaaaaaaaaa", "e\u{301}b"][..]),
        ("aaaaaaaaaaaaaa👨\u{200d}👩\u{200d}👧b", &["aaaaaaaaaaaaaa", "👨\u{200d}👩\u{200d}👧b"]),
        ("aaaaaaaaaaaaaaa🇩🇪🇫🇷", &["aaaaaaaaaaaaaaa", "🇩🇪🇫🇷"]),
        ("aaaaaaa \u{301}aaaaaaaaa", &["aaaaaaa \u{301}aaaaaaa", "aa"]),
    ] {
        check(text, rule(1, 16, Break::Paragraph), texts);
    }
    let long = format!("a{}", "\u{301}".repeat(40));
    assert_eq!(cut(&long, 1, rule(1, 16, Break::Paragraph)).len(), 3, "longer than any block");
}

// REQ: OUT-3
#[test]
fn fence_that_fits_is_not_split() {
    let fence = "```rust\nlet a = 1;\n\nlet b = 2;\n```";
    assert_eq!(fence.len(), 34);
    let before = format!("Some words before it.\n{fence}\nand after.");
    for prefer in [Break::Paragraph, Break::Newline, Break::Sentence] {
        let rule = rule(20, 34, prefer);
        let texts = ["Some words before it.\n", &format!("{fence}\n"), "and after."];
        check(&before, rule, &texts);
        check(fence, rule, &[fence]);
        check(&format!("{fence}\n\nb"), rule, &[&format!("{fence}\n\n"), "b"]);
    }
    // Even where the block before it stays short of `min`.
    check(&format!("a\n{fence}"), rule(20, 34, Break::Paragraph), &["a\n", fence]);
    // Small ones share a block with what is around them.
    let small = "a\n```\nb\n\nc\n```\nd";
    check(small, rule(2, 34, Break::Paragraph), &[small]);
    check(small, rule(2, 34, Break::Newline), &["a\n", "```\nb\n\nc\n```\n", "d"]);
}

// REQ: OUT-3
#[test]
fn fence_larger_than_a_block_is_closed_and_opened_again() {
    let text = "a\n```sh -x\none two\nthree four\nfive\n```\nb";
    check_shown(
        text,
        rule(2, 28, Break::Paragraph),
        &["a", "```sh -x\none two\n```", "```sh -x\nthree four\nfive\n```", "b"][..],
    );
    check_shown(
        "~~~~\nabcdefghijklmnopqrstuvwxyz\n~~~~",
        rule(2, 20, Break::Paragraph),
        &["~~~~\nabcdefghij\n~~~~", "~~~~\nklmnopqrst\n~~~~", "~~~~\nuvwxyz\n~~~~"],
    );
    let quoted = "> ```js\n> aaaaaaaaaa\n> bbbbbbbbbb\n> ```";
    check_shown(
        quoted,
        rule(2, 29, Break::Paragraph),
        &["> ```js\n> aaaaaaaaaa\n> ```", "> ```js\n> bbbbbbbbbb\n> ```"],
    );
    // A fence that the model never closed is not closed for it.
    check_shown("```\na", rule(2, 28, Break::Paragraph), &["```\na"]);
}

/// What comes out when nothing comes for a while after `text`, and what still waits.
#[track_caller]
fn check_flush(text: &str, flushed: &[&str], waits: bool) {
    let (mut chunker, mut out) = (Chunker::new(rule(20, 40, Break::Paragraph)), Vec::new());
    chunker.push(text, &mut out);
    chunker.flush(&mut out);
    let found: Vec<&str> = out.iter().map(|it| it.text.as_str()).collect();
    assert_eq!((found, chunker.is_waiting()), (flushed.to_vec(), waits), "{text:?}");
}

// REQ: OUT-3
#[test]
fn what_waits_long_is_flushed_up_to_a_break_and_never_inside_code() {
    for (text, flushed, waits) in [
        ("", &[][..], false),
        ("One moment.", &["One moment."], false),
        ("One mom", &["One "], true),
        ("mom", &[], true),
        ("好。好", &["好。"], true),
        ("```\na\n", &[], true),
        ("Look:\n```\na. b\n", &["Look:\n"], true),
        ("Look:\n```", &["Look:\n"], true),
        ("```\na\n```\nb", &["```\na\n```\n"], true),
    ] {
        check_flush(text, flushed, waits);
    }
}

fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|it| it.text.as_str()).collect()
}

const PARTS: [&str; 18] = [
    "a",
    "bcd ",
    "e\u{301}",
    ". ",
    ".\n",
    "\n",
    "\n\n",
    " ",
    "```\n",
    "```rust\n",
    "~~~\n",
    "```",
    "👨\u{200d}👩",
    "。",
    "wordwordword",
    "> ",
    "    ",
    "x = y;\n",
];

proptest! {
    // REQ: OUT-3
    #[test]
    fn pieces_are_the_text_and_not_too_long_wherever_it_was_cut_before(
        parts in proptest::collection::vec(0..PARTS.len(), 1..80),
        step in 2_usize..20,
        min in 1_usize..30,
        max in 24_usize..60,
        prefer in prop_oneof![Just(Break::Paragraph), Just(Break::Newline), Just(Break::Sentence)],
    ) {
        let text: String = parts.iter().map(|it| PARTS[*it]).collect();
        let text = text.trim();
        let pieces = cut(text, step, rule(min, max, prefer));
        prop_assert_eq!(joined(&pieces), text);
        prop_assert_eq!(&cut(text, 1, rule(min, max, prefer)), &pieces);
        for piece in &pieces {
            prop_assert!(!piece.text.trim().is_empty());
            let text = piece.text.trim().to_owned();
            let n_chars = Piece { text, ..piece.clone() }.shown().chars().count();
            // Fence lines that fill a block by themselves leave room for one character.
            let is_one = piece.closed.is_some() && piece.text.trim().chars().count() == 1;
            prop_assert!(n_chars <= max || is_one, "{n_chars} in {piece:?}");
        }
    }
}
