//! Which light events wait after the last kept one, so that later ones can join them.

use ennead_runtime::{event::Event, ids::ToolUseId};

/// What joins what: events of one key, with no kept event between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Text of an attempt.
    Text(u32),
    /// Reasoning of an attempt.
    Reasoning(u32),
    /// The input of a call.
    Preview(ToolUseId),
    Step,
    Context,
    Shaper,
}

impl Key {
    /// Returns the key of an event; `None` when it joins nothing: what comes from a sub-agent.
    pub(super) fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::TextDelta { attempt, .. } => Self::Text(*attempt),
            Event::ReasoningDelta { attempt, .. } => Self::Reasoning(*attempt),
            Event::ToolInputPreview { call, .. } => Self::Preview(call.clone()),
            Event::StepStarted { .. } => Self::Step,
            Event::ContextAssembled { .. } => Self::Context,
            Event::ShaperApplied { .. } => Self::Shaper,
            _ => return None,
        })
    }

    /// Returns whether it is a piece of something, so that none may be missing before it.
    pub(super) fn is_piece(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Reasoning(_))
    }
}

/// Keys that a group remembers at most. What is forgotten is joined by nothing more.
const MAX_KEYS: usize = 16;

/// See the module. Places count events from the first that the listener ever got.
#[derive(Debug, Default)]
pub(super) struct Group(Vec<(Key, u64)>);

impl Group {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns where the last event of this key waits; `None` if it was read, up to `n_read`.
    pub(super) fn place(&self, key: &Key, n_read: u64) -> Option<u64> {
        let found = self.0.iter().find(|it| it.0 == *key);
        found.map(|it| it.1).filter(|it| n_read <= *it)
    }

    pub(super) fn insert(&mut self, key: Key, place: u64) {
        if let Some(known) = self.0.iter_mut().find(|it| it.0 == key) {
            known.1 = place;
            return;
        }
        if self.0.len() == MAX_KEYS {
            // The oldest goes: what is written now is likely to go on.
            self.0.remove(0);
        }
        self.0.push((key, place));
    }
}
