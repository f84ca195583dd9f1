//! A transcript in order: one run of two turns, with two calls of which one is denied.

use std::sync::Arc;

use crate::{
    block::Block,
    digest::Digest,
    ids::EntryId,
    message::{Message, MessageKind},
    step::Step,
    step7_permission_gate::{Decision, GateStage},
    time::Timestamp,
    tokens::{Tokens, Usage},
    tool::{ToolCall, ToolEffect, ToolErrorKind},
    transcript::{
        entry::{
            AnswerFields, Boundary, ConversationLine, Line, LineFrame, Record, RecordKind,
            StepDetail, Stored, ToolResultFields,
        },
        seal::{Head, LineBatch},
    },
};

pub(super) const INPUT: &str = r#"{"command":"ls"}"#;

/// Writes the lines as a file.
pub(super) fn seal(lines: &[Line]) -> Vec<u8> {
    let frame = LineFrame::of_test();
    let mut bytes = Vec::new();
    let mut batch = LineBatch::new(Head::default(), None, &mut bytes);
    for line in lines {
        batch.push(line, &frame, |_, _, _| {});
    }
    batch.finish();
    bytes
}

pub(super) fn record(turn: u32, what: RecordKind) -> Line {
    Line::Harness(Box::new(Record {
        at: Timestamp(7),
        run: Some("r1".into()),
        turn,
        what,
        shares_line: false,
    }))
}

pub(super) fn conversation(message: Message) -> Line {
    let is_answer = message.kind == MessageKind::Answer;
    let source = (message.kind == MessageKind::ToolResults).then(|| EntryId::from("a1"));
    Line::Conversation(Box::new(ConversationLine {
        at: Timestamp(7),
        parent: None,
        message: Arc::new(message),
        answer: is_answer.then(|| AnswerFields {
            model: "m".into(),
            asked: None,
            stop_reason: "end_turn".into(),
            usage: Usage::default(),
        }),
        tool_result: source.map(|source| ToolResultFields { structured: None, source }),
        boundary: None,
    }))
}

pub(super) fn result(id: &str, call: &str, is_error: bool) -> Line {
    let block = Block::tool_result(&call.into(), "text", is_error);
    conversation(Message::user(id.into(), MessageKind::ToolResults, vec![block]))
}

pub(super) fn compaction(n: u32) -> [Line; 2] {
    let id: EntryId = format!("boundary{n}").into();
    let mut boundary =
        conversation(Message { blocks: Vec::new(), ..Message::mark(id, Block::stop_request()) });
    if let Line::Conversation(line) = &mut boundary {
        line.boundary =
            Some(Boundary { trigger: "reactive", pre_tokens: Tokens(9), preserved: None });
    }
    let id: EntryId = format!("summary{n}").into();
    let summary = Message::user(id, MessageKind::CompactSummary, vec![Block::text("so far")]);
    [boundary, conversation(summary)]
}

pub(super) fn attempt(turn: u32, attempt: u32, cause: Option<&str>) -> Line {
    let what = RecordKind::ModelAttempt {
        attempt,
        purpose: "turn".into(),
        cause: cause.map(Into::into),
        provider: None,
        model: None,
        streamed: true,
        max_tokens: 1000,
        request: Digest::of(b"request"),
        request_bytes: 7,
        outcome: "ok".into(),
        message: None,
        retry_after_ms: None,
        status: None,
        usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
        in_doubt: None,
        cost: None,
        first_token_ms: Some(1),
        duration_ms: 2,
        parked_ms: None,
        unsaid: None,
        cache_drop: None,
    };
    record(turn, what)
}

pub(super) fn step(turn: u32, number: u8, detail: StepDetail) -> Line {
    let step = Step::ALL[usize::from(number) - 1];
    record(turn, RecordKind::TurnStep { number, step, detail })
}

pub(super) fn digest(call: &str) -> Digest {
    ToolCall { id: call.into(), name: "Bash".into(), input: INPUT.into() }.digest()
}

pub(super) fn permission(call: &str, allowed: bool) -> Line {
    let stage = GateStage::RuleEvaluation;
    let what = RecordKind::Permission {
        call: call.into(),
        tool: "Bash".into(),
        digest: digest(call),
        input: None,
        mode: Default::default(),
        decision: Decision { allowed, stage, rule: None, reason: "a rule".into(), class: None },
    };
    record(1, what)
}

