//! Patterns of paths, one name after the other.

/// Bytes that a pattern of one name has at most once stars in a row are one: names have 255.
const MAX_NAME_PATTERN: usize = 511;

/// Splits a path at its first name that is a pattern: what is in front of that, that name, and what follows it.
pub(super) fn first_pattern(path: &str) -> Option<(&str, &str, &str)> {
    let at = path.find(['*', '?', '[', '('])?;
    let start = path[..at].rfind('/').map_or(0, |it| it + 1);
    let end = path[at..].find('/').map_or(path.len(), |it| at + it);
    let rest = path.get(end + 1..).unwrap_or_default();
    Some((&path[..start], &path[start..end], rest))
}

/// Makes a pattern with no other sign than stars that matches at least the same names; `None` where it matches none.
pub(super) fn name_pattern(name: &str) -> Option<String> {
    let end = name.find(['?', '[', '(']).unwrap_or(name.len());
    let mut pattern = name[..end].to_owned();
    if name[end..].starts_with('(') {
        // The sign in front says how often.
        pattern.pop();
    }
    if end < name.len() {
        pattern.push('*');
    }
    pattern = pattern.chars().fold(String::new(), |mut all, c| {
        if c != '*' || !all.ends_with('*') {
            all.push(c);
        }
        all
    });
    (pattern.len() <= MAX_NAME_PATTERN).then_some(pattern)
}
