//! The events of a session as a log.

use ennead::{Event, Events, data::Numbered};
use futures::FutureExt;

use super::until::within;

/// Everything a session told from the moment this was made.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Events,
    seen: Vec<Event>,
}

impl EventLog {
    pub(crate) fn new(events: Events) -> Self {
        Self { events, seen: Vec::new() }
    }

    /// Waits for an event that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.next().await.expect("it comes before the end");
            self.seen.push(event.clone());
            if fits(&event) {
                return event;
            }
        }
    }

    /// Waits until the session is over.
    pub(crate) async fn until_end(&mut self) {
        while let Some(event) = self.next().await {
            self.seen.push(event);
        }
    }

    async fn next(&mut self) -> Option<Event> {
        Some(within("the next event", self.events.next()).await?.event)
    }

    /// Everything so far.
    pub(crate) fn seen(&mut self) -> &[Event] {
        while let Some(Some(Numbered { event, .. })) = self.events.next().now_or_never() {
            self.seen.push(event);
        }
        &self.seen
    }

    /// How many runs began, and how many ended, either way.
    pub(crate) fn runs(&mut self) -> (usize, usize) {
        let seen = self.seen();
        let count = |fits: fn(&Event) -> bool| seen.iter().filter(|it| fits(it)).count();
        let ended = |it: &Event| matches!(it, Event::RunFinished { .. } | Event::RunLost { .. });
        (count(|it| matches!(it, Event::RunStarted { .. })), count(ended))
    }

    /// Whether some event fits.
    pub(crate) fn has(&mut self, fits: impl Fn(&Event) -> bool) -> bool {
        self.seen().iter().any(fits)
    }
}
