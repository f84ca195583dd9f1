//! A channel of a session: what it says, made ready for one place that it goes to (OUT-5).
//!
//! The rules are [`Normalizer`]; this adds the two things that wait: events, and the times after
//! which text that is held back is delivered anyway. Nothing runs until the next payload is asked for, and what waits
//! is what waits for a listener, so a channel that is not read is bounded as one.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use ennead_runtime::{
    event::Numbered,
    output::{ChannelPolicy, Normalizer, OutputEvent, Payload},
    saturating::Saturating as _,
};
use futures::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::ports::events::Events;

/// The payloads of a session for one place.
#[derive(Debug)]
pub struct Channel {
    events: Events,
    normalizer: Normalizer,
    ready: VecDeque<Payload>,
    /// From when on time is counted.
    start: Instant,
    /// Ends when text that is held back is due.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Channel {
    /// Makes a channel of the answers in these events.
    pub fn new(events: Events, policy: ChannelPolicy) -> Self {
        let normalizer = Normalizer::new(policy, events.output());
        Self { events, normalizer, ready: VecDeque::new(), start: Instant::now(), sleep: None }
    }

    /// Returns the next payload; `None` when the session is over and everything was delivered. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Payload> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Payload>> {
        loop {
            if let Some(payload) = self.ready.pop_front() {
                return Poll::Ready(Some(payload));
            }
            let mut out = Vec::new();
            match self.events.poll(context) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(numbered)) => self.take(&numbered, &mut out),
                Poll::Pending => {
                    ready!(self.wait(context));
                    let now = self.now();
                    self.normalizer.tick(now, &mut out);
                }
            }
            self.ready.extend(out);
        }
    }

    fn take(&mut self, numbered: &Numbered, out: &mut Vec<Payload>) {
        let Some(piece) = OutputEvent::of(&numbered.event) else { return };
        // They are known before the model is asked, and not when a turn starts.
        if self.normalizer.is_between_messages() {
            self.normalizer.set_settings(self.events.output());
        }
        let now = self.now();
        self.normalizer.take(now, &piece, out);
    }

    /// Waits until text that is held back is due; for ever where there is none.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.normalizer.due() else { return Poll::Pending };
        let due = self.start + Duration::from_millis(due);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        ready!(sleep.as_mut().poll(context));
        self.sleep = None;
        Poll::Ready(())
    }

    fn now(&self) -> u64 {
        u64::saturating(self.start.elapsed().as_millis())
    }
}

impl Stream for Channel {
    type Item = Payload;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Payload>> {
        self.get_mut().poll(context)
    }
}
