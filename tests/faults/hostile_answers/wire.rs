//! One answer in the bytes of each format.

use ennead::Endpoint;
use serde_json::{Value, json};

/// How a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Messages,
    Bedrock,
    Chat,
    Responses,
}

/// A part of an answer, in the pieces in which it comes.
pub(super) enum AnswerPart {
    Text(Vec<String>),
    Call(Vec<String>),
}

/// A call of `echo` whose input comes in these pieces.
pub(super) fn call(pieces: &[&str]) -> AnswerPart {
    AnswerPart::Call(pieces.iter().map(|it| (*it).to_owned()).collect())
}

pub(super) fn text(text: &str) -> AnswerPart {
    AnswerPart::Text(vec![text.to_owned()])
}

impl Wire {
    /// A server at this address that speaks so.
    pub(super) fn endpoint(self, base: &str) -> Endpoint {
        match self {
            Self::Messages => Endpoint::messages(base, None),
            Self::Bedrock => {
                let mut endpoint = Endpoint::bedrock("us-east-1", "token");
                endpoint.base = base.into();
                endpoint
            }
            Self::Chat => Endpoint::openai_chat(base, None),
            Self::Responses => Endpoint::openai_responses(base, None),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Bedrock => "application/vnd.amazon.eventstream",
            Self::Messages | Self::Chat | Self::Responses => "text/event-stream",
        }
    }

    /// The whole stream.
    pub(super) fn stream(self, parts: impl IntoIterator<Item = AnswerPart>) -> Vec<u8> {
        let mut out = Out { wire: self, bytes: Vec::new() };
        match self {
            Self::Messages | Self::Bedrock => messages(parts, &mut out),
            Self::Chat => chat(parts, &mut out),
            Self::Responses => responses(parts, &mut out),
        }
        out.bytes
    }

    /// The beginning of something that has no end.
    pub(super) fn endless(self, n_bytes: usize) -> Vec<u8> {
        let mut bytes = self.stream([text("it begins")]);
        bytes.truncate(bytes.len() / 2);
        match self {
            // A frame that says that it is as long as one may be.
            Self::Bedrock => {
                let length = u32::try_from(n_bytes).unwrap();
                let mut frame = [length.to_be_bytes(), 0_u32.to_be_bytes()].concat();
                frame.extend(crc32(&frame).to_be_bytes());
                frame.resize(n_bytes - 1, b'x');
                frame
            }
            Self::Messages | Self::Chat | Self::Responses => {
                bytes.extend_from_slice(b"\n\ndata: {\"type\":\"");
                bytes.resize(bytes.len() + n_bytes, b'x');
                bytes
            }
        }
    }
}

struct Out {
    wire: Wire,
    bytes: Vec<u8>,
}

impl Out {
    fn event(&mut self, kind: &str, fields: Value) {
        let mut event = json!({ "type": kind });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        match self.wire {
            Wire::Bedrock => self.bytes.extend(frame(&event.to_string())),
            _ => {
                self.bytes
                    .extend_from_slice(format!("event: {kind}\ndata: {event}\n\n").as_bytes());
            }
        }
    }

    fn chunk(&mut self, delta: Value, finish: Value) {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        self.bytes.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    }
}

fn messages(parts: impl IntoIterator<Item = AnswerPart>, out: &mut Out) {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    out.event("message_start", json!({ "message": message }));
    let mut stop = "end_turn";
    for (index, part) in parts.into_iter().enumerate() {
        let (block, pieces, kind, field) = match part {
            AnswerPart::Text(pieces) => {
                (json!({"type": "text", "text": ""}), pieces, "text_delta", "text")
            }
            AnswerPart::Call(pieces) => {
                stop = "tool_use";
                let id = format!("toolu_{index}x");
                let block = json!({"type": "tool_use", "id": id, "name": "echo", "input": {}});
                (block, pieces, "input_json_delta", "partial_json")
            }
        };
        out.event("content_block_start", json!({"index": index, "content_block": block}));
        for piece in pieces {
            let delta = json!({"type": kind, field: piece});
            out.event("content_block_delta", json!({"index": index, "delta": delta}));
        }
        out.event("content_block_stop", json!({ "index": index }));
    }
    out.event("message_delta", json!({"delta": {"stop_reason": stop}, "usage": {}}));
    out.event("message_stop", json!({}));
}

fn chat(parts: impl IntoIterator<Item = AnswerPart>, out: &mut Out) {
    let (mut n_calls, mut finish) = (0, "stop");
    for part in parts {
        match part {
            AnswerPart::Text(pieces) => {
                pieces.into_iter().for_each(|it| out.chunk(json!({ "content": it }), Value::Null));
            }
            AnswerPart::Call(pieces) => {
                finish = "tool_calls";
                let begin = json!({"index": n_calls, "id": format!("call_{n_calls}x"),
                    "type": "function", "function": {"name": "echo", "arguments": ""}});
                out.chunk(json!({ "tool_calls": [begin] }), Value::Null);
                for piece in pieces {
                    let more = json!({"index": n_calls, "function": {"arguments": piece}});
                    out.chunk(json!({ "tool_calls": [more] }), Value::Null);
                }
                n_calls += 1;
            }
        }
    }
    out.chunk(json!({}), finish.into());
    out.bytes.extend_from_slice(b"data: [DONE]\n\n");
}

fn responses(parts: impl IntoIterator<Item = AnswerPart>, out: &mut Out) {
    let response = |status: &str| {
        json!({"response": {"id": "r", "object": "response", "status": status, "model": "m",
            "output": []}})
    };
    out.event("response.created", response("in_progress"));
    for (index, part) in parts.into_iter().enumerate() {
        let (id, call) = (format!("item_{index}"), format!("call_{index}x"));
        let item = |arguments: &str| {
            json!({"id": id, "type": "function_call", "status": "completed", "call_id": call,
                "name": "echo", "arguments": arguments})
        };
        let message = |text: &str| {
            json!({"id": id, "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "text": text}]})
        };
        let (pieces, kind, empty, whole) = match &part {
            AnswerPart::Text(pieces) => {
                (pieces, "response.output_text.delta", message(""), message(&pieces.concat()))
            }
            AnswerPart::Call(pieces) => {
                let kind = "response.function_call_arguments.delta";
                (pieces, kind, item(""), item(&pieces.concat()))
            }
        };
        out.event("response.output_item.added", json!({"output_index": index, "item": empty}));
        for piece in pieces {
            let place =
                json!({"item_id": id, "output_index": index, "content_index": 0, "delta": piece});
            out.event(kind, place);
        }
        out.event("response.output_item.done", json!({"output_index": index, "item": whole}));
    }
    out.event("response.completed", response("completed"));
}

/// An event of the Messages API in a frame of AWS.
fn frame(event: &str) -> Vec<u8> {
    let payload = json!({ "bytes": base64(event.as_bytes()) }).to_string();
    let mut headers = Vec::new();
    for (name, value) in [
        (":message-type", "event"),
        (":event-type", "chunk"),
        (":content-type", "application/json"),
    ] {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend(name.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.bytes());
    }
    let number = |it: usize| u32::try_from(it).unwrap().to_be_bytes();
    let mut frame = [number(headers.len() + payload.len() + 16), number(headers.len())].concat();
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload.bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

/// The checksum of these bytes, by its definition: reversed, with the polynomial of Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1));
    !bytes.iter().fold(!0_u32, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= three.len() {
                text.push(char::from(SIGNS[(bits >> (18 - 6 * place) & 63) as usize]))
            } else {
                text.push('=')
            }
        }
    }
    text
}
