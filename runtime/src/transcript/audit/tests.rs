//! A transcript in order passes; one that is wrong in one place is refused for just that.
//!
//! Built under `#[cfg(test)]` only.

use super::{fixture::*, *};
use crate::{
    message::Message,
    tool::ToolErrorKind,
    transcript::{
        entry::{Line, RecordKind, StepDetail, Stored},
        trace::render,
    },
};

fn audit(bytes: &[u8]) -> Result<Verified, Violation> {
    audit_with(bytes, &|_| Some("layers".into()), None)
}

fn audit_with(
    bytes: &[u8],
    stored: &dyn Fn(Digest) -> Option<String>,
    max: Option<u64>,
) -> Result<Verified, Violation> {
    let evidence = Evidence {
        stored,
        sidechain: &|_| None,
        checkpoint: None,
        run_budget: &|_| max,
        also: &|_| Ok(()),
    };
    verify(bytes, &evidence)
}

/// Changes the lines, seals them anew and expects the violation.
#[track_caller]
fn check(code: &str, change: impl Fn(&mut Vec<Line>)) {
    let mut lines = good();
    change(&mut lines);
    let found = audit(&seal(&lines)).map_err(|it| it.what.code());
    assert_eq!(found.map(|_| "in order").unwrap_or_else(|it| it), code);
}

/// Changes the bytes and expects the violation at the line.
#[track_caller]
fn check_bytes(code: &str, line: u64, change: impl Fn(Vec<String>) -> Vec<String>) {
    let text = String::from_utf8(seal(&good())).unwrap();
    let lines = change(text.lines().map(Into::into).collect());
    let bytes = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let violation = audit(bytes.as_bytes()).unwrap_err();
    assert_eq!((violation.what.code(), violation.line), (code, line), "{violation}");
}

// REQ: SES-5, SES-9
#[test]
fn checkpoint_testifies_to_the_line_that_it_names() {
    let bytes = seal(&good());
    let head = audit(&bytes).unwrap().head;
    let known = |seq, hash| {
        let evidence = Evidence {
            stored: &|_| Some("layers".into()),
            sidechain: &|_| None,
            checkpoint: Some(Head { seq, hash }),
            run_budget: &|_| None,
            also: &|_| Ok(()),
        };
        verify(&bytes, &evidence).map(|it| it.head).map_err(|it| (it.line, it.what.code()))
    };
    let n_lines = bytes.iter().filter(|it| **it == b'\n').count() as u64;
    let other = Digest::of(b"another line");
    assert_eq!(known(head.seq, head.hash), Ok(head));
    assert_eq!(known(head.seq + 1, other), Err((n_lines + 1, "cut_off")));
    assert_eq!(known(head.seq, other), Err((n_lines, "not_as_closed")));
    assert_eq!(known(2, other), Err((2, "not_as_closed")));
    let second = std::str::from_utf8(&bytes).unwrap().lines().nth(1).unwrap();
    let second = crate::transcript::seal::seal_of(second.as_bytes()).unwrap();
    assert_eq!(known(2, second.hash().unwrap()), Ok(head));
}

#[track_caller]
fn at(lines: &[Line], wanted: &Line) -> usize {
    lines.iter().position(|line| line == wanted).unwrap()
}

#[track_caller]
fn detail(lines: &mut [Line], n: u32, wanted: u8) -> &mut StepDetail {
    lines
        .iter_mut()
        .find_map(|line| match line {
            Line::Harness(record) if record.turn == n => match &mut record.what {
                RecordKind::TurnStep { number, detail, .. } if *number == wanted => Some(detail),
                _ => None,
            },
            _ => None,
        })
        .unwrap()
}

// REQ: SES-9, TRN-3
#[test]
fn transcript_in_order_passes() {
    let verified = audit(&seal(&good())).unwrap();
    assert_eq!((verified.runs, verified.turns, verified.calls), (1, 2, 2));
    assert_eq!(verified.head.seq, good().len() as u64);
}

