//! What is returned for a call that gives no answer by itself: it crashed, has no server to ask, or took
//! longer than it may, whatever it waited for.

use ennead_runtime::{
    ports::BoxFuture,
    step5_model_call::{FailureClass, ModelFailure},
    tokens::Usage,
    turn::{TurnInput, input::Answered},
};

use super::SentMark;

/// Makes the answer in place of that of a call that crashed. Asking again, in one piece, avoids whatever a stream could
/// have done to it.
pub(crate) fn crashed() -> ModelFailure {
    ModelFailure {
        class: FailureClass::StreamBroken,
        status: None,
        message: "the model call crashed".into(),
        retry_after_ms: None,
        partial_text: String::new(),
    }
}

/// Makes the failure of a turn and a session that do not agree about the providers: a bug of ours.
pub(super) fn no_provider() -> ModelFailure {
    let message = "the session has no such provider".into();
    ModelFailure { class: FailureClass::Internal, message, ..crashed() }
}

/// Runs the work of a call, raced with a wait of `limit_ms`.
pub(crate) fn with_time_limit(
    limit_ms: u64,
    waiting: BoxFuture<'static, ()>,
    attempt: u32,
    sent: Option<SentMark>,
    work: BoxFuture<'static, TurnInput>,
) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        tokio::select! {
            answered = work => answered,
            () = waiting => out_of_time(attempt, limit_ms, sent),
        }
    })
}

fn out_of_time(attempt: u32, limit_ms: u64, sent: Option<SentMark>) -> TurnInput {
    let message = format!("no answer for {limit_ms} ms");
    TurnInput::ModelAnswered(Box::new(Answered {
        attempt,
        result: Err(ModelFailure { class: FailureClass::Timeout, message, ..crashed() }),
        usage: Usage::default(),
        is_in_doubt: sent.is_some_and(|it| it.is_set()),
        first_token_ms: None,
        duration_ms: limit_ms,
        parked_ms: None,
    }))
}
