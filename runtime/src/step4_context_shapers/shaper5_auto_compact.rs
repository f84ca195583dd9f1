//! Shaper 5: a model call sums up what is old.
//!
//! In two phases, because the call is made by somebody else: [`request`] says what to sum up,
//! [`apply_summary`] puts the answer in its place. The newest messages stay verbatim. A summary
//! that is not shorter than what it represents is not used.

use std::sync::Arc;

use super::{
    ShapedContext, ShaperSetup, StageResult, Trigger, history, pressure::under_pressure,
    shaped::proven_smaller, shaper3_microcompact,
};
use crate::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind, Messages, Role, estimate_of},
    step3_context_assembly::source8_tool_results::escape_harness_tags,
    tokens::{Counting, Tokens},
};

/// The newest messages that stay verbatim, at least.
pub(crate) const MIN_VERBATIM: u32 = 4;
/// Less than this is not worth a model call.
pub(crate) const MIN_TO_SUMMARISE: Tokens = Tokens(200);
/// How often a request that is itself too long is made shorter.
pub(crate) const MAX_SHRINKS: u8 = 3;

/// The beginning of the message that holds a summary.
pub(crate) const OPENING: &str =
    "The earlier part of this conversation no longer fits and is summed up here.\n\n";

const INSTRUCTION: &str = "\
The conversation above is about to be replaced by a summary that you write now. Whoever continues \
will see only that summary and the newest messages. Write down, in this order and only as far as \
it applies:
1. what was asked for, and the latest request word for word;
2. what was decided, and why;
3. files that were read or changed, with their paths and what matters in them;
4. commands that were run and what came of them; errors and how they were removed;
5. what was tried and did not work;
6. what is done, what is open, and the very next step.
Keep names, paths, numbers and quoted messages exact. Do not call tools. Answer with the summary \
alone.";

/// What to sum up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// To be sent as they are: the old messages and, last, what is asked of the model.
    pub messages: Messages,
    /// First and last message that stay verbatim, for the boundary record.
    pub preserved: Option<(EntryId, EntryId)>,
    /// The estimate for the whole context before, for the boundary record.
    pub pre_tokens: Tokens,
    /// How many messages of the context the summary represents.
    n_replaced: usize,
    /// How many of them are left out of the request.
    n_left_out: usize,
    n_shrinks: u8,
    counting: Counting,
    /// Somebody asked for it: the summary counts, however long it is.
    is_asked: bool,
}

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    if setup.asked.is_some() {
        return old_part(context, setup).map(|_| ()).ok_or("there is nothing to sum up");
    }
    if !setup.settings.auto_compact {
        return Err("auto_compact is off");
    }
    let pauses = match under_pressure(context, setup) {
        None => return Err("no pressure"),
        Some(Trigger::Messages | Trigger::Cost) => true,
        // A remedy for a request that was refused does not wait, and nothing did in earlier revisions.
        Some(Trigger::Tokens) => {
            let fits = !setup.pauses_where_it_fits || context.tokens <= setup.context_budget;
            setup.trigger_override.is_none() && setup.fixed != Tokens(0) && fits
        }
    };
    if pauses && context.messages.len() < setup.summary_pause {
        return Err("the last summary did not help, and little was said since");
    }
    old_part(context, setup).map(|_| ()).ok_or("too little is old enough to sum up")
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    match request(context, setup, setup.asked.as_deref().filter(|it| !it.trim().is_empty())) {
        Some(request) => StageResult::NeedsSummary(Box::new(request)),
        None => StageResult::Unchanged { why: "too little is old enough to sum up".into() },
    }
}

/// Makes a request for a summary whether or not there is pressure, for compaction that was asked for or that a
/// provider's refusal demands. `focus` is what the asker wants kept. `None` when too little is old enough.
pub(crate) fn request(
    context: &ShapedContext,
    setup: &ShaperSetup,
    focus: Option<&str>,
) -> Option<SummaryRequest> {
    let n_replaced = old_part(context, setup)?;
    let (old, newest) = context.messages.split_at(n_replaced);
    let text = match focus {
        Some(focus) => format!("{INSTRUCTION}\n\nPay special attention to: {focus}"),
        None => INSTRUCTION.into(),
    };
    let mut messages = old.to_vec();
    messages.push(meta("compaction-instruction", &text));
    let preserved = newest.first().zip(newest.last());
    Some(SummaryRequest {
        messages,
        preserved: preserved.map(|(first, last)| (first.id.clone(), last.id.clone())),
        pre_tokens: context.tokens,
        n_replaced,
        n_left_out: 0,
        n_shrinks: 0,
        counting: setup.counting,
        is_asked: setup.asked.is_some(),
    })
}

