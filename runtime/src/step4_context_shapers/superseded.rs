//! Results of file reads that a later call has made out of date.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;

use crate::{ids::ToolUseId, message::Message};

/// The tool that reads files.
const READS: &str = "Read";

/// Tools that change the file that they name.
const CHANGES: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// First line and number of lines of a read; `None`: as far as the tool reads.
type ReadRange = (Option<u64>, Option<u64>);

/// Of the inputs of these tools what distinguishes files and parts of them.
#[derive(Deserialize)]
struct FileInput {
    #[serde(alias = "notebook_path")]
    file_path: String,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

/// Returns the reads whose file was read again since, as a whole or in the same part, or changed. Calls that failed or
/// have no result yet supersede nothing. Paths are compared as the model wrote them.
pub(super) fn superseded(messages: &[Arc<Message>]) -> BTreeSet<&ToolUseId> {
    let blocks = || messages.iter().flat_map(|it| &it.blocks);
    let of_files: Vec<_> = blocks()
        .filter_map(|it| it.as_tool_use())
        .filter(|(_, name, _)| name.as_str() == READS || CHANGES.contains(&name.as_str()))
        .collect();
    // Asked about in every turn under pressure: most sessions run commands more often than they read files.
    if of_files.iter().all(|(_, name, _)| name.as_str() != READS) {
        return BTreeSet::new();
    }
    let calls: BTreeSet<&ToolUseId> = of_files.iter().map(|it| it.0).collect();
    let results = blocks().filter_map(|it| it.as_tool_result());
    let succeeded: BTreeSet<&ToolUseId> = results
        .filter(|(id, _, is_error)| !is_error && calls.contains(id))
        .map(|it| it.0)
        .collect();
    let mut reads: BTreeMap<String, Vec<(&ToolUseId, ReadRange)>> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (id, name, input) in of_files {
        let (is_read, is_change) = (name.as_str() == READS, CHANGES.contains(&name.as_str()));
        if !succeeded.contains(id) {
            continue;
        }
        let Ok(FileInput { file_path, offset, limit }) = serde_json::from_str(input) else {
            continue;
        };
        let part = (offset, limit);
        let earlier = reads.entry(file_path).or_default();
        earlier.retain(|(read, of)| {
            let is_covered = is_change || part == (None, None) || part == *of;
            if is_covered {
                found.insert(*read);
            }
            !is_covered
        });
        if is_read {
            earlier.push((id, part));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{block::Block, message::MessageKind};

    #[track_caller]
    fn check(calls: &[(&str, &str, &str, bool)], expected: &[&str]) {
        let messages = calls.iter().flat_map(|(id, tool, input, is_error)| {
            let id: ToolUseId = (*id).into();
            let call = Block::tool_use(&id, &(*tool).into(), input);
            let result = Block::tool_result(&id, "said", *is_error);
            [
                Arc::new(Message::answer("a".into(), "m", vec![call])),
                Arc::new(Message::user("r".into(), MessageKind::ToolResults, vec![result])),
            ]
        });
        let messages: Vec<_> = messages.collect();
        let found: Vec<String> = superseded(&messages).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    // REQ: SHP-5
    #[test]
    fn read_is_superseded_by_a_later_read_or_change_of_the_same_file() {
        let (a, b) = (r#"{"file_path":"a"}"#, r#"{"file_path":"b"}"#);
        let part = r#"{"file_path":"a","offset":5,"limit":9}"#;
        check(&[("1", "Read", a, false), ("2", "Read", b, false), ("3", "Read", a, false)], &["1"]);
        check(&[("1", "Read", a, false), ("2", "Edit", a, false)], &["1"]);
        let notebook = r#"{"notebook_path":"a"}"#;
        check(&[("1", "Read", a, false), ("2", "NotebookEdit", notebook, false)], &["1"]);
        check(&[("1", "Read", a, false), ("2", "Write", a, true)], &[]);
        check(&[("1", "Read", a, false), ("2", "Read", part, false)], &[]);
        check(&[("1", "Read", part, false), ("2", "Read", part, false)], &["1"]);
        check(&[("1", "Read", part, false), ("2", "Read", a, false)], &["1"]);
        check(&[("1", "Read", a, false), ("2", "Grep", a, false), ("3", "Read", "[", false)], &[]);
    }
}
