//! Writing lines.
//!
//! [`encode`] writes a line without its closing brace; [`seal`](super::seal) adds its place in the chain
//! and the brace. Blocks are joined from the text they already have. What is hashed is the exact
//! bytes of lines, so a reader needs no canonical form to check it.

mod cut;
pub(crate) mod joined;

use crate::{
    ids::EntryId,
    json::{self, key, number, push_quoted},
    message::{Message, MessageKind, Role},
    transcript::{
        entry::{Boundary, ConversationLine, Line, LineFrame, Record},
        seal::SEAL,
    },
};

/// Bytes of a record at most, newline included.
pub(crate) const MAX_RECORD: usize = 4096;

/// What records say their version is, with its key. In version 1 every line had a hash of its own, and before version
/// 3 every record had a line of its own.
const RECORD_VERSION: &str = r#"","v":3,"at":"#;

/// Appends the JSON object of a line without closing brace, number and hashes. Returns where in `out` its frame ends: what
/// is in front follows from the kind of line, its time, its ids and its [`LineFrame`].
///
/// A record that would be longer than [`MAX_RECORD`] is shortened in its free texts.
pub(crate) fn encode(line: &Line, frame: &LineFrame, out: &mut Vec<u8>) -> usize {
    match line {
        Line::Conversation(line) => conversation(line, frame, out),
        Line::Harness(record) => {
            let start = out.len();
            let frame_end = harness(record, out);
            let limit = MAX_RECORD - SEAL;
            if limit < out.len() - start {
                let cut = cut::shortened(record, out.len() - start, limit);
                out.truncate(start);
                harness(&cut, out);
            }
            frame_end
        }
    }
}

fn harness(record: &Record, out: &mut Vec<u8>) -> usize {
    record_frame(record, out);
    let start = out.len();
    own_fields(record, out);
    start
}

