//! `/v1/sessions/{id}/events`: what happens in a session, as server-sent events.
//!
//! The id of an event is `<number>-<milliseconds since 1970>`. A reader that comes back with the last one
//! it had gets what followed from memory, if that is still there, or else from the transcript: its
//! lines since then as events of the type `recorded`, and after them what happens. Around the seam a
//! line and an event may say the same; a line is never left out. With a bare number the newest event of
//! that number is meant, and without one in memory all of the transcript is read.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header},
};
use ennead_runtime::{event::Event, ids::RunId, time::Timestamp};
use futures::stream;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    access::Caller,
    body,
    hosted::Hosted,
    problem::{Code, Problem, ProblemBody},
    replay::Replay,
    ring::{Next, RingItem},
    run_routes::RunView,
    shares::TakenShare,
};
use crate::ports::events::SessionEvent;

/// How long a stream is silent before a comment shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Bytes of events that are written at once at most, but for a single longer one.
const BATCH: usize = 64 * 1024;

/// Streams the events of a session. `Last-Event-ID` goes on after an event; `after` in the query does the
/// same. Types are those of the library's events, in snake case; in addition `recorded` has a line of the
/// transcript, `gap` the number of events that were missed, and `outcome` the run that was asked for.
#[utoipa::path(get, path = "/v1/sessions/{id}/events", operation_id = "stream_events", tag = "events", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event, or a number; 0 begins at the beginning"),
        ("after" = Option<String>, Query, description = "The same, where no header can be sent"),
    ),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn events(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response<Body>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let slot = server.take_long_answer(&caller)?;
    let name = HeaderName::from_static("last-event-id");
    let after = body::header_text(&headers, &name).or_else(|| body::query(&uri, "after"));
    let mut reader = StreamReader::new(&server, hosted, None, slot)?;
    match after.map(str::trim).filter(|it| !it.is_empty()) {
        None => {}
        Some(text) => {
            let (seq, at) = parse(text).ok_or_else(|| {
                Problem::new(Code::BadRequest, "Last-Event-ID is none of this server")
            })?;
            match reader.hosted.live().ring.after(seq, at).filter(|_| seq != 0) {
                Some(place) => reader.place = place,
                None => reader.replay(&server, at.unwrap_or_default()),
            }
        }
    }
    Ok(reader.respond())
}

/// The number and the time of an id.
fn parse(id: &str) -> Option<(u64, Option<Timestamp>)> {
    match id.split_once('-') {
        Some((seq, at)) => Some((seq.parse().ok()?, Some(Timestamp(at.parse().ok()?)))),
        None => Some((id.parse().ok()?, None)),
    }
}

impl Server {
    /// Takes the place of an answer that takes long, from the share of the caller's tenant.
    pub(crate) fn take_long_answer(&self, caller: &Caller) -> Result<TakenShare, Problem> {
        let none = || {
            let detail =
                "the tenant has as many streams and waiting requests as it may, or the server has";
            Problem::new(Code::Streams, detail).after(Duration::from_secs(5))
        };
        self.0.long_answers.take(&caller.tenant).ok_or_else(none)
    }

    /// Streams the events of a session from a place on up to the end of this run, and then the run.
    pub(crate) async fn stream_run(
        &self,
        hosted: Arc<Hosted>,
        run: RunId,
        ended: CancellationToken,
        place: u64,
        slot: TakenShare,
    ) -> Result<Response<Body>, Problem> {
        let mut reader = StreamReader::new(self, hosted, Some((run, ended)), slot)?;
        reader.place = place;
        Ok(reader.respond())
    }
}

/// A reader of the events of a session.
struct StreamReader {
    server: Server,
    hosted: Arc<Hosted>,
    place: u64,
    /// Lines of the transcript that come first.
    replay: Option<Replay>,
    /// The run whose end ends the stream.
    until: Option<(RunId, CancellationToken)>,
    is_over: bool,
    ready: VecDeque<Bytes>,
    _slot: TakenShare,
}

