//! Who is to read a view, and what of a conversation they can read.
//!
//! These are rules about providers and models; how messages are put together is the
//! same for all. Signatures hold on every platform that serves the model, and on no other model.

use super::server_tools::as_text;
use crate::{
    block::{Block, BlockKind, quote},
    digest::Digest,
    ids::ToolUseId,
    step5_model_call::{model_name, wire_format::WireFormat},
};

/// The reader of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewTarget<'a> {
    /// The wire format of the model's provider.
    pub format: WireFormat,
    /// The model by its name there; `None`: whichever has answered so far.
    pub model: Option<&'a str>,
}

impl ViewTarget<'_> {
    /// Returns whether reasoning that this model has signed goes back. That of an answer that does not name its model
    /// does.
    pub(super) fn reads_reasoning_of(self, model: Option<&str>) -> bool {
        self.format.features().signed_thinking && self.is_model(model)
    }

    fn is_model(self, model: Option<&str>) -> bool {
        match (self.model, model) {
            (Some(asked), Some(answered)) => model_name::is_same(asked, answered),
            _ => true,
        }
    }

    /// Returns a text as the provider takes it: citations point at what only another one has found.
    pub(super) fn text(self, block: &Block) -> Block {
        match block.as_text() {
            Some(text)
                if !self.format.features().server_tools
                    && block.wire_open().contains(r#""citations""#) =>
            {
                Block::text(text)
            }
            _ => block.clone(),
        }
    }

    /// Returns a block of another kind as the provider takes it: itself, a text, or nothing. Calls and results of
    /// server tools are looked at later, in pairs.
    pub(super) fn opaque(self, model: Option<&str>, block: &Block, kind: &str) -> Option<Block> {
        let features = self.format.features();
        match kind {
            // Items of another format mean nothing elsewhere, and are signed like reasoning.
            items if items.starts_with("openai_") => {
                let reads = features.items == Some(items) && self.is_model(model);
                reads.then(|| block.clone())
            }
            "compaction" if !features.server_tools => {
                let text = as_text(block);
                text.as_text().is_some_and(|it| it.contains('\n')).then_some(text)
            }
            "fallback" | "container_upload" if !features.server_tools => None,
            "image" | "document" if !features.linked_media => Some(linked(block, kind)),
            _ => Some(block.clone()),
        }
    }
}

/// A text for an image or document that is not in the request itself; any other comes back.
fn linked(block: &Block, kind: &str) -> Block {
    let mut wire = Vec::new();
    block.push_wire(&mut wire);
    let value: serde_json::Value = serde_json::from_slice(&wire).unwrap_or_default();
    let source = |name: &str| value.pointer(&format!("/source/{name}")).and_then(|it| it.as_str());
    match source("type") {
        Some("url") => Block::text(&format!("[{kind} at {}]", source("url").unwrap_or_default())),
        Some("file") => Block::text(&format!("[{kind} in a file of another provider]")),
        _ => block.clone(),
    }
}

/// The id of a call as any provider takes it: letters, digits, `_` and `-`. An id that has others
/// gets a digest after it, so that two ids never become one.
fn plain_id(id: &ToolUseId) -> ToolUseId {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !id.as_str().is_empty() && id.as_str().chars().all(fits) {
        return id.clone();
    }
    let plain: String = id.as_str().chars().map(|it| if fits(it) { it } else { '_' }).collect();
    let digest = Digest::of(id.as_str().as_bytes()).to_string();
    let digest: String = digest.chars().filter(|it| fits(*it)).take(8).collect();
    ToolUseId::new(format!("{plain}_{digest}"))
}

/// Sets the id of a call or a result to the one that [`plain_id`] makes.
pub(super) fn give_plain_id(block: &mut Block) {
    let (BlockKind::ToolUse { id, .. } | BlockKind::ToolResult { id, .. }) = block.kind() else {
        return;
    };
    let plain = plain_id(id);
    if plain == *id {
        return;
    }
    *block = match block.kind() {
        BlockKind::ToolUse { name, input, .. } => Block::tool_use(&plain, name, input),
        BlockKind::ToolResult { text, is_error, .. } => {
            // Images in the result stay; where the provider's bytes write the id in another way,
            // only the text does.
            let member = |id: &ToolUseId| format!(r#""tool_use_id":{}"#, quote(id.as_str()));
            let open = block.wire_open().replacen(&member(id), &member(&plain), 1);
            let has_it = |it: &Block| it.as_tool_result().is_some_and(|(id, ..)| *id == plain);
            let renamed = Block::from_wire(&format!("{open}}}")).ok().filter(has_it);
            renamed.unwrap_or_else(|| Block::tool_result(&plain, text, *is_error))
        }
        _ => return,
    };
}
