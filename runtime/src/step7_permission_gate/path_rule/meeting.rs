//! Whether a pattern of a shell and one of a rule have a path in common.
//!
//! Both are patterns, so neither can be matched against the other as a text.

/// Components of either that are looked at; longer ones count as meeting.
const MAX_PARTS: usize = 64;

/// Bytes of a component that are looked at.
const MAX_BYTES: usize = 256;

/// Whether some path matches both. In the shell's pattern a component that begins with a wildcard
/// matches no name with a dot in front; in the rule's, `**` crosses components, and what it covers
/// covers everything below.
pub(super) fn meet(shell: &str, rule: &str) -> bool {
    let parts = |text: &str| -> Vec<Vec<u8>> {
        text.split('/').filter(|it| !it.is_empty()).map(simplified).collect()
    };
    let (shell, rule) = (parts(shell), parts(rule));
    if shell.len() > MAX_PARTS || rule.len() > MAX_PARTS {
        return true;
    }
    // Row by row: whether the first parts of the rule meet the first `j` of the shell's.
    let mut row = vec![false; shell.len() + 1];
    row[0] = true;
    for (i, part) in rule.iter().enumerate() {
        let mut next = vec![false; shell.len() + 1];
        if part == b"**" {
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
fn simplified(part: &str) -> Vec<u8> {
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
    out
}

/// Whether some name matches both.
fn parts_meet(shell: &[u8], rule: &[u8]) -> bool {
    if shell.len() > MAX_BYTES || rule.len() > MAX_BYTES {
        return true;
    }
    let begins_open = matches!(shell.first(), Some(b'*' | b'?'));
    if begins_open && rule.first() == Some(&b'.') {
        return false;
    }
    let mut row = vec![false; rule.len() + 1];
    row[0] = true;
    for j in 0..rule.len() {
        row[j + 1] = row[j] && rule[j] == b'*';
    }
    for &a in shell {
        let mut next = vec![false; rule.len() + 1];
        next[0] = row[0] && a == b'*';
        for (j, &b) in rule.iter().enumerate() {
            let alike = a == b || a == b'?' || b == b'?';
            next[j + 1] = match (a, b) {
                (b'*', _) => row[j + 1] || next[j],
                (_, b'*') => row[j + 1] || next[j],
                _ => row[j] && alike,
            };
        }
        // What a `*` of the rule takes need not end where one of the shell's does.
        row = next;
    }
    row[rule.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(!meet(shell, rule), "{shell} and {rule}");
        }
    }
}
