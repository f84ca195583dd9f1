//! Whether a pattern of a shell and one of a rule have a path in common.
//!
//! Both are patterns, so neither can be matched against the other as a text.

use std::borrow::Cow;

/// Components of either that are looked at; longer ones count as meeting.
const MAX_PARTS: usize = 64;

/// Bytes of a component that are looked at.
const MAX_BYTES: usize = 256;

/// A pattern in components, read once and compared with many.
#[derive(Clone, Debug)]
pub(super) struct Components<'a>(Vec<Cow<'a, [u8]>>);

impl<'a> Components<'a> {
    /// Takes an absolute pattern apart.
    pub(super) fn of(pattern: &'a str) -> Self {
        Self(pattern.split('/').filter(|it| !it.is_empty()).map(simplified).collect())
    }

    /// Returns the components without the text that they were read from.
    pub(super) fn into_owned(self) -> Components<'static> {
        Components(self.0.into_iter().map(|it| Cow::Owned(it.into_owned())).collect())
    }
}

/// Returns whether some path matches both. In the shell's pattern a component that begins with a wildcard matches no
/// name with a dot in front; in the rule's, `**` crosses components, and what it covers covers everything below.
pub(super) fn meet(shell: &Components<'_>, rule: &Components<'_>) -> bool {
    let (shell, rule) = (&shell.0, &rule.0);
    if shell.len() > MAX_PARTS || rule.len() > MAX_PARTS {
        return true;
    }
    // Row by row: whether the first parts of the rule meet the first `j` of the shell's.
    let mut row = [false; MAX_PARTS + 1];
    row[0] = true;
    for (i, part) in rule.iter().enumerate() {
        let mut next = [false; MAX_PARTS + 1];
        if **part == *b"**" {
            // At the end it is about what is in the directory, and not about that.
            let n_more = usize::from(i + 1 == rule.len());
            let mut reached = false;
            for j in n_more..=shell.len() {
                reached |= row[j - n_more];
                next[j] = reached;
            }
        } else {
            for (j, other) in shell.iter().enumerate() {
                next[j + 1] = row[j] && parts_meet(other, part);
            }
        }
        row = next;
    }
    // The rule is about a directory that the pattern leads into.
    row.contains(&true)
}

/// A component in which every class of characters is one `?`, and nothing is escaped.
fn simplified(part: &str) -> Cow<'_, [u8]> {
    if !part.contains(['\\', '[']) {
        return part.as_bytes().into();
    }
    let mut out = Vec::new();
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.extend(bytes.next()),
            b'[' if bytes.clone().any(|it| it == b']') => {
                bytes.by_ref().find(|it| *it == b']');
                out.push(b'?');
            }
            byte => out.push(byte),
        }
    }
    out.into()
}

/// Whether some name matches both.
fn parts_meet(mut shell: &[u8], mut rule: &[u8]) -> bool {
    if shell.len() > MAX_BYTES || rule.len() > MAX_BYTES {
        return true;
    }
    let begins_open = matches!(shell.first(), Some(b'*' | b'?'));
    if begins_open && rule.first() == Some(&b'.') {
        return false;
    }
    // Mostly the first bytes are plain in both, and differ.
    while let ([a, shell_rest @ ..], [b, rule_rest @ ..]) = (shell, rule) {
        if [a, b].iter().any(|it| matches!(it, b'*' | b'?')) {
            break;
        }
        if a != b {
            return false;
        }
        (shell, rule) = (shell_rest, rule_rest);
    }
    let is_any = |it: &[u8]| it.iter().all(|it| *it == b'*');
    if shell.is_empty() || rule.is_empty() {
        return is_any(shell) && is_any(rule);
    }
    let mut row = [false; MAX_BYTES + 1];
    row[0] = true;
    for j in 0..rule.len() {
        row[j + 1] = row[j] && rule[j] == b'*';
    }
    for &a in shell {
        // The place of the row above that the next one needs, before it is written over.
        let mut before = row[0];
        row[0] = before && a == b'*';
        for (j, &b) in rule.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = match (a, b) {
                (b'*', _) | (_, b'*') => above || row[j],
                _ => before && (a == b || a == b'?' || b == b'?'),
            };
            before = above;
        }
    }
    row[rule.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(shell: &str, rule: &str) -> bool {
        super::meet(&Components::of(shell), &Components::of(rule).into_owned())
    }

    // REQ: PRM-8
    #[test]
    fn patterns_meet_where_a_file_could_match_both() {
        for (shell, rule) in [
            ("/w/.en*", "/w/**/.env"),
            ("/w/a/.e?v", "/w/**/.env"),
            ("/w/s*/k", "/w/**/secrets/**"),
            ("/w/*/prod.key", "/w/secrets"),
            ("/w/[a-s]ecrets/k", "/w/secrets/**"),
            ("/w/a*", "/w/*b"),
            ("/*/secrets/x", "/w/secrets/*"),
            ("/w/*.pem", "/w/**/*.pem"),
            ("/w/a*", "/w/a"),
            ("/w/ab", "/w/ab*"),
            ("/w/a?c*", "/w/ab*d"),
            ("/w/a*d", "/w/ab*cd"),
        ] {
            assert!(meet(shell, rule), "{shell} and {rule}");
        }
        for (shell, rule) in [
            ("/w/*", "/w/**/.env"),
            ("/w/*", "/w/secrets/**"),
            ("/w/src/*.rs", "/w/**/.env"),
            ("/w/src/*.rs", "/w/secrets/**"),
            ("/w/a*", "/w/b*"),
            ("/w/*.rs", "/w/**/*.pem"),
            ("/w/a?", "/w/a"),
            ("/w/ab", "/w/abc"),
            ("/w/a*d", "/w/ab*c"),
        ] {
            assert!(!meet(shell, rule), "{shell} and {rule}");
        }
    }
}
