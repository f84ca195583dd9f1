//! Takes the events of all sessions to where they are kept and counted.

use std::sync::Arc;

use ennead_runtime::event::Event;

use super::{Server, ring::Kept};
use crate::AllEvents;

impl Server {
    /// Works until the last session has ended.
    pub(crate) async fn pump(&self, mut events: AllEvents) {
        while let Some(next) = events.next().await {
            match next {
                Ok(event) => {
                    self.0.metrics.observe(&event.event.event);
                    if let Event::Lagged { .. } = event.event.event {
                        continue;
                    }
                    if let Some(hosted) = self.0.book.get(&event.session) {
                        hosted.observe(Arc::new(event));
                    }
                }
                Err(missed) => {
                    self.0.metrics.add("ennead_events_missed_total", "", "", missed.missed);
                    // It is not known whose they were.
                    let all = self.0.book.all();
                    let active = all.iter().filter(|it| it.state().progress.is_some());
                    active.for_each(|it| it.ring.push(Kept::Missed(missed.missed)));
                }
            }
        }
    }
}
