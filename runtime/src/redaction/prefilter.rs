//! Passes quickly over text in which no pattern begins.
//!
//! The first step of the algorithm of Wu and Manber ("A fast algorithm for multi-pattern searching",
//! 1994): two bytes of a window say how far the next pattern is at least. Texts that somebody cut off are
//! asked for the patterns themselves; whole ones, by [`super::sieve`].

use super::{MIN_VALUE, SecretValue, table::TABLE};

/// Bytes of a pattern that are looked at; none is shorter.
const WINDOW: usize = 3;

/// Places of the tables: pairs of bytes fall into these.
const PLACES: usize = 1 << BITS;
const BITS: u32 = 12;

/// What a place holds in addition to the step when a pattern begins with its pair.
const BEGINS: u8 = 4;

/// The longest step: no pattern has the pair in its window.
const FAR: u8 = 2;

/// Patterns with the same first bytes that are looked at one by one.
const MAX_ALIKE: usize = 16;

/// The steps that may be made, and the pairs that a pattern begins with.
#[derive(Debug)]
pub(super) struct Prefilter {
    places: Box<[u8; PLACES]>,
    /// A bit for each window that a word may begin with.
    windows: Box<[u64; PLACES / 64]>,
    /// The patterns by their first bytes, in small letters, and whether they are of any case.
    words: Vec<([u8; WINDOW], Box<[u8]>, bool)>,
}

const _: () = assert!(WINDOW <= MIN_VALUE);

/// Where a pair is. Multiplied by an odd number, the upper bits differ for pairs of letters that are alike.
#[inline]
fn place(pair: [u8; 2]) -> usize {
    const SPREAD: u16 = 0x6d2b;
    usize::from(u16::from_le_bytes(pair).wrapping_mul(SPREAD) >> (16 - BITS))
}

/// The word and the bit of a window in small letters.
fn bit(window: [u8; WINDOW]) -> (usize, u64) {
    const SPREAD: u32 = 0x9e37_79b1;
    let [first, second, third] = window;
    let hash = u32::from_le_bytes([first, second, third, 0]).wrapping_mul(SPREAD) >> (32 - BITS);
    (hash as usize / 64, 1 << (hash % 64))
}

impl Prefilter {
    pub(super) fn new(values: &[SecretValue]) -> Self {
        let mut filter = Self {
            places: Box::new([FAR; PLACES]),
            windows: Box::new([0; PLACES / 64]),
            words: Vec::new(),
        };
        for rule in TABLE {
            for anchor in rule.anchors {
                filter.add(anchor.as_bytes(), rule.any_case);
            }
        }
        values.iter().for_each(|it| filter.add(it.value.as_bytes(), false));
        filter.words.sort();
        filter
    }

    fn add(&mut self, pattern: &[u8], any_case: bool) {
        let Some(window) = pattern.first_chunk::<WINDOW>() else { return };
        let small = window.map(|it| it.to_ascii_lowercase());
        self.words.push((small, pattern.into(), any_case));
        let (word, bit) = bit(small);
        self.windows[word] |= bit;
        let cases = |byte: u8| {
            if any_case {
                [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]
            } else {
                [byte; 2]
            }
        };
        for first in cases(window[0]) {
            for second in cases(window[1]) {
                let begin = &mut self.places[place([first, second])];
                *begin = BEGINS | (*begin & !BEGINS).min(1);
                for third in cases(window[2]) {
                    self.places[place([second, third])] &= BEGINS;
                }
            }
        }
    }

    /// Returns the first place from `at` on at which a pattern may begin, whole or cut off by the end; the length if
    /// there is none.
    ///
    /// The last two bytes are always such places: what follows them is not known.
    pub(super) fn next_or_end(&self, bytes: &[u8], at: usize) -> usize {
        let mut at = at;
        loop {
            // The ends of windows that are far from any pattern are pairs next to one another.
            let (ends, _) = bytes.get(at + 1..).unwrap_or_default().as_chunks::<2>();
            let n_far = ends.iter().position(|it| self.places[place(*it)] != FAR);
            at += 2 * n_far.unwrap_or(ends.len());
            let Some(&[first, second, third]) = bytes.get(at..).and_then(|it| it.first_chunk())
            else {
                return at.min(bytes.len());
            };
            match self.places[place([second, third])] & !BEGINS {
                0 if self.places[place([first, second])] & BEGINS != 0 => return at,
                _ => at += 1,
            }
        }
    }

