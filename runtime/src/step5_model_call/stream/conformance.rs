//! What the reader makes of a recorded stream, in the form that other readers are compared with.
//!
//! The form is that of the `sse_streams` cases: `{outcome, message?, error?, partial_text,
//! executable_tools, retryable}`.

use serde_json::{Map, Value, json};

use super::{StreamOutcome, StreamReader, StreamReport};
use crate::{
    block::Block,
    step5_model_call::{FailureClass, ModelAnswer, failure::is_retryable},
};

/// Reads the chunks of one stream, then the end of the connection, and says what came of it.
///
/// `partial_text` is empty for a whole message: nothing of it is partial.
pub fn conformance_report<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Value {
    let mut reader = StreamReader::new();
    let mut shown = Vec::new();
    for chunk in chunks {
        reader.push_chunk(chunk, &mut shown);
        shown.clear();
        if reader.is_complete() {
            break;
        }
    }
    let report = reader.finish();
    match &report.outcome {
        StreamOutcome::Message(answer) => json!({
            "outcome": "message",
            "message": message(answer, &report),
            "partial_text": "",
            "executable_tools": answer.executable_tools().collect::<Vec<_>>(),
            "retryable": false,
        }),
        StreamOutcome::Error { class, code, .. } => json!({
            "outcome": "error",
            "error": { "class": code },
            "partial_text": report.partial_text,
            "executable_tools": [],
            "retryable": is_retryable(*class),
        }),
        StreamOutcome::Incomplete => json!({
            "outcome": "incomplete",
            "partial_text": report.partial_text,
            "executable_tools": [],
            "retryable": is_retryable(FailureClass::StreamBroken),
        }),
    }
}

fn message(answer: &ModelAnswer, report: &StreamReport) -> Value {
    let reason = answer.stop_reason.as_wire();
    json!({
        "id": answer.message_id,
        "model": answer.model,
        "role": "assistant",
        "stop_reason": if reason.is_empty() { Value::Null } else { reason.into() },
        "stop_sequence": answer.stop_sequence,
        "usage": usage(report),
        "content": answer.blocks.iter().map(|it| content(it, answer)).collect::<Vec<_>>(),
    })
}

/// Only what the provider named; a missing amount is not 0.
fn usage(report: &StreamReport) -> Value {
    let amounts = report.reported;
    let named = [
        ("input_tokens", amounts.input_tokens),
        ("cache_creation_input_tokens", amounts.cache_creation_input_tokens),
        ("cache_read_input_tokens", amounts.cache_read_input_tokens),
        ("output_tokens", amounts.output_tokens),
    ];
    named.into_iter().filter_map(|(name, n)| Some((name.to_owned(), Value::from(n?)))).collect()
}

fn content(block: &Block, answer: &ModelAnswer) -> Value {
    let mut wire = Vec::new();
    block.push_wire(&mut wire);
    let mut fields: Map<String, Value> = serde_json::from_slice(&wire).unwrap_or_default();
    let call = block.as_tool_use().map(|(id, ..)| id);
    let invalid = answer.invalid_inputs.iter().find(|(id, _)| Some(id) == call);
    if let Some((_, why)) = invalid {
        fields.remove("input");
        fields.insert("input_error".into(), json!(why));
    }
    Value::Object(fields)
}
