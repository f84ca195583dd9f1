//! What providers refuse, for requests in each of the three wire formats.
//!
//! Written from the providers' references and on bytes alone, so that it shares nothing with what
//! builds requests or with the simulated model.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

type Rule = Result<(), String>;

fn need(holds: bool, why: impl FnOnce() -> String) -> Rule {
    if holds { Ok(()) } else { Err(why()) }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Every member is one that the type has, and those that it needs are there.
fn members(value: &Value, needed: &[&str], allowed: &[&str]) -> Rule {
    let Some(object) = value.as_object() else { return Err(format!("not an object: {value}")) };
    let is_known = |it: &String| needed.contains(&it.as_str()) || allowed.contains(&it.as_str());
    let extra = object.keys().find(|it| !is_known(it));
    need(extra.is_none(), || format!("{extra:?}: extra inputs are not permitted in {value}"))?;
    let missing = needed.iter().find(|it| !object.contains_key(**it));
    need(missing.is_none(), || format!("{missing:?}: field required in {value}"))
}

fn is_name(text: &str, max: usize) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    !text.is_empty() && text.len() <= max && text.chars().all(fits)
}

/// The messages format.
pub(crate) fn messages(body: &Value) -> Rule {
    need(!text(body, "model").is_empty(), || "model: required".into())?;
    need(body["max_tokens"].as_u64().is_some_and(|it| 0 < it), || "max_tokens: required".into())?;
    let all = list(body, "messages");
    need(!all.is_empty(), || "messages: at least one is required".into())?;
    let mut named = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (i, message) in all.iter().enumerate() {
        members(message, &["role", "content"], &[])?;
        let role = text(message, "role");
        let expected = if i % 2 == 0 { "user" } else { "assistant" };
        need(role == expected, || format!("message {i} is of {role}"))?;
        let blocks = list(message, "content");
        let is_text = message["content"].as_str().is_some_and(|it| !it.trim().is_empty());
        need(is_text || !blocks.is_empty(), || format!("message {i} is empty"))?;
        let results: Vec<&Value> =
            blocks.iter().take_while(|it| it["type"] == "tool_result").collect();
        let answered: Vec<String> =
            results.iter().map(|it| text(it, "tool_use_id").to_owned()).collect();
        let is_answered =
            answered.len() == open.len() && open.iter().all(|it| answered.contains(it));
        need(is_answered, || format!("message {i} answers {answered:?} and not {open:?}"))?;
        open.clear();
        for (n, block) in blocks.iter().enumerate() {
            block_fits(block, role).map_err(|why| format!("message {i}, block {n}: {why}"))?;
            let late = block["type"] == "tool_result" && results.len() <= n;
            need(!late, || format!("message {i}: a result after other content"))?;
            if block["type"] == "tool_use" {
                let id = text(block, "id").to_owned();
                need(named.insert(id.clone()), || format!("tool_use ids must be unique: {id}"))?;
                open.push(id);
            }
        }
    }
    need(all.len() % 2 == 1, || "the conversation must end with a user message".into())?;
    let marks =
        count_marks(&body["messages"]) + count_marks(&body["system"]) + count_marks(&body["tools"]);
    need(marks <= 4, || format!("{marks} cache marks"))
}

fn block_fits(block: &Value, role: &str) -> Rule {
    let of = |role_of: &str| need(role == role_of, || format!("{} of {role}", block["type"]));
    let is_text = |key: &str| need(block[key].is_string(), || format!("{key} must be a text"));
    match text(block, "type") {
        "text" => {
            members(block, &["type", "text"], &["cache_control", "citations"])?;
            need(!text(block, "text").trim().is_empty(), || "empty text".into())
        }
        "image" | "document" => {
            members(
                block,
                &["type", "source"],
                &["cache_control", "title", "context", "citations"],
            )?;
            match text(&block["source"], "type") {
                "base64" | "text" => {
                    members(&block["source"], &["type", "media_type", "data"], &[])
                }
                "url" => members(&block["source"], &["type", "url"], &[]),
                other => Err(format!("source of type {other:?}")),
            }
        }
        "tool_use" => {
            of("assistant")?;
            members(block, &["type", "id", "name", "input"], &["cache_control", "caller"])?;
            need(is_name(text(block, "id"), usize::MAX), || "id: bad pattern".into())?;
            need(is_name(text(block, "name"), 64), || "name: bad pattern".into())?;
            need(block["input"].is_object(), || "input must be an object".into())
        }
        "tool_result" => {
            of("user")?;
            members(block, &["type", "tool_use_id"], &["content", "is_error", "cache_control"])?;
            need(is_name(text(block, "tool_use_id"), usize::MAX), || "id: bad pattern".into())?;
            let error = block.get("is_error");
            need(error.is_none_or(Value::is_boolean), || "is_error must be a boolean".into())?;
            match block.get("content") {
                None | Some(Value::String(_)) => Ok(()),
                Some(Value::Array(parts)) => {
                    parts.iter().try_for_each(|part| match text(part, "type") {
                        "text" => members(part, &["type", "text"], &["citations"]),
                        "image" | "document" => block_fits(part, role),
                        other => Err(format!("a part of type {other:?}")),
                    })
                }
                Some(other) => Err(format!("content {other}")),
            }
        }
        "thinking" => {
            of("assistant")?;
            members(block, &["type", "thinking", "signature"], &[])?;
            is_text("thinking")?;
            is_text("signature")
        }
        "redacted_thinking" => {
            of("assistant")?;
            members(block, &["type", "data"], &[])?;
            is_text("data")
        }
        other => Err(format!("unknown type {other:?}")),
    }
}

