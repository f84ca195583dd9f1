//! Reads transcripts back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    digest::Digest,
    ids::ToolUseId,
    transcript::{
        audit::{Evidence, Verified, verify},
        entry::{Record, RecordKind, SidechainHead},
        load::{LoadAs, ends_of_runs, load},
        read::{Entry, ReadLine, read_line},
        replay::replay,
    },
};

/// The folder with what belongs to a transcript.
fn beside(transcript: &Path) -> PathBuf {
    match transcript.parent() {
        Some(parent) if parent.ends_with("subagents") => parent.with_file_name(""),
        _ => transcript.with_extension(""),
    }
}

/// Checks a transcript and what lies next to it.
#[track_caller]
pub(crate) fn verified(transcript: &Path) -> Verified {
    let bytes = fs::read(transcript).unwrap();
    let beside = beside(transcript);
    let inline = inline_texts(&bytes);
    let stored = |digest: Digest| {
        let beside = || fs::read_to_string(beside.join(format!("stored/{digest}.txt"))).ok();
        inline.get(&digest).cloned().or_else(beside)
    };
    let sidechain = |head: &SidechainHead| {
        let file = beside.join(format!("subagents/agent-{}.jsonl", head.agent));
        fs::read(file).ok().map(|it| ends_of_runs(&it).contains(&head.head))
    };
    let evidence = Evidence {
        stored: &stored,
        sidechain: &sidechain,
        checkpoint: None,
        run_budget: &|_| None,
        also: &|_| Ok(()),
    };
    verify(&bytes, &evidence).unwrap_or_else(|violation| {
        let text = String::from_utf8_lossy(&bytes);
        let near = usize::try_from(violation.line).unwrap().saturating_sub(4);
        let lines: Vec<&str> = text.lines().skip(near).take(6).collect();
        panic!("{violation:?}\n{}", lines.join("\n"));
    })
}

/// The transcript is in order, and walked again it is the same, in this many turns.
#[track_caller]
pub(crate) fn replayed(transcript: &Path, n_turns: u64) {
    verified(transcript);
    let beside = beside(transcript);
    let stored = |digest| fs::read_to_string(beside.join(format!("stored/{digest}.txt"))).ok();
    let replayed = replay(&fs::read(transcript).unwrap(), &stored).unwrap();
    assert_eq!(replayed.turns, n_turns);
}

/// Short texts are in the record that first needs them, and are named by digest from then on.
fn inline_texts(bytes: &[u8]) -> BTreeMap<Digest, String> {
    fn walk(value: &serde_json::Value, found: &mut BTreeMap<Digest, String>) {
        match value {
            serde_json::Value::Object(map) => {
                if let Some(text) = map.get("text").and_then(|it| it.as_str()) {
                    found.insert(Digest::of(text.as_bytes()), text.to_owned());
                }
                map.values().for_each(|it| walk(it, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|it| walk(it, found)),
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|it| serde_json::from_slice(it).ok()).for_each(|it| walk(&it, &mut found));
    found
}

/// How many results each tool use has, with the text of the last.
pub(crate) fn results(transcript: &Path) -> BTreeMap<ToolUseId, (usize, String)> {
    let bytes = fs::read(transcript).unwrap();
    let is_sidechain = transcript.to_string_lossy().contains("/subagents/");
    let loaded = load(&bytes, if is_sidechain { LoadAs::Sidechain } else { LoadAs::Session });
    let mut found = BTreeMap::new();
    for message in &loaded.recorded {
        for (id, ..) in message.tool_uses() {
            found.insert(id.clone(), (0, String::new()));
        }
        for (id, text, _) in message.blocks.iter().filter_map(|it| it.as_tool_result()) {
            let entry = found.get_mut(id).expect("a result has a use");
            *entry = (entry.0 + 1, text.to_string());
        }
    }
    found
}

/// The harness records of a transcript.
pub(crate) fn records(transcript: &Path) -> Vec<Record> {
    let text = fs::read_to_string(transcript).unwrap();
    let read = |line| match read_line(line) {
        Ok(ReadLine { entry: Entry::Harness(records), .. }) => records,
        _ => Vec::new(),
    };
    text.lines().flat_map(read).collect()
}

/// The records of commands in the background: name and state.
pub(crate) fn shells(transcript: &Path) -> Vec<(String, String)> {
    let records = records(transcript).into_iter();
    let shell = |record: Record| match record.what {
        RecordKind::Shell(it) => Some((it.shell.to_string(), it.state)),
        _ => None,
    };
    records.filter_map(shell).collect()
}

/// How its turns ended that did not reach their end: reason and step number.
pub(crate) fn early_ends(transcript: &Path) -> Vec<(String, Option<u8>)> {
    let records = records(transcript).into_iter();
    let end = |record: Record| match record.what {
        RecordKind::TurnEnd { reason, at_step, .. } => {
            Some((reason, at_step.map(|it| it.number())))
        }
        _ => None,
    };
    records.filter_map(end).collect()
}

/// How its runs ended.
pub(crate) fn run_ends(transcript: &Path) -> Vec<String> {
    let records = records(transcript).into_iter();
    let end = |record: Record| match record.what {
        RecordKind::RunEnd { reason, .. } => Some(reason),
        _ => None,
    };
    records.filter_map(end).collect()
}
