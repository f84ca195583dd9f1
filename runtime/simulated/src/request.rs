//! What a playbook may know of a request: read once from the body, handed to templates when asked.

use std::sync::{Arc, OnceLock};

use minijinja::value::{Enumerator, Object, Serde, Value};
use serde_json::Value as Json;

use super::{
    members::{list, str_of},
    openai::Dialect,
    tool_choice::ToolChoice,
};
use ennead_runtime::digest::Digest;

/// One request, taken apart.
#[derive(Debug)]
pub(super) struct Request {
    /// How it came, and how it is answered.
    pub(super) dialect: Dialect,
    pub(super) digest: Digest,
    /// The first message and the caller's name for its user: the same on every turn of a
    /// conversation.
    pub(super) conversation: Digest,
    pub(super) model: String,
    pub(super) max_tokens: u64,
    pub(super) stream: bool,
    pub(super) system: String,
    /// What people asked, in order; reminders of the harness left out.
    pub(super) prompts: Vec<String>,
    /// All text of user messages, reminders included.
    pub(super) users: String,
    /// The texts of the tool results of the last message.
    pub(super) result: String,
    pub(super) failed: bool,
    pub(super) turns: u64,
    pub(super) answers: u64,
    pub(super) tools: Vec<String>,
    /// Whether the answer may, must or must not call them.
    pub(super) choice: ToolChoice,
    pub(super) n_chars: u64,
    results: Vec<ToolResult>,
    n_new_results: usize,
    messages: Json,
    lazy: Lazy,
}

/// Built only when a template asks.
#[derive(Debug, Default)]
struct Lazy {
    results: OnceLock<Value>,
    messages: OnceLock<Value>,
}

#[derive(Debug)]
struct ToolResult {
    id: String,
    name: String,
    input: Json,
    text: String,
    is_error: bool,
    turn: u64,
}

impl Request {
    /// Takes apart a body that `check` has found well-formed.
    pub(super) fn read(dialect: Dialect, bytes: &[u8], mut body: Json) -> Self {
        let messages = body["messages"].take();
        let mut request = Self {
            dialect,
            digest: Digest::of(bytes),
            conversation: conversation(&messages, &body["metadata"]["user_id"]),
            model: str_of(&body["model"]).to_owned(),
            max_tokens: body["max_tokens"].as_u64().unwrap_or_default(),
            stream: body["stream"].as_bool().unwrap_or_default(),
            system: text_of(&body["system"]),
            prompts: Vec::new(),
            users: String::new(),
            result: String::new(),
            failed: false,
            turns: 0,
            answers: 0,
            tools: list(&body["tools"])
                .iter()
                .map(|tool| str_of(&tool["name"]).to_owned())
                .collect(),
            // What it would not take was refused.
            choice: ToolChoice::read(&body).unwrap_or_default(),
            n_chars: count_chars(bytes),
            results: Vec::new(),
            n_new_results: 0,
            messages: Json::Null,
            lazy: Lazy::default(),
        };
        request.walk(&messages);
        request.messages = messages;
        request
    }

    fn walk(&mut self, messages: &Json) {
        let mut calls: Vec<(&str, &Json)> = Vec::new();
        for message in list(messages) {
            let content = &message["content"];
            if message["role"] == "assistant" {
                self.turns += 1;
                self.answers += 1;
                calls = list(content)
                    .iter()
                    .filter(|b| b["type"] == "tool_use")
                    .map(|b| (str_of(&b["id"]), b))
                    .collect();
                continue;
            }
            if message["role"] != "user" {
                continue;
            }
            let n_before = self.results.len();
            for block in list(content).iter().filter(|block| block["type"] == "tool_result") {
                let id = str_of(&block["tool_use_id"]);
                let call =
                    calls.iter().find(|(call, _)| *call == id).map_or(&Json::Null, |(_, b)| *b);
                self.results.push(ToolResult {
                    id: id.to_owned(),
                    name: str_of(&call["name"]).to_owned(),
                    input: call["input"].clone(),
                    text: text_of(&block["content"]),
                    is_error: block["is_error"].as_bool().unwrap_or_default(),
                    turn: self.turns.saturating_sub(1),
                });
            }
            self.n_new_results = self.results.len() - n_before;
            let text = text_of(content);
            let asked = without_reminders(&text);
            if !asked.is_empty() {
                self.prompts.push(asked);
                self.answers = 0;
            }
            push_line(&mut self.users, &text);
        }
        for result in &self.results[self.results.len() - self.n_new_results..] {
            push_line(&mut self.result, &result.text);
            self.failed |= result.is_error;
        }
    }

