//! Reads an answer that came in one piece.
//!
//! The fallback for broken streams asks without streaming, and gets the same answer as the stream
//! reader would give.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    FailureClass, ModelAnswer, ModelFailure, StopReason,
    failure::{UNNAMED_ERROR, body_excerpt, class_of_error, header},
    stream::{
        MAX_BLOCKS, StreamPhase,
        block_builder::{check_input, single_line},
        wire::{ErrorBody, ReportedUsage, WireText, refusal_of},
    },
};
use crate::block::Block;

#[derive(Deserialize)]
struct WholeAnswer<'a> {
    #[serde(borrow)]
    id: Option<WireText<'a>>,
    #[serde(borrow)]
    model: Option<WireText<'a>>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<WireText<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<WireText<'a>>,
    #[serde(borrow)]
    stop_details: Option<&'a RawValue>,
    usage: Option<ReportedUsage>,
    #[serde(borrow)]
    error: Option<ErrorBody<'a>>,
}

/// Returns whether these headers are of a page or a JSON object, and not of a stream, whatever was asked for.
pub fn is_whole(headers: &HeaderMap) -> bool {
    is_of_type(headers, "text/html") || is_of_type(headers, "application/json")
}

fn is_of_type(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = header(headers, CONTENT_TYPE).and_then(|it| it.get(..wanted.len()));
    kind.is_some_and(|it| it.eq_ignore_ascii_case(wanted))
}

/// Reads the answer in the body of a response with status 200.
///
/// # Errors
///
/// The failure that the body names; [`FailureClass::StreamBroken`] when it ends too early,
/// [`FailureClass::BadAnswer`] when it is not a message.
pub fn read_whole(body: &[u8]) -> Result<ModelAnswer, ModelFailure> {
    let text = String::from_utf8_lossy(body);
    let body: WholeAnswer<'_> = serde_json::from_str(&text).map_err(|error| {
        let is_cut = error.is_eof() && !text.trim().is_empty();
        let class = if is_cut { FailureClass::StreamBroken } else { FailureClass::BadAnswer };
        failure(class, format!("no message, but \"{}\": {error}", body_excerpt(&text)))
    })?;
    if let Some(error) = body.error {
        let field = |text: Option<WireText<'_>>| text.map(|it| it.0.into_owned());
        let kind = field(error.kind).unwrap_or_else(|| UNNAMED_ERROR.into());
        let message = field(error.message).unwrap_or_default();
        let class = class_of_error(&kind, &message, StreamPhase::Idle);
        return Err(failure(class, format!("{kind}: {message}")));
    }
    let content = body.content.ok_or_else(|| bad("the message has no content"))?;
    if MAX_BLOCKS < content.len() {
        return Err(bad("the message has too many blocks"));
    }
    let mut blocks = Vec::with_capacity(content.len());
    let mut invalid_inputs = Vec::new();
    for raw in content {
        let block =
            Block::from_wire(&single_line(raw.get())).map_err(|error| bad(&error.to_string()))?;
        let invalid = block.as_tool_use().and_then(|(id, name, input)| {
            let why = check_input(input).err()?;
            Some((Block::tool_use(id, name, "{}"), (id.clone(), why)))
        });
        match invalid {
            Some((emptied, invalid)) => {
                blocks.push(emptied);
                invalid_inputs.push(invalid);
            }
            None => blocks.push(block),
        }
    }
    let shared = |text: Option<WireText<'_>>| text.map(|it| it.0.as_ref().into());
    Ok(ModelAnswer {
        message_id: shared(body.id).unwrap_or_default(),
        model: shared(body.model).unwrap_or_default(),
        blocks,
        stop_reason: StopReason::read(body.stop_reason.as_ref().map_or("", |it| it.0.as_ref())),
        stop_sequence: shared(body.stop_sequence),
        refusal: refusal_of(body.stop_details),
        usage: body.usage.unwrap_or_default().usage(),
        invalid_inputs,
    })
}

fn bad(message: &str) -> ModelFailure {
    failure(FailureClass::BadAnswer, message.to_owned())
}

fn failure(class: FailureClass, message: String) -> ModelFailure {
    let partial_text = String::new();
    ModelFailure { class, status: None, message, retry_after_ms: None, partial_text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{step5_model_call::InvalidInput, tokens::Tokens};

    // REQ: MDL-10
    #[test]
    fn page_in_the_place_of_a_message_is_named_by_its_title() {
        let page = b"<html><head><title>Sign in</title></head></html>";
        let failure = read_whole(page).unwrap_err();
        assert!(
            failure.message.starts_with("no message, but \"Sign in\": "),
            "{}",
            failure.message
        );
    }

    // REQ: MDL-10
    #[test]
    fn page_or_object_is_no_stream_however_it_is_spelled() {
        let headers = |kind: &str| HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
        let is = |kind: &str| is_whole(&headers(kind));
        assert!(is("text/html") && is(" Application/JSON; charset=utf-8"));
        assert!(!is("text/event-stream") && !is("application/vnd.amazon.eventstream"));
        assert!(!is_whole(&HeaderMap::new()));
    }

    // REQ: MDL-7
    #[test]
    fn message_keeps_the_bytes_of_its_blocks() {
        let body = br#"{"id":"m","type":"message","role":"assistant","model":"x","content":[
            {"type":"thinking","thinking":"","signature":"S"},
            {"type":"odd", "z":1},
            {"type":"tool_use","id":"t","name":"n","input":{"b": 1, "a": 2}}],
            "stop_reason":"tool_use","stop_sequence":null,
            "usage":{"input_tokens":50,"cache_read_input_tokens":100000,"output_tokens":3}}"#;
        let answer = read_whole(body).unwrap();
        let wires: Vec<_> = answer.blocks.iter().map(Block::wire_open).collect();
        assert_eq!(
            wires,
            [
                r#"{"type":"thinking","thinking":"","signature":"S""#,
                r#"{"type":"odd", "z":1"#,
                r#"{"type":"tool_use","id":"t","name":"n","input":{"b": 1, "a": 2}"#,
            ]
        );
        assert_eq!((&*answer.message_id, &*answer.model), ("m", "x"));
        assert_eq!(answer.executable_tools().map(|it| it.as_str()).collect::<Vec<_>>(), ["t"]);
        assert_eq!(answer.usage.context(), Tokens(100_050));
    }

    // REQ: MDL-1
    #[test]
    fn input_that_is_no_object_never_runs() {
        let body = br#"{"id":"m","model":"x","stop_reason":"tool_use","content":[
            {"type":"tool_use","id":"t","name":"n","input":"text"}]}"#;
        let answer = read_whole(body).unwrap();
        assert_eq!(answer.invalid_inputs, [("t".into(), InvalidInput::NotAnObject)]);
        assert_eq!(answer.blocks, [Block::tool_use(&"t".into(), &"n".into(), "{}")]);
        assert_eq!(answer.executable_tools().count(), 0);
    }

    // REQ: MDL-10
    #[test]
    fn body_that_is_no_message_is_a_failure() {
        let class = |body: &[u8]| read_whole(body).unwrap_err().class;
        assert_eq!(class(b"<html>"), FailureClass::BadAnswer);
        assert_eq!(class(b""), FailureClass::BadAnswer);
        assert_eq!(class(b"{}"), FailureClass::BadAnswer);
        assert_eq!(class(br#"{"content":[{"type":"text"}]}"#), FailureClass::BadAnswer);
        assert_eq!(class(br#"{"content":[{"type":"te"#), FailureClass::StreamBroken);
        assert_eq!(
            class(br#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#),
            FailureClass::Overloaded
        );
    }
}
