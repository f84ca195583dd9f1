//! Reads a text byte by byte and finds the secrets in it.
//!
//! What is found depends on the bytes alone and not on the pieces they come in: each decision is made
//! at a byte, and the end of a piece is none. Work is linear: a byte makes one step of the
//! automaton and at most one of each rule, since a rule follows one beginning at a time.

use super::{
    Patterns,
    automaton::{AutomatonWord, ROOT},
    table::{BLOCK, LABEL, MAX_BLOCK, SecretRule, Shape, TABLE},
};

/// Bytes that are taken out as one at most, where secrets overlap.
const MAX_SPAN: usize = 64 * 1024;

/// The bytes that are at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hay<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the first of them is in the text.
    pub(super) base: usize,
    /// The two bytes in front of that; 0 where there is none.
    pub(super) before: [u8; 2],
}

impl Hay<'_> {
    fn get(&self, from: usize, until: usize) -> &[u8] {
        let place = |it: usize| it.saturating_sub(self.base);
        self.bytes.get(place(from)..place(until)).unwrap_or_default()
    }

    /// Whether a letter or digit is in front of a place. That of an escape is none: in JSON the line
    /// before ends in `\n`.
    fn is_inside_word(&self, at: usize) -> bool {
        // Nothing is given away that may begin anything.
        let Some(place) = at.checked_sub(self.base) else { return true };
        let byte = |n_back: usize| match place.checked_sub(n_back) {
            Some(place) => self.bytes.get(place).copied().unwrap_or_default(),
            None => self.before[(2 + place).saturating_sub(n_back)],
        };
        byte(1).is_ascii_alphanumeric() && byte(2) != b'\\'
    }

    /// Returns the two bytes in front of a place.
    pub(super) fn last_two(&self, n_bytes: usize) -> [u8; 2] {
        match (n_bytes.checked_sub(2), n_bytes) {
            (Some(from), _) => [self.bytes[from], self.bytes[from + 1]],
            (None, 1) => [self.before[1], self.bytes[0]],
            (None, _) => self.before,
        }
    }
}

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchKind {
    /// A value, by its place.
    Value(usize),
    /// The shape of a row, by its place.
    Shape(usize),
}

/// Bytes of the text that are a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: MatchKind,
}

/// A beginning whose rule is followed.
#[derive(Clone, Copy, Debug)]
struct SecretCandidate {
    rule: usize,
    /// Where the rule's beginning ends.
    anchored: usize,
    /// Where the secret begins and ends, as far as it is known.
    start: Option<usize>,
    end: usize,
    part: usize,
    n_bytes: u32,
}

/// What becomes of a candidate at a byte.
enum CandidateStep {
    Goes(SecretCandidate),
    Is(SecretSpan),
    IsNot,
}

/// How far a text was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    node: u32,
    /// Place of the next byte.
    at: usize,
    candidates: Vec<SecretCandidate>,
    /// Secrets that may yet become part of a longer one.
    found: Vec<SecretSpan>,
    /// Where the last span ended that was given out.
    given: usize,
    /// Bytes that rules looked at, over all rules.
    #[cfg(test)]
    pub(super) n_followed: usize,
}

impl Scanner {
    /// Reads the bytes that are new in `hay`. Adds what is decided to `out`, in order.
    pub(super) fn run(&mut self, patterns: &Patterns, hay: Hay<'_>, out: &mut Vec<SecretSpan>) {
        let end = hay.base + hay.bytes.len();
        while self.at < end {
            if self.node == ROOT && self.candidates.is_empty() && self.found.is_empty() {
                let place = self.at - hay.base;
                self.at = hay.base + patterns.prefilter.next_or_end(hay.bytes, place);
            }
            let Some(byte) = hay.bytes.get(self.at - hay.base) else { return };
            self.step(patterns, hay, *byte);
            if !self.found.is_empty() {
                self.give(patterns, false, out);
            }
        }
    }

