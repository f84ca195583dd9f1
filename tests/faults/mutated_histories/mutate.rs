//! What may go wrong with a history: a line is lost or comes twice, a letter changes, another program
//! wrote it, a server sent it so.

use std::sync::Arc;

use ennead_runtime::{
    block::{Block, BlockKind},
    message::{Message, MessageKind, Messages, Role},
};

use super::{Draws, sound::image};

/// One way to change a history.
#[derive(Clone, Copy)]
pub(super) struct Mutation {
    pub(super) name: &'static str,
    /// `None` where the history has nothing to change so.
    pub(super) change: fn(&mut Messages, &mut Draws) -> Option<()>,
}

macro_rules! mutations {
    ($($name:ident),+ $(,)?) => {
        [$(Mutation { name: stringify!($name), change: $name }),+]
    };
}

/// All of them.
pub(super) const MUTATIONS: [Mutation; 24] = mutations![
    lose_a_message,
    repeat_a_message,
    swap_neighbours,
    move_a_message,
    lose_a_block,
    repeat_a_block,
    swap_blocks,
    move_a_block,
    empty_a_message,
    another_call_id,
    same_call_id,
    odd_call_id,
    odd_tool_name,
    odd_input,
    another_result,
    result_without_call,
    call_of_user,
    result_of_answer,
    blank_text,
    odd_text,
    unsigned_thinking,
    odd_block,
    another_role,
    lose_the_beginning,
];

/// Ids as servers and damaged files have them.
const IDS: [&str; 7] = ["", " ", "t 0", "t/0", "\u{e9}", "t0", "a\"b\\"];

/// Names of tools as models make them up.
const NAMES: [&str; 5] = ["", "a b", "m\u{fc}ll", "Note()", "x/y.z"];

/// Inputs that are not objects, of which no block can be made, and those that look like something else.
const INPUTS: [&str; 8] = [
    "null",
    "[1]",
    "\"x\"",
    "{",
    "{ }",
    "{\"cache_control\":{\"a\":1}}",
    "{\"type\":\"tool_result\",\"tool_use_id\":\"t0\"}",
    "{\"a\":\"\\u0000\\ud83d\",\"a\":1e300}",
];

/// Texts that a provider may not like.
const TEXTS: [&str; 6] = ["", " \n\t", "\u{feff}", "\0", "\u{2028}\\u0000\"", "</system-reminder>"];

/// Blocks as other programs and later versions of an API write them.
const BLOCKS: [&str; 12] = [
    r#"{"type":"text","text":"x","extra":1}"#,
    r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#,
    r#"{"type":"image","source":{"type":"base64"}}"#,
    r#"{"type":"image","source":{"type":"url","url":"http://x/"}}"#,
    r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}"#,
    r#"{"type":"thinking","thinking":"x","signature":"s","more":1}"#,
    r#"{"type":"redacted_thinking","data":"x"}"#,
    r#"{"type":"hologram","depth":3}"#,
    r#"{"type":"tool_result","tool_use_id":"t0","content":[{"type":"audio"}],"is_error":"no"}"#,
    r#"{"type":"tool_use","id":"t1","name":"Note","input":{"a":1},"index":0}"#,
    r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#,
    r#"{"type":"openai_reasoning","item":{"id":"r"}}"#,
];

/// A place in a list that is not empty.
fn place<T>(all: &[T], draws: &mut Draws) -> Option<usize> {
    (!all.is_empty()).then(|| draws.below(all.len()))
}

/// Whether the message is what a user said; that goes into every request, wherever it is.
fn is_prompt(message: &Message) -> bool {
    message.kind == MessageKind::Prompt
}

/// A message that is not a prompt, to be changed.
fn other<'a>(all: &'a mut Messages, draws: &mut Draws) -> Option<&'a mut Message> {
    let at = place(all, draws)?;
    (!is_prompt(&all[at])).then(|| Arc::make_mut(&mut all[at]))
}

/// A block of such a kind, to be changed.
fn block<'a>(
    all: &'a mut Messages,
    draws: &mut Draws,
    is_it: fn(&Block) -> bool,
) -> Option<&'a mut Block> {
    let mut found: Vec<&mut Block> = all
        .iter_mut()
        .filter(|it| !is_prompt(it))
        .flat_map(|it| Arc::make_mut(it).blocks.iter_mut())
        .filter(|it| is_it(it))
        .collect();
    let at = place(&found, draws)?;
    Some(found.swap_remove(at))
}

fn is_call(block: &Block) -> bool {
    block.as_tool_use().is_some()
}

fn is_result(block: &Block) -> bool {
    block.as_tool_result().is_some()
}

fn is_text(block: &Block) -> bool {
    block.as_text().is_some()
}

fn is_thinking(block: &Block) -> bool {
    matches!(block.kind(), BlockKind::Thinking { .. })
}

fn lose_a_message(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let at = place(all, draws)?;
    all.remove(at);
    Some(())
}

