//! Reading one line: our own byte for byte, those of others as far as they can be understood.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    block::{Block, BlockKind},
    ids::EntryId,
    message::{Message, MessageKind, Role},
    time::Timestamp,
    tokens::{Tokens, Usage},
    transcript::{
        codec::joined,
        entry::{AnswerFields, Boundary, ConversationLine, Record, ToolResultFields},
        seal::{Seal, seal_of},
    },
};

/// One line of a file, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLine {
    /// The content of the line.
    pub entry: Entry,
    /// Its place in the chain; `None` for lines of others.
    pub seal: Option<Seal>,
    /// It says what it follows, be it nothing.
    pub is_linked: bool,
    /// It says whether it belongs to a sub-agent.
    pub says_sidechain: bool,
    /// It holds a message, whatever its type says.
    pub has_message: bool,
}

/// What is on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A message of the conversation.
    Conversation {
        /// The line, parsed and checked.
        line: Box<ConversationLine>,
        /// Whether it belongs to a sub-agent.
        sidechain: bool,
        /// Blocks that could not be read and are left out of `line`.
        bad_blocks: u64,
    },
    /// What the harness did: the records that share the line, at least one.
    Harness(Vec<Record>),
    /// Anything else: titles, tags, progress, kinds that are not known here.
    Other {
        /// Value of the line's field `type`.
        kind: Box<str>,
        /// Its name, if it is part of the links.
        id: Option<EntryId>,
        /// What it is linked to.
        parent: Option<EntryId>,
        /// Whether it belongs to a sub-agent.
        sidechain: bool,
    },
}

impl Entry {
    /// Returns what was given to the writer; nothing if it is a line of others.
    #[cfg(test)]
    pub(crate) fn into_lines(self) -> Vec<super::entry::Line> {
        use super::entry::Line;

        match self {
            Self::Conversation { line, .. } => vec![Line::Conversation(line)],
            Self::Harness(records) => {
                records.into_iter().map(|it| Line::Harness(Box::new(it))).collect()
            }
            Self::Other { .. } => Vec::new(),
        }
    }
}

/// Why a text is not a line of a transcript.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotALine {
    /// It is not JSON.
    #[error("not JSON")]
    Json(#[source] serde_json::Error),
    /// It is JSON without a field that its type needs, or with one of another shape.
    #[error("a record without a usable `{field}`")]
    Record {
        /// Name of the missing field.
        field: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    uuid: Option<EntryId>,
    #[serde(default, deserialize_with = "present")]
    parent_uuid: Option<Option<EntryId>>,
    logical_parent_uuid: Option<EntryId>,
    #[serde(borrow)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    asked_model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    compact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    then: Option<&'a RawValue>,
    #[serde(rename = "sourceToolAssistantUUID")]
    source: Option<EntryId>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBoundary {
    trigger: Option<String>,
    pre_tokens: Option<u64>,
    preserved_segment: Option<WireSegment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSegment {
    head_uuid: EntryId,
    tail_uuid: EntryId,
}

/// Reads one line, without its newline.
///
/// # Errors
///
/// [`NotALine`] when it is not JSON, or is not what its type says.
pub fn read_line(text: &str) -> Result<ReadLine, NotALine> {
    let wire: Wire<'_> = match serde_json::from_str(text) {
        Ok(wire) => wire,
        // Of a field with another shape serde complains before it has seen the rest.
        Err(error) => {
            return Err(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Ok(_) => NotALine::Record { field: "type" },
                Err(_) => NotALine::Json(error),
            });
        }
    };
    let seal = seal_of(text.as_bytes());
    let entry = match wire.kind.as_ref() {
        "user" => message_entry(&wire, Role::User)?,
        "assistant" => message_entry(&wire, Role::Assistant)?,
        "system" if wire.subtype.as_deref() == Some("compact_boundary") => boundary(&wire)?,
        "system" if wire.message.is_some() && wire.uuid.is_some() => {
            message_entry(&wire, Role::System)?
        }
        // A kind that a later version writes is not a reason to lose the file.
        "ennead" => match records(text, wire.then) {
            Some(records) => Entry::Harness(records),
            None => unknown_line(&wire),
        },
        _ => unknown_line(&wire),
    };
    Ok(ReadLine {
        entry,
        seal,
        is_linked: wire.parent_uuid.is_some(),
        says_sidechain: wire.is_sidechain.is_some(),
        has_message: wire.message.is_some(),
    })
}

fn records(text: &str, then: Option<&RawValue>) -> Option<Vec<Record>> {
    let first: Record = serde_json::from_str(text).ok()?;
    let joined = match then {
        Some(then) => joined::read(&first, then)?,
        None => Vec::new(),
    };
    Some([vec![first], joined].concat())
}

/// Distinguishes a member that is null from one that is absent.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<EntryId>>, D::Error> {
    Option::deserialize(from).map(Some)
}

