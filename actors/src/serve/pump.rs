//! Takes the events of all sessions to where they are kept and counted.

use ennead_runtime::event::Event;

use tokio::task::yield_now;

use super::{Server, book::Walked, ring::RingItem};
use crate::ports::events::AllEvents;

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
                    let Some(hosted) = self.0.book.awaken(&event.session) else { continue };
                    let (tokens, at) = (tokens_of(&event.event.event), event.at);
                    hosted.observe(event);
                    if 0 < tokens {
                        self.0.limits.count_tokens(hosted.tenant(), tokens, at);
                        if let Some((held, _)) = self.0.limits.hold(hosted.tenant(), at) {
                            // Elsewhere, since a session that is being opened may take its time.
                            let server = self.clone();
                            self.0.tasks.spawn(async move { server.park(&hosted, held).await });
                        }
                    }
                    self.0.drain.wake();
                }
                Err(missed) => {
                    self.0.metrics.add("ennead_events_missed_total", "", "", missed.missed);
                    // It is not known whose they were.
                    for page in self.0.book.walk(Walked::Awake) {
                        let active = page.iter().filter(|it| it.state().progress.is_some());
                        active.for_each(|it| it.live().ring.push(RingItem::Missed(missed.missed)));
                        yield_now().await;
                    }
                }
            }
        }
    }
}

/// Tokens that a provider reported with this event, of the session or of a sub-agent.
fn tokens_of(event: &Event) -> u64 {
    match event {
        Event::MessageCompleted { usage, .. } | Event::TokensUsed { usage } => usage.total().0,
        Event::Agent { event, .. } => tokens_of(event),
        _ => 0,
    }
}
