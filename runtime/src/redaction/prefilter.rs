//! Passes quickly over text in which no pattern begins.
//!
//! The first step of the algorithm of Wu and Manber ("A fast algorithm for multi-pattern searching",
//! 1994): two bytes of a window say how far the next pattern is at least.

use super::{MIN_VALUE, SecretValue, table::TABLE};

/// Bytes of a pattern that are looked at; none is shorter.
const WINDOW: usize = 3;

/// Places of the tables: pairs of bytes fall into these.
const PLACES: usize = 4096;

/// The steps that may be made, and the pairs that a pattern begins with.
#[derive(Debug)]
pub(super) struct Prefilter {
    steps: Box<[u8; PLACES]>,
    begins: Box<[bool; PLACES]>,
}

const _: () = assert!(WINDOW <= MIN_VALUE);

fn place(first: u8, second: u8) -> usize {
    (usize::from(first) << 4 ^ usize::from(second)) % PLACES
}

impl Prefilter {
    pub(super) fn new(values: &[SecretValue]) -> Self {
        let mut filter = Self { steps: Box::new([2; PLACES]), begins: Box::new([false; PLACES]) };
        for rule in TABLE {
            for anchor in rule.anchors {
                filter.add(anchor.as_bytes(), rule.any_case);
            }
        }
        values.iter().for_each(|it| filter.add(it.value.as_bytes(), false));
        filter
    }

    fn add(&mut self, pattern: &[u8], any_case: bool) {
        let Some(window) = pattern.get(..WINDOW) else { return };
        let cases = |byte: u8| match any_case {
            true => [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()],
            false => [byte; 2],
        };
        for first in cases(window[0]) {
            for second in cases(window[1]) {
                let begin = place(first, second);
                self.begins[begin] = true;
                self.steps[begin] = self.steps[begin].min(1);
                for third in cases(window[2]) {
                    self.steps[place(second, third)] = 0;
                }
            }
        }
    }

    /// The first place from `at` on at which a pattern may begin, whole or cut off by the end; the
    /// length if there is none.
    ///
    /// The last two bytes are always such places: what follows them is not known.
    pub(super) fn next_or_end(&self, bytes: &[u8], at: usize) -> usize {
        let mut at = at;
        while let Some(&[first, second, third]) =
            bytes.get(at..at + WINDOW).and_then(|it| <&[u8; WINDOW]>::try_from(it).ok())
        {
            match self.steps[place(second, third)] {
                0 if self.begins[place(first, second)] => return at,
                step => at += usize::from(step.max(1)),
            }
        }
        at.min(bytes.len())
    }

    /// The first place at which a whole pattern may begin; the length if there is none.
    pub(super) fn next(&self, bytes: &[u8], at: usize) -> usize {
        let next = self.next_or_end(bytes, at);
        if bytes.len() < next + WINDOW { bytes.len() } else { next }
    }
}
