//! Where a text may be cut: found as it arrives, queued, best kind first.

use std::collections::VecDeque;

use super::may_part;
use crate::output::policy::Break;

/// Kinds of break other than those that can be preferred: a blank between words.
const N_KINDS: usize = 4;

/// A place between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextPosition {
    /// Bytes of the message before it.
    pub(super) bytes: usize,
    /// Characters of the message before it.
    pub(super) chars: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaks {
    /// Per kind, the places of this kind or a better one, in order.
    queues: [VecDeque<TextPosition>; N_KINDS],
    /// Starts of lines of code, the line after the opening one left out.
    lines_of_code: VecDeque<TextPosition>,
    last: Option<char>,
    /// Line ends in the blanks at the end, and the place after the last of them.
    n_lines: usize,
    line: TextPosition,
    /// The text before those blanks ended a sentence.
    ends_sentence: bool,
    /// The line of code before this one is the opening one.
    lines_in_code: usize,
}

impl Breaks {
    /// Takes the next character, which is at `end`, and says what break is before it. `in_code`
    /// is whether what comes before it is in a fence, `fence` where that begins.
    pub(super) fn before(
        &mut self,
        c: char,
        end: TextPosition,
        in_code: bool,
        fence: TextPosition,
    ) -> Option<(Break, TextPosition)> {
        let last = self.last.replace(c);
        if last == Some('\n') {
            self.n_lines += 1;
            self.line = end;
            self.lines_in_code = if in_code { self.lines_in_code + 1 } else { 0 };
            if 2 <= self.lines_in_code && fence.bytes < end.bytes {
                self.lines_of_code.push_back(end);
            }
        }
        if c.is_whitespace() {
            return None;
        }
        let n_lines = std::mem::take(&mut self.n_lines);
        let ends_sentence = std::mem::replace(&mut self.ends_sentence, ends_sentence(c));
        let last = last?;
        if in_code {
            return None;
        }
        let (kind, place) = match n_lines {
            0 if !last.is_whitespace() => {
                if is_full_stop_of_its_own(last) && may_part(last, c) {
                    (Some(Break::Sentence), end)
                } else {
                    return None;
                }
            }
            0 if !may_part(last, c) => return None,
            0 if ends_sentence => (Some(Break::Sentence), end),
            0 => (None, end),
            1 => (Some(Break::Newline), self.line),
            _ => (Some(Break::Paragraph), self.line),
        };
        for queue in &mut self.queues[kind.map_or(N_KINDS - 1, index)..] {
            queue.push_back(place);
        }
        kind.map(|it| (it, place))
    }

    /// Returns the latest break of the preferred kind or a better one, else of the next kind, with at least this many
    /// characters of the message before it.
    pub(super) fn best(&self, prefer: Break, min_chars: usize) -> Option<TextPosition> {
        let queues = self.queues[index(prefer)..].iter();
        queues.filter_map(|it| it.back()).find(|it| min_chars <= it.chars).copied()
    }

    /// Returns the latest break of any kind.
    pub(super) fn last(&self) -> Option<TextPosition> {
        self.queues[N_KINDS - 1].back().copied()
    }

    /// Returns the latest start of a line of code with at most this many characters of the message before it. Only
    /// lines that are where the fence could have been closed are beyond that.
    pub(super) fn last_line_of_code(&self, max_chars: usize) -> Option<TextPosition> {
        self.lines_of_code.iter().rev().find(|it| it.chars <= max_chars).copied()
    }

    /// Returns whether the text ends with the end of a sentence.
    pub(super) fn ends_sentence(&self) -> bool {
        self.ends_sentence
    }

    /// Forgets the breaks before this place.
    pub(super) fn forget_until(&mut self, place: TextPosition) {
        for queue in self.queues.iter_mut().chain([&mut self.lines_of_code]) {
            while queue.front().is_some_and(|it| it.bytes <= place.bytes) {
                queue.pop_front();
            }
        }
    }
}

fn index(kind: Break) -> usize {
    match kind {
        Break::Paragraph => 0,
        Break::Newline => 1,
        Break::Sentence => 2,
    }
}

/// Ends a sentence, if blanks follow.
fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | ':' | ';' | '…') || is_full_stop_of_its_own(c)
}

/// Ends a sentence, whatever follows.
fn is_full_stop_of_its_own(c: char) -> bool {
    matches!(c, '。' | '！' | '？')
}
