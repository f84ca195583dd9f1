//! What waits for one listener, bounded in events and in bytes.
//!
//! It is pure, and decides what may be lost (MDL-3). Every event has
//! a [`Weight`]. What is `Kept` is never left out, joined or moved. Of the rest:
//!
//! * From [`JOIN_FROM`] waiting events on, a text or reasoning delta joins the one of its attempt
//!   that waits after the last kept event, and a note takes the place of the last of its kind
//!   there.
//! * A joined delta has [`MAX_JOINED`] bytes at most. What does not fit is left out, and so is all
//!   that the attempt says after it: a listener has the beginning of a message, and then
//!   `MessageCompleted`, which holds its whole text.
//! * From [`DELTAS_FROM`] on no notes are taken, from [`KEPT_FROM`] on, or with half of
//!   [`MAX_BYTES`] waiting, only kept events.
//! * When a kept event finds no room, the notes that wait go, then the deltas.
//!
//! An event that was left out is counted in the next one that is taken ([`Numbered::stands_for`]).
//! When [`CAPACITY`] kept events wait, or [`MAX_BYTES`] of them, the backlog is [`Full`].
//!
//! Cost: joining is amortized constant per byte. Room is made by one pass over what waits, and
//! frees the way for a hundred events at least before the next pass.

use std::collections::VecDeque;

use ennead_runtime::event::{Event, Numbered, Weight};

use super::group::{Group, Key};
use ennead_runtime::saturating::Saturating as _;

/// Events that wait for one listener at most (MDL-3).
pub const CAPACITY: usize = 1000;

/// Bytes of text that wait for one listener at most; one event alone may be larger.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// From this many waiting events on, deltas are joined.
pub(super) const JOIN_FROM: usize = 256;

/// From this many waiting events on, notes are left out.
const DELTAS_FROM: usize = 512;

/// From this many waiting events on, only kept ones are taken.
const KEPT_FROM: usize = 900;

/// Bytes of a joined delta at most.
pub(super) const MAX_JOINED: usize = 256 * 1024;

/// This many events that may not be left out wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<QueuedEvent>,
    n_bytes: usize,
    /// Events that were taken out, so that places stay what they are.
    n_read: u64,
    /// Those that wait and are not kept ones.
    n_light: usize,
    group: Group,
    /// Deltas of which attempts are left out until their message ends.
    elided: Vec<Key>,
    left_out: Option<EventGap>,
}

/// Events that no other event represents yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventGap {
    pub(super) first_seq: u64,
    pub(super) count: u64,
}

#[derive(Debug)]
struct QueuedEvent {
    seq: u64,
    first_seq: u64,
    stands_for: u64,
    event: Event,
    /// What was joined to the text of the event, with that text before it.
    joined: Option<String>,
}

impl QueuedEvent {
    fn n_bytes(&self) -> usize {
        self.joined.as_ref().map_or_else(|| self.event.n_bytes(), String::len)
    }

    fn is_kept(&self) -> bool {
        self.event.weight() == Weight::Kept
    }
}

impl Backlog {
    /// Takes an event.
    ///
    /// # Errors
    ///
    /// [`Full`] when it may not be left out and there is no room for it.
    pub(super) fn push(&mut self, seq: u64, event: &Event) -> Result<(), Full> {
        if event.weight() == Weight::Kept {
            self.make_room(event.n_bytes())?;
            self.add(seq, event);
            self.group.clear();
            if ends_message(event) {
                self.elided.clear();
            }
            return Ok(());
        }
        let key = Key::of(event);
        if self.waiting.len() < JOIN_FROM && self.n_bytes < MAX_BYTES / 2 {
            if key.as_ref().is_some_and(|it| self.elided.contains(it)) {
                self.leave_out(seq, 1)
            } else {
                self.add_light(seq, event, key)
            }
            return Ok(());
        }
        let known = key.as_ref().and_then(|it| self.group.place(it, self.n_read));
        let is_elided = key.as_ref().is_some_and(|it| self.elided.contains(it));
        if let (Some(place), false) = (known, is_elided)
            && self.join(place, seq, event)
        {
            return Ok(());
        }
        let until = if event.weight() == Weight::Note { DELTAS_FROM } else { KEPT_FROM };
        let has_room = self.waiting.len() < until && self.n_bytes < MAX_BYTES / 2;
        if known.is_none() && has_room && !is_elided && key.is_some() {
            self.add_light(seq, event, key);
            return Ok(());
        }
        self.leave_out(seq, 1);
        self.elide(key.filter(Key::is_piece));
        Ok(())
    }

    /// Takes the next event, if one waits.
    pub(super) fn pop(&mut self) -> Option<Numbered> {
        let next = self.waiting.pop_front()?;
        self.n_read += 1;
        self.n_bytes -= next.n_bytes();
        self.n_light -= usize::from(!next.is_kept());
        let QueuedEvent { seq, first_seq, stands_for, event, joined } = next;
        let event = match joined {
            Some(joined) => with_text(event, joined),
            None => event,
        };
        Some(Numbered::new(first_seq, seq, stands_for, event))
    }

