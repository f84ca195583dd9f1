//! Microcompact: what goes under pressure and while the cache is cold, and what stays.

use std::sync::Arc;

use super::stages::{call, changed, prompt, results, setup};
use crate::{
    block::Block,
    message::{Message, MessageKind, Messages},
    step4_context_shapers::*,
};

/// Ten calls of Bash, each with a result of this many characters.
pub(super) fn ten_calls(chars: usize) -> Messages {
    let mut messages = vec![prompt(0, 40)];
    for i in 0..10 {
        let id = format!("t{i}");
        messages.push(call(2 * i + 1, &id));
        messages.push(results(2 * i + 2, &[(&id, chars)]));
    }
    messages
}

/// Returns the results that microcompact cleared under a limit of 8,000 tokens, by their place among the results;
/// `None` if it did not fire.
fn cleared_by_pressure(chars: usize, change: impl FnOnce(&mut ShaperSetup)) -> Option<Vec<usize>> {
    let mut setup = setup(|it| it.auto_compact_max_tokens = Some(8_000));
    change(&mut setup);
    let before = ShapedContext::estimated(ten_calls(chars));
    match run_stage(Stage::Microcompact, &before, &setup) {
        StageResult::Changed { context, stored, .. } => {
            let is_changed = |at: &usize| context.messages[*at] != before.messages[*at];
            let places: Vec<usize> = (0..before.messages.len()).filter(is_changed).collect();
            assert_eq!(stored.len(), places.len());
            Some(places.into_iter().map(|at| at / 2 - 1).collect())
        }
        _ => None,
    }
}

// REQ: SHP-2, SHP-5
#[test]
fn pressure_clears_the_oldest_results_where_that_spares_a_summary() {
    // 10,000 tokens above a limit of 8,000; at 6,000 the stage stops.
    assert_eq!(cleared_by_pressure(4_000, |_| {}), Some(vec![0, 1, 2, 3, 4]));
    assert_eq!(cleared_by_pressure(3_000, |_| {}), None, "no pressure");
    assert_eq!(cleared_by_pressure(4_000, |it| it.clears = false), None, "an earlier revision");
    let newest =
        |keep: u32| move |it: &mut ShaperSetup| Arc::make_mut(&mut it.settings).keep_newest = keep;
    assert_eq!(cleared_by_pressure(4_000, newest(16)), None, "a summary is due all the same");
    let alone = |it: &mut ShaperSetup| {
        newest(16)(it);
        Arc::make_mut(&mut it.settings).auto_compact = false;
    };
    assert_eq!(cleared_by_pressure(4_000, alone), Some(vec![0, 1]), "no summary is to come");
    let exempt = |it: &mut ShaperSetup| {
        Arc::make_mut(&mut it.settings).exempt_tools = vec!["Bash".into()];
    };
    assert_eq!(cleared_by_pressure(4_000, exempt), None);
}

// REQ: SHP-3, SHP-5
#[test]
fn tool_without_a_cap_is_exempt_from_the_cap_alone() {
    let uncapped = |it: &mut ShaperSetup| it.exempt_tools = Arc::new(["Bash".into()]);
    assert_eq!(cleared_by_pressure(4_000, uncapped), Some(vec![0, 1, 2, 3, 4]));
    let earlier = |it: &mut ShaperSetup| {
        uncapped(it);
        it.clears_uncapped = false;
    };
    assert_eq!(cleared_by_pressure(4_000, earlier), None);
}

// REQ: SHP-3, SHP-5
#[test]
fn picture_of_a_tool_without_a_cap_stays_for_no_text_brings_it_back() {
    let id = "t1".into();
    let picture = Block::media("image", r#"{"type":"image","source":{"type":"file"}"#.to_owned());
    let block = Block::media_result(&id, &"r".repeat(4_000), &[picture], false);
    let mut messages = ten_calls(4_000);
    messages[4] = Arc::new(Message::user("m4".into(), MessageKind::ToolResults, vec![block]));
    let mut setup = setup(|it| it.auto_compact_max_tokens = Some(8_000));
    setup.exempt_tools = Arc::new(["Bash".into()]);
    let before = ShapedContext::estimated(messages);
    let (after, _) = changed(run_stage(Stage::Microcompact, &before, &setup));
    let is_changed = |at: &usize| after.messages[*at] != before.messages[*at];
    assert!(is_changed(&2) && !is_changed(&4) && is_changed(&6));
}

/// The places of the results that are cleared under a limit of 16,000 tokens while the cache is cold for this reason.
fn cleared_cold(cold: Option<ColdCache>, chars: usize) -> Vec<usize> {
    let found = cleared_by_pressure(chars, |it| {
        Arc::make_mut(&mut it.settings).auto_compact_max_tokens = Some(16_000);
        it.cold = cold;
    });
    found.unwrap_or_default()
}

// REQ: SHP-5
#[test]
fn cold_cache_clears_the_oldest_results_down_to_half_of_the_limit() {
    for cold in [ColdCache::Off, ColdCache::Expired, ColdCache::OtherModel] {
        // 10,000 tokens without pressure; at 8,000 the stage stops.
        assert_eq!(cleared_cold(Some(cold), 4_000), [0, 1, 2], "{cold:?}");
        assert!(cleared_cold(Some(cold), 3_000).is_empty(), "{cold:?}: there is room");
    }
    assert!(cleared_cold(None, 4_000).is_empty(), "the cache is warm");
    let mut setup = setup(|it| it.auto_compact_max_tokens = Some(16_000));
    setup.cold = Some(ColdCache::Expired);
    let before = ShapedContext::estimated(ten_calls(4_000));
    let (after, _) = changed(run_stage(Stage::Microcompact, &before, &setup));
    let again = trigger(Stage::Microcompact, &after, &setup);
    assert_eq!(again, Err("the cache is cold, and no old result has to go"));
}

// REQ: SHP-5
#[test]
fn results_whose_ids_come_up_again_are_cleared_oldest_first() {
    let setup = setup(|it| it.auto_compact_max_tokens = Some(8_000));
    let mut messages = ten_calls(4_000);
    for round in 0..10 {
        let id = format!("t{}", round % 2);
        messages[2 * round + 1] = call(2 * round + 1, &id);
        messages[2 * round + 2] = results(2 * round + 2, &[(&id, 4_000)]);
    }
    let before = ShapedContext::estimated(messages);
    let (context, _) = changed(run_stage(Stage::Microcompact, &before, &setup));
    let is_changed = |at: &usize| context.messages[*at] != before.messages[*at];
    let places: Vec<usize> = (0..before.messages.len()).filter(is_changed).collect();
    assert_eq!(places, [2, 4, 6, 8, 10]);
}
