//! The last events of a session, for those who read them as they happen and those who come back.
//!
//! Every reader has a place in the ring and takes from it when its connection has room: nothing waits
//! for a slow one. When the ring has gone on without it, it reads how many events it missed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use ennead_runtime::{saturating::Saturating as _, time::Timestamp};
use tokio::sync::Notify;

use crate::ports::events::SessionEvent;
use ennead_tools::locked::Locked as _;

/// Events of one session that are kept at most.
pub(crate) const CAPACITY: usize = 2048;

/// Bytes of their contents that are kept at most. The texts of those that were read come in addition, and are
/// about as long.
const MAX_BYTES: usize = 1024 * 1024;

/// What the ring holds at one place.
#[derive(Clone, Debug)]
pub(crate) enum RingItem {
    /// An event, as it is kept for readers.
    Event(Arc<KeptEvent>),
    /// The number of events that the server itself was too slow to receive.
    Missed(u64),
}

/// An event, and its text for readers, which the first of them makes for all.
#[derive(Debug)]
pub(crate) struct KeptEvent {
    pub(crate) event: SessionEvent,
    text: OnceLock<Box<str>>,
}

impl RingItem {
    pub(crate) fn event(event: SessionEvent) -> Self {
        Self::Event(Arc::new(KeptEvent { event, text: OnceLock::new() }))
    }
}

impl KeptEvent {
    /// Returns the text that readers get, made by `write` if there is none yet.
    pub(crate) fn text(&self, write: impl FnOnce(&SessionEvent) -> String) -> &str {
        self.text.get_or_init(|| write(&self.event).into())
    }
}

/// The last events of a session.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    inner: Mutex<RingBuffer>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct RingBuffer {
    /// The place of the oldest that is kept.
    first: u64,
    kept: VecDeque<RingItem>,
    n_bytes: usize,
    is_closed: bool,
}

/// What a reader finds at its place.
#[derive(Debug)]
pub(crate) enum Next {
    /// This event; the reader's place is after it.
    Kept(RingItem),
    /// The ring has gone on; this number of places is gone.
    Gap(u64),
    /// There is nothing yet.
    Nothing,
    /// The session is deleted.
    End,
}

