//! The events of all sessions of an `Ennead`, in one stream.
//!
//! For a log, a page or a meter that shows what the process does, without a task per session. What waits
//! for a reader is bounded ([`CAPACITY`], [`MAX_BYTES`]). Events are never joined here: a reader that is
//! too slow reads what waits, then receives how many it missed, and goes on from there.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use ennead_runtime::{
    event::{Event, Numbered},
    ids::SessionId,
    ports::Clock,
    time::Timestamp,
};
use futures::Stream;

use ennead_tools::locked::Locked as _;

/// Events that wait for one reader at most.
const CAPACITY: usize = 10_000;

/// Bytes of text that wait for one reader at most.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// An event of some session of the process.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The session. Events of sub-agents come from the session at the top of their tree, wrapped in
    /// [`Event::Agent`].
    pub session: SessionId,
    /// When it happened, by the clock of the `Ennead`.
    pub at: Timestamp,
    /// The event, with its number in its session.
    pub event: Numbered,
}

/// A reader was too slow: this many events, of any sessions, were left out here. What happened is in
/// the transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{missed} events were left out, because the reader was too slow")]
#[non_exhaustive]
pub struct EventsMissed {
    /// Events that were left out.
    pub missed: u64,
}

/// Where the hubs of sessions publish their events. Clones share their readers.
#[derive(Clone)]
pub(crate) struct EventsOfAll(Arc<AllShared>);

struct AllShared {
    clock: Arc<dyn Clock>,
    /// Read without the lock, so that a stream without readers costs nothing.
    n_readers: AtomicUsize,
    state: Mutex<AllState>,
}

#[derive(Default)]
struct AllState {
    readers: Vec<AllEventsReader>,
    /// Readers there ever were; their keys.
    n_readers: u64,
    is_closed: bool,
}

struct AllEventsReader {
    key: u64,
    waiting: VecDeque<SessionEvent>,
    n_bytes: usize,
    missed: u64,
    waker: Option<Waker>,
}

impl EventsOfAll {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (n_readers, state) = (AtomicUsize::new(0), Mutex::default());
        Self(Arc::new(AllShared { clock, n_readers, state }))
    }

    /// Returns whether any stream is open.
    pub(super) fn has_listeners(&self) -> bool {
        0 < self.0.n_readers.load(Ordering::Relaxed)
    }

    /// Sends all readers an event of a session.
    pub(super) fn deliver(&self, session: &SessionId, seq: u64, event: &Event) {
        if !self.has_listeners() {
            return;
        }
        let at = self.0.clock.now();
        for reader in &mut self.lock().readers {
            let event = Numbered::new(seq, seq, 1, event.clone());
            reader.push(SessionEvent { session: session.clone(), at, event });
        }
    }

    /// Subscribes to the events from now on.
    pub(crate) fn subscribe(&self) -> AllEvents {
        let mut state = self.lock();
        state.n_readers += 1;
        let (key, waiting) = (state.n_readers, VecDeque::new());
        state.readers.push(AllEventsReader { key, waiting, n_bytes: 0, missed: 0, waker: None });
        self.0.n_readers.store(state.readers.len(), Ordering::Relaxed);
        AllEvents { key, all: self.clone() }
    }

    /// Closes the hub: no session will publish anything any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.readers.iter_mut().for_each(AllEventsReader::wake);
    }

    /// A panic while the lock was held leaves valid state: every change is one step.
    fn lock(&self) -> MutexGuard<'_, AllState> {
        self.0.state.locked()
    }
}

impl fmt::Debug for EventsOfAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventsOfAll({} readers)", self.0.n_readers.load(Ordering::Relaxed))
    }
}

impl AllEventsReader {
    fn push(&mut self, event: SessionEvent) {
        let n_bytes = event.event.event.n_bytes();
        let is_full = CAPACITY <= self.waiting.len()
            || (!self.waiting.is_empty() && MAX_BYTES < self.n_bytes + n_bytes);
        // One hole at a time: what comes after it is left out as well until its reader has received it.
        if is_full || 0 < self.missed {
            self.missed += 1;
            return;
        }
        self.n_bytes += n_bytes;
        self.waiting.push_back(event);
        self.wake();
    }

