//! Values that a command itself gives to variables: by loops and by assignments, wherever they are.
//!
//! What a part does with them is added to what it does as written, so that a name cannot hide the root or a protected
//! file. Nothing is taken away by it: what is not known stays so.

use std::collections::BTreeMap;

use super::{
    CommandContext, CommandPart, NamedFile, base, changes::Changes, composed::pattern, files,
};
use crate::step7_permission_gate::{
    protected::may_be_protected,
    shell::{
        braces,
        tree::CommandKind,
        word::{PieceKind, Word, WordSpan},
    },
};

/// Values of all variables that are looked at.
const MAX_VALUES: usize = 512;

/// Forms of one part that are looked at, one for each choice of values.
const MAX_FORMS: usize = 64;

/// Forms of all parts that are looked at.
const MAX_ALL_FORMS: usize = 1_024;

/// Values of variables, as far as the text of a command shows them.
#[derive(Debug, Default)]
pub(super) struct GivenValues {
    all: BTreeMap<String, Vec<Word>>,
    n_values: usize,
    n_forms: usize,
    /// There are more than are looked at.
    is_cut: bool,
}

impl GivenValues {
    /// Adds the values over which a loop goes.
    pub(super) fn add(&mut self, name: &str, words: &[Word]) {
        for word in words {
            match braces::expanded(word) {
                Some(all) => all.into_iter().for_each(|it| self.add_one(name, it)),
                None => self.is_cut = true,
            }
        }
    }

    fn add_one(&mut self, name: &str, value: Word) {
        if MAX_VALUES <= self.n_values {
            self.is_cut = true;
            return;
        }
        let known = self.all.entry(name.to_owned()).or_default();
        if !known.contains(&value) {
            self.n_values += 1;
            known.push(value);
        }
    }

    /// Adds the assignments of these parts.
    pub(super) fn add_assignments(&mut self, parts: &[CommandPart]) {
        for it in parts.iter().flat_map(|it| &it.assignments) {
            self.add_one(&it.name, it.value.clone());
        }
    }

    /// Adds what a part does with each of the values.
    pub(super) fn complete(
        &mut self,
        part: &CommandPart,
        around: &CommandContext,
        found: &mut Changes,
    ) {
        let is_known = |it: &Word| self.is_known(it);
        found.is_critical |= !found.unknown_trees.iter().all(is_known);
        if let Some(form) = with_dotted_names(part) {
            let changes = files::changes(&form, around);
            let may_be = |it: &&NamedFile| it.paths.iter().any(|it| has_open_name(it));
            found.suspected.extend(changes.altered().filter(may_be).cloned());
        }
        if self.all.is_empty() {
            return;
        }
        let Some(forms) = self.forms(part) else {
            // Too many to look at: whatever it changes may be anything.
            let alters = found.altered().next().is_some();
            found.is_critical |= alters;
            return;
        };
        for form in forms {
            let changes = files::changes(&form, around);
            found.is_critical |= changes.is_critical;
            found.removes.extend(changes.removes);
            let altered = changes.changes.into_iter().chain(changes.writes);
            found.suspected.extend(altered.chain(changes.links).chain(changes.suspected));
        }
    }

    /// Whether all is known that a variable may hold, or a program has just made it.
    fn is_known(&self, word: &Word) -> bool {
        let of_variable = || {
            let values = variable(&word.text).and_then(|it| self.all.get(it));
            values.is_some_and(|all| all.iter().all(|it| it.is_known() || is_new(it)))
        };
        is_new(word) || !self.is_cut && of_variable()
    }

    /// The part with each choice of values in the place of its variables; `None` where there are too many.
    fn forms(&mut self, part: &CommandPart) -> Option<Vec<CommandPart>> {
        let redirected = part.redirections.iter().map(|it| &it.1);
        let words = part.words.iter().chain(redirected);
        let spans = words.flat_map(|word| word.spans.iter().map(|it| &word.text[it.start..it.end]));
        let mut names: Vec<&str> =
            spans.filter_map(variable).filter(|it| self.all.contains_key(*it)).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Some(Vec::new());
        }
        let mut choices: Vec<Vec<(&str, &Word)>> = vec![Vec::new()];
        for name in names {
            let values = self.all.get(name).map(Vec::as_slice).unwrap_or_default();
            if MAX_FORMS < choices.len() * values.len() {
                return None;
            }
            let with = |choice: &Vec<_>| {
                let more = |value| choice.iter().copied().chain([(name, value)]).collect();
                values.iter().map(more).collect::<Vec<Vec<(&str, &Word)>>>()
            };
            choices = choices.iter().flat_map(with).collect();
        }
        // They are counted before they are made: a command of many parts costs no more.
        self.n_forms += choices.len();
        let is_looked_at = !self.is_cut && self.n_forms <= MAX_ALL_FORMS;
        is_looked_at.then(|| choices.iter().map(|it| form(part, it)).collect())
    }
}