fn unknown_line(wire: &Wire<'_>) -> Entry {
    Entry::Other {
        kind: wire.kind.as_ref().into(),
        id: wire.uuid.clone(),
        parent: wire.parent_uuid.clone().flatten(),
        sidechain: wire.is_sidechain.unwrap_or(false),
    }
}

fn timestamp(wire: &Wire<'_>) -> Timestamp {
    wire.timestamp
        .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
        .and_then(|text| Timestamp::parse(&text))
        .unwrap_or_default()
}

fn boundary(wire: &Wire<'_>) -> Result<Entry, NotALine> {
    let id = wire.uuid.clone().ok_or(NotALine::Record { field: "uuid" })?;
    let metadata: Option<WireBoundary> =
        wire.compact_metadata.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let boundary = Boundary {
        trigger: match metadata.as_ref().and_then(|it| it.trigger.as_deref()) {
            Some("manual") => "manual",
            Some("reactive") => "reactive",
            _ => "auto",
        },
        pre_tokens: Tokens(metadata.as_ref().and_then(|it| it.pre_tokens).unwrap_or(0)),
        preserved: metadata
            .and_then(|it| it.preserved_segment)
            .map(|it| (it.head_uuid, it.tail_uuid)),
    };
    let line = ConversationLine {
        at: timestamp(wire),
        parent: wire.logical_parent_uuid.clone().or_else(|| wire.parent_uuid.clone().flatten()),
        message: Arc::new(Message {
            id,
            role: Role::System,
            kind: MessageKind::Mark,
            api_id: None,
            model: None,
            blocks: Vec::new(),
        }),
        answer: None,
        tool_result: None,
        boundary: Some(boundary),
    };
    let sidechain = wire.is_sidechain.unwrap_or(false);
    Ok(Entry::Conversation { line: Box::new(line), sidechain, bad_blocks: 0 })
}

fn message_entry(wire: &Wire<'_>, role: Role) -> Result<Entry, NotALine> {
    let needs = |field| NotALine::Record { field };
    let id = wire.uuid.clone().ok_or(needs("uuid"))?;
    let message = wire.message.ok_or(needs("message"))?;
    let message: WireMessage<'_> =
        serde_json::from_str(message.get()).map_err(|_| needs("message"))?;
    let (blocks, bad_blocks) = content(message.content.ok_or(needs("content"))?)?;
    let answer = message.model.filter(|_| role == Role::Assistant).map(|model| AnswerFields {
        model: model.into(),
        stop_reason: message.stop_reason.unwrap_or_default().into(),
        asked: wire.asked_model.as_deref().map(Into::into),
        usage: message
            .usage
            .and_then(|raw| serde_json::from_str::<Usage>(raw.get()).ok())
            .unwrap_or_default(),
    });
    let tool_result = wire.source.clone().map(|source| ToolResultFields {
        structured: wire.tool_use_result.map(|raw| raw.get().into()),
        source,
    });
    let only_results = !blocks.is_empty()
        && blocks.iter().all(|block| matches!(block.kind(), BlockKind::ToolResult { .. }));
    let kind = match role {
        Role::Assistant => MessageKind::Answer,
        Role::System => MessageKind::Mark,
        Role::User if wire.is_compact_summary == Some(true) => MessageKind::CompactSummary,
        Role::User if wire.is_meta == Some(true) => MessageKind::Meta,
        Role::User if only_results || tool_result.is_some() => MessageKind::ToolResults,
        Role::User => MessageKind::Prompt,
    };
    let api_id = message.id.map(Into::into);
    let model = answer.as_ref().and_then(AnswerFields::signed_by).cloned();
    let line = ConversationLine {
        at: timestamp(wire),
        parent: wire.parent_uuid.clone().flatten(),
        message: Arc::new(Message { id, role, kind, api_id, model, blocks }),
        answer,
        tool_result,
        boundary: None,
    };
    let sidechain = wire.is_sidechain.unwrap_or(false);
    Ok(Entry::Conversation { line: Box::new(line), sidechain, bad_blocks })
}

/// The blocks, and how many could not be read.
fn content(raw: &RawValue) -> Result<(Vec<Block>, u64), NotALine> {
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(raw.get()) {
        return Ok((vec![Block::text(&text)], 0));
    }
    let parts: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| NotALine::Record { field: "content" })?;
    let mut bad = 0;
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        match Block::from_wire(part.get()) {
            Ok(block) => blocks.push(block),
            Err(_) => bad += 1,
        }
    }
    Ok((blocks, bad))
}
