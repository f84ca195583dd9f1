//! Pictures and documents that a provider has refused: a text is sent in the place of each.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    block::{Block, BlockKind},
    ids::EntryId,
    message::{Message, Messages},
};

/// Returns whether a message has a picture or a document, in a result too.
pub(crate) fn has_media(message: &Message) -> bool {
    message.blocks.iter().any(|it| is_media(it) || !it.media_in_result().is_empty())
}

/// Replaces each picture and document of the named messages by a text; the others are shared.
pub(crate) fn without_media(messages: &[Arc<Message>], refused: &BTreeSet<EntryId>) -> Messages {
    let without = |message: &Arc<Message>| {
        if !refused.contains(&message.id) {
            return Arc::clone(message);
        }
        let blocks = message.blocks.iter().map(without).collect();
        Arc::new(Message { blocks, ..Message::clone(message) })
    };
    messages.iter().map(without).collect()
}

fn is_media(block: &Block) -> bool {
    matches!(block.kind(), BlockKind::Opaque { kind } if matches!(&**kind, "image" | "document"))
}

fn without(block: &Block) -> Block {
    match block.kind() {
        BlockKind::Opaque { kind } if is_media(block) => Block::text(&left_out(kind)),
        BlockKind::ToolResult { id, text, is_error } if !block.media_in_result().is_empty() => {
            let left_out = left_out("image or document");
            let text = [text.as_ref(), &left_out].into_iter().filter(|it| !it.is_empty());
            Block::tool_result(id, &text.collect::<Vec<_>>().join("\n"), *is_error)
        }
        _ => block.clone(),
    }
}

fn left_out(kind: &str) -> String {
    format!("[{kind} left out: the provider refused it]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageKind;

    // REQ: SHP-12
    #[test]
    fn text_represents_what_was_refused_and_nothing_else_changes() {
        let image =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
        let result = format!(
            r#"{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"a file"}},{image}]}}"#
        );
        let wire = |it: &str| Block::from_wire(it).unwrap();
        let blocks = vec![Block::text("look"), wire(image), wire(&result)];
        let message =
            |id: &str| Arc::new(Message::user(id.into(), MessageKind::Prompt, blocks.clone()));
        let messages = [message("refused"), message("kept")];
        assert!(has_media(&messages[0]));
        let sent = without_media(&messages, &BTreeSet::from(["refused".into()]));
        assert_eq!(sent[1], messages[1]);
        assert!(!has_media(&sent[0]));
        assert_eq!(sent[0].blocks[0], messages[0].blocks[0]);
        let picture = sent[0].blocks[1].as_text().unwrap();
        assert_eq!(picture, "[image left out: the provider refused it]");
        let (_, text, is_error) = sent[0].blocks[2].as_tool_result().unwrap();
        assert_eq!(text, "a file\n[image or document left out: the provider refused it]");
        assert!(!is_error);
    }
}
