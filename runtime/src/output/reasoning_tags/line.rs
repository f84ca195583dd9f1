//! A line from its first backtick on: what of it is a code span is known only at the run of
//! backticks that closes it, or at the end of the line.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldLine {
    pub(super) text: String,
    /// Where runs of backticks begin, and how long they are.
    runs: Vec<(usize, usize)>,
    /// Nothing but blanks is before it.
    at_start: bool,
}

impl HeldLine {
    pub(super) fn new(at_start: bool) -> Self {
        Self { text: String::new(), runs: Vec::new(), at_start }
    }

    /// Takes what belongs to the line and is not settled yet, and says how many bytes that is.
    pub(super) fn push(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'`' => {
                    match self.runs.last_mut() {
                        Some((_, length)) if self.text.ends_with('`') => *length += 1,
                        _ => self.runs.push((self.text.len(), 1)),
                    }
                    self.text.push('`');
                    at += 1;
                }
                b'\n' => break,
                _ if self.is_closed() => break,
                _ => {
                    let end = memchr::memchr2(b'`', b'\n', &bytes[at..]);
                    let end = end.map_or(bytes.len(), |it| at + it);
                    self.text.push_str(&text[at..end]);
                    at = end;
                }
            }
        }
        at
    }

    /// Returns whether it opens a fenced block, if it ends here.
    pub(super) fn is_fence(&self) -> bool {
        self.at_start && matches!(self.runs[..], [(_, length)] if 3 <= length)
    }

    /// Whether the first run is closed by the last one, which ends here.
    fn is_closed(&self) -> bool {
        match self.runs[..] {
            [(_, first), .., (at, last)] => first == last && at + last == self.text.len(),
            _ => false,
        }
    }

    /// Returns the line in pieces, and whether each is a code span. A run that is closed by none is text.
    pub(super) fn parts(&self) -> Vec<(&str, bool)> {
        let mut next = vec![None; self.runs.len()];
        let mut later = BTreeMap::new();
        for (i, (_, length)) in self.runs.iter().enumerate().rev() {
            next[i] = later.insert(*length, i);
        }
        let (mut parts, mut at, mut i) = (Vec::new(), 0, 0);
        while let Some((start, length)) = self.runs.get(i).copied() {
            parts.push((&self.text[at..start], false));
            let closing = next[i].unwrap_or(i);
            at = self.runs.get(closing).map_or(start + length, |(start, length)| start + length);
            // A run that is alone is not code, but no tag goes across it either.
            parts.push((&self.text[start..at], true));
            i = closing + 1;
        }
        parts.push((&self.text[at..], false));
        parts
    }
}
