//! Texts of several languages and kinds, on which estimates of tokens are held against counts.

use super::{Estimate, Size, Tokens};

/// A text of one language or kind.
#[derive(Clone, Copy, Debug)]
pub struct CorpusText {
    /// The language, or what it is.
    pub name: &'static str,
    /// The text, of less than a thousand characters.
    pub text: &'static str,
}

impl CorpusText {
    /// Returns the number of its characters.
    pub fn chars(&self) -> u64 {
        Size::of(self.text).chars
    }

    /// Estimates its tokens as the context is estimated, by kinds of characters and with nothing learned.
    pub fn estimate(&self) -> Tokens {
        Estimate::of(Size::of(self.text)).by_class()
    }
}

/// The texts, written for this purpose; each is shorter than a thousand characters.
pub const CORPUS: [CorpusText; 9] = [
    CorpusText { name: "English", text: include_str!("corpus/english.txt") },
    CorpusText { name: "German", text: include_str!("corpus/german.txt") },
    CorpusText { name: "Russian", text: include_str!("corpus/russian.txt") },
    CorpusText { name: "Chinese", text: include_str!("corpus/chinese.txt") },
    CorpusText { name: "Japanese", text: include_str!("corpus/japanese.txt") },
    CorpusText { name: "Rust", text: include_str!("corpus/rust.txt") },
    CorpusText { name: "JSON", text: include_str!("corpus/json.txt") },
    CorpusText { name: "a log", text: include_str!("corpus/log.txt") },
    CorpusText { name: "base64", text: include_str!("corpus/base64.txt") },
];
