//! What the real API refuses, refused here too.
//!
//! A simulated model that took any request would hide the harness's own faults: an answer without
//! its tool result, an empty text, a fifth cache marker. Everything is checked before a rule is
//! tried.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{
    members::{list, str_of},
    tool_choice::ToolChoice,
};

/// Cache markers a request may carry.
const MAX_CACHE_MARKERS: usize = 4;

/// Checks whether the request would be taken, and if not, returns why: the text of a 400. With `pauses` the last
/// message may be one of the assistant, which is to be continued.
pub(super) fn check(body: &Json, needs_max_tokens: bool, pauses: bool) -> Result<(), String> {
    if !body.is_object() {
        return Err("the body is not a JSON object".to_owned());
    }
    if str_of(&body["model"]).is_empty() {
        return Err("model: field required".to_owned());
    }
    if needs_max_tokens && body["max_tokens"].as_u64().is_none() {
        return Err("max_tokens: a whole number is required".to_owned());
    }
    if !(body["stream"].is_null() || body["stream"].is_boolean()) {
        return Err("stream: must be true or false".to_owned());
    }
    sampling(body)?;
    thinking(body)?;
    system(&body["system"])?;
    tools(&body["tools"])?;
    ToolChoice::read(body)?;
    let markers = count_markers(&body["tools"]) + count_markers(&body["system"]);
    let markers = markers + count_markers(&body["messages"]);
    if markers > MAX_CACHE_MARKERS {
        return Err(format!(
            "a maximum of 4 blocks with cache_control may be provided, found {markers}"
        ));
    }
    messages(&body["messages"], pauses)
}

fn sampling(body: &Json) -> Result<(), String> {
    for name in ["temperature", "top_p"] {
        let is_share = body[name].as_f64().is_some_and(|it| (0.0..=1.0).contains(&it));
        if !(body[name].is_null() || is_share) {
            return Err(format!("{name}: must be a number from 0 to 1"));
        }
    }
    Ok(())
}

/// Tokens of a budget for thinking, at least.
const MIN_THINKING: u64 = 1024;

fn thinking(body: &Json) -> Result<(), String> {
    let budget = &body["thinking"]["budget_tokens"];
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    match budget.as_u64() {
        Some(budget) if budget < MIN_THINKING => {
            Err(format!("thinking.enabled.budget_tokens: must be {MIN_THINKING} at least"))
        }
        Some(budget) if body["max_tokens"].as_u64().is_some_and(|it| it <= budget) => {
            Err("max_tokens: must be greater than thinking.budget_tokens".to_owned())
        }
        Some(_) => Ok(()),
        None => Err("thinking.enabled.budget_tokens: a whole number is required".to_owned()),
    }
}

fn system(system: &Json) -> Result<(), String> {
    match system {
        Json::Null | Json::String(_) => Ok(()),
        Json::Array(blocks) => {
            let bad =
                blocks.iter().position(|b| b["type"] != "text" || str_of(&b["text"]).is_empty());
            bad.map_or(Ok(()), |i| {
                Err(format!("system.{i}: text blocks that are not empty are required"))
            })
        }
        _ => Err("system: must be a text or a list of text blocks".to_owned()),
    }
}

fn tools(tools: &Json) -> Result<(), String> {
    if !(tools.is_null() || tools.is_array()) {
        return Err("tools: must be a list".to_owned());
    }
    let mut names = BTreeSet::new();
    for (i, tool) in list(tools).iter().enumerate() {
        let name = str_of(&tool["name"]);
        let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if name.is_empty() || name.len() > 64 || !fits {
            return Err(format!("tools.{i}.name: must match ^[a-zA-Z0-9_-]{{1,64}}$"));
        }
        if !names.insert(name) {
            return Err("tools: tool names must be unique".to_owned());
        }
        let custom = tool["type"].is_null() || tool["type"] == "custom";
        if custom && tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{i}.input_schema.type: must be `object`"));
        }
    }
    Ok(())
}

