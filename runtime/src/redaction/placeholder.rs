//! What takes the place of a secret.

use std::fmt;

use super::{TABLE, VALUE_KINDS};

const OPEN: &str = "[secret:";

/// Bytes of the longest number in a placeholder.
const MAX_DIGITS: usize = 10;

/// What takes the place of a secret: `[secret:github-token:1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// A kind of [`TABLE`], `variable` or `credential`.
    pub kind: &'a str,
    /// Which of that kind, from 1. `None` when a session has seen too many to number them.
    pub number: Option<u32>,
}

impl Placeholder<'_> {
    /// Appends it to a text.
    pub(super) fn push_to(&self, out: &mut String) {
        // A string takes whatever it is given.
        let _never_fails = fmt::write(out, format_args!("{self}"));
    }
}

impl fmt::Display for Placeholder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{OPEN}{}:{number}]", self.kind),
            None => write!(f, "{OPEN}{}]", self.kind),
        }
    }
}

/// Returns the placeholders in a text, in order, with their places. Only those whose kind exists count.
pub fn placeholders(text: &str) -> impl Iterator<Item = (usize, Placeholder<'_>)> {
    memchr::memmem::find_iter(text.as_bytes(), OPEN.as_bytes())
        .filter_map(move |at| Some((at, read(text.get(at + OPEN.len()..)?)?)))
}

/// Reads what follows the opening.
fn read(rest: &str) -> Option<Placeholder<'_>> {
    let end = rest.bytes().position(|it| !(it.is_ascii_lowercase() || it == b'-'))?;
    let (kind, rest) = rest.split_at(end);
    let is_known = VALUE_KINDS.contains(&kind) || TABLE.iter().any(|it| it.kind == kind);
    if !is_known {
        return None;
    }
    let Some(digits) = rest.strip_prefix(':') else {
        return rest.starts_with(']').then_some(Placeholder { kind, number: None });
    };
    let end = digits.bytes().take(MAX_DIGITS + 1).position(|it| !it.is_ascii_digit())?;
    let number = digits.get(..end)?.parse().ok()?;
    digits[end..].starts_with(']').then_some(Placeholder { kind, number: Some(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = placeholders(text).map(|(_, it)| it.to_string()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn placeholders_are_read_back_and_what_only_begins_like_one_is_not() {
        check("a [secret:jwt:12] b [secret:variable]", &["[secret:jwt:12]", "[secret:variable]"]);
        check("[secret:[secret:credential:1]", &["[secret:credential:1]"]);
        for text in ["[secret:", "[secret:jwt", "[secret:jwt:]", "[secret:jwt:1", "[secret:no:1]"] {
            check(text, &[]);
        }
        check("[secret:jwt:99999999999]", &[]);
        check("[secret:jwt:é]", &[]);
    }
}