    /// Returns the number of events that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the bytes of their texts.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Takes the events that were left out and that nothing will represent any more.
    pub(super) fn take_left_out(&mut self) -> Option<EventGap> {
        self.left_out.take()
    }

    fn add_light(&mut self, seq: u64, event: &Event, key: Option<Key>) {
        if let Some(key) = key {
            self.group.insert(key, self.n_read + self.waiting.len() as u64);
        }
        self.n_light += 1;
        self.add(seq, event);
    }

    fn add(&mut self, seq: u64, event: &Event) {
        let (first_seq, count) = match self.left_out.take() {
            Some(EventGap { first_seq, count }) => (first_seq, count),
            None => (seq, 0),
        };
        self.n_bytes += event.n_bytes();
        let (stands_for, event) = (count + 1, event.clone());
        self.waiting.push_back(QueuedEvent { seq, first_seq, stands_for, event, joined: None });
    }

    /// Joins an event to the one that waits at `place`; whether that could be done.
    fn join(&mut self, place: u64, seq: u64, event: &Event) -> bool {
        let at = usize::saturating(place - self.n_read);
        let Some(waiting) = self.waiting.get_mut(at) else { return false };
        let before = waiting.n_bytes();
        match text_of(event) {
            Some(text) => {
                if MAX_JOINED < before + text.len() || MAX_BYTES < self.n_bytes + text.len() {
                    return false;
                }
                let first = || text_of(&waiting.event).unwrap_or_default().to_owned();
                waiting.joined.get_or_insert_with(first).push_str(text);
            }
            None if MAX_JOINED < event.n_bytes() => return false,
            None => waiting.event = event.clone(),
        }
        waiting.seq = seq;
        waiting.stands_for += 1;
        self.n_bytes = self.n_bytes - before + waiting.n_bytes();
        true
    }

    fn leave_out(&mut self, first_seq: u64, count: u64) {
        let left_out = self.left_out.get_or_insert(EventGap { first_seq, count: 0 });
        left_out.count += count;
    }

    fn elide(&mut self, key: Option<Key>) {
        if let Some(key) = key
            && !self.elided.contains(&key)
        {
            self.elided.push(key);
        }
    }

    fn make_room(&mut self, n_bytes: usize) -> Result<(), Full> {
        for weight in [Weight::Note, Weight::Piece] {
            if self.fits(n_bytes) {
                return Ok(());
            }
            if 0 < self.n_light {
                self.drop_all(weight);
            }
        }
        if self.fits(n_bytes) { Ok(()) } else { Err(Full) }
    }

    fn fits(&self, n_bytes: usize) -> bool {
        self.waiting.is_empty()
            || (self.waiting.len() < CAPACITY && self.n_bytes + n_bytes <= MAX_BYTES)
    }

    /// Drops what waits and has this weight. The next event that stays represents it.
    fn drop_all(&mut self, weight: Weight) {
        let open_from = self.waiting.iter().rposition(|it| ends_message(&it.event));
        let open_from = open_from.map_or(0, |it| it + 1);
        let mut dropped: Option<EventGap> = None;
        let all = std::mem::take(&mut self.waiting);
        for (at, mut waiting) in all.into_iter().enumerate() {
            if waiting.event.weight() == weight {
                self.n_bytes -= waiting.n_bytes();
                self.n_light -= 1;
                let EventGap { first_seq, count } =
                    dropped.unwrap_or(EventGap { first_seq: waiting.first_seq, count: 0 });
                dropped = Some(EventGap { first_seq, count: count + waiting.stands_for });
                // What its message goes on to say is of no use without it.
                if open_from <= at {
                    self.elide(Key::of(&waiting.event).filter(Key::is_piece));
                }
                continue;
            }
            if let Some(EventGap { first_seq, count }) = dropped.take() {
                waiting.first_seq = first_seq;
                waiting.stands_for += count;
            }
            self.waiting.push_back(waiting);
        }
        if let Some(EventGap { first_seq, count }) = dropped {
            let later = self.left_out.take().map_or(0, |it| it.count);
            self.left_out = Some(EventGap { first_seq, count: count + later });
        }
        self.group.clear();
    }
}

/// Whether deltas after it are of another message.
fn ends_message(event: &Event) -> bool {
    matches!(
        event,
        Event::MessageCompleted { .. }
            | Event::Withdrawn { .. }
            | Event::TurnStarted { .. }
            | Event::RunStarted { .. }
    )
}

/// The text of a delta.
fn text_of(event: &Event) -> Option<&str> {
    match event {
        Event::TextDelta { text, .. } | Event::ReasoningDelta { text, .. } => Some(text),
        _ => None,
    }
}

fn with_text(mut event: Event, joined: String) -> Event {
    if let Event::TextDelta { text, .. } | Event::ReasoningDelta { text, .. } = &mut event {
        *text = joined.into();
    }
    event
}

#[cfg(test)]
mod tests;
