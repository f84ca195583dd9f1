//! What hooks that were not waited for add, until a turn begins: the data alone. `detached_hooks` fills and empties it.

use std::mem;

use crate::{
    event::Event,
    hook::{EndedHook, HookEvent, HookVerdict},
    ids::EntryId,
    transcript::{entry::Stored, load::BackgroundTasks},
    turn::keep_overlong,
};

/// Hooks whose words may wait for the next turn; those of later ones are dropped, with an alert.
const MAX_HEARD: usize = 64;

/// Runs in a row that hooks may have a session begin, as many as a `Stop` hook may hold one open.
const MAX_WOKEN: u32 = 8;

/// The prompt with which a session that is at rest goes on when a hook asks for it.
pub(super) const HOOK_ASKS: &str = "<task-notification>\nA hook that was not waited for has ended and asks for attention. \
    What it adds follows.\n</task-notification>";

/// What hooks that have ended add, until a turn begins.
#[derive(Debug, Default)]
pub(super) struct HeardHooks {
    heard: Vec<HeardHook>,
    /// What they say to the user, as events of the turn that begins.
    said: Vec<Event>,
    /// Whether one of them has a session at rest go on.
    asks: bool,
    /// Runs that they had the session begin since it was last given a prompt.
    n_woken: u32,
    /// Messages named so far; makes their names differ.
    n_named: u64,
}

/// What one hook adds.
#[derive(Debug)]
pub(super) struct HeardHook {
    /// The event that it ran for.
    pub(super) event: HookEvent,
    /// The message that shows the texts to the model; `None` where there are none.
    pub(super) shows: Option<EntryId>,
    /// Texts that the model reads.
    pub(super) texts: Vec<String>,
    /// Texts that the user reads.
    pub(super) messages: Vec<String>,
}

impl HeardHooks {
    /// Returns whether one has a session at rest go on.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// Returns whether another one may wait.
    pub(super) fn has_room(&self) -> bool {
        self.heard.len() < MAX_HEARD
    }

    /// Notes that one has a session at rest go on. Returns whether it may: hooks that fire in the run that
    /// they began would else begin one after the other.
    pub(super) fn note_asks(&mut self) -> bool {
        self.asks |= self.n_woken < MAX_WOKEN;
        self.n_woken < MAX_WOKEN
    }

    /// Counts a run that they have the session begin.
    pub(super) fn count_woken(&mut self) {
        self.n_woken = self.n_woken.saturating_add(1);
    }

    /// Begins to count anew: the session is given a prompt.
    pub(super) fn note_prompt(&mut self) {
        self.n_woken = 0;
    }

    /// Returns a number that no other message has.
    pub(super) fn next_name(&mut self) -> u64 {
        self.n_named += 1;
        self.n_named
    }

    /// Takes out what they add, the oldest first.
    pub(super) fn take_heard(&mut self) -> Vec<HeardHook> {
        self.asks = false;
        mem::take(&mut self.heard)
    }

    /// Keeps an event for the turn that begins.
    pub(super) fn say(&mut self, said: Event) {
        self.said.push(said);
    }

    /// Takes out the events of the turn that has begun.
    pub(super) fn take_said(&mut self) -> Vec<Event> {
        mem::take(&mut self.said)
    }

    /// Keeps what one adds.
    pub(super) fn add(&mut self, event: HookEvent, shows: Option<EntryId>, verdict: HookVerdict) {
        let (texts, messages) = (verdict.additional_context, verdict.messages);
        if shows.is_some() || !messages.is_empty() {
            self.heard.push(HeardHook { event, shows, texts, messages });
        }
    }
}

/// What a hook adds to a session that goes on from its transcript: texts that are short enough to be shown.
#[derive(Clone, Debug)]
pub struct KeptHook {
    pub(super) event: HookEvent,
    pub(super) shows: Option<EntryId>,
    pub(super) texts: Vec<String>,
}

impl KeptHook {
    /// Reads what hooks add whose words the model has not read, with the texts of their records; `directory` is that of
    /// the session. Hooks whose texts are not at hand are left out. Takes time with the length of the texts, so it is
    /// not done where other sessions wait.
    pub fn read_all(
        tasks: &BackgroundTasks,
        directory: &str,
        text: impl Fn(&Stored) -> Option<String>,
    ) -> Vec<Self> {
        let read = |ended: EndedHook| {
            let mut verdict = ended.verdict();
            // The texts themselves were kept when this was recorded.
            let _kept = keep_overlong(&mut verdict, directory);
            let (event, shows, texts) = (ended.event, ended.shows, verdict.additional_context);
            Self { event, shows, texts }
        };
        tasks.ended_hooks(text).map(read).collect()
    }
}
