//! One conversation read by one provider after the other.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::step5_model_call::model_name::is_same;

const OPUS: &str = "claude-opus-4-8";
const SONNET: &str = "claude-sonnet-5";

fn by(model: &str, api_id: &str, blocks: &[Block]) -> Arc<Message> {
    Arc::new(Message::answer("e".into(), api_id, blocks.to_vec()).of_model(model))
}

fn wire(text: &str) -> Block {
    Block::from_wire(text).unwrap()
}

fn search(id: &str) -> Block {
    wire(&format!(
        r#"{{"type":"server_tool_use","id":"{id}","name":"web_search","input":{{"query":"q"}}}}"#
    ))
}

fn found(id: &str) -> Block {
    wire(&format!(
        r#"{{"type":"web_search_tool_result","tool_use_id":"{id}","content":[{{"type":"web_search_result","title":"T","url":"http://u","encrypted_content":"E"}}]}}"#
    ))
}

fn redacted() -> Block {
    wire(r#"{"type":"redacted_thinking","data":"R"}"#)
}

fn target(format: WireFormat, model: &str) -> ViewTarget<'_> {
    ViewTarget { format, model: Some(model) }
}

/// The texts on the wire of all answers in a view.
fn answers(view: &View) -> Vec<String> {
    let blocks = view.messages.iter().filter(|it| it.role == Role::Assistant);
    blocks.flat_map(|it| &it.blocks).map(|it| format!("{}}}", it.wire_open())).collect()
}

#[track_caller]
fn check_reads(reader: ViewTarget<'_>, messages: &[Arc<Message>], expected: &[&str]) -> View {
    let view = compile_for(messages, reader);
    assert_eq!(answers(&view), expected);
    assert!(is_acceptable_for(reader, &view.messages));
    view
}

// REQ: MDL-8
#[test]
fn reasoning_goes_back_to_the_model_that_signed_it_on_any_platform() {
    let omitted = r#"{"type":"thinking","thinking":"","signature":"S"}"#;
    let hidden = r#"{"type":"redacted_thinking","data":"R"}"#;
    let messages = [
        user(&[text("a")]),
        by(OPUS, "1", &[wire(omitted), redacted(), call("x")]),
        user(&[result("x")]),
        by(SONNET, "2", &[signed("s"), text("b")]),
        user(&[text("c")]),
    ];
    let [x, s] = [
        r#"{"type":"tool_use","id":"x","name":"Read","input":{"n":1}}"#,
        r#"{"type":"thinking","thinking":"s","signature":"s"}"#,
    ];
    let b = r#"{"type":"text","text":"b"}"#;
    let of_opus = [omitted, hidden, x, b];
    check_reads(target(WireFormat::AnthropicMessages, OPUS), &messages, &of_opus);
    let on_bedrock = "us.anthropic.claude-opus-4-8-20260101-v1:0";
    check_reads(target(WireFormat::BedrockInvoke, on_bedrock), &messages, &of_opus);
    check_reads(
        target(WireFormat::VertexRawPredict, "claude-opus-4-8@20260101"),
        &messages,
        &of_opus,
    );
    let view = check_reads(target(WireFormat::AnthropicMessages, SONNET), &messages, &[x, s, b]);
    assert_eq!(view.notes, [ViewNote::ForeignReasoning]);
    let view =
        check_reads(target(WireFormat::AnthropicMessages, "claude-haiku-4-5"), &messages, &[x, b]);
    assert_eq!(view.notes, [ViewNote::ForeignReasoning]);
    // What is stored is as before, and the first model gets its own back.
    check_reads(target(WireFormat::AnthropicMessages, OPUS), &messages, &of_opus);
}

