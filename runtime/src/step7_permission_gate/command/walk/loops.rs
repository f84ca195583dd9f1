//! Variables of loops, where a word can represent all of their values.
//!
//! Only the class of a command looks at them: rules take every expansion for unknown.

use std::{collections::BTreeSet, sync::Arc};

use crate::step7_permission_gate::{
    command::{CommandPart, part::base, values::GivenValues},
    shell::{
        braces,
        tree::{CommandKind, List},
        word::Word,
    },
};

/// Programs that set the variables that their arguments name, or change their values.
const SETTERS: [&str; 14] = [
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "printf",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "eval",
    "source",
    ".",
];

/// Loops around one part whose variables are looked at.
const MAX_LOOPS: usize = 16;

/// The loops around what is looked at.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Their variables, from the outermost, with what represents the values; `None` where that is not known.
    open: Vec<Option<(String, Word)>>,
    /// What of them the parts in the innermost loop share.
    shared: Option<Arc<[(String, Word)]>>,
    /// Variables that some loop gives values that are not known.
    unknown: BTreeSet<String>,
    /// All values that loops give to variables.
    pub(super) given: GivenValues,
}

impl Loops {
    /// Enters a loop over these values.
    pub(super) fn begin(&mut self, name: &str, values: Option<&[Word]>) {
        self.given.add(name, values.unwrap_or(&[Word::open()]));
        let value = values.and_then(represented);
        if value.is_none() {
            self.unknown.insert(name.to_owned());
        }
        self.open.push(value.map(|it| (name.to_owned(), it)));
        self.shared = None;
    }

    /// Enters a loop that counts, `for ((i = 0; …))`.
    pub(super) fn count(&mut self, sums: &Word) {
        let name = sums.text.split('=').next().unwrap_or_default();
        let name = name.trim_matches(|c: char| c.is_whitespace() || c == '(');
        let is_name =
            !name.is_empty() && name.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric());
        self.open.push(is_name.then(|| (name.to_owned(), Word::plain("0"))));
        self.shared = None;
    }

    /// Leaves the loop that was entered last.
    pub(super) fn leave(&mut self) {
        self.open.pop();
        self.shared = None;
    }

    /// Returns the variables of all loops around this place; none if there are too many.
    pub(super) fn around(&mut self) -> Arc<[(String, Word)]> {
        let open = if self.open.len() <= MAX_LOOPS { &self.open[..] } else { &[] };
        let shared = self.shared.get_or_insert_with(|| open.iter().flatten().cloned().collect());
        Arc::clone(shared)
    }

    /// Takes variables back whose values something else may set.
    pub(super) fn end(&self, parts: &mut [CommandPart]) {
        if parts.iter().all(|it| it.bound.is_empty()) {
            return;
        }
        let mut set = self.unknown.clone();
        for part in parts.iter() {
            set.extend(part.assignments.iter().map(|it| it.name.clone()));
            if SETTERS.contains(&base(part.name())) {
                let name = |it: &Word| {
                    it.text.split(['=', '+', '[']).next().unwrap_or_default().to_owned()
                };
                set.extend(part.args().iter().map(name));
            }
        }
        // With another way to split values one may become several.
        let splits = set.contains("IFS");
        let is_kept = |it: &&(String, Word)| !splits && !set.contains(&it.0);
        for part in parts {
            if !part.bound.iter().all(|it| is_kept(&it)) {
                part.bound = part.bound.iter().filter(is_kept).cloned().collect();
            }
        }
    }
}

/// A word that represents all of these values; `None` where they are not known, or may be paths to elsewhere.
fn represented(values: &[Word]) -> Option<Word> {
    let mut all = Vec::new();
    for value in values {
        match counted(value) {
            Some(number) => all.push(number),
            None => all.extend(braces::expanded(value)?),
        }
    }
    let is_near = |it: &Word| {
        let text = it.text.as_str();
        it.is_known()
            && !text.is_empty()
            && !text.starts_with(['/', '~', '-', '.'])
            && !text.contains("/.")
            && !text.contains(char::is_whitespace)
    };
    if !all.iter().all(is_near) {
        return None;
    }
    match &all[..] {
        [] => None,
        [one] => Some(one.clone()),
        // Any name in the directory or below it.
        _ => Some(Word::plain("*")),
    }
}

/// A number, for what `seq` prints.
fn counted(value: &Word) -> Option<Word> {
    let [list] = &value.inner[..] else { return None };
    let is_whole = matches!(&value.spans[..], [it] if it.start == 0 && it.end == value.text.len());
    (is_whole && value.text.starts_with("$(") && counts(list)).then(|| Word::plain("0"))
}

/// Whether it is a call of `seq` alone, with numbers.
fn counts(list: &List) -> bool {
    let [item] = &list.0[..] else { return false };
    let [command] = &item.first.commands[..] else { return false };
    let CommandKind::Simple(simple) = &command.kind else { return false };
    let is_number =
        |it: &Word| it.is_literal() && it.text.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let is_alone = item.rest.is_empty()
        && simple.assignments.is_empty()
        && simple.redirections.is_empty()
        && command.redirections.is_empty();
    match simple.words.split_first() {
        Some((name, args)) => {
            is_alone && name.literal() == Some("seq") && args.iter().all(is_number)
        }
        None => false,
    }
}
