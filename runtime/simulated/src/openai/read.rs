//! Requests of Chat Completions and of the Responses API in the form of the Messages API.
//!
//! What these APIs refuse and the form cannot show is refused here; the rest is checked in that
//! form, pairing of calls and results above all.

use serde_json::{Value as Json, json};

use crate::members::{list, str_of};

/// The ceiling when a request names none.
const DEFAULT_CEILING: u64 = 4_096;

/// What marks a failed result in formats without a field for it.
const ERROR_PREFIX: &str = "Error: ";

/// Messages while they are put together: neighbours of one role become one.
#[derive(Default)]
struct Messages {
    system: Vec<String>,
    messages: Vec<(&'static str, Vec<Json>)>,
}

impl Messages {
    fn push(&mut self, role: &'static str, mut blocks: Vec<Json>) {
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.append(&mut blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    fn result(&mut self, id: &Json, text: &Json) -> Result<(), String> {
        let (Some(id), Some(text)) = (id.as_str(), text.as_str()) else {
            return Err("a result needs the id of its call and a text".to_owned());
        };
        let error_text = text.strip_prefix(ERROR_PREFIX);
        self.push(
            "user",
            vec![json!({
                "type": "tool_result", "tool_use_id": id,
                "content": error_text.unwrap_or(text), "is_error": error_text.is_some(),
            })],
        );
        Ok(())
    }

    fn body(self, body: &Json, ceiling: &str, tools: Vec<Json>, choice: Option<Json>) -> Json {
        let message = |(role, content)| json!({"role": role, "content": content});
        let messages: Vec<Json> = self.messages.into_iter().map(message).collect();
        let system = Some(self.system.join("\n\n")).filter(|it| !it.is_empty());
        let mut made = json!({
            "model": body["model"],
            "max_tokens": body[ceiling].as_u64().unwrap_or(DEFAULT_CEILING),
            "stream": body["stream"],
            "metadata": {"user_id": body["user"]},
            "system": system,
            "tools": tools,
            "messages": messages,
        });
        if let Some(choice) = choice {
            made["tool_choice"] = choice;
        }
        made
    }
}

/// Reads a request of Chat Completions.
pub(super) fn chat(body: &Json) -> Result<Json, String> {
    if body["max_tokens"].is_u64() && body["max_completion_tokens"].is_u64() {
        return Err("setting `max_tokens` and `max_completion_tokens` at the same time".to_owned());
    }
    let mut read = Messages::default();
    for (i, message) in list(&body["messages"]).iter().enumerate() {
        let content = &message["content"];
        let at = |why: String| format!("messages[{i}]: {why}");
        match str_of(&message["role"]) {
            "system" | "developer" => read.system.push(text_of(content)),
            "user" => read.push("user", parts(content).map_err(at)?),
            "tool" => read.result(&message["tool_call_id"], content).map_err(at)?,
            "assistant" => {
                let mut blocks = match content {
                    Json::Null => Vec::new(),
                    content => parts(content).map_err(at)?,
                };
                for call in list(&message["tool_calls"]) {
                    if call["type"] != "function" {
                        return Err(at("tool_calls: type must be `function`".to_owned()));
                    }
                    let function = &call["function"];
                    blocks.push(
                        call_block(&call["id"], &function["name"], &function["arguments"])
                            .map_err(at)?,
                    );
                }
                read.push("assistant", blocks);
            }
            role => return Err(at(format!("unknown role `{role}`"))),
        }
    }
    let tools = list(&body["tools"]).iter().map(|it| tool(it, &it["function"]));
    let tools = tools.collect::<Result<_, _>>()?;
    let has_new = body["max_completion_tokens"].is_u64();
    let ceiling = if has_new { "max_completion_tokens" } else { "max_tokens" };
    let choice = choice(body, &body["tool_choice"]["function"]["name"])?;
    Ok(read.body(body, ceiling, tools, choice))
}

/// Reads a request of the Responses API.
pub(super) fn responses(body: &Json) -> Result<Json, String> {
    let mut read = Messages::default();
    read.system.extend(body["instructions"].as_str().map(str::to_owned));
    if let Some(text) = body["input"].as_str() {
        read.push("user", vec![json!({"type": "text", "text": text})]);
    }
    let mut open_reasoning = None;
    for (i, item) in list(&body["input"]).iter().enumerate() {
        let at = |why: String| format!("input[{i}]: {why}");
        let kind = item["type"].as_str().unwrap_or("message");
        let is_answer = kind == "function_call" || item["role"] == "assistant";
        if let Some(at) = open_reasoning.take_if(|_| kind != "reasoning")
            && !is_answer
        {
            return Err(format!("input[{at}]: reasoning without the item it led to"));
        }
        match (kind, str_of(&item["role"])) {
            ("message", "system" | "developer") => read.system.push(text_of(&item["content"])),
            ("message", "user") => read.push("user", parts(&item["content"]).map_err(at)?),
            ("message", "assistant") => {
                read.push("assistant", parts(&item["content"]).map_err(at)?);
            }
            ("function_call", _) => {
                let call = call_block(&item["call_id"], &item["name"], &item["arguments"]);
                read.push("assistant", vec![call.map_err(at)?]);
            }
            ("function_call_output", _) => {
                read.result(&item["call_id"], &item["output"]).map_err(at)?;
            }
            ("reasoning", _) => {
                let Some(signature) = item["encrypted_content"].as_str() else {
                    return Err(at("items are not kept: no encrypted content".to_owned()));
                };
                let thinking = text_of(&item["summary"]);
                let block =
                    json!({"type": "thinking", "thinking": thinking, "signature": signature});
                read.push("assistant", vec![block]);
                open_reasoning = Some(i);
            }
            (kind, role) => return Err(at(format!("unknown item `{kind}` of role `{role}`"))),
        }
    }
    if let Some(at) = open_reasoning {
        return Err(format!("input[{at}]: reasoning without the item it led to"));
    }
    let tools = list(&body["tools"]).iter().map(|it| tool(it, it));
    let tools = tools.collect::<Result<_, _>>()?;
    let choice = choice(body, &body["tool_choice"]["name"])?;
    Ok(read.body(body, "max_output_tokens", tools, choice))
}

/// The choice of calls, as the Messages API has it; `None` when nothing is. `named` is where the
/// format names a single tool.
fn choice(body: &Json, named: &Json) -> Result<Option<Json>, String> {
    let one = body["parallel_tool_calls"] == false;
    let mut made = match &body["tool_choice"] {
        Json::Null if !one || list(&body["tools"]).is_empty() => return Ok(None),
        Json::Null => json!({"type": "auto"}),
        Json::String(error_text) => match error_text.as_str() {
            "auto" => json!({"type": "auto"}),
            "none" => json!({"type": "none"}),
            "required" => json!({"type": "any"}),
            other => return Err(format!("Invalid value: '{other}' for tool_choice")),
        },
        choice if choice["type"] == "function" => json!({"type": "tool", "name": named}),
        _ => return Err("Invalid type for 'tool_choice'".to_owned()),
    };
    if one {
        made["disable_parallel_tool_use"] = true.into();
    }
    Ok(Some(made))
}

fn tool(tool: &Json, function: &Json) -> Result<Json, String> {
    if tool["type"] != "function" {
        return Err("tools: type must be `function`".to_owned());
    }
    Ok(json!({
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }))
}

fn call_block(id: &Json, name: &Json, arguments: &Json) -> Result<Json, String> {
    let (Some(id), Some(name), Some(arguments)) = (id.as_str(), name.as_str(), arguments.as_str())
    else {
        return Err("a call needs an id, a name, and a text of arguments".to_owned());
    };
    let input: Json = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments of {name} are not JSON: {error}"))?;
    Ok(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

/// A text, or a list of parts, as blocks.
fn parts(content: &Json) -> Result<Vec<Json>, String> {
    if let Some(text) = content.as_str() {
        return Ok(vec![json!({"type": "text", "text": text})]);
    }
    list(content)
        .iter()
        .map(|part| match str_of(&part["type"]) {
            "text" | "input_text" | "output_text" => {
                Ok(json!({"type": "text", "text": part["text"]}))
            }
            "image_url" => Ok(image(&part["image_url"]["url"])),
            "input_image" => Ok(image(&part["image_url"])),
            "file" | "input_file" => Ok(json!({"type": "document"})),
            kind => Err(format!("unknown part `{kind}`")),
        })
        .collect()
}

fn image(url: &Json) -> Json {
    json!({"type": "image", "source": {"type": "url", "url": url}})
}

/// A text, or the texts of parts, one per line.
fn text_of(content: &Json) -> String {
    let texts = list(content).iter().map(|part| str_of(&part["text"]));
    content.as_str().map_or_else(|| texts.collect::<Vec<_>>().join("\n"), str::to_owned)
}
