//! The edges of a message: blanks around it are not delivered, and neither is a message that says
//! nothing but heartbeat tokens (OUT-2).
//!
//! A model that is woken and has nothing to report answers with a token, by default `HEARTBEAT_OK`.
//! Alone it is for the harness; next to other words it is one of them and stays. It may be
//! repeated, and be in emphasis, quotes or code marks, or before a full stop.
//!
//! Linear: what may still be nothing is held back, and per character only the last word of it is
//! compared, of which no more than a token and [`MAX_MARKS`] characters can fit.

use std::sync::Arc;

/// Marks around a token that count as none.
const MARKS: [char; 9] = ['*', '_', '`', '"', '\'', '~', '.', '!', ','];

/// As many of them on each side at most.
const MAX_MARKS: usize = 8;

/// Takes blanks and heartbeat tokens off the edges of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    tokens: Arc<[String]>,
    state: HeartbeatState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeartbeatState {
    /// The text so far is blanks and tokens; the last word begins at `word`.
    Nothing { held: String, word: usize },
    /// The text has words. The blanks after them wait for what follows.
    Saying { blanks: String },
}

impl Edges {
    pub(super) fn new(tokens: Arc<[String]>) -> Self {
        Self { tokens, state: HeartbeatState::Nothing { held: String::new(), word: 0 } }
    }

    /// Takes a piece; pushes what is to be delivered.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text.chars();
        while let HeartbeatState::Nothing { held, word } = &mut self.state {
            let Some(c) = rest.next() else { return };
            let fits =
                if c.is_whitespace() { is_nothing(&self.tokens, &held[*word..]) } else { true };
            held.push(c);
            if fits && c.is_whitespace() {
                *word = held.len();
            } else if !fits || !may_be_token(&self.tokens, &held[*word..]) {
                let held = std::mem::take(held);
                self.state = HeartbeatState::Saying { blanks: String::new() };
                self.say(held.trim_start(), out);
            }
        }
        self.say(rest.as_str(), out);
    }

    /// Ends the message; pushes what turned out to be something.
    pub(super) fn finish(self, out: &mut String) {
        if let HeartbeatState::Nothing { held, word } = &self.state
            && !is_nothing(&self.tokens, &held[*word..])
        {
            out.push_str(held.trim());
        }
    }

    fn say(&mut self, text: &str, out: &mut String) {
        let HeartbeatState::Saying { blanks } = &mut self.state else { return };
        let trimmed = text.trim_end();
        if !trimmed.is_empty() {
            out.push_str(blanks);
            out.push_str(trimmed);
            blanks.clear();
        }
        blanks.push_str(&text[trimmed.len()..]);
    }
}

/// Whether a word is a token, or none.
fn is_nothing(tokens: &[String], word: &str) -> bool {
    word.is_empty()
        || tokens
            .iter()
            .any(|token| inside(word, token).is_some_and(|(_, after)| after.chars().all(is_mark)))
}

/// Whether a word is the beginning of a token, or one with marks after it.
fn may_be_token(tokens: &[String], word: &str) -> bool {
    let bare = word.trim_start_matches(is_mark);
    if MAX_MARKS < word.len() - bare.len() {
        return false;
    }
    bare.is_empty()
        || tokens.iter().any(|token| token.trim_start_matches(is_mark).starts_with(bare))
        || tokens.iter().any(|token| {
            inside(word, token)
                .is_some_and(|(_, after)| after.len() <= MAX_MARKS && after.chars().all(is_mark))
        })
}

/// What is before and after the token in a word that begins with it, marks aside.
fn inside<'w>(word: &'w str, token: &str) -> Option<(&'w str, &'w str)> {
    let (bare, token) = (word.trim_start_matches(is_mark), token.trim_matches(is_mark));
    let after = bare.strip_prefix(token).filter(|_| !token.is_empty())?;
    Some((&word[..word.len() - bare.len()], after))
}

fn is_mark(c: char) -> bool {
    MARKS.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, delivered: &str) {
        let chars: Vec<char> = text.chars().collect();
        for step in [1, 2, 3, chars.len().max(1)] {
            let tokens = ["HEARTBEAT_OK".to_owned(), "NO_REPLY".to_owned()];
            let (mut edges, mut out) = (Edges::new(tokens.into()), String::new());
            for piece in chars.chunks(step) {
                edges.push(&String::from_iter(piece), &mut out);
            }
            edges.finish(&mut out);
            assert_eq!(out, delivered, "{text:?} in steps of {step}");
        }
    }

    // REQ: OUT-2
    #[test]
    fn heartbeat_alone_is_nothing() {
        for text in [
            "HEARTBEAT_OK",
            " \n HEARTBEAT_OK \n",
            "HEARTBEAT_OK HEARTBEAT_OK\nNO_REPLY",
            "**HEARTBEAT_OK**",
            "`HEARTBEAT_OK`",
            "\"HEARTBEAT_OK.\"",
            "HEARTBEAT_OK.",
            "HEARTBEAT_OK!!",
        ] {
            check(text, "");
        }
    }

    // REQ: OUT-2
    #[test]
    fn heartbeat_beside_other_words_stays() {
        for text in [
            "HEARTBEAT_OK, and it rains",
            "all is well: HEARTBEAT_OK",
            "HEARTBEAT_OKAY",
            "HEARTBEAT_O",
            "HEARTBEAT",
            "heartbeat_ok",
            "HEARTBEAT_OK?",
            "HEARTBEAT_OK HEART",
            "**HEARTBEAT_OK** fine",
            "H",
            "*********HEARTBEAT_OK",
            "HEARTBEAT_OK\n\n- done",
        ] {
            check(text, text);
        }
    }

    // REQ: OUT-2
    #[test]
    fn blanks_are_nothing_and_go_from_the_edges_only() {
        for (text, delivered) in [
            ("", ""),
            (" \t\r\n\u{a0}\u{2003}", ""),
            ("  a  b  ", "a  b"),
            ("\n\na\n\nb\n\n", "a\n\nb"),
            ("***", "***"),
            (".", "."),
        ] {
            check(text, delivered);
        }
    }

    // REQ: OUT-2
    #[test]
    fn without_tokens_only_blanks_are_nothing() {
        let (mut edges, mut out) = (Edges::new(Arc::new([])), String::new());
        edges.push(" HEARTBEAT_OK ", &mut out);
        edges.finish(&mut out);
        assert_eq!(out, "HEARTBEAT_OK");
    }
}
