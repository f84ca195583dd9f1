//! Asks the model once. A leaf of the turn supervisor; dropped to give an attempt up.
//!
//! What can be shown goes straight to the event hub, one batch per read; the supervisor receives the
//! settled answer or why there is none. Before it sends it passes the limiter of the provider and key
//! (`services/governor/provider_limiter.rs`), where it may be parked. Bytes come from a `Transport`
//! (`world/http.rs`) and are read in the loop below by `AnswerReader` (`step5_model_call/provider.rs` in
//! `runtime`); deltas leave by way of `model_call/shown_deltas.rs`, which holds secrets back, and
//! `model_call/publish.rs` for `ports/events.rs`.

mod body;
mod headers;
pub(crate) mod learned;
mod no_answer;
mod pace;
mod publish;
mod shown_deltas;
mod watchdog;

use std::{
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};

pub(crate) use self::no_answer::{crashed, with_time_limit};
use self::{
    body::{in_place_if, read, read_error},
    headers::with_headers,
    no_answer::no_provider,
    pace::Pace,
    shown_deltas::ShownDeltas,
    watchdog::Watchdog,
};
use crate::{
    groundwork::{directory::ParkedMark, spans},
    options::Endpoint,
    ports::{events::EventHub, in_process_model},
    services::governor::{CallPermit, CallRequest, Parked, ProviderLimiter},
    session::context::SessionContext,
};
use ennead_runtime::{
    block::BlockKind,
    event::Event,
    governor::{
        CallOutcome, ParkReason,
        headers::{RateLimitReport, outcome_of},
    },
    ports::{BoxFuture, ResponseBody, WireRequest, WireResponse},
    saturating::Saturating as _,
    step5_model_call::{FailureClass, ModelAnswer, ModelFailure, failure, whole},
    tokens::{Tokens, Usage},
    turn::{
        TurnInput,
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};
use http::HeaderMap;

/// Bytes of a whole answer that is not streamed.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// Set when a call is sent. Until then it used nothing, whatever becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentMark(Arc<OnceLock<()>>);

impl SentMark {
    pub(crate) fn set(&self) {
        let _first_stays = self.0.set(());
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Calls the model once and returns what the turn is to be given: the answer, or why there is none.
pub(crate) fn run(
    session_context: Arc<SessionContext>,
    order: ModelCallOrder,
    sent: Option<SentMark>,
) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let started = session_context.world.clock.elapsed();
        let (pace, parked_ms, usage) = (Pace::default(), None, Usage::default());
        let mut call = CallAttempt {
            session_context: &session_context,
            order,
            sent,
            started,
            pace,
            parked_ms,
            usage,
        };
        let result = call.exchange().await;
        let (first_ms, gap_ms) = (call.pace.first_ms(), call.pace.longest_gap_ms());
        spans::answered(&tracing::Span::current(), &result, first_ms, gap_ms);
        let answered = Answered {
            attempt: call.order.attempt,
            usage: result.as_ref().map_or(call.usage, |it| it.usage),
            is_in_doubt: false,
            result,
            first_token_ms: first_ms,
            duration_ms: call.millis(),
            parked_ms: call.parked_ms,
        };
        TurnInput::ModelAnswered(Box::new(answered))
    })
}

/// The failure with the address that was asked, where its words do not name it yet.
fn located(url: &str, failure: ModelFailure) -> ModelFailure {
    use FailureClass::{BadAnswer, Network, StreamBroken, Timeout};
    match failure.class {
        BadAnswer | Network | StreamBroken | Timeout => failure::named(url, failure),
        _ => failure,
    }
}

/// A call is parked. A status query shows it; listeners receive when it is over,
/// whatever ended it.
struct Parking<'a> {
    session_context: &'a SessionContext,
    attempt: u32,
    mark: ParkedMark,
}

impl<'a> Parking<'a> {
    fn new(session_context: &'a SessionContext, attempt: u32) -> Self {
        Self {
            session_context,
            attempt,
            mark: session_context.directory.mark_parked(&session_context.session),
        }
    }

    fn mark(&self, reason: ParkReason, until_ms: Option<u64>) {
        self.mark.set(reason, until_ms);
    }
}

impl Drop for Parking<'_> {
    fn drop(&mut self) {
        self.session_context.hub.publish(Event::Unparked { attempt: self.attempt });
    }
}