/// Puts a summary in the place of what it represents. `id` names the summary's line. The context
/// must be the one that the request was made from. Where what it leaves is still above the limit,
/// old results in there are cleared at once: the next shaping would do it, and change the prefix
/// of the request a second time.
pub(crate) fn apply_summary(
    context: &ShapedContext,
    setup: &ShaperSetup,
    request: &SummaryRequest,
    summary: &str,
    id: EntryId,
) -> StageResult {
    let unchanged = |why: &str| StageResult::Unchanged { why: why.into() };
    let preserved = request.preserved.as_ref();
    let is_same = context.messages.get(request.n_replaced).map(|it| &it.id)
        == preserved.map(|(first, _)| first)
        && context.messages.last().map(|it| &it.id) == preserved.map(|(_, last)| last);
    if !is_same {
        return unchanged("the context is not the one that was summed up");
    }
    // It may repeat what a tool wrote, and is where a person speaks.
    let summary = escape_harness_tags(summary.trim());
    if summary.is_empty() {
        return unchanged("the summary is empty");
    }
    let text = Block::text(&format!("{OPENING}{summary}"));
    let summary = Arc::new(Message::user(id, MessageKind::CompactSummary, vec![text]));
    let (old, newest) = context.messages.split_at(request.n_replaced);
    let counting = request.counting;
    let is_shorter = counting.tokens(summary.estimate()) < counting.tokens(estimate_of(old));
    if !is_shorter && !request.is_asked {
        return unchanged("the summary is not shorter than what it stands for");
    }
    let messages: Messages = std::iter::once(summary).chain(newest.iter().cloned()).collect();
    let (after, stored) = shaper3_microcompact::relieved(context.with(messages, counting), setup);
    let freed = context.tokens.saturating_sub(after.tokens);
    let also = shaper3_microcompact::also_cleared(stored.len());
    let why = format!("summed up {} messages, freed {} tokens{also}", old.len(), freed.0);
    let changed = StageResult::Changed { context: after, stored, why };
    if request.is_asked { changed } else { proven_smaller(context, changed) }
}

/// Shrinks a request that was itself too long: the older half of what it held is left out, and a note takes its place.
/// `None` after three times, and when nothing is left to leave out.
pub(crate) fn shrink(request: &SummaryRequest) -> Option<SummaryRequest> {
    if MAX_SHRINKS <= request.n_shrinks {
        return None;
    }
    let (instruction, rest) = request.messages.split_last()?;
    let old = if request.n_left_out == 0 { rest } else { rest.get(1..)? };
    let safe = history::safe_cuts(old);
    let counting = request.counting;
    let half = counting.tokens(estimate_of(old)).0 / 2;
    let mut dropped = 0;
    let mut cut = None;
    for at in 1..old.len() {
        dropped += counting.tokens(old[at - 1].estimate()).0;
        let is_place = old[at].role == Role::Assistant || history::starts_run(&old[at]);
        if safe[at] && is_place {
            cut = Some(at);
            if half <= dropped {
                break;
            }
        }
    }
    let cut = cut?;
    let n_left_out = request.n_left_out + cut;
    let note = format!("(The {n_left_out} oldest messages of the conversation are left out here.)");
    let mut messages = vec![meta("compaction-note", &note)];
    messages.extend_from_slice(&old[cut..]);
    messages.push(Arc::clone(instruction));
    Some(SummaryRequest {
        messages,
        n_left_out,
        n_shrinks: request.n_shrinks + 1,
        ..request.clone()
    })
}

/// How many messages a summary would represent; `None` when it is not worth it.
fn old_part(context: &ShapedContext, setup: &ShaperSetup) -> Option<usize> {
    if setup.asked.is_some() {
        // All that is in front of the prompt that asks for it.
        let is_prompt = |it: &Arc<Message>| it.kind == MessageKind::Prompt;
        let at = context.messages.iter().rposition(is_prompt)?;
        let is_said = |it: &Arc<Message>| is_prompt(it) || it.kind == MessageKind::Answer;
        return context.messages[..at].iter().any(is_said).then_some(at);
    }
    let keep = setup.settings.keep_newest.max(MIN_VERBATIM);
    let n_old = history::newest_start(&context.messages, keep);
    let size = |n_old: usize| {
        let is_new = |it: &&Arc<Message>| it.kind != MessageKind::CompactSummary;
        setup.counting.tokens(estimate_of(context.messages[..n_old].iter().filter(is_new)))
    };
    if MIN_TO_SUMMARISE <= size(n_old) {
        return Some(n_old);
    }
    // What the provider refuses may lie in few messages: then all goes that is in front of the prompt in work.
    let is_refused = setup.trigger_override.is_some() && setup.fixed != Tokens(0);
    let in_front = history::last_prompt(&context.messages).filter(|_| is_refused)?;
    (Tokens(0) < size(in_front)).then_some(in_front)
}

fn meta(id: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::user(id.into(), MessageKind::Meta, vec![Block::text(text)]))
}
