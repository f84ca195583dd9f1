//! Cuts an answer into blocks while it arrives (OUT-3).
//!
//! A block ends at the preferred break as soon as it has `min` characters, and before it has more
//! than `max`: then at the latest preferred break in it, else at the next best one. Where the text
//! is cut depends on the text alone, not on how it came.
//!
//! A fenced block of code is not split: the block before it ends where it begins. If it is larger
//! than `max` by itself, it is split between its lines: the piece is closed with a fence line, and
//! the next one opened again with the line that opened the first, info string included. These two
//! lines are named apart ([`Piece::reopened`], [`Piece::closed`]), so that the texts of all pieces,
//! one after the other, are the answer.
//!
//! Nothing is cut within a grapheme cluster, unless one alone is longer than a block.
//!
//! Linear: each character is looked at once; breaks are queued as they are found and dropped with
//! the block that they are in. A cut moves at most `max` characters, and after one the next break
//! in reach is of a lower kind, so that at most five cuts come from the same `max` characters.

mod breaks;

use serde::Serialize;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::{
    fences::{Fence, Fences},
    policy::Chunking,
};
use breaks::{Breaks, TextPosition};

/// Characters that a block may have at least, whatever the settings say.
const MIN_MAX: usize = 16;

/// A piece of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Piece {
    /// The text. Blanks at which it was cut are at its end.
    pub text: String,
    /// The line that opens the fence again in which the answer was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopened: Option<String>,
    /// The line that closes the fence in which the answer is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

impl Piece {
    /// Returns what a messenger posts: with the fence lines, without blank lines around it.
    pub fn shown(&self) -> String {
        let text = self.text.trim_end();
        let blank = &text[..text.len() - text.trim_start().len()];
        let text = &text[blank.rfind('\n').map_or(0, |it| it + 1)..];
        let lines = [self.reopened.as_deref(), Some(text), self.closed.as_deref()];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self { text, reopened: None, closed: None }
    }
}

/// Cuts one message into chunks while it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunker {
    rule: Chunking,
    pending: String,
    /// Where `pending` begins and ends.
    start: TextPosition,
    end: TextPosition,
    breaks: Breaks,
    fences: Fences,
    /// Where the fence that is open, or may be opening, begins.
    fence_start: TextPosition,
    /// The line that opens the fence again that `pending` begins in.
    reopened: Option<String>,
    /// Blanks alone are not a block; they go with the next one.
    blanks: String,
}

impl Chunker {
    pub(super) fn new(rule: Chunking) -> Self {
        let max = rule.max.max(MIN_MAX);
        let rule = Chunking { min: rule.min.clamp(1, max), max, ..rule };
        Self {
            rule,
            pending: String::new(),
            start: TextPosition::default(),
            end: TextPosition::default(),
            breaks: Breaks::default(),
            fences: Fences::default(),
            fence_start: TextPosition::default(),
            reopened: None,
            blanks: String::new(),
        }
    }