    /// Returns the last text that a person asked.
    pub(super) fn prompt(&self) -> &str {
        self.prompts.last().map_or("", String::as_str)
    }

    /// Returns the first text that a person asked.
    pub(super) fn first_prompt(&self) -> &str {
        self.prompts.first().map_or("", String::as_str)
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "model" => Value::from(&self.model),
            "max_tokens" => Value::from(self.max_tokens),
            "stream" => Value::from(self.stream),
            "system" => Value::from(&self.system),
            "prompt" => Value::from(self.prompt()),
            "first_prompt" => Value::from(self.first_prompt()),
            "users" => Value::from(&self.users),
            "result" => Value::from(&self.result),
            "turns" => Value::from(self.turns),
            "answers" => Value::from(self.answers),
            "tools" => Value::from(self.tools.clone()),
            "tokens" => Value::from(self.n_chars / 4),
            "digest" => Value::from(self.digest.to_string()),
            "results" => self.lazy.results.get_or_init(|| values(&self.results)).clone(),
            "new_results" => values(&self.results[self.results.len() - self.n_new_results..]),
            "messages" => {
                self.lazy.messages.get_or_init(|| Value::from(Serde(&self.messages))).clone()
            }
            _ => return None,
        })
    }
}

/// What a template sees: the request, and the values the rule has set.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) request: Arc<Request>,
    pub(super) locals: Vec<(Arc<str>, Value)>,
    /// Bytes of the values.
    pub(super) n_bytes: usize,
}

impl Scope {
    pub(super) fn set(&mut self, name: &Arc<str>, value: Value) {
        self.locals.push((name.clone(), value));
    }

    pub(super) fn value(&self) -> Value {
        Value::from_object(self.clone())
    }
}

impl Object for Scope {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let local = self.locals.iter().rev().find(|(local, _)| **local == *name);
        local.map(|(_, value)| value.clone()).or_else(|| self.request.field(name))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

fn values(results: &[ToolResult]) -> Value {
    results
        .iter()
        .map(|result| {
            Value::from_pairs([
                ("id", Value::from(&result.id)),
                ("name", Value::from(&result.name)),
                ("input", Value::from(Serde(&result.input))),
                ("text", Value::from(&result.text)),
                ("is_error", Value::from(result.is_error)),
                ("turn", Value::from(result.turn)),
            ])
        })
        .collect::<Vec<_>>()
        .into()
}

/// A string, or the texts of the text blocks, one per line.
fn text_of(content: &Json) -> String {
    let mut text = String::new();
    match content {
        Json::String(whole) => text.push_str(whole),
        _ => {
            for block in list(content).iter().filter(|block| block["type"] == "text") {
                push_line(&mut text, str_of(&block["text"]));
            }
        }
    }
    text
}

fn push_line(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The text without what the harness put between `<system-reminder>` tags.
fn without_reminders(text: &str) -> String {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        kept.push_str(before);
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

fn conversation(messages: &Json, user: &Json) -> Digest {
    let first = list(messages).first().map(Json::to_string).unwrap_or_default();
    Digest::of(first.as_bytes()).chain(Digest::of(user.to_string().as_bytes()))
}

/// Counts the characters of UTF-8: every byte that begins one.
pub(super) fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64
}
