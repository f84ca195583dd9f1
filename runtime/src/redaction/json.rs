//! Secrets in JSON texts: what is taken out leaves JSON that reads as before.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{Placeholder, Redactor, placeholders};
use crate::block::quote;

/// Where a string lies in a JSON text, quotes included, and whether something in it is escaped.
struct Literal {
    start: usize,
    end: usize,
    is_escaped: bool,
}

/// The strings of a JSON text, member names included. Of a text that is not JSON, what looks like them.
fn literals(text: &str) -> impl Iterator<Item = Literal> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        let (mut end, mut is_escaped) = (start + 1, false);
        loop {
            end += memchr::memchr2(b'"', b'\\', bytes.get(end..)?)?;
            if bytes[end] == b'"' {
                break;
            }
            is_escaped = true;
            end += 2;
        }
        at = end + 1;
        Some(Literal { start, end: at, is_escaped })
    })
}

#[doc(hidden)]
impl Redactor {
    /// Replaces the secrets in the strings of a JSON text by placeholders. Everything else keeps its bytes.
    pub fn json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut redacted = self.text(text);
        // A secret is part of a string. Where a shape began in front of one, strings are looked at
        // one by one.
        if matches!(redacted, Cow::Owned(_))
            && serde_json::from_str::<IgnoredAny>(&redacted).is_err()
            && serde_json::from_str::<IgnoredAny>(text).is_ok()
        {
            return self.literals(text, |_| true).map_or(Cow::Borrowed(text), Cow::Owned);
        }
        if self.may_hide(redacted.as_bytes())
            && let Some(decoded) = self.literals(&redacted, |it| it.is_escaped)
        {
            redacted = Cow::Owned(decoded);
        }
        redacted
    }

    /// Replaces the secrets of a JSON text that is shared.
    pub(crate) fn shared_json(&self, text: &mut std::sync::Arc<str>) {
        if let Cow::Owned(redacted) = self.json(text) {
            *text = redacted.into();
        }
    }

    /// Looks into the strings that are named. `None`: there is no secret in them.
    fn literals(&self, text: &str, is_named: impl Fn(&Literal) -> bool) -> Option<String> {
        let (mut out, mut at) = (String::new(), 0);
        for it in literals(text).filter(is_named) {
            let literal = text.get(it.start..it.end)?;
            if it.is_escaped && !self.may_hide(literal.as_bytes()) {
                continue;
            }
            let Ok(decoded) = serde_json::from_str::<String>(literal) else { continue };
            if let Cow::Owned(redacted) = self.text(&decoded) {
                out.push_str(text.get(at..it.start)?);
                out.push_str(&quote(&redacted));
                at = it.end;
            }
        }
        if at == 0 {
            return None;
        }
        out.push_str(text.get(at..)?);
        Some(out)
    }

    /// Returns whether a text has other escapes than those of white space and quotes, which no shape holds, or any
    /// where a value holds what is escaped.
    pub(super) fn may_hide(&self, json: &[u8]) -> bool {
        let Some(first) = memchr::memchr(b'\\', json) else { return false };
        // JSON inside of JSON is full of them: many pairs are looked at in one step.
        let hides =
            |(mark, letter): (&u8, &u8)| (*mark == b'\\') & ((*letter == b'u') | (*letter == b'/'));
        let any_hides = |marks: &[u8], letters: &[u8]| {
            marks.iter().zip(letters).fold(false, |any, it| any | hides(it))
        };
        let (marks, letters) = (&json[first..], &json[first + 1..]);
        self.patterns.has_escapes
            || marks.chunks(64).zip(letters.chunks(64)).any(|it| any_hides(it.0, it.1))
    }
}

/// Returns the first placeholder in the strings of a JSON text, however they are escaped.
pub fn placeholder_in_json(text: &str) -> Option<String> {
    let first =
        |text: &str| placeholders(text).next().map(|it: (usize, Placeholder<'_>)| it.1.to_string());
    first(text).or_else(|| {
        literals(text).filter(|it| it.is_escaped).find_map(|it| {
            let literal = text.get(it.start..it.end)?;
            first(&serde_json::from_str::<String>(literal).ok()?)
        })
    })
}
