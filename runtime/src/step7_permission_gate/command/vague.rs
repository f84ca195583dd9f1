//! What a part may be to deny and ask rules once the shell has expanded it: `git pu${x}sh`, `git $x push`.

use super::{CommandPart, escapes::call, part::base};
use crate::step7_permission_gate::shell::word::{PieceKind, Word};

/// Bytes of such a text that are compared; anything may follow.
const MAX_BYTES: usize = 512;

/// One piece of a text that is not known as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VaguePiece {
    Byte(u8),
    /// Any text, with or without blanks.
    Open,
    /// Anything without a blank: a pattern, or an expansion in quotes.
    Within,
}

/// A text that a part may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VagueText(Vec<VaguePiece>);

/// Returns what a part may become; nothing where its words are known, or not even the name of its program is.
pub(super) fn texts(part: &CommandPart) -> Vec<VagueText> {
    if part.words.iter().all(Word::is_literal) {
        return Vec::new();
    }
    let starts = part.starts.iter().filter_map(|it| part.words.get(*it..));
    let open = starts.filter(|it| it.first().is_some_and(Word::is_literal));
    let open = open.filter(|it| !it.iter().all(Word::is_literal));
    open.map(text).collect()
}

fn text(words: &[Word]) -> VagueText {
    let mut found = Vec::new();
    let (name, args) = words.split_first().map_or(("", words), |it| (base(&it.0.text), it.1));
    found.extend(name.bytes().map(VaguePiece::Byte));
    let global = if name == "git" { call(args).global.len() } else { 0 };
    let is_literal = args[..global].iter().all(Word::is_literal);
    let n_passed = if is_literal && global < args.len() { global } else { 0 };
    for word in &args[n_passed..] {
        if MAX_BYTES < found.len() {
            found.push(VaguePiece::Open);
            break;
        }
        add(word, &mut found);
    }
    VagueText(found)
}

/// Adds a word, with the blank in front of it unless it may come to nothing.
fn add(word: &Word, found: &mut Vec<VaguePiece>) {
    let is_open = |it: PieceKind| it == PieceKind::Open { quoted: false };
    let may_vanish = !word.text.is_empty()
        && matches!(&word.spans[..], [it] if it.start == 0 && it.end == word.text.len() && is_open(it.piece));
    if may_vanish {
        return found.push(VaguePiece::Open);
    }
    found.push(VaguePiece::Byte(b' '));
    if word.is_literal() {
        return found.extend(word.canonical().bytes().map(VaguePiece::Byte));
    }
    let mut at = 0;
    for span in &word.spans {
        add_plain(&word.text[at..span.start], word.has_glob(), found);
        match span.piece {
            PieceKind::Quoted => {
                let text = &word.text[span.start..span.end];
                found.extend(text.bytes().map(VaguePiece::Byte));
            }
            PieceKind::Open { quoted: true } => found.push(VaguePiece::Within),
            PieceKind::Open { quoted: false } => found.push(VaguePiece::Open),
        }
        at = span.end;
    }
    add_plain(&word.text[at..], word.has_glob(), found);
}

/// Adds text without quotes. Of a pattern what is in brackets, and all that follows, may be anything.
fn add_plain(text: &str, has_glob: bool, found: &mut Vec<VaguePiece>) {
    for byte in text.bytes() {
        match byte {
            b'*' | b'?' if has_glob => found.push(VaguePiece::Within),
            b'[' if has_glob => return found.push(VaguePiece::Within),
            byte => found.push(VaguePiece::Byte(byte)),
        }
    }
}

impl VagueText {
    /// Returns whether it may become a text that a pattern with `*` covers. Takes time in the product of the lengths.
    pub(super) fn may_meet(&self, pattern: &str) -> bool {
        let pattern = pattern.as_bytes();
        // Places in the pattern up to which it may have covered what was looked at.
        let mut reached = vec![false; pattern.len() + 1];
        reached[0] = true;
        pass_stars(pattern, &mut reached);
        for piece in &self.0 {
            let mut next = vec![false; pattern.len() + 1];
            for (at, byte) in pattern.iter().enumerate() {
                match piece {
                    VaguePiece::Byte(it) => {
                        next[at] |= reached[at] && *byte == b'*';
                        next[at + 1] |= reached[at] && byte == it;
                    }
                    VaguePiece::Open | VaguePiece::Within => {
                        let goes_on = *piece == VaguePiece::Open || *byte != b' ';
                        next[at] |= reached[at];
                        next[at + 1] |= next[at] && goes_on;
                    }
                }
            }
            if let (Some(last), VaguePiece::Open | VaguePiece::Within) = (reached.last(), piece) {
                next[pattern.len()] |= *last;
            }
            pass_stars(pattern, &mut next);
            reached = next;
        }
        reached.last() == Some(&true)
    }
}

/// Lets each star that was reached match nothing.
fn pass_stars(pattern: &[u8], reached: &mut [bool]) {
    for (at, byte) in pattern.iter().enumerate() {
        reached[at + 1] |= reached[at] && *byte == b'*';
    }
}
