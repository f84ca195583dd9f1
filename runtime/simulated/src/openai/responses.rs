//! An answer in the bytes of the Responses API.

use crate::{
    content::{Block, Usage},
    wire::{AnswerParts, Bytes, quoted},
};

/// Writes the body of an answer that was not asked for as a stream.
pub(super) fn whole(answer: &AnswerParts<'_>) -> Bytes {
    Bytes { bytes: response(answer, status(answer)).into_bytes(), event_ends: Vec::new() }
}

#[derive(Default)]
struct Events {
    out: Bytes,
    number: u64,
}

impl Events {
    fn event(&mut self, kind: &str, members: &str) {
        let number = self.number;
        self.number += 1;
        let data = format!(r#"{{"type":"{kind}","sequence_number":{number},{members}}}"#);
        self.out.event(kind, &data);
    }
}

/// Writes the body as events.
pub(super) fn stream(answer: &AnswerParts<'_>) -> Bytes {
    let mut events = Events::default();
    let begun = response(answer, "in_progress");
    events.event("response.created", &format!(r#""response":{begun}"#));
    events.event("response.in_progress", &format!(r#""response":{begun}"#));
    for (index, block) in answer.blocks.iter().enumerate() {
        let id = quoted(&item_id(answer, index));
        let place = format!(r#""item_id":{id},"output_index":{index}"#);
        let open = item(answer, index, block, "in_progress");
        let begin = format!(r#""output_index":{index},"item":{open}"#);
        events.event("response.output_item.added", &begin);
        match block {
            Block::Text(text) => {
                let place = format!(r#"{place},"content_index":0"#);
                let part = |text: &str| {
                    format!(r#"{{"type":"output_text","annotations":[],"text":{}}}"#, quoted(text))
                };
                events.event(
                    "response.content_part.added",
                    &format!(r#"{place},"part":{}"#, part("")),
                );
                answer.each_piece(text, |piece| {
                    let delta = format!(r#"{place},"delta":{}"#, quoted(piece));
                    events.event("response.output_text.delta", &delta);
                });
                let done = format!(r#"{place},"text":{}"#, quoted(text));
                events.event("response.output_text.done", &done);
                events.event(
                    "response.content_part.done",
                    &format!(r#"{place},"part":{}"#, part(text)),
                );
            }
            Block::Thinking { text, .. } => {
                let place = format!(r#"{place},"summary_index":0"#);
                let part = format!(r#"{place},"part":{{"type":"summary_text","text":""}}"#);
                events.event("response.reasoning_summary_part.added", &part);
                answer.each_piece(text, |piece| {
                    let delta = format!(r#"{place},"delta":{}"#, quoted(piece));
                    events.event("response.reasoning_summary_text.delta", &delta);
                });
            }
            Block::Tool { input, .. } => {
                answer.each_piece(input, |piece| {
                    let delta = format!(r#"{place},"delta":{}"#, quoted(piece));
                    events.event("response.function_call_arguments.delta", &delta);
                });
                let done = format!(r#"{place},"arguments":{}"#, quoted(input));
                events.event("response.function_call_arguments.done", &done);
            }
        }
        let whole = item(answer, index, block, "completed");
        let end = format!(r#""output_index":{index},"item":{whole}"#);
        events.event("response.output_item.done", &end);
    }
    let status = status(answer);
    let end = response(answer, status);
    events.event(&format!("response.{status}"), &format!(r#""response":{end}"#));
    events.out
}

fn status(answer: &AnswerParts<'_>) -> &'static str {
    match answer.stop_reason {
        "max_tokens" | "model_context_window_exceeded" | "refusal" => "incomplete",
        _ => "completed",
    }
}

fn response(answer: &AnswerParts<'_>, status: &str) -> String {
    let is_over = status != "in_progress";
    let items = answer.blocks.iter().enumerate().filter(|_| is_over);
    let items: Vec<String> =
        items.map(|(index, block)| item(answer, index, block, "completed")).collect();
    let details = match (status, answer.stop_reason) {
        ("incomplete", "refusal") => r#"{"reason":"content_filter"}"#,
        ("incomplete", _) => r#"{"reason":"max_output_tokens"}"#,
        _ => "null",
    };
    let usage = if is_over { usage(&answer.usage) } else { "null".to_owned() };
    format!(
        r#"{{"id":{},"object":"response","created_at":0,"status":"{status}","error":null,"incomplete_details":{details},"model":{},"output":[{}],"store":false,"usage":{usage}}}"#,
        quoted(&answer.id),
        quoted(answer.model),
        items.join(",")
    )
}

fn item_id(answer: &AnswerParts<'_>, index: usize) -> String {
    format!("item_{}_{index}", answer.id)
}

/// A block as an output item; one that is in progress is still empty.
fn item(answer: &AnswerParts<'_>, index: usize, block: &Block, status: &str) -> String {
    let id = quoted(&item_id(answer, index));
    let is_over = status != "in_progress";
    match block {
        Block::Text(text) => {
            let part =
                format!(r#"{{"type":"output_text","annotations":[],"text":{}}}"#, quoted(text));
            let content = if is_over { part } else { String::new() };
            format!(
                r#"{{"id":{id},"type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
            )
        }
        Block::Thinking { text, signature } => {
            let part = format!(r#"{{"type":"summary_text","text":{}}}"#, quoted(text));
            let summary = if is_over { part } else { String::new() };
            let content = if is_over { quoted(signature) } else { "null".to_owned() };
            format!(
                r#"{{"id":{id},"type":"reasoning","summary":[{summary}],"encrypted_content":{content}}}"#
            )
        }
        Block::Tool { id: call, name, input } => {
            let arguments = if is_over { quoted(input) } else { quoted("") };
            format!(
                r#"{{"id":{id},"type":"function_call","status":"{status}","arguments":{arguments},"call_id":{},"name":{}}}"#,
                quoted(call),
                quoted(name)
            )
        }
    }
}

fn usage(usage: &Usage) -> String {
    let input = usage.input + usage.cache_creation + usage.cache_read;
    format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{}}}"#,
        usage.cache_read,
        usage.output,
        input + usage.output
    )
}
