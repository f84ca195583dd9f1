//! Sessions of the turn machine, walked again.

use serde_json::json;

use super::*;
use crate::{
    tool::ToolOutcome,
    transcript::entry::RecordKind,
    turn::tests::{
        play::{Play, play},
        script::{calls, text},
        world::World,
    },
};

/// A session with as many long results as its window does not hold, in prompts of ten turns.
fn long_session(window: u64, n_turns: usize, chars: usize) -> Play {
    session_with(window, n_turns, chars, json!({}))
}

/// The same with results that no stage may cut or clear, so that summaries are all that is left.
fn uncut_session(window: u64, n_turns: usize, chars: usize) -> Play {
    session_with(window, n_turns, chars, json!({ "exemptTools": ["Note"] }))
}

fn session_with(window: u64, n_turns: usize, chars: usize, shapers: serde_json::Value) -> Play {
    let model = json!({ "m": { "window": window, "max_output": 1_000, "default_output": 1_000 } });
    let settings = json!({ "model": "m", "ennead": { "catalogue": { "models": model }, "maxTurns": 1_000, "shapers": shapers } });
    let answers = (0..n_turns).map(|i| calls(&[&format!("t{i}:Note:{i}")]));
    let mut world = World::with(settings, answers.chain([text("done")]).collect());
    let outcome = |i: usize| {
        (format!("t{i}"), ToolOutcome::ok(format!("{i:04} ") + &"fox ".repeat(chars / 4)))
    };
    world.outcomes = (0..n_turns).map(outcome).collect();
    world.keeps_requests = false;
    play(world)
}

fn recorded(play: &Play) -> Recording {
    Recording::read(&play.bytes(), &|digest| play.stored.get(&digest).cloned()).unwrap()
}

/// How often this stage fired in the session.
fn fired(play: &Play, name: &str) -> u64 {
    let is_it = |it: &&crate::transcript::entry::Record| match &it.what {
        RecordKind::Shaper { stage, fired: true, .. } => stage == name,
        _ => false,
    };
    play.records().filter(is_it).count() as u64
}

fn without_each() -> impl Iterator<Item = Option<Stage>> {
    Stage::ALL.into_iter().map(Some).chain([None])
}

// REQ: SHP-11
#[test]
fn walk_with_all_stages_fires_where_the_session_did() {
    let play = long_session(20_000, 60, 6_000);
    let (totals, _) = walk(&recorded(&play), None);
    // The session counts from what its provider reported, the walk from estimates alone.
    let difference = totals.stages[2].fired.abs_diff(fired(&play, "microcompact"));
    assert!(difference <= 1 && totals.summaries == 0, "{difference}: {totals:?}");
    assert!(3 <= totals.stages[2].fired, "{totals:?}");
    let play = uncut_session(20_000, 60, 6_000);
    let (totals, requests) = walk(&recorded(&play), None);
    assert_eq!(requests.len() as u64, totals.requests);
    assert_eq!(totals.requests, 61, "{}", play.log());
    assert!(3 <= totals.summaries, "{totals:?}");
    assert_eq!(totals.stages[4].fired, fired(&play, "auto_compact"));
    assert_eq!(totals.stages[0].fired, fired(&play, "budget_reduction"));
    assert_eq!(totals.overflows, 0);
}

// REQ: SHP-11
#[test]
fn logged_savings_are_the_measured_difference_whichever_stage_is_left_out() {
    for (window, chars) in [(20_000, 6_000), (60_000, 70_000), (200_000, 300)] {
        let recording = recorded(&long_session(window, 40, chars));
        for without in without_each() {
            let (totals, requests) = walk(&recording, without);
            assert!(totals.adds_up(), "{window}, {chars}, {without:?}: {totals:?}");
            assert!(totals.cached.0 <= totals.sent.0 && totals.sent.0 <= totals.conversation.0);
            let of_stage = without.map(|it| totals.stages[place_of(it)]);
            assert_eq!(of_stage.unwrap_or_default(), StageTotals::default(), "{without:?}");
            assert!(requests.iter().all(|it| it.sent.0 <= it.conversation.0));
        }
    }
}

