//! Shaper 2 (`HISTORY_SNIP`): the oldest history goes.
//!
//! What is dropped lies between the opening of the list (its first prompt or summary) and a place
//! where no call is torn from its result: the beginning of a run or, within the run that is under
//! way, an answer. The prompt of that run stays.

use std::sync::Arc;

use super::{
    ShapedContext, ShaperSetup, StageResult, history,
    pressure::{counted, is_at_aim, under_pressure},
};
use crate::{
    message::{Messages, Role},
    step1_settings_resolution::ShaperSettings,
    tokens::Tokens,
};

/// What would be dropped: `opening..cut` without `pinned`.
struct Plan {
    opening: usize,
    pinned: Option<usize>,
    cut: usize,
}

pub(super) fn trigger(context: &ShapedContext, setup: &ShaperSetup) -> Result<(), &'static str> {
    if !setup.settings.history_snip {
        return Err("HISTORY_SNIP is off");
    }
    if under_pressure(context, setup).is_none() {
        return Err("no pressure");
    }
    plan(context, setup).map(|_| ()).ok_or("no old segment can be dropped")
}

pub(super) fn run(context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    let Some(plan) = plan(context, setup) else {
        return StageResult::Unchanged { why: "no old segment can be dropped".into() };
    };
    let stays = |i: usize| i < plan.opening || plan.cut <= i || Some(i) == plan.pinned;
    let messages: Messages = (0..context.messages.len())
        .filter(|i| stays(*i))
        .map(|i| Arc::clone(&context.messages[i]))
        .collect();
    let n_dropped = context.messages.len() - messages.len();
    let after = context.with(messages, setup.counting);
    let freed = context.tokens.saturating_sub(after.tokens);
    let why = format!("dropped the {n_dropped} oldest messages, {} tokens", freed.0);
    StageResult::Changed { context: after, stored: Vec::new(), why }
}

/// Returns the context without its oldest messages, so that it takes `room` at most, if it can; only what the last
/// answer and its results are made of must stay. Nothing when nothing can go.
pub(super) fn run_for_room(
    context: &ShapedContext,
    setup: &ShaperSetup,
    room: Tokens,
) -> Option<ShapedContext> {
    let settings = ShaperSettings {
        keep_newest: 1,
        history_snip: true,
        max_messages: u32::MAX,
        ..ShaperSettings::clone(&setup.settings)
    };
    let setup = ShaperSetup {
        settings: Arc::new(settings),
        trigger_override: Some(room),
        spent_micro_usd: 0,
        ..setup.clone()
    };
    plan(context, &setup)?;
    match run(context, &setup) {
        StageResult::Changed { context, .. } => Some(context),
        StageResult::Unchanged { .. } | StageResult::NeedsSummary(_) => None,
    }
}

/// The smallest cut that is enough, else the largest there is.
fn plan(context: &ShapedContext, setup: &ShaperSetup) -> Option<Plan> {
    let messages = &context.messages;
    let mut newest = history::newest_start(messages, setup.settings.keep_newest);
    let opening = history::opening(messages);
    if newest <= opening {
        return None;
    }
    let safe = history::safe_cuts(messages);
    let last_prompt = history::last_prompt(messages)?;
    let mut pinned = (opening <= last_prompt && last_prompt < newest).then_some(last_prompt);
    if pinned.is_some() && history::has_results(&messages[last_prompt]) {
        // It cannot be without the calls that it answers.
        newest = (0..=last_prompt).rev().find(|i| safe[*i])?;
        pinned = None;
    }
    let is_place = |cut: usize| {
        let is_run = history::starts_run(&messages[cut]) && !history::has_results(&messages[cut]);
        let has_prompt = last_prompt < opening || pinned.is_some_and(|it| it < cut);
        safe[cut] && (is_run || (has_prompt && messages[cut].role == Role::Assistant))
    };
    let mut best = None;
    let (mut n_dropped, mut freed) = (0, Tokens(0));
    let mut n_counted = counted(messages.walk(), setup);
    for cut in opening + 1..=newest {
        if Some(cut - 1) != pinned {
            n_dropped += 1;
            n_counted -= counted(&messages[cut - 1..cut], setup);
            freed = freed + setup.counting.tokens(messages[cut - 1].estimate());
        }
        if n_dropped == 0 || !is_place(cut) {
            continue;
        }
        best = Some(Plan { opening, pinned, cut });
        let (tokens, n_left) = (context.tokens.saturating_sub(freed), messages.len() - n_dropped);
        if is_at_aim(tokens, n_left, n_counted, setup) {
            break;
        }
    }
    best
}