/// What stands in front of the fields of a record that has a line of its own.
fn record_frame(record: &Record, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":"ennead","kind":""#);
    out.extend_from_slice(record.what.kind().as_bytes());
    out.extend_from_slice(RECORD_VERSION.as_bytes());
    number(record.at.0, out);
    if let Some(run) = &record.run {
        field("run", run.as_str(), out);
    }
    out.extend_from_slice(br#","turn":"#);
    number(record.turn, out);
}

/// The fields of its kind; the tag that names the kind is in front already.
fn own_fields(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    if json::push_without_tag(&record.what, out).is_err() {
        out.truncate(start);
    }
}

fn conversation(line: &ConversationLine, frame: &LineFrame, out: &mut Vec<u8>) -> usize {
    let message = &*line.message;
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(role(message.role).as_bytes());
    out.push(b'"');
    field("uuid", message.id.as_str(), out);
    // Readers take a boundary as the root of what follows and find what was before by its second
    // link only.
    let parent = if line.boundary.is_some() { None } else { line.parent.as_ref() };
    optional("parentUuid", parent, out);
    if message.role == Role::System {
        field("subtype", subtype(line), out);
    }
    if line.boundary.is_some() {
        optional("logicalParentUuid", line.parent.as_ref(), out);
    }
    field("sessionId", frame.session.as_str(), out);
    key("timestamp", out);
    out.push(b'"');
    line.at.push(out);
    out.push(b'"');
    field("cwd", &frame.cwd, out);
    field("version", frame.version, out);
    if let Some(branch) = &frame.git_branch {
        field("gitBranch", branch, out);
    }
    let sidechain: &[u8] = match frame.agent {
        Some(_) => br#","isSidechain":true"#,
        None => br#","isSidechain":false"#,
    };
    out.extend_from_slice(sidechain);
    if let Some(agent) = &frame.agent {
        field("agentId", agent.as_str(), out);
    }
    out.extend_from_slice(br#","userType":"external""#);
    let frame_end = out.len();
    match message.kind {
        MessageKind::Meta => out.extend_from_slice(br#","isMeta":true"#),
        MessageKind::CompactSummary => out.extend_from_slice(br#","isCompactSummary":true"#),
        _ => {}
    }
    match &line.boundary {
        Some(boundary) => metadata(boundary, &message.id, out),
        None => write_message(message, line, out),
    }
    if let Some(asked) = line.answer.as_ref().and_then(|it| it.asked.as_ref()) {
        field("askedModel", asked, out);
    }
    if let Some(result) = &line.tool_result {
        if let Some(structured) = &result.structured {
            key("toolUseResult", out);
            push_json(structured, out);
        }
        field("sourceToolAssistantUUID", result.source.as_str(), out);
    }
    frame_end
}

fn write_message(message: &Message, line: &ConversationLine, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","message":{"#);
    if let Some(id) = &message.api_id {
        out.extend_from_slice(br#""id":"#);
        push_quoted(id, out);
        out.push(b',');
    }
    if message.role == Role::Assistant {
        out.extend_from_slice(br#""type":"message","#);
    }
    out.extend_from_slice(br#""role":""#);
    out.extend_from_slice(role(message.role).as_bytes());
    out.push(b'"');
    if let Some(answer) = &line.answer {
        field("model", &answer.model, out);
    }
    out.extend_from_slice(br#","content":["#);
    for (i, block) in message.blocks.iter().enumerate() {
        if i != 0 {
            out.push(b',');
        }
        let start = out.len();
        block.push_wire(out);
        one_line(&mut out[start..]);
    }
    out.push(b']');
    if let Some(answer) = &line.answer {
        field("stop_reason", &answer.stop_reason, out);
        let usage = &answer.usage;
        out.extend_from_slice(br#","usage":{"input_tokens":"#);
        number(usage.input_tokens, out);
        key("cache_creation_input_tokens", out);
        number(usage.cache_creation_input_tokens, out);
        key("cache_read_input_tokens", out);
        number(usage.cache_read_input_tokens, out);
        key("output_tokens", out);
        number(usage.output_tokens, out);
        out.push(b'}');
    }
    out.push(b'}');
}

fn metadata(boundary: &Boundary, own: &EntryId, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","compactMetadata":{"trigger":"#);
    push_quoted(boundary.trigger, out);
    key("preTokens", out);
    number(boundary.pre_tokens.0, out);
    if let Some((head, tail)) = &boundary.preserved {
        out.extend_from_slice(br#","preservedSegment":{"headUuid":"#);
        push_quoted(head.as_str(), out);
        // The summary has no name yet; it is the child of this line.
        field("anchorUuid", own.as_str(), out);
        field("tailUuid", tail.as_str(), out);
        out.push(b'}');
    }
    out.push(b'}');
}

fn subtype(line: &ConversationLine) -> &'static str {
    use crate::block::BlockKind;
    match (&line.boundary, line.message.blocks.first().map(crate::block::Block::kind)) {
        (Some(_), _) => "compact_boundary",
        (None, Some(BlockKind::StopRequest)) => "stop_request",
        (None, Some(BlockKind::Error(_))) => "error",
        (None, _) => "informational",
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    }
}

#[inline]
fn field(name: &'static str, value: &str, out: &mut Vec<u8>) {
    key(name, out);
    push_quoted(value, out);
}

#[inline]
fn optional(name: &'static str, value: Option<&EntryId>, out: &mut Vec<u8>) {
    match value {
        Some(value) => field(name, value.as_str(), out),
        None => {
            key(name, out);
            out.extend_from_slice(b"null");
        }
    }
}

/// JSON of others. What is none is kept as a string.
fn push_json(text: &str, out: &mut Vec<u8>) {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return push_quoted(text, out);
    }
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    one_line(&mut out[start..]);
}

/// Makes line breaks into blanks: in JSON they can only be between values.
fn one_line(json: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &json[from..]) {
        json[from + at] = b' ';
        from += at + 1;
    }
}

#[cfg(test)]
mod tests;
