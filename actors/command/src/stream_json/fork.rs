//! A copy of a session's conversation under another id.
//!
//! The lines of the conversation are copied without their places in the chain of hashes, as SDKs fork a
//! session: to the session that goes on with them they are what another program wrote.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use serde_json::{Value, json};

/// What only holds where a line was written.
const OF_CHAIN: [&str; 4] = ["seq", "prev", "hash", "sum"];

/// Copies the conversation of `source` to `target`, which must not be there, for the session `id`; up to and
/// including the message `until`, if it is named. The source stays as it is. Cost: linear in the file.
///
/// # Errors
///
/// Why it cannot be copied, in words; there is no target then.
pub fn fork(source: &Path, target: &Path, id: &str, until: Option<&str>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot fork the session: {error}");
    let lines = BufReader::new(File::open(source).map_err(failed)?).lines();
    let mut copy = Vec::new();
    let mut is_found = until.is_none();
    for line in lines {
        let line = line.map_err(failed)?;
        // What is not a line of a conversation is not carried over.
        let Ok(mut value) = serde_json::from_str::<Value>(&line) else { continue };
        let kind = value["type"].as_str().unwrap_or_default();
        if !matches!(kind, "user" | "assistant" | "system") || value["isSidechain"] == true {
            continue;
        }
        let Some(fields) = value.as_object_mut() else { continue };
        OF_CHAIN.iter().for_each(|it| drop(fields.remove(*it)));
        let uuid = fields.get("uuid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let earlier = fields.insert("sessionId".into(), id.into());
        fields.insert("forkedFrom".into(), json!({"sessionId": earlier, "messageUuid": uuid}));
        copy.push(value);
        if until == Some(uuid.as_str()) {
            is_found = true;
            break;
        }
    }
    if !is_found {
        return Err(format!(
            "No message found with message.uuid of: {}",
            until.unwrap_or_default()
        ));
    }
    if let Some(directory) = target.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target);
    write_lines(file.map_err(failed)?, &copy).map_err(|error| {
        // Half a copy is none.
        let _gone = fs::remove_file(target);
        failed(error)
    })
}

fn write_lines(file: File, lines: &[Value]) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-3
    #[test]
    fn fork_is_a_copy_up_to_a_message_and_the_source_stays() {
        let place = tempfile::tempdir().unwrap();
        let (source, target) = (place.path().join("a.jsonl"), place.path().join("x/b.jsonl"));
        let line = |kind: &str, uuid: &str| json!({"type": kind, "uuid": uuid, "sessionId": "a", "seq": 1, "prev": "0", "hash": "1", "sum": "2"});
        let lines =
            [line("user", "1"), line("ennead", "-"), line("assistant", "2"), line("user", "3")];
        let text = lines.map(|it| it.to_string()).join("\n");
        fs::write(&source, &text).unwrap();
        fork(&source, &target, "b", Some("2")).unwrap();
        let copy = fs::read_to_string(&target).unwrap();
        let copy: Vec<Value> = copy.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let uuids: Vec<_> = copy.iter().map(|it| it["uuid"].as_str().unwrap()).collect();
        assert_eq!(uuids, ["1", "2"]);
        assert!(
            copy.iter()
                .all(|it| it["sessionId"] == "b"
                    && OF_CHAIN.iter().all(|name| it.get(name).is_none()))
        );
        assert_eq!(copy[0]["forkedFrom"], json!({"sessionId": "a", "messageUuid": "1"}));
        assert_eq!(fs::read_to_string(&source).unwrap(), text);
        assert!(fork(&source, &target, "b", None).is_err(), "nothing is written over");
        let missing = fork(&source, &place.path().join("c.jsonl"), "c", Some("9")).unwrap_err();
        assert!(missing.contains("No message found"), "{missing}");
        assert!(!place.path().join("c.jsonl").exists());
    }
}
