//! An answer in the bytes of Chat Completions.

use crate::{
    content::{Block, Usage},
    wire::{AnswerParts, Bytes, quoted},
};

/// Writes the body of an answer that was not asked for as a stream.
pub(super) fn whole(answer: &AnswerParts<'_>) -> Bytes {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in answer.blocks {
        match block {
            Block::Text(more) => text.push_str(more),
            Block::Thinking { text, .. } => reasoning.push_str(text),
            Block::Tool { id, name, input } => calls.push(format!(
                r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}}"#,
                quoted(id),
                quoted(name),
                quoted(input)
            )),
        }
    }
    let content = if text.is_empty() { "null".to_owned() } else { quoted(&text) };
    let mut message = format!(r#"{{"role":"assistant","content":{content},"refusal":null"#);
    if !reasoning.is_empty() {
        message.push_str(&format!(r#","reasoning_content":{}"#, quoted(&reasoning)));
    }
    if !calls.is_empty() {
        message.push_str(&format!(r#","tool_calls":[{}]"#, calls.join(",")));
    }
    let body = format!(
        r#"{}"choices":[{{"index":0,"message":{message}}},"logprobs":null,"finish_reason":{}}}],"usage":{}}}"#,
        head(answer, "chat.completion"),
        quoted(reason(answer.stop_reason)),
        usage(&answer.usage)
    );
    Bytes { bytes: body.into_bytes(), event_ends: Vec::new() }
}

/// Writes the body as chunks.
pub(super) fn stream(answer: &AnswerParts<'_>, with_usage: bool) -> Bytes {
    let mut out = Bytes::default();
    let head = head(answer, "chat.completion.chunk");
    let mut chunk = |delta: &str, reason: &str| {
        out.data(&format!(
            r#"{head}"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]}}"#
        ));
    };
    chunk(r#"{"role":"assistant","content":"","refusal":null}"#, "null");
    let mut n_calls = 0;
    for block in answer.blocks {
        match block {
            Block::Text(text) => answer.each_piece(text, |piece| {
                chunk(&format!(r#"{{"content":{}}}"#, quoted(piece)), "null");
            }),
            Block::Thinking { text, .. } => answer.each_piece(text, |piece| {
                chunk(&format!(r#"{{"reasoning_content":{}}}"#, quoted(piece)), "null");
            }),
            Block::Tool { id, name, input } => {
                let (id, name) = (quoted(id), quoted(name));
                chunk(
                    &format!(
                        r#"{{"tool_calls":[{{"index":{n_calls},"id":{id},"type":"function","function":{{"name":{name},"arguments":""}}}}]}}"#
                    ),
                    "null",
                );
                answer.each_piece(input, |piece| {
                    chunk(
                        &format!(
                            r#"{{"tool_calls":[{{"index":{n_calls},"function":{{"arguments":{}}}}}]}}"#,
                            quoted(piece)
                        ),
                        "null",
                    );
                });
                n_calls += 1;
            }
        }
    }
    chunk("{}", &quoted(reason(answer.stop_reason)));
    if with_usage {
        out.data(&format!(r#"{head}"choices":[],"usage":{}}}"#, usage(&answer.usage)));
    }
    out.data("[DONE]");
    out
}

fn head(answer: &AnswerParts<'_>, object: &str) -> String {
    let (id, model) = (quoted(&answer.id), quoted(answer.model));
    format!(r#"{{"id":{id},"object":"{object}","created":0,"model":{model},"#)
}

fn reason(stop_reason: &str) -> &str {
    match stop_reason {
        "end_turn" | "stop_sequence" | "pause_turn" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(usage: &Usage) -> String {
    let prompt = usage.input + usage.cache_creation + usage.cache_read;
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}}"#,
        usage.output,
        prompt + usage.output,
        usage.cache_read
    )
}