fn count_markers(value: &Json) -> usize {
    match value {
        Json::Object(map) => {
            let own = map.get("cache_control").is_some_and(|marker| !marker.is_null());
            // An input is data: what looks like a marker in it is none.
            let inner = map.iter().filter(|(key, _)| *key != "input" && *key != "input_schema");
            usize::from(own) + inner.map(|(_, value)| count_markers(value)).sum::<usize>()
        }
        Json::Array(values) => values.iter().map(count_markers).sum(),
        _ => 0,
    }
}

/// Neighbours of one role are one message to the API.
struct Merged<'a> {
    first: usize,
    assistant: bool,
    blocks: Vec<&'a Json>,
}

fn messages(messages: &Json, pauses: bool) -> Result<(), String> {
    if list(messages).is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for (i, message) in list(messages).iter().enumerate() {
        let assistant = match str_of(&message["role"]) {
            "user" => false,
            "assistant" => true,
            // Some models take instructions between turns; never first.
            "system" if i > 0 => continue,
            role => return Err(format!("messages.{i}.role: `{role}` is not allowed here")),
        };
        content(i, &message["content"])?;
        // A text represents one block.
        let text = message["content"].is_string().then_some(&message["content"]);
        let blocks = text.into_iter().chain(list(&message["content"]));
        match merged.last_mut() {
            Some(last) if last.assistant == assistant => last.blocks.extend(blocks),
            _ => merged.push(Merged { first: i, assistant, blocks: blocks.collect() }),
        }
    }
    if merged.first().is_some_and(|first| first.assistant) {
        return Err("messages: the first message must be of the user".to_owned());
    }
    if !pauses && merged.last().is_some_and(|last| last.assistant) {
        return Err("messages: the conversation must end with a user message".to_owned());
    }
    pairing(&merged)
}

fn content(i: usize, content: &Json) -> Result<(), String> {
    match content {
        Json::String(text) if !text.is_empty() => Ok(()),
        Json::Array(blocks) if !blocks.is_empty() => {
            for (j, block) in blocks.iter().enumerate() {
                let kind = str_of(&block["type"]);
                let lacks = |field: &str| !block[field].is_string();
                let why = match kind {
                    "" => "type: field required",
                    "text" if str_of(&block["text"]).is_empty() => {
                        "text content blocks must be non-empty"
                    }
                    "tool_use" if lacks("id") || lacks("name") || !block["input"].is_object() => {
                        "tool_use: id, name and input are required"
                    }
                    "tool_result" if lacks("tool_use_id") => "tool_use_id: field required",
                    "thinking" if lacks("thinking") || lacks("signature") => {
                        "thinking: thinking and signature are required"
                    }
                    _ => continue,
                };
                return Err(format!("messages.{i}.content.{j}: {why}"));
            }
            Ok(())
        }
        _ => Err(format!("messages.{i}: all messages must have non-empty content")),
    }
}

fn pairing(messages: &[Merged<'_>]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let i = message.first;
        if message.assistant {
            for call in message.blocks.iter().filter(|block| block["type"] == "tool_use") {
                let id = str_of(&call["id"]);
                if !seen.insert(id) {
                    return Err(format!("messages.{i}: `tool_use` ids must be unique: {id}"));
                }
                open.insert(id);
            }
            continue;
        }
        let mut others = false;
        for block in &message.blocks {
            if block["type"] != "tool_result" {
                others = true;
                continue;
            }
            let id = str_of(&block["tool_use_id"]);
            if !open.remove(id) {
                return Err(format!(
                    "messages.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` \
                     block must have a corresponding `tool_use` block in the previous message."
                ));
            }
            if others {
                return Err(format!(
                    "messages.{i}: `tool_result` blocks must come before other content"
                ));
            }
        }
        if !open.is_empty() {
            let ids = open.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
            ));
        }
    }
    Ok(())
}
