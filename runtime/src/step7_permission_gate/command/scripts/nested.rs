//! The texts that were found in a part, and how they are found in words.

use crate::step7_permission_gate::{command::options::is_long, shell::word::Word};

/// One text that is run.
#[derive(Debug)]
pub(in super::super) struct ScriptText {
    pub(in super::super) text: String,
    /// The shell itself runs it, so it may move the shell.
    pub(in super::super) is_own: bool,
    /// The shell itself may run it at any time later.
    pub(in super::super) is_later: bool,
    /// In a directory that is not known.
    pub(in super::super) is_elsewhere: bool,
}

impl ScriptText {
    /// Makes a text that runs once, where the part runs.
    pub(super) fn here(text: String, is_own: bool) -> Self {
        Self { text, is_own, is_later: false, is_elsewhere: false }
    }
}

/// What a part runs besides the program that it names.
#[derive(Debug, Default)]
pub(in super::super) struct NestedScripts {
    pub(in super::super) texts: Vec<ScriptText>,
    /// There is more of it than is written here, or it cannot be read.
    pub(in super::super) is_unseen: bool,
}

impl NestedScripts {
    pub(super) fn text(&mut self, text: &str) {
        self.texts.push(ScriptText::here(text.to_owned(), false));
    }

    /// Marks the texts from `first` on as run elsewhere: what git runs, it runs at the top of a repository.
    pub(super) fn leave_from(&mut self, first: usize) {
        self.texts.iter_mut().skip(first).for_each(|it| it.is_elsewhere = true);
    }

    /// Adds a text that is a word, or the end of one.
    pub(super) fn word(&mut self, text: &str, word: &Word) {
        self.text(text);
        self.is_unseen |= !word.is_known();
    }
    /// Adds the values of an option, each a text.
    pub(super) fn add_values(&mut self, args: &[Word], short: char, long: &str) {
        let found = values(args, short, long);
        // A value that is not known is not known to be none either.
        self.is_unseen |= !found.is_empty() && !args.iter().all(Word::is_known);
        found.into_iter().for_each(|text| self.text(text));
    }
}

/// Joins the words as a shell that runs them gets them.
pub(super) fn joined(words: &[Word]) -> String {
    let all: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
    all.join(" ")
}

/// Returns the values of an option, wherever they are.
pub(super) fn values<'a>(args: &'a [Word], short: char, long: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        let after = if is_long(text, long) {
            Some(text.split_once('=').map_or("", |it| it.1))
        } else if text.starts_with('-') && !text.starts_with("--") {
            text.split_once(short).map(|it| it.1)
        } else {
            None
        };
        match after {
            Some("") => found.extend(args.get(i + 1).map(|it| it.text.as_str())),
            Some(after) => found.push(after),
            None => {}
        }
    }
    found
}
