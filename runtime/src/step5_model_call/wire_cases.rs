//! Recorded answers of those who serve Claude, cut in every way, through the readers that the
//! product uses. Blocks are compared byte by byte: they go back as they came.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    ModelAnswer, ModelFailure,
    failure::is_retryable,
    stream::{StreamOutcome, StreamReport},
    wire_format::WireFormat,
};
use crate::{block::Block, digest::Digest};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/wire");

struct Case {
    name: String,
    format: WireFormat,
    bytes: Vec<u8>,
    expected: Value,
}

/// All cases with one of these endings.
fn cases(endings: &[&str], n_cases: usize) -> Vec<Case> {
    let folders = [
        ("anthropic", WireFormat::AnthropicMessages),
        ("vertex", WireFormat::VertexRawPredict),
        ("bedrock", WireFormat::BedrockInvoke),
    ];
    let mut cases = Vec::new();
    for (folder, format) in folders {
        for file in fs::read_dir(Path::new(CASES).join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let Some((name, ending)) = name.split_once('.') else { continue };
            if !endings.contains(&ending) {
                continue;
            }
            let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            assert_eq!(expected["id"], json!(name));
            let name = format!("{folder}/{name}");
            cases.push(Case { name, format, bytes: fs::read(&path).unwrap(), expected });
        }
    }
    assert_eq!(cases.len(), n_cases);
    cases
}

fn streams() -> Vec<Case> {
    cases(&["sse", "bin"], 26)
}

fn read<'a>(format: WireFormat, chunks: impl IntoIterator<Item = &'a [u8]>) -> StreamReport {
    let mut reader = format.reader(Digest::default());
    let mut shown = Vec::new();
    for chunk in chunks {
        reader.push_chunk(chunk, &mut shown);
    }
    reader.finish()
}

fn wire(block: &Block) -> String {
    format!("{}}}", block.wire_open())
}

#[track_caller]
fn check_message(case: &Case, answer: &ModelAnswer) {
    let mut message = json!({
        "id": answer.message_id,
        "model": answer.model,
        "stop_reason": answer.stop_reason.as_wire(),
        "content": answer.blocks.iter().map(wire).collect::<Vec<_>>(),
        "usage": answer.usage,
    });
    if let Some(refusal) = &answer.refusal {
        message["refusal"] = json!(refusal);
    }
    assert_eq!("message", case.expected["outcome"], "{}", case.name);
    assert_eq!(message, case.expected["message"], "{}", case.name);
    let tools: Vec<_> = answer.executable_tools().collect();
    assert_eq!(json!(tools), case.expected["executable_tools"], "{}", case.name);
    for block in &answer.blocks {
        assert_eq!(&Block::from_wire(&wire(block)).unwrap(), block, "{}", case.name);
    }
}

#[track_caller]
fn check_failure(case: &Case, failure: &ModelFailure) {
    assert_eq!("error", case.expected["outcome"], "{}: {failure:?}", case.name);
    assert_eq!(failure.class.code(), case.expected["error_class"], "{}: {failure:?}", case.name);
    assert_eq!(case.expected["retryable"], is_retryable(failure.class), "{}", case.name);
}

// REQ: MDL-1, MDL-2
#[test]
fn every_stream_reads_as_its_case_says() {
    for case in streams() {
        let report = read(case.format, [&case.bytes[..]]);
        match report.outcome {
            StreamOutcome::Message(answer) => check_message(&case, &answer),
            StreamOutcome::Error { .. } => {
                check_failure(&case, &report.into_result().unwrap_err());
            }
            StreamOutcome::Incomplete => {
                assert_eq!(case.expected["outcome"], "incomplete", "{}", case.name);
            }
        }
    }
}

// REQ: MDL-7
#[test]
fn every_whole_answer_reads_as_its_case_says() {
    for case in cases(&["json"], 6) {
        match case.format.read_whole(&case.bytes, Digest::default()) {
            Ok(answer) => check_message(&case, &answer),
            Err(failure) => check_failure(&case, &failure),
        }
    }
}

// REQ: MDL-1
#[test]
fn streams_read_the_same_cut_at_every_byte() {
    for case in streams() {
        let whole = read(case.format, [&case.bytes[..]]);
        for cut in 1..case.bytes.len() {
            let (head, tail) = case.bytes.split_at(cut);
            assert!(read(case.format, [head, tail]) == whole, "{} cut at {cut}", case.name);
        }
        assert!(read(case.format, case.bytes.chunks(1)) == whole, "{} by bytes", case.name);
    }
}

// REQ: MDL-1
#[test]
fn stream_that_ends_early_is_never_a_message() {
    for case in streams() {
        let StreamOutcome::Message(whole) = read(case.format, [&case.bytes[..]]).outcome else {
            continue;
        };
        for end in 0..case.bytes.len() {
            match read(case.format, [&case.bytes[..end]]).outcome {
                // The last event is whole without the last line end.
                StreamOutcome::Message(part) => {
                    assert!(part == whole && case.bytes.len() - end <= 3, "{} at {end}", case.name);
                }
                StreamOutcome::Error { .. } | StreamOutcome::Incomplete => {}
            }
        }
    }
}

// REQ: MDL-1
#[test]
fn changed_byte_of_a_frame_is_never_another_message() {
    for case in streams().iter().filter(|it| it.format == WireFormat::BedrockInvoke) {
        let whole = read(case.format, [&case.bytes[..]]).outcome;
        for at in 0..case.bytes.len() {
            let mut bytes = case.bytes.clone();
            bytes[at] ^= 0x21;
            let outcome = read(case.format, [&bytes[..]]).outcome;
            let is_message = matches!(outcome, StreamOutcome::Message(_));
            assert!(!is_message || outcome == whole, "{} changed at {at}", case.name);
        }
    }
}
