//! The recorded streams, cut in every way, through the reader that the product uses.
//!
//! Built under `#[cfg(test)]` only.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{conformance::conformance_report, *};
use crate::entropy;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/sse_streams");
/// Streams up to this long are cut everywhere.
const SMALL: usize = 16 * 1024;

struct Case {
    name: String,
    stream: Vec<u8>,
    expected: Value,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = fs::read_dir(CASES)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "sse"))
        .map(|path| read_case(&path))
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(36 <= cases.len());
    cases
}

fn read_case(path: &Path) -> Case {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
    let stream = fs::read(path).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(hex(&stream), expected["sha256"].as_str().unwrap(), "{name}");
    Case { name, stream, expected }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether what was read is what the case expects, by the rules of its README, section D.
#[track_caller]
fn check(case: &Case, got: &Value, how: &str) {
    let place = format!("{} {how}", case.name);
    for field in ["outcome", "error", "partial_text", "executable_tools", "retryable"] {
        if let Some(expected) = case.expected.get(field) {
            assert_eq!(&got[field], expected, "{place}: {field}");
        }
    }
    let Some(expected) = case.expected.get("message") else { return };
    let (mut expected, mut got) = (expected.clone(), got["message"].clone());
    let (expected_content, got_content) = (expected["content"].take(), got["content"].take());
    assert_eq!(got, expected, "{place}: message");
    let got_content = got_content.as_array().unwrap();
    let expected_content = expected_content.as_array().unwrap();
    assert_eq!(got_content.len(), expected_content.len(), "{place}: number of blocks");
    for (got, expected) in got_content.iter().zip(expected_content) {
        check_block(case, got, expected, &place);
    }
}

#[track_caller]
fn check_block(case: &Case, got: &Value, expected: &Value, place: &str) {
    if let Some(length) = expected.get("text_length") {
        let text = got["text"].as_str().unwrap();
        assert_eq!(text.chars().count() as u64, length.as_u64().unwrap(), "{place}");
        assert_eq!(hex(text.as_bytes()), expected["text_sha256"].as_str().unwrap(), "{place}");
        return;
    }
    let accepted = case.expected.get("accept_text").and_then(Value::as_array);
    let is_accepted = accepted.is_some_and(|texts| texts.contains(&got["text"]));
    assert!(got == expected || is_accepted, "{place}: {got} is not {expected}");
}

fn report(pieces: &[&[u8]]) -> StreamReport {
    let mut reader = StreamReader::new();
    for piece in pieces {
        reader.push_chunk(piece, &mut Vec::new());
    }
    reader.finish()
}

/// Cuts a stream in two at `cuts`; the parts must be read like the whole.
fn check_cuts(case: &Case, cuts: impl IntoIterator<Item = usize>) {
    let whole = report(&[&case.stream]);
    check(case, &conformance_report([&case.stream[..]]), "in one piece");
    for cut in cuts {
        let (head, tail) = case.stream.split_at(cut);
        assert!(report(&[head, tail]) == whole, "{} cut at {cut}", case.name);
    }
}

/// Positions near the borders of events in the first and last 8 KB, and 2,000 seeded ones.
fn sampled_cuts(stream: &[u8]) -> BTreeSet<usize> {
    const NEAR: usize = 64;
    const ENDS: usize = 8 * 1024;
    let borders = memchr::memmem::find_iter(stream, b"\n\n")
        .filter(|at| *at < ENDS || stream.len() - ENDS < *at);
    let near: BTreeSet<usize> =
        borders.flat_map(|at| at.saturating_sub(NEAR)..=(at + NEAR).min(stream.len())).collect();
    let seed = entropy::EntropyStream::from_seed(5);
    let drawn = (0..2_000).map(|n| (seed.draw("cut", n) % stream.len() as u128) as usize);
    near.into_iter().chain(drawn).collect()
}

// REQ: MDL-1
#[test]
fn small_streams_read_the_same_cut_at_every_byte() {
    for case in cases().iter().filter(|it| it.stream.len() <= SMALL) {
        check_cuts(case, 0..=case.stream.len());
    }
}

fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    for piece in pieces {
        let read = parser.push_chunk(piece, |event| {
            events.push((event.event.into_owned(), event.data.into_owned()));
            std::ops::ControlFlow::Continue(())
        });
        read.unwrap();
    }
    events
}

/// A cut matters only to the event that it falls into: once the reader is in the same state after
/// that event, it reads the rest the same. Of cuts inside the one huge event most are tried on the
/// event parser alone; the state machine sees whole events only.
// REQ: MDL-1
#[test]
fn large_streams_read_the_same_cut_at_many_bytes() {
    let large: Vec<_> = cases().into_iter().filter(|it| SMALL < it.stream.len()).collect();
    assert_eq!(large.len(), 2);
    for case in large {
        let cuts = sampled_cuts(&case.stream);
        let borders = memchr::memmem::find_iter(&case.stream, b"\n\n").map(|at| at + 2);
        let mut reader = StreamReader::new();
        let mut from = 0;
        for to in borders {
            let before = reader.clone();
            reader.push_chunk(&case.stream[from..to], &mut Vec::new());
            let mut event = None;
            for (n, &cut) in cuts.range(from..to).enumerate() {
                let (head, tail) = (&case.stream[from..cut], &case.stream[cut..to]);
                if SMALL < to - from && !n.is_multiple_of(16) {
                    let whole = event.get_or_insert_with(|| events(&[&case.stream[from..to]]));
                    assert!(events(&[head, tail]) == *whole, "{} cut at {cut}", case.name);
                    continue;
                }
                let mut cut_reader = before.clone();
                cut_reader.push_chunk(head, &mut Vec::new());
                cut_reader.push_chunk(tail, &mut Vec::new());
                assert!(cut_reader == reader, "{} cut at {cut}", case.name);
            }
            from = to;
        }
        check_cuts(&case, cuts.into_iter().step_by(700));
    }
}

