//! What the harness's own reader makes of the bytes.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use ennead_runtime::step5_model_call::{
    ModelAnswer, ModelFailure, StopReason, stream::StreamReader, whole::read_whole,
};

fn read(script: &Script) -> Result<ModelAnswer, ModelFailure> {
    let mut reader = StreamReader::new();
    for piece in &script.pieces {
        reader.push_chunk(&piece.bytes, &mut Vec::new());
    }
    reader.finish().into_result()
}

fn with(lines: &str) -> Playbook {
    playbook(&format!(
        "[[rule]]\nname = \"r\"\nreply = [{{ thinking = \"hm\" }}, {{ text = \"Grüße 🦀\" }}, {{ tool = \"Read\", input = {{ file_path = \"/a\" }} }}]\n{lines}"
    ))
}

#[track_caller]
fn check(answer: &ModelAnswer) {
    assert_eq!(answer.stop_reason, StopReason::ToolUse);
    assert!(answer.invalid_inputs.is_empty());
    let texts: Vec<_> = answer.blocks.iter().filter_map(|block| block.as_text()).collect();
    assert_eq!(texts, ["Grüße 🦀"]);
    let (_, name, input) = answer.blocks[2].as_tool_use().expect("a tool use");
    assert_eq!((name.as_str(), input), ("Read", r#"{"file_path":"/a"}"#));
}

// REQ: MDL-11
#[test]
fn an_answer_is_read_whole_streamed_and_in_pieces_of_any_size() {
    for size in 1..40 {
        check(&read(&send(&with(&format!("pace.cut = [{size}]")), &asked("x"))).unwrap());
    }
    let mut request = asked("x");
    request["stream"] = json!(false);
    check(&read_whole(&body(&send(&with(""), &request))).unwrap());
}

// REQ: MDL-11
#[test]
fn every_cut_before_the_end_is_read_as_a_failure() {
    let whole = body(&send(&with(""), &asked("x")));
    // Without the line ends of the last event nothing is missing but the blank line.
    for at in 0..whole.len() - 1 {
        let cut = with(&format!("fault = {{ action = \"end\", at = {at} }}"));
        assert!(read(&send(&cut, &asked("x"))).is_err(), "cut at {at}");
    }
    let error = read(&send(&with("fault = { action = \"error_event\", at = 900 }"), &asked("x")));
    assert_eq!(error.unwrap_err().class.code(), "overloaded");
    let huge = with("fault = { action = \"huge_event\", at = 1, size = 100000 }");
    check(&read(&send(&huge, &asked("x"))).unwrap());
}
