//! Says quickly of most texts that no pattern is in them.
//!
//! Of each pattern three bytes next to one another are chosen, those that are rarest in transcripts. Every
//! second pair of bytes of a text is looked up, since any three bytes hold one of those pairs; where a pair
//! is one of a pattern the patterns themselves are compared. Nothing is asked about the order of what
//! is found, which leaves the choice of the bytes; where a pattern begins is for [`super::prefilter`].

use super::{SecretValue, table::TABLE};

/// Bytes of a pattern that are looked at; none is shorter.
const WINDOW: usize = 3;

/// Places of pairs: seven bits of each byte.
const PAIRS: usize = 1 << 14;

/// Bytes that are looked at in one step.
const CHUNK: usize = 8;

/// Places of three bytes.
const WINDOWS: usize = 1 << 12;

/// Patterns with the same bytes that are compared one by one.
const MAX_ALIKE: usize = 16;

/// What is common in transcripts. It decides how fast texts are passed over and never what is found.
const COMMON: &str = r#"{"type":"ennead","kind":"turn_step","v":2,"at":1795630948645,"run":"01a213f1-e06b-753c-acfc-d68446e242ff",
"turn":1,"number":6,"step":"tool_dispatch","detail":{"calls":1,"refused":0},"permission","decision","allowed","reason",
"model_attempt","purpose","streamed","request","request_bytes","outcome","usage":{"input_tokens":390,
"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":18},"first_token_ms":91,"duration_ms":106,
"assistant","uuid":"01a213f1-e120-7af8-b4c4-bc044a316b8b","parentUuid","sessionId","timestamp":"2026-11-25T18:22:28.640Z",
"cwd":"/home/user/projects/app","version":"0.1.0","isSidechain":false,"userType":"external","message":{"role":"user",
"content":[{"type":"tool_result","tool_use_id":"call_164_0"}]},"sourceToolAssistantUUID","stop_reason":"end_turn",
the of and to in that is was for it with as his on be at by this had not are but from or have an they which one you were
all her she there would their we him been has when who will no more if out so up said what its about than into them can only
other time new some could these two may first then do any like my now over such our man me even most made after also did many
off before must well back through years where much your way down should because long each just state people those too mister
content context events environment agent prompt description parameters properties directory instructions effects sessions
tokens jumps over the lazy dog brown fox benchmark 2026-11-25 1795 29 rules sizes texts options layers warnings settings
file line error test function return value string number list path read write run build change check import let pub use fn"#;

/// A pattern by the bytes that were chosen of it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SievePattern {
    /// The bytes, in small letters.
    window: [u8; WINDOW],
    /// Where in the pattern they are.
    offset: usize,
    pattern: Box<[u8]>,
    any_case: bool,
}

/// The pairs of bytes that are looked for, and the patterns that they are of.
#[derive(Debug)]
pub(super) struct Sieve {
    pairs: Box<[u8; PAIRS]>,
    /// A bit for each of the three bytes that were chosen, all of them in one case.
    windows: Box<[u64; WINDOWS / 64]>,
    /// Sorted by the bytes that were chosen.
    words: Vec<SievePattern>,
}

/// Where a pair is, if it is the low half of two bytes in order.
#[inline]
fn place(pair: u64) -> usize {
    (pair & 0x3fff) as usize
}

/// The places of four pairs, 16 bits apart: of each byte the upper bit is left out.
#[inline]
fn places(bytes: [u8; CHUNK]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1)
}

/// The word and the bit of three bytes in whatever case.
#[inline]
fn bit([first, second, third]: [u8; WINDOW]) -> (usize, u64) {
    const SPREAD: u32 = 0x9e37_79b1;
    let one_case = u32::from_le_bytes([first, second, third, 0]) | 0x0020_2020;
    let hash = one_case.wrapping_mul(SPREAD) >> (u32::BITS - WINDOWS.ilog2());
    (hash as usize / 64, 1 << (hash % 64))
}

fn place_of(first: u8, second: u8) -> usize {
    place(places([first, second, 0, 0, 0, 0, 0, 0]))
}

