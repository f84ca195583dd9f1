//! Whole channels: what comes out of what is piece. Built under `#[cfg(test)]` only.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    Break, ChannelPolicy, Chunking, Normalizer, OutputEvent, OutputSettings, Payload, answer_in,
};
use crate::event::Event;

/// What a channel receives, as data.
#[derive(Clone, Debug)]
enum Fed {
    Text(u32, &'static str),
    Think(u32, &'static str),
    Block(u32, &'static str),
    Other,
    Done(&'static str),
    Withdrawn(u32),
    Turn,
    Missed,
    Tool(&'static str),
    /// This many milliseconds later.
    Wait(u64),
    End,
    Fail,
}
use Fed::{Block, Done, End, Fail, Missed, Other, Text, Think, Tool, Turn, Wait, Withdrawn};

/// Payloads in short: `1 text`, `2~reasoning`, `-1..2`, `=result`, `?3`, `.` and `!` at the end.
fn short(payload: &Payload) -> String {
    match payload {
        Payload::Text { id, piece } => format!("{id} {}", piece.shown()),
        Payload::Reasoning { id, text } => format!("{id}~{text}"),
        Payload::Retracted { first_id, last_id } => format!("-{first_id}..{last_id}"),
        Payload::ToolResult(result) => format!("={}+{}", result.text, result.elided_chars),
        Payload::Missed { events } => format!("?{events}"),
        Payload::Ended { is_failure: false, .. } => ".".into(),
        Payload::Ended { is_failure: true, .. } => "!".into(),
    }
}

fn run(policy: &ChannelPolicy, settings: &OutputSettings, fed: &[Fed]) -> Vec<Payload> {
    let mut normalizer = Normalizer::new(policy.clone(), Arc::new(settings.clone()));
    let (mut out, mut now) = (Vec::new(), 0);
    for fed in fed {
        let tool;
        let piece = match *fed {
            Text(attempt, text) => OutputEvent::Text { attempt, text },
            Think(attempt, text) => OutputEvent::Reasoning { attempt, text },
            Block(attempt, text) => OutputEvent::Block { attempt, text },
            Other => OutputEvent::Other { attempt: 1 },
            Done(text) => OutputEvent::Completed { text },
            Withdrawn(attempt) => OutputEvent::Withdrawn { attempt },
            Turn => OutputEvent::TurnStarted,
            Missed => OutputEvent::Missed { events: 3 },
            Tool(text) => {
                let (call, name) = ("c".into(), "Read".into());
                tool = Event::ToolFinished { call, tool: name, is_error: false, text: text.into() };
                OutputEvent::ToolResult { event: &tool }
            }
            Wait(ms) => {
                now += ms;
                normalizer.tick(now, &mut out);
                continue;
            }
            End => OutputEvent::Ended { reason: "no_pending_tools", is_failure: false },
            Fail => OutputEvent::Ended { reason: "crashed", is_failure: true },
        };
        normalizer.take(now, &piece, &mut out);
    }
    out
}

#[track_caller]
fn check(policy: &ChannelPolicy, fed: &[Fed], payloads: &[&str]) {
    check_with(policy, &OutputSettings::default(), fed, payloads);
}

#[track_caller]
fn check_with(policy: &ChannelPolicy, settings: &OutputSettings, fed: &[Fed], payloads: &[&str]) {
    let found: Vec<String> = run(policy, settings, fed).iter().map(short).collect();
    assert_eq!(found, payloads, "{policy:?} {fed:?}");
}

// REQ: OUT-5
#[test]
fn each_channel_gets_what_its_policy_says() {
    let fed = [
        Turn,
        Think(1, "hm"),
        Text(1, "Let me "),
        Text(1, "<think>well</think>look."),
        Done("Let me <think>well</think>look."),
        Tool("result"),
        Turn,
        Text(1, "It is 5."),
        Done("It is 5."),
        End,
    ];
    let [partial, messages, last] =
        [ChannelPolicy::partial(), ChannelPolicy::messages(), ChannelPolicy::final_answer()];
    check(&partial, &fed, &["1 Let me", "2  look.", "3 It is 5.", "."]);
    check(&messages, &fed, &["1 Let me look.", "2 It is 5.", "."]);
    check(&last, &fed, &["1 It is 5.", "."]);
    check(
        &partial.clone().reasoning().tool_results(3),
        &fed,
        &["1~hm", "2 Let me", "3~well", "4  look.", "=res+3", "5 It is 5.", "."],
    );
    check(
        &messages.reasoning().tool_results(9),
        &fed,
        &["1~hmwell", "2 Let me look.", "=result+0", "3 It is 5.", "."],
    );
    check(&last.reasoning(), &fed, &["1 It is 5.", "."]);
}

// REQ: OUT-2
#[test]
fn message_that_says_nothing_delivers_nothing() {
    for text in ["", " \n", "HEARTBEAT_OK", "<think>a</think>\n", "<think>a</think>HEARTBEAT_OK"] {
        let fed = [Text(1, text), Done(text), End];
        for policy in [
            ChannelPolicy::partial(),
            ChannelPolicy::blocks(),
            ChannelPolicy::messages(),
            ChannelPolicy::final_answer(),
        ] {
            check(&policy, &fed, &["."]);
        }
    }
    let settings =
        OutputSettings { heartbeat_tokens: Arc::new(["PING".into()]), ..Default::default() };
    check_with(
        &ChannelPolicy::messages(),
        &settings,
        &[Done("PING"), Done("HEARTBEAT_OK")],
        &["1 HEARTBEAT_OK"],
    );
}

// REQ: OUT-3
#[test]
fn what_is_said_twice_is_delivered_once() {
    let partial = ChannelPolicy::partial();
    for (fed, payloads) in [
        (&[Text(1, "ab"), Done("abc")][..], &["1 ab", "2 c"][..]),
        (&[Done("abc")], &["1 abc"]),
        (&[Text(1, "abc"), Done("abc")], &["1 abc"]),
        // Two blocks of text: the message puts a line end between them.
        (&[Text(1, "a"), Other, Text(1, "b"), Done("a\nb")], &["1 a", "2 \nb"]),
        (&[Text(1, "a"), Think(1, "x"), Text(1, "b"), Done("a\nb")], &["1 a", "2 \nb"]),
        (&[Text(1, "a"), Text(1, "b"), Done("a\nb")], &["1 a", "2 b"]),
        // An answer that paused: the next attempt goes on.
        (&[Text(1, "a"), Text(2, "b"), Done("a\nb")], &["1 a", "2 \nb"]),
        // Block replies.
        (&[Text(1, "hel"), Block(1, "hello"), Done("hello")], &["1 hel", "2 lo"]),
        (&[Text(1, "hello"), Block(1, "hello"), Done("hello")], &["1 hello"]),
        (
            &[Text(1, "one"), Other, Text(1, "two"), Block(1, "two"), Done("one\ntwo")],
            &["1 one", "2 \ntwo"],
        ),
        (&[Block(1, "one"), Block(1, "two"), Done("one\ntwo")], &["1 one", "2 \ntwo"]),
        // The whole says something else.
        (&[Text(1, "abx"), Done("abc")], &["1 abx", "-1..1", "2 abc"]),
        (&[Text(1, "abcd"), Done("abc")], &["1 abcd", "-1..1", "2 abc"]),
    ] {
        let shown: Vec<String> = payloads.iter().map(|it| it.replace('\n', "")).collect();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        check(&partial, fed, &shown);
    }
}

// REQ: OUT-3, MDL-10
#[test]
fn withdrawn_attempt_is_taken_back_and_leaves_no_trace() {
    let partial = ChannelPolicy::partial();
    for (fed, payloads) in [
        (
            &[Text(1, "ab"), Withdrawn(1), Text(2, "c"), Done("c")][..],
            &["1 ab", "-1..1", "2 c"][..],
        ),
        // A tag, a code span, a heartbeat that were open.
        (&[Text(1, "a<think>"), Withdrawn(1), Text(2, "b"), Done("b")], &["1 a", "-1..1", "2 b"]),
        (&[Text(1, "a<thi"), Withdrawn(1), Text(2, "b"), Done("b")], &["1 a", "-1..1", "2 b"]),
        (&[Text(1, "a `"), Withdrawn(1), Text(2, "b"), Done("b")], &["1 a", "-1..1", "2 b"]),
        (&[Text(1, "HEART"), Withdrawn(1), Text(2, "b"), Done("b")], &["1 b"]),
        (&[Text(1, "```\n"), Withdrawn(1), Done("<think>a</think>b")], &["1 ```", "-1..1", "2 b"]),
        // Nothing was shown.
        (&[Withdrawn(1), Text(2, "b"), Done("b")], &["1 b"]),
        // What came of an attempt before stays.
        (
            &[Text(1, "a"), Text(2, "x"), Text(2, "y"), Withdrawn(2), Text(3, "b"), Done("a\nb")],
            &["1 a", "2 x", "3 y", "-2..3", "4 b"],
        ),
        (&[Text(1, "a"), Withdrawn(1), Fail], &["1 a", "-1..1", "!"]),
        // The run was interrupted: what was delivered stays delivered.
        (&[Text(1, "a b"), End], &["1 a b", "."]),
    ] {
        check(&partial, fed, payloads);
    }
    let thinking = ChannelPolicy::messages().reasoning();
    let fed = [Think(1, "a"), Withdrawn(1), Think(2, "b"), Done("c")];
    check(&thinking, &fed, &["1~b", "2 c"]);
}

fn small() -> Chunking {
    Chunking { min: 4, max: 16, prefer: Break::Paragraph }
}

// REQ: OUT-3
#[test]
fn withdrawal_resets_blocks_and_drops_what_did_not_leave() {
    let blocks = ChannelPolicy::partial().chunks(small());
    for (fed, payloads) in [
        (&[Text(1, "a b"), Withdrawn(1), Text(2, "c"), Done("c")][..], &["1 c"][..]),
        (
            &[Text(1, "aaaa\n\nb"), Withdrawn(1), Text(2, "c"), Done("c")],
            &["1 aaaa", "-1..1", "2 c"],
        ),
        (&[Text(1, "a"), Text(2, "b"), Withdrawn(2), Text(3, "c"), Done("a\nc")], &["1 a", "2 c"]),
        (
            &[Text(1, "```\n1234567890"), Text(1, "12"), Withdrawn(1), Done("c")],
            &["1 ```\n12345678\n```", "-1..1", "2 c"],
        ),
    ] {
        check(&blocks, fed, payloads);
    }
}

// REQ: OUT-3
#[test]
fn flush_and_gathering_take_their_times_from_the_settings() {
    let settings = OutputSettings { flush_idle_ms: 100, coalesce_ms: 40, ..Default::default() };
    let blocks = ChannelPolicy::partial().chunks(small());
    let fed = [Text(1, "One. "), Wait(60), Text(1, "Two."), Wait(99), Wait(1), Done("One. Two.")];
    check_with(&blocks, &settings, &fed, &["1 One. Two."]);
    let fed = [Text(1, "One."), Wait(100), Text(1, " Two"), Wait(500), Done("One. Two")];
    check_with(&blocks, &settings, &fed, &["1 One.", "2  Two"]);
    let never = OutputSettings { flush_idle_ms: 0, ..settings.clone() };
    let fed = [Text(1, "One."), Wait(9999), Done("One.")];
    assert_eq!(run(&blocks, &never, &fed[..2]), []);
    check_with(&blocks, &never, &fed, &["1 One."]);
    let fed = [Text(1, "a"), Wait(20), Text(1, "b"), Wait(20), Text(1, "c"), Done("abc")];
    check_with(&ChannelPolicy::partial(), &settings, &fed, &["1 ab", "2 c"]);
    let fed = [Text(1, "a"), Wait(20), Withdrawn(1), Wait(20), Text(2, "b"), Done("b")];
    check_with(&ChannelPolicy::partial(), &settings, &fed, &["1 b"]);
}

// REQ: OUT-3, MDL-3
#[test]
fn message_with_a_hole_is_taken_back_and_said_whole() {
    let partial = ChannelPolicy::partial();
    for (fed, payloads) in [
        (
            &[Text(1, "a"), Missed, Text(1, "c"), Done("abc")][..],
            &["1 a", "-1..1", "?3", "2 abc"][..],
        ),
        (&[Text(1, "a"), Missed, Turn, Text(1, "d"), Done("d")], &["1 a", "-1..1", "?3", "2 d"]),
        (&[Missed, End], &["?3", "."]),
    ] {
        check(&partial, fed, payloads);
    }
}

/// What answers are made of.
const PARTS: [&str; 24] = [
    "<think>",
    "</think>",
    "<final>",
    "</final>",
    "<",
    "thin",
    ">",
    " ",
    "\n",
    "\n\n",
    "`",
    "``",
    "```",
    "```rust\n",
    "~~~\n",
    "word ",
    "A sentence. ",
    "é",
    "e\u{301}",
    "HEARTBEAT_OK",
    "**",
    "1. a\n",
    "> ",
    "👨\u{200d}👩",
];

fn told_in_steps(text: &str, step: usize) -> Vec<(u32, String)> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(step.max(1)).map(|it| (1, String::from_iter(it))).collect()
}

fn payloads(policy: &ChannelPolicy, text: &str, step: usize) -> Vec<Payload> {
    let mut normalizer = Normalizer::new(policy.clone(), Arc::default());
    let mut out = Vec::new();
    for (attempt, text) in told_in_steps(text, step) {
        normalizer.take(0, &OutputEvent::Text { attempt, text: &text }, &mut out);
    }
    normalizer.take(0, &OutputEvent::Completed { text }, &mut out);
    out
}

fn joined(payloads: &[Payload]) -> String {
    let text = |it: &Payload| match it {
        Payload::Text { piece, .. } => Some(piece.text.clone()),
        _ => None,
    };
    payloads.iter().filter_map(text).collect()
}

proptest! {
    // REQ: OUT-1, OUT-2, OUT-3
    #[test]
    fn cuts_between_deltas_change_nothing_of_what_is_delivered(
        parts in proptest::collection::vec(0..PARTS.len(), 0..60),
        step in 2_usize..12,
    ) {
        let text: String = parts.iter().map(|it| PARTS[*it]).collect();
        let answer = answer_in(&text, &OutputSettings::default());
        let whole = payloads(&ChannelPolicy::messages(), &text, text.len());
        prop_assert_eq!(joined(&whole), answer.clone());
        // Uncut, deltas are the answer in other pieces.
        for step in [1, step, text.len()] {
            let partial = payloads(&ChannelPolicy::partial(), &text, step);
            prop_assert_eq!(joined(&partial), answer.clone());
        }
        // Cut into blocks, they are the same blocks.
        let blocks = ChannelPolicy::partial().chunks(small());
        let expected = payloads(&blocks, &text, text.len());
        prop_assert_eq!(joined(&expected), answer);
        for step in [1, step] {
            prop_assert_eq!(payloads(&blocks, &text, step), expected.clone());
        }
        let at_the_end = payloads(&ChannelPolicy::messages().chunks(small()), &text, 1);
        prop_assert_eq!(at_the_end, expected);
    }
}

// REQ: OUT-1, OUT-3
#[test]
fn long_answer_in_single_characters_is_the_same_answer() {
    // Each kind of text once that holds something back; work in the square of it would be felt.
    for part in
        ["<think ", "`", "``` ", "<", "HEARTBEAT_OK ", "a", " ", "\n", "`` <think>`</think> ", "é"]
    {
        let text = part.repeat(60_000 / part.len());
        let blocks = payloads(&ChannelPolicy::blocks(), &text, 1);
        assert_eq!(joined(&blocks), answer_in(&text, &OutputSettings::default()), "{part:?}");
    }
}
