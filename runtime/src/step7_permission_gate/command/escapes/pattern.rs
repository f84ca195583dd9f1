//! Regular expressions between two delimiters, as `sed` and `awk` find the end of them.
//!
//! A delimiter in a bracket expression ends the pattern for some versions and not for others, and versions differ in
//! which bracket ends the expression. So a pattern is read only where all of them end it in the same place.
//! Sources: the manuals of GNU sed 4.9 and GNU awk 5.2; POSIX.1-2017, "RE Bracket Expression".

use std::{iter::Peekable, str::Chars};

/// Passes over a pattern and the delimiter that ends it; `None` where it is not certain which one that is.
pub(super) fn skip(rest: &mut Peekable<Chars<'_>>, end: char) -> Option<()> {
    // Of a bracket expression: what is left of it, and whether no bracket has closed it at all.
    let (mut n_left, mut is_open) = (0_usize, false);
    loop {
        let was_inside = n_left > 0;
        n_left = n_left.saturating_sub(1);
        match rest.next()? {
            '\\' => {
                rest.next()?;
                n_left = n_left.saturating_sub(1);
            }
            c if c == end => return (!was_inside && !is_open).then_some(()),
            '\n' => return None,
            '[' => {
                is_open = true;
                if !was_inside {
                    n_left = expression(rest.clone())?;
                }
            }
            ']' => is_open = false,
            _ => {}
        }
    }
}

/// How many characters a bracket expression has after its first one; `None` if it does not end.
fn expression(mut rest: Peekable<Chars<'_>>) -> Option<usize> {
    let mut n = usize::from(rest.next_if_eq(&'^').is_some());
    // At the start it is a member.
    n += usize::from(rest.next_if_eq(&']').is_some());
    loop {
        n += 1;
        match rest.next()? {
            ']' => return Some(n),
            '[' => {
                // A class, as in `[[:alpha:]]`.
                if let Some(kind) = rest.next_if(|it| matches!(it, ':' | '.' | '=')) {
                    let mut before = ' ';
                    n += 1;
                    loop {
                        n += 1;
                        match rest.next()? {
                            ']' if before == kind => break,
                            c => before = c,
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left after the pattern.
    fn after(text: &str) -> Option<String> {
        let mut rest = text.chars().peekable();
        skip(&mut rest, '/')?;
        Some(rest.collect())
    }

    #[test]
    fn pattern_ends_where_all_versions_end_it() {
        let ends = [
            ("a/b", "b"),
            (r"a\/b/c", "c"),
            ("[[:space:]]*$/b/", "b/"),
            ("[^]]/b", "b"),
            ("[]]/b", "b"),
            (r"[^\/]*/b", "b"),
            (r"[\[\]]/b", "b"),
            (r"\[/b", "b"),
            ("a]/b", "b"),
        ];
        for (text, rest) in ends {
            assert_eq!(after(text).as_deref(), Some(rest), "{text}");
        }
        for text in
            ["[/]/b", "[]/]/b", "[^]/]/b", "[[:alpha:]/]/b", "[[.].]/]/b", "[a[:x]/b", "a", "[/"]
        {
            assert_eq!(after(text), None, "{text}");
        }
    }
}