struct CallAttempt<'a> {
    session_context: &'a SessionContext,
    order: ModelCallOrder,
    /// Where somebody counts it.
    sent: Option<SentMark>,
    started: std::time::Duration,
    pace: Pace,
    parked_ms: Option<NonZeroU32>,
    /// The usage of a broken stream as the provider reported it.
    usage: Usage,
}

impl CallAttempt<'_> {
    async fn exchange(&mut self) -> Result<ModelAnswer, ModelFailure> {
        let place = self.order.provider;
        let session_context = self.session_context;
        let (Some(endpoint), Some(limiter)) =
            (session_context.endpoints.get(place), session_context.limiters.get(place))
        else {
            return Err(no_provider());
        };
        let (permit, was_parked) = self.admitted(limiter).await;
        let parked_ms = if was_parked { self.millis() } else { 0 };
        self.parked_ms = NonZeroU32::new(u32::saturating(parked_ms));
        // What comes before is the governor's time, not the model's.
        self.started = session_context.world.clock.elapsed();
        let permit = permit?;
        // Servers repeat what they were sent.
        let mut result = self.talk(endpoint, &permit).await;
        if let Err(failure) = &mut result {
            session_context.redaction.redactor().failure(failure);
        }
        match &result {
            Ok(answer) => {
                let usage = &answer.usage;
                // What is read from a cache counts against no limit.
                let input = usage.input_tokens.saturating_add(usage.cache_creation_input_tokens);
                permit.settle(CallOutcome::Answered, Some((input, usage.output_tokens)));
            }
            Err(failure) => {
                session_context.learned.take_in(&endpoint.base, &self.order.model, failure);
                permit.settle(outcome_of(failure), None);
            }
        }
        result
    }

    /// Waits at the limiter, and returns whether it had to. Listeners and the directory see it while it is
    /// parked.
    async fn admitted(
        &self,
        limiter: &ProviderLimiter,
    ) -> (Result<CallPermit, ModelFailure>, bool) {
        let order = &self.order;
        let request = CallRequest {
            tenant: self.session_context.tenant.clone(),
            tokens: Tokens::from_chars(order.request.body.len() as u64).0,
            is_retry: order.is_retry,
            has_other_provider: order.has_other_provider,
        };
        // Dropped with this future, and so on an interrupt, too.
        let mut parking = None;
        let on_parked = |parked: Parked| {
            let now = self.session_context.world.clock.now().0;
            let until_ms = parked.for_ms.map(|it| now.saturating_add(it));
            let (attempt, provider) = (order.attempt, Arc::clone(limiter.provider()));
            let reason = parked.reason;
            let marked = parking.get_or_insert_with(|| Parking::new(self.session_context, attempt));
            marked.mark(reason, until_ms);
            self.hub().publish(Event::Parked { attempt, provider, reason, until_ms });
        };
        let admitted = limiter.admit(request, on_parked).await;
        (admitted.map_err(|it| failure::from_governor(limiter.provider(), &it)), parking.is_some())
    }

    async fn talk(
        &mut self,
        endpoint: &Endpoint,
        permit: &CallPermit,
    ) -> Result<ModelAnswer, ModelFailure> {
        let order = &mut self.order;
        let streamed = order.streamed;
        let limits = self.session_context.world.http.with(&order.http);
        let limits = match order.patience_ms {
            Some(ms) => limits.within(Duration::from_millis(ms)),
            None => limits,
        };
        let url: Arc<str> = order.format.url(&endpoint.base, &order.model, streamed).into();
        // It may be large, and is of no use once it was sent.
        let body = std::mem::take(&mut order.request.body);
        let headers = with_headers(&endpoint.headers, &order.request.headers);
        let mut request = WireRequest::new(Arc::clone(&url), headers, body, limits.connect);
        request.certificates = order.certificates.clone();
        let patience = order.patience_ms.map(Duration::from_millis);
        let mut watchdog = Watchdog::new(limits, streamed, patience);
        self.sent.iter().for_each(SentMark::set);
        let sending = match &endpoint.model {
            Some(model) => in_process_model::send(model, &request),
            None => self.session_context.world.transport.send(request),
        };
        let sent = watchdog.head(sending).await;
        let response = sent.map_err(|error| located(&url, failure::before_head(&error)))?;
        let WireResponse { status, headers, mut body, .. } = response;
        if let Some(report) =
            RateLimitReport::read(&headers, self.session_context.world.clock.now())
        {
            permit.on_report(report);
        }
        if status != 200 {
            return Err(self.refused(&url, status, &headers, &mut body, &mut watchdog).await);
        }
        // A page or a whole answer in place of the stream that was asked for is read as what it is.
        let is_stream = streamed && !whole::is_whole(&headers);
        // Headers lie in the buffer that was read, and would keep it while the answer is waited for.
        drop(headers);
        let result = if is_stream {
            self.stream(&mut body, &mut watchdog).await
        } else {
            self.whole(&mut body, &mut watchdog).await
        };
        result.map_err(|failure| located(&url, failure))
    }

    async fn stream(
        &mut self,
        body: &mut ResponseBody,
        watchdog: &mut Watchdog,
    ) -> Result<ModelAnswer, ModelFailure> {
        let mut reader = self.order.format.reader(self.order.request.digest);
        if self.hub().wants_stream() {
            reader.keep_events();
        }
        let mut answer = ShownDeltas::new(self.session_context.redaction.redactor());
        let mut shown = Vec::new();
        let mut broken = None;
        let mut n_bytes = 0_usize;
        while !reader.is_complete() {
            match watchdog.chunk(body).await {
                Ok(Some(bytes)) => {
                    let n_new = bytes.len();
                    n_bytes = n_bytes.saturating_add(n_new);
                    if body::is_little(n_bytes) {
                        reader.push_chunk(&bytes, &mut shown);
                    } else {
                        (reader, shown) = body::elsewhere(move || {
                            reader.push_chunk(&bytes, &mut shown);
                            (reader, shown)
                        })
                        .await;
                    }
                    watchdog.on_progress(reader.progress(), n_new);
                }
                Ok(None) => break,
                Err(error) => {
                    broken = Some(failure::from_transport(&error, String::new()));
                    break;
                }
            }
            self.show(&mut answer, &mut shown);
        }
        self.show(&mut answer, &mut shown);
        if reader.is_complete() && !self.hub().pass_over(0) {
            self.publish(answer.end());
        }
        let report = in_place_if(body::is_little(n_bytes), move || reader.finish()).await;
        let partial_text = report.partial_text.clone();
        self.usage = report.usage;
        match (report.into_result(), broken) {
            (Ok(answer), _) => Ok(answer),
            // The transport knows better why it ended.
            (Err(_), Some(failure)) => Err(ModelFailure { partial_text, ..failure }),
            (Err(failure), None) => Err(failure),
        }
    }

    async fn whole(
        &mut self,
        body: &mut ResponseBody,
        watchdog: &mut Watchdog,
    ) -> Result<ModelAnswer, ModelFailure> {
        let body = read(body, MAX_BODY, watchdog).await?;
        if MAX_BODY < body.len() {
            let message = format!("the answer has more than {MAX_BODY} bytes");
            return Err(ModelFailure { class: FailureClass::BadAnswer, message, ..crashed() });
        }
        let (format, digest) = (self.order.format, self.order.request.digest);
        let is_little = body::is_little(body.len());
        let read_whole = move || format.read_whole(&body, digest);
        let answer = in_place_if(is_little, read_whole).await?;
        self.pace.part(self.millis());
        if self.order.purpose == Purpose::Turn {
            let attempt = self.order.attempt;
            for block in &answer.blocks {
                if let BlockKind::Thinking { thinking, .. } = block.kind()
                    && !thinking.is_empty()
                {
                    let text = self.redacted(thinking);
                    self.hub().publish(Event::ReasoningDelta { attempt, text });
                }
            }
            let text: String = answer.blocks.iter().filter_map(|it| it.as_text()).collect();
            if !text.is_empty() {
                self.hub().publish(Event::TextDelta { attempt, text: self.redacted(&text) });
            }
        }
        Ok(answer)
    }

    async fn refused(
        &self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &mut ResponseBody,
        watchdog: &mut Watchdog,
    ) -> ModelFailure {
        let (body, cut) = read_error(body, watchdog).await;
        if let Some(error) = cut
            && let Some(failure) = failure::of_unread(status, error)
        {
            return failure::named(url, failure);
        }
        let now = self.session_context.world.clock.now();
        let body = String::from_utf8_lossy(&body);
        let body = self.session_context.redaction.redactor().cut_text(&body);
        self.order.format.read_refusal(url, status, headers, body.as_bytes(), now)
    }

    fn redacted(&self, text: &str) -> Arc<str> {
        self.session_context.redaction.redactor().text(text).into()
    }

    fn hub(&self) -> &EventHub {
        &self.session_context.hub
    }

    fn millis(&self) -> u64 {
        let took = self.session_context.world.clock.elapsed().saturating_sub(self.started);
        u64::saturating(took.as_millis())
    }
}
