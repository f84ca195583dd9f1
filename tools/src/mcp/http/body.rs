//! Bodies of answers, of which no more is held than may be.

use std::{collections::VecDeque, ops::ControlFlow, sync::Arc, time::Duration};

use bytes::Bytes;
use ennead_runtime::{ports::ResponseBody, step5_model_call::sse::SseParser};
use tokio::time::timeout;

use super::{
    super::lines::MAX_LINE,
    link::{HttpFailure, Link},
};

/// Between two pieces of an answer.
pub(super) const IDLE: Duration = Duration::from_secs(5 * 60);

/// Bytes that are looked at before others have their turn.
const PIECE: usize = 8 << 10;

/// A body that is being read.
pub(super) struct Body {
    pieces: ResponseBody,
    link: Arc<Link>,
    /// How long it may be silent; `None`: for ever.
    idle: Option<Duration>,
    held: usize,
}

/// One event of a stream.
pub(super) struct Event {
    /// Empty where there was none.
    pub(super) kind: String,
    pub(super) data: Vec<u8>,
}

/// The events of a body.
pub(super) struct Events {
    body: Body,
    parser: SseParser,
    unread: Bytes,
    found: VecDeque<Event>,
}

impl Body {
    pub(super) fn new(pieces: ResponseBody, link: Arc<Link>, idle: Option<Duration>) -> Self {
        Self { pieces, link, idle, held: 0 }
    }

    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        let next = std::future::poll_fn(|cx| self.pieces.as_mut().poll_next(cx));
        let piece = match self.idle {
            None => next.await,
            Some(idle) => timeout(idle, next).await.map_err(|_| {
                let seconds = idle.as_secs();
                HttpFailure::of_call(format!("its answer stopped for {seconds} s"))
            })?,
        };
        Ok(piece.transpose()?)
    }

    /// Counts bytes as held until they are let go.
    fn hold(&mut self, bytes: usize) -> Result<(), HttpFailure> {
        self.held += bytes;
        let may = self.link.holds(bytes);
        may.then_some(()).ok_or_else(|| HttpFailure::of_call("its answers are too long"))
    }

    fn release(&mut self) {
        self.link.lets_go(std::mem::take(&mut self.held));
    }

    /// Reads all of it; at most `limit` bytes.
    pub(super) async fn whole(mut self, limit: usize) -> Result<Vec<u8>, HttpFailure> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            if limit < whole.len().saturating_add(piece.len()) {
                let why = format!("its answer has more than {limit} bytes");
                return Err(HttpFailure::of_call(why));
            }
            self.hold(piece.len())?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Reads all of an answer.
    pub(super) async fn answer(self) -> Result<Vec<u8>, HttpFailure> {
        self.whole(MAX_LINE).await
    }

    pub(super) fn events(self) -> Events {
        Events {
            body: self,
            parser: SseParser::new(),
            unread: Bytes::new(),
            found: VecDeque::new(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.release();
    }
}

impl Events {
    /// Returns the next event; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, HttpFailure> {
        loop {
            if let Some(event) = self.found.pop_front() {
                return Ok(Some(event));
            }
            if self.unread.is_empty() {
                match self.body.next().await? {
                    Some(piece) => self.unread = piece,
                    None => return Ok(None),
                }
            }
            let piece = self.unread.split_to(self.unread.len().min(PIECE));
            self.body.hold(piece.len())?;
            let found = &mut self.found;
            let read = self.parser.push_chunk(&piece, |event| {
                let (kind, data) = (event.event.into_owned(), event.data.into_owned());
                found.push_back(Event { kind, data: data.into_bytes() });
                ControlFlow::Continue(())
            });
            read.map_err(HttpFailure::of_call)?;
            if !self.found.is_empty() {
                // What follows the last event in this piece is small.
                self.body.release();
            }
            // A server that never pauses does not keep other sessions from their turn.
            tokio::task::yield_now().await;
        }
    }
}
