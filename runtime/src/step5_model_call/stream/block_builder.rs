//! One block while it arrives: begin, additions, end.
//!
//! The message knows only indexes; this module knows the parts of each kind of block.
//! Blocks that arrive whole keep the provider's bytes.

use std::borrow::Cow;

use memchr::{memchr2, memchr2_iter, memmem};
use serde_json::value::RawValue;

use super::{
    preview::Preview,
    wire::{Addition, BlockStart, WireText},
};
use crate::{
    block::{Block, quote},
    ids::{ToolName, ToolUseId},
    step5_model_call::InvalidInput,
};

/// A block that is not yet at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockBuilder {
    Text { text: String, citations: Vec<String>, rest: String },
    Thinking { thinking: String, signature: Option<String>, rest: String },
    Tool(ToolBuilder),
    Whole { raw: String, added: Option<String> },
}

/// A tool use that is not yet at its end; also one that the provider runs itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolBuilder {
    kind: String,
    pub(super) id: ToolUseId,
    pub(super) name: ToolName,
    start_input: String,
    joined: String,
    rest: String,
    pub(super) preview: Preview,
}

/// A block at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) block: Block,
    pub(super) invalid: Option<InvalidInput>,
}

/// What an addition is, to those who watch.
#[derive(Debug)]
pub(super) enum AddedPiece<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Reasoning(Cow<'a, str>),
    ToolInput,
}

