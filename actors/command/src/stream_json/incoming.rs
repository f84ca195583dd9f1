//! What a line of the program means.

use ennead::PromptBlock;
use serde_json::{Map, Value};

/// A line of the program.
#[derive(Debug)]
pub enum Incoming {
    /// A prompt, which begins a run or waits for the one under way.
    Prompt(Prompt),
    /// The program wants something done, and an answer.
    Request {
        /// Names the request in its answer.
        id: String,
        /// The kind of the request, by its name on the wire.
        subtype: String,
        /// All fields of the request.
        fields: Map<String, Value>,
    },
    /// The program answers a question of ours.
    Answer {
        /// The id of the question that is answered.
        id: String,
        /// The answer; the error in words when the program could not give one.
        result: Result<Value, String>,
    },
    /// The program no longer wants the answer to this request.
    Cancel {
        /// The id of the request that is cancelled.
        id: String,
    },
    /// A line of a kind that is of no interest here.
    Other,
}

/// A prompt of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its content, in order.
    pub content: Vec<PromptBlock>,
    /// The name that the program gave it.
    pub uuid: Option<String>,
    /// Whether the program says that a person wrote it.
    pub is_human: bool,
    /// Whether it is to be taken as it is: no command is looked for in it.
    pub is_literal: bool,
    /// Whether it begins a run. What asks for none goes in front of the next prompt that does.
    pub is_asking: bool,
    /// What the program wrote before it without asking for a run, in order.
    pub said_before: Vec<PromptBlock>,
}

/// Why a line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// It is not a JSON object.
    #[error("a line on standard input is not a JSON object: {0}")]
    NotAnObject(String),
    /// A prompt has no content that can be used.
    #[error("a prompt on standard input cannot be used: {0}")]
    Prompt(String),
    /// A control line lacks a field.
    #[error("a control line on standard input has no `{0}`")]
    Missing(&'static str),
}

