//! An answer of the scripted model as the Messages API streams it.

use serde_json::{Value, json};

use super::{Asked, Say};

/// The answer as events.
pub(super) fn stream(say: &Say, asked: &Asked) -> String {
    let id = format!("msg_{}_{}", asked.n_answers(), asked.body.to_string().len());
    let tokens = say.tokens.unwrap_or(asked.body.to_string().len() as u64 / 4);
    let usage = json!({"input_tokens": tokens, "output_tokens": 1});
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": asked.body["model"],
        "content": [], "stop_reason": null, "usage": usage,
    }})];
    for (index, block) in say.blocks.iter().enumerate() {
        let (start, kind, name, text) = if block["type"] == "text" {
            let text = block["text"].as_str().unwrap_or_default().to_owned();
            (json!({"type": "text", "text": ""}), "text_delta", "text", text)
        } else {
            let mut start = block.clone();
            start["input"] = json!({});
            (start, "input_json_delta", "partial_json", block["input"].to_string())
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(say.piece.unwrap_or(chars.len()).max(1));
        for piece in pieces.map(|it| it.iter().collect::<String>()) {
            let delta = json!({"type": kind, name: piece});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let has_calls = say.blocks.iter().any(|it| it["type"] == "tool_use");
    let stop = if has_calls { "tool_use" } else { "end_turn" };
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 10},
    }));
    events.push(json!({"type": "message_stop"}));
    let line = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    events.iter().map(line).collect()
}
