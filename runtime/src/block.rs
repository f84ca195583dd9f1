//! Blocks: the pieces a message is made of, encoded once.
//!
//! A block keeps its JSON text without the closing brace, its length in characters and its digest.
//! A request refers to kept texts, so the cost of a turn follows what is new in it and not the
//! length of the history. A clone is a reference.

mod media;
mod shape;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    digest::Digest,
    ids::{ToolName, ToolUseId},
    json::{JsonPiece, join, without_lone_halves},
    tokens::{Size, Tokens},
};

pub use crate::json::quote;

/// One block of a message. Cheap to clone.
#[derive(Clone)]
pub struct Block(Arc<BlockParts>);

struct BlockParts {
    kind: BlockKind,
    wire: Box<str>,
    size: Size,
    digest: Digest,
    is_odd: bool,
}

/// What a block is. Texts are as the model or the user wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// Text that a person or the model wrote.
    Text(Box<str>),
    /// Reasoning, with the provider's signature if it gave one.
    Thinking {
        /// The reasoning; empty when the provider leaves it out.
        thinking: Box<str>,
        /// Goes back to the provider unchanged.
        signature: Option<Box<str>>,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking,
    /// The model asks for a tool.
    ToolUse {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        name: ToolName,
        /// The input as JSON text; always an object.
        input: Box<str>,
    },
    /// The answer to a tool use.
    ToolResult {
        /// The call that is answered.
        id: ToolUseId,
        /// What the model reads: the texts of the result, joined by newlines.
        text: Box<str>,
        /// The call failed, was denied or was interrupted.
        is_error: bool,
    },
    /// Anything else a provider sent (images, documents, server tools); passed through whole.
    Opaque {
        /// The `type` of the block.
        kind: Box<str>,
    },
    /// Somebody asked the run to stop. Never sent to a model.
    StopRequest,
    /// An error that no remedy removed. Never sent to a model.
    Error(Box<str>),
}