// REQ: SHP-11
#[test]
fn what_the_lines_log_is_compared_with_what_the_recorded_requests_are_smaller_by() {
    let play = long_session(20_000, 60, 6_000);
    let logged = recorded(&play).logged().clone();
    assert_eq!(logged.requests, 61);
    assert_eq!(logged.stages[2].fired, fired(&play, "microcompact"));
    assert!(logged.stages[2].saved_once.0 <= logged.stages[2].saved.0);
    // The session counts from what was reported and by what it learned of that, so that there is a gap, and a small one.
    assert!(logged.gap().unsigned_abs() * 10 < u128::from(logged.conversation.0), "{logged:?}");
    // The same session, with a line that claims 1,000 tokens more than were saved.
    let (at, before) = play
        .records()
        .find_map(|it| match &it.what {
            RecordKind::Shaper { fired: true, tokens_before, tokens_after, .. } => {
                Some((tokens_after.0, tokens_before.0))
            }
            _ => None,
        })
        .unwrap();
    let text = String::from_utf8(play.bytes()).unwrap();
    let line = format!(r#""tokens_before":{before},"tokens_after":{at}"#);
    assert_eq!(text.matches(&line).count(), 1, "{line}");
    let other = format!(r#""tokens_before":{},"tokens_after":{at}"#, before + 1_000);
    let text = text.replace(&line, &other);
    let altered = Recording::read(text.as_bytes(), &|digest| play.stored.get(&digest).cloned());
    let altered = altered.unwrap();
    assert_eq!(altered.logged().stages[2].saved_once.0, logged.stages[2].saved_once.0 + 1_000);
    let n_later = (logged.gap() - altered.logged().gap()) / 1_000;
    assert!(1 < n_later && n_later < 61, "each later request counts it again: {n_later}");
    // The walk counts for itself and does not see it.
    assert_eq!(walk(&altered, None), walk(&recorded(&play), None));
    assert!(walk(&altered, None).0.adds_up());
}

// REQ: SHP-11
#[test]
fn what_a_stage_saved_is_sent_or_summed_up_without_it() {
    let recording = recorded(&long_session(60_000, 30, 70_000));
    let (all, _) = walk(&recording, None);
    let (without, _) = walk(&recording, Some(Stage::BudgetReduction));
    assert!(all.stages[0].fired != 0, "{all:?}");
    assert!(
        all.sent.0 < without.sent.0 || all.summaries < without.summaries,
        "{all:?}\n{without:?}"
    );
    let recording = recorded(&uncut_session(20_000, 60, 6_000));
    let (without, _) = walk(&recording, Some(Stage::AutoCompact));
    assert_eq!(without.summaries, 0);
    assert!(without.overflows != 0, "nothing else makes it fit: {without:?}");
}

// REQ: SHP-11
#[test]
fn transcript_without_a_run_or_an_answer_is_no_recording() {
    let none = |_| None;
    assert_eq!(Recording::read(b"", &none).unwrap_err(), NoRecording::NoRun);
    let deep = format!("{}{}", "[".repeat(100_000), "\n{\"type\":");
    assert_eq!(Recording::read(deep.as_bytes(), &none).unwrap_err(), NoRecording::NoRun);
    let play = long_session(20_000, 3, 100);
    let bytes = play.bytes();
    let lines = bytes.split_inclusive(|it| *it == b'\n');
    let is_answer = |it: &&[u8]| String::from_utf8_lossy(it).contains(r#""type":"assistant""#);
    let silent: Vec<u8> = lines.filter(|it| !is_answer(it)).flatten().copied().collect();
    let read = Recording::read(&silent, &|digest| play.stored.get(&digest).cloned());
    assert_eq!(read.unwrap_err(), NoRecording::NoAnswer);
}