impl StreamReader {
    fn new(
        server: &Server,
        hosted: Arc<Hosted>,
        until: Option<(RunId, CancellationToken)>,
        slot: TakenShare,
    ) -> Result<Self, Problem> {
        {
            let mut state = hosted.state();
            if server.0.options.max_readers <= state.n_readers {
                let detail = "the session has as many readers of its events as it may";
                return Err(Problem::new(Code::Streams, detail).after(HEARTBEAT));
            }
            state.n_readers += 1;
        }
        let (server, ready) = (server.clone(), VecDeque::new());
        let place = hosted.live().ring.end();
        let replay = None;
        Ok(Self { server, hosted, place, replay, until, is_over: false, ready, _slot: slot })
    }

    fn replay(&mut self, server: &Server, from: Timestamp) {
        let (tenant, id) = (self.hosted.tenant(), self.hosted.id());
        self.replay = Some(Replay::new(server.0.paths.transcript(tenant, id), from));
    }

    fn respond(self) -> Response<Body> {
        let chunks = stream::unfold(self, |mut reader| async move {
            let chunk = reader.chunk().await?;
            Some((Ok::<Bytes, std::convert::Infallible>(chunk), reader))
        });
        sse(Body::from_stream(chunks))
    }

    /// What is written next; `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        if let Some(replay) = &mut self.replay {
            match replay.next().await {
                Some(text) => return Some(text),
                None => {
                    // What happened since the last line, of which the disk may have nothing yet.
                    self.place = self.hosted.live().ring.since(replay.last_at());
                    self.replay = None;
                }
            }
        }
        if self.is_over {
            return None;
        }
        let next = match self.hosted.live().ring.at(self.place) {
            Next::Nothing => match self.wait().await {
                Some(next) => next,
                None => return self.ready.pop_front(),
            },
            next => next,
        };
        let mut text = String::new();
        self.write(next, &mut text);
        while !self.is_over && text.len() < BATCH {
            match self.hosted.live().ring.at(self.place) {
                Next::Nothing => break,
                next => self.write(next, &mut text),
            }
        }
        Some(text.into())
    }

    /// Waits for the next event; `None` when something else is to be written instead.
    async fn wait(&mut self) -> Option<Next> {
        let stopped = self.server.0.tasks.stopped().clone();
        let ended = self.until.as_ref().map(|it| it.1.clone());
        let ended = async {
            match ended {
                Some(ended) => ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            next = self.hosted.live().ring.next(self.place) => return Some(next),
            () = ended => self.end().await,
            () = stopped.cancelled() => self.is_over = true,
            () = tokio::time::sleep(HEARTBEAT) => self.ready.push_back(Bytes::from_static(b":\n\n")),
        }
        None
    }

    /// Writes the run that was asked for, as the last event.
    async fn end(&mut self) {
        self.is_over = true;
        let Some((run, _)) = &self.until else { return };
        let view = |it: &super::runs::Run| RunView::new(&self.hosted, it, None);
        let found = self.server.with_runs(&self.hosted, |it| it.get(run).map(view)).await;
        if let Ok(Some(view)) = found {
            let data = json!({ "type": "outcome", "run": view });
            self.ready.push_back(format!("data: {data}\n\n").into());
        }
    }

    fn write(&mut self, next: Next, text: &mut String) {
        match next {
            Next::Kept(RingItem::Event(event)) => {
                self.place += 1;
                text.push_str(event.text(event_text));
            }
            Next::Kept(RingItem::Missed(n)) => {
                self.place += 1;
                text.push_str(&gap_text(n));
            }
            Next::Gap(n) => {
                self.place += n;
                text.push_str(&gap_text(n));
            }
            Next::End => self.is_over = true,
            Next::Nothing => {}
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.hosted.state();
        state.n_readers = state.n_readers.saturating_sub(1);
        state.last_read = self.server.now();
    }
}

/// An event as readers get it; empty where it cannot be serialised.
fn event_text(event: &SessionEvent) -> String {
    let SessionEvent { at, event, .. } = event;
    if let Event::Lagged { missed, .. } = event.event {
        return gap_text(missed);
    }
    let Ok(mut data) = serde_json::to_value(event) else { return String::new() };
    data["at"] = at.0.into();
    format!("id: {}-{}\ndata: {data}\n\n", event.seq, at.0)
}

fn gap_text(missed: u64) -> String {
    format!("data: {}\n\n", json!({ "type": "gap", "missed": missed }))
}

/// Makes an answer of events.
pub(crate) fn sse(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Some proxies would hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
