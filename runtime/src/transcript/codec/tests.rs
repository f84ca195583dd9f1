//! Lines read back, byte for byte, and stay short.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{
    approval::{AnsweredBy, RuleUpdate},
    block::Block,
    digest::Digest,
    step7_permission_gate::{Decision, GateStage, ResolvedPath},
    time::Timestamp,
    tokens::{Tokens, Usage},
    transcript::{
        entry::{AnswerFields, PassedStage, RecordKind, StepDetail, Stored, ToolResultFields},
        read::read_line,
        seal::{Head, LineBatch, SealLink},
    },
};

fn frame(agent: bool) -> LineFrame {
    LineFrame {
        session: "5f1c0000-0000-4000-8000-000000000001".into(),
        agent: agent.then(|| "00112233aabbccdd".into()),
        cwd: "/home/\"dev\"/app".into(),
        git_branch: Some("main".into()),
        version: "0.1.0",
    }
}

fn block() -> impl Strategy<Value = Block> {
    let text = any::<String>();
    prop_oneof![
        text.prop_map(|text| Block::text(&text)),
        (any::<String>(), any::<bool>()).prop_map(|(text, error)| Block::tool_result(
            &"t\"1".into(),
            &text,
            error
        )),
        any::<String>().prop_map(|text| Block::thinking(&text, Some("c2ln"))),
        any::<String>().prop_map(|text| {
            let input = serde_json::json!({ "command": text }).to_string();
            Block::tool_use(&"t1".into(), &"Bash".into(), &input)
        }),
    ]
}

fn conversation(message: Message) -> ConversationLine {
    ConversationLine {
        at: Timestamp(1_790_000_000_007),
        parent: Some("p".into()),
        message: Arc::new(message),
        answer: None,
        tool_result: None,
        boundary: None,
    }
}

fn conversation_line() -> impl Strategy<Value = ConversationLine> {
    let blocks = || prop::collection::vec(block(), 1..4);
    prop_oneof![
        any::<String>().prop_map(|text| conversation(Message::prompt("u".into(), &text))),
        blocks().prop_map(|blocks| conversation(Message::user(
            "u".into(),
            MessageKind::Meta,
            blocks
        ))),
        blocks().prop_map(|blocks| conversation(Message::user(
            "u".into(),
            MessageKind::CompactSummary,
            blocks
        ))),
        (blocks(), any::<u32>()).prop_map(|(blocks, n)| ConversationLine {
            answer: Some(AnswerFields {
                model: "m".into(),
                asked: (n % 2 == 1).then(|| "fast".into()),
                stop_reason: "end_turn".into(),
                usage: Usage { input_tokens: n.into(), output_tokens: 7, ..Usage::default() },
            }),
            ..conversation(Message::answer("a".into(), "msg_1", blocks).of_model(match n % 2 {
                1 => "fast",
                _ => "m",
            }))
        }),
        (any::<String>(), any::<String>()).prop_map(|(text, structured)| ConversationLine {
            tool_result: Some(ToolResultFields {
                structured: Some(serde_json::json!({ "stdout": structured }).to_string().into()),
                source: "a".into(),
            }),
            ..conversation(Message::user(
                "u".into(),
                MessageKind::ToolResults,
                vec![Block::tool_result(&"t1".into(), &text, false)],
            ))
        }),
        any::<String>()
            .prop_map(|text| conversation(Message::mark("s".into(), Block::error(&text)))),
        Just(conversation(Message::mark("s".into(), Block::stop_request()))),
        any::<bool>().prop_map(|kept| ConversationLine {
            boundary: Some(Boundary {
                trigger: "reactive",
                pre_tokens: Tokens(90_000),
                preserved: kept.then(|| ("h".into(), "t".into())),
            }),
            ..conversation(Message {
                blocks: Vec::new(),
                ..Message::mark("b".into(), Block::stop_request())
            })
        }),
    ]
}

