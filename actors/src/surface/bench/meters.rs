//! The clocks that figures are read from, and the simulated model with its own time counted.
//!
//! The model has no delays here, so its own time is the time in which its futures are polled.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::ports::{
    BoxFuture, Clock, ResponseBody, Transport, TransportError, WireRequest, WireResponse,
};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads of this process.
pub(super) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    // Only a clock below zero is no duration.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Time that the model took for itself.
#[derive(Debug, Default)]
pub(super) struct ModelTime {
    wall_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl ModelTime {
    /// Time that passed meanwhile.
    pub(super) fn wall(&self) -> Duration {
        Duration::from_nanos(self.wall_ns.load(Ordering::Relaxed))
    }

    /// Processor time.
    pub(super) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed))
    }

    fn add(&self, wall: Duration, cpu: Duration) {
        for (sum, more) in [(&self.wall_ns, wall), (&self.cpu_ns, cpu)] {
            sum.fetch_add(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
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
    /// Counts the time in which `work` is polled.
    async fn count<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|context| {
            let (wall, before) = (self.clock.elapsed(), cpu(ClockId::ThreadCPUTime));
            let polled = work.as_mut().poll(context);
            let spent = cpu(ClockId::ThreadCPUTime).saturating_sub(before);
            self.time.add(self.clock.elapsed().saturating_sub(wall), spent);
            polled
        })
        .await
    }
}

impl Transport for TimedModel {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let Self { model, watch } = self.clone();
        Box::pin(async move {
            let mut response = watch.count(model.send(request)).await?;
            response.body = Box::new(TimedBody { body: response.body, watch });
            Ok(response)
        })
    }
}

#[derive(Debug)]
struct TimedBody {
    body: Box<dyn ResponseBody>,
    watch: Stopwatch,
}

impl ResponseBody for TimedBody {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(self.watch.count(self.body.chunk()))
    }
}
