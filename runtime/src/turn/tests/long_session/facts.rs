//! Facts that are planted in a long session, and where they are afterwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    digest::Digest,
    tool::{Todo, TodoStatus},
};

/// Facts in a session: eight of each kind.
pub(super) const N_FACTS: usize = 40;

/// Where a fact was said.
const KINDS: [&str; 5] = ["prompts", "answers", "results", "list of tasks", "instructions"];

/// Where a fact is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// It was not said yet.
    #[default]
    Unsaid,
    /// The request has it.
    Shown,
    /// The request names a file that has it, or that names one that has it. That Read shows it there is held by
    /// `tests/sessions/planted_facts.rs`.
    Referenced,
    /// The request neither has it nor names a file that has it.
    Lost,
}

/// All facts of a session, by their number.
#[derive(Default)]
pub(super) struct PlantedFacts {
    /// Missing ones were not said yet.
    places: BTreeMap<usize, Place>,
    /// Of those that were lost: the stage that dropped them.
    lost_to: BTreeMap<usize, String>,
    /// Characters on each side of a fact in a prompt or an answer.
    around: usize,
}

/// The words of a fact.
fn words(number: usize) -> String {
    format!("fact {number:02} is {:08x}", number.wrapping_mul(0x9e37_79b9) as u32)
}

/// The facts in a text, as their words.
fn found_in(text: &str) -> BTreeSet<&str> {
    let n = words(0).len();
    text.match_indices("fact ").filter_map(|(at, _)| text.get(at..at + n)).collect()
}

/// The names of the files of cut texts that a text names.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split("/tool-results/").skip(1).filter_map(|it| it.split('.').next())
}

fn kind(number: usize) -> &'static str {
    KINDS[number / 8]
}

impl PlantedFacts {
    pub(super) fn with(around: usize) -> Self {
        Self { around, ..Self::default() }
    }

    /// A fact in the middle of a text.
    fn amid(&self, fact: Option<String>) -> String {
        let filler = "plain words ".repeat(self.around / 12);
        format!("{filler}{}{filler}", fact.unwrap_or_default())
    }

    fn place(&self, number: usize) -> Place {
        self.places.get(&number).copied().unwrap_or_default()
    }

    /// The prompt of a run; those of every fifth have a fact.
    pub(super) fn in_prompt(&self, run: usize) -> String {
        let fact = (run % 5 == 1).then(|| words(run / 5));
        format!("look at part {run} {}", self.amid(fact))
    }

    /// The last words of a run.
    pub(super) fn in_answer(&self, run: usize) -> String {
        let fact = (run % 5 == 2).then(|| words(8 + run / 5));
        format!("part {run} is as expected {}", self.amid(fact))
    }

    /// What a result has in its middle: every 50th turn a fact, in turn in results of all sizes.
    pub(super) fn in_result(&self, turn: usize) -> String {
        let sizes = [24, 4, 13, 24, 4, 13, 24, 13];
        let number = turn / 50;
        let fact = (turn % 50 == sizes[number % 8]).then(|| words(16 + number));
        fact.unwrap_or_default()
    }

    /// The list of tasks that the model writes in this turn, all facts of it so far; every 50th turn.
    pub(super) fn todos(&self, turn: usize) -> Option<Vec<Todo>> {
        let todo = |number: usize| Todo {
            content: words(24 + number),
            status: TodoStatus::Pending,
            active_form: "working".into(),
        };
        (turn % 50 == 7).then(|| (0..=turn / 50).map(todo).collect())
    }

    /// The instructions, with all facts of their kind.
    pub(super) fn instructions(&self) -> String {
        (32..40).map(words).collect::<Vec<_>>().join("\n")
    }

    /// Takes note of where the facts are in a request. `stored` are the texts next to the transcript,
    /// `fired` the stages that fired in its run.
    pub(super) fn look(&mut self, body: &str, stored: &BTreeMap<Digest, String>, fired: &[&str]) {
        let mut left: Vec<&str> = names_in(body).collect();
        let mut named: BTreeMap<&str, &String> = BTreeMap::new();
        // What was cut once and cleared later is in a file that the file names.
        while let Some(name) = left.pop() {
            let file = stored.iter().find(|(digest, _)| digest.to_string() == name);
            if let Some((_, text)) = file
                && named.insert(name, text).is_none()
            {
                left.extend(names_in(text));
            }
        }
        let shown = found_in(body);
        let referenced: BTreeSet<&str> = named.values().flat_map(|it| found_in(it)).collect();
        for number in 0..N_FACTS {
            let words = words(number);
            let place = match self.place(number) {
                _ if shown.contains(words.as_str()) => Place::Shown,
                _ if referenced.contains(words.as_str()) => Place::Referenced,
                Place::Unsaid => Place::Unsaid,
                _ => Place::Lost,
            };
            if place == Place::Lost && self.place(number) != Place::Lost {
                let drops = ["auto_compact", "snip"].into_iter().find(|it| fired.contains(it));
                self.lost_to.insert(number, drops.unwrap_or("nothing").into());
            }
            self.places.insert(number, place);
        }
    }

    /// That every fact was said, that only stages that drop messages lost one, and that none is lost
    /// that is in the state of the session.
    #[track_caller]
    pub(super) fn check(&self, name: &str) {
        for number in 0..N_FACTS {
            let (kind, place) = (kind(number), self.place(number));
            assert_ne!(place, Place::Unsaid, "{name}: {kind} {number}");
            let is_pinned = kind == "instructions" || kind == "list of tasks";
            assert!(!is_pinned || place == Place::Shown, "{name}: {kind} {number} is {place:?}");
        }
        assert!(self.lost_to.values().all(|it| it != "nothing"), "{name}: {:?}", self.lost_to);
    }

    /// Returns whether after the last request facts of results are in files that it names, and facts of texts, too.
    pub(super) fn has_referenced_and_collapsed(&self) -> bool {
        let is_referenced = |it: usize| self.place(it) == Place::Referenced;
        (0..16).any(is_referenced) && (16..24).any(is_referenced)
    }

    /// Where the facts are after the last request.
    pub(super) fn table(&self) -> String {
        let mut table = String::from(
            "| Facts in | planted | shown | referenced | collapsed | lost to a summary | lost to snip |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for (at, kind) in KINDS.iter().enumerate() {
            let numbers = at * 8..at * 8 + 8;
            let n = |place: Place| numbers.clone().filter(|it| self.place(*it) == place).count();
            let lost = |stage: &str| {
                let is_lost = |it: &usize| self.place(*it) == Place::Lost;
                let to = |it: &usize| self.lost_to.get(it).is_some_and(|it| it == stage);
                numbers.clone().filter(|it| is_lost(it) && to(it)).count()
            };
            let (referenced, collapsed) = match *kind {
                "prompts" | "answers" => (0, n(Place::Referenced)),
                _ => (n(Place::Referenced), 0),
            };
            table.push_str(&format!(
                "| {kind} | 8 | {} | {referenced} | {collapsed} | {} | {} |\n",
                n(Place::Shown),
                lost("auto_compact"),
                lost("snip")
            ));
        }
        table
    }
}
