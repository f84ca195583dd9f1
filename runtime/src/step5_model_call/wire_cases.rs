//! Recorded answers of all five formats, cut and damaged in every way, through the readers that the
//! product uses; and what the cases of those who serve Claude say. Their blocks are compared byte by
//! byte: they go back as they came. What the cases of OpenAI's formats say is in `openai_shared::cases`.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    ModelAnswer, ModelFailure,
    failure::is_retryable,
    stream::{StreamDelta, StreamOutcome, StreamReport},
    wire_format::WireFormat,
};
use crate::{block::Block, digest::Digest};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/wire");

/// Folders of cases: the format of the answers in them, and how many streams and whole answers there are
/// at least.
type Folders = [(&'static str, WireFormat, usize, usize)];

pub(super) const CLAUDE: &Folders = &[
    ("anthropic", WireFormat::AnthropicMessages, 10, 4),
    ("vertex", WireFormat::VertexRawPredict, 3, 1),
    ("bedrock", WireFormat::BedrockInvoke, 13, 1),
];

pub(super) const OPENAI: &Folders = &[
    ("openai_chat", WireFormat::OpenAiChat, 31, 7),
    ("openai_responses", WireFormat::OpenAiResponses, 25, 5),
];

/// A recorded answer, and what it is to be read as.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) format: WireFormat,
    pub(super) bytes: Vec<u8>,
    pub(super) expected: Value,
}

impl Case {
    /// Returns the recorded streams of these folders.
    pub(super) fn streams(folders: &Folders) -> Vec<Self> {
        let cases = |&(folder, format, n, _)| Self::load(folder, format, &["sse", "bin"], n);
        folders.iter().flat_map(cases).collect()
    }

    /// Returns the recorded answers that came in one piece.
    pub(super) fn whole(folders: &Folders) -> Vec<Self> {
        let cases = |&(folder, format, _, n)| Self::load(folder, format, &["json"], n);
        folders.iter().flat_map(cases).collect()
    }

    /// The cases of a folder whose bytes are in files with one of these endings.
    fn load(folder: &str, format: WireFormat, endings: &[&str], at_least: usize) -> Vec<Self> {
        let mut cases = Vec::new();
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
            cases.push(Self { name, format, bytes: fs::read(&path).unwrap(), expected });
        }
        assert!(at_least <= cases.len(), "{folder}: {} cases", cases.len());
        cases
    }
}

fn all(of: fn(&Folders) -> Vec<Case>) -> impl Iterator<Item = Case> {
    of(CLAUDE).into_iter().chain(of(OPENAI))
}

/// What came of a stream, and what was shown of it.
#[derive(PartialEq)]
pub(super) struct Reading {
    pub(super) report: StreamReport,
    pub(super) text: String,
    pub(super) reasoning: String,
}

/// Returns the digest of the request that every case answers.
pub(super) fn request() -> Digest {
    Digest::of(b"the request of every case")
}

pub(super) fn read<'a>(format: WireFormat, chunks: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut reader = format.reader(request());
    let mut shown = Vec::new();
    for chunk in chunks {
        reader.push_chunk(chunk, &mut shown);
    }
    let (mut text, mut reasoning) = (String::new(), String::new());
    for delta in shown {
        match delta {
            StreamDelta::Text(more) => text.push_str(&more),
            StreamDelta::Reasoning(more) => reasoning.push_str(&more),
            StreamDelta::ToolInput { preview, .. } => {
                assert!(serde_json::from_str::<Value>(&preview).unwrap().is_object());
            }
            StreamDelta::Usage(_) | StreamDelta::Event(_) => {}
        }
    }
    Reading { report: reader.finish(), text, reasoning }
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
    for case in Case::streams(CLAUDE) {
        let report = read(case.format, [&case.bytes[..]]).report;
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
    for case in Case::whole(CLAUDE) {
        match case.format.read_whole(&case.bytes, request()) {
            Ok(answer) => check_message(&case, &answer),
            Err(failure) => check_failure(&case, &failure),
        }
    }
}

// REQ: MDL-1
#[test]
fn stream_of_claude_that_ends_early_is_never_a_message() {
    for case in Case::streams(CLAUDE) {
        let StreamOutcome::Message(whole) = read(case.format, [&case.bytes[..]]).report.outcome
        else {
            continue;
        };
        for end in 0..case.bytes.len() {
            match read(case.format, [&case.bytes[..end]]).report.outcome {
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
    for case in Case::streams(CLAUDE).iter().filter(|it| it.format == WireFormat::BedrockInvoke) {
        let whole = read(case.format, [&case.bytes[..]]).report.outcome;
        for at in 0..case.bytes.len() {
            let mut bytes = case.bytes.clone();
            bytes[at] ^= 0x21;
            let outcome = read(case.format, [&bytes[..]]).report.outcome;
            let is_message = matches!(outcome, StreamOutcome::Message(_));
            assert!(!is_message || outcome == whole, "{} changed at {at}", case.name);
        }
    }
}

// REQ: MDL-1, MDL-8
#[test]
fn streams_read_the_same_cut_at_every_byte() {
    for case in all(Case::streams) {
        let whole = read(case.format, [&case.bytes[..]]);
        for cut in 1..case.bytes.len() {
            let (head, tail) = case.bytes.split_at(cut);
            assert!(read(case.format, [head, tail]) == whole, "{} cut at {cut}", case.name);
        }
        assert!(read(case.format, case.bytes.chunks(1)) == whole, "{} by bytes", case.name);
    }
}

// REQ: MDL-1, MDL-8
#[test]
fn damaged_streams_and_answers_never_panic() {
    const BYTES: [u8; 8] = [0, b'"', b'{', b'}', b'\\', b'\n', 0xff, b'9'];
    for case in all(Case::streams) {
        for at in 0..case.bytes.len() {
            let mut bytes = case.bytes.clone();
            bytes[at] = BYTES[at % BYTES.len()];
            let _any = read(case.format, [&bytes[..]]).report.into_result();
        }
    }
    for case in all(Case::whole) {
        for at in 0..case.bytes.len() {
            let mut bytes = case.bytes.clone();
            bytes[at] = BYTES[at % BYTES.len()];
            let _any = case.format.read_whole(&bytes, request());
            let _any = case.format.read_whole(&case.bytes[..at], request());
        }
    }
}

proptest::proptest! {
    // REQ: MDL-1, MDL-8
    #[test]
    fn any_bytes_end_in_a_report(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
        cut in 0_usize..400,
    ) {
        let data = [b"data: {", &bytes[..], b"\n\n"].concat();
        let (head, tail) = data.split_at(cut.min(data.len()));
        for &(_, format, ..) in CLAUDE.iter().chain(OPENAI) {
            proptest::prop_assert!(read(format, [head, tail]) == read(format, [&data[..]]));
            let _any = format.read_whole(&bytes, request());
        }
    }
}
