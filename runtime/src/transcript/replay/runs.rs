//! The runs of a file: where each begins, and which prompts waited meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use super::line::{LineRef, SealedLine};
use crate::{
    ids::EntryId,
    message::{Message, MessageKind},
    time::Timestamp,
    transcript::entry::{Record, RecordKind},
};

/// All runs, in order.
pub(super) struct RecordedRuns<'a> {
    pub(super) all: Vec<Begun<'a>>,
    /// Runs by their place among the lines.
    by_place: BTreeMap<usize, usize>,
    /// Of the opening under way, those whose prompts waited and have not come yet, the latest first.
    waiting: Vec<usize>,
    /// The first run of the next opening.
    next_opening: usize,
}

/// The beginning of a run.
#[derive(Clone, Copy)]
pub(super) struct Begun<'a> {
    /// The record of its beginning.
    pub(super) line: &'a SealedLine<'a>,
    pub(super) record: &'a Record,
    /// Its place among the sealed lines.
    pub(super) place: usize,
    /// The line of its prompt.
    pub(super) prompt: &'a SealedLine<'a>,
    pub(super) message: &'a Arc<Message>,
    /// When the prompt came, where it waited.
    pub(super) asked: Option<Timestamp>,
    /// Whether it is the first since the session was opened.
    pub(super) is_first: bool,
}

impl Begun<'_> {
    /// Returns the line that its prompt follows.
    pub(super) fn prompt_parent(&self) -> Option<&EntryId> {
        match self.prompt.line() {
            LineRef::Conversation(conversation) => conversation.parent.as_ref(),
            LineRef::Harness(_) => None,
        }
    }
}

impl<'a> RecordedRuns<'a> {
    /// Finds the runs. One whose prompt is not in front of it is none.
    pub(super) fn of(lines: &'a [SealedLine<'a>]) -> Self {
        let (mut all, mut by_place, mut last) = (Vec::new(), BTreeMap::new(), None);
        for (place, line) in lines.iter().enumerate() {
            match line.line() {
                LineRef::Conversation(conversation)
                    if conversation.message.kind == MessageKind::Prompt =>
                {
                    last = Some((line, &conversation.message));
                }
                LineRef::Conversation(_) => {}
                LineRef::Harness(record) => {
                    let RecordKind::RunStart { first, asked, .. } = &record.what else { continue };
                    let Some((prompt, message)) = last.take() else { continue };
                    by_place.insert(place, all.len());
                    let (is_first, asked) = (*first || all.is_empty(), *asked);
                    all.push(Begun { line, record, place, prompt, message, asked, is_first });
                }
            }
        }
        Self { all, by_place, waiting: Vec::new(), next_opening: 0 }
    }

    /// Returns the run that begins at this place.
    pub(super) fn at(&self, place: usize) -> Option<usize> {
        self.by_place.get(&place).copied()
    }

    /// Returns whether the session was not opened any more, or anew, after this place.
    pub(super) fn is_last_of_opening(&self, place: usize) -> bool {
        let next = self.by_place.range(place..).next();
        next.is_none_or(|(_, number)| self.all[*number].is_first)
    }

    /// Returns the runs whose prompts had come by the beginning of this one, in the order in which they came.
    pub(super) fn due(&mut self, number: usize) -> Vec<usize> {
        if self.next_opening <= number {
            let rest = self.all.iter().enumerate().skip(number);
            let of_opening = rest.take_while(|(n, it)| *n == number || !it.is_first);
            let of_opening: Vec<usize> = of_opening.map(|(n, _)| n).collect();
            self.next_opening = of_opening.last().map_or(number, |it| it + 1);
            self.waiting = of_opening;
            self.waiting.retain(|it| self.all[*it].asked.is_some());
            self.waiting.sort_by_key(|it| self.all[*it].asked);
            self.waiting.reverse();
        }
        let now = self.all[number].record.at;
        let mut due = Vec::new();
        while let Some(next) = self.waiting.pop_if(|it| self.all[*it].asked <= Some(now)) {
            due.push(next);
        }
        due
    }
}
