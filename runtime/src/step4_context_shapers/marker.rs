//! Cuts a text and says so in its place.
//!
//! All stages leave the same mark: how much is missing of how much, and where the
//! whole is. Cuts fall between characters, and never inside a tag of the harness: a frame that is cut
//! ends in front of the mark, and begins again after it.

use std::fmt::Display;

use super::ShaperSetup;
use crate::step3_context_assembly::frames::{MAX_ENDS, OpenFrames, after_tag, before_tag};
use crate::tokens::Size;
use crate::{digest::Digest, saturating::Saturating as _};

/// A text that was cut.
pub(super) struct Cut {
    /// What the model sees.
    pub(super) text: String,
    /// Its length in characters.
    pub(super) chars: u64,
    /// The whole, under its digest.
    pub(super) stored: (Digest, String),
}

/// Returns how many characters a mark takes at most.
pub(super) fn max_chars(total: u64, prefix: &str) -> u64 {
    let reference = reference(prefix, Digest::default());
    mark(total, total, &reference).chars().count() as u64 + 2
}

/// Returns the size of a mark at most.
pub(super) fn max_size(prefix: &str) -> Size {
    // No digest weighs more than one in which letters and digits take turns.
    let digest = "a1".repeat(Digest::default().to_string().len() / 2);
    Size::of(&mark(u64::MAX, u64::MAX, &reference(prefix, digest)))
}

/// Returns `text` with its first `head` and last `tail` characters at most and a mark between them.
pub(super) fn cut(text: &str, head: u64, tail: u64, setup: &ShaperSetup) -> Cut {
    let total = text.chars().count() as u64;
    let digest = Digest::of(text.as_bytes());
    let head_end = byte_at(text, head);
    let tail_start = byte_at(text, total.saturating_sub(tail)).max(head_end);
    let ((head_end, ends), (tail_start, begins)) = if setup.keeps_frames {
        (before_cut(text, head_end), after_cut(text, tail_start))
    } else {
        ((head_end, String::new()), (tail_start, String::new()))
    };
    let left_out = text[head_end..tail_start].chars().count() as u64;
    let mark = mark(left_out, total, &reference(&setup.reference_prefix, digest));
    let (head, tail) = (text[..head_end].to_owned() + &ends, begins + &text[tail_start..]);
    let parts = [&head, &mark, &tail].map(String::as_str);
    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    let shown = parts.join("\n");
    let chars = shown.chars().count() as u64;
    Cut { text: shown, chars, stored: (digest, text.to_owned()) }
}

/// Returns where the beginning of a text ends that is cut off here at the latest, and what ends the frames that it is
/// in, for which there is room.
fn before_cut(text: &str, at: usize) -> (usize, String) {
    let whole = before_tag(text, at);
    if OpenFrames::after(&text[..whole]).is_empty() {
        return (whole, String::new());
    }
    let earlier = text[..at].char_indices().rev().nth(MAX_ENDS - 1).map_or(0, |(at, _)| at);
    let earlier = before_tag(text, earlier);
    (earlier, OpenFrames::after(&text[..earlier]).ends())
}

/// Returns where the end of a text begins that is cut off here at the earliest, and what begins the frames that it is
/// in, for which there is room.
fn after_cut(text: &str, at: usize) -> (usize, String) {
    let mut at = after_tag(text, at);
    loop {
        let frames = OpenFrames::after(&text[..at]);
        let begins = frames.begins();
        let room = begins.chars().count() as u64;
        let later = after_tag(text, at + byte_at(&text[at..], room));
        if later == text.len() {
            return (later, String::new());
        }
        if OpenFrames::after(&text[..later]) == frames {
            return (later, begins);
        }
        at = later;
    }
}

/// Returns whether a cut is worth it where no cap demands it: it saves at least half. A text that was cut before never
/// passes, so a stage run on its own result changes nothing.
pub(super) fn is_worth_it(chars_after: u64, chars_before: u64) -> bool {
    chars_after.saturating_mul(2) <= chars_before
}