    /// Ends the text. Of a text that was `cut` off, a beginning counts as a secret.
    pub(super) fn finish(
        &mut self,
        patterns: &Patterns,
        hay: Hay<'_>,
        is_cut: bool,
        out: &mut Vec<SecretSpan>,
    ) {
        for candidate in std::mem::take(&mut self.candidates) {
            let ended = self.complete(candidate, hay).or_else(|| {
                let n_bytes = self.at - candidate.anchored;
                let start = candidate.start.filter(|_| is_cut && super::MIN_VALUE <= n_bytes)?;
                Some(SecretSpan { start, end: self.at, what: MatchKind::Shape(candidate.rule) })
            });
            self.found.extend(ended);
        }
        let n_pending = patterns.automaton.depth(self.node);
        if is_cut && super::MIN_VALUE <= n_pending {
            let start = self.at - n_pending;
            let begins = hay.get(start, self.at);
            let value =
                patterns.values.iter().position(|it| it.value.as_bytes().starts_with(begins));
            let span = |it| SecretSpan { start, end: self.at, what: MatchKind::Value(it) };
            self.found.extend(value.map(span));
        }
        self.node = ROOT;
        self.give(patterns, true, out);
    }

    /// Returns the place of the first byte about which nothing is decided.
    pub(super) fn decided(&self, patterns: &Patterns, hay: Hay<'_>) -> usize {
        let is_inside_word = |n: usize| self.is_inside_word(self.at - n, hay);
        let pending = self.at - patterns.automaton.n_pending(self.node, is_inside_word);
        let starts = self.candidates.iter().filter_map(|it| it.start);
        let found = self.found.iter().map(|it| it.start);
        starts.chain(found).fold(pending, usize::min).max(self.given)
    }

    fn step(&mut self, patterns: &Patterns, hay: Hay<'_>, byte: u8) {
        #[cfg(test)]
        {
            self.n_followed += self.candidates.len();
        }
        let mut left = 0;
        for at in 0..self.candidates.len() {
            match self.follow(self.candidates[at], hay, byte) {
                CandidateStep::Goes(candidate) => {
                    self.candidates[left] = candidate;
                    left += 1;
                }
                CandidateStep::Is(span) => self.found.push(span),
                CandidateStep::IsNot => {}
            }
        }
        self.candidates.truncate(left);
        self.node = patterns.automaton.step(self.node, byte);
        self.at += 1;
        for word in patterns.automaton.words(self.node) {
            match word {
                AutomatonWord::Value(place) => self.value(patterns, place, hay),
                AutomatonWord::Anchor { rule, n_bytes } => self.begin(rule, n_bytes, hay),
            }
        }
    }

    fn value(&mut self, patterns: &Patterns, place: usize, hay: Hay<'_>) {
        let value = patterns.values[place].value.as_bytes();
        let start = self.at - value.len();
        if hay.get(start, self.at) == value {
            let span = SecretSpan { start, end: self.at, what: MatchKind::Value(place) };
            // A value of one letter, over and over, is one span and not one for each byte.
            match self.found.last_mut().filter(|it| it.what == span.what && start <= it.end) {
                Some(last) => last.end = self.at,
                None => self.found.push(span),
            }
        }
    }

    /// Whether a letter or digit is in front of a place that is left there.
    fn is_inside_word(&self, at: usize, hay: Hay<'_>) -> bool {
        let follows_secret = self.given == at || self.found.iter().any(|it| it.end == at);
        hay.is_inside_word(at) && !follows_secret
    }

    fn begin(&mut self, place: usize, n_bytes: usize, hay: Hay<'_>) {
        let (rule, start) = (&TABLE[place], self.at - n_bytes);
        let begins = hay.get(start, self.at);
        let is_exact = rule.any_case || rule.anchors.iter().any(|it| it.as_bytes() == begins);
        let is_inside = rule.at_word && self.is_inside_word(start, hay);
        let is_followed = self.candidates.iter().any(|it| it.rule == place);
        if !is_exact || is_inside || is_followed {
            return;
        }
        let start = rule.with_anchor.then_some(start);
        self.candidates.push(SecretCandidate {
            rule: place,
            anchored: self.at,
            start,
            end: self.at,
            part: 0,
            n_bytes: 0,
        });
    }

    /// What becomes of a candidate at the byte at `self.at`.
    fn follow(&self, mut it: SecretCandidate, hay: Hay<'_>, byte: u8) -> CandidateStep {
        let rule = &TABLE[it.rule];
        let Shape::Parts(parts) = rule.shape else { return self.follow_block(it, hay, byte) };
        while let Some(part) = parts.get(it.part) {
            if part.class.has(byte) {
                if it.n_bytes == part.max {
                    return CandidateStep::IsNot;
                }
                if part.is_secret {
                    it.start.get_or_insert(self.at);
                    it.end = self.at + 1;
                }
                it.n_bytes += 1;
                let is_last = it.part + 1 == parts.len();
                // What only has to follow needs no byte after it.
                return if is_last && !part.is_secret && it.n_bytes == part.max {
                    self.is_secret(it, rule, hay)
                } else {
                    CandidateStep::Goes(it)
                };
            }
            if it.n_bytes < part.min {
                return CandidateStep::IsNot;
            }
            (it.part, it.n_bytes) = (it.part + 1, 0);
        }
        self.is_secret(it, rule, hay)
    }

