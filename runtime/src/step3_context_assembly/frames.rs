//! Where a text is inside a frame of the harness, so that who cuts it can end the frame.
//!
//! Frames are read as they are written in `source8_tool_results`: no text inside one can end it or begin
//! another, so what looks like a tag here is one.

use super::source8_tool_results::REMINDER;

const ENVELOPE: (&str, &str) = ("<untrusted origin=\"", "\n</untrusted>");

/// What ends the name of an origin.
const OF_ORIGIN: &str = "\">\n";

/// Frames inside each other.
const MAX_DEPTH: usize = 2;

/// Bytes of what ends all frames that a text can be in, at most.
pub(crate) const MAX_ENDS: usize = REMINDER.1.len() + ENVELOPE.1.len();

/// A tag of the harness in a text.
struct FrameTag {
    start: usize,
    end: usize,
    /// What ends the frame that it begins; `None` where it ends one.
    ends_with: Option<&'static str>,
}

/// The frames around a place of a text, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenFrames<'a> {
    /// What began each, and what ends it.
    open: Vec<(&'a str, &'static str)>,
}

impl<'a> OpenFrames<'a> {
    /// Finds the frames that are open after the whole of this text.
    pub(crate) fn after(text: &'a str) -> Self {
        let mut open: Vec<(&'a str, &'static str)> = Vec::new();
        for tag in tags(text) {
            match tag.ends_with {
                Some(end) if open.len() < MAX_DEPTH => open.push((&text[tag.start..tag.end], end)),
                Some(_) => {}
                None => {
                    let ended = &text[tag.start..tag.end];
                    open.pop_if(|(_, end)| *end == ended);
                }
            }
        }
        Self { open }
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns what begins them again.
    pub(crate) fn begins(&self) -> String {
        self.open.iter().map(|(begin, _)| *begin).collect()
    }

    /// Returns what ends them.
    pub(crate) fn ends(&self) -> String {
        self.open.iter().rev().map(|(_, end)| *end).collect()
    }
}

/// Returns the place itself, or the start of the tag that it is inside of.
pub(crate) fn before_tag(text: &str, at: usize) -> usize {
    around(text, at).map_or(at, |it| it.start)
}

/// Returns the place itself, or the end of the tag that it is inside of.
pub(crate) fn after_tag(text: &str, at: usize) -> usize {
    around(text, at).map_or(at, |it| it.end)
}

/// The tag that has this place inside.
fn around(text: &str, at: usize) -> Option<FrameTag> {
    // A tag begins with a bracket, or with the newline in front of one, and holds no other bracket.
    let last = memchr::memrchr(b'<', &text.as_bytes()[..at]);
    let next = (text.as_bytes().get(at) == Some(&b'<')).then_some(at);
    [last, next]
        .into_iter()
        .flatten()
        .filter_map(|it| tag_at(text, it))
        .find(|it| it.start < at && at < it.end)
}

fn tags(text: &str) -> impl Iterator<Item = FrameTag> {
    memchr::memchr_iter(b'<', text.as_bytes()).filter_map(|at| tag_at(text, at))
}

/// The tag whose bracket is here.
fn tag_at(text: &str, at: usize) -> Option<FrameTag> {
    let rest = &text[at..];
    if rest.starts_with(REMINDER.0) {
        return Some(FrameTag {
            start: at,
            end: at + REMINDER.0.len(),
            ends_with: Some(REMINDER.1),
        });
    }
    if let Some(named) = rest.strip_prefix(ENVELOPE.0) {
        let name = named.find(['"', '<', '>', '\n'])?;
        let is_tag = named[name..].starts_with(OF_ORIGIN);
        let end = at + ENVELOPE.0.len() + name + OF_ORIGIN.len();
        return is_tag.then_some(FrameTag { start: at, end, ends_with: Some(ENVELOPE.1) });
    }
    let start = at.checked_sub(1).filter(|it| text.as_bytes()[*it] == b'\n')?;
    let end = [REMINDER.1, ENVELOPE.1].into_iter().find(|it| text[start..].starts_with(it))?;
    Some(FrameTag { start, end: start + end.len(), ends_with: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step3_context_assembly::source8_tool_results::{
        Paragraph, envelope, reminder_quoting,
    };

    // REQ: CTX-6
    #[test]
    fn frames_are_read_as_they_are_written() {
        let inner = envelope("notes", "a < b </untrusted> \n</system-reminder>\n");
        let quoting = Paragraph::quoting("words", "git", "branch <main>");
        let text = format!("one {inner} two {} three", reminder_quoting(&[quoting]));
        let at = |found: &str| OpenFrames::after(&text[..text.find(found).unwrap()]);
        assert_eq!(at("a < b").ends(), "\n</untrusted>");
        assert_eq!(at("a < b").begins(), "<untrusted origin=\"notes\">\n");
        assert!(at(" two").is_empty() && at(" three").is_empty());
        assert_eq!(at("words").ends(), "\n</system-reminder>");
        assert_eq!(at("<main>").ends(), "\n</untrusted>\n</system-reminder>");
        assert_eq!(at("<main>").ends().len(), MAX_ENDS);
    }

    // REQ: CTX-6
    #[test]
    fn place_inside_of_a_tag_is_moved_out_of_it() {
        let text = format!("x{}", envelope("notes", "é"));
        let inside = text.find('é').unwrap();
        for at in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
            let (before, after) = (before_tag(&text, at), after_tag(&text, at));
            assert!(before <= at && at <= after);
            let is_whole = |it: usize| [0, 1, inside, inside + 2, text.len()].contains(&it);
            assert!(is_whole(before) && is_whole(after), "{at}: {before}, {after}");
        }
    }
}