impl Block {
    /// Returns a block of plain text.
    pub fn text(text: &str) -> Self {
        let wire = join(&[JsonPiece::Json(r#"{"type":"text","text":"#), JsonPiece::Text(text)]);
        Self::new(BlockKind::Text(text.into()), wire, Size::of(text))
    }

    /// Returns a reasoning block, with the provider's signature if there is one.
    pub fn thinking(thinking: &str, signature: Option<&str>) -> Self {
        let mut wire = format!(r#"{{"type":"thinking","thinking":{}"#, quote(thinking));
        if let Some(signature) = signature {
            wire.push_str(&format!(r#","signature":{}"#, quote(signature)));
        }
        let kind =
            BlockKind::Thinking { thinking: thinking.into(), signature: signature.map(Into::into) };
        Self::new(kind, wire, Size::of(thinking))
    }

    /// Makes a tool use. `input` is the JSON text of an object and goes back as it came, so that a cached prefix stays
    /// byte-identical, but for halves of surrogate pairs that are alone: no provider can parse them, so U+FFFD takes
    /// their place.
    pub fn tool_use(id: &ToolUseId, name: &ToolName, input: &str) -> Self {
        let mended = without_lone_halves(input);
        let input = mended.as_deref().unwrap_or(input);
        let wire = join(&[
            JsonPiece::Json(r#"{"type":"tool_use","id":"#),
            JsonPiece::Text(id.as_str()),
            JsonPiece::Json(r#","name":"#),
            JsonPiece::Text(name.as_str()),
            JsonPiece::Json(r#","input":"#),
            JsonPiece::Json(input),
        ]);
        let kind = BlockKind::ToolUse { id: id.clone(), name: name.clone(), input: input.into() };
        Self::new(kind, wire, Size::of(input))
    }

    /// Makes the answer to a tool use.
    pub fn tool_result(id: &ToolUseId, text: &str, is_error: bool) -> Self {
        let error = if is_error { r#","is_error":true"# } else { "" };
        let wire = join(&[
            JsonPiece::Json(r#"{"type":"tool_result","tool_use_id":"#),
            JsonPiece::Text(id.as_str()),
            JsonPiece::Json(r#","content":"#),
            JsonPiece::Text(text),
            JsonPiece::Json(error),
        ]);
        let kind = BlockKind::ToolResult { id: id.clone(), text: text.into(), is_error };
        Self::new(kind, wire, Size::of(text))
    }

    /// Makes the answer to a tool use: a text, and after it images and documents. Without any it is that of
    /// [`Block::tool_result`].
    pub(crate) fn media_result(
        id: &ToolUseId,
        text: &str,
        media: &[Block],
        is_error: bool,
    ) -> Self {
        if media.is_empty() {
            return Self::tool_result(id, text, is_error);
        }
        let wire = media::result_wire(id, text, media, is_error);
        let kind = BlockKind::ToolResult { id: id.clone(), text: text.into(), is_error };
        Self::new(kind, wire, Size::of(text) + media.iter().map(Self::size).sum())
    }

    /// Makes a request to stop, for the stop check to find.
    pub(crate) fn stop_request() -> Self {
        Self::new(BlockKind::StopRequest, r#"{"type":"stop_request""#.into(), Size::default())
    }

    /// Makes an error that ended a turn, for the stop check to find.
    pub(crate) fn error(text: &str) -> Self {
        let wire = format!(r#"{{"type":"error","error":{}"#, quote(text));
        Self::new(BlockKind::Error(text.into()), wire, Size::default())
    }

    /// Reads a block as a provider or a transcript wrote it. Its bytes are kept, but for a cache mark, since marks are
    /// a property of the request, and for halves of surrogate pairs that are alone.
    ///
    /// # Errors
    ///
    /// [`NotABlock`] when the text is not a JSON object with the fields that its `type` demands.
    pub fn from_wire(text: &str) -> Result<Self, NotABlock> {
        let text = text.trim();
        // Inputs and blocks of unknown types are not parsed here, and no provider could parse them.
        if let Some(mended) = without_lone_halves(text) {
            return Self::from_wire(&mended);
        }
        let fields: Fields<'_> = serde_json::from_str(text).map_err(NotABlock::Json)?;
        if fields.cache_control.is_some() {
            return Self::from_wire(&without_mark(text)?);
        }
        let missing = |field| NotABlock::Missing { field };
        let (kind, size) = match fields.kind.as_ref() {
            "text" => {
                let text = fields.text.ok_or(missing("text"))?;
                let size = Size::of(&text);
                (BlockKind::Text(text.into()), size)
            }
            "thinking" => {
                let thinking = fields.thinking.unwrap_or_default();
                let size = Size::of(&thinking);
                let signature = fields.signature.filter(|it| !it.is_empty()).map(Into::into);
                (BlockKind::Thinking { thinking: thinking.into(), signature }, size)
            }
            "redacted_thinking" => (BlockKind::RedactedThinking, Size::default()),
            "tool_use" => {
                let id = ToolUseId::new(fields.id.ok_or(missing("id"))?.as_ref());
                let name = ToolName::new(fields.name.ok_or(missing("name"))?.as_ref());
                let input = fields.input.map_or("{}", RawValue::get);
                (BlockKind::ToolUse { id, name, input: input.into() }, Size::of(input))
            }
            "tool_result" => {
                let id = fields.tool_use_id.ok_or(missing("tool_use_id"))?;
                let (text, of_media) = fields.content.map(media::content_of).unwrap_or_default();
                let size = Size::of(&text) + of_media;
                let kind = BlockKind::ToolResult {
                    id: ToolUseId::new(id.as_ref()),
                    text: text.into(),
                    is_error: fields.is_error.unwrap_or(false),
                };
                (kind, size)
            }
            "stop_request" => (BlockKind::StopRequest, Size::default()),
            "error" => (BlockKind::Error(fields.error.unwrap_or_default().into()), Size::default()),
            other => (BlockKind::Opaque { kind: other.into() }, media::size_of(other, text)),
        };
        let is_odd = shape::is_odd(&kind, text);
        let open = text.strip_suffix('}').unwrap_or(text).trim_end();
        let digest = Digest::of(open.as_bytes());
        Ok(Self(Arc::new(BlockParts { kind, wire: open.into(), size, digest, is_odd })))
    }

    /// Makes an image or a document of its JSON object without the closing brace.
    pub(crate) fn media(kind: &str, wire: String) -> Self {
        let size = media::size_of(kind, &format!("{wire}}}"));
        Self::new(BlockKind::Opaque { kind: kind.into() }, wire, size)
    }

    fn new(kind: BlockKind, wire: String, size: Size) -> Self {
        let digest = Digest::of(wire.as_bytes());
        Self(Arc::new(BlockParts { kind, wire: wire.into(), size, digest, is_odd: false }))
    }

    /// Returns the same block, marked as one of which it is not known whether its provider wrote it so: its line in a
    /// transcript was changed, or somebody else wrote the line.
    #[must_use]
    pub fn doubted(&self) -> Self {
        let BlockParts { kind, wire, size, digest, .. } = &*self.0;
        let (kind, wire) = (kind.clone(), wire.clone());
        Self(Arc::new(BlockParts { kind, wire, size: *size, digest: *digest, is_odd: true }))
    }

    /// Returns whether it is of a type that is not known here, or a picture or document without a source: on a line
    /// that nothing vouches for that may be a changed letter.
    pub(crate) fn is_unusual(&self) -> bool {
        match self.kind() {
            BlockKind::Opaque { kind } => {
                shape::is_unusual(kind, &format!("{}}}", self.wire_open()))
            }
            _ => false,
        }
    }

    /// Returns whether a provider may refuse its bytes: it lacks a member that its type needs, has one that its type
    /// does not know, or is [`Block::doubted`].
    pub(crate) fn is_odd(&self) -> bool {
        self.0.is_odd
    }

    /// Returns the kind of the block, with its content.
    pub fn kind(&self) -> &BlockKind {
        &self.0.kind
    }

    /// Returns its JSON object without the closing brace, so that a request can add a cache mark. A mark is a property
    /// of the view, never of the block.
    pub fn wire_open(&self) -> &str {
        &self.0.wire
    }

    /// Appends the whole JSON object to `out`.
    pub fn push_wire(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.wire.as_bytes());
        out.push(b'}');
    }

    /// Counts the bytes of the whole JSON object.
    pub(crate) fn wire_len(&self) -> usize {
        self.0.wire.len() + 1
    }

    /// Counts the characters of its content: texts, reasoning, results, inputs as JSON.
    pub fn chars(&self) -> u64 {
        self.0.size.chars
    }

    /// Returns the size of the block, with characters weighed by their kinds.
    pub(crate) fn size(&self) -> Size {
        self.0.size
    }

    /// Returns the digest of [`Block::wire_open`].
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Returns the text; `None` if it is not a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self.kind() {
            BlockKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the id, the tool and the input of the call; `None` if it is not a tool use.
    pub fn as_tool_use(&self) -> Option<(&ToolUseId, &ToolName, &str)> {
        match self.kind() {
            BlockKind::ToolUse { id, name, input } => Some((id, name, input)),
            _ => None,
        }
    }

    /// Returns the call that it answers, the text, and whether the call failed; `None` if it is not a tool result.
    pub fn as_tool_result(&self) -> Option<(&ToolUseId, &str, bool)> {
        match self.kind() {
            BlockKind::ToolResult { id, text, is_error } => Some((id, text, *is_error)),
            _ => None,
        }
    }

    /// Returns the size of the block by characters alone.
    pub fn tokens(&self) -> Tokens {
        Tokens::from_chars(self.chars())
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest() && self.wire_open() == other.wire_open()
    }
}

impl Eq for Block {}

/// Why a text is not a block.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotABlock {
    /// It is not a JSON object with a `type`.
    #[error("not a block object")]
    Json(#[source] serde_json::Error),
    /// A field that the type demands is missing.
    #[error("the block has no `{field}`")]
    Missing {
        /// Name of the missing field.
        field: &'static str,
    },
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    text: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow)]
    error: Option<std::borrow::Cow<'a, str>>,
    cache_control: Option<serde::de::IgnoredAny>,
}

/// The JSON object without its `cache_control`; the other members keep their bytes, ordered by name
/// after `type`.
fn without_mark(text: &str) -> Result<String, NotABlock> {
    let mut members: BTreeMap<&str, &RawValue> =
        serde_json::from_str(text).map_err(NotABlock::Json)?;
    members.remove("cache_control");
    let kind = members.remove_entry("type");
    let members: Vec<String> = kind
        .into_iter()
        .chain(members)
        .map(|(name, value)| format!("{}:{}", quote(name), value.get()))
        .collect();
    Ok(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests;
