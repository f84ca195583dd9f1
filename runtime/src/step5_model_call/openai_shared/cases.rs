//! What the recorded oddities of both formats are read as, by the readers that the product uses. That
//! they read the same however they are cut is tested for all formats in `wire_cases`.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use crate::{
    ids::ToolUseId,
    step5_model_call::{
        ModelAnswer, ModelFailure,
        failure::is_retryable,
        stream::StreamOutcome,
        wire_cases::{Case, OPENAI, Reading, read, request},
    },
};

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
    for case in Case::streams(OPENAI) {
        let Reading { report, text, reasoning } = read(case.format, [&case.bytes[..]]);
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
    for case in Case::whole(OPENAI) {
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
    for &(_, format, ..) in OPENAI {
        let failure = format.read_whole(page, request()).unwrap_err();
        assert!(
            failure.message.ends_with("the answer is not an object, but \"Sign in\""),
            "{failure:?}"
        );
    }
}

// REQ: MDL-1, MDL-8
#[test]
fn stream_that_ends_anywhere_is_the_message_or_none() {
    for case in Case::streams(OPENAI) {
        let whole = read(case.format, [&case.bytes[..]]).report;
        for end in 0..case.bytes.len() {
            let part = read(case.format, [&case.bytes[..end]]).report;
            let StreamOutcome::Message(part) = part.outcome else { continue };
            let place = format!("{} ends at {end}", case.name);
            let StreamOutcome::Message(whole) = &whole.outcome else { panic!("{place}") };
            // What may be missing is the usage after the end of the message.
            let part = ModelAnswer { usage: whole.usage, ..part };
            assert_eq!(part, *whole, "{place}");
        }
    }
}
