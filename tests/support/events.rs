//! The events of a session as a log.

use ennead::{Event, Events, data::Numbered};
use futures::FutureExt;

use super::{event_order::EventOrder, until::within};

/// The events of a session from the moment this was made. Each is checked for its place in the order.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Events,
    seen: Vec<Event>,
    order: EventOrder,
}

impl EventLog {
    pub(crate) fn new(events: Events) -> Self {
        Self { events, seen: Vec::new(), order: EventOrder::default() }
    }

    /// Waits for an event that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.next().await.expect("it comes before the end");
            if fits(&event) {
                return event;
            }
        }
    }

    /// Waits until the session is over.
    pub(crate) async fn until_end(&mut self) {
        while self.next().await.is_some() {}
    }

    async fn next(&mut self) -> Option<Event> {
        let next = within("the next event", self.events.next()).await?;
        Some(self.take(next))
    }

    fn take(&mut self, Numbered { event, stands_for, .. }: Numbered) -> Event {
        self.order.take(&event, stands_for == 1);
        self.seen.push(event.clone());
        event
    }

    /// Everything so far.
    pub(crate) fn seen(&mut self) -> &[Event] {
        while let Some(Some(next)) = self.events.next().now_or_never() {
            self.take(next);
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