// REQ: MDL-8, MDL-1
#[test]
fn server_tools_go_back_whole_or_as_texts() {
    let cited = r#"{"type":"text","text":"b","citations":[{"url":"http://u"}]}"#;
    let messages = [
        user(&[text("a")]),
        by(OPUS, "1", &[search("s"), found("s"), wire(cited)]),
        user(&[text("c")]),
    ];
    let [call, result] = [search("s"), found("s")].map(|it| format!("{}}}", it.wire_open()));
    let view = check_reads(
        target(WireFormat::AnthropicMessages, SONNET),
        &messages,
        &[&call, &result, cited],
    );
    assert_eq!(view.notes, []);
    let view = check_reads(
        target(WireFormat::BedrockInvoke, OPUS),
        &messages,
        &[
            r#"{"type":"text","text":"[the provider ran web_search with {\"query\":\"q\"}]"}"#,
            r#"{"type":"text","text":"[web_search_tool_result]\nT\nhttp://u"}"#,
            r#"{"type":"text","text":"b"}"#,
        ],
    );
    assert!(matches!(view.notes[..], [ViewNote::AsText { .. }, ViewNote::AsText { .. }]));
}

/// How the blocks of a server tool appear in the view, after a first message of the user: `!` for
/// itself, `t` for a text.
#[track_caller]
fn check_server_blocks(messages: &[Arc<Message>], expected: &str) {
    let all: Vec<_> = std::iter::once(user(&[text("a")])).chain(messages.iter().cloned()).collect();
    let view = compile(&all);
    assert!(is_acceptable_for(ViewTarget::default(), &view.messages));
    let blocks = view.messages.iter().filter(|it| it.role == Role::Assistant);
    let signs = blocks.flat_map(|it| &it.blocks).filter_map(|it| match it.kind() {
        BlockKind::Opaque { .. } => Some('!'),
        BlockKind::Text(_) => Some('t'),
        _ => None,
    });
    assert_eq!(signs.collect::<String>(), expected);
}

// REQ: SHP-12
#[test]
fn call_of_a_server_tool_waits_only_where_the_provider_lets_it() {
    let both = || by(OPUS, "1", &[search("s"), call("x")]);
    check_server_blocks(&[by(OPUS, "1", &[search("s")])], "!");
    check_server_blocks(&[by(OPUS, "1", &[search("s")]), user(&[text("b")])], "t");
    check_server_blocks(&[both(), user(&[result("x")])], "!");
    check_server_blocks(&[both(), user(&[result("x"), text("b")])], "t");
    check_server_blocks(&[both(), user(&[result("x")]), by(OPUS, "2", &[found("s")])], "!!");
    check_server_blocks(
        &[both(), user(&[result("x"), text("b")]), by(OPUS, "2", &[found("s")])],
        "tt",
    );
    check_server_blocks(&[by(OPUS, "1", &[found("s"), search("s")]), user(&[text("b")])], "tt");
    let twice = [search("s"), search("s"), found("s"), found("s")];
    check_server_blocks(&[by(OPUS, "1", &twice)], "!t!t");
}

