//! A conversation goes on from its records: after a turn that was given up, and in another process.
//!
//! What a turn hands on at its end is what its lines say. Where there is no such end, the lines are asked.

use std::{collections::BTreeSet, sync::Arc};

use super::{Conversation, TurnMemory};
use crate::{
    ids::EntryId,
    run::{
        facts::{
            APPENDS, ESTIMATES_BY_CLASS, REBUILDS, REMEMBERS_FRUITLESS, SHOWS_SKILLS, SHOWS_TASKS,
        },
        history::History,
    },
    step3_context_assembly::appended::ShownParts,
    step4_context_shapers::fruitless::CompactionWatch,
    tool::Access,
    transcript::{
        entry::{Line, ShownPart},
        load::{Loaded, RecordedState},
    },
};

impl Conversation {
    /// Takes in a line of a turn.
    pub(crate) fn note(&mut self, line: &Line) {
        if let Line::Harness(record) = line {
            self.memory.overrides.note(&record.what);
        }
        if REBUILDS <= self.facts.revision {
            self.state.add(line);
            self.is_ahead = true;
        }
    }

    /// Takes in what a turn hands on.
    pub(crate) fn hand_on(&mut self, memory: TurnMemory) {
        self.memory = memory;
        self.is_ahead = false;
    }

    /// Takes in what a turn recorded that handed nothing on. Takes time in proportion to the conversation.
    pub(crate) fn catch_up(&mut self) {
        if !std::mem::take(&mut self.is_ahead) {
            return;
        }
        let (state, memory) = (&self.state, &mut self.memory);
        memory.last_answer_at = state.used.last_answer_at;
        memory.spent = state.used.since_compaction;
        memory.retries = state.used.failed_calls.saturating_add(state.used.lost_calls());
        memory.learned = state.used.learned.clone();
        memory.anchor = state.anchor.clone();
        if REMEMBERS_FRUITLESS <= self.facts.revision {
            memory.compactions = CompactionWatch::waiting(state.summary_pause);
        }
        if memory.tools.todos != state.tasks.todos() {
            Arc::make_mut(&mut memory.tools).todos = state.tasks.todos().to_vec();
        }
        if *memory.skills != state.skills.loaded {
            memory.skills = Arc::new(state.skills.loaded.clone());
        }
        memory.touched = Arc::clone(&state.files.touched);
        memory.edited = state.files.edited(|tool| {
            let spec = self.facts.tools.iter().find(|it| it.name == *tool);
            spec.is_some_and(|it| matches!(it.access, Access::WritePath { .. }))
        });
        memory.refused_media.clone_from(state.view.without_media());
        memory.view = state.view.of(&self.history);
        self.forget_unseen();
    }

    /// Forgets what was shown in messages that the model does not see any more.
    fn forget_unseen(&mut self) {
        let Some(view) = &self.memory.view else { return };
        let after = self.history.iter_from(view.covered);
        let there: BTreeSet<&EntryId> =
            view.messages.walk().chain(after).map(|it| &it.id).collect();
        self.memory.shown.keep(|it| there.contains(it));
    }

    /// Resumes what an earlier process recorded: the messages, and the counters of the session.
    pub fn resume(&mut self, loaded: &Loaded) {
        let recorded = loaded.recorded.iter().cloned().collect();
        self.go_on(recorded, loaded.last.clone(), loaded.state.clone(), &loaded.appended);
    }

    /// Resumes an earlier part of what was recorded; the counters stay those of the whole session.
    pub(crate) fn go_back(&mut self, cut: &Loaded, all: &Loaded) {
        let recorded = cut.recorded.iter().cloned().collect();
        let mut state = cut.state.clone();
        state.used.clone_from(&all.state.used);
        // As the next opening of the file reads it.
        state.summary_pause = all.state.summary_pause;
        self.go_on(recorded, cut.last.clone(), state, &all.appended);
    }

    /// Continues from what is left of a [`Loaded`] where nothing else of it is wanted.
    pub(crate) fn go_on(
        &mut self,
        recorded: History,
        last_entry: Option<EntryId>,
        state: RecordedState,
        appended: &[ShownPart],
    ) {
        (self.history, self.last_entry, self.state) = (recorded, last_entry, state);
        let revision = self.facts.revision;
        if APPENDS <= revision {
            let there: BTreeSet<&EntryId> = self.history.iter().map(|it| &it.id).collect();
            self.memory.shown = ShownParts::recorded(appended, |it| there.contains(it));
        }
        if REBUILDS <= revision {
            self.is_ahead = true;
            return self.catch_up();
        }
        let state = &self.state;
        if 1 <= revision {
            self.memory.last_answer_at = state.used.last_answer_at;
            self.memory.spent = state.used.since_compaction;
            self.memory.retries = state.used.failed_calls;
        }
        if SHOWS_TASKS <= revision && self.memory.tools.todos != state.tasks.todos() {
            Arc::make_mut(&mut self.memory.tools).todos = state.tasks.todos().to_vec();
        }
        if ESTIMATES_BY_CLASS <= revision {
            self.memory.learned = state.used.learned.clone();
        }
        if SHOWS_SKILLS <= revision && *self.memory.skills != state.skills.loaded {
            self.memory.skills = Arc::new(state.skills.loaded.clone());
        }
        if 2 <= revision {
            self.memory.retries = self.memory.retries.saturating_add(state.used.lost_calls());
        }
    }
}
