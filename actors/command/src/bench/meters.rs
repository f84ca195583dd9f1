//! The clocks that figures are read from, and the simulated model with its own time counted.
//!
//! The model has no delays here, so its own time is the time in which its futures are polled.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ennead_runtime::ports::{
    BoxFuture, Clock, Transport, TransportError, WireRequest, WireResponse,
};
use futures::stream;
use rustix::time::{ClockId, clock_gettime};

use ennead_runtime::saturating::Saturating as _;

/// Returns the processor time of all threads of this process.
pub(super) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    // Only a clock below zero is not a duration.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Time that the model took for itself.
#[derive(Debug, Default)]
pub(super) struct ModelTime {
    wall_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl ModelTime {
    /// Returns the time that passed meanwhile.
    pub(super) fn wall(&self) -> Duration {
        Duration::from_nanos(self.wall_ns.load(Ordering::Relaxed))
    }

    /// Returns the processor time of the simulated model.
    pub(super) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed))
    }

    fn add(&self, wall: Duration, cpu: Duration) {
        for (sum, more) in [(&self.wall_ns, wall), (&self.cpu_ns, cpu)] {
            sum.fetch_add(u64::saturating(more.as_nanos()), Ordering::Relaxed);
        }
    }
}

/// A model with a stopwatch.
#[derive(Clone, Debug)]
pub(super) struct TimedModel {
    pub(super) model: Arc<dyn Transport>,
    pub(super) watch: Stopwatch,
}

#[derive(Clone, Debug)]
pub(super) struct Stopwatch {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) time: Arc<ModelTime>,
}

impl Stopwatch {
    /// Counts the time that `work` takes.
    fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        let (wall, before) = (self.clock.elapsed(), cpu(ClockId::ThreadCPUTime));
        let done = work();
        let spent = cpu(ClockId::ThreadCPUTime).saturating_sub(before);
        self.time.add(self.clock.elapsed().saturating_sub(wall), spent);
        done
    }
}

impl Transport for TimedModel {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let Self { model, watch } = self.clone();
        Box::pin(async move {
            let mut sent = model.send(request);
            let sent = future::poll_fn(|cx| watch.count(|| sent.as_mut().poll(cx))).await?;
            let WireResponse { status, headers, mut body, .. } = sent;
            let timed = stream::poll_fn(move |cx| watch.count(|| body.as_mut().poll_next(cx)));
            Ok(WireResponse::new(status, headers, Box::pin(timed)))
        })
    }
}