fn record(text: String) -> impl Strategy<Value = Record> {
    let digest = Digest::of(text.as_bytes());
    let words = text.clone();
    let permission = RecordKind::Permission {
        call: "t1".into(),
        tool: "Bash".into(),
        digest,
        input: Some(Stored::At(digest)),
        mode: Default::default(),
        decision: Decision {
            allowed: true,
            stage: GateStage::RuleEvaluation,
            rule: None,
            reason: text.clone(),
            class: Some(crate::step7_permission_gate::CommandClass::Dangerous),
        },
    };
    let step = |detail| RecordKind::TurnStep { number: 1, step: crate::step::Step::ALL[0], detail };
    prop_oneof![
        Just(permission),
        Just(RecordKind::Alert { what: words.clone() }),
        Just(RecordKind::ShapersPassed {
            tokens: Tokens(9),
            stages: vec![PassedStage { stage: "snip".into(), why: words.clone().into() }],
        }),
        Just(step(StepDetail::Settings {
            layers: Stored::Text(words.clone().into()),
            sources: vec![words.clone(); 3],
            warnings: 1,
            models: Some(Stored::Text(words.clone().into())),
            tools: Some(Stored::At(digest)),
            refused: vec![words.clone(); 3],
        })),
        Just(step(StepDetail::Stop { done: false, reason: None })),
        Just(step(StepDetail::Nothing { nothing: words.clone().into() })),
        Just(RecordKind::RunEnd {
            reason: words.clone(),
            turns: 3,
            usage: Usage::default(),
            // What it learns as it is sealed.
            head: Some(Digest::of(b"before")),
        }),
        Just(RecordKind::Path {
            call: "t1".into(),
            path: ResolvedPath {
                given: words.clone(),
                lexical: words.clone(),
                real: words.clone(),
                passed: vec![words],
                kind: crate::step7_permission_gate::PathKind::File,
            },
            whole: None,
        }),
    ]
    .prop_map(|what| Record {
        at: Timestamp(7),
        run: Some("r".into()),
        turn: 2,
        what,
        shares_line: false,
    })
}

fn any_line() -> impl Strategy<Value = Line> {
    prop_oneof![
        conversation_line().prop_map(|line| Line::Conversation(Box::new(line))),
        any::<String>().prop_flat_map(record).prop_map(|it| Line::Harness(Box::new(it))),
    ]
}

fn sealed(line: &Line, agent: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let before = Head { seq: 40, hash: Digest::of(b"before") };
    let mut batch = LineBatch::new(before, None, &mut out);
    batch.push(line, &frame(agent), |_, _, _| {});
    batch.finish();
    out
}

fn check_round_trip(line: &Line, agent: bool) {
    let bytes = sealed(line, agent);
    let text = std::str::from_utf8(&bytes).unwrap().strip_suffix('\n').unwrap();
    assert!(!text.contains('\n'));
    let read = read_line(text).unwrap();
    let place = read.seal.unwrap();
    let before = SealLink::to_hash(Digest::of(b"before"));
    assert_eq!((place.seq, place.prev, place.intact), (41, before, true));
    let again = read.entry.into_lines();
    assert_eq!(again, std::slice::from_ref(line));
    assert_eq!(sealed(&again[0], agent), bytes);
}

proptest! {
    // REQ: SES-1
    #[test]
    fn line_reads_back_byte_for_byte(line in any_line(), agent in any::<bool>()) {
        check_round_trip(&line, agent);
    }
}

fn approval(call: crate::ids::ToolUseId, reason: String) -> RecordKind {
    RecordKind::Approval {
        call,
        allowed: true,
        reason,
        by: Some(AnsweredBy::Surface),
        surface: Some("page".into()),
        input: Some(crate::transcript::entry::Stored::Text("{}".into())),
        rules: vec![RuleUpdate::allow("Bash(make)")],
        interrupt: false,
    }
}

