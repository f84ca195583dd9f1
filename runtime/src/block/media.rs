//! Images and documents: what they count for, and how a result of a tool holds them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Block, BlockKind};
use crate::{
    ids::ToolUseId,
    json::{JsonPiece, join},
    tokens::Size,
};

/// Returns what a block counts for that is not read as text, given its JSON object.
pub(super) fn size_of(kind: &str, wire: &str) -> Size {
    match kind {
        // 1,600 tokens, to which the provider scales a picture down.
        "image" => Size::of_chars(6400),
        // 3,000 tokens for a page of 50 kB, as the provider says of a full one.
        "document" if wire.contains(r#""type":"base64""#) => {
            Size::of_chars(wire.chars().count() as u64 / 6)
        }
        _ => Size::of(wire),
    }
}

/// Returns the JSON object, without its last brace, of a result with these images and documents.
pub(super) fn result_wire(id: &ToolUseId, text: &str, media: &[Block], is_error: bool) -> String {
    let mut wire = join(&[
        JsonPiece::Json(r#"{"type":"tool_result","tool_use_id":"#),
        JsonPiece::Text(id.as_str()),
        JsonPiece::Json(r#","content":[{"type":"text","text":"#),
        JsonPiece::Text(text),
        JsonPiece::Json("}"),
    ]);
    wire.reserve(media.iter().map(|it| it.wire_len() + 1).sum());
    for block in media {
        wire.push(',');
        wire.push_str(block.wire_open());
        wire.push('}');
    }
    wire.push(']');
    if is_error {
        wire.push_str(r#","is_error":true"#);
    }
    wire
}

/// A part of a result that is a list.
#[derive(Deserialize)]
struct ResultPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// Returns the texts of a result, joined by newlines, and the size that its images and documents count for. Cost:
/// linear in the text.
pub(super) fn content_of(content: &RawValue) -> (String, Size) {
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        return (text, Size::default());
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let (mut texts, mut size) = (Vec::new(), Size::default());
    for raw in parts {
        let Ok(part) = serde_json::from_str::<ResultPart<'_>>(raw.get()) else { continue };
        match part.kind.as_deref() {
            Some(kind @ ("image" | "document")) => {
                size = size + size_of(kind, raw.get());
            }
            _ => texts.extend(part.text),
        }
    }
    (texts.join("\n"), size)
}

impl Block {
    /// Returns whether it is a result whose content is a list, as that of one with images and documents is. Looks at the
    /// beginning of a text alone: nearly every result is one, and long ones are not to be read again.
    pub(crate) fn has_media(&self) -> bool {
        matches!(self.kind(), BlockKind::ToolResult { .. })
            && !self.wire_open().contains(r#""content":""#)
    }

    /// Returns the images and documents of a result, in order; none of any other block. Cost: linear in the block.
    pub(crate) fn media_in_result(&self) -> Vec<Block> {
        #[derive(Deserialize)]
        struct ResultList<'a> {
            #[serde(borrow)]
            content: Option<Vec<&'a RawValue>>,
        }
        if !self.has_media() {
            return Vec::new();
        }
        let wire = format!("{}}}", self.wire_open());
        let read = serde_json::from_str::<ResultList<'_>>(&wire).ok().and_then(|it| it.content);
        let blocks = read.unwrap_or_default().into_iter();
        let blocks = blocks.filter_map(|it| Block::from_wire(it.get()).ok());
        let is_media = |it: &Block| matches!(it.kind(), BlockKind::Opaque { kind } if matches!(&**kind, "image" | "document"));
        blocks.filter(is_media).collect()
    }
}
