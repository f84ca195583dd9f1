//! What the sessions that are actors take of the memory, by tenants.

use std::collections::BTreeMap;

use ennead_runtime::{ids::TenantId, saturating::Saturating as _};
use tokio::task::yield_now;

use super::{Server, book::Walked, hosted::Hosted};

/// Bytes that a session takes as an actor, and so does each of its sub-agents, apart from its conversation. Measured
/// by `ennead bench` and rounded up.
const ACTOR: u64 = 32 * 1024;

impl Server {
    /// Adds up what sessions take, where there is a limit on it. Returns the tenants whose idle sessions are to become
    /// no actors.
    pub(crate) async fn weigh(&self) -> Vec<TenantId> {
        let limits = &self.0.limits.limits;
        if limits.memory_bytes.or(limits.all_memory_bytes).is_none() {
            return Vec::new();
        }
        let mut memory: BTreeMap<TenantId, u64> = BTreeMap::new();
        for page in self.0.book.walk(Walked::Awake) {
            for hosted in page {
                let bytes = weight_of(&hosted).await;
                let sum = memory.entry(hosted.tenant().clone()).or_default();
                *sum = sum.saturating_add(bytes);
            }
            yield_now().await;
        }
        self.0.limits.set_memory(memory)
    }

    /// Ends the actor of a session that waits for a limit.
    pub(crate) async fn end_actor(&self, hosted: &Hosted) {
        if let Some(open) = hosted.live().handle.lock().await.take() {
            open.close().await;
        }
    }
}

/// Bytes of the conversation, the events and the runs of a session, as far as they are known.
async fn weight_of(hosted: &Hosted) -> u64 {
    let events = u64::saturating(hosted.live().ring.n_bytes());
    let open = match hosted.live().handle.try_lock() {
        Ok(handle) => handle.clone(),
        // It is being made an actor, or no longer one.
        Err(_) => return events.saturating_add(ACTOR),
    };
    let Some(open) = open else { return events };
    let status = open.status().await;
    let (agents, conversation) = status.map_or((0, 0), |it| (it.agents, it.n_bytes));
    let actors = ACTOR.saturating_mul(1 + u64::saturating(agents));
    events.saturating_add(actors).saturating_add(conversation)
}