// REQ: MDL-1
#[test]
fn every_stream_reads_the_same_byte_by_byte_and_in_odd_pieces() {
    for case in cases() {
        check(&case, &conformance_report(case.stream.chunks(1)), "byte by byte");
        check(&case, &conformance_report(case.stream.chunks(7)), "by 7 bytes");
        check(&case, &conformance_report(case.stream.chunks(1_460)), "by packets");
    }
}

// REQ: MDL-1
#[test]
fn a_stream_that_ends_early_is_incomplete_until_its_outcome_has_come() {
    for case in cases() {
        let Some(range) = case.expected["complete_at"].as_array() else { continue };
        let [first, last] = [0, 1].map(|i| range[i].as_u64().unwrap() as usize);
        let n = case.stream.len();
        let step = if n <= SMALL { 1 } else { n / 40 };
        let before = (0..first).step_by(step).chain(first.saturating_sub(20)..first);
        for k in before {
            let got = conformance_report([&case.stream[..k]]);
            assert_eq!(got["outcome"], "incomplete", "{} ended at {k}", case.name);
            assert_eq!(got["retryable"], true);
            assert_eq!(got["executable_tools"], serde_json::json!([]));
        }
        for k in (last..=n).step_by(step.min(7)) {
            check(&case, &conformance_report([&case.stream[..k]]), &format!("ended at {k}"));
        }
    }
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn stream(events: &[&str]) -> Vec<u8> {
    let start = r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":9,"output_tokens":1}}}"#;
    std::iter::once(&start).chain(events).map(|it| event(it)).collect::<String>().into_bytes()
}

// REQ: MDL-2
#[test]
fn texts_of_one_read_are_shown_as_one_and_previews_behind_whole_values() {
    let bytes = stream(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"c"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1,\"b"}}"#,
    ]);
    let mut reader = StreamReader::new();
    assert_eq!(reader.machine.phase, StreamPhase::Idle);
    let mut out = vec![StreamDelta::Text("of an earlier read".into())];
    reader.push_chunk(&bytes, &mut out);
    assert_eq!(reader.machine.phase, StreamPhase::ToolInput);
    let usage = Usage { input_tokens: 9, output_tokens: 1, ..Usage::default() };
    let preview = r#"{"a":1}"#.to_owned();
    assert_eq!(
        out[1..],
        [
            StreamDelta::Usage(usage),
            StreamDelta::Reasoning("hm".into()),
            StreamDelta::Text("abc".into()),
            StreamDelta::ToolInput { id: "t".into(), name: "n".into(), preview },
        ]
    );
}

// REQ: MDL-2
#[test]
fn usage_is_replaced_and_not_added() {
    let bytes = stream(&[
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":12,"input_tokens":null}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let mut reader = StreamReader::new();
    reader.push_chunk(&bytes, &mut Vec::new());
    assert!(reader.is_complete());
    let answer = reader.finish().into_result().unwrap();
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (9, 12));
    assert_eq!(answer.stop_reason, crate::step5_model_call::StopReason::EndTurn);
}

// REQ: MDL-1
#[test]
fn shapes_that_nobody_expected_are_passed_over_or_named() {
    let outcome = |events: &[&str]| conformance_report([&stream(events)[..]]);
    let open =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    for ignored in [
        r#"{"type":"foo","index":"x","delta":7}"#,
        r#"{"type":"ping","usage":[]}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"foo","text":{}}}"#,
        r#"["message_stop"]"#,
        "nothing",
    ] {
        assert_eq!(outcome(&[open, ignored])["outcome"], "incomplete", "{ignored}");
    }
    for malformed in [
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":[]}"#,
    ] {
        let got = outcome(&[open, malformed]);
        assert_eq!(got["error"]["class"], "malformed_event", "{malformed}");
    }
    for against_protocol in [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"message_stop"}"#,
    ] {
        let got = outcome(&[open, against_protocol]);
        assert_eq!(got["error"]["class"], "protocol_error", "{against_protocol}");
    }
}

// REQ: MDL-1
#[test]
fn odd_numbers_of_usage_and_halves_of_surrogates_lose_no_answer() {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":7.0,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00b"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":18446744073709551616,"cache_read_input_tokens":"3","cache_creation_input_tokens":-1}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let stream: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let mut reader = StreamReader::default();
    reader.push_chunk(stream.as_bytes(), &mut Vec::new());
    let StreamOutcome::Message(answer) = reader.finish().outcome else { panic!("no message") };
    assert_eq!(answer.blocks[0].as_text(), Some("a\u{fffd}\u{fffd}b"));
    let usage = answer.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 1));
    assert_eq!((usage.cache_read_input_tokens, usage.cache_creation_input_tokens), (0, 0));
}
