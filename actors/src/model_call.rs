//! Asks the model once. A leaf of the turn supervisor; dropped to give an attempt up.
//!
//! What can be shown goes straight to the event hub, one batch per read; the supervisor hears the
//! settled answer or why there is none.

use std::sync::Arc;

use ennead_runtime::{
    event::Event,
    ports::{BoxFuture, WireRequest, WireResponse},
    step5_model_call::{
        FailureClass, ModelAnswer, ModelFailure, failure,
        stream::{StreamDelta, StreamReader},
        whole,
    },
    turn::{
        Input,
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};
use ractor::ActorRef;

use crate::{events::EventHub, session::shared::Shared, turn_supervisor::TurnMsg};

/// Bytes of a body that is read whole: an answer that is not streamed, or an error.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// Calls the model and tells the turn.
pub(crate) fn run(
    shared: Arc<Shared>,
    order: ModelCallOrder,
    turn: ActorRef<TurnMsg>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let started = shared.world.clock.elapsed();
        let mut call = Call { shared: &shared, order: &order, started, first_token_ms: None };
        let result = call.exchange().await;
        let answered = Answered {
            attempt: order.attempt,
            result,
            first_token_ms: call.first_token_ms,
            duration_ms: call.millis(),
        };
        let _gone = turn.cast(TurnMsg::Input(Input::ModelAnswered(Box::new(answered))));
    })
}

/// What stands for the answer of a call that crashed. Asking again, in one piece, avoids whatever a
/// stream could have done to it.
pub(crate) fn crashed() -> ModelFailure {
    ModelFailure {
        class: FailureClass::StreamBroken,
        status: None,
        message: "the model call crashed".into(),
        retry_after_ms: None,
        partial_text: String::new(),
    }
}

struct Call<'a> {
    shared: &'a Shared,
    order: &'a ModelCallOrder,
    started: std::time::Duration,
    first_token_ms: Option<u64>,
}

impl Call<'_> {
    async fn exchange(&mut self) -> Result<ModelAnswer, ModelFailure> {
        let request = WireRequest {
            url: Arc::clone(&self.shared.endpoint.url),
            headers: Arc::clone(&self.shared.endpoint.headers),
            body: self.order.request.body.clone(),
        };
        let sent = self.shared.world.transport.send(request).await;
        let response = sent.map_err(|error| failure::from_transport(&error, String::new()))?;
        if response.status != 200 {
            return Err(self.refused(response).await);
        }
        if self.order.streamed { self.stream(response).await } else { self.whole(response).await }
    }

    async fn stream(&mut self, mut response: WireResponse) -> Result<ModelAnswer, ModelFailure> {
        let mut reader = StreamReader::new();
        let mut shown = Vec::new();
        let mut broken = None;
        while !reader.is_complete() {
            match response.body.chunk().await {
                Ok(Some(bytes)) => reader.push_chunk(&bytes, &mut shown),
                Ok(None) => break,
                Err(error) => {
                    broken = Some(failure::from_transport(&error, String::new()));
                    break;
                }
            }
            self.show(&mut shown);
        }
        self.show(&mut shown);
        let report = reader.finish();
        let partial_text = report.partial_text.clone();
        match (report.into_result(), broken) {
            (Ok(answer), _) => Ok(answer),
            // The transport knows better why it ended.
            (Err(_), Some(failure)) => {
                Err(ModelFailure { class: FailureClass::StreamBroken, partial_text, ..failure })
            }
            (Err(failure), None) => Err(failure),
        }
    }

    async fn whole(&mut self, response: WireResponse) -> Result<ModelAnswer, ModelFailure> {
        let body = read(response).await?;
        let answer = whole::read_whole(&body)?;
        self.first_token_ms = Some(self.millis());
        if self.order.purpose == Purpose::Turn {
            let text: String = answer.blocks.iter().filter_map(|it| it.as_text()).collect();
            if !text.is_empty() {
                self.hub()
                    .publish(Event::TextDelta { attempt: self.order.attempt, text: text.into() });
            }
        }
        Ok(answer)
    }

    async fn refused(&self, response: WireResponse) -> ModelFailure {
        let (status, headers) = (response.status, response.headers.clone());
        let body = read(response).await.unwrap_or_default();
        failure::from_response(status, &headers, &body, self.shared.world.clock.now())
    }

    fn show(&mut self, shown: &mut Vec<StreamDelta>) {
        if shown.is_empty() {
            return;
        }
        if self.first_token_ms.is_none() {
            self.first_token_ms = Some(self.millis());
        }
        let attempt = self.order.attempt;
        for delta in shown.drain(..) {
            // What is said for a summary is no answer.
            if self.order.purpose == Purpose::Compaction {
                continue;
            }
            let event = match delta {
                StreamDelta::Text(text) => Event::TextDelta { attempt, text: text.into() },
                StreamDelta::Reasoning(text) => {
                    Event::ReasoningDelta { attempt, text: text.into() }
                }
                StreamDelta::ToolInput { id, name, preview } => {
                    Event::ToolInputPreview { attempt, call: id, tool: name, input: preview.into() }
                }
                StreamDelta::Usage(_) => continue,
            };
            self.hub().publish(event);
        }
    }

    fn hub(&self) -> &EventHub {
        &self.shared.hub
    }

    fn millis(&self) -> u64 {
        let took = self.shared.world.clock.elapsed().saturating_sub(self.started);
        u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
    }
}

async fn read(mut response: WireResponse) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    while let Some(bytes) = response
        .body
        .chunk()
        .await
        .map_err(|error| failure::from_transport(&error, String::new()))?
    {
        if MAX_BODY < body.len() + bytes.len() {
            let message = format!("the answer has more than {MAX_BODY} bytes");
            return Err(ModelFailure { class: FailureClass::StreamBroken, message, ..crashed() });
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