    fn pop(&mut self) -> Option<Result<SessionEvent, EventsMissed>> {
        if let Some(event) = self.waiting.pop_front() {
            self.n_bytes -= event.event.event.n_bytes();
            return Some(Ok(event));
        }
        let missed = std::mem::take(&mut self.missed);
        (0 < missed).then_some(Err(EventsMissed { missed }))
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The events of all sessions of an [`Ennead`](crate::Ennead), as a stream. It ends when that ends.
///
/// ```
/// use ennead::{Endpoint, Ennead, Event, SessionOptions};
///
/// # let workspace = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let ennead = Ennead::simulated().await?;
/// let mut events = ennead.events();
/// let mut sessions = Vec::new();
/// for _ in 0..2 {
///     let options = SessionOptions::new(workspace.path(), Endpoint::simulated());
///     let session = ennead.open(options).await?;
///     session.prompt("Hello!").await?;
///     sessions.push(session.id().clone());
/// }
/// ennead.shutdown().await;
/// let mut finished = Vec::new();
/// while let Some(event) = events.next().await {
///     let event = event?;
///     if matches!(event.event.event, Event::RunFinished { .. }) {
///         finished.push(event.session);
///     }
/// }
/// assert_eq!(finished, sessions);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AllEvents {
    key: u64,
    all: EventsOfAll,
}

impl AllEvents {
    /// Returns the next event, or [`EventsMissed`] where events were left out; `None` when the `Ennead` has ended and
    /// everything was read. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<SessionEvent, EventsMissed>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Result<SessionEvent, EventsMissed>>> {
        let mut state = self.all.lock();
        let is_closed = state.is_closed;
        let Some(reader) = state.readers.iter_mut().find(|it| it.key == self.key) else {
            return Poll::Ready(None);
        };
        match reader.pop() {
            None if is_closed => Poll::Ready(None),
            None => {
                reader.waker = Some(context.waker().clone());
                Poll::Pending
            }
            next => Poll::Ready(next),
        }
    }
}

impl Stream for AllEvents {
    type Item = Result<SessionEvent, EventsMissed>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl Drop for AllEvents {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.readers.retain(|it| it.key != self.key);
        self.all.0.n_readers.store(state.readers.len(), Ordering::Relaxed);
    }
}

impl fmt::Debug for AllEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllEvents").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::{ports::events::EventHub, world::clock::ManualClock};

    fn all() -> (Arc<ManualClock>, EventsOfAll) {
        let clock = Arc::new(ManualClock::at(1_000));
        (clock.clone(), EventsOfAll::new(clock))
    }

    fn hub(name: &str, all: &EventsOfAll) -> EventHub {
        EventHub::of_session(
            name.into(),
            all.clone(),
            crate::storage::redaction::Redaction::default().redactor().clone(),
        )
    }

    // REQ: MDL-3
    #[tokio::test]
    async fn stream_of_all_sessions_carries_their_ids_numbers_and_times() {
        let (clock, all) = all();
        let events = all.subscribe();
        let (one, two) = (hub("one", &all), hub("two", &all));
        one.publish(Event::Unparked { attempt: 1 });
        clock.advance(std::time::Duration::from_millis(5));
        two.publish(Event::Unparked { attempt: 1 });
        two.publish_delta(|| Event::TextDelta { attempt: 1, text: "a".into() });
        one.publish(Event::Unparked { attempt: 2 });
        all.close();
        let seen: Vec<_> = events
            .map(|it| it.map(|it| (it.session.to_string(), it.at.0, it.event.seq)).unwrap())
            .collect()
            .await;
        let expected = [("one", 1_000, 1), ("two", 1_005, 1), ("two", 1_005, 2), ("one", 1_005, 2)];
        assert_eq!(seen, expected.map(|(name, at, seq)| (name.to_owned(), at, seq)));
    }

    // REQ: MDL-3
    #[tokio::test]
    async fn reader_that_is_too_slow_is_told_of_one_hole_and_goes_on_after_it() {
        let (_, all) = all();
        let mut events = all.subscribe();
        let hub = hub("one", &all);
        let n_events = CAPACITY as u64 + 7;
        for _ in 0..n_events {
            hub.publish(Event::Unparked { attempt: 1 });
        }
        for seq in 1..=CAPACITY as u64 {
            assert_eq!(events.next().await.unwrap().unwrap().event.seq, seq);
        }
        assert_eq!(events.next().await, Some(Err(EventsMissed { missed: 7 })));
        hub.publish(Event::Unparked { attempt: 2 });
        assert_eq!(events.next().await.unwrap().unwrap().event.seq, n_events + 1);
    }

    // REQ: MDL-3
    #[test]
    fn bytes_that_wait_for_a_reader_are_bounded_and_cost_nothing_without_one() {
        let (_, all) = all();
        let hub = hub("one", &all);
        hub.publish_delta(|| panic!("nobody reads"));
        let events = all.subscribe();
        let text: Arc<str> = "x".repeat(MAX_BYTES / 4).into();
        for _ in 0..9 {
            hub.publish_delta(|| Event::TextDelta { attempt: 1, text: text.clone() });
        }
        let state = all.lock();
        assert!(state.readers[0].n_bytes <= MAX_BYTES);
        assert_eq!(state.readers[0].missed, 5);
        drop(state);
        drop(events);
        hub.publish_delta(|| panic!("nobody reads any more"));
    }
}
