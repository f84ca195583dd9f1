//! Conversations as logs before and after compiling, and what holds for any conversation.
//!
//! Built under `#[cfg(test)]` only.

mod growing;
mod switching;

use proptest::prelude::*;

use super::*;
use crate::{message::MessageKind, step5_model_call::wire_format::WireFormat};

fn user(blocks: &[Block]) -> Arc<Message> {
    Arc::new(Message::user("e".into(), MessageKind::Prompt, blocks.to_vec()))
}

fn answer(api_id: &str, blocks: &[Block]) -> Arc<Message> {
    Arc::new(Message::answer("e".into(), api_id, blocks.to_vec()))
}

fn call(id: &str) -> Block {
    Block::tool_use(&id.into(), &"Read".into(), r#"{"n":1}"#)
}

fn result(id: &str) -> Block {
    Block::tool_result(&id.into(), &format!("of {id}"), false)
}

fn text(text: &str) -> Block {
    Block::text(text)
}

fn signed(thought: &str) -> Block {
    Block::thinking(thought, Some("s"))
}

/// A view as a log: `u` and `a` begin messages, calls are `!id`, results `=id`, made up ones `?id`.
fn log(view: &View) -> String {
    let block = |block: &Block| match block.kind() {
        BlockKind::Text(text) => text.to_string(),
        BlockKind::Thinking { thinking, .. } => format!("({thinking})"),
        BlockKind::ToolUse { id, .. } => format!("!{id}"),
        BlockKind::ToolResult { id, text, is_error } => {
            assert_eq!(*is_error, &**text == INTERRUPTED);
            format!("{}{id}", if *is_error { '?' } else { '=' })
        }
        other => format!("{other:?}"),
    };
    let message = |it: &ViewMessage| {
        let role = if it.role == Role::User { "u" } else { "a" };
        format!("{role}[{}]", it.blocks.iter().map(block).collect::<Vec<_>>().join(" "))
    };
    view.messages.iter().map(message).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(messages: &[Arc<Message>], expected: &str, notes: &[ViewNote]) {
    let view = compile(messages);
    assert_eq!(log(&view), expected);
    assert_eq!(view.notes, notes);
    assert!(is_acceptable_for(ViewTarget::default(), &view.messages));
}

// REQ: SHP-12
#[test]
fn neighbours_of_one_role_are_joined_and_marks_left_out() {
    check(
        &[
            user(&[text("a")]),
            Arc::new(Message::mark("e".into(), Block::stop_request())),
            user(&[text(" \n"), text("b"), Block::error("x")]),
            user(&[]),
            answer("1", &[text("c")]),
            answer("2", &[text(""), text("d")]),
        ],
        "u[a b] a[c d]",
        &[],
    );
    check(&[], "", &[]);
}

// REQ: SHP-12
#[test]
fn results_stand_first_in_the_order_of_their_calls() {
    check(
        &[
            user(&[text("a")]),
            answer("1", &[call("x"), call("y")]),
            user(&[text("b"), result("y")]),
            user(&[result("x")]),
        ],
        "u[a] a[!x !y] u[=x =y b]",
        &[],
    );
}

// REQ: SHP-12
#[test]
fn lines_of_one_response_belong_together() {
    check(
        &[
            user(&[text("a")]),
            answer("1", &[call("x")]),
            user(&[result("x")]),
            answer("1", &[call("y")]),
            user(&[result("y")]),
            answer("2", &[call("z")]),
            user(&[result("z")]),
        ],
        "u[a] a[!x !y] u[=x =y] a[!z] u[=z]",
        &[],
    );
}

// REQ: SHP-12
#[test]
fn missing_results_are_made_up_and_strays_left_out() {
    check(
        &[
            user(&[text("a"), result("stray")]),
            answer("1", &[call("x"), call("y")]),
            user(&[result("x"), result("x"), text("b")]),
        ],
        "u[a] a[!x !y] u[=x ?y b]",
        &[
            ViewNote::ResultWithoutCall("stray".into()),
            ViewNote::SecondResult("x".into()),
            ViewNote::MissingResult("y".into()),
        ],
    );
    check(
        &[user(&[text("a")]), answer("1", &[call("x")]), answer("2", &[text("b")])],
        "u[a] a[!x] u[?x] a[b]",
        &[ViewNote::MissingResult("x".into())],
    );
    check(
        &[
            user(&[text("a")]),
            answer("1", &[call("x")]),
            answer("2", &[text("b")]),
            user(&[result("x")]),
        ],
        "u[a] a[!x] u[=x] a[b]",
        &[],
    );
}

// REQ: SHP-12
#[test]
fn second_calls_and_blocks_of_the_wrong_role_are_left_out() {
    check(
        &[
            user(&[text("a"), call("u"), signed("u")]),
            answer("1", &[call("x"), result("x")]),
            user(&[result("x")]),
            answer("2", &[call("x"), text("b")]),
        ],
        "u[a] a[!x] u[=x] a[b]",
        &[
            ViewNote::WrongRole,
            ViewNote::WrongRole,
            ViewNote::WrongRole,
            ViewNote::SecondCall("x".into()),
        ],
    );
}

// REQ: SHP-12
#[test]
fn the_first_message_is_of_the_user() {
    check(
        &[
            answer("1", &[call("x")]),
            user(&[result("x")]),
            answer("1", &[text("a")]),
            user(&[text("b")]),
        ],
        "u[b]",
        &[ViewNote::LeadingAnswer, ViewNote::ResultWithoutCall("x".into())],
    );
}

// REQ: SHP-12
#[test]
fn reasoning_goes_back_only_where_it_is_signed_and_for_its_model() {
    let messages = [
        user(&[text("a")]),
        answer("1", &[Block::thinking("no", None), signed("yes"), call("x")]),
        user(&[result("x")]),
        answer("2", &[signed("last")]),
    ];
    check(
        &messages,
        "u[a] a[(yes) !x] u[=x]",
        &[ViewNote::UnsignedThinking, ViewNote::ThinkingOnly],
    );
}

// REQ: SHP-12
#[test]
fn what_a_provider_would_refuse_is_replaced_in_the_view_only() {
    let odd = Block::from_wire(r#"{"type":"tool_use","id":"x","name":"a b","input":"s"}"#).unwrap();
    let image = |n: usize| {
        let data = "A".repeat(n);
        Block::from_wire(&format!(r#"{{"type":"image","source":{{"data":"{data}"}}}}"#)).unwrap()
    };
    let messages = [
        user(&[image(MAX_IMAGE_BYTES), image(8)]),
        answer("1", std::slice::from_ref(&odd)),
        user(&[result("x")]),
    ];
    let view = compile(&messages);
    assert!(view.messages[0].blocks[0].as_text().unwrap().contains("too large"));
    assert_eq!(view.messages[0].blocks[1], image(8));
    assert_eq!(view.messages[1].blocks, [Block::tool_use(&"x".into(), &"a_b".into(), "{}")]);
    assert!(matches!(view.notes[..], [ViewNote::TooLarge { .. }, ViewNote::CallRepaired(_)]));
    assert_eq!(messages[1].blocks, [odd]);
}

// REQ: MDL-10
#[test]
fn paused_answer_goes_back_unchanged_as_the_last_message() {
    let search = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"q": 1}}"#;
    let paused = [signed("t"), Block::from_wire(search).unwrap()];
    let mut view = compile(&[user(&[text("a")])]);
    view.push_answer(&[]);
    assert_eq!(view.messages.len(), 1);
    view.push_answer(&paused[..1]);
    view.push_answer(&paused[1..]);
    assert_eq!(view.messages.len(), 2);
    assert_eq!(view.messages[1].blocks, paused);
    assert!(is_acceptable_for(ViewTarget::default(), &view.messages));
}

// REQ: SHP-12
#[test]
fn blocks_whose_bytes_may_have_been_changed_are_sent_by_their_content_alone() {
    let wire = |text: &str| Block::from_wire(text).unwrap();
    let image = wire(r#"{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}"#);
    let messages = [
        user(&[wire(r#"{"type":"text","text":"a","texu":1}"#), image.clone(), image.doubted()]),
        answer(
            "1",
            &[
                signed("kept"),
                signed("changed").doubted(),
                wire(r#"{"type":"tool_use","id":"x","name":"Read","inpus":{"n":1}}"#),
            ],
        ),
        user(&[wire(r#"{"type":"tool_result","tool_use_id":"x","content":"r","is_errot":1}"#)]),
    ];
    let view = compile(&messages);
    let blocks: Vec<Block> = view.messages.iter().flat_map(|it| it.blocks.clone()).collect();
    assert_eq!(blocks[..2], [text("a"), image]);
    assert_eq!(
        blocks[3..],
        [
            signed("kept"),
            Block::tool_use(&"x".into(), &"Read".into(), "{}"),
            Block::tool_result(&"x".into(), "r", false),
        ]
    );
    assert_eq!(view.notes.len(), 5, "{:?}", view.notes);
    assert!(view.notes.iter().all(|it| !it.to_string().is_empty()));
}

// REQ: SHP-12
#[test]
fn conversation_that_ends_with_an_answer_is_asked_to_go_on() {
    let mut view = compile(&[user(&[text("a")]), answer("1", &[text("b")])]);
    view.end_with_user();
    assert_eq!(view.messages.last().unwrap().role, Role::User);
    assert_eq!(view.notes, [ViewNote::EndsWithAnswer]);
    let before = view.clone();
    view.end_with_user();
    assert_eq!(view, before, "once is enough");
}

// REQ: SHP-12
#[test]
fn pictures_of_one_turn_that_are_more_than_a_request_holds_give_way_oldest_first() {
    let picture = |id: &str| {
        let data = "A".repeat(5_000_000);
        let source = format!(r#"{{"type":"base64","media_type":"image/png","data":"{data}"}}"#);
        let image = format!(r#"{{"type":"image","source":{source}}}"#);
        let result =
            format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":[{image}]}}"#);
        Block::from_wire(&result).unwrap()
    };
    let ids: Vec<String> = (0..10).map(|i| format!("p{i}")).collect();
    let calls: Vec<Block> = ids.iter().map(|it| call(it)).collect();
    let results: Vec<Block> = ids.iter().map(|it| picture(it)).collect();
    let view = compile(&[user(&[text("look")]), answer("1", &calls), user(&results)]);
    let sizes: Vec<usize> = view.messages[2].blocks.iter().map(|it| it.wire_open().len()).collect();
    assert!(sizes.iter().sum::<usize>() <= MAX_VIEW_BYTES);
    assert!(sizes[..4].iter().all(|it| *it < 200) && sizes[4..].iter().all(|it| 5_000_000 < *it));
    assert!(is_acceptable_for(ViewTarget::default(), &view.messages));
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = || prop_oneof![Just("x"), Just("y"), Just("z")];
    prop_oneof![
        Just(text("t")),
        Just(text(" ")),
        Just(signed("s")),
        Just(Block::thinking("u", None)),
        Just(Block::stop_request()),
        Just(Block::error("e")),
        id().prop_map(call),
        id().prop_map(call),
        id().prop_map(result),
        id().prop_map(result),
    ]
}

fn any_message() -> impl Strategy<Value = Arc<Message>> {
    let blocks = proptest::collection::vec(any_block(), 0..4);
    (0..5u8, blocks).prop_map(|(shape, blocks)| match shape {
        0 | 1 => user(&blocks),
        2 => answer("1", &blocks),
        3 => answer("2", &blocks),
        _ => Arc::new(Message { api_id: None, ..(*answer("", &blocks)).clone() }),
    })
}

proptest! {
    // REQ: SHP-12
    #[test]
    fn any_conversation_gives_an_acceptable_view(
        messages in proptest::collection::vec(any_message(), 0..12),
    ) {
        let view = compile(&messages);
        prop_assert!(is_acceptable_for(ViewTarget::default(), &view.messages), "{}", log(&view));
        // Compiling what was compiled changes nothing.
        let again: Vec<_> = view.messages.iter().enumerate().map(|(i, it)| match it.role {
            Role::Assistant => answer(&i.to_string(), &it.blocks),
            Role::User | Role::System => user(&it.blocks),
        }).collect();
        let again = compile(&again);
        prop_assert_eq!(log(&again), log(&view));
        prop_assert_eq!(&again.messages, &view.messages);
        prop_assert!(again.notes.is_empty(), "{:?}", again.notes);
    }
}