    /// Takes a piece of text; pushes the blocks that are full.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Piece>) {
        for c in text.chars() {
            self.take(c, out);
        }
    }

    /// Pushes what waits, up to the last break, since nothing came for a while; after a sentence all of it. Code that
    /// is not closed goes on waiting.
    pub(super) fn flush(&mut self, out: &mut Vec<Piece>) {
        let place = match self.protected() {
            Some(fence) => fence,
            None if self.breaks.ends_sentence() => self.end,
            None => self.breaks.last().unwrap_or(self.start),
        };
        if self.start.bytes < place.bytes {
            self.cut(place, out);
        }
    }

    /// Pushes what waits, since the text goes on in another block.
    pub(super) fn part(&mut self, out: &mut Vec<Piece>) {
        self.cut(self.end, out);
    }

    /// Pushes what is left, since the text is over. A fence that it left open stays so.
    pub(super) fn finish(mut self, out: &mut Vec<Piece>) {
        let n_before = out.len();
        self.cut(self.end, out);
        for last in &mut out[n_before..] {
            last.closed = None;
        }
    }

    /// Returns whether text is held that no chunk has delivered.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    fn take(&mut self, c: char, out: &mut Vec<Piece>) {
        let in_code = self.protected().is_some();
        let found = self.breaks.before(c, self.end, in_code, self.fence_start);
        self.pending.push(c);
        if !c.is_whitespace() {
            if let Some((kind, place)) = found
                && kind <= self.rule.prefer
                && !in_code
                && self.start.chars + self.rule.min <= place.chars
            {
                self.cut(place, out);
            }
            while self.is_full() {
                let place = self.place_to_cut();
                self.cut(place, out);
            }
        }
        self.fences.push(c.encode_utf8(&mut [0; 4]));
        self.end.bytes += c.len_utf8();
        self.end.chars += 1;
        if c == '\n' && self.fences.inside().is_none() {
            self.fence_start = self.end;
        }
    }

    /// Where code begins that must not be split.
    fn protected(&self) -> Option<TextPosition> {
        let is_code = self.fences.inside().is_some() || self.fences.is_opening();
        is_code.then_some(self.fence_start)
    }

    /// Characters that a piece may have, less the lines that open and close a split fence.
    fn room(&self) -> usize {
        let line = |it: &str| it.chars().count() + 1;
        let before = self.reopened.as_deref().map_or(0, line);
        let after = self.fences.inside().map_or(0, |it| line(&it.closing));
        self.rule.max.saturating_sub(before + after).max(1)
    }

    /// Whether the character that is being taken has no room any more.
    fn is_full(&self) -> bool {
        // The line that is being written may be the one that closes the fence.
        let closing = self.fences.inside().filter(|_| self.fences.may_be_closing());
        let closing = closing.map_or(0, |it| it.closing.chars().count() + 1);
        self.room() + closing < self.end.chars + 1 - self.start.chars
    }

    fn place_to_cut(&self) -> TextPosition {
        match self.protected() {
            Some(fence) if self.start.bytes < fence.bytes => return fence,
            Some(_) => self.breaks.last_line_of_code(self.start.chars + self.room() + 1),
            None => {
                let at_least = self.start.chars + self.rule.min;
                self.breaks.best(self.rule.prefer, at_least).or_else(|| self.breaks.last())
            }
        }
        .filter(|it| self.start.bytes < it.bytes)
        .unwrap_or_else(|| self.hard_break())
    }

    fn hard_break(&self) -> TextPosition {
        let n_bytes = match cut_at(&self.pending, self.room()) {
            0 => self.pending.char_indices().nth(self.room()).map_or(self.pending.len(), |it| it.0),
            n_bytes => n_bytes,
        };
        let n_chars = self.pending[..n_bytes].chars().count();
        TextPosition { bytes: self.start.bytes + n_bytes, chars: self.start.chars + n_chars }
    }

    fn cut(&mut self, place: TextPosition, out: &mut Vec<Piece>) {
        let rest = self.pending.split_off(place.bytes - self.start.bytes);
        let text = std::mem::replace(&mut self.pending, rest);
        self.start = place;
        self.breaks.forget_until(place);
        self.blanks.push_str(&text);
        if text.trim().is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.blanks);
        let split = self.fences.inside().filter(|_| self.fence_start.bytes < place.bytes);
        let opening = split.map(|it| self.opening(it));
        let closed = split.map(|it| it.closing.clone());
        let reopened = std::mem::replace(&mut self.reopened, opening);
        out.push(Piece { text, reopened, closed });
    }

    /// The line that opens a fence again; without its info string where that would leave too
    /// little room.
    fn opening(&self, fence: &Fence) -> String {
        let is_short = fence.opening.chars().count() <= self.rule.max / 3;
        if is_short { fence.opening.clone() } else { fence.closing.clone() }
    }
}

/// Counts the bytes of the first `n_chars` characters, or fewer: up to the end of a grapheme cluster.
pub(super) fn cut_at(text: &str, n_chars: usize) -> usize {
    let Some((at, _)) = text.char_indices().nth(n_chars) else { return text.len() };
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

/// Whether two characters that follow each other may be parted. Only for a first one that joins
/// nothing before it, as blanks and sentence ends.
fn may_part(before: char, after: char) -> bool {
    after.is_ascii() || String::from_iter([before, after]).graphemes(true).count() == 2
}

#[cfg(test)]
mod tests;
