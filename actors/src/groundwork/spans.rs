//! The spans of `tracing`, which nest as the work does: `session` > `turn` > `step` > `model_call`,
//! `tool` or `hook`. All are `info` and hold names and ids alone, never text of a message.
//!
//! Without a subscriber a span is a check of one atomic and 40 bytes.

use ennead_runtime::{hook::HookEvent, ids::SessionId, step::Step, tool::ToolCall};
use tracing::{Span, info_span};

/// The span of a session. That of a sub-agent is below the session that started it.
pub(crate) fn session(above: Option<&Span>, session: &SessionId) -> Span {
    match above {
        None => info_span!(parent: None, "session", session.id = session.as_str()),
        Some(above) => info_span!(parent: above, "session", session.id = session.as_str()),
    }
}

/// The span of a turn, named by its run and its number within that.
pub(crate) fn turn(session: &Span, run: &str, number: u32) -> Span {
    info_span!(parent: session, "turn", turn.id = %format_args!("{run}/{number}"))
}

/// The span of a step of a turn.
pub(crate) fn step(turn: &Span, step: Step) -> Span {
    info_span!(parent: turn, "step", step.number = step.number())
}

/// The span of one attempt to call a model.
pub(crate) fn model_call(step: &Span, model: &str) -> Span {
    info_span!(parent: step, "model_call", gen_ai.request.model = model)
}

/// The span of a tool call.
pub(crate) fn tool(step: &Span, call: &ToolCall) -> Span {
    let (name, id) = (call.name.as_str(), call.id.as_str());
    info_span!(parent: step, "tool", tool.name = name, tool_use.id = id)
}

/// The span of a hook handler.
pub(crate) fn hook(step: &Span, event: HookEvent) -> Span {
    info_span!(parent: step, "hook", hook.event = event.name())
}
