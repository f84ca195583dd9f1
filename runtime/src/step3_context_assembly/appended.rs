//! What becomes due while a session lives is appended to the conversation.
//!
//! Nothing that the model has read is written again, so the prefix of its requests stays as it is. Each
//! part has a name and a state; the state that the model knows is the one it was shown last. What a
//! compaction or a shaper takes away counts as not shown.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    InstructionFile, PathRule, SourcesSeen, cut,
    source3_instructions::whose,
    source8_tool_results::{Paragraph, reminder_quoting},
    titled,
};
use crate::{
    digest::Digest,
    ids::EntryId,
    tool::{Todo, TodoStatus},
    transcript::entry::ShownPart,
};

/// Characters of one file or rule that is appended.
const MAX_PART_CHARS: usize = 20_000;

/// Characters that are appended at once.
const MAX_CHARS: usize = 100_000;

/// Name of the day.
const DATE: &str = "date";

/// Name of the model.
const MODEL: &str = "model";

/// What names of instruction files begin with.
const FILE: &str = "file ";

/// Name of the list of tasks.
const TASKS: &str = "tasks";

/// Bytes of a name; a longer path is named by its digest, so that records stay short.
const MAX_NAME: usize = 1_024;

/// A part of the context that can change while a session lives, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePart {
    /// What it is: `date`, `model`, `tasks`, `skill <name>`, `file <path>`, `nested <path>` or `rule <path>`.
    pub name: String,
    /// Place of its source among the nine, from 0.
    pub source: u8,
    /// Digest of what is to be known.
    pub state: Digest,
    /// What the model reads if it does not know.
    pub text: String,
}

/// What the model has been shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownParts {
    /// In front of the conversation, where nothing is ever taken away.
    base: Arc<BTreeMap<String, Digest>>,
    /// In the conversation, oldest first.
    shown: Vec<ShownPart>,
}

impl ShownParts {
    /// Returns what an earlier process appended, as far as the conversation still holds it.
    pub(crate) fn recorded(parts: &[ShownPart], is_there: impl Fn(&EntryId) -> bool) -> Self {
        let shown = parts.iter().filter(|it| is_there(&it.entry)).cloned().collect();
        Self { base: Arc::default(), shown }
    }

    /// Notes what precedes the conversation.
    pub fn begin(&mut self, parts: &[DuePart]) {
        self.base = Arc::new(parts.iter().map(|it| (it.name.clone(), it.state)).collect());
    }

    /// Notes what a message shows; once.
    pub fn show(&mut self, part: ShownPart) {
        if !self.shown.contains(&part) {
            self.shown.push(part);
        }
    }

    /// Forgets what messages showed that the model does not see any more.
    pub fn keep(&mut self, is_there: impl Fn(&EntryId) -> bool) {
        self.shown.retain(|it| is_there(&it.entry));
    }

    /// Returns the characters of each of the nine sources in the conversation.
    pub(crate) fn sizes(&self) -> [u64; 9] {
        let mut sizes = [0; 9];
        for part in &self.shown {
            if let Some(size) = sizes.get_mut(usize::from(part.source)) {
                *size += part.chars;
            }
        }
        sizes
    }

    /// Whether the model knows this state of a part.
    fn knows(&self, name: &str, state: Digest) -> bool {
        let shown = self.shown.iter().rev().find(|it| it.part == name).map(|it| it.state);
        shown.or_else(|| self.base.get(name).copied()) == Some(state)
    }

    /// Whether the model was shown a state of this part that still holds.
    pub(crate) fn shows(&self, name: &str) -> bool {
        let shown = self.shown.iter().rev().find(|it| it.part == name);
        shown.is_some_and(|it| it.state != Digest::default())
    }

    /// Makes the parts of the day and the model, those of them that the model does not know. Most turns have neither,
    /// and their texts are not made.
    pub(crate) fn due_facts(
        &self,
        model: &str,
        knowledge: impl Fn() -> String,
        day: &str,
    ) -> Vec<DuePart> {
        let mut due = Vec::new();
        if !self.knows(DATE, Digest::of(day.as_bytes())) {
            due.push(self::date(day));
        }
        if !self.knows(MODEL, Digest::of(model.as_bytes())) {
            due.push(self::model(model, &knowledge(), day));
        }
        due
    }