// REQ: SES-9
#[test]
fn careless_hand_is_found_by_the_chain() {
    check_bytes("altered", 9, |mut it| {
        it[8] = it[8].replace(r#""ls""#, r#""rm""#);
        it
    });
    check_bytes("out_of_sequence", 5, |mut it| {
        it.remove(4);
        it
    });
    check_bytes("out_of_sequence", 12, |mut it| {
        it.swap(11, 12);
        it
    });
    check_bytes("out_of_sequence", 8, |mut it| {
        it.insert(7, it[6].clone());
        it
    });
    check_bytes("out_of_sequence", 1, |mut it| {
        it.remove(0);
        it
    });
    check_bytes("not_a_line", 9, |mut it| {
        it[8] = it[8].replace('{', "");
        it
    });
    check_bytes("not_a_line", 4, |mut it| {
        it.insert(3, "%% garbage".into());
        it
    });
    check_bytes("foreign_line", 4, |mut it| {
        let user = r#"{"type":"user","uuid":"x","message":{"role":"user","content":"hi"}}"#;
        it.insert(3, user.into());
        it
    });
    check_bytes("no_end", 20, |it| it[..20].to_vec());
}

// REQ: SES-9
#[test]
fn line_of_another_transcript_is_not_linked() {
    let mut other = good();
    other[0] = conversation(Message::prompt("p1".into(), "something else"));
    let other = String::from_utf8(seal(&other)).unwrap();
    check_bytes("not_linked", 6, |mut it| {
        it[5] = other.lines().nth(5).unwrap().into();
        it
    });
}

// REQ: SES-9
#[test]
fn file_that_ends_within_a_line_is_torn() {
    let bytes = seal(&good());
    let violation = audit(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(violation.what, ViolationKind::TornTail);
}

// REQ: SES-9
#[test]
fn metadata_of_others_is_allowed_and_reported() {
    let mut text = String::from_utf8(seal(&good())).unwrap();
    text.push_str("{\"type\":\"custom-title\",\"customTitle\":\"x\"}\n");
    let verified = audit(text.as_bytes()).unwrap();
    assert_eq!(verified.foreign, [(good().len() as u64 + 1, "custom-title".to_owned())]);
}

// REQ: TRN-1
#[test]
fn steps_are_nine_in_order_once() {
    check("wrong_step", |it| {
        let two = it.remove(3);
        it.insert(4, two);
    });
    check("wrong_step", |it| it.insert(4, it[3].clone()));
    check("out_of_place", |it| drop(it.remove(5)));
    check("wrong_step", |it| drop(it.remove(10)));
    check("wrong_detail", |it| {
        *detail(it, 1, 2) = StepDetail::Gate { allowed: 0, denied: 0 };
    });
    check("wrong_detail", |it| {
        *detail(it, 1, 7) = StepDetail::Nothing { nothing: "no calls".into() };
    });
    check("wrong_turn", |it| {
        if let Line::Harness(record) = &mut it[3] {
            record.turn = 2;
        }
    });
}

// REQ: TRN-3
#[test]
fn calls_are_decided_and_answered_once_in_order() {
    let permission = |lines: &[Line]| at(lines, &permission("t1", true));
    check("no_decision", |it| drop(it.remove(permission(it))));
    check("second_decision", |it| it.insert(permission(it), it[permission(it)].clone()));
    check("no_decision", |it| it.insert(permission(it), intent("t1")));
    check("wrong_digest", |it| {
        let at = at(it, &intent("t1"));
        if let Line::Harness(record) = &mut it[at]
            && let RecordKind::ToolIntent { digest, .. } = &mut record.what
        {
            *digest = super::fixture::digest("t2");
        }
    });
    check("not_allowed", |it| it.insert(at(it, &intent("t1")), intent("t2")));
    check("not_allowed", |it| {
        let end = at(it, &tool_end("t2", Some(ToolErrorKind::PermissionDenied)));
        it[end] = tool_end("t2", None);
    });
    check("no_result", |it| drop(it.remove(at(it, &result("r2", "t2", true)))));
    check("second_result", |it| {
        it.insert(at(it, &result("r1", "t1", false)) + 1, result("r3", "t1", false));
    });
    check("unknown_call", |it| {
        it.insert(at(it, &result("r1", "t1", false)), result("r3", "t9", true));
    });
    check("result_order", |it| {
        let (one, two) = (at(it, &result("r1", "t1", false)), at(it, &result("r2", "t2", true)));
        it.swap(one, two);
    });
    check("wrong_count", |it| *detail(it, 1, 6) = StepDetail::Dispatch { calls: 3, refused: 0 });
    check("wrong_count", |it| *detail(it, 1, 7) = StepDetail::Gate { allowed: 2, denied: 0 });
    let state = |used| StepDetail::State { messages: 1, session_retries: 0, used };
    check("wrong_count", |it| *detail(it, 1, 2) = state(1));
    check("wrong_count", |it| *detail(it, 2, 2) = state(29));
    // What a sub-agent of the first turn used.
    check("in order", |it| *detail(it, 2, 2) = state(31));
    check("wrong_count", |it| {
        *detail(it, 1, 8) = StepDetail::Execution { succeeded: 2, failed: 0 };
    });
}

// REQ: TRN-3, TRN-6
#[test]
fn stop_reason_is_that_of_the_stop_check() {
    check("wrong_stop", |it| {
        *detail(it, 2, 9) = StepDetail::Stop { done: true, reason: Some("explicit_stop".into()) };
    });
    check("wrong_stop", |it| {
        *detail(it, 1, 9) = StepDetail::Stop { done: true, reason: Some("error".into()) };
    });
    let over = audit_with(&seal(&good()), &|_| Some("layers".into()), Some(30)).unwrap_err();
    assert_eq!(over.what.code(), "wrong_stop");
}

// REQ: TRN-3
#[test]
fn model_attempts_and_compactions_are_counted() {
    check("wrong_attempt", |it| it.insert(7, attempt(1, 1, None)));
    check("wrong_attempt", |it| it[7] = attempt(1, 2, None));
    check("wrong_count", |it| drop(it.remove(7)));
    check("in order", |it| drop(it.splice(7..7, compaction(1))));
    check("second_compaction", |it| {
        it.splice(7..7, compaction(1).into_iter().chain(compaction(2)));
    });
    check("no_summary", |it| drop(it.splice(7..7, compaction(1).into_iter().take(1))));
}

// REQ: TRN-11
#[test]
fn run_has_one_start_and_one_end() {
    check("outside_run", |it| it.push(run_end(2, "no_pending_tools")));
    check("wrong_turn", |it| {
        if let Some(Line::Harness(record)) = it.last_mut() {
            record.turn = 2;
        }
    });
    check("wrong_turn", |it| {
        if let Line::Harness(record) = &mut it[1] {
            record.turn = 1;
        }
    });
    check("out_of_place", |it| {
        it.insert(it.len() - 1, conversation(Message::prompt("p2".into(), "and then?")));
    });
    check("no_end", |it| drop(it.pop()));
    check("outside_run", |it| drop(it.remove(1)));
    check("run_in_run", |it| it.insert(2, it[1].clone()));
    check("wrong_end", |it| *it.last_mut().unwrap() = run_end(2, "error"));
    check("in order", |it| *it.last_mut().unwrap() = run_end(2, "hook_stopped"));
    check("wrong_count", |it| *it.last_mut().unwrap() = run_end(3, "no_pending_tools"));
    check("no_prompt", |it| drop(it.remove(0)));
    check("out_of_place", |it| {
        let end = it.pop().unwrap();
        it.insert(25, end);
    });
}

// REQ: TRN-1
#[test]
fn turn_that_ends_early_is_closed_by_one_record() {
    let early = |step| RecordKind::TurnEnd {
        reason: "interrupted".into(),
        at_step: Some(step),
        in_doubt: None,
    };
    let cut = |lines: &mut Vec<Line>, step| {
        lines.truncate(6);
        lines.extend([record(1, early(step)), run_end(1, "interrupted")]);
    };
    check("in order", |it| cut(it, crate::step::Step::ModelCall));
    check("wrong_step", |it| cut(it, crate::step::Step::ToolExecution));
    check("no_result", |it| {
        let intent = at(it, &intent("t1"));
        it.truncate(intent + 1);
        it.push(record(1, early(crate::step::Step::ToolExecution)));
    });
}

// REQ: SES-9
#[test]
fn text_beside_the_transcript_must_be_there_and_unchanged() {
    let code = |stored: &dyn Fn(Digest) -> Option<String>| {
        audit_with(&seal(&good()), stored, None).unwrap_err().what.code()
    };
    assert_eq!(code(&|_| None), "no_text");
    assert_eq!(code(&|_| Some("other".into())), "wrong_text");
}

// REQ: TRN-3
#[test]
fn trace_shows_the_steps_of_each_turn_with_their_reasons() {
    let trace = render(&seal(&good())).unwrap();
    let mut from = 0;
    for part in [
        "run r1 from test",
        "turn 1",
        "1 settings_resolution: from user, 0 warnings",
        "3 context_assembly: sources of 1 2 3 4 5 6 7 8 9 characters",
        "attempt 1 (turn): ok",
        "attempt 2 (turn) because of overloaded",
        "6 tool_dispatch: 2 calls, 0 refused",
        "t1 Bash allowed at RuleEvaluation in Default: a rule",
        "t2 Bash denied",
        "8 tool_execution: 1 succeeded, 1 failed",
        "9 stop_check: go on",
        "turn 2",
        "7 permission_gate: nothing to do, no calls",
        "9 stop_check: done, no_pending_tools",
        "end: no_pending_tools after 2 turns",
    ] {
        let Some(found) = trace[from..].find(part) else { panic!("{part} in\n{trace}") };
        from += found;
    }
}

// REQ: SES-9
#[test]
fn text_that_was_not_told_before_is_not_told_again() {
    let never = || Stored::Again(Digest::of(b"never"));
    for turn in [1, 2] {
        check("no_text", |it| {
            if let StepDetail::Settings { layers, .. } = detail(it, turn, 1) {
                *layers = never();
            }
        });
        check("no_text", |it| {
            if let StepDetail::Context { texts, .. } = detail(it, turn, 3) {
                *texts = never();
            }
        });
    }
}
