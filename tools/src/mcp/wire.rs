//! What rmcp reads, as the rules know it.

use std::fmt::Display;

use ennead_runtime::mcp::{result::McpContent, spec::Listed};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{ContentBlock, PaginatedRequestParams, ResourceContents, Tool},
    service::ClientInitializeError,
};

use super::launch::MAX_TOOLS;

/// Lists all tools, page after page; `None`: there are too many.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Option<Vec<Listed>>, ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    loop {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let page = peer.list_tools(Some(params)).await?;
        tools.extend(page.tools.into_iter().map(listed));
        cursor = page.next_cursor;
        if MAX_TOOLS < tools.len() {
            return Ok(None);
        }
        if cursor.is_none() {
            return Ok(Some(tools));
        }
    }
}

fn listed(tool: Tool) -> Listed {
    let meta = tool.meta.as_ref().and_then(|it| serde_json::to_value(it).ok());
    Listed {
        name: tool.name.into_owned(),
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: tool.input_schema.as_ref().clone(),
        read_only: tool.annotations.and_then(|it| it.read_only_hint).unwrap_or(false),
        // What says so is not a field of the library; see `tasks`.
        needs_task: false,
        meta: meta.and_then(|it| it.as_object().cloned()).unwrap_or_default(),
    }
}

pub(super) fn content(block: ContentBlock) -> McpContent {
    match block {
        ContentBlock::Text(text) => McpContent::Text(text.text),
        ContentBlock::Image(image) => McpContent::Image { mime: image.mime_type, data: image.data },
        ContentBlock::Audio(audio) => {
            McpContent::Binary { mime: audio.mime_type, chars: audio.data.len() }
        }
        ContentBlock::ResourceLink(link) => McpContent::Link { uri: link.uri, name: link.name },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                McpContent::Resource { uri, text }
            }
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => McpContent::Binary {
                mime: mime_type.unwrap_or_else(|| "application/octet-stream".into()),
                chars: blob.len(),
            },
            newer => as_it_came(&newer),
        },
        newer => as_it_came(&newer),
    }
}

/// A kind of content that is newer than we are.
fn as_it_came(content: &impl serde::Serialize) -> McpContent {
    McpContent::Text(serde_json::to_string(content).unwrap_or_default())
}

/// One end has many ways to be noticed.
const TOO_EARLY: &str = "it ended before it was ready";

/// Characters of what a server says of a failure.
const MAX_WHY: usize = 1000;

/// Shortens what a server may have said: it is logged, and shown once for each call that waits.
pub(super) fn beginning(what: impl Display) -> String {
    let mut what = what.to_string();
    if let Some((end, _)) = what.char_indices().nth(MAX_WHY) {
        what.truncate(end);
        what.push('…');
    }
    what
}

/// Returns why a server could not be greeted, in words.
pub(super) fn why_not_greeted(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => TOO_EARLY.to_owned(),
        other => beginning(other),
    }
}

/// Returns why its tools could not be listed, in words.
pub(super) fn why_not_listed(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => TOO_EARLY.to_owned(),
        other => beginning(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    // REQ: TOL-11
    #[test]
    fn what_a_server_says_of_a_failure_is_shortened() {
        let long = "ä".repeat(1 << 20);
        assert_eq!(beginning(&long).chars().count(), MAX_WHY + 1);
        assert_eq!(beginning("short"), "short");
    }

    #[track_caller]
    fn check(block: Value, found: McpContent) {
        let block: ContentBlock = serde_json::from_value(block).unwrap();
        assert_eq!(content(block), found);
    }

    #[test]
    fn pieces_of_a_result_keep_what_a_model_can_read() {
        check(json!({"type": "text", "text": "t"}), McpContent::Text("t".into()));
        let binary = |mime: &str| McpContent::Binary { mime: mime.into(), chars: 4 };
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        check(image, McpContent::Image { mime: "image/png".into(), data: "AAAA".into() });
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        check(audio, binary("audio/wav"));
        let link = json!({"type": "resource_link", "uri": "u:1", "name": "n"});
        check(link, McpContent::Link { uri: "u:1".into(), name: "n".into() });
        let text = json!({"type": "resource", "resource": {"uri": "u:2", "text": "t"}});
        check(text, McpContent::Resource { uri: "u:2".into(), text: "t".into() });
        let blob = json!({"type": "resource", "resource": {"uri": "u:3", "blob": "AAAA"}});
        check(blob, binary("application/octet-stream"));
    }

    #[test]
    fn listed_tools_keep_their_hints_and_their_meta() {
        let tool = json!({
            "name": "n", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}, "_meta": {"k": 1},
        });
        let tool = listed(serde_json::from_value(tool).unwrap());
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("n", ""));
        assert!(tool.read_only);
        assert_eq!(Value::Object(tool.meta), json!({"k": 1}));
        let bare = listed(serde_json::from_value(json!({"name": "n", "inputSchema": {}})).unwrap());
        assert!(!bare.read_only && bare.meta.is_empty());
    }
}
