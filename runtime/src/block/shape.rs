//! Whether a provider knows all members of a block and finds those that it needs.
//!
//! Reading is more lenient: a transcript may hold a key with a changed letter, and
//! providers refuse a whole request for one.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::BlockKind;

type MemberMap<'a> = BTreeMap<Key<'a>, &'a RawValue>;

/// A key that is copied only where it holds escapes.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns whether the block of this kind has members that its type does not know, or lacks one that its type needs. Of
/// kinds that are passed through nothing is known here.
pub(super) fn is_odd(kind: &BlockKind, text: &str) -> bool {
    let (needed, known): (&[&str], &[&str]) = match kind {
        BlockKind::Text(_) => (&["text"], &["citations"]),
        BlockKind::Thinking { .. } => (&["thinking"], &["signature"]),
        BlockKind::RedactedThinking => (&["data"], &[]),
        BlockKind::ToolUse { .. } => (&["id", "name", "input"], &["caller"]),
        BlockKind::ToolResult { .. } => (&["tool_use_id"], &["content", "is_error"]),
        BlockKind::Opaque { .. } | BlockKind::StopRequest | BlockKind::Error(_) => return false,
    };
    let Ok(members) = serde_json::from_str::<MemberMap<'_>>(text) else { return true };
    let value = |name: &str| members.get(&Key(Cow::Borrowed(name))).map(|it| it.get());
    let is_known = |it: &str| it == "type" || needed.contains(&it) || known.contains(&it);
    let begins = |name: &str, with: char| value(name).is_some_and(|it| it.starts_with(with));
    !members.keys().all(|it| is_known(&it.0))
        || !needed.iter().all(|it| begins(it, if *it == "input" { '{' } else { '"' }))
        || value("content").is_some_and(|it| !is_content(it))
}

/// Whether it is what a result may hold: a text, or a list of blocks that say what they are.
fn is_content(text: &str) -> bool {
    if text.starts_with('"') {
        return true;
    }
    let parts: Result<Vec<MemberMap<'_>>, _> = serde_json::from_str(text);
    parts.is_ok_and(|parts| {
        parts.iter().all(|part| {
            let value = |name: &str| part.get(&Key(Cow::Borrowed(name))).map(|it| it.get());
            match value("type") {
                Some(r#""text""#) => value("text").is_some_and(|it| it.starts_with('"')),
                Some(kind) => kind.starts_with('"'),
                None => false,
            }
        })
    })
}

/// Types that providers have in addition to those that are read here.
const KNOWN: [&str; 6] = [
    "server_tool_use",
    "mcp_tool_use",
    "container_upload",
    "compaction",
    "fallback",
    "search_result",
];

/// Returns whether a block that is passed through is of no known type, or has not what its type needs.
pub(super) fn is_unusual(kind: &str, text: &str) -> bool {
    if kind == "image" || kind == "document" {
        return !has_source(text);
    }
    !(KNOWN.contains(&kind) || kind.ends_with("_tool_result") || kind.starts_with("openai_"))
}

fn has_source(text: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Media<'a> {
        #[serde(rename = "type")]
        _kind: serde::de::IgnoredAny,
        #[serde(borrow)]
        source: MemberMap<'a>,
        #[serde(rename = "title")]
        _title: Option<serde::de::IgnoredAny>,
        #[serde(rename = "context")]
        _context: Option<serde::de::IgnoredAny>,
        #[serde(rename = "citations")]
        _citations: Option<serde::de::IgnoredAny>,
    }
    let Ok(media) = serde_json::from_str::<Media<'_>>(text) else { return false };
    let value = |name: &str| media.source.get(&Key(Cow::Borrowed(name))).map(|it| it.get());
    let needed: &[&str] = match value("type") {
        Some(r#""base64""# | r#""text""#) => &["media_type", "data"],
        Some(r#""url""#) => &["url"],
        Some(r#""file""#) => &["file_id"],
        Some(r#""content""#) => &["content"],
        _ => return false,
    };
    needed.iter().all(|it| value(it).is_some()) && media.source.len() == needed.len() + 1
}