impl Ring {
    /// Adds what happened, and lets the oldest go.
    pub(crate) fn push(&self, kept: RingItem) {
        let mut inner = self.lock();
        inner.n_bytes += n_bytes(&kept);
        inner.kept.push_back(kept);
        while CAPACITY < inner.kept.len() || MAX_BYTES < inner.n_bytes && 1 < inner.kept.len() {
            if let Some(gone) = inner.kept.pop_front() {
                inner.n_bytes -= n_bytes(&gone);
                inner.first += 1;
            }
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Returns the bytes of what is kept, without the texts of those that were read.
    pub(crate) fn n_bytes(&self) -> usize {
        self.lock().n_bytes
    }

    /// Drops everything, as of a session that has been idle for long.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.first += inner.kept.len() as u64;
        inner.kept = VecDeque::new();
        inner.n_bytes = 0;
    }

    /// Ends the streams of all readers.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Returns the place after the newest.
    pub(crate) fn end(&self) -> u64 {
        let inner = self.lock();
        inner.first + inner.kept.len() as u64
    }

    /// Returns the place after the event of this number and time, if it is kept. Numbers begin anew when a session is
    /// opened again, so the time is part of the name; without one the newest of the number is meant.
    pub(crate) fn after(&self, seq: u64, at: Option<Timestamp>) -> Option<u64> {
        let inner = self.lock();
        let is_it = |kept: &RingItem| match kept {
            RingItem::Event(it) => {
                let SessionEvent { event, at: happened, .. } = &it.event;
                let is_time = at.is_none_or(|at| at == *happened);
                event.first_seq <= seq && seq <= event.seq && is_time
            }
            RingItem::Missed(_) => false,
        };
        let index = inner.kept.iter().rposition(is_it)?;
        Some(inner.first + index as u64 + 1)
    }

    /// Returns the place of the first event that is not before this time; the end when all are.
    pub(crate) fn since(&self, at: Timestamp) -> u64 {
        let inner = self.lock();
        let is_before = |kept: &RingItem| match kept {
            RingItem::Event(it) => it.event.at < at,
            RingItem::Missed(_) => true,
        };
        let n = inner.kept.iter().take_while(|it| is_before(it)).count();
        inner.first + n as u64
    }

    /// Returns what is at a place.
    pub(crate) fn at(&self, place: u64) -> Next {
        let inner = self.lock();
        if place < inner.first {
            return Next::Gap(inner.first - place);
        }
        let index = usize::saturating(place - inner.first);
        match inner.kept.get(index) {
            Some(kept) => Next::Kept(kept.clone()),
            None if inner.is_closed => Next::End,
            None => Next::Nothing,
        }
    }

    /// Waits until there is something at a place.
    pub(crate) async fn next(&self, place: u64) -> Next {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Before looking, so that nothing is pushed in between unseen.
            changed.as_mut().enable();
            match self.at(place) {
                Next::Nothing => changed.await,
                next => return next,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RingBuffer> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        self.inner.locked()
    }
}

fn n_bytes(kept: &RingItem) -> usize {
    match kept {
        RingItem::Event(it) => it.event.event.event.n_bytes(),
        RingItem::Missed(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use ennead_runtime::event::{Event, Numbered};

    use super::*;

    fn event(seq: u64, text: &str) -> RingItem {
        let event = Event::TextDelta { attempt: 1, text: text.into() };
        let event = Numbered::new(seq, seq, 1, event);
        RingItem::event(SessionEvent { session: "s".into(), at: Timestamp(seq * 10), event })
    }

    // REQ: INP-3
    #[test]
    fn reader_comes_back_to_its_place_and_reads_of_a_gap_when_that_is_gone() {
        let ring = Ring::default();
        (1..=CAPACITY as u64 + 2).for_each(|seq| ring.push(event(seq, "")));
        assert!(matches!(ring.at(0), Next::Gap(2)));
        assert_eq!(ring.after(2, None), None);
        assert_eq!(ring.after(3, Some(Timestamp(30))), Some(3));
        assert_eq!(ring.after(3, Some(Timestamp(31))), None, "of another opening");
        assert_eq!(ring.since(Timestamp(35)), 3);
        assert!(matches!(ring.at(ring.end()), Next::Nothing));
    }

    // REQ: RUN-7
    #[test]
    fn bytes_that_are_kept_are_bounded_and_the_newest_stays() {
        let ring = Ring::default();
        let text = "x".repeat(MAX_BYTES / 2);
        (1..=5).for_each(|seq| ring.push(event(seq, &text)));
        assert!(ring.lock().n_bytes <= MAX_BYTES);
        ring.push(event(6, &"x".repeat(2 * MAX_BYTES)));
        assert!(matches!(ring.at(5), Next::Kept(RingItem::Event(it)) if it.event.event.seq == 6));
    }

    // REQ: INP-3, RUN-7
    #[test]
    fn text_of_an_event_is_made_once_for_all_readers() {
        let ring = Ring::default();
        ring.push(event(1, "a"));
        let read = |text: &str| match ring.at(0) {
            Next::Kept(RingItem::Event(it)) => it.text(|_| text.to_owned()).to_owned(),
            next => panic!("{next:?}"),
        };
        assert_eq!((read("first"), read("second")), ("first".to_owned(), "first".to_owned()));
    }

    // REQ: INP-3
    #[tokio::test]
    async fn reader_that_waits_is_woken_by_the_next_event_and_by_the_end() {
        let ring = Ring::default();
        let (next, ()) = tokio::join!(ring.next(0), async { ring.push(event(1, "a")) });
        assert!(matches!(next, Next::Kept(_)));
        let (next, ()) = tokio::join!(ring.next(1), async { ring.close() });
        assert!(matches!(next, Next::End));
    }
}
