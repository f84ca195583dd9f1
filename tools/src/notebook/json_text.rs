//! JSON as text: where its parts lie, how deep it is, and how it is laid out.

use std::{collections::BTreeSet, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Levels of nesting; as many as readers of JSON take by default.
pub(super) const MAX_DEPTH: usize = 128;

/// Bytes of one level of indentation that are kept up.
const MAX_INDENT: usize = 8;

/// Returns whether objects and lists are nested more than [`MAX_DEPTH`] levels deep.
pub(super) fn is_deeper(text: &str) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if MAX_DEPTH < depth {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns where a part lies that was cut out of a text.
pub(super) fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr()).min(text.len());
    start..(start + part.len()).min(text.len())
}

/// The members of an object, in their order, with their values as they are written. No name occurs
/// twice: what such an object means differs from reader to reader.
#[derive(Default)]
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut members, mut names) = (Vec::new(), BTreeSet::new());
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom("an object has the same name twice"));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// How a text is laid out, by its first line end and indentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    /// The line end and the indentation of one level; `None`: all is in one line.
    lines: Option<(&'a str, &'a str)>,
    /// What follows a colon, and in one line a comma.
    blank: &'static str,
}

impl<'a> Layout<'a> {
    /// Finds the layout of an object.
    pub(super) fn of(text: &'a str) -> Self {
        let inner = text.trim_start().strip_prefix('{').unwrap_or_default();
        let space = &inner[..inner.len() - inner.trim_start().len()];
        let lines = space.find('\n').map(|at| {
            let line_end = if space[..at].ends_with('\r') { "\r\n" } else { "\n" };
            let indent = space[at + 1..].rsplit('\n').next().unwrap_or_default();
            (line_end, &indent[..indent.len().min(MAX_INDENT)])
        });
        let after_colon = inner.split_once(':').map_or(" ", |it| it.1);
        let blank = if after_colon.starts_with([' ', '\t']) { " " } else { "" };
        Self { lines, blank }
    }

    /// Returns a line end with the indentation of this depth; empty where all is in one line.
    pub(super) fn line(&self, depth: usize) -> String {
        let line = |(line_end, indent): (&str, &str)| format!("{line_end}{}", indent.repeat(depth));
        self.lines.map(line).unwrap_or_default()
    }

    /// Returns what separates the values of a list or an object at this depth.
    pub(super) fn between(&self, depth: usize) -> String {
        match self.lines {
            Some(_) => format!(",{}", self.line(depth)),
            None => format!(",{}", self.blank),
        }
    }

    /// Returns an object with these members, at this depth.
    pub(super) fn object(&self, members: &[(String, &RawValue)], depth: usize) -> String {
        let blank = self.blank;
        let member = |(name, value): &(String, &RawValue)| {
            format!("{}:{blank}{}", serde_json::Value::from(name.as_str()), value.get())
        };
        let members: Vec<_> = members.iter().map(member).collect();
        let (open, close) = (self.line(depth + 1), self.line(depth));
        format!("{{{open}{}{close}}}", members.join(&self.between(depth + 1)))
    }
}
