//! Writes requests for the Responses API.
//!
//! Its input is a flat list of items; `openai_shared` describes the cost.

use std::sync::Arc;

use crate::{
    block::{Block, BlockKind, quote},
    digest::Digest,
    message::Role,
    step5_model_call::{
        openai_shared::{
            call::MAX_ID_CHARS,
            encode::{UserMessage, UserPart, joined, sent_id, system_text},
            forms::RequestForm,
        },
        request::{EncodedHead, RequestHead},
        view::ViewMessage,
        wire_format::OPENAI_ITEM,
    },
    tool::ToolSpec,
};

const MARK: Digest = Digest(*b"ennead resp form");

/// Returns the form of a request, and what it has up to the place of the next message.
///
/// Nothing is kept at the server, so reasoning is asked for in encrypted form and goes back in
/// front of the calls it led to. Results of tools are `function_call_output` items; images among
/// them follow in a message of the user.
pub(in super::super) fn form(head: &EncodedHead) -> (RequestForm, &str) {
    let form = RequestForm { mark: MARK, parameters: parameters(head.head()), message };
    (form, head.in_responses_form(stable))
}

fn parameters(head: &RequestHead) -> String {
    let model = quote(&head.model);
    let stream = if head.stream { r#","stream":true"# } else { "" };
    let include =
        if reasons(&head.model) { r#","include":["reasoning.encrypted_content"]"# } else { "" };
    let max_tokens = head.max_tokens;
    format!(r#"{{"model":{model},"max_output_tokens":{max_tokens}{stream},"store":false{include}"#)
}

/// Whether a model may give encrypted reasoning. The older chat models are refused with a 400 when
/// it is asked for.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_chat = ["gpt-3", "gpt-4", "chatgpt"].iter().any(|it| name.starts_with(it));
    !is_chat && !name.contains("-chat")
}

/// Instructions and tools, up to the place of the first item.
fn stable(head: &RequestHead) -> String {
    let tool = |tool: &Arc<ToolSpec>| {
        format!(
            r#"{{"type":"function","name":{},"description":{},"parameters":{},"strict":false}}"#,
            quote(tool.name.as_str()),
            quote(&tool.description),
            tool.input_schema
        )
    };
    let instructions = system_text(&head.system)
        .map(|it| format!(r#","instructions":{}"#, quote(&it)))
        .unwrap_or_default();
    let tools = if head.tools.is_empty() {
        String::new()
    } else {
        format!(r#","tools":[{}]"#, joined(head.tools.iter().map(tool)))
    };
    format!(r#"{instructions}{tools},"input":["#)
}

fn message(message: &ViewMessage) -> String {
    match message.role {
        Role::Assistant => {
            // An item of reasoning is refused without what it led to. What followed it may have
            // been cut off.
            let is_item = |it: &Block| matches!(it.kind(), BlockKind::Opaque { kind } if &**kind == OPENAI_ITEM);
            let end = message.blocks.iter().rposition(|it| item(it).is_some() && !is_item(it));
            let kept = end.map_or(0, |it| it + 1);
            joined(message.blocks.iter().take(kept).filter_map(item))
        }
        Role::User | Role::System => user(message),
    }
}

/// A block of an answer as an item; `None` for what this provider did not say.
fn item(block: &Block) -> Option<String> {
    match block.kind() {
        BlockKind::Text(text) => Some(format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{}}}]}}"#,
            quote(text)
        )),
        BlockKind::ToolUse { id, name, input } => Some(format!(
            r#"{{"type":"function_call","call_id":{},"name":{},"arguments":{}}}"#,
            sent_id(id.as_str(), MAX_ID_CHARS),
            quote(name.as_str()),
            quote(input)
        )),
        BlockKind::Opaque { kind } if &**kind == OPENAI_ITEM => {
            // Kept by the reader as `{"type":"openai_item","item":…`, without the last brace.
            let (_, item) = block.wire_open().split_once(r#","item":"#)?;
            Some(item.to_owned())
        }
        BlockKind::Thinking { .. }
        | BlockKind::RedactedThinking
        | BlockKind::Opaque { .. }
        | BlockKind::ToolResult { .. }
        | BlockKind::StopRequest
        | BlockKind::Error(_) => None,
    }
}

fn user(message: &ViewMessage) -> String {
    let user_message = UserMessage::of(message);
    let result = |(id, text): &(&str, std::borrow::Cow<'_, str>)| {
        let id = sent_id(id, MAX_ID_CHARS);
        format!(r#"{{"type":"function_call_output","call_id":{id},"output":{}}}"#, quote(text))
    };
    let mut items: Vec<String> = user_message.results.iter().map(result).collect();
    if !user_message.parts.is_empty() {
        let content = joined(user_message.parts.iter().map(part));
        items.push(format!(r#"{{"type":"message","role":"user","content":[{content}]}}"#));
    }
    joined(items)
}

fn part(part: &UserPart<'_>) -> String {
    match part {
        UserPart::Text(text) => format!(r#"{{"type":"input_text","text":{}}}"#, quote(text)),
        UserPart::Image(url) => format!(r#"{{"type":"input_image","image_url":{}}}"#, quote(url)),
        UserPart::File { name, data } => {
            let (name, data) = (quote(name), quote(data));
            format!(r#"{{"type":"input_file","filename":{name},"file_data":{data}}}"#)
        }
    }
}

#[cfg(test)]
mod tests;
