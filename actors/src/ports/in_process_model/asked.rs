//! What a model in this process is asked: read from the request that a server would be sent.

use std::sync::Arc;

use ennead_runtime::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind, Messages, Role},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ModelRequest, OfferedTool};

/// A request as it is written for servers.
#[derive(Deserialize)]
pub(super) struct RequestBody<'a> {
    pub(super) model: String,
    max_tokens: u64,
    #[serde(default)]
    pub(super) stream: bool,
    #[serde(default)]
    system: Vec<Segment>,
    #[serde(default, borrow)]
    messages: Vec<WireMessage<'a>>,
    #[serde(default)]
    tools: Vec<OfferedTool>,
}

#[derive(Deserialize)]
struct Segment {
    text: String,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    role: Role,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// Returns what the body of a request asks of a model in this process.
///
/// # Errors
///
/// A block of a message is not one that we write.
pub(super) fn asked(read: RequestBody<'_>) -> Result<ModelRequest, String> {
    let mut messages = Messages::new();
    for (number, wire_message) in read.messages.into_iter().enumerate() {
        let blocks = wire_message.content.iter().map(|it| Block::from_wire(it.get()));
        let blocks: Vec<Block> = blocks.collect::<Result<_, _>>().map_err(|it| it.to_string())?;
        let is_results = blocks.iter().any(|it| it.as_tool_result().is_some());
        let kind = match wire_message.role {
            Role::Assistant => MessageKind::Answer,
            _ if is_results => MessageKind::ToolResults,
            _ => MessageKind::Prompt,
        };
        let id = EntryId::from(number.to_string());
        let mut message = Message::user(id, kind, blocks);
        message.role = wire_message.role;
        messages.push(Arc::new(message));
    }
    let system: Vec<String> = read.system.into_iter().map(|it| it.text).collect();
    Ok(ModelRequest {
        model: read.model,
        system: system.join("\n\n"),
        messages,
        tools: read.tools,
        max_tokens: read.max_tokens,
    })
}