    /// Returns the first place from `at` on at which a pattern is, whole or cut off by the end; the length if there is
    /// none.
    pub(super) fn next(&self, bytes: &[u8], at: usize) -> usize {
        let mut at = at;
        loop {
            at = self.next_or_end(bytes, at);
            match bytes.get(at..).and_then(|it| it.first_chunk::<WINDOW>()) {
                None => return bytes.len(),
                Some(window) if self.is_pattern(window, &bytes[at..]) => return at,
                Some(_) => at += 1,
            }
        }
    }

    fn is_pattern(&self, window: &[u8; WINDOW], rest: &[u8]) -> bool {
        let window = window.map(|it| it.to_ascii_lowercase());
        let (word, bit) = bit(window);
        if self.windows[word] & bit == 0 {
            return false;
        }
        let from = self.words.partition_point(|it| it.0 < window);
        let same = self.words[from..].iter().take_while(|it| it.0 == window);
        // Of a great many that are alike none is looked at: one of them is taken to be there.
        same.enumerate().any(|(n_before, (_, pattern, any_case))| {
            if n_before == MAX_ALIKE {
                return true;
            }
            let n_bytes = pattern.len().min(rest.len());
            let (pattern, text) = (&pattern[..n_bytes], &rest[..n_bytes]);
            if *any_case { pattern.eq_ignore_ascii_case(text) } else { pattern == text }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(values: &[&str]) -> Prefilter {
        let value = |it: &&str| SecretValue { is_credential: false, value: (*it).into() };
        Prefilter::new(&values.iter().map(value).collect::<Vec<_>>())
    }

    // REQ: SES-8
    #[test]
    fn lines_of_a_transcript_without_secrets_are_passed_over() {
        let filter = filter(&["hunter2-hunter2"]);
        for line in [
            r#"{"type":"ennead","kind":"shapers_passed","v":2,"at":1795383319724,"turn":1}"#,
            r#"{"type":"assistant","message":{"usage":{"input_tokens":7,"output_tokens":3}}}"#,
            r#"{"kind":"model_attempt","request":"8f0cd3a94f0e770b7e55c261d4a8b061"}"#,
            r#"{"sessionId":"5f1c0000-0000-4000-8000-000000000001","cwd":"/home/dev/hunting"}"#,
        ] {
            assert_eq!(filter.next(line.as_bytes(), 0), line.len(), "{line}");
        }
    }

    // REQ: SES-8
    #[test]
    fn text_of_words_is_passed_over_nearly_two_bytes_at_a_time() {
        let filter = filter(&["hunter2-hunter2"]);
        let line = r#"{"type":"ennead","kind":"turn_step","v":2,"at":1795421733212,"turn":3,"number":5,"step":"model_call"}"#;
        let is_far = |it: &[u8]| filter.places[place([it[0], it[1]])] == FAR;
        let n_far = line.as_bytes().windows(2).filter(|it| is_far(it)).count();
        assert!(line.len() * 9 / 10 < n_far, "{n_far} of {}", line.len());
    }

    proptest! {
        // REQ: SES-8
        #[test]
        fn first_place_of_a_pattern_is_found_whatever_is_around_it(
            before in "[a-zA-Z_\\-0-9]{0,40}", after in "[a-z ]{0,9}", pick in any::<prop::sample::Index>(),
            cut in 3..40_usize, shout in any::<bool>(),
        ) {
            let filter = filter(&["hunter2-hunter2", "Hunger-and-thirst"]);
            let (_, pattern, any_case) = &filter.words[pick.index(filter.words.len())];
            let mut word = pattern.to_vec();
            if shout && *any_case {
                word.make_ascii_uppercase();
            }
            let whole = [before.as_bytes(), &word, after.as_bytes()].concat();
            prop_assert!(filter.next(&whole, 0) <= before.len());
            // The end of the text may have cut it off.
            let end = before.len() + cut.min(word.len());
            prop_assert!(filter.next(&whole[..end], 0) <= before.len());
        }
    }
}
