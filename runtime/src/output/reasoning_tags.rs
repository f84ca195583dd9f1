//! Takes reasoning out of a text that arrives in pieces of any size.
//!
//! Models that have no field of their own for it put their reasoning between tags in the answer.
//! The tags are [`REASONING`]: `<think>`, `<thinking>`, `<thought>`, `<reasoning>`, `<antthinking>`
//! and `<antml:thinking>`. What is between an opening and the next closing one, of whichever of
//! these names, is reasoning. `<final>` marks the answer: only the tag itself is taken out, and it
//! ends reasoning that was not closed. Case does not matter, blanks may be after `<` and `/`,
//! attributes may follow the name. A tag is at most [`MAX_TAG`] bytes and is on one line.
//!
//! * Code is left alone: fenced blocks, and code spans, which end with their line. Within
//!   reasoning there is no code: what a model opens there it may never close.
//! * Reasoning that is not closed goes on to the end of the message: to leak it is worse than to
//!   lose words that are not marked as an answer.
//! * A closing tag without an opening one is taken out; the text before it stays, because it may
//!   be out already. What looks like a tag and never ends is text.
//! * Line ends after a tag that was taken out go with it if nothing else is on that line.
//!
//! Linear: what is held back (a tag that has begun, a line with an open code span) is looked at
//! once as it comes and, for a line whose span never closes, once more.

mod line;
mod tag;

use super::fences::Fences;
use line::HeldLine;
use tag::{Tag, TagCandidate, TagKind, TagScan};

#[cfg(test)]
pub(crate) use tag::MAX_TAG;

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaggedSegment {
    /// Text of the answer.
    Text(String),
    /// Text of the reasoning.
    Reasoning(String),
}

/// Separates reasoning from the answer within one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagStripper {
    in_reasoning: bool,
    /// A tag has just been taken out.
    behind_tag: bool,
    /// What may become a tag.
    candidate: TagCandidate,
    /// A line from its first backtick on, until it is known what of it is code.
    line: Option<HeldLine>,
    /// A piece of the answer.
    fences: Fences,
}

impl TagStripper {
    /// Takes a piece; pushes what is settled.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<TaggedSegment>) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = match self.line.take() {
                Some(line) => self.hold(line, rest, out),
                None => self.step(rest, out),
            };
        }
    }

    /// Ends the message; pushes what was held back.
    pub(super) fn finish(&mut self, out: &mut Vec<TaggedSegment>) {
        if let Some(line) = self.line.take() {
            self.resolve(&line, out);
        }
        self.release(out);
    }

    /// Takes the beginning of `text` and gives back the rest.
    fn step<'t>(&mut self, text: &'t str, out: &mut Vec<TaggedSegment>) -> &'t str {
        let bytes = text.as_bytes();
        if self.candidate.is_begun() || self.in_reasoning {
            return self.plain(text, out);
        }
        if self.fences.inside().is_some() || self.fences.is_opening_for_sure() {
            let end = memchr::memchr(b'\n', bytes).map_or(text.len(), |it| it + 1);
            self.say(&text[..end], out);
            return &text[end..];
        }
        match memchr::memchr2(b'<', b'`', bytes) {
            Some(0) if bytes[0] == b'`' => {
                self.behind_tag = false;
                self.line = Some(HeldLine::new(self.fences.at_start()));
                text
            }
            Some(0) => self.plain(text, out),
            end => {
                let (answer, rest) = text.split_at(end.unwrap_or(text.len()));
                self.say(answer, out);
                rest
            }
        }
    }

    /// Takes text in which only tags count, up to the end of one; gives back the rest.
    fn plain<'t>(&mut self, text: &'t str, out: &mut Vec<TaggedSegment>) -> &'t str {
        if !self.candidate.is_begun() {
            let at = memchr::memchr(b'<', text.as_bytes()).unwrap_or(text.len());
            if 0 < at {
                self.emit(&text[..at], out);
                return &text[at..];
            }
        }
        for (at, c) in text.char_indices() {
            match self.candidate.push(c) {
                TagScan::More => {}
                TagScan::Tag(tag) => {
                    self.enter(tag);
                    return &text[at + c.len_utf8()..];
                }
                TagScan::NoTag => {
                    self.release(out);
                    return &text[at..];
                }
            }
        }
        ""
    }

    fn enter(&mut self, tag: Tag) {
        let was = self.in_reasoning;
        self.in_reasoning = match (tag.kind, tag.closes) {
            (TagKind::Final, false) => false,
            (TagKind::Final, true) => was,
            (TagKind::Reasoning, closes) => !closes && (was || !tag.is_empty),
        };
        self.behind_tag = !self.in_reasoning;
    }

    /// What began like a tag is none.
    fn release(&mut self, out: &mut Vec<TaggedSegment>) {
        let text = self.candidate.take();
        self.emit(&text, out);
    }

    fn emit(&mut self, text: &str, out: &mut Vec<TaggedSegment>) {
        if !self.in_reasoning {
            return self.say(text, out);
        }
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(TaggedSegment::Reasoning(last)) => last.push_str(text),
            _ => out.push(TaggedSegment::Reasoning(text.to_owned())),
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<TaggedSegment>) {
        let mut text = text;
        if self.behind_tag {
            if self.fences.is_line_empty() {
                text = text.trim_start_matches(['\n', '\r']);
            }
            self.behind_tag = text.is_empty();
        }
        if text.is_empty() {
            return;
        }
        self.fences.push(text);
        match out.last_mut() {
            Some(TaggedSegment::Text(last)) => last.push_str(text),
            _ => out.push(TaggedSegment::Text(text.to_owned())),
        }
    }

    /// Adds to the line that is held; gives back the rest once it is settled.
    fn hold<'t>(
        &mut self,
        mut line: HeldLine,
        text: &'t str,
        out: &mut Vec<TaggedSegment>,
    ) -> &'t str {
        let taken = line.push(text);
        let rest = &text[taken..];
        if rest.is_empty() {
            self.line = Some(line);
        } else {
            self.resolve(&line, out);
        }
        rest
    }

    /// The line is settled: what of it is code is delivered as it is, the rest is searched for tags.
    fn resolve(&mut self, line: &HeldLine, out: &mut Vec<TaggedSegment>) {
        if line.is_fence() {
            return self.say(&line.text, out);
        }
        for (text, is_code) in line.parts() {
            let mut rest = text;
            if is_code && !self.in_reasoning {
                self.release(out);
                self.say(text, out);
                continue;
            }
            while !rest.is_empty() {
                rest = self.plain(rest, out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