/// Reads a line.
///
/// # Errors
///
/// [`BadLine`]; the lines after it can be read all the same.
pub fn read(line: &str) -> Result<Incoming, BadLine> {
    let not_an_object = |why: String| BadLine::NotAnObject(why);
    let value: Value = serde_json::from_str(line).map_err(|it| not_an_object(it.to_string()))?;
    let Value::Object(mut line) = value else {
        return Err(not_an_object("it is another value".into()));
    };
    let kind = line.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "user" => prompt(&line).map(Incoming::Prompt),
        "control_request" => {
            let id = text(&line, "request_id").ok_or(BadLine::Missing("request_id"))?;
            let fields = match line.remove("request") {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            let subtype = text(&fields, "subtype").unwrap_or_default();
            Ok(Incoming::Request { id, subtype, fields })
        }
        "control_response" => {
            let Some(Value::Object(mut answer)) = line.remove("response") else {
                return Err(BadLine::Missing("response"));
            };
            let id = text(&answer, "request_id").ok_or(BadLine::Missing("request_id"))?;
            let result = match text(&answer, "subtype").as_deref() {
                Some("success") => Ok(answer.remove("response").unwrap_or_default()),
                _ => Err(text(&answer, "error").unwrap_or_else(|| "no reason was given".into())),
            };
            Ok(Incoming::Answer { id, result })
        }
        "control_cancel_request" => {
            let id = text(&line, "request_id").ok_or(BadLine::Missing("request_id"))?;
            Ok(Incoming::Cancel { id })
        }
        _ => Ok(Incoming::Other),
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn prompt(line: &Map<String, Value>) -> Result<Prompt, BadLine> {
    let bad = |why: &str| BadLine::Prompt(why.to_owned());
    let content = line.get("message").and_then(|it| it.get("content"));
    let content = match content.ok_or_else(|| bad("it has no content"))? {
        Value::String(text) => vec![PromptBlock::text(text)],
        Value::Array(blocks) => {
            let blocks = blocks.iter().filter(|it| !is_blank(it));
            blocks.map(block).collect::<Result<Vec<_>, _>>().map_err(BadLine::Prompt)?
        }
        _ => return Err(bad("its content is neither a text nor a list")),
    };
    let origin = line.get("origin").and_then(|it| it.get("kind")).and_then(Value::as_str);
    let uuid = text(line, "uuid");
    Ok(Prompt {
        content,
        uuid,
        is_human: origin == Some("human"),
        is_literal: line.get("client_composed") == Some(&true.into()),
        is_asking: line.get("shouldQuery") != Some(&false.into()),
        said_before: Vec::new(),
    })
}

/// A block of a prompt, as the Messages API has it; the error in words.
fn block(block: &Value) -> Result<PromptBlock, String> {
    let (kind, source) = (block["type"].as_str().unwrap_or_default(), &block["source"]);
    let title = block["title"].as_str();
    let field = |name: &str| source[name].as_str().unwrap_or_default();
    let made = match (kind, field("type")) {
        ("text", _) => match block["text"].as_str() {
            Some(text) => return Ok(PromptBlock::text(text)),
            None => return Err("a text block has no text".into()),
        },
        ("image", "base64") => PromptBlock::image(field("media_type"), field("data")),
        ("image", "url") => PromptBlock::image_at(field("url")),
        ("document", "base64") => PromptBlock::pdf(field("data"), title),
        ("document", "url") => PromptBlock::pdf_at(field("url"), title),
        ("document", "text") => PromptBlock::document(field("data"), title),
        (kind, source) => return Err(format!("there is no block `{kind}` with source `{source}`")),
    };
    made.map_err(|error| error.to_string())
}

/// Blank texts between other blocks say nothing, and no provider takes them.
fn is_blank(block: &Value) -> bool {
    block["type"] == "text" && block["text"].as_str().is_some_and(|it| it.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_value(value: &Value) -> Result<Incoming, BadLine> {
        read(&value.to_string())
    }

    // REQ: SUR-3
    #[test]
    fn prompt_is_a_text_or_blocks_and_keeps_its_name() {
        let text =
            json!({"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u"});
        let Ok(Incoming::Prompt(prompt)) = read_value(&text) else { panic!("no prompt") };
        assert_eq!(
            (prompt.content, prompt.uuid),
            (vec![PromptBlock::text("hi")], Some("u".into()))
        );
        let blocks = json!([{"type": "text", "text": " "}, {"type": "text", "text": "a"}]);
        let line =
            json!({"type": "user", "message": {"content": blocks}, "origin": {"kind": "human"}});
        let Ok(Incoming::Prompt(prompt)) = read_value(&line) else { panic!("no prompt") };
        assert_eq!((prompt.content.len(), prompt.is_human, prompt.is_asking), (1, true, true));
        let line = json!({"type": "user", "message": {"content": "a"}, "shouldQuery": false});
        let Ok(Incoming::Prompt(prompt)) = read_value(&line) else { panic!("no prompt") };
        assert!(!prompt.is_asking);
    }

    // REQ: SUR-3
    #[test]
    fn line_that_cannot_be_used_is_an_error_and_an_unknown_kind_is_none() {
        for line in ["", "[1]", "{", "5"] {
            assert!(matches!(read(line), Err(BadLine::NotAnObject(_))), "{line}");
        }
        assert!(matches!(read_value(&json!({"type": "later"})), Ok(Incoming::Other)));
        assert!(matches!(read_value(&json!({"type": "user"})), Err(BadLine::Prompt(_))));
        let odd = json!({"type": "user", "message": {"content": [{"type": "video"}]}});
        assert!(matches!(read_value(&odd), Err(BadLine::Prompt(_))));
        let nameless = json!({"type": "control_request", "request": {"subtype": "interrupt"}});
        assert!(matches!(read_value(&nameless), Err(BadLine::Missing("request_id"))));
    }

    // REQ: SUR-3
    #[test]
    fn answers_are_what_was_asked_for_or_an_error() {
        let answer = |response: Value| {
            let line = json!({"type": "control_response", "response": response});
            let Ok(Incoming::Answer { id, result }) = read_value(&line) else { panic!("{line}") };
            assert_eq!(id, "r");
            result
        };
        let success = json!({"subtype": "success", "request_id": "r", "response": {"a": 1}});
        assert_eq!(answer(success), Ok(json!({"a": 1})));
        let error = json!({"subtype": "error", "request_id": "r", "error": "no"});
        assert_eq!(answer(error), Err("no".into()));
    }
}
