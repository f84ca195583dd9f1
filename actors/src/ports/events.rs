//! Carries events from a session to its listeners: to each as they are, through `channel.rs` in the form that one
//! place needs, and through `events/everywhere.rs` those of all sessions.
//!
//! Events are numbered without gaps per session. Publishing never waits, and what waits
//! for a listener is bounded ([`CAPACITY`], [`MAX_BYTES`]). A slow listener gets deltas joined and
//! only the latest note of a kind; results, errors and the beginnings and ends of things it gets
//! all, in order (`events/backlog.rs` has the rules).
//!
//! A listener that is too slow even for that is let go: what waits for it stays whole, nothing is
//! added, and it costs nothing any more. When it has read what waits, it gets
//! [`Event::Lagged`] and receives again what happens from then on. So there is one hole, at one place,
//! reported with its numbers, and what happened in it is in the transcript. To go on dropping single
//! events instead would leave many holes, in a stream that pretends to be one; to end the stream
//! would look like the end of the session.
//!
//! The hub is the one thing of a session that several actors write to: what they publish goes out and
//! never comes back, so no state of a turn is shared through it.

mod backlog;
mod everywhere;
mod group;
mod wanted;

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use ennead_runtime::{
    event::{Event, Numbered},
    ids::{AgentId, RunId, SessionId},
    output::OutputSettings,
    redaction::Redactor,
};
use futures::Stream;

use backlog::{Backlog, Full};

pub use backlog::{CAPACITY, MAX_BYTES};
use ennead_tools::locked::Locked as _;
pub(crate) use everywhere::EventsOfAll;
pub use everywhere::{AllEvents, EventsMissed, SessionEvent};
pub(crate) use wanted::Wants;

/// The events of one session.
#[derive(Clone)]
pub struct EventHub(Arc<HubShared>);

struct HubShared {
    state: Mutex<HubState>,
    /// The parent's hub and the name of this session there.
    parent: Option<(EventHub, AgentId)>,
    /// The events of all sessions, and the id of this one. Events of sub-agents come through their parents.
    all: Option<(EventsOfAll, SessionId)>,
    /// Takes secrets out of events. `None`: those who publish have done so.
    redactor: Option<Redactor>,
}

#[derive(Default)]
struct HubState {
    seq: u64,
    listeners: Vec<Listener>,
    /// Listeners there ever were; their keys.
    n_listeners: u64,
    /// The run whose end is owed.
    open_run: Option<RunId>,
    /// Whether the last run was lost: its model call may still be receiving an answer.
    is_lost: bool,
    is_closed: bool,
    output: Arc<OutputSettings>,
}

struct Listener {
    key: u64,
    backlog: Backlog,
    wants: Wants,
    /// The number of the first event that it does not get, once it was let go.
    dropped_at: Option<u64>,
    /// Wakes the task that waits for an event.
    waker: Option<Waker>,
}

impl EventHub {
    /// Makes the hub of a session. The hub of a sub-agent publishes to its parent's listeners, too.
    pub fn new(parent: Option<(EventHub, AgentId)>) -> Self {
        let redactor = parent.as_ref().and_then(|(it, _)| it.0.redactor.clone());
        Self(Arc::new(HubShared { state: Mutex::default(), parent, all: None, redactor }))
    }

    /// Makes the hub of a session that a person or an embedder opened: its events are sent among those of all sessions,
    /// too.
    pub(crate) fn of_session(session: SessionId, all: EventsOfAll, redactor: Redactor) -> Self {
        let (all, redactor) = (Some((all, session)), Some(redactor));
        Self(Arc::new(HubShared { state: Mutex::default(), parent: None, all, redactor }))
    }

    /// Sends an event to all listeners. Of the events that end a run, only the first after its start gets
    /// through (TRN-11), no matter who sends them. After the end of the session none is sent.
    pub fn publish(&self, mut event: Event) {
        // What has no listener is not looked through.
        let is_looked_through =
            self.0.parent.is_some() || self.has_listener(&self.0.state.locked());
        if is_looked_through {
            self.redact(&mut event);
        }
        let mut state = self.0.state.locked();
        let all = self.0.all.as_ref().filter(|(all, _)| all.has_listeners());
        if !is_looked_through && (all.is_some() || !state.listeners.is_empty()) {
            // Somebody has begun to listen meanwhile.
            self.redact(&mut event);
        }
        match &event {
            _ if state.is_closed => return,
            Event::RunStarted { run, .. } => {
                state.open_run = Some(run.clone());
                state.is_lost = false;
            }
            Event::RunFinished { run, .. } | Event::RunLost { run, .. } => {
                if state.open_run.as_ref() != Some(run) {
                    return;
                }
                state.open_run = None;
                state.is_lost = matches!(event, Event::RunLost { .. });
            }
            _ => {}
        }
        state.seq += 1;
        state.deliver(&event);
        // With the lock held, so that the order is that of the numbers.
        if let Some((all, session)) = all.filter(|_| Wants::default().takes(&event)) {
            all.deliver(session, state.seq, &event);
        }
        drop(state);
        if let Some((parent, agent)) = &self.0.parent
            && is_progress(&event)
        {
            parent.publish(Event::Agent { agent: agent.clone(), event: Arc::new(event) });
        }
    }

    /// Sends to the listeners of this session and of all sessions, not those of its parent, what an answer adds while it
    /// arrives. Where there are none the event is counted and never made. Nothing of a run is sent after it
    /// was lost.
    pub(crate) fn publish_delta(&self, delta: impl FnOnce() -> Event) {
        let mut state = self.0.state.locked();
        if state.is_closed || state.is_lost {
            return;
        }
        state.seq += 1;
        let all = self.0.all.as_ref().filter(|(all, _)| all.has_listeners());
        if state.listeners.is_empty() && all.is_none() {
            return;
        }
        let event = delta();
        state.deliver(&event);
        if let Some((all, session)) = all {
            all.deliver(session, state.seq, &event);
        }
    }

