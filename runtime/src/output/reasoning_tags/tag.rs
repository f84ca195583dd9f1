//! One tag, read character by character, or the beginning of what may become one.

/// Names of the tags around reasoning.
pub(crate) const REASONING: [&str; 6] =
    ["think", "thinking", "thought", "reasoning", "antthinking", "antml:thinking"];

/// The name of the tag around the answer.
const FINAL: &str = "final";

/// Bytes of a tag at most; what is longer is text.
pub(crate) const MAX_TAG: usize = 256;

/// A tag that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: TagKind,
    /// Whether it is a closing tag, `</…>`.
    pub(super) closes: bool,
    /// Whether it is an empty tag, `<…/>`.
    pub(super) is_empty: bool,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagKind {
    Reasoning,
    Final,
}

/// What a character makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagScan {
    /// It may become a tag.
    More,
    /// The text is a whole tag.
    Tag(Tag),
    /// It is none, without this character.
    NoTag,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagCandidate {
    text: String,
    name: String,
    closes: bool,
    part: TagPart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagPart {
    /// Nothing yet, or blanks.
    #[default]
    Start,
    Slash,
    Name,
    Attributes,
}

impl TagCandidate {
    pub(super) fn is_begun(&self) -> bool {
        !self.text.is_empty()
    }

    /// Takes the text so far; empty again.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Takes a character, the first of which is `<`. The text of a tag is forgotten.
    pub(super) fn push(&mut self, c: char) -> TagScan {
        if self.text.is_empty() {
            self.text.push(c);
            return TagScan::More;
        }
        let fits = match (self.part, c) {
            (_, '<' | '`' | '\n' | '\r') => false,
            (TagPart::Start | TagPart::Slash, ' ' | '\t') => true,
            (TagPart::Start, '/') => {
                (self.part, self.closes) = (TagPart::Slash, true);
                true
            }
            (TagPart::Name | TagPart::Attributes, '>') => match kind_of(&self.name) {
                Some(kind) => {
                    let is_empty = self.text.ends_with('/');
                    let tag = Tag { kind, closes: self.closes, is_empty };
                    *self = Self::default();
                    return TagScan::Tag(tag);
                }
                None => false,
            },
            (TagPart::Name, ' ' | '\t' | '/') => {
                self.part = TagPart::Attributes;
                kind_of(&self.name).is_some()
            }
            (TagPart::Attributes, _) => true,
            (TagPart::Start | TagPart::Slash | TagPart::Name, _) => {
                self.part = TagPart::Name;
                self.name.push(c.to_ascii_lowercase());
                names().any(|it| it.starts_with(&self.name))
            }
        };
        if !fits || MAX_TAG <= self.text.len() {
            return TagScan::NoTag;
        }
        self.text.push(c);
        TagScan::More
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    REASONING.into_iter().chain([FINAL])
}

fn kind_of(name: &str) -> Option<TagKind> {
    match name {
        FINAL => Some(TagKind::Final),
        _ => REASONING.contains(&name).then_some(TagKind::Reasoning),
    }
}