fn mark(left_out: u64, total: u64, reference: &str) -> String {
    format!("[{left_out} of {total} characters left out; the whole text is in {reference}]")
}

fn reference(prefix: &str, digest: impl Display) -> String {
    format!("{}/{digest}.txt", prefix.trim_end_matches('/'))
}

fn byte_at(text: &str, n_chars: u64) -> usize {
    let n_chars = usize::saturating(n_chars);
    text.char_indices().nth(n_chars).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        step3_context_assembly::source8_tool_results::{Paragraph, envelope, reminder_quoting},
        step4_context_shapers::tests::stages::setup,
    };

    fn setup_with(prefix: &str) -> ShaperSetup {
        ShaperSetup { reference_prefix: prefix.into(), ..setup(|_| {}) }
    }

    // REQ: SHP-13
    #[test]
    fn no_mark_is_larger_than_the_largest() {
        for n in 0..500_u32 {
            let text = format!("{n} ").repeat(200);
            let cut = Size::of(&cut(&text, 0, 0, &setup_with("/a/long/path")).text);
            let most = max_size("/a/long/path");
            assert!(cut.chars <= most.chars && cut.by_class() <= most.by_class(), "{n}");
        }
    }

    // REQ: SHP-3
    #[test]
    fn mark_names_sizes_and_reference_and_cuts_fall_between_characters() {
        let text = "日本語のテキスト";
        let cut = cut(text, 2, 1, &setup_with("/store/"));
        let digest = Digest::of(text.as_bytes());
        assert_eq!(
            cut.text,
            format!(
                "日本\n[5 of 8 characters left out; the whole text is in /store/{digest}.txt]\nト"
            )
        );
        assert_eq!(cut.stored, (digest, text.to_owned()));
        assert_eq!(cut.chars, cut.text.chars().count() as u64);
        assert!(cut.chars <= 3 + max_chars(8, "/store/"));
    }

    /// A text with frames in it, and in these frames.
    fn framed() -> impl Strategy<Value = String> {
        let words = "[a-z <>/\n語]{0,60}";
        let part = (words, words, 0..4_u8).prop_map(|(words, quoted, kind)| match kind {
            0 => words,
            1 => envelope("notes", &quoted),
            2 => reminder_quoting(&[Paragraph::plain(words)]),
            _ => {
                let path = format!("file /w/{}", "long/".repeat(9));
                reminder_quoting(&[Paragraph::quoting(words, &path, &quoted)])
            }
        });
        prop::collection::vec(part, 1..6).prop_map(|it| it.concat())
    }

    proptest! {
        // REQ: CTX-6, SHP-3
        #[test]
        fn cut_leaves_no_frame_open_and_takes_no_more_room(
            text in framed(), head in 0..200_u64, tail in 0..200_u64,
        ) {
            let total = text.chars().count() as u64;
            if head + tail >= total {
                return Ok(());
            }
            let setup = setup_with("/store");
            let cut = cut(&text, head, tail, &setup);
            prop_assert!(OpenFrames::after(&cut.text).is_empty(), "{}", cut.text);
            prop_assert!(cut.chars <= head + tail + max_chars(total, "/store"), "{}", cut.text);
            // Each tag is whole, and what ends a frame ends one that was begun.
            let n = |of: &str| cut.text.matches(of).count();
            prop_assert_eq!(n("<untrusted"), n("<untrusted origin=\""));
            prop_assert_eq!(n("<untrusted origin=\""), n("\n</untrusted>"), "{}", cut.text);
            prop_assert_eq!(n("<system-reminder>\n"), n("\n</system-reminder>"), "{}", cut.text);
            prop_assert_eq!(n("<system-reminder"), n("<system-reminder>\n"), "{}", cut.text);
        }
    }
}
