//! Whether a session can go on from an earlier message, and what that leaves out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

/// What a line of a conversation says of its place.
struct TranscriptLine {
    id: String,
    parent: Option<String>,
    /// It is a prompt: neither a result nor a text of the harness.
    is_prompt: bool,
}

/// Checks that a line of the conversation is named `until`; and where `dropped` names a prompt, that all that
/// comes after the line belongs to the run of that prompt. What the conversation does not go on with any more is
/// not counted. Cost: linear in the file.
///
/// # Errors
///
/// Why the session cannot go on from there, in the words that programs look for.
pub fn check(transcript: &Path, until: &str, dropped: Option<&str>) -> Result<(), String> {
    let failed = |error| format!("cannot read the session: {error}");
    let bytes = fs::read(transcript).map_err(failed)?;
    let lines: Vec<TranscriptLine> = bytes.split(|it| *it == b'\n').filter_map(parsed).collect();
    let at = lines.iter().position(|it| it.id == until);
    let at = at.ok_or_else(|| format!("No message found with message.uuid of: {until}"))?;
    let Some(dropped) = dropped else { return Ok(()) };
    let rejected = |why: String| Err(format!("Resume rejected by --resume-drops-turn: {why}"));
    if dropped.trim().is_empty() {
        return rejected("it names no prompt".into());
    }
    let chain = chain(&lines);
    let counts = |it: &TranscriptLine| !chain.contains(until) || chain.contains(&*it.id);
    let mut prompt = None;
    for (place, line) in lines.iter().enumerate().filter(|(_, it)| counts(it)) {
        if line.is_prompt {
            prompt = Some(&*line.id);
        }
        if at < place && prompt != Some(dropped) {
            let found = prompt.unwrap_or("none");
            let id = &line.id;
            return rejected(format!("{id} belongs to the prompt {found}, and not to {dropped}"));
        }
    }
    Ok(())
}

fn parsed(line: &[u8]) -> Option<TranscriptLine> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let kind = value["type"].as_str()?;
    if !matches!(kind, "user" | "assistant" | "system") || value["isSidechain"] == true {
        return None;
    }
    let content = value["message"]["content"].as_array();
    let is_result = content.is_some_and(|it| it.iter().any(|it| it["type"] == "tool_result"));
    let is_of_harness = value["isMeta"] == true || value["isCompactSummary"] == true;
    Some(TranscriptLine {
        id: value["uuid"].as_str()?.to_owned(),
        parent: value["parentUuid"].as_str().map(str::to_owned),
        is_prompt: kind == "user" && !is_result && !is_of_harness,
    })
}

/// The names of the lines from the last one back to the first.
fn chain(lines: &[TranscriptLine]) -> BTreeSet<&str> {
    let parents: BTreeMap<&str, Option<&str>> =
        lines.iter().map(|it| (&*it.id, it.parent.as_deref())).collect();
    let mut found = BTreeSet::new();
    let mut next = lines.last().map(|it| &*it.id);
    while let Some(id) = next.filter(|it| found.insert(*it)) {
        next = parents.get(id).copied().flatten();
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file_of(lines: &[(&str, &str, Option<&str>)]) -> tempfile::NamedTempFile {
        let line = |(kind, id, parent): &(&str, &str, Option<&str>)| {
            json!({"type": kind, "uuid": id, "parentUuid": parent, "message": {"content": "text"}})
                .to_string()
        };
        let text: Vec<String> = lines.iter().map(line).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text.join("\n") + "\nno line\n").unwrap();
        file
    }

    // REQ: SES-5
    #[test]
    fn only_what_belongs_to_the_named_prompt_is_dropped() {
        let file = file_of(&[
            ("user", "p1", None),
            ("assistant", "a1", Some("p1")),
            ("user", "p2", Some("a1")),
            ("assistant", "a2", Some("p2")),
            // The conversation went back, so what is above is not counted.
            ("user", "p3", Some("a1")),
            ("assistant", "a3", Some("p3")),
        ]);
        let check = |until, dropped| check(file.path(), until, dropped);
        assert_eq!(check("a1", None), Ok(()));
        assert_eq!(check("a1", Some("p3")), Ok(()));
        assert_eq!(check("a3", Some("p1")), Ok(()), "nothing comes after it");
        for (until, dropped) in [("a1", "p2"), ("p1", "p3"), ("a1", ""), ("a1", "nobody")] {
            let why = check(until, Some(dropped)).unwrap_err();
            assert!(why.starts_with("Resume rejected by --resume-drops-turn:"), "{why}");
        }
        assert!(check("none", None).unwrap_err().contains("message.uuid of: none"));
    }

    // REQ: SES-5
    #[test]
    fn lines_that_follow_each_other_in_a_circle_end_the_walk() {
        let file = file_of(&[("user", "a", Some("b")), ("assistant", "b", Some("a"))]);
        assert_eq!(check(file.path(), "a", Some("a")), Ok(()));
    }
}
