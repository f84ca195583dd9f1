//! One simple command, with what is known of where it runs.

use std::sync::Arc;

use super::{Dirs, PathTarget, piped::Piped, starts::starts, wrappers};
use crate::step7_permission_gate::shell::{
    Fault,
    tree::{Assignment, Redirect},
    word::Word,
};

/// One simple command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPart {
    /// Variables that are set for it, or by it when it has no words.
    pub(crate) assignments: Vec<Assignment>,
    /// Its words, braces expanded.
    pub(crate) words: Vec<Word>,
    /// Its redirections; the word is a file, a descriptor or a text.
    pub(crate) redirections: Vec<(Redirect, Word)>,
    /// The directories that it may run in.
    pub(crate) dirs: Dirs,
    /// One of them is not the one that the command started in.
    pub(crate) has_moved: bool,
    /// A path may lead elsewhere than it says: another root, a container.
    pub(crate) is_displaced: bool,
    /// Only deny and ask rules look at it: something that was started runs it.
    pub(crate) is_hidden: bool,
    /// The home and the current directory may be called otherwise.
    pub(crate) is_lost: bool,
    /// Where the inner command begins, after wrappers that change nothing.
    pub(crate) start: usize,
    /// It may run at another time than its place among the parts says.
    pub(crate) at_any_time: bool,
    /// More words come from its input.
    pub(crate) is_fed: bool,
    /// A function of this name is defined in the command, so what it does with the words is not known.
    pub(crate) is_function: bool,
    /// It is the call of a function that the command has defined in front of it, whose parts are judged.
    pub(crate) is_call: bool,
    /// What its operands name was found by a search, so there may be any number of them.
    pub(crate) is_bulk: bool,
    /// Variables of the loops around it, each with a word that represents all of its values.
    pub(crate) bound: Arc<[(String, Word)]>,
    /// What comes through the pipe in front of it.
    pub(crate) piped: Option<Piped>,
    /// It runs code that is not in the text: a program of another language, a file as a script, or what
    /// comes from its input.
    pub(crate) is_unseen: bool,
    /// How many programs run it, one the other, that are not stepped over: `env nice find -exec`.
    pub(crate) n_outer: usize,
    /// Where commands may begin in its words.
    pub(crate) starts: Vec<usize>,
    /// The texts by which deny and ask rules know it, but for those that are the end of `whole`; found once, since
    /// there may be many rules.
    pub(crate) called: Vec<String>,
    /// Where further such texts begin in `whole`.
    pub(crate) ends: Vec<usize>,
    /// What is wrong with the wrappers or the name.
    pub(crate) fault: Option<Fault>,
    /// The name of the inner command is known.
    pub(crate) has_name: bool,
    /// All its words as text.
    pub(crate) whole: String,
    /// The words of the inner command as text.
    pub(crate) text: String,
}

impl CommandPart {
    pub(crate) fn new(
        assignments: Vec<Assignment>,
        words: Vec<Word>,
        redirections: Vec<(Redirect, Word)>,
        dirs: Dirs,
    ) -> Self {
        let wrapped = wrappers::strip(&words);
        let starts = starts(&words);
        let whole = canonical(&words);
        let text = match wrapped.start {
            0 => whole.clone(),
            start => canonical(&words[start..]),
        };
        let name = words.get(wrapped.start);
        let has_name = name.is_some_and(Word::is_literal);
        let is_named = name.is_none_or(|it| has_name && it.text.is_ascii());
        let fault = wrapped.fault.or((!is_named).then_some(Fault::Name));
        Self {
            assignments,
            words,
            redirections,
            dirs,
            has_moved: false,
            is_displaced: false,
            is_hidden: false,
            is_lost: false,
            at_any_time: false,
            start: wrapped.start,
            is_fed: wrapped.is_fed,
            is_function: false,
            is_call: false,
            is_bulk: false,
            bound: Arc::default(),
            piped: None,
            is_unseen: false,
            n_outer: 0,
            starts,
            called: Vec::new(),
            ends: Vec::new(),
            fault,
            has_name,
            whole,
            text,
        }
    }

    /// Returns the words of the inner command.
    pub(crate) fn inner(&self) -> &[Word] {
        self.words.get(self.start..).unwrap_or_default()
    }

    /// Returns the name of the inner command; empty when it has none or it is not known.
    pub(crate) fn name(&self) -> &str {
        let name = self.inner().first().filter(|_| self.has_name);
        name.map(|it| it.text.as_str()).unwrap_or_default()
    }

    /// Returns whether it is known where a path leads from these directories, as far as it is written.
    pub(crate) fn leads(&self, target: &PathTarget, dirs: &Dirs) -> bool {
        !self.is_displaced && (target.text().starts_with('/') || !dirs.is_unknown())
    }

    /// Returns the words after the name.
    pub(crate) fn args(&self) -> &[Word] {
        self.inner().get(1..).unwrap_or_default()
    }
}

/// Returns where each of the words begins in their [`canonical`] text.
pub(crate) fn places(words: &[Word]) -> Vec<usize> {
    let mut text = String::new();
    let mut at = 0;
    let place = |word: &Word| {
        text.clear();
        word.write_canonical(&mut text);
        let place = at;
        at += text.len() + 1;
        place
    };
    words.iter().map(place).collect()
}

/// Writes words as one text that the shell would take apart into the same words.
pub(crate) fn canonical(words: &[Word]) -> String {
    let mut text = String::with_capacity(words.iter().map(|it| it.text.len() + 3).sum());
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            text.push(' ');
        }
        word.write_canonical(&mut text);
    }
    text
}

/// Returns the last component of a path.
pub(crate) fn base(name: &str) -> &str {
    // Names are short: a search made for long texts costs more than it saves.
    match name.bytes().rposition(|it| it == b'/') {
        Some(at) => &name[at + 1..],
        None => name,
    }
}
