//! Cuts a text and says so in its place.
//!
//! All stages leave the same mark: how much is missing of how much, and where the
//! whole is. Cuts fall between characters.

use std::fmt::Display;

use crate::digest::Digest;
use crate::saturating::Saturating as _;
use crate::tokens::Size;

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

/// Returns `text` with its first `head` and last `tail` characters and a mark between them.
pub(super) fn cut(text: &str, head: u64, tail: u64, prefix: &str) -> Cut {
    let total = text.chars().count() as u64;
    let digest = Digest::of(text.as_bytes());
    let head_end = byte_at(text, head);
    let tail_start = byte_at(text, total.saturating_sub(tail)).max(head_end);
    let left_out = text[head_end..tail_start].chars().count() as u64;
    let mark = mark(left_out, total, &reference(prefix, digest));
    let parts = [&text[..head_end], &mark, &text[tail_start..]];
    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    let shown = parts.join("\n");
    let chars = shown.chars().count() as u64;
    Cut { text: shown, chars, stored: (digest, text.to_owned()) }
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
    use super::*;

    // REQ: SHP-13
    #[test]
    fn no_mark_is_larger_than_the_largest() {
        for n in 0..500_u32 {
            let text = format!("{n} ").repeat(200);
            let cut = Size::of(&cut(&text, 0, 0, "/a/long/path").text);
            let most = max_size("/a/long/path");
            assert!(cut.chars <= most.chars && cut.by_class() <= most.by_class(), "{n}");
        }
    }

    // REQ: SHP-3
    #[test]
    fn mark_names_sizes_and_reference_and_cuts_fall_between_characters() {
        let text = "日本語のテキスト";
        let cut = cut(text, 2, 1, "/store/");
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
}
