//! What goes wrong on purpose.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

fn with(lines: &str) -> Playbook {
    playbook(&format!("[[rule]]\nname = \"r\"\nreply = [{{ text = \"Hello\" }}]\n{lines}"))
}

// REQ: MDL-11
#[test]
fn a_body_is_cut_at_any_byte_and_ends_in_any_way() {
    let whole = body(&send(&playbook(HELLO), &asked("x")));
    for at in 0..=whole.len() + 1 {
        for (action, end) in [("end", End::Closed), ("reset", End::Reset), ("stall", End::Stall)] {
            let script = send(
                &with(&format!("fault = {{ action = \"{action}\", at = {at} }}")),
                &asked("x"),
            );
            assert_eq!(body(&script), whole[..at.min(whole.len())], "{action} at {at}");
            assert_eq!(script.end, end);
        }
    }
}

// REQ: MDL-11
#[test]
fn pieces_have_the_sizes_and_delays_that_are_asked_for() {
    let whole = body(&send(&playbook(HELLO), &asked("x")));
    let script = send(
        &with("pace = { head_ms = 1, first_ms = 2, between_ms = 3, cut = [1, 4] }"),
        &asked("x"),
    );
    let sizes: Vec<usize> = script.pieces.iter().map(|piece| piece.bytes.len()).collect();
    assert_eq!(sizes[..5], [1, 4, 1, 4, 1]);
    assert_eq!(body(&script), whole);
    assert_eq!(script.delay_ms, 1);
    let delays: Vec<u64> = script.pieces.iter().map(|piece| piece.delay_ms).collect();
    assert_eq!(delays[..3], [2, 3, 3]);

    let by_event = send(&with("pace.between_ms = 3"), &asked("x"));
    assert_eq!(by_event.pieces.len(), events(&by_event).len());
    assert!(by_event.pieces.iter().all(|piece| piece.bytes.ends_with(b"\n\n")));
    assert_eq!(send(&playbook(HELLO), &asked("x")).pieces.len(), 1);
}

// REQ: MDL-11
#[test]
fn what_is_put_in_leaves_the_rest_whole() {
    let whole = body(&send(&playbook(HELLO), &asked("x")));
    for (action, n_bytes) in [("garbage", 40), ("non_utf8", 40)] {
        let fault = format!("fault = {{ action = \"{action}\", at = 30, size = 40 }}");
        let bytes = body(&send(&with(&fault), &asked("x")));
        assert_eq!(bytes.len(), whole.len() + n_bytes);
        assert_eq!((&bytes[..30], &bytes[30 + n_bytes..]), (&whole[..30], &whole[30..]));
        assert!(std::str::from_utf8(&bytes).is_err(), "{action}");
    }
    let huge =
        send(&with("fault = { action = \"huge_event\", at = 1, size = 100000 }"), &asked("x"));
    let data = events(&huge);
    assert_eq!(data[0]["type"], "message_start");
    assert_eq!(data[1]["pad"].as_str().map(str::len), Some(100_000));
    assert_eq!(message(&huge)["content"][0]["text"], "Hello");
}

// REQ: MDL-11
#[test]
fn an_error_may_come_in_the_middle_of_a_stream() {
    let script = send(
        &with("fault = { action = \"error_event\", at = 300, message = \"too much\" }"),
        &asked("x"),
    );
    let data = events(&script);
    let (last, before) = data.split_last().unwrap();
    assert_eq!(
        *last,
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "too much"}})
    );
    assert_eq!(before[0]["type"], "message_start");
    assert!(before.iter().all(|event| event["type"] != "message_stop"));
    assert_eq!(script.status, 200);
}

// REQ: MDL-11
#[test]
fn a_status_replaces_the_answer() {
    let text = r#"
[[rule]]
name = "full"
fault = { status = 429, message = "slow down", headers = { Retry-After = "3" } }
"#;
    let script = send(&playbook(text), &asked("x"));
    assert_eq!(script.status, 429);
    assert!(script.headers.contains(&("retry-after".into(), "3".into())));
    let error = json_body(&script);
    assert_eq!(error["error"], json!({"type": "rate_limit_error", "message": "slow down"}));
    assert!(error["request_id"].as_str().unwrap().starts_with("req_sim_"));

    let text = "[[rule]]\nname = \"page\"\nfault = { status = 502, body = \"<html>\", content_type = \"text/html\" }";
    let script = send(&playbook(text), &asked("x"));
    assert_eq!((script.status, body(&script)), (502, b"<html>".to_vec()));
    assert!(script.headers.contains(&("content-type".into(), "text/html".into())));
}

