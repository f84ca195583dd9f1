//! What a command of a pipeline gets from those in front of it.

use std::sync::Arc;

use super::part::base;
use crate::step7_permission_gate::shell::{
    braces,
    tree::{Command, CommandKind, Redirect, Redirection, Simple},
    word::Word,
};

/// What comes through a pipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piped {
    /// All of it, where the command in front of it prints a text that is written there.
    pub(crate) text: Option<Arc<str>>,
    /// Words of the first command of the pipeline, and of the one in front. For one that makes
    /// arguments of its input alone.
    pub(crate) words: Arc<[Word]>,
    /// There are more commands in front than one, which may leave some out.
    pub(crate) is_filtered: bool,
}

/// Programs that print names of files which their operands name, or that are below them.
const LISTING: [&str; 8] = ["find", "fd", "fdfind", "ls", "grep", "egrep", "fgrep", "rg"];

impl Piped {
    /// Returns what the last of these commands hands on to one with these words.
    pub(super) fn from(before: &[Command], to: &Simple) -> Option<Self> {
        let (last, first) = (before.last()?, before.first()?);
        let is_argument = |it: &Word| matches!(base(&it.text), "xargs" | "parallel");
        let words = if to.words.iter().any(is_argument) {
            let last = if before.len() > 1 { words_of(last) } else { &[] };
            words_of(first).iter().chain(last).cloned().collect()
        } else {
            Arc::default()
        };
        let is_filtered = before.len() > 1;
        Some(Self { text: printed(last).map(Arc::from), words, is_filtered })
    }

    /// Returns the words that `xargs` makes of it; `None` if they are not known.
    pub(super) fn arguments(&self) -> Option<Vec<Word>> {
        let text = self.text.as_ref().filter(|it| !it.contains(['\'', '"', '\\']))?;
        Some(text.split_whitespace().map(Word::plain).collect())
    }

    /// Returns whether it consists of names of files that the words in front of it name, or that are below.
    pub(super) fn lists_files(&self) -> bool {
        let name = self.words.first().map_or("", |it| it.text.as_str());
        let is_listing = LISTING.contains(&name)
            || name == "git" && self.words.get(1).is_some_and(|it| it.text == "ls-files");
        is_listing && self.words.iter().all(Word::is_known)
    }
}

fn words_of(command: &Command) -> &[Word] {
    match &command.kind {
        CommandKind::Simple(simple) => &simple.words,
        _ => &[],
    }
}

/// The text that a command prints, where its words say it.
fn printed(command: &Command) -> Option<String> {
    let CommandKind::Simple(simple) = &command.kind else { return None };
    let copies = |it: &Redirection| it.kind == Redirect::Copy;
    let is_plain = simple.redirections.iter().chain(&command.redirections).all(copies)
        && simple.assignments.is_empty();
    let (name, args) = simple.words.split_first().filter(|_| is_plain)?;
    let mut texts = Vec::with_capacity(args.len());
    for arg in args {
        let is_one = braces::expanded(arg).is_some_and(|it| it.len() == 1);
        texts.push(arg.literal().filter(|_| is_one)?);
    }
    // What a backslash means differs from shell to shell.
    let is_plain = |it: &&str| !it.contains('\\');
    match name.literal()? {
        "echo" => {
            let is_option = |it: &&&str| {
                it.strip_prefix('-').is_some_and(|it| {
                    !it.is_empty() && it.bytes().all(|it| matches!(it, b'n' | b'e' | b'E'))
                })
            };
            let n_options = texts.iter().take_while(is_option).count();
            let all_plain = texts.iter().all(is_plain);
            all_plain.then(|| texts[n_options..].join(" ") + "\n")
        }
        "printf" => match texts.split_first()? {
            (&"%s", values) if values.iter().all(is_plain) => Some(values.concat()),
            (&"%s\\n", values) if values.iter().all(is_plain) => Some(values.join("\n") + "\n"),
            (format, _) if !format.contains('%') && !format.starts_with('-') => {
                Some(format.replace("\\n", "\n")).filter(|it| is_plain(&it.as_str()))
            }
            _ => None,
        },
        _ => None,
    }
}
