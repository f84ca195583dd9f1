//! Cuts HTML into tags and text, each byte once.
//!
//! It follows the states of the HTML standard as far as they decide where a tag ends; what is between the tags of scripts
//! and the like is skipped here.

use memchr::{memchr, memmem};

/// Bytes of a name that are looked at; no known one is longer.
const MAX_NAME: usize = 16;

/// Elements whose content is not text, up to the tag that closes them.
const SKIPPED: [&str; 6] = ["script", "style", "iframe", "noembed", "noframes", "xmp"];

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Text(&'a str),
    Open(Tag<'a>),
    Close(String),
}

/// A tag that opens an element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// In lower case; the beginning of one that is longer than any known.
    pub(super) name: String,
    /// The value of the first `href` or `src`.
    pub(super) address: Option<&'a str>,
    pub(super) alt: Option<&'a str>,
}

/// The rest of a page.
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(page: &'a str) -> Self {
        Self { rest: page }
    }

    /// Takes a text up to the next tag.
    fn text(&mut self, from: usize) -> Token<'a> {
        let bytes = self.rest.as_bytes();
        let end = memchr(b'<', bytes.get(from..).unwrap_or_default());
        let end = end.map_or(bytes.len(), |it| from + it);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Text(text)
    }

    /// Skips up to after `end`; everything, where that does not come.
    fn skip_to(&mut self, from: usize, end: &str) {
        let after = self.rest.get(from..).unwrap_or_default();
        let at = memmem::find(after.as_bytes(), end.as_bytes());
        self.rest = at.and_then(|it| after.get(it + end.len()..)).unwrap_or_default();
    }

    /// Skips the content of an element, and leaves the tag that closes it.
    fn skip_content(&mut self, name: &str) {
        let bytes = self.rest.as_bytes();
        let closes = |at: &usize| {
            let end = at + 2 + name.len();
            let ends = |it: &u8| it.is_ascii_whitespace() || matches!(it, b'/' | b'>');
            bytes.get(at + 2..end).is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
                && bytes.get(end).is_none_or(ends)
        };
        let end = memmem::find_iter(bytes, "</").find(closes);
        self.rest = end.and_then(|it| self.rest.get(it..)).unwrap_or_default();
    }

    /// Reads a tag that opens an element: the rest begins with `<` and a letter. `None` where the page ends within it.
    fn open(&mut self) -> Option<Tag<'a>> {
        let (name, mut at) = name(self.rest, 1);
        let mut tag = Tag { name, ..Tag::default() };
        let bytes = self.rest.as_bytes();
        loop {
            match bytes.get(at)? {
                b'>' => break,
                it if it.is_ascii_whitespace() || *it == b'/' => at += 1,
                _ => at = self.attribute(at, &mut tag)?,
            }
        }
        self.rest = self.rest.get(at + 1..).unwrap_or_default();
        Some(tag)
    }

    /// Reads an attribute from `at`; returns where it ends.
    fn attribute(&self, at: usize, tag: &mut Tag<'a>) -> Option<usize> {
        let bytes = self.rest.as_bytes();
        let ends_name = |it: &u8| it.is_ascii_whitespace() || matches!(it, b'/' | b'>' | b'=');
        // One that begins with `=` has that in its name.
        let end = at + 1 + bytes.get(at + 1..)?.iter().position(ends_name)?;
        let name = self.rest.get(at..end).unwrap_or_default();
        let blanks = |from: usize| {
            bytes.get(from..)?.iter().position(|it| !it.is_ascii_whitespace()).map(|it| from + it)
        };
        let next = blanks(end)?;
        if bytes.get(next) != Some(&b'=') {
            return Some(next);
        }
        let start = blanks(next + 1)?;
        let (from, to, after) = match bytes.get(start)? {
            quote @ (b'"' | b'\'') => {
                let end = start + 1 + memchr(*quote, bytes.get(start + 1..)?)?;
                (start + 1, end, end + 1)
            }
            _ => {
                let ends = |it: &u8| it.is_ascii_whitespace() || *it == b'>';
                let end = start + bytes.get(start..)?.iter().position(ends)?;
                (start, end, end)
            }
        };
        let value = self.rest.get(from..to);
        if name.eq_ignore_ascii_case("href") || name.eq_ignore_ascii_case("src") {
            tag.address = tag.address.or(value);
        } else if name.eq_ignore_ascii_case("alt") {
            tag.alt = tag.alt.or(value);
        }
        Some(after)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let bytes = self.rest.as_bytes();
            match (bytes.first()?, bytes.get(1), bytes.get(2)) {
                (b'<', Some(it), _) if it.is_ascii_alphabetic() => {
                    let Some(tag) = self.open() else {
                        self.rest = "";
                        return None;
                    };
                    if SKIPPED.contains(&tag.name.as_str()) {
                        self.skip_content(&tag.name);
                    }
                    return Some(Token::Open(tag));
                }
                (b'<', Some(b'/'), Some(it)) if it.is_ascii_alphabetic() => {
                    let (name, at) = name(self.rest, 2);
                    self.skip_to(at, ">");
                    return Some(Token::Close(name));
                }
                (b'<', Some(b'!'), _) if self.rest.starts_with("<!--") => self.skip_to(2, "-->"),
                (b'<', Some(b'!' | b'?' | b'/'), _) => self.skip_to(2, ">"),
                (b'<', ..) => return Some(self.text(1)),
                _ => return Some(self.text(0)),
            }
        }
    }
}

/// Returns the name that begins at `from` in lower case, and where it ends.
fn name(text: &str, from: usize) -> (String, usize) {
    let after = text.as_bytes().get(from..).unwrap_or_default();
    let ends = |it: &u8| it.is_ascii_whitespace() || matches!(it, b'/' | b'>');
    let end = after.iter().position(ends).unwrap_or(after.len());
    let known = after.get(..end.min(MAX_NAME)).unwrap_or_default();
    (String::from_utf8_lossy(known).to_ascii_lowercase(), from + end)
}
