//! The recorded oddities of both formats, cut in every way, through the readers that the product
//! uses.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::ids::ToolUseId;
use crate::{
    digest::Digest,
    step5_model_call::{
        ModelAnswer, ModelFailure,
        failure::is_retryable,
        stream::{StreamDelta, StreamOutcome, StreamReport},
        wire_format::WireFormat,
    },
};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/wire");

struct Case {
    name: String,
    format: WireFormat,
    bytes: Vec<u8>,
    expected: Value,
}

/// The cases of both formats whose bytes lie in files with this ending.
fn cases(ending: &str, at_least: usize) -> Vec<Case> {
    let folders = [
        ("openai_chat", WireFormat::OpenAiChat),
        ("openai_responses", WireFormat::OpenAiResponses),
    ];
    let mut cases = Vec::new();
    for (folder, format) in folders {
        let files = fs::read_dir(Path::new(CASES).join(folder)).unwrap();
        for path in files.map(|it| it.unwrap().path()) {
            if path.extension().is_none_or(|it| it != ending)
                || path.to_string_lossy().ends_with(".expected.json")
            {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            assert_eq!(expected["id"], json!(name));
            cases.push(Case { name, format, bytes: fs::read(&path).unwrap(), expected });
        }
    }
    assert!(at_least <= cases.len(), "{} cases", cases.len());
    cases
}

fn streams() -> Vec<Case> {
    cases("sse", 55)
}

fn request() -> Digest {
    Digest::of(b"the request of every case")
}

/// What came of a stream, and what was shown of it: text, reasoning, number of previews.
fn read<'a>(
    format: WireFormat,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (StreamReport, String, String) {
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
    (reader.finish(), text, reasoning)
}

fn message(answer: &ModelAnswer) -> Value {
    let content = answer.blocks.iter().map(|block| {
        let mut wire = Vec::new();
        block.push_wire(&mut wire);
        serde_json::from_slice::<Value>(&wire).unwrap()
    });
    let usage = answer.usage;
    let message = json!({
        "id": answer.message_id,
        "model": answer.model,
        "stop_reason": answer.stop_reason.as_wire(),
        "content": content.collect::<Vec<_>>(),
        "usage": {
            "input_tokens": usage.input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
            "output_tokens": usage.output_tokens,
        },
    });
    message
}

/// Ids that were made up, as they are named in the cases.
fn named(value: &Value) -> Value {
    let mut text = value.to_string();
    for n in 0..8 {
        text = text.replace(ToolUseId::made_up(request(), n).as_str(), &format!("made-up-{n}"));
    }
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn check_message(case: &Case, answer: &ModelAnswer) {
    let Case { name, expected, .. } = case;
    assert_eq!("message", expected["outcome"], "{name}");
    assert_eq!(named(&message(answer)), expected["message"], "{name}");
    let tools: Vec<&str> = answer.executable_tools().map(|it| it.as_str()).collect();
    assert_eq!(named(&json!(tools)), expected["executable_tools"], "{name}");
    let invalid: Vec<&str> = answer.invalid_inputs.iter().map(|it| it.0.as_str()).collect();
    let expected = expected.get("invalid_inputs").cloned().unwrap_or(json!([]));
    assert_eq!(named(&json!(invalid)), expected, "{name}");
}

#[track_caller]
fn check_failure(case: &Case, failure: &ModelFailure) {
    let Case { name, expected, .. } = case;
    assert_eq!(expected["error"]["class"], failure.class.code(), "{name}: {failure:?}");
    let code = expected["error"]["code"].as_str().unwrap();
    assert!(failure.message.starts_with(code), "{name}: {failure:?}");
    assert_eq!(expected["retryable"], is_retryable(failure.class), "{name}");
}

// REQ: MDL-1, MDL-2, MDL-8
#[test]
fn every_stream_reads_as_its_case_says() {
    for case in streams() {
        let (report, text, reasoning) = read(case.format, [&case.bytes[..]]);
        let name = &case.name;
        assert_eq!(case.expected["shown"], json!({"text": text, "reasoning": reasoning}), "{name}");
        assert_eq!(report.partial_text, text, "{name}");
        match &report.outcome {
            StreamOutcome::Message(answer) => check_message(&case, answer),
            StreamOutcome::Error { .. } => {
                assert_eq!(case.expected["outcome"], "error", "{name}: {report:?}");
                check_failure(&case, &report.into_result().unwrap_err());
            }
            StreamOutcome::Incomplete => {
                assert_eq!(case.expected["outcome"], "incomplete", "{name}")
            }
        }
    }
}

// REQ: MDL-7, MDL-8
#[test]
fn every_whole_answer_reads_as_its_case_says() {
    for case in cases("json", 12) {
        match case.format.read_whole(&case.bytes, request()) {
            Ok(answer) => check_message(&case, &answer),
            Err(failure) => check_failure(&case, &failure),
        }
    }
}

// REQ: MDL-10
#[test]
fn page_in_the_place_of_an_answer_is_named_by_its_title() {
    let page = b"<html><head><title>Sign in</title></head></html>";
    for format in [WireFormat::OpenAiChat, WireFormat::OpenAiResponses] {
        let failure = format.read_whole(page, request()).unwrap_err();
        assert!(
            failure.message.ends_with("the answer is no object, but \"Sign in\""),
            "{failure:?}"
        );
    }
}

// REQ: MDL-1, MDL-8
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

// REQ: MDL-1, MDL-8
#[test]
fn stream_that_ends_anywhere_is_the_message_or_none() {
    for case in streams() {
        let (whole, ..) = read(case.format, [&case.bytes[..]]);
        for end in 0..case.bytes.len() {
            let (part, ..) = read(case.format, [&case.bytes[..end]]);
            let StreamOutcome::Message(part) = part.outcome else { continue };
            let place = format!("{} ends at {end}", case.name);
            let StreamOutcome::Message(whole) = &whole.outcome else { panic!("{place}") };
            // What may be missing is the usage after the end of the message.
            let part = ModelAnswer { usage: whole.usage, ..part };
            assert_eq!(part, *whole, "{place}");
        }
    }
}

// REQ: MDL-1, MDL-8
#[test]
fn damaged_streams_and_answers_never_panic() {
    const BYTES: [u8; 8] = [0, b'"', b'{', b'}', b'\\', b'\n', 0xff, b'9'];
    for case in streams() {
        for at in 0..case.bytes.len() {
            let mut bytes = case.bytes.clone();
            bytes[at] = BYTES[at % BYTES.len()];
            let (report, ..) = read(case.format, [&bytes[..]]);
            let _any = report.into_result();
        }
    }
    for case in cases("json", 12) {
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
        for format in [WireFormat::OpenAiChat, WireFormat::OpenAiResponses] {
            let (report, ..) = read(format, [head, tail]);
            proptest::prop_assert!(report == read(format, [&data[..]]).0);
            let _any = format.read_whole(&bytes, request());
        }
    }
}
