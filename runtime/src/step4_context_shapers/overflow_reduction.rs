//! Cuts what the five shapers left where it does not fit the window.
//!
//! What the five shapers never touch gives way here: the newest results and those
//! of exempt tools become references that can be read, oldest first; then old texts do; then the
//! oldest messages go. The prompt that is being worked on stays whole, so a run ends with a refusal
//! only when that prompt alone is too large. Goes down to where pressure begins, so that the next
//! turn has room.

use std::sync::Arc;

use super::{
    ShapedContext, ShaperSetup, StageResult, history, marker,
    pressure::{PRESSURE_PERCENT, percent},
    shaper1_budget_reduction::is_only_text,
    shaper2_snip,
};
use crate::{
    block::{Block, BlockKind},
    digest::Digest,
    message::{Message, MessageKind, Messages, Role, tokens_of},
    tokens::{CHARS_PER_TOKEN, Tokens},
};

/// Characters of a text that are still shown next to its reference, at least.
const SHOWN_CHARS: u64 = 200;

/// Characters from which on a text may be what makes a context too large.
const LARGE_CHARS: u64 = 2_000;

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    if context.tokens <= room(setup) { Err("it fits the window") } else { Ok(()) }
}

/// Returns whether cutting can be the answer to a provider's refusal of the context: a long result or text is left; or
/// the messages would be too large at a token for each character, and the oldest can go.
pub(crate) fn can_shrink(context: &ShapedContext, setup: &ShaperSetup) -> bool {
    let prompt = history::last_prompt(&context.messages);
    let is_large = |(at, message): (usize, &Arc<Message>)| {
        let mut blocks = message.blocks.iter().filter(|it| LARGE_CHARS <= it.chars());
        blocks.any(|it| {
            has_long_result(it, setup)
                || (has_long_text(it, setup) && may_fold(message, at, prompt))
        })
    };
    let most = context.tokens.max(tokens_of(context.messages.walk())).at_most();
    context.messages.iter().enumerate().any(is_large)
        || (setup.context_budget < most
            && shaper2_snip::run_for_room(context, setup, Tokens(0)).is_some())
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let aim = aim(setup);
    let (messages, tokens) = (context.messages.to_vec(), context.tokens);
    let mut work = Work { messages, tokens, stored: Vec::new(), aim, setup };
    work.cut_results();
    let n_results = work.stored.len();
    work.fold_texts();
    let n_texts = work.stored.len() - n_results;
    let mut after = ShapedContext { messages: work.messages.into(), tokens: work.tokens };
    let n_before = after.messages.len();
    if aim < after.tokens
        && let Some(shorter) = shaper2_snip::run_for_room(&after, setup, aim)
    {
        after = shorter;
    }
    let n_dropped = n_before - after.messages.len();
    let why = format!(
        "{} tokens do not fit {}: cut {n_results} results and {n_texts} older texts to references, \
         dropped the {n_dropped} oldest messages; {} tokens are left",
        context.tokens.0,
        room(setup).0,
        after.tokens.0
    );
    StageResult::Changed { context: after, stored: work.stored, why }
}

/// What the context may take.
fn room(setup: &ShaperSetup) -> Tokens {
    setup.trigger_override.unwrap_or(setup.context_budget)
}

/// What is left of it at most.
fn aim(setup: &ShaperSetup) -> Tokens {
    let of_conversation = percent(room(setup).saturating_sub(setup.fixed), PRESSURE_PERCENT);
    percent(room(setup), PRESSURE_PERCENT).max(setup.fixed + of_conversation)
}

struct Work<'a> {
    messages: Messages,
    tokens: Tokens,
    stored: Vec<(Digest, String)>,
    aim: Tokens,
    setup: &'a ShaperSetup,
}

impl Work<'_> {
    fn cut_results(&mut self) {
        for at in 0..self.messages.len() {
            self.cut(at, |block, to_free, setup| {
                let BlockKind::ToolResult { id, text, is_error } = block.kind() else {
                    return None;
                };
                let shown =
                    has_long_result(block, setup).then(|| chars_to_keep(block, to_free, setup))?;
                let cut = marker::cut(text, shown - shown / 3, shown / 3, setup);
                Some((Block::tool_result(id, &cut.text, *is_error), cut.stored))
            });
        }
    }

    fn fold_texts(&mut self) {
        let prompt = history::last_prompt(&self.messages);
        for at in 0..self.messages.len() {
            if !may_fold(&self.messages[at], at, prompt) {
                continue;
            }
            self.cut(at, |block, _, setup| {
                let text = block.as_text().filter(|_| has_long_text(block, setup))?;
                let cut = marker::cut(text, SHOWN_CHARS, 0, setup);
                Some((Block::text(&cut.text), cut.stored))
            });
        }
    }

    /// Cuts blocks of one message while there is too much. The cut is given the characters of the message
    /// that are still to be freed.
    fn cut(
        &mut self,
        at: usize,
        cut: impl Fn(&Block, u64, &ShaperSetup) -> Option<(Block, (Digest, String))>,
    ) {
        let tokens = self.tokens;
        if tokens <= self.aim {
            return;
        }
        let counting = self.setup.counting;
        let (before, too_much) = (self.messages[at].estimate(), tokens.saturating_sub(self.aim));
        let size = self.messages[at].blocks.iter().map(Block::size).sum();
        let mut to_free = counting.chars_of(too_much, size);
        let (setup, stored) = (self.setup, &mut self.stored);
        history::replace_blocks(&mut self.messages, at, |_, block| {
            if to_free == 0 {
                return None;
            }
            let (new, whole) = cut(block, to_free, setup)?;
            to_free = to_free.saturating_sub(block.chars().saturating_sub(new.chars()));
            stored.push(whole);
            Some(new)
        });
        let freed = before.saturating_sub(self.messages[at].estimate());
        self.tokens = tokens.saturating_sub(counting.tokens(freed));
    }
}

/// Characters of a result that may stay, so that what must be freed is, and no more.
fn chars_to_keep(block: &Block, to_free: u64, setup: &ShaperSetup) -> u64 {
    let mark = marker::max_chars(u64::MAX, &setup.reference_prefix);
    // One token more than needed, since sizes are rounded up.
    let gone = to_free.saturating_add(mark).saturating_add(CHARS_PER_TOKEN);
    let left = block.chars().saturating_sub(gone);
    // What is cut once is cut to less than half: else the next turn cuts the same result again.
    left.min(block.chars() / 2).max(SHOWN_CHARS)
}

fn has_long_result(block: &Block, setup: &ShaperSetup) -> bool {
    block.as_tool_result().is_some() && is_long(block, setup) && is_only_text(block)
}

fn has_long_text(block: &Block, setup: &ShaperSetup) -> bool {
    block.as_text().is_some() && is_long(block, setup)
}

fn is_long(block: &Block, setup: &ShaperSetup) -> bool {
    let mark = marker::max_chars(u64::MAX, &setup.reference_prefix);
    marker::is_worth_it(SHOWN_CHARS.saturating_add(mark), block.chars())
}

/// Whether texts of this message may give way: not those of the prompt that is being worked on, of
/// a summary or of the harness.
fn may_fold(message: &Message, at: usize, prompt: Option<usize>) -> bool {
    let is_old = message.role == Role::Assistant || message.kind == MessageKind::Prompt;
    is_old && Some(at) != prompt
}
