//! The runtime of a thread that hosts sessions.
//!
//! Two kinds of callers build it: shards with threads of their own, and embedders who run a thread per
//! core, by [`Placement::runtime_builder`](crate::Placement::runtime_builder).

use tokio::runtime::Builder;

/// Tasks that are polled before sockets and timers are looked at, if there is always one to poll.
///
/// Sessions come forward in turns of some twenty polls, one actor waking the next. With tokio's 61
/// ever more sessions are taken in before the first are through; they take turns in the caches, and
/// each of their actors finds its memory cold. So what has begun is brought to where it waits first.
/// In interleaved runs of the bench driver (21 November 2026, two cores, CPU per model round) 64
/// sessions at once on a thread cost 0.20 ms instead of 0.26, 512 cost 0.20 instead of 0.38; 512 polls
/// helped little, 1,024 most of it, 8,192 no more. The price: a thread that always has work looks at
/// its sockets and timers every 6 ms or so (a poll takes about 3 µs) instead of every 0.2.
const POLLS_BETWEEN_EVENTS: u32 = 2048;

/// Returns the builder of a current-thread runtime with sockets and timers, for a thread that hosts sessions.
#[must_use]
pub(crate) fn runtime_builder() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().event_interval(POLLS_BETWEEN_EVENTS);
    builder
}
