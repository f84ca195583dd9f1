//! What the page holds, and how long lines and files are cut.

use std::os::unix::fs::symlink;

use super::*;

fn shown(bytes: &[u8]) -> PageTranscript {
    PageTranscript {
        name: "t".into(),
        agent: None,
        description: String::new(),
        bytes: bytes.to_vec(),
        left_out: 0,
    }
}

/// The data of a page, as a browser reads it.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"recorded\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

// REQ: SUR-5
#[test]
fn no_text_of_a_transcript_ends_the_element_that_holds_it() {
    let line = json!({ "type": "user", "message": { "content": "</script><script>alert(1)</script><!--\u{2028}" } });
    let page = page(&[shown(format!("{line}\nnot json </script>\n").as_bytes())]);
    let lines = data(&page)["transcripts"][0]["lines"].clone();
    assert_eq!(lines, json!([line.to_string(), "not json </script>"]));
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    assert!(!page.contains("<!-- files"), "the files of the server are not asked for");
}

// REQ: SUR-5
#[test]
fn page_holds_the_newest_lines_of_a_transcript_that_is_too_long() {
    let line = |n: usize| format!("{{\"n\":{n},\"text\":\"{}\"}}\n", "x".repeat(100_000));
    let lines: String = (0..300).map(line).collect();
    let page = page(&[shown(lines.as_bytes())]);
    assert!(page.len() < MAX_BYTES + MAX_BYTES / 4, "{}", page.len());
    let data = data(&page);
    let kept = data["transcripts"][0]["lines"].as_array().unwrap();
    assert!(kept.last().unwrap().as_str().unwrap().starts_with("{\"n\":299,"));
    assert_eq!(
        data["transcripts"][0]["left_out"],
        (300 - kept.len()) * 100_017 + left_digits(300 - kept.len()),
    );
}

// REQ: SUR-5
#[test]
fn sub_agents_are_read_with_what_they_were_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let sidechains = place.path().join("s/subagents");
    fs::create_dir_all(&sidechains).unwrap();
    fs::write(place.path().join("s.jsonl"), "{}\n").unwrap();
    fs::write(sidechains.join("agent-0a.jsonl"), "{\"a\":1}\n").unwrap();
    fs::write(sidechains.join("agent-0a.meta.json"), "{\"description\":\"look\"}").unwrap();
    fs::create_dir(sidechains.join("agent-0b.jsonl")).unwrap();
    fs::write(place.path().join("private"), "of somebody else\n").unwrap();
    symlink(place.path().join("private"), sidechains.join("agent-0c.jsonl")).unwrap();
    let all = read(&place.path().join("s.jsonl")).unwrap();
    let names: Vec<_> = all.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
    assert_eq!(names, [("s", ""), ("agent-0a", "look")]);
    assert_eq!(all[1].agent.as_deref(), Some("0a"));
}

// REQ: SUR-5
#[test]
fn file_that_is_longer_than_the_room_is_read_from_a_line_near_its_end() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("t.jsonl");
    fs::write(&file, "first\nsecond\nthird\n").unwrap();
    assert_eq!(end_of(&file, 10).unwrap(), (b"third\n".to_vec(), 13));
    assert_eq!(end_of(&file, 100).unwrap().1, 0);
    assert_eq!(end_of(&file, 0).unwrap(), (Vec::new(), 19));
}

/// The digits of the numbers below `n`, less one each, which the length of a line above counts.
fn left_digits(n: usize) -> usize {
    (0..n).map(|it| it.to_string().len() - 1).sum()
}

// REQ: SUR-5
#[test]
fn text_of_a_long_line_is_shortened_and_its_fields_stay() {
    let line =
        json!({ "type": "user", "uuid": "u", "toolUseResult": "é".repeat(200_000) }).to_string();
    let page = page(&[shown(line.as_bytes())]);
    let lines = data(&page)["transcripts"][0]["lines"].clone();
    let read: Value = serde_json::from_str(lines[0].as_str().unwrap()).unwrap();
    assert_eq!(read["uuid"], "u");
    let text = read["toolUseResult"].as_str().unwrap();
    assert!(
        text.ends_with("(334464 more bytes are in the transcript)"),
        "{}",
        &text[text.len() - 60..]
    );
}