    /// The same for a block. `part` counts lines of dashes: 1 is that of the end, 2 its second half;
    /// `n_bytes` counts dashes in a row.
    fn follow_block(&self, mut it: SecretCandidate, hay: Hay<'_>, byte: u8) -> CandidateStep {
        /// Dashes of a line that begins or ends a block.
        const DASHES: u32 = 5;
        let is_full = MAX_BLOCK <= self.at - it.anchored && !is_inside_character(byte);
        let may_follow = match it.part {
            0 => BLOCK.has(byte),
            _ => LABEL.has(byte) || byte == b'-',
        };
        if is_full || !may_follow {
            return match self.complete(it, hay) {
                Some(span) => CandidateStep::Is(span),
                None => CandidateStep::IsNot,
            };
        }
        it.n_bytes = if byte == b'-' { it.n_bytes + 1 } else { 0 };
        it.end = self.at + 1;
        if it.n_bytes == DASHES {
            (it.part, it.n_bytes) = (it.part + 1, 0);
        }
        if it.part == 2 {
            self.is_secret(it, &TABLE[it.rule], hay)
        } else {
            CandidateStep::Goes(it)
        }
    }

    /// The secret that a candidate is when no further byte belongs to it.
    fn complete(&self, mut it: SecretCandidate, hay: Hay<'_>) -> Option<SecretSpan> {
        let rule = &TABLE[it.rule];
        match rule.shape {
            Shape::Block => {
                // The white space and the mark of an escape after it are not part of it.
                let bytes = hay.get(it.anchored, it.end);
                let is_edge = |it: &u8| it.is_ascii_whitespace() || *it == b'\\';
                it.end -= bytes.iter().rev().take_while(|it| is_edge(it)).count();
            }
            Shape::Parts(parts) => {
                let (part, rest) = parts.get(it.part..)?.split_first()?;
                if it.n_bytes < part.min || rest.iter().any(|it| 0 < it.min) {
                    return None;
                }
            }
        }
        match self.is_secret(it, rule, hay) {
            CandidateStep::Is(span) => Some(span),
            _ => None,
        }
    }

    fn is_secret(&self, it: SecretCandidate, rule: &SecretRule, hay: Hay<'_>) -> CandidateStep {
        let Some(start) = it.start else { return CandidateStep::IsNot };
        // A sentence may end after it.
        let bytes = hay.get(start, it.end);
        let n_dots = match rule.shape {
            Shape::Parts(_) => bytes.iter().rev().take_while(|it| **it == b'.').count(),
            Shape::Block => 0,
        };
        let end = it.end - n_dots;
        if (rule.check)(hay.get(start.max(it.anchored), end)) {
            CandidateStep::Is(SecretSpan { start, end, what: MatchKind::Shape(it.rule) })
        } else {
            CandidateStep::IsNot
        }
    }

    /// Gives out what nothing can become part of any more. Spans that overlap are one.
    fn give(&mut self, patterns: &Patterns, is_over: bool, out: &mut Vec<SecretSpan>) {
        self.found.sort_by_key(|it| (it.start, it.what));
        while let Some(first) = self.found.first().copied() {
            let mut span = first;
            let mut n_joined = 1;
            while let Some(next) = self.found.get(n_joined).filter(|it| it.start < span.end) {
                span.end = span.end.max(next.end);
                n_joined += 1;
            }
            let is_open = |start: usize| start < span.end;
            let pending = self.at - patterns.automaton.depth(self.node);
            let waits =
                is_open(pending) || self.candidates.iter().any(|it| it.start.is_some_and(is_open));
            if !is_over && waits && span.end - span.start < MAX_SPAN {
                return;
            }
            self.found.drain(..n_joined);
            span.start = span.start.max(self.given);
            if span.start < span.end {
                self.given = span.end;
                out.push(span);
            }
        }
    }
}

/// Whether a byte goes on with a character of UTF-8.
fn is_inside_character(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
