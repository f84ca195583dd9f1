//! An answer of the scripted model as the Messages API gives it: whole, and as a stream.

use serde_json::{Value, json};

use super::{Asked, reply::Message};

/// The answer without its content.
fn head(message: &Message, asked: &Asked) -> Value {
    let id = format!("msg_{}_{}", asked.n_answers(), asked.text.len());
    let tokens = message.tokens.unwrap_or(asked.text.len() as u64 / 4);
    json!({
        "id": id, "type": "message", "role": "assistant", "model": asked.model(), "content": [],
        "stop_reason": null, "usage": {"input_tokens": tokens, "output_tokens": 1},
    })
}

fn stop(message: &Message) -> &'static str {
    let has_calls = message.blocks.iter().any(|it| it["type"] == "tool_use");
    message.stop.unwrap_or(if has_calls { "tool_use" } else { "end_turn" })
}

/// The answer as one object.
pub(super) fn whole(message: &Message, asked: &Asked) -> Vec<u8> {
    let mut answer = head(message, asked);
    answer["content"] = message.blocks.clone().into();
    answer["stop_reason"] = stop(message).into();
    for block in answer["content"].as_array_mut().into_iter().flatten() {
        // A server that gives no stream gives no half of an input either.
        if block["input"].is_string() {
            block["input"] = json!({});
        }
    }
    answer.to_string().into_bytes()
}

/// The answer as events.
pub(super) fn stream(message: &Message, asked: &Asked) -> Vec<u8> {
    let mut events = vec![json!({"type": "message_start", "message": head(message, asked)})];
    for (index, block) in message.blocks.iter().enumerate() {
        let (start, deltas) = parts(block, message.piece);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let delta = |it| json!({"type": "content_block_delta", "index": index, "delta": it});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({ "stop_reason": stop(message) });
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}));
    events.push(json!({"type": "message_stop"}));
    let line = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    events.iter().map(line).collect::<String>().into_bytes()
}

/// What a block begins with, and its deltas.
fn parts(block: &Value, piece: Option<usize>) -> (Value, Vec<Value>) {
    let cut = |kind: &str, name: &str, text: &str| {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(piece.unwrap_or(chars.len()).max(1));
        let delta = |it: &[char]| json!({"type": kind, name: it.iter().collect::<String>()});
        pieces.map(delta).collect::<Vec<_>>()
    };
    let field = |name: &str| block[name].as_str().map(str::to_owned);
    let mut start = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            start["text"] = "".into();
            cut("text_delta", "text", &field("text").unwrap_or_default())
        }
        Some("thinking") => {
            (start["thinking"], start["signature"]) = ("".into(), "".into());
            let mut deltas =
                cut("thinking_delta", "thinking", &field("thinking").unwrap_or_default());
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            deltas
        }
        _ => {
            start["input"] = json!({});
            let input = field("input").unwrap_or_else(|| block["input"].to_string());
            cut("input_json_delta", "partial_json", &input)
        }
    };
    (start, deltas)
}
