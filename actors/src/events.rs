//! Carries events from a session to its listeners.
//!
//! Events are numbered without gaps per session. A listener has a buffer of [`CAPACITY`] events; a
//! slow one gets text deltas merged, and one that does not read at all loses its oldest events and
//! is told how many ([`Event::Lagged`]). Nobody who publishes ever waits.
//!
//! The hub is the one thing of a session that several actors write to: what they tell goes out and
//! never comes back, so no state of a turn is shared through it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use ennead_runtime::{
    event::{Event, Numbered},
    ids::{AgentId, RunId},
};
use tokio::sync::Notify;

/// Events that wait for one listener at most (MDL-3).
pub const CAPACITY: usize = 1000;

/// The events of one session.
#[derive(Clone)]
pub struct EventHub(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The parent's hub and the name of this session there.
    parent: Option<(EventHub, AgentId)>,
}

#[derive(Default)]
struct State {
    seq: u64,
    listeners: Vec<Weak<Listener>>,
    /// The run whose end is owed.
    open_run: Option<RunId>,
}

struct Listener {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Numbered>,
    missed: u64,
    closed: bool,
}

impl EventHub {
    /// A hub for a session; that of a sub-agent tells its parent's listeners, too.
    pub fn new(parent: Option<(EventHub, AgentId)>) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), parent }))
    }

    /// Tells all listeners. Of the events that end a run, only the first after its start gets
    /// through (TRN-11), whoever sends them.
    pub fn publish(&self, event: Event) {
        let mut state = lock(&self.0.state);
        match &event {
            Event::RunStarted { run } => state.open_run = Some(run.clone()),
            Event::RunFinished { run, .. } | Event::RunFailed { run, .. } => {
                if state.open_run.as_ref() != Some(run) {
                    return;
                }
                state.open_run = None;
            }
            _ => {}
        }
        state.seq += 1;
        let numbered = Numbered { seq: state.seq, event };
        if !state.listeners.is_empty() {
            state.listeners.retain(|listener| match listener.upgrade() {
                Some(listener) => {
                    listener.push(&numbered);
                    true
                }
                None => false,
            });
        }
        drop(state);
        if let Some((parent, agent)) = &self.0.parent
            && is_progress(&numbered.event)
        {
            parent.publish(Event::Agent { agent: agent.clone(), event: Arc::new(numbered.event) });
        }
    }

    /// Listens from now on.
    pub fn subscribe(&self) -> Events {
        let listener = Arc::new(Listener { queue: Mutex::default(), arrived: Notify::new() });
        lock(&self.0.state).listeners.push(Arc::downgrade(&listener));
        Events { listener, hub: Arc::downgrade(&self.0) }
    }

    /// Whether somebody listens, here or at a parent.
    pub fn is_heard(&self) -> bool {
        !lock(&self.0.state).listeners.is_empty()
            || self.0.parent.as_ref().is_some_and(|(parent, _)| parent.is_heard())
    }

    /// The session is over: listeners read what is left and then the end.
    pub fn close(&self) {
        for listener in lock(&self.0.state).listeners.drain(..) {
            if let Some(listener) = listener.upgrade() {
                lock(&listener.queue).closed = true;
                listener.arrived.notify_one();
            }
        }
    }
}

/// Ends the events of a session with the state of its actor, whatever ends that. A run that is then
/// under way has failed, and its listeners are told (TRN-11).
#[derive(Debug)]
pub(crate) struct EndOfEvents(pub(crate) EventHub);

impl Drop for EndOfEvents {
    fn drop(&mut self) {
        let run = lock(&self.0.0.state).open_run.clone();
        if let Some(run) = run {
            self.0.publish(Event::RunFailed { run, reason: "the session has ended".into() });
        }
        self.0.close();
    }
}

impl fmt::Debug for EventHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventHub({} events)", lock(&self.0.state).seq)
    }
}

/// What flows to a parent: everything but deltas. What comes from further below arrives wrapped
/// once per generation.
fn is_progress(event: &Event) -> bool {
    !matches!(
        event,
        Event::TextDelta { .. } | Event::ReasoningDelta { .. } | Event::ToolInputPreview { .. }
    )
}

impl Listener {
    fn push(&self, event: &Numbered) {
        let mut queue = lock(&self.queue);
        if !queue.merge(event) {
            if CAPACITY <= queue.events.len() {
                // Deltas go first: results, errors and the ends of things go only when nothing
                // else is left.
                let oldest_delta = queue.events.iter().position(|it| !is_progress(&it.event));
                queue.events.remove(oldest_delta.unwrap_or(0));
                queue.missed += 1;
            }
            queue.events.push_back(event.clone());
        }
        drop(queue);
        self.arrived.notify_one();
    }
}

impl Queue {
    /// Joins a text delta to the one that waits at the end; only when the listener is behind.
    fn merge(&mut self, event: &Numbered) -> bool {
        if self.events.len() < CAPACITY / 2 {
            return false;
        }
        let Some(Numbered { seq, event: Event::TextDelta { attempt, text } }) =
            self.events.back_mut()
        else {
            return false;
        };
        match &event.event {
            Event::TextDelta { attempt: same, text: more } if same == attempt => {
                *text = format!("{text}{more}").into();
                *seq = event.seq;
                true
            }
            _ => false,
        }
    }
}

/// The events of a session, for one listener.
pub struct Events {
    listener: Arc<Listener>,
    hub: Weak<Shared>,
}

impl Events {
    /// The next event; `None` when the session is over and everything was read.
    pub async fn next(&mut self) -> Option<Numbered> {
        loop {
            let arrived = self.listener.arrived.notified();
            {
                let mut queue = lock(&self.listener.queue);
                if 0 < queue.missed {
                    let missed = std::mem::take(&mut queue.missed);
                    let seq = queue.events.front().map_or(0, |it| it.seq.saturating_sub(1));
                    return Some(Numbered { seq, event: Event::Lagged { missed } });
                }
                if let Some(event) = queue.events.pop_front() {
                    return Some(event);
                }
                if queue.closed || self.hub.strong_count() == 0 {
                    return None;
                }
            }
            arrived.await;
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} waiting)", lock(&self.listener.queue).events.len())
    }
}

/// A panic while the lock was held leaves valid state: every change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
