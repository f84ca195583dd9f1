//! Words of which a part is an expansion or a pattern: what the whole may come to be.
//!
//! A value that is an option by itself is for others to find; here the word as written puts one together:
//! `-${x}v`, `--fil${x}ter`, `-del*`.

use crate::step7_permission_gate::{
    rule::wildcard,
    shell::word::{PieceKind, Word},
};

/// Returns a pattern of all that a word may come to be, with a `*` for each piece that is not known.
pub(super) fn pattern(word: &Word) -> String {
    let mut found = String::with_capacity(word.text.len());
    let mut at = 0;
    for span in &word.spans {
        push_plain(&word.text[at..span.start], &mut found);
        match span.piece {
            PieceKind::Quoted => found.push_str(&word.text[span.start..span.end]),
            PieceKind::Open { .. } => found.push('*'),
        }
        at = span.end;
    }
    push_plain(&word.text[at..], &mut found);
    if word.has_glob()
        && let Some(begin) = found.find('[')
    {
        // From the first bracket on it may be anything.
        found.truncate(begin);
        found.push('*');
    }
    found
}

/// A text without quotes, in which signs of patterns count.
fn push_plain(text: &str, pattern: &mut String) {
    pattern.extend(text.chars().map(|it| if it == '?' { '*' } else { it }));
}

/// Returns the text in front of the first piece that is not known; all of a literal word.
pub(super) fn literal_start(word: &Word) -> &str {
    if word.is_literal() {
        return &word.text;
    }
    let open = word.spans.iter().find(|it| it.piece != PieceKind::Quoted);
    let open = open.map_or(word.text.len(), |it| it.start);
    let signs = |(at, it): (usize, &str)| it.find(['*', '?', '[']).map(|it| at + it);
    let glob = word.plain_pieces().find_map(signs).filter(|_| word.has_glob());
    &word.text[..glob.map_or(open, |it| it.min(open))]
}

/// Returns whether a word that is not known may become this option though what it begins with comes to nothing:
/// the whole of it, or what it begins with.
pub(super) fn composes(word: &Word, option: &str, is_whole: bool) -> bool {
    if word.is_literal() {
        return false;
    }
    let pattern = pattern(word);
    let rest = pattern.trim_start_matches('*');
    let written = rest.split('*').next().unwrap_or_default();
    let goes_on = written.len() < rest.len();
    match is_whole {
        _ if written.is_empty() => false,
        true => wildcard(rest, option),
        false => written.starts_with(option) || goes_on && option.starts_with(written),
    }
}