/// The cases that a byte of a pattern may have.
fn cases(byte: u8, any_case: bool) -> [u8; 2] {
    if any_case { [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { [byte; 2] }
}

/// The places of the pairs of a window, in all cases.
fn pairs_of(window: &[u8], any_case: bool) -> impl Iterator<Item = usize> {
    window.windows(2).flat_map(move |pair| {
        let seconds = cases(pair[1], any_case);
        let of_first = move |first| seconds.map(|second| place_of(first, second));
        cases(pair[0], any_case).into_iter().flat_map(of_first)
    })
}

impl Sieve {
    pub(super) fn new(values: &[SecretValue]) -> Self {
        let mut common = vec![0_u32; PAIRS];
        for pair in COMMON.as_bytes().windows(2) {
            common[place_of(pair[0], pair[1])] += 1;
        }
        let (pairs, windows) = (Box::new([0; PAIRS]), Box::new([0; WINDOWS / 64]));
        let mut sieve = Self { pairs, windows, words: Vec::new() };
        for rule in TABLE {
            for anchor in rule.anchors {
                sieve.add(anchor.as_bytes(), rule.any_case, &common);
            }
        }
        values.iter().for_each(|it| sieve.add(it.value.as_bytes(), false, &common));
        sieve.words.sort();
        sieve
    }

    fn add(&mut self, pattern: &[u8], any_case: bool, common: &[u32]) {
        let how_common =
            |window: &[u8]| -> u32 { pairs_of(window, any_case).map(|it| common[it]).sum() };
        let rarest = pattern.windows(WINDOW).enumerate().min_by_key(|it| how_common(it.1));
        let Some((offset, Some(window))) = rarest.map(|it| (it.0, it.1.first_chunk::<WINDOW>()))
        else {
            return;
        };
        pairs_of(window, any_case).for_each(|it| self.pairs[it] = 1);
        let window = window.map(|it| it.to_ascii_lowercase());
        let (word, bit) = bit(window);
        self.windows[word] |= bit;
        self.words.push(SievePattern { window, offset, pattern: pattern.into(), any_case });
    }

    /// Returns whether a pattern is in the text as a whole. Of a great many that are alike one is assumed to be there.
    pub(super) fn holds_any(&self, bytes: &[u8]) -> bool {
        let Some(last) = bytes.last_chunk::<CHUNK>() else {
            return (0..bytes.len()).any(|it| self.is_around(bytes, it));
        };
        let (chunks, _) = bytes.as_chunks::<CHUNK>();
        for (n_before, chunk) in chunks.iter().enumerate() {
            let places = places(*chunk);
            if self.has_pair(places) && self.is_at(bytes, CHUNK * n_before, places) {
                return true;
            }
        }
        // Three bytes that reach beyond the last whole chunk lie in the last bytes.
        let places = places(*last);
        self.has_pair(places) && self.is_at(bytes, bytes.len() - CHUNK, places)
    }

    /// Whether one of four pairs is that of a pattern.
    #[inline]
    fn has_pair(&self, places: u64) -> bool {
        let any = self.pairs[place(places)]
            | self.pairs[place(places >> 16)]
            | self.pairs[place(places >> 32)]
            | self.pairs[place(places >> 48)];
        any != 0
    }

    /// Whether there is a pattern with one of these pairs, which are next to one another from this place on.
    fn is_at(&self, bytes: &[u8], at: usize, mut places: u64) -> bool {
        // The byte before, those of the pairs, and the one after; other places where the text begins or ends.
        let around = at.checked_sub(1).and_then(|it| bytes.get(it..)?.first_chunk::<10>());
        for n in 0..4 {
            let is_of_pattern = self.pairs[place(places)] != 0;
            places >>= 16;
            if !is_of_pattern {
                continue;
            }
            let Some([a, b, c, d]) = around.and_then(|it| it.get(2 * n..)?.first_chunk::<4>())
            else {
                let at = at + 2 * n;
                if self.is_around(bytes, at) || (0 < at && self.is_around(bytes, at - 1)) {
                    return true;
                }
                continue;
            };
            if (self.may_be([*a, *b, *c]) && self.is_around(bytes, at + 2 * n - 1))
                || (self.may_be([*b, *c, *d]) && self.is_around(bytes, at + 2 * n))
            {
                return true;
            }
        }
        false
    }

    /// Whether three bytes may be those of a pattern.
    #[inline]
    fn may_be(&self, window: [u8; WINDOW]) -> bool {
        let (word, bit) = bit(window);
        self.windows[word] & bit != 0
    }

    /// Whether the three bytes from `at` on are those of a pattern, and the others are around them.
    fn is_around(&self, bytes: &[u8], at: usize) -> bool {
        let Some(&[first, second, third]) = bytes.get(at..at + WINDOW) else { return false };
        let window = [first, second, third];
        self.may_be(window) && self.is_whole(bytes, at, window)
    }

    fn is_whole(&self, bytes: &[u8], at: usize, window: [u8; WINDOW]) -> bool {
        let window = window.map(|it| it.to_ascii_lowercase());
        let from = self.words.partition_point(|it| it.window < window);
        let alike = self.words[from..].iter().take_while(|it| it.window == window);
        alike.enumerate().any(|(n_before, word)| {
            let start = at.checked_sub(word.offset);
            let there = start.and_then(|it| bytes.get(it..it + word.pattern.len()));
            n_before == MAX_ALIKE
                || there.is_some_and(|it| {
                    if word.any_case {
                        it.eq_ignore_ascii_case(&word.pattern)
                    } else {
                        it == &*word.pattern
                    }
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sieve(values: &[&str]) -> Sieve {
        let value = |it: &&str| SecretValue { is_credential: false, value: (*it).into() };
        Sieve::new(&values.iter().map(value).collect::<Vec<_>>())
    }

    // REQ: SES-8
    #[test]
    fn pairs_of_patterns_are_rare_in_lines_without_secrets() {
        let sieve = sieve(&["hunter2-hunter2"]);
        let line = r#"{"type":"ennead","kind":"model_attempt","v":2,"at":1795421733212,"turn":3,"attempt":1,"outcome":"ok"}"#;
        let is_found = |it: &&[u8]| sieve.pairs[place_of(it[0], it[1])] != 0;
        let n_found = line.as_bytes().windows(2).filter(is_found).count();
        assert!(n_found * 25 < line.len(), "{n_found} of {}", line.len());
        assert!(!sieve.holds_any(line.as_bytes()));
    }

    proptest! {
        // REQ: SES-8
        #[test]
        fn pattern_is_found_wherever_it_is(
            before in "[a-zA-Z_\\-0-9é]{0,40}", after in "[a-z ]{0,19}", pick in any::<prop::sample::Index>(),
            shout in any::<bool>(),
        ) {
            let sieve = sieve(&["hunter2-hunter2", "Hunger-and-thirst", "päßword-of-old"]);
            let SievePattern { pattern, any_case, .. } = &sieve.words[pick.index(sieve.words.len())];
            let mut word = pattern.to_vec();
            if shout && *any_case {
                word.make_ascii_uppercase();
            }
            let whole = [before.as_bytes(), &word, after.as_bytes()].concat();
            prop_assert!(sieve.holds_any(&whole));
        }

        // REQ: SES-8
        #[test]
        fn text_is_asked_as_if_each_pattern_were_looked_for(text in "([a-z]{1,6}|[ -~]{1,4}|sk-|ey|yJ|://|api-key|AKIA|é){0,30}") {
            let sieve = sieve(&[]);
            let is_there = sieve.words.iter().any(|it| {
                text.as_bytes().windows(it.pattern.len()).any(|part| {
                    if it.any_case { part.eq_ignore_ascii_case(&it.pattern) } else { part == &*it.pattern }
                })
            });
            prop_assert_eq!(sieve.holds_any(text.as_bytes()), is_there);
        }
    }
}
