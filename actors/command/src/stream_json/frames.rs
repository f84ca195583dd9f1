//! The lines that are written, each as a value. The shapes are those that Agent SDKs parse.

use ennead::{Clock, Event, SystemClock, model::Usage};
use ennead_runtime::{
    block::{Block, BlockKind},
    event::RecordedMessage,
    ids::SessionId,
};
use serde_json::{Value, json};

/// What every line of a session says of itself.
#[derive(Clone, Debug)]
pub struct Frame {
    session: SessionId,
    ids: ennead_runtime::entropy::EntropyStream,
    n_lines: u64,
}

impl Frame {
    /// Makes the frames of this session, with ids drawn from this stream.
    pub fn new(session: SessionId, ids: ennead_runtime::entropy::EntropyStream) -> Self {
        Self { session, ids, n_lines: 0 }
    }

    /// Makes the frames of another session, with the names of lines going on.
    pub fn of_session(&self, session: SessionId) -> Self {
        Self { session, ..self.clone() }
    }

    /// Returns the id of the session that the frames name.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Makes a name for a line that has none of its own.
    pub fn uuid(&mut self) -> String {
        self.n_lines += 1;
        self.ids.uuid(SystemClock::default().now(), "frame", self.n_lines)
    }

    /// Makes a line of type `system`.
    pub fn system(&mut self, subtype: &str, fields: Value) -> Value {
        let mut line = json!({
            "type": "system",
            "subtype": subtype,
            "session_id": self.session,
            "uuid": self.uuid(),
        });
        merge(&mut line, fields);
        line
    }

    /// Makes the line of a block of an answer. `is_last` is whether the answer ends with it.
    pub(crate) fn assistant(
        &self,
        message: &RecordedMessage,
        block: &Block,
        is_last: bool,
        parent: Option<&str>,
    ) -> Value {
        let answer = message.answer.as_ref();
        let stop_reason = answer.filter(|_| is_last).map(|it| &*it.stop_reason);
        let usage = answer.map(|it| usage(&it.usage));
        json!({
            "type": "assistant",
            "message": {
                "id": message.message.api_id.as_deref().unwrap_or_default(),
                "type": "message",
                "role": "assistant",
                "model": answer.map_or("", |it| &*it.model),
                "content": [content(block)],
                "stop_reason": stop_reason,
                "stop_sequence": null,
                "usage": usage,
            },
            "parent_tool_use_id": parent,
            "session_id": self.session,
            "uuid": message.message.id,
        })
    }

    /// Makes the line of an answer that no model gave: the failure of a model call, for people.
    pub(crate) fn synthetic(&mut self, text: &str, error: &str) -> Value {
        json!({
            "type": "assistant",
            "message": {
                "id": self.uuid(),
                "type": "message",
                "role": "assistant",
                "model": "<synthetic>",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "stop_sequence",
                "stop_sequence": "",
                "usage": usage(&Usage::default()),
            },
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": self.uuid(),
            "error": error,
        })
    }

    /// Makes the line of a message with the role of the user: a result, a text of the harness, or a prompt again.
    pub fn user(&self, message: &RecordedMessage, content: Value, parent: Option<&str>) -> Value {
        let mut line = json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": parent,
            "session_id": self.session,
            "uuid": message.message.id,
        });
        let structured = message.structured.as_deref();
        if let Some(result) = structured.and_then(|it| serde_json::from_str::<Value>(it).ok()) {
            line["tool_use_result"] = result;
        }
        line
    }

    /// Makes the line of an event of an answer as it came.
    pub(crate) fn stream_event(&mut self, event: Value) -> Value {
        json!({
            "type": "stream_event",
            "event": event,
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": self.uuid(),
        })
    }

    /// Makes the line of a retry, where the same model is asked again after a wait; `None` for other events.
    pub fn retry(&mut self, event: &Event) -> Option<Value> {
        let Event::ModelRetry { attempt, max_retries, delay_ms, status, error, .. } = event else {
            return None;
        };
        let fields = json!({
            "attempt": attempt,
            "max_retries": max_retries,
            "retry_delay_ms": delay_ms,
            "error_status": status,
            "error": error,
        });
        Some(self.system("api_retry", fields))
    }
}

/// Writes a block as SDKs want it: reasoning has a signature, if an empty one.
pub fn content(block: &Block) -> Value {
    let mut wire = Vec::new();
    block.push_wire(&mut wire);
    let mut value: Value = serde_json::from_slice(&wire).unwrap_or_default();
    if matches!(block.kind(), BlockKind::Thinking { signature: None, .. }) {
        value["signature"] = "".into();
    }
    value
}

/// Writes tokens as the Messages API counts them.
pub fn usage(usage: &Usage) -> Value {
    serde_json::to_value(usage).unwrap_or_default()
}

/// Adds the fields of one object to another.
pub fn merge(line: &mut Value, fields: Value) {
    if let (Value::Object(line), Value::Object(fields)) = (line, fields) {
        line.extend(fields);
    }
}