pub(super) fn intent(call: &str) -> Line {
    let effect = ToolEffect::SideEffects;
    let (id, tool) = (call.into(), "Bash".into());
    record(1, RecordKind::ToolIntent { call: id, tool, digest: digest(call), effect })
}

pub(super) fn tool_end(call: &str, error: Option<ToolErrorKind>) -> Line {
    let what = RecordKind::ToolEnd {
        call: call.into(),
        error,
        exit_code: None,
        duration_ms: 3,
        notes: None,
        truncation: None,
        sidechain: None,
    };
    record(1, what)
}

pub(super) fn run_end(turns: u32, reason: &str) -> Line {
    let usage = Usage::default();
    record(0, RecordKind::RunEnd { reason: reason.into(), turns, usage, head: None })
}

fn first_steps(turn: u32) -> [Line; 4] {
    let mut layers = Stored::At(Digest::of(b"layers"));
    let mut texts = Stored::Text("texts".into());
    if turn != 1 {
        (layers, texts) = (Stored::Again(layers.digest()), Stored::Again(texts.digest()));
    }
    let tokens = Tokens(9);
    // Two attempts of the first turn.
    let used = if turn == 1 { 0 } else { 30 };
    let sources = vec!["user".into()];
    let settings = StepDetail::Settings {
        layers,
        sources,
        warnings: 0,
        models: None,
        tools: None,
        refused: Vec::new(),
    };
    [
        step(turn, 1, settings),
        step(turn, 2, StepDetail::State { messages: 1, session_retries: 0, used }),
        step(turn, 3, StepDetail::Context { texts, sizes: [1, 2, 3, 4, 5, 6, 7, 8, 9], tokens }),
        step(turn, 4, StepDetail::Shaping { tokens, fired: 0, remaining: tokens }),
    ]
}

fn model(turn: u32, attempts: u32) -> Line {
    step(
        turn,
        5,
        StepDetail::Model { attempts, outcome: "ok".into(), estimated: None, anchor: None },
    )
}

/// Returns the lines, in order. Tests name them by what they hold.
pub(super) fn good() -> Vec<Line> {
    let tool_use = |id: &str| Block::tool_use(&id.into(), &"Bash".into(), INPUT);
    let setup = Stored::Text("{}".into());
    let (prompt, origin) = ("p1".into(), "test".into());
    let nothing = || StepDetail::Nothing { nothing: "no calls".into() };
    let mut lines = vec![
        conversation(Message::prompt("p1".into(), "go")),
        record(
            0,
            RecordKind::RunStart {
                prompt,
                origin,
                stream: "00".into(),
                setup,
                first: true,
                system: None,
                compacts: None,
                sender: None,
                asked: None,
                time_limit_ms: None,
            },
        ),
    ];
    lines.extend(first_steps(1));
    lines.extend([
        attempt(1, 1, None),
        attempt(1, 2, Some("overloaded")),
        conversation(Message::answer("a1".into(), "m1", vec![tool_use("t1"), tool_use("t2")])),
        model(1, 2),
        step(1, 6, StepDetail::Dispatch { calls: 2, refused: 0 }),
        permission("t1", true),
        permission("t2", false),
        step(1, 7, StepDetail::Gate { allowed: 1, denied: 1 }),
        intent("t1"),
        tool_end("t1", None),
        result("r1", "t1", false),
        tool_end("t2", Some(ToolErrorKind::PermissionDenied)),
        result("r2", "t2", true),
        step(1, 8, StepDetail::Execution { succeeded: 1, failed: 1 }),
        step(1, 9, StepDetail::Stop { done: false, reason: None }),
    ]);
    lines.extend(first_steps(2));
    lines.extend([
        attempt(2, 1, None),
        conversation(Message::answer("a2".into(), "m2", vec![Block::text("done")])),
        model(2, 1),
        step(2, 6, nothing()),
        step(2, 7, nothing()),
        step(2, 8, nothing()),
        step(2, 9, StepDetail::Stop { done: true, reason: Some("no_pending_tools".into()) }),
        run_end(2, "no_pending_tools"),
    ]);
    lines
}
