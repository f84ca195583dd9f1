//! What makes the text that was redacted of the one that was written.

use serde::{Deserialize, Serialize};

use crate::redaction::placeholders;

/// Replacements in a text: what was there before secrets were taken out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct TextPatch(Vec<Replacement>);

/// A part of the written text, by its place and its length in bytes, and the text that it replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Replacement(usize, usize, String);

impl TextPatch {
    /// Returns what makes `original` of `written`. Mostly that is a replacement for each placeholder; where the texts
    /// differ in other ways, all between their common beginning and end is replaced. Work is linear in both.
    pub(super) fn between(written: &str, original: &str) -> Self {
        if written == original {
            return Self::default();
        }
        Self::of_placeholders(written, original).unwrap_or_else(|| Self::whole(written, original))
    }

    /// Replaces placeholders alone. What is between two of them is looked for in the original after what was found
    /// there; `None` where it is not there. A placeholder that was in the original replaces itself.
    fn of_placeholders(written: &str, original: &str) -> Option<Self> {
        let mut found = placeholders(written)
            .map(|(at, it)| (at, it.to_string().len()))
            .filter(|(at, len)| written.get(*at..at + len).is_some())
            .peekable();
        let (first, _) = *found.peek()?;
        let mut taken = original.starts_with(written.get(..first)?).then_some(first)?;
        let mut replacements = Vec::new();
        while let Some((at, len)) = found.next() {
            let rest = original.get(taken..)?;
            let secret = match found.peek() {
                Some((next, _)) => {
                    let gap = written.get(at + len..*next)?;
                    let at = memchr::memmem::find(rest.as_bytes(), gap.as_bytes())?;
                    taken += at + gap.len();
                    rest.get(..at)?
                }
                None => rest.strip_suffix(written.get(at + len..)?)?,
            };
            replacements.push(Replacement(at, len, secret.to_owned()));
        }
        Some(Self(replacements))
    }

    /// Replaces all between the common beginning and the common end.
    fn whole(written: &str, original: &str) -> Self {
        let same = |(left, right): &(char, char)| left == right;
        let len = |(it, _): (char, char)| it.len_utf8();
        let start: usize = written.chars().zip(original.chars()).take_while(same).map(len).sum();
        let (rest, before) = (&written[start..], &original[start..]);
        let end: usize =
            rest.chars().rev().zip(before.chars().rev()).take_while(same).map(len).sum();
        let middle = &before[..before.len() - end];
        Self(vec![Replacement(start, rest.len() - end, middle.to_owned())])
    }

    /// Returns the text before it was redacted; `None` where this is not of that text.
    pub(super) fn applied(&self, written: &str) -> Option<String> {
        let (mut out, mut taken) = (String::with_capacity(written.len()), 0_usize);
        for Replacement(at, len, text) in &self.0 {
            out.push_str(written.get(taken..*at)?);
            out.push_str(text);
            taken = at.checked_add(*len)?;
        }
        out.push_str(written.get(taken..)?);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patch(replacements: &[(usize, usize, &str)]) -> TextPatch {
        let of = |(at, len, text): &(usize, usize, &str)| Replacement(*at, *len, (*text).into());
        TextPatch(replacements.iter().map(of).collect())
    }

    // REQ: SES-8
    #[test]
    fn secrets_alone_are_kept() {
        let written = "a [secret:jwt:1] b [secret:variable] c";
        let found = TextPatch::between(written, "a ONE b TWO c");
        assert_eq!(found, patch(&[(2, 14, "ONE"), (19, 17, "TWO")]));
        assert_eq!(TextPatch::between("same", "same"), TextPatch::default());
    }

    // REQ: SES-8
    #[test]
    fn texts_that_differ_elsewhere_are_restored_as_well() {
        for (written, original) in [
            ("x [secret:jwt:1] \\u0041", "y ONE A"),
            ("[secret:jwt:1]", ""),
            ("", "all of it"),
            ("\u{e4}b", "\u{e4}\u{e4}b"),
            ("aaa", "aa"),
            ("a [secret:jwt:1] b [secret:jwt:2] c", "a b ONE b TWO c"),
        ] {
            let found = TextPatch::between(written, original);
            assert_eq!(found.applied(written).as_deref(), Some(original), "{written}");
        }
    }

    // REQ: SES-8
    #[test]
    fn patch_of_another_text_is_not_applied() {
        for wrong in [
            &[(5, 1, "x")][..],
            &[(3, usize::MAX, "x")],
            &[(2, 1, "x"), (1, 1, "x")],
            &[(1, 1, "x")],
        ] {
            assert_eq!(patch(wrong).applied("a\u{e4}b"), None, "{wrong:?}");
        }
    }

    /// Pieces of a text as it was received, and as it is written.
    fn pieces() -> impl Strategy<Value = Vec<(String, String)>> {
        let same = prop_oneof![
            "[a-c \u{e4}\"]{0,6}",
            // What a tool printed that was shown one.
            Just("[secret:jwt:1]".to_owned()),
            Just("[secret:".to_owned()),
        ];
        let piece = prop_oneof![
            same.prop_map(|it| (it.clone(), it)),
            ("[a-c \u{e4}\\]]{0,9}", 1..4)
                .prop_map(|(secret, n)| (secret, format!("[secret:jwt:{n}]"))),
            ("[a-c]{0,3}", "[a-c]{0,3}"),
        ];
        proptest::collection::vec(piece, 0..12)
    }

    proptest! {
        // REQ: SES-8
        #[test]
        fn every_text_is_restored_exactly(pieces in pieces()) {
            let original: String = pieces.iter().map(|it| &*it.0).collect();
            let written: String = pieces.iter().map(|it| &*it.1).collect();
            let found = TextPatch::between(&written, &original);
            prop_assert_eq!(found.applied(&written), Some(original));
            let json = serde_json::to_string(&found).unwrap();
            prop_assert_eq!(serde_json::from_str::<TextPatch>(&json).unwrap(), found);
        }
    }
}
