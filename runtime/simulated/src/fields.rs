//! Fields that a request may have. The real APIs refuse any other, each in words of its own, so a
//! misspelt one is found here and not at the first call that costs money.

use serde_json::Value as Json;

use super::members::{list, str_of};

/// Fields of a request to `/v1/messages`.
const MESSAGES: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "output_config",
    "output_format",
    "context_management",
    "cache_control",
    "container",
    "mcp_servers",
    "service_tier",
    "inference_geo",
    "speed",
];

/// Fields of a request to `/v1/messages/count_tokens`.
const COUNT_TOKENS: &[&str] = &[
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "context_management",
    "cache_control",
    "mcp_servers",
    "speed",
];

/// Fields of a Chat Completions request.
const CHAT: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "seed",
    "user",
    "safety_identifier",
    "metadata",
    "store",
    "service_tier",
    "reasoning_effort",
    "verbosity",
    "response_format",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "modalities",
    "audio",
    "prediction",
    "web_search_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "functions",
    "function_call",
];

/// Fields of a request of the Responses API.
const RESPONSES: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
    "stream",
    "stream_options",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "user",
    "safety_identifier",
    "metadata",
    "store",
    "include",
    "service_tier",
    "reasoning",
    "text",
    "truncation",
    "background",
    "previous_response_id",
    "conversation",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
];

/// Fields of a message in a request.
const MESSAGE: &[&str] = &["role", "content"];

/// Of blocks that a request may hold, by their type. Those of other types are not looked into.
const BLOCKS: &[(&str, &[&str])] = &[
    ("text", &["type", "text", "cache_control", "citations"]),
    ("thinking", &["type", "thinking", "signature"]),
    ("redacted_thinking", &["type", "data"]),
    ("tool_use", &["type", "id", "name", "input", "cache_control", "caller"]),
    ("tool_result", &["type", "tool_use_id", "content", "is_error", "cache_control"]),
    ("image", &["type", "source", "cache_control"]),
    ("document", &["type", "source", "title", "context", "citations", "cache_control"]),
];

/// Fields of a tool with a schema.
const TOOL: &[&str] = &[
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "defer_loading",
    "input_examples",
    "eager_input_streaming",
    "allowed_callers",
];

/// Why the body of a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) message: String,
    /// The code that programs know it by, if there is one.
    pub(super) code: Option<&'static str>,
    /// What OpenAI's formats name as the field.
    pub(super) param: Option<String>,
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Self { message, code: None, param: None }
    }
}

/// Refuses a conversation that is kept by the server, which some compatible servers offer as `thread`:
/// nothing is kept here, so the answer would be one to the last message alone. It has a code of its own
/// in every format, since leaving the field out would not mend the request.
pub(super) fn no_thread(body: &Json) -> Result<(), Refused> {
    if body["thread"].is_null() {
        return Ok(());
    }
    let message = "thread: threads are not kept; send the whole conversation with each request";
    Err(Refused {
        message: message.to_owned(),
        code: Some("thread_not_supported"),
        param: Some("thread".to_owned()),
    })
}

/// Checks for a field that a request of the Messages API may not have, and returns the first.
pub(super) fn of_messages(body: &Json, counting: bool) -> Result<(), String> {
    only("", body, if counting { COUNT_TOKENS } else { MESSAGES })?;
    for (i, tool) in list(&body["tools"]).iter().enumerate() {
        if tool["type"].is_null() || tool["type"] == "custom" {
            only(&format!("tools.{i}."), tool, TOOL)?;
        }
    }
    for (i, message) in list(&body["messages"]).iter().enumerate() {
        only(&format!("messages.{i}."), message, MESSAGE)?;
        for (j, block) in list(&message["content"]).iter().enumerate() {
            let kind = str_of(&block["type"]);
            if let Some((_, known)) = BLOCKS.iter().find(|(name, _)| *name == kind) {
                only(&format!("messages.{i}.content.{j}.{kind}."), block, known)?;
            }
        }
    }
    Ok(())
}

fn only(path: &str, value: &Json, known: &[&str]) -> Result<(), String> {
    match first_unknown(value, known) {
        Some(field) => Err(format!("{path}{field}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// Checks for a field that a request of Chat Completions may not have, and returns the first.
pub(super) fn of_chat(body: &Json) -> Result<(), Refused> {
    match first_unknown(body, CHAT) {
        Some(field) => Err(format!("Unrecognized request argument supplied: {field}").into()),
        None => Ok(()),
    }
}

/// Checks for a field that a request of the Responses API may not have, or that names something which is kept nowhere:
/// it is forgotten with the answer.
pub(super) fn of_responses(body: &Json) -> Result<(), Refused> {
    let refused = |field: &str, code, message: String| {
        Err(Refused { message, code: Some(code), param: Some(field.to_owned()) })
    };
    if let Some(field) = first_unknown(body, RESPONSES) {
        return refused(field, "unknown_parameter", format!("Unknown parameter: '{field}'."));
    }
    if let Some(id) = body["previous_response_id"].as_str() {
        let message = format!("Previous response with id '{id}' not found.");
        return refused("previous_response_id", "previous_response_not_found", message);
    }
    let thread = &body["conversation"];
    if let Some(id) = thread.as_str().or_else(|| thread["id"].as_str()) {
        let message = format!("Conversation with id '{id}' not found.");
        return refused("conversation", "conversation_not_found", message);
    }
    Ok(())
}

fn first_unknown<'a>(value: &'a Json, known: &[&str]) -> Option<&'a str> {
    let mut fields = value.as_object()?.keys().map(String::as_str);
    fields.find(|field| !known.contains(field))
}
