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
    let image = r#"{"type":"image","source":{"type":"url","url":"https://a.test/x"}}"#;
    let image = Block::from_wire(image).unwrap();
    check_round_trip(&Block::media_result(&id, "seen", &[image.clone(), image], true));
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

// REQ: TOL-1, CTX-8
#[test]
fn result_counts_its_images_and_gives_them_back_in_order() {
    let id = ToolUseId::from("toolu_1");
    let image = |n: u8| {
        let source = format!(r#"{{"type":"url","url":"https://a.test/{n}"}}"#);
        Block::from_wire(&format!(r#"{{"type":"image","source":{source}}}"#)).unwrap()
    };
    let media = [image(1), image(2)];
    let result = Block::media_result(&id, "two", &media, false);
    assert_eq!(result.as_tool_result(), Some((&id, "two", false)));
    assert_eq!((result.chars(), result.is_odd()), (3 + 2 * 6400, false));
    assert_eq!(result.media_in_result(), media);
    assert_eq!(Block::media_result(&id, "none", &[], true), Block::tool_result(&id, "none", true));
    // A text that looks like a list is a text.
    let text = Block::tool_result(&id, r#"[{"type":"image"}]"#, false);
    assert_eq!((text.chars(), text.media_in_result()), (18, Vec::new()));
}

// REQ: SHP-12
#[test]
fn half_of_a_surrogate_pair_is_replaced_in_bytes_that_nobody_has_parsed() {
    let input = r#"{"a":"\ud83d","b":"\ud83d\ude00"}"#;
    let mended = r#"{"a":"\ufffd","b":"\ud83d\ude00"}"#;
    let call = Block::tool_use(&"t".into(), &"Note".into(), input);
    assert_eq!(call.as_tool_use().unwrap().2, mended);
    let wire = format!(r#"{{"type":"tool_use","id":"t","name":"Note","input":{input}}}"#);
    let other = format!(r#"{{"type":"hologram","deep":{{"a":{input}}}}}"#);
    for block in [call, Block::from_wire(&wire).unwrap(), Block::from_wire(&other).unwrap()] {
        let mut bytes = Vec::new();
        block.push_wire(&mut bytes);
        let parsed: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert!(parsed.to_string().contains('\u{fffd}'), "{parsed}");
    }
}
