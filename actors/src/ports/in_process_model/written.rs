//! The answer of a model of this process, as the Messages API would send it.

use ennead_runtime::{digest::Digest, tokens::Tokens};
use serde_json::{Value, json};

use super::ModelEvent;

/// An answer that is being written.
pub(super) struct Written {
    /// Names the answer: of the same request it is the same.
    id: String,
    model: String,
    /// The content so far, for an answer in one piece.
    blocks: Vec<Value>,
    /// The type of the block that further pieces may join.
    open: Option<&'static str>,
    stop_reason: &'static str,
    input_tokens: u64,
    output_chars: u64,
    usage: Option<Value>,
    has_begun: bool,
}

impl Written {
    pub(super) fn new(model: String, request: &[u8]) -> Self {
        Self {
            id: Digest::of(request).to_string(),
            model,
            blocks: Vec::new(),
            open: None,
            stop_reason: "end_turn",
            input_tokens: Tokens::from_chars(request.len() as u64).0,
            output_chars: 0,
            usage: None,
            has_begun: false,
        }
    }

    /// Writes an event, and returns what goes over the wire for it.
    pub(super) fn event(&mut self, event: &ModelEvent) -> String {
        let mut out = self.begin();
        match event {
            ModelEvent::Text(text) => self.piece(&mut out, "text", "text", text),
            ModelEvent::Reasoning(text) => self.piece(&mut out, "thinking", "thinking", text),
            ModelEvent::ToolCall { tool, input } => self.call(&mut out, tool, input),
            ModelEvent::Usage(usage) => {
                self.usage = Some(json!({
                    "input_tokens": usage.input_tokens,
                    "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                    "cache_read_input_tokens": usage.cache_read_input_tokens,
                    "output_tokens": usage.output_tokens,
                }));
            }
            ModelEvent::Cut => self.stop_reason = "max_tokens",
        }
        out
    }

    /// Writes the end of an answer.
    pub(super) fn end(&mut self) -> String {
        let mut out = self.begin();
        self.close(&mut out);
        let delta = json!({ "stop_reason": self.stop_reason, "stop_sequence": null });
        push(&mut out, &json!({ "type": "message_delta", "delta": delta, "usage": self.used() }));
        push(&mut out, &json!({ "type": "message_stop" }));
        out
    }

    /// Writes the end of an answer that breaks off.
    pub(super) fn error(&mut self, body: &str) -> String {
        format!("{}event: error\ndata: {body}\n\n", self.begin())
    }

    /// Writes the answer in one piece.
    pub(super) fn whole(&self) -> String {
        let mut message = self.message();
        message["content"] = Value::Array(self.blocks.clone());
        message["stop_reason"] = self.stop_reason.into();
        message["usage"] = self.used();
        message.to_string()
    }

    fn message(&self) -> Value {
        json!({
            "id": format!("msg_{}", &self.id),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": { "input_tokens": self.input_tokens, "output_tokens": 0 },
        })
    }

    fn used(&self) -> Value {
        let output_tokens = Tokens::from_chars(self.output_chars).0;
        let estimate =
            || json!({ "input_tokens": self.input_tokens, "output_tokens": output_tokens });
        self.usage.clone().unwrap_or_else(estimate)
    }

    fn begin(&mut self) -> String {
        let mut out = String::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            push(&mut out, &json!({ "type": "message_start", "message": self.message() }));
        }
        out
    }

    /// A piece of a text or of reasoning, joined to the block before if that is of its type.
    fn piece(&mut self, out: &mut String, kind: &'static str, field: &'static str, text: &str) {
        self.output_chars += text.chars().count() as u64;
        if self.open != Some(kind) {
            let block = json!({ "type": kind, field: "" });
            self.start(out, &block);
            self.open = Some(kind);
        }
        if let Some(Value::String(whole)) = self.blocks.last_mut().and_then(|it| it.get_mut(field))
        {
            whole.push_str(text);
        }
        let index = self.index();
        let delta = json!({ "type": format!("{kind}_delta"), field: text });
        push(out, &json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }

    fn call(&mut self, out: &mut String, tool: &str, input: &Value) {
        let text = input.to_string();
        self.output_chars += text.chars().count() as u64;
        let id = format!("toolu_{}_{}", &self.id, self.blocks.len());
        self.start(out, &json!({ "type": "tool_use", "id": id, "name": tool, "input": {} }));
        if let Some(block) = self.blocks.last_mut() {
            block["input"] = input.clone();
        }
        let index = self.index();
        let delta = json!({ "type": "input_json_delta", "partial_json": text });
        push(out, &json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        self.open = Some("tool_use");
        if self.stop_reason == "end_turn" {
            self.stop_reason = "tool_use";
        }
    }

    fn start(&mut self, out: &mut String, block: &Value) {
        self.close(out);
        let index = self.blocks.len();
        self.blocks.push(block.clone());
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        push(out, &start);
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            push(out, &json!({ "type": "content_block_stop", "index": self.index() }));
        }
    }

    /// The place of the last block.
    fn index(&self) -> usize {
        self.blocks.len().saturating_sub(1)
    }
}

/// One event of the stream. Its name is its type.
fn push(out: &mut String, event: &Value) {
    let name = event["type"].as_str().unwrap_or_default();
    out.push_str(&format!("event: {name}\ndata: {event}\n\n"));
}
