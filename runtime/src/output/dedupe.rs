//! A text that comes twice is delivered once: what of it was delivered already?
//!
//! Two questions, because two things repeat. A message that is complete says all of what its
//! deltas held; a block reply repeats the end of it. Both are answered in one pass.

/// Bytes from which on the end of one text and the beginning of the next count as the same words.
/// Shorter ones meet by chance.
const MIN_OVERLAP: usize = 16;

/// Returns the rest of `whole` after `said`; `None` if that is not how it begins. Line ends that
/// only `whole` has are passed over: a message puts one between its blocks of text.
pub(super) fn rest<'w>(said: &str, whole: &'w str) -> Option<&'w str> {
    if let Some(rest) = whole.strip_prefix(said) {
        return Some(rest);
    }
    let (said, bytes) = (said.as_bytes(), whole.as_bytes());
    let (mut at, mut n_said) = (0, 0);
    while n_said < said.len() {
        match bytes.get(at)? {
            byte if *byte == said[n_said] => n_said += 1,
            b'\n' => {}
            _ => return None,
        }
        at += 1;
    }
    // The delivered text is whole characters, and so is what equals it.
    whole.get(at..)
}

/// Returns what `block` adds to the end of `said`: all of it, if it does not begin with that
/// end. An overlap is the whole block, all of `said`, or [`MIN_OVERLAP`] bytes at least.
pub(super) fn beyond<'b>(said: &str, block: &'b str) -> &'b str {
    let n_same = overlap(said.as_bytes(), block.as_bytes());
    let is_all = n_same == said.len() || n_same == block.len();
    if is_all || MIN_OVERLAP <= n_same { block.get(n_same..).unwrap_or(block) } else { block }
}

/// Bytes of the longest end of `said` that `block` begins with (Knuth, Morris and Pratt).
fn overlap(said: &[u8], block: &[u8]) -> usize {
    let said = &said[said.len().saturating_sub(block.len())..];
    let mut shorter = vec![0_usize; block.len()];
    let mut n_same = 0;
    for at in 1..block.len() {
        while 0 < n_same && block[at] != block[n_same] {
            n_same = shorter[n_same - 1];
        }
        n_same += usize::from(block[at] == block[n_same]);
        shorter[at] = n_same;
    }
    n_same = 0;
    for byte in said {
        // No more can be the same: the end of `said` is no longer than the block.
        while 0 < n_same && block.get(n_same) != Some(byte) {
            n_same = shorter[n_same - 1];
        }
        n_same += usize::from(block.get(n_same) == Some(byte));
    }
    n_same
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // REQ: OUT-3
    #[test]
    fn whole_message_adds_what_its_deltas_did_not_say() {
        for (said, whole, expected) in [
            ("", "abc", Some("abc")),
            ("ab", "abc", Some("c")),
            ("abc", "abc", Some("")),
            ("ab", "a\nb\nc", Some("\nc")),
            ("a\nb", "a\n\nb", Some("")),
            ("aé", "a\néü", Some("ü")),
            ("abd", "abc", None),
            ("abcd", "abc", None),
            ("é", "è", None),
            ("bc", "abc", None),
        ] {
            assert_eq!(rest(said, whole), expected, "{said:?} {whole:?}");
        }
    }

    // REQ: OUT-3
    #[test]
    fn block_adds_what_is_not_the_end_of_what_was_said() {
        for (said, block, expected) in [
            ("", "hello", "hello"),
            ("hello", "hello", ""),
            ("hel", "hello", "lo"),
            ("and then hello", "hello", ""),
            ("one sentence. And another, too", "And another, too, longer.", ", longer."),
            ("the end of this is a t", "table", "table"),
            ("abab", "ababab", "ab"),
            ("hello there", "world", "world"),
            ("xé", "éy", "éy"),
        ] {
            assert_eq!(beyond(said, block), expected, "{said:?} {block:?}");
        }
    }

    proptest! {
        // REQ: OUT-3
        #[test]
        fn overlap_is_the_longest_one(said in "[ab]{0,12}", block in "[ab]{0,12}") {
            let naive = (0..=said.len().min(block.len()))
                .rev()
                .find(|n| said[said.len() - n..] == block[..*n]);
            prop_assert_eq!(Some(overlap(said.as_bytes(), block.as_bytes())), naive);
        }
    }
}
