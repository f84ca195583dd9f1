//! Writes requests for Chat Completions.
//!
//! Messages have a shape of their own; `openai_shared` describes the cost.

use crate::{
    block::{BlockKind, quote},
    digest::Digest,
    message::Role,
    step5_model_call::{
        openai_shared::{
            encode::{UserMessage, UserPart, joined, sent_id, system_text},
            forms::RequestForm,
        },
        request::{EncodedHead, RequestHead},
        view::ViewMessage,
    },
};

const MARK: Digest = Digest(*b"ennead chat form");

/// Characters of an id that the API takes.
const MAX_ID_CHARS: usize = 40;

/// Returns the form of a request, and what it has up to the place of the next message.
///
/// The system prompt is one system message. Results of tools are one `tool` message each, right
/// after the calls; images among them follow in a message of the user. Reasoning and what a
/// provider ran itself are left out.
pub(in super::super) fn form(head: &EncodedHead) -> (RequestForm, &str) {
    let form = RequestForm { mark: MARK, parameters: parameters(head.head()), message };
    (form, head.in_chat_form(stable))
}

fn parameters(head: &RequestHead) -> String {
    let model = quote(&head.model);
    let stream =
        if head.stream { r#","stream":true,"stream_options":{"include_usage":true}"# } else { "" };
    format!(r#"{{"model":{model},"max_completion_tokens":{}{stream}"#, head.max_tokens)
}

/// Tools and system prompt, up to the place of the next message.
fn stable(head: &RequestHead) -> String {
    let tool = |tool: &std::sync::Arc<crate::tool::ToolSpec>| {
        format!(
            r#"{{"type":"function","function":{{"name":{},"description":{},"parameters":{}}}}}"#,
            quote(tool.name.as_str()),
            quote(&tool.description),
            tool.input_schema
        )
    };
    let tools = if head.tools.is_empty() {
        String::new()
    } else {
        format!(r#","tools":[{}]"#, joined(head.tools.iter().map(tool)))
    };
    let system = system_text(&head.system)
        .map(|it| format!(r#"{{"role":"system","content":{}}}"#, quote(&it)));
    format!(r#"{tools},"messages":[{}"#, system.unwrap_or_default())
}

fn message(message: &ViewMessage) -> String {
    match message.role {
        Role::Assistant => answer(message),
        Role::User | Role::System => user(message),
    }
}

fn answer(message: &ViewMessage) -> String {
    let mut texts: Vec<&str> = Vec::new();
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block.kind() {
            BlockKind::Text(text) => texts.push(text),
            BlockKind::ToolUse { id, name, input } => calls.push(format!(
                r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}}"#,
                sent_id(id.as_str(), MAX_ID_CHARS),
                quote(name.as_str()),
                quote(input)
            )),
            BlockKind::Thinking { .. }
            | BlockKind::RedactedThinking
            | BlockKind::ToolResult { .. }
            | BlockKind::Opaque { .. }
            | BlockKind::StopRequest
            | BlockKind::Error(_) => {}
        }
    }
    let content = if texts.is_empty() { "null".to_owned() } else { quote(&texts.join("\n\n")) };
    match (texts.is_empty(), calls.is_empty()) {
        // An answer of reasoning alone: two messages of the user may follow each other here.
        (true, true) => String::new(),
        (false, true) => format!(r#"{{"role":"assistant","content":{content}}}"#),
        (_, false) => {
            let calls = joined(calls);
            format!(r#"{{"role":"assistant","content":{content},"tool_calls":[{calls}]}}"#)
        }
    }
}

fn user(message: &ViewMessage) -> String {
    let user_message = UserMessage::of(message);
    let result = |(id, text): &(&str, std::borrow::Cow<'_, str>)| {
        let id = sent_id(id, MAX_ID_CHARS);
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{}}}"#, quote(text))
    };
    let mut messages: Vec<String> = user_message.results.iter().map(result).collect();
    if !user_message.parts.is_empty() {
        // A list only where it is needed: not every server takes one.
        let content = match user_message.only_text() {
            Some(text) => quote(&text),
            None => format!("[{}]", joined(user_message.parts.iter().map(part))),
        };
        messages.push(format!(r#"{{"role":"user","content":{content}}}"#));
    }
    joined(messages)
}

fn part(part: &UserPart<'_>) -> String {
    match part {
        UserPart::Text(text) => format!(r#"{{"type":"text","text":{}}}"#, quote(text)),
        UserPart::Image(url) => {
            format!(r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#, quote(url))
        }
        UserPart::File { name, data } => {
            let (name, data) = (quote(name), quote(data));
            format!(r#"{{"type":"file","file":{{"filename":{name},"file_data":{data}}}}}"#)
        }
    }
}

#[cfg(test)]
mod tests;
