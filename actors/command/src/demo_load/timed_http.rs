//! Times the exchanges with the model.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, ready},
    thread::{self, ThreadId},
    time::Duration,
};

use dashmap::DashMap;
use ennead::internal::Http;
use ennead_runtime::{
    ports::{BoxFuture, Clock, Transport, TransportError, WireRequest, WireResponse},
    saturating::Saturating as _,
};
use futures::stream;

/// HTTP as the product has it, one client per scheduler thread, with a stopwatch.
#[derive(Debug)]
pub(super) struct TimedHttp {
    clients: DashMap<ThreadId, Arc<Http>>,
    clock: Arc<dyn Clock>,
    /// From sending to the last byte, all exchanges together, in nanoseconds.
    pub(super) model_ns: Arc<AtomicU64>,
}

impl TimedHttp {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clients: DashMap::new(), clock, model_ns: Arc::default() }
    }

    fn client(&self) -> Result<Arc<Http>, TransportError> {
        let entry = self.clients.entry(thread::current().id()).or_try_insert_with(|| {
            Http::new()
                .map(Arc::new)
                .map_err(|error| TransportError::Tls { url: String::new(), why: error.to_string() })
        });
        entry.map(|it| Arc::clone(&it))
    }
}

impl Transport for TimedHttp {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let client = self.client();
        let clock = Arc::clone(&self.clock);
        let model_ns = Arc::clone(&self.model_ns);
        Box::pin(async move {
            let client = client?;
            let mut watch =
                BodyStopwatch { start: clock.elapsed(), clock, model_ns, stopped: false };
            let WireResponse { status, headers, mut body, .. } = client.send(request).await?;
            let timed = stream::poll_fn(move |cx| {
                let chunk = ready!(body.as_mut().poll_next(cx));
                if !matches!(chunk, Some(Ok(_))) {
                    watch.stop();
                }
                Poll::Ready(chunk)
            });
            Ok(WireResponse::new(status, headers, Box::pin(timed)))
        })
    }
}

/// Stops at the end of a body, or when somebody has read enough of it.
#[derive(Debug)]
struct BodyStopwatch {
    start: Duration,
    clock: Arc<dyn Clock>,
    model_ns: Arc<AtomicU64>,
    stopped: bool,
}

impl BodyStopwatch {
    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            let took = self.clock.elapsed().saturating_sub(self.start).as_nanos();
            self.model_ns.fetch_add(u64::saturating(took), Ordering::Relaxed);
        }
    }
}

impl Drop for BodyStopwatch {
    fn drop(&mut self) {
        self.stop();
    }
}