/// The event lacks what its kind demands.
#[derive(Debug)]
pub(super) struct Malformed(pub(super) &'static str);

/// Bytes that there is room for in a text from its start on: most texts grow by some hundred deltas.
pub(super) const TEXT_ROOM: usize = 256;

fn roomy(start: &str) -> String {
    let mut text = String::with_capacity(TEXT_ROOM.max(start.len()));
    text.push_str(start);
    text
}

impl BlockBuilder {
    /// Begins with the `content_block` of a start event.
    pub(super) fn start(raw: &str) -> Result<Box<Self>, Malformed> {
        let raw = single_line(raw);
        let start: BlockStart<'_> =
            serde_json::from_str(&raw).map_err(|_| Malformed("the block is not an object"))?;
        let kind = start.kind.ok_or(Malformed("the block has no type"))?.0;
        let owned = |text: Option<WireText<'_>>| text.map(|it| it.0.into_owned());
        Ok(Box::new(match kind.as_ref() {
            "text" => Self::Text {
                text: start.text.map_or_else(String::new, |it| roomy(&it.0)),
                citations: start.citations.iter().flatten().map(|it| it.get().into()).collect(),
                rest: start.rest,
            },
            "thinking" => Self::Thinking {
                thinking: start.thinking.map_or_else(String::new, |it| roomy(&it.0)),
                signature: owned(start.signature),
                rest: start.rest,
            },
            "tool_use" | "server_tool_use" | "mcp_tool_use" => Self::Tool(ToolBuilder {
                kind: kind.into_owned(),
                id: owned(start.id).ok_or(Malformed("the tool use has no id"))?.into(),
                name: owned(start.name).ok_or(Malformed("the tool use has no name"))?.into(),
                start_input: start.input.map_or("{}", RawValue::get).into(),
                joined: String::with_capacity(TEXT_ROOM),
                rest: start.rest,
                preview: Preview::default(),
            }),
            _ => Self::Whole { raw: raw.into_owned(), added: None },
        }))
    }

    /// Returns what a block has to show from its start on.
    pub(super) fn initial(&self) -> AddedPiece<'_> {
        match self {
            Self::Text { text, .. } => AddedPiece::Text(Cow::Borrowed(text)),
            Self::Thinking { thinking, .. } => AddedPiece::Reasoning(Cow::Borrowed(thinking)),
            Self::Tool(_) | Self::Whole { .. } => AddedPiece::Nothing,
        }
    }

    /// Takes an addition. Kinds of additions that this version does not know, or that do not
    /// belong to this kind of block, change nothing.
    pub(super) fn add<'a>(&mut self, addition: Addition<'a>) -> Result<AddedPiece<'a>, Malformed> {
        match (self, addition) {
            (Self::Text { text, .. }, Addition::Text(added)) => {
                let added = added.ok_or(Malformed("the text delta has no text"))?;
                text.push_str(&added);
                Ok(AddedPiece::Text(added))
            }
            (Self::Text { citations, .. }, Addition::Citation(citation)) => {
                let citation = citation.ok_or(Malformed("the delta has no citation"))?;
                citations.push(single_line(citation.get()).into_owned());
                Ok(AddedPiece::Nothing)
            }
            (Self::Thinking { thinking, .. }, Addition::Thinking(added)) => {
                let added = added.ok_or(Malformed("the delta has no thinking"))?;
                thinking.push_str(&added);
                Ok(AddedPiece::Reasoning(added))
            }
            (Self::Thinking { signature, .. }, Addition::Signature(added)) => {
                let added = added.ok_or(Malformed("the delta has no signature"))?;
                signature.get_or_insert_default().push_str(&added);
                Ok(AddedPiece::Nothing)
            }
            (Self::Tool(tool), Addition::Json(added)) => {
                let added = added.ok_or(Malformed("the delta has no JSON"))?;
                tool.joined.push_str(&added);
                Ok(AddedPiece::ToolInput)
            }
            (Self::Whole { added, .. }, Addition::Content(more)) => {
                let more = more.ok_or(Malformed("the delta has no content"))?;
                added.get_or_insert_default().push_str(&more);
                Ok(AddedPiece::Nothing)
            }
            _ => Ok(AddedPiece::Nothing),
        }
    }

    /// Ends the block and returns it. Fails where its type demands a field that never came.
    pub(super) fn finish(self) -> Result<Finished, Malformed> {
        let whole = |wire: &str| {
            Block::from_wire(wire).map_err(|_| Malformed("the block lacks what its type demands"))
        };
        let mut invalid = None;
        let block = match self {
            Self::Text { text, citations, rest } if citations.is_empty() && rest.is_empty() => {
                Block::text(&text)
            }
            Self::Text { text, citations, rest } => {
                let text = quote(&text);
                let citations = if citations.is_empty() {
                    String::new()
                } else {
                    format!(r#","citations":[{}]"#, citations.join(","))
                };
                whole(&format!(r#"{{"type":"text","text":{text}{citations}{rest}}}"#))?
            }
            Self::Thinking { thinking, signature, rest } => {
                let thinking = quote(&thinking);
                let signature = signature
                    .map(|it| format!(r#","signature":{}"#, quote(&it)))
                    .unwrap_or_default();
                whole(&format!(r#"{{"type":"thinking","thinking":{thinking}{signature}{rest}}}"#))?
            }
            Self::Tool(tool) => {
                let (input, why) = tool.input();
                invalid = why;
                if tool.kind == "tool_use" && tool.rest.is_empty() {
                    Block::tool_use(&tool.id, &tool.name, &input)
                } else {
                    let [kind, id, name] =
                        [&tool.kind, tool.id.as_str(), tool.name.as_str()].map(quote);
                    let rest = &tool.rest;
                    whole(&format!(
                        r#"{{"type":{kind},"id":{id},"name":{name},"input":{input}{rest}}}"#
                    ))?
                }
            }
            Self::Whole { raw, added: None } => whole(&raw)?,
            Self::Whole { raw, added: Some(content) } => {
                let mut fields: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(&raw)
                        .map_err(|_| Malformed("the block is not an object"))?;
                fields.insert("content".into(), content.into());
                whole(&serde_json::Value::Object(fields).to_string())?
            }
        };
        // A server tool is run by the provider; its input is none of ours.
        let invalid = invalid.filter(|_| block.as_tool_use().is_some());
        Ok(Finished { block, invalid })
    }
}

impl ToolBuilder {
    /// Returns the next preview of the input, if there is enough more to show.
    pub(super) fn next_preview(&mut self) -> Option<String> {
        self.preview.advance(&self.joined);
        self.preview.take(&self.joined)
    }

    /// Returns the preview at the end of the input, if there is anything more to show.
    pub(super) fn last_preview(&mut self) -> Option<String> {
        self.preview.advance(&self.joined);
        self.preview.take_last(&self.joined)
    }

    /// The input as JSON text of an object, or `{}` and what is wrong with it. Nothing at all
    /// means the input of the start.
    fn input(&self) -> (Cow<'_, str>, Option<InvalidInput>) {
        let text = if self.joined.is_empty() { &self.start_input } else { &self.joined };
        match check_input(text) {
            Ok(()) => (single_line(text.trim()), None),
            Err(why) => (Cow::Borrowed("{}"), Some(why)),
        }
    }
}

/// Checks whether a text is the JSON text of an object that any reader will accept.
pub(crate) fn check_input(text: &str) -> Result<(), InvalidInput> {
    let invalid = |_| InvalidInput::InvalidJson;
    let raw: &RawValue = serde_json::from_str(text).map_err(invalid)?;
    // Reading over a text does not look at halves of surrogate pairs nor at depth. Both would stop
    // readers of the transcript later, so texts that may have them are read in full.
    let n_brackets = memchr2_iter(b'[', b'{', text.as_bytes()).count();
    if 100 < n_brackets || memmem::find(text.as_bytes(), b"\\u").is_some() {
        serde_json::from_str::<serde_json::Value>(text).map_err(invalid)?;
    }
    if raw.get().starts_with('{') { Ok(()) } else { Err(InvalidInput::NotAnObject) }
}

/// Replaces line ends in a JSON text, so that it fits on a line of a transcript. In JSON they can only be between
/// values.
pub(crate) fn single_line(json: &str) -> Cow<'_, str> {
    match memchr2(b'\n', b'\r', json.as_bytes()) {
        None => Cow::Borrowed(json),
        Some(_) => Cow::Owned(json.replace(['\n', '\r'], " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::MessagesDelta;
    use super::*;

    /// The wire text of a block made from a start and deltas.
    #[track_caller]
    fn check(start: &str, deltas: &[&str], wire: &str, invalid: Option<InvalidInput>) {
        let mut builder = BlockBuilder::start(start).unwrap();
        for delta in deltas {
            let delta: MessagesDelta<'_> = serde_json::from_str(delta).unwrap();
            builder.add(delta.addition()).unwrap();
        }
        let finished = builder.finish().unwrap();
        let mut text = Vec::new();
        finished.block.push_wire(&mut text);
        assert_eq!(String::from_utf8(text).unwrap(), wire);
        assert_eq!(finished.invalid, invalid);
    }

    fn json(partial: &str) -> String {
        format!(r#"{{"type":"input_json_delta","partial_json":{}}}"#, quote(partial))
    }

    // REQ: MDL-1
    #[test]
    fn tool_input_is_the_joined_text_or_an_empty_object() {
        const START: &str = r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#;
        let made = |input: &str| START.replace("{}", input);
        let check = |pieces: &[&str], input: &str, invalid| {
            let deltas: Vec<String> = pieces.iter().map(|it| json(it)).collect();
            let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
            check(START, &deltas, &made(input), invalid);
        };
        check(&["", r#"{"a":"#, "1}"], r#"{"a":1}"#, None);
        check(&[], "{}", None);
        check(&["{\n\"a\": 1 \r\n}"], "{ \"a\": 1   }", None);
        check(&[r#"{"a":"#], "{}", Some(InvalidInput::InvalidJson));
        check(&["[1]"], "{}", Some(InvalidInput::NotAnObject));
        check(&["{} {}"], "{}", Some(InvalidInput::InvalidJson));
        check(&[r#"{"half":"\ud83d"}"#], "{}", Some(InvalidInput::InvalidJson));
        check(&[r#"{"pair":"\ud83d\ude00"}"#], r#"{"pair":"\ud83d\ude00"}"#, None);
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(2_000), "]".repeat(2_000));
        check(&[&deep], "{}", Some(InvalidInput::InvalidJson));
    }

    // REQ: MDL-1
    #[test]
    fn omitted_thinking_keeps_its_signature() {
        check(
            r#"{"type":"thinking","thinking":"","signature":""}"#,
            &[r#"{"type":"signature_delta","signature":"S"}"#],
            r#"{"type":"thinking","thinking":"","signature":"S"}"#,
            None,
        );
    }

    // REQ: MDL-1
    #[test]
    fn citations_server_tools_and_unknown_fields_are_kept() {
        check(
            r#"{"type":"text","text":"","citations":[]}"#,
            &[
                r#"{"type":"text_delta","text":"a"}"#,
                r#"{"type":"citations_delta","citation":{"type":"char_location","n":1}}"#,
            ],
            r#"{"type":"text","text":"a","citations":[{"type":"char_location","n":1}]}"#,
            None,
        );
        check(
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
            &[&json(r#"{"q":1}"#)],
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}"#,
            None,
        );
        check(
            r#"{"type":"tool_use","id":"t","name":"n","input":{},"caller":{"type":"direct"}}"#,
            &[],
            r#"{"type":"tool_use","id":"t","name":"n","input":{},"caller":{"type":"direct"}}"#,
            None,
        );
        let whole = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[ {"z":1} ]}"#;
        check(whole, &[r#"{"type":"sparkle_delta"}"#], whole, None);
    }

    #[test]
    fn block_without_what_it_needs_is_malformed() {
        assert!(BlockBuilder::start(r#"{"type":"tool_use","name":"n"}"#).is_err());
        assert!(BlockBuilder::start(r#"{"text":"n"}"#).is_err());
        assert!(BlockBuilder::start("3").is_err());
    }
}