fn question(call: crate::ids::ToolUseId, reason: String) -> RecordKind {
    RecordKind::Question {
        id: "q_1".into(),
        call,
        tool: "Bash".into(),
        agents: vec!["a".into()],
        input: Some(crate::transcript::entry::Stored::Text("{}".into())),
        digest: Digest::of(b"action"),
        epoch: Digest::of(b"rules"),
        class: None,
        reason,
        suggestions: vec!["Bash(make)".into()],
        expires: Timestamp(7),
    }
}

// REQ: SES-9
// REQ: SES-4, PRM-9
#[test]
fn kind_that_is_written_is_the_kind_that_is_read() {
    let shell = RecordKind::Shell(crate::transcript::entry::ShellRecord {
        shell: "bash_1".into(),
        command: "make".into(),
        state: "exited".into(),
        exit_code: Some(2),
        is_unreported: true,
    });
    let mode = RecordKind::Mode(crate::transcript::entry::ModeChange {
        mode: crate::permission::PermissionMode::Plan,
        call: Some("c".into()),
    });
    let (call, reason) = (|| "t1".into(), || "yes".to_owned());
    let by = AnsweredBy::Policy;
    let passed = RecordKind::Passed { call: call(), by, reason: reason() };
    let (asked, answered) = (question(call(), reason()), approval(call(), reason()));
    for what in [shell, mode, asked, passed, answered] {
        let record =
            Record { at: Timestamp(5), run: Some("r".into()), turn: 1, what, shares_line: false };
        check_round_trip(&Line::Harness(Box::new(record)), false);
    }
}

#[test]
fn record_is_shortened_and_not_dropped() {
    let long = "\u{1}".repeat(5000);
    let what = RecordKind::Path {
        call: "t1".into(),
        path: ResolvedPath {
            given: long.clone(),
            lexical: long.clone(),
            real: long.clone(),
            passed: vec![long; 40],
            kind: crate::step7_permission_gate::PathKind::File,
        },
        whole: None,
    };
    let line = Line::Harness(Box::new(Record {
        at: Timestamp(7),
        run: None,
        turn: 0,
        what,
        shares_line: false,
    }));
    let bytes = sealed(&line, false);
    assert!(bytes.len() <= MAX_RECORD, "{}", bytes.len());
    let read = read_line(std::str::from_utf8(&bytes).unwrap().trim_end()).unwrap();
    let [Line::Harness(record)] = &read.entry.into_lines()[..] else { panic!("a record") };
    let RecordKind::Path { call, path, .. } = &record.what else { panic!("a path") };
    assert_eq!(call, &"t1".into());
    assert!(path.given.ends_with('…'));
}

#[test]
fn conversation_line_has_the_fields_that_readers_look_for_in_order() {
    let line = Line::Conversation(Box::new(conversation(Message::prompt("u1".into(), "hello"))));
    let text = String::from_utf8(sealed(&line, false)).unwrap();
    let start = r#"{"type":"user","uuid":"u1","parentUuid":"p","sessionId":"5f1c0000-0000-4000-8000-000000000001","timestamp":"2026-09-21T14:13:20.007Z","cwd":"/home/\"dev\"/app","version":"0.1.0","gitBranch":"main","isSidechain":false,"userType":"external","message":{"role":"user","content":[{"type":"text","text":"hello"}]},"seq":41,"prev":""#;
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn line_breaks_in_foreign_json_do_not_end_the_line() {
    let block =
        Block::from_wire("{\"type\":\"tool_use\",\"id\":\"t\",\n\"name\":\"X\",\"input\":{\r\n}}");
    let mut line = conversation(Message::answer("a".into(), "m", vec![block.unwrap()]));
    line.tool_result =
        Some(ToolResultFields { structured: Some("no\njson".into()), source: "a".into() });
    let bytes = sealed(&Line::Conversation(Box::new(line)), false);
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(read_line(std::str::from_utf8(&bytes).unwrap().trim_end()).is_ok());
}
