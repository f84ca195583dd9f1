//! A channel of a session: what it says, made ready for one place that it goes to (OUT-5).
//!
//! The rules are [`Normalizer`]; this adds the two things that wait: events, and the times after
//! which text that is held back is delivered anyway. Nothing runs while nobody asks, and what waits
//! is what waits for a listener, so a channel that is not read is bounded as one.

use std::{collections::VecDeque, time::Duration};

use ennead_runtime::output::{ChannelPolicy, Heard, Normalizer, Payload};
use tokio::time::{Instant, sleep_until};

use crate::events::Events;

/// The payloads of a session for one place.
#[derive(Debug)]
pub struct Channel {
    events: Events,
    normalizer: Normalizer,
    ready: VecDeque<Payload>,
    /// From when on time is counted.
    start: Instant,
}

impl Channel {
    /// A channel of what these events tell.
    pub fn new(events: Events, policy: ChannelPolicy) -> Self {
        let normalizer = Normalizer::new(policy, events.output());
        Self { events, normalizer, ready: VecDeque::new(), start: Instant::now() }
    }

    /// The next payload; `None` when the session is over and everything was delivered. Dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Option<Payload> {
        loop {
            if let Some(payload) = self.ready.pop_front() {
                return Some(payload);
            }
            let due = self.normalizer.due().map(|it| self.start + Duration::from_millis(it));
            let mut out = Vec::new();
            let heard = tokio::select! {
                biased;
                event = self.events.next() => Some(event?),
                () = until(due) => None,
            };
            let now = self.now();
            match heard {
                Some(numbered) => {
                    if let Some(heard) = Heard::of(&numbered.event) {
                        // They are known before the model is asked, and not when a turn starts.
                        if self.normalizer.is_between_messages() {
                            self.normalizer.set_settings(self.events.output());
                        }
                        self.normalizer.hear(now, &heard, &mut out);
                    }
                }
                None => self.normalizer.tick(now, &mut out),
            }
            self.ready.extend(out);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