fn count_marks(value: &Value) -> usize {
    let data = |key: &str| key == "input" || key == "input_schema";
    match value {
        Value::Object(object) => {
            let inner = object.iter().filter(|(key, _)| !data(key));
            usize::from(object.contains_key("cache_control"))
                + inner.map(|(_, it)| count_marks(it)).sum::<usize>()
        }
        Value::Array(all) => all.iter().map(count_marks).sum(),
        _ => 0,
    }
}

/// The chat format.
pub(crate) fn chat(body: &Value) -> Rule {
    need(!text(body, "model").is_empty(), || "model: required".into())?;
    let all = list(body, "messages");
    let mut open: Vec<&str> = Vec::new();
    let mut last = "";
    for (i, message) in all.iter().enumerate() {
        let role = text(message, "role");
        if role == "tool" {
            let id = text(message, "tool_call_id");
            let place = open.iter().position(|it| *it == id);
            let place = place.ok_or_else(|| format!("message {i}: no call {id} before it"))?;
            open.remove(place);
            need(!message["content"].is_null(), || format!("message {i}: no content"))?;
        } else {
            need(open.is_empty(), || format!("calls {open:?} are not answered before {i}"))?;
        }
        match role {
            "system" | "developer" => need(i == 0, || format!("message {i} of {role}"))?,
            "user" => chat_content(&message["content"])?,
            "tool" => {}
            "assistant" => {
                let calls = list(message, "tool_calls");
                let has_text = message["content"].as_str().is_some_and(|it| !it.is_empty())
                    || message["content"].is_array();
                need(has_text || !calls.is_empty(), || format!("message {i} is empty"))?;
                for call in calls {
                    members(call, &["id", "type", "function"], &[])?;
                    function(&call["function"])?;
                    let id = text(call, "id");
                    need(!id.is_empty() && !open.contains(&id), || format!("call id {id:?}"))?;
                    open.push(id);
                }
            }
            other => return Err(format!("message {i} of {other:?}")),
        }
        last = role;
    }
    need(open.is_empty(), || format!("calls {open:?} are not answered"))?;
    need(matches!(last, "user" | "tool"), || format!("the last message is of {last:?}"))
}

fn chat_content(content: &Value) -> Rule {
    match content {
        Value::String(text) => need(!text.trim().is_empty(), || "an empty text".into()),
        Value::Array(parts) => {
            need(!parts.is_empty(), || "no parts".into())?;
            parts.iter().try_for_each(|part| match text(part, "type") {
                "text" => need(!text(part, "text").trim().is_empty(), || "an empty text".into()),
                "image_url" => members(part, &["type", "image_url"], &[]),
                "file" => members(part, &["type", "file"], &[]),
                other => Err(format!("a part of type {other:?}")),
            })
        }
        other => Err(format!("content {other}")),
    }
}

fn function(value: &Value) -> Rule {
    need(is_name(text(value, "name"), 64), || format!("name of {value}"))?;
    let arguments: Result<Map<String, Value>, _> = serde_json::from_str(text(value, "arguments"));
    need(arguments.is_ok(), || format!("arguments of {value}"))
}

/// The responses format.
pub(crate) fn responses(body: &Value) -> Rule {
    need(!text(body, "model").is_empty(), || "model: required".into())?;
    let items = list(body, "input");
    need(!items.is_empty(), || "input: required".into())?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let id = text(item, "call_id");
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let role = text(item, "role");
                let is_known = ["user", "assistant", "system", "developer"].contains(&role);
                need(is_known, || format!("item {i} of {role:?}"))?;
                let has_text = item["content"].as_str().is_some_and(|it| !it.is_empty());
                need(has_text || !list(item, "content").is_empty(), || {
                    format!("item {i} is empty")
                })?;
            }
            "function_call" => {
                function(item)?;
                need(!id.is_empty() && named.insert(id), || format!("item {i}: call id {id:?}"))?;
                open.insert(id);
            }
            "function_call_output" => {
                need(open.remove(id), || format!("item {i}: no call {id} before it"))?;
                need(!item["output"].is_null(), || format!("item {i}: no output"))?;
            }
            "reasoning" => {}
            other => return Err(format!("item {i} of type {other:?}")),
        }
    }
    need(open.is_empty(), || format!("no output for {open:?}"))?;
    let last = items.last().map(|it| (text(it, "role"), text(it, "type")));
    let ends_well =
        last.is_some_and(|(role, kind)| role == "user" || kind == "function_call_output");
    need(ends_well, || format!("the last item is {last:?}"))
}
