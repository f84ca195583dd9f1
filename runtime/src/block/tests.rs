//! What is written reads back, and what is not a block is refused.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

#[track_caller]
fn check_round_trip(block: &Block) {
    let mut wire = Vec::new();
    block.push_wire(&mut wire);
    let wire = String::from_utf8(wire).unwrap();
    serde_json::from_str::<serde_json::Value>(&wire).unwrap();
    let read = Block::from_wire(&wire).unwrap();
    assert_eq!(&read, block);
    assert_eq!(read.kind(), block.kind());
    assert_eq!(read.chars(), block.chars());
}

#[test]
fn every_block_reads_back_from_its_own_wire_text() {
    let id = ToolUseId::from("toolu_1");
    check_round_trip(&Block::text("a \"quoted\"\n\u{1f600} line"));
    check_round_trip(&Block::thinking("hm", Some("c2ln")));
    check_round_trip(&Block::thinking("", None));
    check_round_trip(&Block::tool_use(&id, &"Read".into(), r#"{"file_path":"/a"}"#));
    check_round_trip(&Block::tool_result(&id, "no", true));
    check_round_trip(&Block::tool_result(&id, "yes", false));
    check_round_trip(&Block::stop_request());
    check_round_trip(&Block::error("gone"));
}

#[test]
fn provider_bytes_are_kept() {
    let wire = r#"{"type":"server_tool_use","zeta":1,"alpha":[1, 2]}"#;
    let block = Block::from_wire(wire).unwrap();
    assert_eq!(block.wire_open(), wire.strip_suffix('}').unwrap());
    assert_eq!(block.kind(), &BlockKind::Opaque { kind: "server_tool_use".into() });
}

#[test]
fn block_without_its_fields_is_refused() {
    assert!(matches!(
        Block::from_wire(r#"{"type":"text"}"#),
        Err(NotABlock::Missing { field: "text" })
    ));
    assert!(matches!(Block::from_wire("[]"), Err(NotABlock::Json(_))));
}

// REQ: SHP-12
#[test]
fn block_with_a_member_that_its_type_does_not_know_or_without_one_that_it_needs_is_odd() {
    let odd = [
        r#"{"type":"text","text":"a","texu":"b"}"#,
        r#"{"type":"thinking","thinkinh":"a","signature":"s"}"#,
        r#"{"type":"redacted_thinking","dataa":"s"}"#,
        r#"{"type":"tool_use","id":"a","name":"b","inpus":{}}"#,
        r#"{"type":"tool_use","id":"a","name":"b","input":"text"}"#,
        r#"{"type":"tool_result","tool_use_id":"a","content":"b","is_errot":true}"#,
        r#"{"type":"tool_result","tool_use_id":"a","content":[{"typf":"text","text":"b"}]}"#,
        r#"{"type":"tool_result","tool_use_id":"a","content":7}"#,
    ];
    for text in odd {
        assert!(Block::from_wire(text).unwrap().is_odd(), "{text}");
    }
    let usual = [
        r#"{"type":"text","text":"a","citations":null}"#,
        r#"{"type":"thinking","thinking":"a","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"s"}"#,
        r#"{"type":"tool_use","id":"a","name":"b","input":{},"caller":{"type":"direct"}}"#,
        r#"{"type":"tool_result","tool_use_id":"a"}"#,
        r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"b"}]}"#,
        r#"{"type":"a_later_kind","whatever":1}"#,
    ];
    for text in usual {
        let block = Block::from_wire(text).unwrap();
        assert!(!block.is_odd() && block.doubted().is_odd(), "{text}");
        assert_eq!(block, block.doubted(), "the bytes are the same");
    }
}