// REQ: MDL-8
#[test]
fn what_only_one_provider_knows_is_left_out_or_becomes_a_text() {
    let messages = [
        user(&[
            text("a"),
            wire(r#"{"type":"image","source":{"type":"url","url":"http://i"}}"#),
            wire(r#"{"type":"image","source":{"type":"base64","data":"A"}}"#),
            wire(r#"{"type":"document","source":{"type":"file","file_id":"f"}}"#),
        ]),
        by(
            OPUS,
            "1",
            &[
                wire(r#"{"type":"compaction","content":"so far"}"#),
                wire(r#"{"type":"fallback","model":"m"}"#),
                wire(r#"{"type":"openai_item","item":{}}"#),
                text("b"),
            ],
        ),
    ];
    let view = compile_for(&messages, target(WireFormat::VertexRawPredict, OPUS));
    let texts: Vec<_> =
        view.messages.iter().flat_map(|it| &it.blocks).map(Block::as_text).collect();
    assert_eq!(
        texts,
        [
            Some("a"),
            Some("[image at http://i]"),
            None,
            Some("[document in a file of another provider]"),
            Some("[compaction]\nso far"),
            Some("b"),
        ]
    );
    let first_party = compile_for(&messages, target(WireFormat::AnthropicMessages, OPUS));
    assert_eq!(first_party.notes, [ViewNote::LeftOut { kind: "openai_item".into() }]);
}

// REQ: MDL-8
#[test]
fn ids_of_other_providers_are_made_such_as_every_one_takes() {
    let odd = |id: &str| Block::tool_use(&id.into(), &"Read".into(), "{}");
    let rich = r#"{"type":"tool_result","tool_use_id":"f.R:0","content":[{"type":"image"}]}"#;
    let messages = [
        user(&[text("a")]),
        by("kimi", "1", &[odd("f.R:0"), odd("f_R.0"), odd("")]),
        user(&[wire(rich), result("f_R.0")]),
    ];
    let view = compile(&messages);
    let calls: Vec<_> =
        view.messages[1].blocks.iter().filter_map(Block::as_tool_use).map(|it| it.0).collect();
    assert!(calls[0].as_str().starts_with("f_R_0_") && calls[0] != calls[1]);
    let rich = view.messages[2].blocks[0].wire_open();
    assert!(rich.contains(r#""content":[{"type":"image"}]"#), "{rich}");
    assert!(is_acceptable_for(ViewTarget::default(), &view.messages));
}

fn any_answer_block() -> impl Strategy<Value = Block> {
    let id = || prop_oneof![Just("s"), Just("r")];
    prop_oneof![
        4 => any_block(),
        1 => Just(redacted()),
        1 => id().prop_map(search),
        1 => id().prop_map(found),
        1 => Just(wire(r#"{"type":"openai_item","item":{}}"#)),
        1 => Just(wire(r#"{"type":"compaction","content":"c"}"#)),
        1 => Just(Block::tool_use(&"a.b".into(), &"Read".into(), "{}")),
        1 => Just(result("a.b")),
        1 => Just(wire(r#"{"type":"image","source":{"type":"url","url":"u"}}"#)),
    ]
}

fn any_model() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(OPUS),
        Just("us.anthropic.claude-opus-4-8-v1:0"),
        Just(SONNET),
        Just("gpt-5"),
        Just("")
    ]
}

fn any_turn() -> impl Strategy<Value = Arc<Message>> {
    let blocks = proptest::collection::vec(any_answer_block(), 0..5);
    (0..3u8, any_model(), blocks).prop_map(|(shape, model, blocks)| match shape {
        0 => user(&blocks),
        n => by(model, ["", "1", "2"][usize::from(n)], &blocks),
    })
}

fn any_format() -> impl Strategy<Value = WireFormat> {
    proptest::sample::select(WireFormat::ALL.to_vec())
}

proptest! {
    // REQ: MDL-8, SHP-12
    #[test]
    fn any_conversation_can_be_read_by_any_provider_at_any_time(
        turns in proptest::collection::vec((any_turn(), any_format(), any_model()), 0..12),
    ) {
        let messages: Vec<_> = turns.iter().map(|(it, ..)| it.clone()).collect();
        let stored: Vec<Message> = messages.iter().map(|it| (**it).clone()).collect();
        for (n, (_, format, model)) in turns.iter().enumerate() {
            let reader = ViewTarget { format: *format, model: (!model.is_empty()).then_some(*model) };
            let sent = &messages[..=n];
            let view = compile_for(sent, reader);
            prop_assert!(is_acceptable_for(reader, &view.messages), "{reader:?}: {view:?}");
            let kept = view.messages.iter().flat_map(|it| &it.blocks);
            for block in kept.filter(|it| matches!(it.kind(), BlockKind::Thinking { .. })) {
                let may_read = |it: &Message| match (&it.model, reader.model) {
                    (Some(signer), Some(reader)) => is_same(signer, reader),
                    _ => true,
                };
                let signers = sent.iter().filter(|it| it.blocks.contains(block));
                prop_assert!(signers.into_iter().any(|it| may_read(it)));
            }
        }
        prop_assert!(messages.iter().zip(&stored).all(|(now, before)| **now == *before));
    }
}
