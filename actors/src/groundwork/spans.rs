//! The spans of `tracing`, which nest as the work does: `session` > `turn` > `step` > `model_call`,
//! `tool` or `hook`. All are `info` and hold names, ids and numbers alone, never text of a message. Numbers are
//! signed, since a subscriber that exports by OpenTelemetry knows no others.
//!
//! Without a subscriber a span is a check of one atomic and 40 bytes.

use std::time::Duration;

use ennead_runtime::{
    hook::HookEvent,
    ids::SessionId,
    saturating::Saturating as _,
    step::Step,
    step5_model_call::{ModelAnswer, ModelFailure},
    tool::ToolCall,
};
use tracing::{Span, field::Empty, info_span};

/// Makes the span of a session. That of a sub-agent is below the session that started it.
pub(crate) fn session(above: Option<&Span>, session: &SessionId) -> Span {
    match above {
        None => info_span!(parent: None, "session", session.id = session.as_str()),
        Some(above) => info_span!(parent: above, "session", session.id = session.as_str()),
    }
}

/// Makes the span of a turn, named by its run and its number within that.
pub(crate) fn turn(session: &Span, run: &str, number: u32) -> Span {
    info_span!(parent: session, "turn", turn.id = %format_args!("{run}/{number}"))
}

/// Makes the span of a step of a turn.
pub(crate) fn step(turn: &Span, step: Step) -> Span {
    info_span!(parent: turn, "step", step.number = i64::from(step.number()))
}

/// Makes the span of one attempt to call a model. What came of it is recorded at its end, see [`answered`].
pub(crate) fn model_call(step: &Span, model: &str) -> Span {
    info_span!(
        parent: step,
        "model_call",
        gen_ai.request.model = model,
        gen_ai.response.model = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        "longest_gap" = Empty,
        "error.type" = Empty,
    )
}

/// Records what came of an attempt: who answered, and the tokens as the provider counts them, all input
/// in one number; or the code of the failure. Both with the time until the first part came and the longest
/// time between two parts, given in milliseconds and recorded in seconds.
pub(crate) fn answered(
    span: &Span,
    result: &Result<ModelAnswer, ModelFailure>,
    first_ms: Option<u64>,
    longest_gap_ms: Option<u64>,
) {
    if span.is_disabled() {
        return;
    }
    let times =
        [("gen_ai.response.time_to_first_chunk", first_ms), ("longest_gap", longest_gap_ms)];
    for (name, ms) in times {
        if let Some(ms) = ms {
            span.record(name, Duration::from_millis(ms).as_secs_f64());
        }
    }
    match result {
        Ok(answer) => {
            let usage = &answer.usage;
            let (read, made) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
            let input = usage.input_tokens.saturating_add(read).saturating_add(made);
            span.record("gen_ai.response.model", &*answer.model);
            span.record("gen_ai.response.id", &*answer.message_id);
            let counts = [
                ("gen_ai.usage.input_tokens", input),
                ("gen_ai.usage.output_tokens", usage.output_tokens),
                ("gen_ai.usage.cache_read.input_tokens", read),
                ("gen_ai.usage.cache_creation.input_tokens", made),
            ];
            for (name, count) in counts {
                span.record(name, i64::saturating(count));
            }
        }
        Err(failure) => {
            span.record("error.type", failure.class.code());
        }
    }
}

/// Makes the span of a tool call.
pub(crate) fn tool(step: &Span, call: &ToolCall) -> Span {
    let (name, id) = (call.name.as_str(), call.id.as_str());
    info_span!(parent: step, "tool", tool.name = name, tool_use.id = id)
}

/// Makes the span of a hook handler.
pub(crate) fn hook(step: &Span, event: HookEvent) -> Span {
    info_span!(parent: step, "hook", hook.event = event.name())
}
