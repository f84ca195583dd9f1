//! Histories with nothing wrong.

use std::sync::Arc;

use ennead_runtime::{
    block::Block,
    message::{Message, MessageKind, Messages},
};

use super::Draws;

/// Up to six prompts, each with up to four answers that ask for up to four calls.
pub(super) fn history(draws: &mut Draws) -> Messages {
    let mut all = Messages::new();
    let mut n_calls = 0;
    if draws.below(4) == 0 {
        push(&mut all, MessageKind::CompactSummary, vec![Block::text("so far")]);
    }
    for run in 0..=draws.below(6) {
        let mut blocks = vec![Block::text(&format!("word-{}-{run} go", all.len()))];
        if draws.below(8) == 0 {
            blocks.push(image());
        }
        push(&mut all, MessageKind::Prompt, blocks);
        for _ in 0..draws.below(5) {
            round(&mut all, &mut n_calls, draws);
        }
        if draws.below(3) == 0 {
            push(&mut all, MessageKind::Meta, vec![Block::text("by the way")]);
        }
        let blocks = vec![Block::text("done")];
        answer(&mut all, blocks, draws);
    }
    all
}

fn round(all: &mut Messages, n_calls: &mut usize, draws: &mut Draws) {
    let first = *n_calls;
    *n_calls += 1 + draws.below(4);
    let mut blocks = Vec::new();
    if draws.below(3) == 0 {
        blocks.push(Block::thinking("hm", Some("sig")));
    }
    if draws.below(2) == 0 {
        blocks.push(Block::text("I look"));
    }
    let ids: Vec<String> = (first..*n_calls).map(|it| format!("t{it}")).collect();
    let call = |id: &String| Block::tool_use(&id.as_str().into(), &"Note".into(), r#"{"a":1}"#);
    blocks.extend(ids.iter().map(call));
    answer(all, blocks, draws);
    let result = |id: &String| Block::tool_result(&id.as_str().into(), "found", false);
    if draws.below(2) == 0 {
        push(all, MessageKind::ToolResults, ids.iter().map(result).collect());
    } else {
        ids.iter().for_each(|it| push(all, MessageKind::ToolResults, vec![result(it)]));
    }
}

fn push(all: &mut Messages, kind: MessageKind, blocks: Vec<Block>) {
    all.push(Arc::new(Message::user(format!("m{}", all.len()).into(), kind, blocks)));
}

fn answer(all: &mut Messages, blocks: Vec<Block>, draws: &mut Draws) {
    let api = format!("api{}", all.len());
    let message = Message::answer(format!("m{}", all.len()).into(), &api, blocks);
    all.push(Arc::new(message.of_model(draws.one_of(&["", "m", "other"]))));
}

/// A picture of one byte.
pub(super) fn image() -> Block {
    let source = r#"{"type":"base64","media_type":"image/png","data":"AA=="}"#;
    Block::from_wire(&format!(r#"{{"type":"image","source":{source}}}"#)).unwrap()
}
