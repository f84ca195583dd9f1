//! The nine steps of each turn, for people to read.
//!
//! Shows what the records say and checks nothing: that is the audit's.

mod lines;
mod records;

use std::fmt;

use super::{
    entry::ConversationLine,
    read::{Entry, read_line},
};
use crate::block::BlockKind;
use lines::{TraceLines, short};

/// Writes the records of a file as text, one line per fact. Lines that cannot be read are named.
/// `None` when not one line is a message or a record of the harness.
pub fn render(bytes: &[u8]) -> Option<String> {
    let mut out = TraceLines::default();
    let mut is_transcript = false;
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            continue;
        }
        let entry = read_line(&text).map(|read| read.entry);
        is_transcript |= matches!(entry, Ok(Entry::Harness(_) | Entry::Conversation { .. }));
        // Writing to a string does not fail.
        let _written = match entry {
            Ok(Entry::Harness(records)) => {
                records.iter().try_for_each(|it| records::write(it, &mut out))
            }
            Ok(Entry::Conversation { line, .. }) => message_lines(&line, &mut out),
            Ok(Entry::Other { kind, .. }) => out.end(format_args!("line {}: {kind}", i + 1)),
            Err(error) => out.end(format_args!("line {}: {error}", i + 1)),
        };
    }
    is_transcript.then(|| out.all())
}

fn message_lines(line: &ConversationLine, out: &mut TraceLines) -> fmt::Result {
    if let Some(boundary) = &line.boundary {
        let tokens = boundary.pre_tokens.0;
        return out.end(format_args!("  compacted ({}) at {tokens} tokens", boundary.trigger));
    }
    for block in &line.message.blocks {
        match block.kind() {
            BlockKind::Text(text) => {
                let speaker = match line.message.role {
                    crate::message::Role::Assistant => "answer",
                    _ => "said",
                };
                out.end(format_args!("  {speaker}: {}", short(text)))?;
            }
            BlockKind::ToolUse { id, name, input } => {
                out.end(format_args!("  tool use {id}: {name} {}", short(input)))?;
            }
            BlockKind::ToolResult { id, text, is_error } => {
                let what = if *is_error { "error" } else { "result" };
                out.end(format_args!("  {what} of {id}: {}", short(text)))?;
            }
            BlockKind::StopRequest => out.end(format_args!("  stop requested"))?,
            BlockKind::Error(text) => out.end(format_args!("  error: {}", short(text)))?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TRN-3
    #[test]
    fn record_cannot_forge_a_line_or_send_a_control_sequence() {
        // As JSON escapes, and raw where JSON allows that.
        let hostile = "x\\n  9 stop_check: done\\u001b[2J\\r\u{9b}1m\\u009b1m\u{202e}";
        let shown_line = format!(
            r#"{{"type":"assistant","uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2025-01-01T00:02:00Z","isSidechain":false,"message":{{"role":"assistant","content":[{{"type":"tool_use","id":"{hostile}","name":"{hostile}","input":{{}}}}]}}}}"#
        );
        let shown = |text: &str| render(text.as_bytes()).unwrap();
        assert!(shown(&shown_line).starts_with("  tool use x"), "{}", shown(&shown_line));
        for line in
            [shown_line.clone(), format!(r#"{{"type":"{hostile}"}}"#), format!("{{{hostile}")]
        {
            let text = shown(&format!("{shown_line}\n{line}"));
            assert_eq!(text.lines().count(), 2, "{text:?}");
            assert!(text.ends_with('\n') && !text.contains("\n  9"), "{text:?}");
            let is_shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
            assert!(text.chars().all(is_shown), "{text:?}");
        }
    }
}
