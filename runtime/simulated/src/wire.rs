//! An answer as bytes of the Messages API, whole or as a stream of events.
//!
//! The fields are in the order in which the real API sends them, since a reader may have a fast
//! path for it.

use std::fmt::Write as _;

use memchr::memmem;

use super::content::{Block, Usage};
use ennead_runtime::digest::Digest;

/// All that a rule gives about an answer.
#[derive(Debug)]
pub(super) struct AnswerParts<'a> {
    pub(super) id: String,
    pub(super) model: &'a str,
    pub(super) blocks: &'a [Block],
    pub(super) stop_reason: &'a str,
    pub(super) stop_sequence: Option<&'a str>,
    pub(super) usage: Usage,
    /// Characters of a delta.
    pub(super) delta: usize,
}

/// An answer in bytes, with the places where its events end.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    pub(super) event_ends: Vec<usize>,
}

impl Bytes {
    /// Takes bytes that were not made here. An empty line ends an event.
    pub(super) fn recorded(bytes: &[u8]) -> Self {
        let event_ends = memmem::find_iter(bytes, b"\n\n").map(|at| at + 2).collect();
        Self { bytes: bytes.to_vec(), event_ends }
    }

    /// Writes an event without a name.
    pub(super) fn data(&mut self, data: &str) {
        for part in ["data: ", data, "\n\n"] {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.event_ends.push(self.bytes.len());
    }

    pub(super) fn event(&mut self, name: &str, data: &str) {
        for part in ["event: ", name, "\ndata: ", data, "\n\n"] {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.event_ends.push(self.bytes.len());
    }
}

/// Writes a text as JSON, with its quotes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl AnswerParts<'_> {
    /// Writes the body of an answer that was not asked for as a stream.
    pub(super) fn whole(&self) -> Bytes {
        let mut blocks = String::new();
        for block in self.blocks {
            if !blocks.is_empty() {
                blocks.push(',');
            }
            // Writing to a string cannot fail.
            let _ = match block {
                Block::Text(text) => write!(blocks, r#"{{"type":"text","text":{}}}"#, quoted(text)),
                Block::Thinking { text, signature } => write!(
                    blocks,
                    r#"{{"type":"thinking","thinking":{},"signature":{}}}"#,
                    quoted(text),
                    quoted(signature)
                ),
                Block::Tool { id, name, input } => write!(
                    blocks,
                    r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
                    quoted(id),
                    quoted(name)
                ),
            };
        }
        let body =
            self.message(&blocks, &quoted(self.stop_reason), &self.sequence(), self.usage.output);
        Bytes { bytes: body.into_bytes(), event_ends: Vec::new() }
    }

    /// Writes the body as events.
    pub(super) fn stream(&self) -> Bytes {
        let mut out = Bytes::default();
        // What the real one says at the start is a guess: nothing has been written yet.
        let message = self.message("", "null", "null", 1);
        out.event("message_start", &format!(r#"{{"type":"message_start","message":{message}}}"#));
        out.event("ping", r#"{"type":"ping"}"#);
        for (index, block) in self.blocks.iter().enumerate() {
            self.block(index, block, &mut out);
        }
        let (reason, sequence) = (quoted(self.stop_reason), self.sequence());
        out.event(
            "message_delta",
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":{reason},"stop_sequence":{sequence}}},"usage":{{"output_tokens":{}}}}}"#,
                self.usage.output
            ),
        );
        out.event("message_stop", r#"{"type":"message_stop"}"#);
        out
    }

    fn block(&self, index: usize, block: &Block, out: &mut Bytes) {
        let start = match block {
            Block::Text(_) => r#"{"type":"text","text":""}"#.to_owned(),
            Block::Thinking { .. } => {
                r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned()
            }
            Block::Tool { id, name, .. } => {
                format!(
                    r#"{{"type":"tool_use","id":{},"name":{},"input":{{}}}}"#,
                    quoted(id),
                    quoted(name)
                )
            }
        };
        out.event(
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#),
        );
        match block {
            Block::Text(text) => self.deltas(index, "text_delta", "text", text, out),
            Block::Thinking { text, signature } => {
                self.deltas(index, "thinking_delta", "thinking", text, out);
                delta(index, "signature_delta", "signature", signature, out);
            }
            Block::Tool { input, .. } => {
                delta(index, "input_json_delta", "partial_json", "", out);
                self.deltas(index, "input_json_delta", "partial_json", input, out);
            }
        }
        out.event(
            "content_block_stop",
            &format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        );
    }

    fn deltas(&self, index: usize, kind: &str, field: &str, text: &str, out: &mut Bytes) {
        self.each_piece(text, |piece| delta(index, kind, field, piece, out));
    }

    /// Passes the pieces of a text to `on_piece`, one for each delta.
    pub(super) fn each_piece(&self, text: &str, mut on_piece: impl FnMut(&str)) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.delta).map_or(rest.len(), |(end, _)| end);
            let (piece, after) = rest.split_at(end);
            on_piece(piece);
            rest = after;
        }
    }

    fn message(&self, blocks: &str, reason: &str, sequence: &str, output: u64) -> String {
        let Usage { input, cache_creation, cache_read, .. } = self.usage;
        format!(
            r#"{{"id":"{}","type":"message","role":"assistant","model":{},"content":[{blocks}],"stop_reason":{reason},"stop_sequence":{sequence},"usage":{{"input_tokens":{input},"cache_creation_input_tokens":{cache_creation},"cache_read_input_tokens":{cache_read},"output_tokens":{output}}}}}"#,
            self.id,
            quoted(self.model),
        )
    }

    fn sequence(&self) -> String {
        self.stop_sequence.map_or_else(|| "null".to_owned(), quoted)
    }
}

fn delta(index: usize, kind: &str, field: &str, text: &str, out: &mut Bytes) {
    let text = quoted(text);
    out.event(
        "content_block_delta",
        &format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":{text}}}}}"#
        ),
    );
}

/// Returns the type that the Messages API gives to errors of this status.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// Returns the id of the request with this digest.
pub(super) fn request_id(digest: Digest) -> String {
    format!("req_sim_{}", &digest.to_string()[..24])
}