    /// Subscribes to the events from now on.
    pub fn subscribe(&self) -> Events {
        self.subscribe_to(Wants::default())
    }

    /// Subscribes to the events from now on, and to those that few listeners want.
    pub(crate) fn subscribe_to(&self, wants: Wants) -> Events {
        let mut state = self.0.state.locked();
        state.n_listeners += 1;
        let key = state.n_listeners;
        let backlog = Backlog::default();
        state.listeners.push(Listener { key, backlog, wants, dropped_at: None, waker: None });
        Events { key, hub: self.clone() }
    }

    /// Closes the hub, since the session is over. Listeners read what is left and then the end.
    pub fn close(&self) {
        let mut state = self.0.state.locked();
        state.is_closed = true;
        state.listeners.iter_mut().for_each(Listener::wake);
    }

    /// Returns the defaults of channels, as the last turn found them.
    pub fn output(&self) -> Arc<OutputSettings> {
        Arc::clone(&self.0.state.locked().output)
    }

    /// Sets the defaults of channels.
    pub(crate) fn set_output(&self, output: &OutputSettings) {
        let mut state = self.0.state.locked();
        if *state.output != *output {
            state.output = Arc::new(output.clone());
        }
    }

    /// The next event of a listener; `Err` when none comes any more.
    /// Where none is there yet, the task of `context` is woken by the next one.
    fn take(&self, key: u64, context: Option<&Context<'_>>) -> Result<Option<Numbered>, Ended> {
        let mut state = self.0.state.locked();
        let (seq, run) = (state.seq, state.open_run.clone());
        let is_closed = state.is_closed;
        let listener = state.listeners.iter_mut().find(|it| it.key == key).ok_or(Ended)?;
        match listener.next(seq, run) {
            None if is_closed => Err(Ended),
            None => {
                listener.waker = context.map(|it| it.waker().clone());
                Ok(None)
            }
            next => Ok(next),
        }
    }
}

impl HubState {
    /// Sends all listeners the event with the newest number.
    fn deliver(&mut self, event: &Event) {
        for listener in &mut self.listeners {
            listener.push(self.seq, event);
        }
    }
}

/// No event comes any more.
struct Ended;

impl Listener {
    fn push(&mut self, seq: u64, event: &Event) {
        if self.dropped_at.is_some() || !self.wants.takes(event) {
            return;
        }
        if let Err(Full) = self.backlog.push(seq, event) {
            self.dropped_at = Some(seq);
        }
        self.wake();
    }

    /// Wakes the task that waits, which only puts it into the queue of its scheduler.
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The next event; after the last one that was kept, how many were not, and then it listens
    /// again. `seq` is the number of the newest event, `run` what is under way.
    fn next(&mut self, seq: u64, run: Option<RunId>) -> Option<Numbered> {
        if let Some(next) = self.backlog.pop() {
            return Some(next);
        }
        let dropped_at = self.dropped_at.take()?;
        let left_out = self.backlog.take_left_out();
        let first_seq = left_out.map_or(dropped_at, |it| it.first_seq);
        let missed = seq + 1 - dropped_at + left_out.map_or(0, |it| it.count);
        // Deltas after the hole are not the beginning of anything.
        self.backlog = Backlog::default();
        Some(Numbered::new(first_seq, seq, missed, Event::Lagged { missed, run }))
    }
}

/// Ends the events of a session with the state of its actor, whatever ends that. A run that is then
/// under way has failed, and its listeners receive that (TRN-11).
#[derive(Debug)]
pub(crate) struct EndOfEvents(pub(crate) EventHub);

impl Drop for EndOfEvents {
    fn drop(&mut self) {
        let run = self.0.0.state.locked().open_run.clone();
        if let Some(run) = run {
            self.0.publish(Event::RunLost { run, reason: "the session has ended".into() });
        }
        self.0.close();
    }
}

impl fmt::Debug for EventHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventHub({} events)", self.0.state.locked().seq)
    }
}

/// What flows to a parent: everything but deltas. What comes from further below arrives wrapped
/// once per generation.
fn is_progress(event: &Event) -> bool {
    !matches!(
        event,
        Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::ToolInputPreview { .. }
            | Event::ModelStreamed { .. }
    )
}

/// The events of a session, for one listener.
pub struct Events {
    key: u64,
    hub: EventHub,
}

impl Events {
    /// Returns the next event; `None` when the session is over and everything was read. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Numbered> {
        poll_fn(|context| self.poll(context)).await
    }

    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Numbered>> {
        match self.hub.take(self.key, Some(context)) {
            Ok(Some(event)) => Poll::Ready(Some(event)),
            Ok(None) => Poll::Pending,
            Err(Ended) => Poll::Ready(None),
        }
    }

    /// Returns the number of events that wait, and the bytes of their texts.
    pub fn backlog(&self) -> (usize, usize) {
        let state = self.hub.0.state.locked();
        let listener = state.listeners.iter().find(|it| it.key == self.key);
        listener.map_or((0, 0), |it| (it.backlog.len(), it.backlog.n_bytes()))
    }

    /// Returns the defaults of channels, as the last turn found them.
    pub fn output(&self) -> Arc<OutputSettings> {
        self.hub.output()
    }
}

impl Stream for Events {
    type Item = Numbered;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Numbered>> {
        self.get_mut().poll(context)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.0.state.locked().listeners.retain(|it| it.key != self.key);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} waiting)", self.backlog().0)
    }
}

#[cfg(test)]
mod tests;