/// A part with these values.
fn form(part: &CommandPart, choice: &[(&str, &Word)]) -> CommandPart {
    with_words(part, |it| replaced(it, choice))
}

/// A part with other words in the place of each of its words.
fn with_words(part: &CommandPart, other: impl Fn(&Word) -> Vec<Word>) -> CommandPart {
    let words = part.words.iter().flat_map(&other).collect();
    let redirections = part.redirections.iter();
    let redirections = redirections
        .flat_map(|(kind, word)| other(word).into_iter().map(|it| (*kind, it)))
        .collect();
    let mut found =
        CommandPart::new(part.assignments.clone(), words, redirections, part.dirs.clone());
    (found.is_lost, found.is_fed) = (part.is_lost, part.is_fed);
    (found.is_displaced, found.has_moved) = (part.is_displaced, part.has_moved);
    found.piped = part.piped.clone();
    found
}

/// A part with a pattern in the place of each expansion, where one is in a name that begins with a dot: `.g${x}it`.
fn with_dotted_names(part: &CommandPart) -> Option<CommandPart> {
    let is_open = |it: &&WordSpan| it.piece != PieceKind::Quoted;
    let is_dotted = |word: &Word, at: usize| {
        let name = base(&word.text[..at]);
        name.starts_with('.')
    };
    let has_one =
        |word: &Word| word.spans.iter().filter(is_open).any(|it| is_dotted(word, it.start));
    let mut all = part.words.iter().chain(part.redirections.iter().map(|it| &it.1));
    all.any(has_one).then(|| {
        let opened =
            |word: &Word| if has_one(word) { Word::plain(&pattern(word)) } else { word.clone() };
        with_words(part, |it| vec![opened(it)])
    })
}

/// Whether a path has a name that begins with a dot and is a pattern.
fn has_open_name(path: &str) -> bool {
    path.split('/').any(|it| it.starts_with('.') && it.contains('*'))
        && may_be_protected(path, false)
}

/// The words that a word becomes with these values.
fn replaced(word: &Word, choice: &[(&str, &Word)]) -> Vec<Word> {
    let value_of = |span: &WordSpan| {
        let name = variable(&word.text[span.start..span.end])?;
        choice.iter().find(|it| it.0 == name).map(|it| it.1)
    };
    let mut found = Word { inner: word.inner.clone(), sets: word.sets, ..Word::default() };
    let (mut at, mut splits) = (0, false);
    for span in &word.spans {
        found.text.push_str(&word.text[at..span.start]);
        let start = found.text.len();
        match value_of(span) {
            Some(value) => {
                found.text.push_str(&value.text);
                let is_quoted = span.piece == PieceKind::Open { quoted: true };
                splits |= !is_quoted && value.text.contains(char::is_whitespace);
                // Outside quotes a value is a pattern even where it was written in quotes.
                let kept =
                    value.spans.iter().filter(|it| is_quoted || it.piece != PieceKind::Quoted);
                found.spans.extend(kept.map(|it| WordSpan {
                    start: start + it.start,
                    end: start + it.end,
                    piece: it.piece,
                }));
            }
            None => {
                found.text.push_str(&word.text[span.start..span.end]);
                found.spans.push(WordSpan { start, end: found.text.len(), piece: span.piece });
            }
        }
        at = span.end;
    }
    found.text.push_str(&word.text[at..]);
    if splits && found.is_bare() {
        return found.text.split_whitespace().map(Word::plain).collect();
    }
    vec![found]
}

/// The name of the variable that an expansion gives as it is.
fn variable(expansion: &str) -> Option<&str> {
    let name = expansion.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
    let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    (!name.is_empty() && is_name).then_some(name)
}

/// Whether it is the name of a file or directory that `mktemp` makes.
fn is_new(word: &Word) -> bool {
    let is_whole = matches!(&word.spans[..], [it] if it.start == 0 && it.end == word.text.len());
    let [list] = &word.inner[..] else { return false };
    let [item] = &list.0[..] else { return false };
    let [command] = &item.first.commands[..] else { return false };
    let CommandKind::Simple(simple) = &command.kind else { return false };
    is_whole
        && (word.text.starts_with("$(") || word.text.starts_with('`'))
        && item.rest.is_empty()
        && simple.assignments.is_empty()
        && simple.words.first().is_some_and(|it| it.text == "mktemp")
        && simple.words.iter().all(Word::is_literal)
}
