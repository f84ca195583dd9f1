//! Lines that another program copied from a session when it made a fork of it.
//!
//! A fork begins with copies of conversation lines under new names, each with a `forkedFrom` that
//! names the line it was made of. They bear no seal, so nothing can be checked of them but that they
//! are what they say; they count only in front of everything that was sealed here.

use std::{collections::BTreeSet, sync::Arc};

use serde::Deserialize;

use super::ViolationKind;
use crate::{
    block::Block,
    ids::{EntryId, ToolUseId},
    message::Message,
    transcript::read::Entry,
};

/// The copied lines in front of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forked {
    /// Number of copied lines at the front.
    pub lines: u64,
    /// The session that they were copied from, as they say; empty when there are none.
    pub from: String,
}

/// What is known of the conversation before the first sealed line.
#[derive(Default)]
pub(super) struct Before {
    pub(super) forked: Forked,
    pub(super) ids: Vec<EntryId>,
    pub(super) messages: Vec<Arc<Message>>,
}

impl Before {
    /// Returns the calls that have no result in these lines.
    pub(super) fn open_calls(&self) -> BTreeSet<ToolUseId> {
        let asked = self.messages.iter().flat_map(|it| it.tool_uses().map(|(id, ..)| id.clone()));
        let mut open: BTreeSet<ToolUseId> = asked.collect();
        for (id, ..) in
            self.messages.iter().flat_map(|it| &it.blocks).filter_map(Block::as_tool_result)
        {
            open.remove(id);
        }
        open
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Copy {
    session_id: String,
    forked_from: ForkOrigin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkOrigin {
    session_id: String,
    /// Must be there. It is not followed, since the line that it names is in another file.
    #[serde(rename = "messageUuid")]
    _message: String,
}

/// Reads a line that has no seal, if it is one of a fork. Returns whether it is.
///
/// # Errors
///
/// [`ViolationKind::ForeignLine`], when it says that it was copied from the session it is in, or from
/// another session than the lines before it.
pub(super) fn take(text: &str, entry: &Entry, before: &mut Before) -> Result<bool, ViolationKind> {
    let Ok(copy) = serde_json::from_str::<Copy>(text) else { return Ok(false) };
    let from = copy.forked_from.session_id;
    let is_first = before.forked.lines == 0;
    if from == copy.session_id || (!is_first && from != before.forked.from) {
        return Err(ViolationKind::ForeignLine { kind: "a fork of another session".into() });
    }
    match entry {
        Entry::Conversation { line, .. } => {
            before.ids.push(line.message.id.clone());
            if line.boundary.is_none() {
                before.messages.push(Arc::clone(&line.message));
            }
        }
        Entry::Other { id: Some(id), .. } => before.ids.push(id.clone()),
        _ => return Ok(false),
    }
    before.forked.lines += 1;
    before.forked.from = from;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        digest::Digest,
        transcript::{
            audit::{
                Evidence, Verified, Violation,
                fixture::{good, seal},
                verify,
            },
            entry::Line,
        },
    };

    fn audit(text: &str) -> Result<Verified, Violation> {
        let evidence = Evidence {
            stored: &|_: Digest| Some("layers".into()),
            sidechain: &|_| None,
            checkpoint: None,
            run_budget: &|_| None,
            also: &|_| Ok(()),
        };
        verify(text.as_bytes(), &evidence)
    }

    /// As the Agent SDK copies a line: new names, another session, and where it came from last.
    fn copies() -> Vec<String> {
        let lines = String::from_utf8(seal(&good())).unwrap();
        let mut parent = Value::Null;
        let copy = |(i, text): (usize, &str)| {
            let mut line: Value = serde_json::from_str(text).unwrap();
            if line["type"] == "ennead" {
                return None;
            }
            let fields = line.as_object_mut().unwrap();
            let id = fields["uuid"].clone();
            fields.remove("sourceToolAssistantUUID");
            fields.insert("uuid".into(), json!(format!("copy-{i}")));
            fields.insert(
                "parentUuid".into(),
                std::mem::replace(&mut parent, fields["uuid"].clone()),
            );
            fields.insert("sessionId".into(), json!("fork"));
            fields.insert("forkedFrom".into(), json!({"sessionId": "s", "messageUuid": id}));
            // Its own keys are in front of the new one.
            let forked = fields.remove("forkedFrom").unwrap();
            let text = line.to_string();
            Some(format!("{},\"forkedFrom\":{forked}}}\n", text.strip_suffix('}').unwrap()))
        };
        lines.lines().enumerate().filter_map(copy).collect()
    }

    const TITLE: &str =
        "{\"type\":\"custom-title\",\"customTitle\":\"t (fork)\",\"sessionId\":\"fork\"}\n";

    // REQ: SES-9
    #[test]
    fn copied_lines_of_a_fork_are_foreign_and_what_follows_them_is_checked() {
        let copied = copies().concat();
        let n_copied = copied.lines().count() as u64;
        assert!(2 < n_copied);
        let mut own = good();
        if let Line::Conversation(prompt) = &mut own[0] {
            prompt.parent = Some(format!("copy-{}", last_number(&copied)).as_str().into());
        }
        let own = String::from_utf8(seal(&own)).unwrap();
        for (text, runs) in [(format!("{copied}{TITLE}"), 0), (format!("{copied}{TITLE}{own}"), 1)]
        {
            let verified = audit(&text).unwrap();
            assert_eq!((verified.runs, verified.forked.lines), (runs, n_copied));
            assert_eq!(verified.forked.from, "s");
            assert_eq!(verified.foreign, [(n_copied + 1, "custom-title".to_owned())]);
        }
        let altered = format!("{copied}{TITLE}{}", own.replacen("r1", "r2", 1));
        assert_eq!(audit(&altered).unwrap_err().what.code(), "altered");
    }

    fn last_number(copied: &str) -> String {
        let last: Value = serde_json::from_str(copied.lines().last().unwrap()).unwrap();
        last["uuid"].as_str().unwrap().trim_start_matches("copy-").to_owned()
    }

    // REQ: SES-9
    #[test]
    fn copied_line_anywhere_else_is_no_line_of_a_fork() {
        let own = String::from_utf8(seal(&good())).unwrap();
        let copied = copies();
        let (first, rest) = own.split_at(own.find('\n').unwrap() + 1);
        let code = |text: String| audit(&text).unwrap_err().what.code();
        assert_eq!(code(format!("{first}{}{rest}", copied[0])), "foreign_line");
        assert_eq!(code(format!("{own}{}", copied[0])), "foreign_line");
        let of_itself = copied[0].replace("\"sessionId\":\"fork\"", "\"sessionId\":\"s\"");
        assert_eq!(code(format!("{of_itself}{own}")), "foreign_line");
        let of_another = copied[1].replace(r#""sessionId":"s"}"#, r#""sessionId":"other"}"#);
        assert_ne!(of_another, copied[1]);
        assert_eq!(code(format!("{}{of_another}{own}", copied[0])), "foreign_line");
        let without = copied[0].replace("forkedFrom", "forgedFrom");
        assert_eq!(code(format!("{without}{own}")), "foreign_line");
        let doubled = format!("{0}{0}{own}", copied[0]);
        assert_eq!(code(doubled), "doubled_id");
    }
}