    /// Returns the parts among these that the model does not know as they are, and those files that it knows and that
    /// are gone.
    pub fn due(&self, parts: Vec<DuePart>, day: &str) -> Vec<DuePart> {
        let names = self.base.keys().chain(self.shown.iter().map(|it| &it.part));
        if parts.is_empty() && !names.into_iter().any(|it| it.starts_with(FILE)) {
            return Vec::new();
        }
        let mut known: BTreeMap<&str, Digest> =
            self.base.iter().map(|it| (&**it.0, *it.1)).collect();
        known.extend(self.shown.iter().map(|it| (&*it.part, it.state)));
        let present: BTreeSet<&str> = parts.iter().map(|it| it.name.as_str()).collect();
        let is_gone = |(name, state): &(&&str, &Digest)| {
            name.starts_with(FILE) && **state != Digest::default() && !present.contains(**name)
        };
        let gone: Vec<DuePart> =
            known.iter().filter(is_gone).map(|(name, _)| removal_part(name, day)).collect();
        let mut left = MAX_CHARS;
        let due = parts.into_iter().filter(|it| known.get(&*it.name) != Some(&it.state));
        gone.into_iter()
            .chain(due)
            .take_while(|it| {
                let n_chars = it.text.chars().count();
                let fits = n_chars <= left;
                left = left.saturating_sub(n_chars);
                fits
            })
            .collect()
    }
}

/// Makes the part of the day, in UTC.
pub(crate) fn date(day: &str) -> DuePart {
    let text = format!("A new day has begun. Today's date is {day} (UTC).");
    DuePart {
        name: DATE.into(),
        source: 1,
        state: Digest::of(day.as_bytes()),
        text: super::reminder(&text),
    }
}

/// Makes the part that names the model that is asked, and the month that its knowledge reaches to; empty when not
/// known.
pub fn model(model: &str, knowledge: &str, day: &str) -> DuePart {
    let mut text = format!("As of {day} the model that continues this conversation is {model}.");
    if !knowledge.is_empty() {
        text.push_str(&format!(" Its knowledge reaches to {knowledge}."));
    }
    let state = Digest::of(model.as_bytes());
    DuePart { name: MODEL.into(), source: 1, state, text: super::reminder(&text) }
}

/// Makes the part that lists the tasks; `None` if there are none or all are done.
pub fn tasks(todos: &[Todo], day: &str) -> Option<DuePart> {
    let is_open = |it: &Todo| it.status != TodoStatus::Completed;
    todos.iter().any(is_open).then(|| {
        let lines = super::restored::tasks(todos);
        let title = format!("Your list of tasks, as of {day}:");
        let shown = Paragraph::quoting(title, "list of tasks", &cut(&lines, MAX_PART_CHARS));
        let state = Digest::of(lines.as_bytes());
        DuePart { name: TASKS.into(), source: 7, state, text: reminder_quoting(&[shown]) }
    })
}

/// Makes the part of the instruction files and the rules that apply, as they are now. `rules` are those that are for
/// files that were read.
pub fn files(seen: &SourcesSeen, rules: &[&PathRule], day: &str) -> Vec<DuePart> {
    let changed = format!(
        "Instructions of the people you work for, as they are since {day}. They hold in the place of \
         what you read of this file before."
    );
    let nested = format!(
        "Instructions of the people you work for, for files of a directory in which you have read, \
         as of {day}."
    );
    let rule =
        format!("A rule of the people you work for, for files that you have read, as of {day}.");
    let from_start = seen.instructions.iter().map(|it| instruction_part("file", it, &changed));
    let of_nested = seen.nested.iter().map(|it| instruction_part("nested", it, &nested));
    let of_rules = rules.iter().map(|it| DuePart {
        name: name_of("rule", &it.path),
        source: 3,
        state: Digest::of(it.text.as_bytes()),
        text: file_text(&rule, &it.path, "", &it.text),
    });
    from_start.chain(of_nested).chain(of_rules).collect()
}

fn instruction_part(kind: &str, file: &InstructionFile, title: &str) -> DuePart {
    let whose = format!(" ({})", whose(file.scope));
    DuePart {
        name: name_of(kind, &file.path),
        source: 2,
        state: Digest::of(file.text.as_bytes()),
        text: file_text(title, &file.path, &whose, &file.text),
    }
}

fn removal_part(name: &str, day: &str) -> DuePart {
    let path = name.strip_prefix(FILE).unwrap_or(name);
    let text = format!(
        "The instruction file {path} is gone as of {day}. What it said does not hold any more."
    );
    DuePart { name: name.into(), source: 2, state: Digest::default(), text: super::reminder(&text) }
}

fn file_text(title: &str, path: &str, whose: &str, text: &str) -> String {
    titled(title, &format!("Contents of {path}{whose}:\n\n{}", cut(text.trim(), MAX_PART_CHARS)))
}