fn repeat_a_message(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let (from, to) = (place(all, draws)?, place(all, draws)?);
    let again = all[from].clone();
    (!is_prompt(&again)).then(|| all.insert(to, again))
}

fn swap_neighbours(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let at = place(all, draws)?;
    (at + 1 < all.len()).then(|| all.swap(at, at + 1))
}

fn move_a_message(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let from = place(all, draws)?;
    let moved = all.remove(from);
    let to = draws.below(all.len() + 1);
    all.insert(to, moved);
    Some(())
}

fn lose_a_block(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let message = other(all, draws)?;
    let at = place(&message.blocks, draws)?;
    message.blocks.remove(at);
    Some(())
}

fn repeat_a_block(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let message = other(all, draws)?;
    let at = place(&message.blocks, draws)?;
    let again = message.blocks[at].clone();
    message.blocks.push(again);
    Some(())
}

fn swap_blocks(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let message = other(all, draws)?;
    let (a, b) = (place(&message.blocks, draws)?, place(&message.blocks, draws)?);
    message.blocks.swap(a, b);
    (a != b).then_some(())
}

fn move_a_block(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let from = other(all, draws)?;
    let at = place(&from.blocks, draws)?;
    let moved = from.blocks.remove(at);
    let to = place(all, draws)?;
    Arc::make_mut(&mut all[to]).blocks.push(moved);
    Some(())
}

fn empty_a_message(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    other(all, draws)?.blocks.clear();
    Some(())
}

fn with_id(block: &mut Block, id: &str) -> Option<()> {
    let (_, name, input) = block.as_tool_use()?;
    *block = Block::tool_use(&id.into(), &name.clone(), input);
    Some(())
}

fn another_call_id(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let id = format!("u{}", draws.below(1_000));
    with_id(block(all, draws, is_call)?, &id)
}

fn same_call_id(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let id = block(all, draws, is_call)?.as_tool_use()?.0.clone();
    with_id(block(all, draws, is_call)?, id.as_str())
}

fn odd_call_id(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let id = draws.one_of(&IDS);
    with_id(block(all, draws, is_call)?, id)
}

fn odd_tool_name(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let long = "n".repeat(65 + draws.below(200));
    let name = if draws.below(6) == 0 { &long } else { draws.one_of(&NAMES) };
    let block = block(all, draws, is_call)?;
    let (id, _, input) = block.as_tool_use()?;
    *block = Block::tool_use(&id.clone(), &name.into(), input);
    Some(())
}

fn odd_input(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(90), "]".repeat(90));
    let input = if draws.below(9) == 0 { &deep } else { draws.one_of(&INPUTS) };
    let block = block(all, draws, is_call)?;
    let (id, name, _) = block.as_tool_use()?;
    let wire = format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#);
    *block = Block::from_wire(&wire).ok()?;
    Some(())
}

fn another_result(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let id = draws.one_of(&["t0", "t1", "gone", "", "a b"]);
    *block(all, draws, is_result)? = Block::tool_result(&id.into(), "other", true);
    Some(())
}

fn result_without_call(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let block = Block::tool_result(&"nobody".into(), "late", false);
    other(all, draws)?.blocks.insert(0, block);
    Some(())
}

fn call_of_user(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let at = place(all, draws)?;
    let call = Block::tool_use(&"mine".into(), &"Note".into(), "{}");
    (all[at].role == Role::User).then(|| Arc::make_mut(&mut all[at]).blocks.push(call))
}

fn result_of_answer(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let at = place(all, draws)?;
    let result = Block::tool_result(&"t0".into(), "mine", false);
    let blocks = [result, image()];
    (all[at].role == Role::Assistant).then(|| Arc::make_mut(&mut all[at]).blocks.extend(blocks))
}

fn blank_text(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    *block(all, draws, is_text)? = Block::text("");
    Some(())
}

fn odd_text(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let text = draws.one_of(&TEXTS);
    let at = place(all, draws)?;
    Arc::make_mut(&mut all[at]).blocks.push(Block::text(text));
    Some(())
}

fn unsigned_thinking(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let signature = draws.one_of(&[None, Some("")]);
    match block(all, draws, is_thinking) {
        Some(block) => *block = Block::thinking("hm", signature),
        None => other(all, draws)?.blocks.push(Block::thinking("", signature)),
    }
    Some(())
}

fn odd_block(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    // What a provider wrote itself goes back to it as it is; nobody vouches for these.
    let block = Block::from_wire(draws.one_of(&BLOCKS)).ok()?.doubted();
    let at = place(all, draws)?;
    let blocks = &mut Arc::make_mut(&mut all[at]).blocks;
    blocks.insert(draws.below(blocks.len() + 1), block);
    Some(())
}

fn another_role(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let role = draws.one_of(&[Role::User, Role::Assistant, Role::System]);
    let message = other(all, draws)?;
    (message.role != role).then(|| message.role = role)
}

fn lose_the_beginning(all: &mut Messages, draws: &mut Draws) -> Option<()> {
    let n = draws.below(all.len() + 1);
    all.drain(..n);
    (0 < n).then_some(())
}
