//! A text that comes twice is delivered once: what of it was delivered already?
//!
//! Two questions, because two things repeat. A message that is complete says all of what its
//! deltas held; a block reply repeats the end of it. Both are answered in one pass.

/// Bytes from which on the end of one text and the beginning of the next count as the same words.
/// Shorter ones meet by chance.
const MIN_OVERLAP: usize = 16;

/// Returns the rest of `whole` after `sent`; `None` if that is not how it begins. Line ends that
/// only `whole` has are passed over: a message puts one between its blocks of text.
pub(super) fn rest<'w>(sent: &str, whole: &'w str) -> Option<&'w str> {
    if let Some(rest) = whole.strip_prefix(sent) {
        return Some(rest);
    }
    let (sent, bytes) = (sent.as_bytes(), whole.as_bytes());
    let (mut at, mut n_said) = (0, 0);
    while n_said < sent.len() {
        match bytes.get(at)? {
            byte if *byte == sent[n_said] => n_said += 1,
            b'\n' => {}
            _ => return None,
        }
        at += 1;
    }
    // The delivered text is whole characters, and so is what equals it.
    whole.get(at..)
}

/// Returns what `block` adds to the end of `sent`: all of it, if it does not begin with that
/// end. An overlap is the whole block, all of `sent`, or [`MIN_OVERLAP`] bytes at least.
pub(super) fn beyond<'b>(sent: &str, block: &'b str) -> &'b str {
    let n_same = overlap(sent.as_bytes(), block.as_bytes());
    let is_all = n_same == sent.len() || n_same == block.len();
    if is_all || MIN_OVERLAP <= n_same { block.get(n_same..).unwrap_or(block) } else { block }
}

/// Bytes of the longest end of `sent` that `block` begins with (Knuth, Morris and Pratt).
fn overlap(sent: &[u8], block: &[u8]) -> usize {
    let sent = &sent[sent.len().saturating_sub(block.len())..];
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
    for byte in sent {
        // No more can be the same: the end of `sent` is no longer than the block.
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
        for (sent, whole, expected) in [
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
            assert_eq!(rest(sent, whole), expected, "{sent:?} {whole:?}");
        }
    }

    // REQ: OUT-3
    #[test]
    fn block_adds_what_is_not_the_end_of_what_was_said() {
        for (sent, block, expected) in [
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
            assert_eq!(beyond(sent, block), expected, "{sent:?} {block:?}");
        }
    }

    proptest! {
        // REQ: OUT-3
        #[test]
        fn overlap_is_the_longest_one(sent in "[ab]{0,12}", block in "[ab]{0,12}") {
            let naive = (0..=sent.len().min(block.len()))
                .rev()
                .find(|n| sent[sent.len() - n..] == block[..*n]);
            prop_assert_eq!(Some(overlap(sent.as_bytes(), block.as_bytes())), naive);
        }
    }
}