pub(super) fn name_of(kind: &str, path: &str) -> String {
    if path.len() <= MAX_NAME {
        format!("{kind} {path}")
    } else {
        format!("{kind} {}", Digest::of(path.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Scope;

    fn seen(text: &str) -> SourcesSeen {
        let file = InstructionFile {
            scope: Scope::Project,
            path: "/w/CLAUDE.md".into(),
            text: text.into(),
        };
        SourcesSeen { instructions: vec![file], ..SourcesSeen::default() }
    }

    fn shown_in(entry: &str, part: &DuePart) -> ShownPart {
        let DuePart { name, source, state, text } = part.clone();
        let chars = text.chars().count() as u64;
        ShownPart { entry: entry.into(), part: name, source, state, chars }
    }

    fn names(due: &[DuePart]) -> Vec<&str> {
        due.iter().map(|it| it.name.as_str()).collect()
    }

    // REQ: CTX-2, CTX-7
    #[test]
    fn file_that_changed_is_due_once_and_again_when_the_model_does_not_see_it_any_more() {
        let mut known = ShownParts::default();
        known.begin(&files(&seen("old"), &[], "D"));
        assert!(known.due(files(&seen("old"), &[], "E"), "E").is_empty());
        let due = known.due(files(&seen("new"), &[], "E"), "E");
        assert_eq!(names(&due), ["file /w/CLAUDE.md"]);
        assert!(due[0].text.contains("since E") && due[0].text.contains("new"), "{}", due[0].text);
        known.show(shown_in("1", &due[0]));
        known.show(shown_in("1", &due[0]));
        assert_eq!(known.sizes()[2], due[0].text.chars().count() as u64);
        assert!(known.due(files(&seen("new"), &[], "F"), "F").is_empty());
        // Back to what precedes the conversation: that is a change as well.
        assert_eq!(known.due(files(&seen("old"), &[], "F"), "F").len(), 1);
        known.keep(|_| false);
        assert_eq!(known.due(files(&seen("new"), &[], "F"), "F").len(), 1);
        assert!(known.due(files(&seen("old"), &[], "F"), "F").is_empty());
    }

    // REQ: CTX-2
    #[test]
    fn day_and_model_that_the_model_knows_make_no_text() {
        let mut known = ShownParts::default();
        known.begin(&[date("D"), model("m", "", "D")]);
        let n_asked = std::cell::Cell::new(0);
        let knowledge = || {
            n_asked.set(n_asked.get() + 1);
            "May 2026".to_owned()
        };
        assert!(known.due_facts("m", knowledge, "D").is_empty());
        assert_eq!(n_asked.get(), 0);
        let due = known.due_facts("n", knowledge, "E");
        assert_eq!((names(&due), n_asked.get()), (vec!["date", "model"], 1));
        assert!(due[1].text.contains("May 2026"));
        // What was shown last counts, and not what precedes the conversation.
        due.iter().for_each(|it| known.show(shown_in("1", it)));
        assert!(known.due_facts("n", knowledge, "E").is_empty());
        assert_eq!(known.due_facts("m", knowledge, "D").len(), 2);
        known.keep(|_| false);
        assert!(known.due_facts("m", knowledge, "D").is_empty());
    }

    // REQ: CTX-2
    #[test]
    fn file_that_is_gone_is_named_once() {
        let mut known = ShownParts::default();
        known.begin(&files(&seen("old"), &[], "D"));
        let due = known.due(Vec::new(), "E");
        assert!(due[0].text.contains("/w/CLAUDE.md is gone as of E"), "{}", due[0].text);
        known.show(shown_in("1", &due[0]));
        assert!(known.due(Vec::new(), "F").is_empty());
        assert_eq!(known.due(files(&seen("old"), &[], "F"), "F").len(), 1);
    }

    // REQ: CTX-1
    #[test]
    fn what_is_appended_at_once_is_bounded_and_the_rest_stays_due() {
        let file = |i: usize| InstructionFile {
            scope: Scope::Project,
            path: format!("/w/{i}/CLAUDE.md"),
            text: "x".repeat(1_000_000),
        };
        let seen = SourcesSeen { nested: (0..9).map(file).collect(), ..SourcesSeen::default() };
        let due = ShownParts::default().due(files(&seen, &[], "D"), "D");
        assert_eq!(due.len(), 4);
        let n_chars: usize = due.iter().map(|it| it.text.chars().count()).sum();
        assert!(n_chars <= MAX_CHARS, "{n_chars}");
    }
}
