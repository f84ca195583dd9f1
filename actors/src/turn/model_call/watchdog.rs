//! Ends an exchange in which nothing happens any more (MDL-12).
//!
//! Four clocks: until the answer begins, between two pieces, between two events, and until it is whole.
//! An event is what brings the reader of the answer on: a steady drip of comments, pings, white space
//! or events of an unknown kind count as silence. It is around whatever transport is used, so all are watched alike. One
//! timer serves all four and is set again only when it has fired: a piece that arrives costs a
//! reading of the clock.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use ennead_runtime::ports::{ResponseBody, TransportError, WireResponse};
use futures::TryStreamExt;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::world::http_limits::HttpLimits;
use ennead_runtime::saturating::Saturating as _;

/// Of an answer in one piece nothing comes before it is whole, so its beginning is waited for as
/// long as providers keep a silent connection open: 10 minutes.
const WHOLE: Duration = Duration::from_secs(600);

/// Bytes of an event that has not ended which count as one: a server that sends this much within the
/// time for an event is at work.
const MANY_BYTES: usize = 64 * 1024;

/// Watches one exchange and ends it when it stalls.
pub(super) struct Watchdog {
    limits: HttpLimits,
    began: Instant,
    /// `None`: nothing of the answer has come.
    last_byte: Option<Instant>,
    last_event: Instant,
    /// How far the reader was, and the bytes that did not bring it on since.
    progress: usize,
    n_bytes: usize,
    timer: Pin<Box<Sleep>>,
}

impl Watchdog {
    /// Starts a watchdog. No silence is longer than `patience`.
    pub(super) fn new(limits: HttpLimits, streamed: bool, patience: Option<Duration>) -> Self {
        let first_byte = if streamed { limits.first_byte } else { limits.first_byte.max(WHOLE) };
        let first_byte = patience.map_or(first_byte, |it| first_byte.min(it));
        let limits = HttpLimits { first_byte, ..limits };
        let began = Instant::now();
        let timer = Box::pin(sleep_until(began + first_byte.min(limits.total)));
        let (last_byte, last_event) = (None, began);
        Self { limits, began, last_byte, last_event, progress: 0, n_bytes: 0, timer }
    }

    /// Waits for the head of the answer.
    pub(super) async fn head(
        &mut self,
        sent: impl Future<Output = Result<WireResponse, TransportError>>,
    ) -> Result<WireResponse, TransportError> {
        let response = self.watch(sent).await?;
        // A head is not an event: who sends nothing else is silent from the beginning.
        self.last_byte = Some(Instant::now());
        // From here on the times only grow, so the timer need not be looked at before it fires.
        self.set_timer();
        Ok(response)
    }

    /// Waits for the next piece of the answer.
    pub(super) async fn chunk(
        &mut self,
        body: &mut ResponseBody,
    ) -> Result<Option<Bytes>, TransportError> {
        // Pieces that never stop coming leave the timer no moment to fire.
        if let Some(error) = self.last_byte.and_then(|it| self.overdue(it)) {
            return Err(error);
        }
        let chunk = self.watch(body.try_next()).await?;
        if chunk.is_some() {
            self.last_byte = Some(Instant::now());
        }
        Ok(chunk)
    }

    /// Notes that a piece of this many bytes was read, after which the reader has come to `progress`. A long event that
    /// is still arriving counts by its bytes, as nothing of it can be read before its end.
    pub(super) fn on_progress(&mut self, progress: usize, n_bytes: usize) {
        self.n_bytes += n_bytes;
        if self.progress < progress || MANY_BYTES <= self.n_bytes {
            self.progress = progress;
            self.note_content();
        }
    }

    /// Notes that the last piece held something.
    pub(super) fn note_content(&mut self) {
        self.n_bytes = 0;
        self.last_event = self.last_byte.unwrap_or_else(Instant::now);
    }

    async fn watch<T>(
        &mut self,
        work: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            while self.timer.as_mut().poll(cx).is_ready() {
                if let Some(error) = self.overdue(Instant::now()) {
                    return Poll::Ready(Err(error));
                }
                self.set_timer();
            }
            Poll::Pending
        })
        .await
    }

    fn set_timer(&mut self) {
        let next = self.waits().map(|it| self.deadline(it)).into_iter().min();
        self.timer.as_mut().reset(next.unwrap_or(self.began));
    }

    fn overdue(&self, now: Instant) -> Option<TransportError> {
        let wait = self.waits().into_iter().find(|it| self.deadline(*it) <= now)?;
        let ms = u64::saturating(self.limit(wait).as_millis());
        Some(match wait {
            Wait::Whole => TransportError::Total { ms },
            Wait::Head => TransportError::FirstByte { ms },
            Wait::Byte(_) => TransportError::Idle { ms },
            Wait::Event => TransportError::NoEvent { ms },
        })
    }

    /// What is waited for now. The first that is overdue is reported.
    fn waits(&self) -> [Wait; 3] {
        match self.last_byte {
            None => [Wait::Whole, Wait::Head, Wait::Whole],
            Some(last_byte) => [Wait::Whole, Wait::Byte(last_byte), Wait::Event],
        }
    }

    fn deadline(&self, wait: Wait) -> Instant {
        let since = match wait {
            Wait::Whole | Wait::Head => self.began,
            Wait::Byte(last_byte) => last_byte,
            Wait::Event => self.last_event,
        };
        since + self.limit(wait)
    }

    fn limit(&self, wait: Wait) -> Duration {
        match wait {
            Wait::Whole => self.limits.total,
            Wait::Head => self.limits.first_byte,
            Wait::Byte(_) => self.limits.idle,
            Wait::Event => self.limits.event_idle,
        }
    }
}

/// Something that is waited for, and no longer than its limit.
#[derive(Clone, Copy)]
enum Wait {
    /// The end of the answer.
    Whole,
    Head,
    /// The next piece, since the one before.
    Byte(Instant),
    /// The next piece that says something.
    Event,
}
