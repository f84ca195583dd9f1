//! Answer and reasoning, for any cuts of the text. Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::{MAX_TAG, TagStripper, TaggedSegment};

fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
    let (mut stripper, mut out) = (TagStripper::default(), Vec::new());
    for piece in pieces {
        stripper.push(piece, &mut out);
    }
    stripper.finish(&mut out);
    let (mut answer, mut thought) = (String::new(), String::new());
    for segment in out {
        match segment {
            TaggedSegment::Text(text) => answer.push_str(&text),
            TaggedSegment::Reasoning(text) => thought.push_str(&text),
        }
    }
    (answer, thought)
}

fn in_steps(text: &str, step: usize) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = chars.chunks(step.max(1)).map(String::from_iter).collect();
    read(pieces.iter().map(String::as_str))
}

#[track_caller]
fn check(text: &str, answer: &str, thought: &str) {
    for step in [text.len(), 1, 2, 3, 5, 7] {
        let found = in_steps(text, step);
        assert_eq!(found, (answer.to_owned(), thought.to_owned()), "{text:?} in steps of {step}");
    }
}

/// Text that has nothing to take out.
#[track_caller]
fn check_left_alone(text: &str) {
    check(text, text, "");
}

// REQ: OUT-1
#[test]
fn reasoning_between_tags_is_taken_out() {
    for (text, answer, thought) in [
        ("<think>a</think>b", "b", "a"),
        ("a<think>b</think>c", "ac", "b"),
        ("<thinking>a</thinking>b", "b", "a"),
        ("<thought>a</thought>b", "b", "a"),
        ("<reasoning>a</reasoning>b", "b", "a"),
        ("<antthinking>a</antthinking>b", "b", "a"),
        ("<antml:thinking>a</antml:thinking>b", "b", "a"),
        ("<THINK>a</Think>b", "b", "a"),
        ("< think >a< / think >b", "b", "a"),
        ("<\tthink\t>a</think\t>b", "b", "a"),
        ("<think budget=\"9\" x='/'>a</think>b", "b", "a"),
        ("<think>a</thinking>b", "b", "a"),
        ("<think>a</reasoning>b", "b", "a"),
        ("<think></think>b", "b", ""),
        ("<think/>b", "b", ""),
        ("<think />b", "b", ""),
        ("a<think>b</think>c<think>d</think>e", "ace", "bd"),
        ("<think>a<think>b</think>c", "c", "ab"),
        ("<think>a < b, <b>, </i>, <thin</think>c", "c", "a < b, <b>, </i>, <thin"),
        ("<think>é漢</think>ü字", "ü字", "é漢"),
        ("<<think>a</think>b", "<b", "a"),
        ("<think<think>a</think>b", "<thinkb", "a"),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn final_tags_are_taken_out_and_the_answer_stays() {
    for (text, answer, thought) in [
        ("<final>a</final>", "a", ""),
        ("<think>a</think><final>b</final>", "b", "a"),
        ("<think>a<final>b</final>", "b", "a"),
        ("<think>a</final>b", "", "ab"),
        ("<FINAL x=1>a</ final >b", "ab", ""),
        ("</final>a", "a", ""),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn unclosed_reasoning_is_never_said_and_stray_closing_tags_vanish() {
    for (text, answer, thought) in [
        ("a<think>b", "a", "b"),
        ("<think>", "", ""),
        ("a<think>b\n\nc", "a", "b\n\nc"),
        ("a</think>b", "ab", ""),
        ("</thinking>", "", ""),
        ("a<think>b</think>c</think>d", "acd", "b"),
        ("<think>a</thi", "", "a</thi"),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn what_only_looks_like_a_tag_is_text() {
    for text in [
        "<",
        "a < b",
        "<thin",
        "<think",
        "<think ",
        "</think",
        "<thinker>",
        "<b>a</b>",
        "<thinks>",
        "< >",
        "</>",
        "<//think>",
        "<think`>",
        "<think\n>",
        "<reasoning-effort>",
        "<finale>",
        "<é>",
        "<thinké>",
        "a <- b -> c <= d",
    ] {
        check_left_alone(text);
    }
    check_left_alone(&format!("<think {}>", "x".repeat(MAX_TAG)));
    check(&format!("<think {}>a", "x".repeat(MAX_TAG - 8)), "", "a");
}

// REQ: OUT-1
#[test]
fn code_is_left_alone() {
    for text in [
        "`<think>`",
        "a `<think>x</think>` b",
        "``<think> ` </think>``",
        "`` ` <think> ` ``",
        "```\n<think>a</think>\n```\n",
        "```xml\n<think>\n```",
        "```xml <think>\na\n```",
        "~~~\n<think>\n~~~\n",
        "~~~ <think>\na\n~~~",
        "~~~`<think>\n~~~",
        "  ```\n<final>\n",
        "> ```\n> <think>\n> ```\n",
        "````\n```\n<think>\n```\n````",
        "```a``` `<think>`",
        "a\n```\n<think>a",
    ] {
        check_left_alone(text);
    }
    for (text, answer, thought) in [
        ("```\na\n```\n<think>b</think>c", "```\na\n```\nc", "b"),
        ("`a`<think>b</think>`c`", "`a``c`", "b"),
        ("a ``` <think>b</think>c", "a ``` c", "b"),
        ("<think>a</think>```\n<think>\n```", "```\n<think>\n```", "a"),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn backticks_that_nothing_closes_hide_no_tag() {
    for (text, answer, thought) in [
        ("a ` b <think>c</think>d", "a ` b d", "c"),
        ("a ` b <think>c\nd</think>e", "a ` b e", "c\nd"),
        ("` `` <think> ``\n", "` `` <think> ``\n", ""),
        ("`` ` <think>a</think>b", "`` ` b", "a"),
        ("`` <think>a`b</think>c ```", "`` c ```", "a`b"),
        ("`a\n<think>b</think>`", "`a\n`", "b"),
        ("```a` <think>b</think>\n", "```a` \n", "b"),
        ("`a\\` <think>b</think>", "`a\\` ", "b"),
        ("` <think\n>", "` <think\n>", ""),
        (">```<think>`\n</think><think>b</think>c`d", ">```c`d", "`\nb"),
        ("` <thi`nk>", "` <thi`nk>", ""),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn within_reasoning_there_is_no_code() {
    for (text, answer, thought) in [
        ("<think>```\na</think>b", "b", "```\na"),
        ("<think>`</think>` b", "` b", "`"),
        ("<think>~~~\n</think>b <think>c</think>", "b ", "~~~\nc"),
    ] {
        check(text, answer, thought);
    }
}

// REQ: OUT-1
#[test]
fn line_ends_behind_a_tag_alone_on_its_line_go_with_it() {
    for (text, answer) in [
        ("<think>a</think>\n\nb", "b"),
        ("a\n\n<think>b</think>\n\nc", "a\n\nc"),
        ("a <think>b</think>\nc", "a \nc"),
        ("<final>\r\na\n</final>\n", "a\n"),
        ("<think>a</think>\n\n```\nb\n```", "```\nb\n```"),
        ("<think>a</think>\n  b", "  b"),
    ] {
        for step in [text.len(), 1, 2, 3] {
            assert_eq!(in_steps(text, step).0, answer, "{text:?} in steps of {step}");
        }
    }
}

proptest! {
    // REQ: OUT-1
    #[test]
    fn cuts_change_nothing(
        parts in proptest::collection::vec(0..PARTS.len(), 0..24),
        step in 1_usize..9,
    ) {
        let text: String = parts.iter().map(|it| PARTS[*it]).collect();
        let whole = read([text.as_str()]);
        prop_assert_eq!(in_steps(&text, step), whole);
        prop_assert_eq!(in_steps(&text, 1), in_steps(&text, text.len()));
    }

    // REQ: OUT-1
    #[test]
    fn text_without_tags_stays(text in "[a-z`~ \n>/]{0,60}") {
        prop_assert_eq!(read([text.as_str()]), (text.clone(), String::new()));
    }
}

/// What texts are made of.
const PARTS: [&str; 22] = [
    "<think>",
    "</think>",
    "<final>",
    "</final>",
    "<",
    "think",
    ">",
    "/",
    " ",
    "\n",
    "`",
    "``",
    "```",
    "~~~",
    "a",
    "é",
    "<thinking x=1>",
    "</ think >",
    "```rust\n",
    "\n```\n",
    "> ",
    "\r\n",
];