// REQ: MDL-11
#[test]
fn a_rule_with_times_passes_after_so_many_requests_of_a_conversation() {
    let playbook =
        playbook(&format!("[[rule]]\nname = \"busy\"\ntimes = 2\nfault.status = 529\n{HELLO}"));
    let mut attempts = Attempts::default();
    let mut status = |text: &str| send_with(&playbook, &asked(text), &mut attempts).status;
    assert_eq!([status("a"), status("a"), status("a")], [529, 529, 200]);
    assert_eq!([status("b"), status("b"), status("b")], [529, 529, 200]);
    assert_eq!(status("a"), 200);
}

// REQ: MDL-11
#[test]
fn faults_come_in_turn_and_then_the_reply_does() {
    let playbook = with(
        "faults = [{ status = 529 }, { action = \"reset\", at = 9 }, {}, { status = 429, headers = { retry-after = \"1\" } }]",
    );
    let mut attempts = Attempts::default();
    let mut seen = |text: &str| {
        let script = send_with(&playbook, &asked(text), &mut attempts);
        (script.status, script.end, body(&script).len() == 9)
    };
    let whole = (200, End::Closed, false);
    assert_eq!(seen("a"), (529, End::Closed, false));
    assert_eq!(seen("a"), (200, End::Reset, true));
    assert_eq!(seen("b"), (529, End::Closed, false));
    assert_eq!(seen("a"), whole);
    assert_eq!(seen("a"), (429, End::Closed, false));
    assert_eq!([seen("a"), seen("a")], [whole, whole]);
}

// REQ: MDL-11
#[test]
fn a_rule_of_faults_alone_is_passed_over_behind_the_last() {
    let playbook = playbook(&format!(
        "[[rule]]\nname = \"storm\"\nfaults = [{{ status = 529 }}, {{ status = 503 }}]\n{HELLO}"
    ));
    let mut attempts = Attempts::default();
    let mut status = || send_with(&playbook, &asked("a"), &mut attempts).status;
    assert_eq!([status(), status(), status(), status()], [529, 503, 200, 200]);
}

// REQ: MDL-11
#[test]
fn an_answer_may_end_before_its_head() {
    for (action, end) in [
        ("end", End::Closed),
        ("close", End::Dropped),
        ("reset", End::Reset),
        ("stall", End::Stall),
    ] {
        let text = format!(
            "[[rule]]\nname = \"r\"\nfault = {{ action = \"{action}\", before_head = true }}"
        );
        let script = send(&playbook(&text), &asked("x"));
        assert!(script.before_head && script.pieces.is_empty(), "{script:?}");
        assert_eq!(script.end, end);
    }
}

// REQ: MDL-11
#[test]
fn recorded_bytes_are_served_as_they_are_and_cut_where_the_request_says() {
    let recorded = b"event: a\ndata: \xff\n\nevent: b\ndata: 2\n\n";
    let text = r#"
[[rule]]
name = "r"
fault = { status = 200, body_file = "streams/a.sse", content_type = "text/event-stream", action = "end", at = "prompt|number" }
"#;
    let read = |file: &str| match file {
        "streams/a.sse" => Ok(recorded.to_vec()),
        other => Err(format!("what is {other}")),
    };
    let playbook = Playbook::parse_with(text, "test.toml", read).unwrap();
    for at in 0..=recorded.len() {
        let script = send(&playbook, &asked(&format!("cut at {at}")));
        assert_eq!(body(&script), recorded[..at]);
        assert_eq!(script.status, 200);
        assert!(script.headers.contains(&("content-type".into(), "text/event-stream".into())));
    }
    let paced = text.replace("action = \"end\", at = \"prompt|number\"", "");
    let paced = format!("{}\npace.between_ms = 1\n", paced.replace(", }", " }"));
    let playbook = Playbook::parse_with(&paced, "test.toml", read).unwrap();
    assert_eq!(send(&playbook, &asked("x")).pieces.len(), 2);
    let nowhere = send(&Playbook::parse_with(text, "test.toml", read).unwrap(), &asked("x"));
    assert_eq!(nowhere.status, 400, "a place that is not a number is a mistake of the playbook");
}
