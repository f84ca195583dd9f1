//! Step 4: the chain, the two phases of auto_compact, and what later turns go on from.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    play::{Play, play},
    script::{answer, calls, failure, hook, text},
    world::World,
};
use crate::{
    block::Block,
    digest::Digest,
    message::MessageKind,
    step4_context_shapers::Stage,
    step5_model_call::FailureClass,
    tool::ToolOutcome,
    transcript::{
        entry::{Line, RecordKind, TextFolder},
        replay::replay,
        seal::body_of,
    },
    turn::effect::Purpose,
};

fn shapers(more: Value) -> Value {
    json!({ "ennead": { "shapers": more } })
}

/// `(stage, fired)` of the shaper records of a turn.
fn stages(play: &Play, turn: u32) -> Vec<(String, bool)> {
    let stages = |what: &RecordKind| match what {
        RecordKind::Shaper { stage, fired, .. } => vec![(stage.clone(), *fired)],
        RecordKind::ShapersPassed { stages, .. } => {
            stages.iter().map(|it| (it.stage.to_string(), false)).collect()
        }
        _ => Vec::new(),
    };
    play.records().filter(|it| it.turn == turn).flat_map(|it| stages(&it.what)).collect()
}

// REQ: SHP-1, SHP-2
#[test]
fn every_stage_is_logged_in_order_also_when_it_does_not_fire() {
    let play = play(World::new(vec![text("done")]));
    let expected: Vec<_> = Stage::ALL.iter().map(|it| (it.name().to_owned(), false)).collect();
    assert_eq!(stages(&play, 1), expected);
}

fn long_results(settings: Value, n: usize, chars: usize) -> World {
    let answers = (0..n).map(|i| calls(&[&format!("t{i}:Note:{i}")])).collect();
    let mut world = World::with(settings, answers);
    world.outcomes =
        (0..n).map(|i| (format!("t{i}"), ToolOutcome::ok(format!("{i}").repeat(chars)))).collect();
    world
}

// REQ: SHP-3
#[test]
fn what_is_cut_is_kept_and_stays_cut_in_the_same_place() {
    let settings = shapers(json!({ "perResultCapChars": 1000 }));
    let play = play(long_results(settings, 3, 5000));
    let fired = |turn| stages(&play, turn)[0].1;
    assert_eq!([fired(1), fired(2), fired(3), fired(4)], [false, true, true, true]);
    let n_cut = |turn: u32| {
        let why = play.records().find_map(|it| match &it.what {
            RecordKind::Shaper { why, .. } if it.turn == turn => Some(why.clone()),
            _ => None,
        });
        why.unwrap()
    };
    // What an earlier turn cut is not cut again.
    assert_eq!(n_cut(4), "cut 1 tool results to their cap");
    // Marks move on and are not part of what is cached.
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let body = |i: usize| {
        String::from_utf8(play.requests[i].request.body.to_bytes().to_vec())
            .unwrap()
            .replace(mark, "")
    };
    let (earlier, later) = (body(2), body(3));
    let common = earlier.strip_suffix("]}").unwrap();
    assert!(later.starts_with(common), "a later request goes on from the earlier one");
    let _ = TextFolder::ToolResults;
    assert!(play.stored.values().any(|it| it.len() == 5000));
}

fn compacting(
    summaries: Vec<
        Result<crate::step5_model_call::ModelAnswer, crate::step5_model_call::ModelFailure>,
    >,
    more: Value,
) -> Play {
    let mut settings = shapers(json!({ "autoCompactMaxTokens": 3000 }));
    if let Some(hooks) = more.get("hooks") {
        settings["hooks"] = hooks.clone();
    }
    let mut world = long_results(settings, 14, 1500);
    world.summaries = summaries.into();
    play(world)
}

// REQ: SHP-7
#[test]
fn summary_takes_the_place_of_what_is_old() {
    let play = compacting(vec![text("all was well")], json!({}));
    let log = play.log();
    assert!(log.contains("4 summary auto_compact 5"), "{log}");
    let boundary = play.messages().position(|it| it.boundary.is_some()).unwrap();
    let all_messages: Vec<_> = play.messages().collect();
    let summary = all_messages[boundary + 1];
    assert_eq!(summary.message.kind, MessageKind::CompactSummary);
    assert_eq!(summary.parent.as_ref(), Some(&all_messages[boundary].message.id));
    assert_eq!(all_messages[boundary].boundary.as_ref().unwrap().trigger, "auto");
    // The request goes on with the harness's context, the summary and the newest messages.
    let at = play.requests.iter().position(|it| it.purpose == Purpose::Compaction).unwrap();
    let body =
        |i: usize| String::from_utf8(play.requests[i].request.body.to_bytes().to_vec()).unwrap();
    assert!(body(at + 1).contains("all was well") && body(at + 1).contains("branch main"));
    assert!(body(at + 1).len() < body(at - 1).len());
    assert!(!body(at + 1).contains(&"0".repeat(1500)));
    assert_eq!(play.conversation.history.iter().next().unwrap().kind, MessageKind::CompactSummary);
}

// REQ: SHP-7
#[test]
fn loading_the_transcript_gives_the_same_history() {
    for play in [
        compacting(vec![text("all was well")], json!({})),
        super::play::play(World::new(vec![calls(&["a:Note:x", "b:Nope:x"])])),
    ] {
        let loaded =
            crate::transcript::load::load(&play.bytes(), crate::transcript::load::LoadAs::Session);
        assert_eq!(loaded.report, []);
        let ids = |it: &crate::message::Messages| {
            it.iter().map(|it| format!("{:?} {}", it.kind, it.id)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&loaded.recorded), ids(&play.conversation.history.to_messages()));
        assert_eq!(loaded.recorded, play.conversation.history.to_messages());
        assert_eq!(loaded.last, play.conversation.last_entry);
    }
}

// REQ: SHP-7
#[test]
fn request_for_a_summary_that_is_too_long_is_made_shorter() {
    let too_long = || failure(FailureClass::ContextOverflow);
    let play = compacting(vec![too_long(), text("all was well")], json!({}));
    let asked: Vec<_> =
        play.requests.iter().filter(|it| it.purpose == Purpose::Compaction).collect();
    assert!(asked[1].request.body.len() < asked[0].request.body.len());
    assert_eq!(asked[1].attempt, asked[0].attempt + 1);
    assert!(play.log().contains("summary auto_compact"));
}

// REQ: SHP-7, SHP-13
#[test]
fn without_a_summary_the_context_stays_and_three_times_end_the_run() {
    let cut = || answer("max_tokens", vec![Block::text("half a sum")]);
    for failed in [failure(FailureClass::Overloaded), text(""), cut(), answer("refusal", vec![])] {
        // More than a summary is asked again for, in three turns.
        let play = compacting(vec![failed; 40], json!({}));
        let log = play.log();
        assert!(!log.contains("summary") && !log.contains("auto_compact"), "{log}");
        assert!(log.ends_with("prompt_too_long"), "{log}");
        let evidence = play.ends[0].1.clone().unwrap();
        assert!(evidence.contains("3 compactions in a row"), "{evidence}");
    }
}

// REQ: SHP-7, HKS-1
#[test]
fn pre_compact_hook_blocks_the_compaction() {
    let play = compacting(vec![text("sum")], hook("PreCompact", "", &["2 not now"]));
    assert!(!play.log().contains("summary"), "{}", play.log());
    let why = play.records().find_map(|it| match &it.what {
        RecordKind::Shaper { stage, why, .. }
            if stage == "auto_compact" && why.contains("hook") =>
        {
            Some(why.clone())
        }
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("a PreCompact hook blocked it: not now"));
    let play = compacting(vec![text("sum")], hook("PreCompact", "", &["0"]));
    assert!(play.log().contains("hook:PreCompact summary auto_compact"), "{}", play.log());
}

// REQ: RUN-2
#[test]
fn crashed_stage_leaves_the_context_and_the_next_runs() {
    let mut world = long_results(shapers(json!({ "perResultCapChars": 1000 })), 2, 5000);
    world.crashes = vec![Stage::BudgetReduction];
    let play = play(world);
    assert_eq!(stages(&play, 2).len(), 5);
    assert!(stages(&play, 2).iter().all(|it| !it.1));
    assert!(play.lines.iter().any(|it| matches!(it, Line::Harness(record) if matches!(
        &record.what, RecordKind::Shaper { why, .. } if why == "the stage crashed"))));
}

// REQ: CTX-8
#[test]
fn reported_sizes_are_about_what_was_sent() {
    let mut world = long_results(shapers(json!({ "perResultCapChars": 1000 })), 4, 50_000);
    for answer in world.answers.iter_mut().flatten() {
        answer.usage.input_tokens = 100;
    }
    let play = play(world);
    let tokens = |turn: u32| {
        let found = play.records().find_map(|it| match &it.what {
            RecordKind::TurnStep {
                detail: crate::transcript::entry::StepDetail::Context { tokens, .. },
                ..
            } if it.turn == turn => Some(tokens.0),
            _ => None,
        });
        found.unwrap()
    };
    // A report of 107 tokens, the answer, and 16,667 for the new result that is not yet cut: three digits a
    // token.
    for turn in 3..=5 {
        assert!((16_667..17_200).contains(&tokens(turn)), "{}", tokens(turn));
    }
}

// REQ: SHP-5
#[test]
fn setting_without_effect_is_told_and_changes_no_line() {
    let lines = |settings: Value| {
        let play = play(World::with(settings, vec![text("done")]));
        let records =
            play.records().filter(|it| matches!(it.what, RecordKind::ShapersPassed { .. }));
        (records.map(|it| it.what.clone()).collect::<Vec<_>>(), play.alerts.join(" "))
    };
    let (without, with_it) = lines(json!({}));
    assert!(!with_it.contains("cachedMicrocompact"), "{with_it}");
    let (with, with_it) = lines(shapers(json!({ "cachedMicrocompact": true })));
    assert!(with_it.contains("`ennead.shapers.cachedMicrocompact` has no effect"), "{with_it}");
    assert_eq!(with, without);
}

// REQ: SHP-5, SES-4
#[test]
fn idle_time_cost_and_failed_calls_of_a_session_go_on_after_a_resume() {
    let settings = shapers(json!({ "perResultCapChars": 90_000 }));
    let mut world = long_results(settings, 6, 4_000);
    world.answers.insert(2, failure(FailureClass::Overloaded));
    let mut play = play(world);
    assert_eq!(play.conversation.memory.retries, 1);
    let (spent, answered) =
        (play.conversation.memory.spent, play.conversation.memory.last_answer_at);
    play.reopen();
    let memory = &play.conversation.memory;
    assert_eq!((memory.retries, memory.spent, memory.last_answer_at), (1, spent, answered));
    // The cache of the provider is cold by now, although the session is new to this process.
    play.now += 61 * 60_000;
    play.run("and then?");
    let cleared = play.records().any(
        |it| matches!(&it.what, RecordKind::Shaper { stage, fired: true, .. } if stage == "microcompact"),
    );
    assert!(cleared, "{}", play.log());
}

/// Short answers in many turns, so that their number alone is pressure, and no summary ever comes.
fn many_small_turns(revision: u32, turns: u32) -> Play {
    let settings = json!({ "ennead": { "shapers": { "maxMessages": 60 }, "maxTurns": 100 } });
    let answers = (0..turns).map(|i| calls(&[&format!("t{i}:Note:{i}")])).chain([text("done")]);
    let mut world = World::with(settings, answers.collect());
    world.summaries = vec![text(""); 40].into();
    let mut facts = crate::run::facts::SessionFacts::clone(&world.facts);
    facts.revision = revision;
    // As tools were declared when the first sessions were recorded.
    for spec in &mut facts.tools {
        Arc::make_mut(spec).output_cap = Some(50_000);
    }
    world.facts = facts.into();
    play(world)
}

// REQ: SHP-13, SES-3
#[test]
fn run_of_the_first_revision_is_walked_again_as_it_was_recorded() {
    let mut play = many_small_turns(1, 60);
    assert_eq!(play.ends[0].0.code(), "prompt_too_long");
    // What the rules of that time wrote, up to the end of the run, whose usage they did not add up; lines were sealed
    // otherwise then, and each record had its own.
    play.take_apart();
    let written = String::from_utf8(play.bytes()).unwrap();
    let written = written.replace(r#"","v":3,"at":"#, r#"","v":2,"at":"#).into_bytes();
    let mut lines: Vec<&[u8]> = written.split_inclusive(|it| *it == b'\n').collect();
    assert!(lines.pop().unwrap().starts_with(br#"{"type":"ennead","kind":"run_end""#));
    let bodies: Vec<&[u8]> = lines.iter().map(|it| body_of(it.trim_ascii_end()).unwrap()).collect();
    assert_eq!(Digest::of_parts(&bodies).to_string(), "de59cb2856a596dfd498fcdc7ac88feb");
    let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
    assert!(replayed.is_ok(), "{replayed:?}");
}

// REQ: SHP-5, SHP-2
#[test]
fn what_a_file_said_before_it_was_read_again_goes_before_a_summary_is_paid_for() {
    let settings = shapers(json!({ "autoCompactMaxTokens": 6_000 }));
    let mut answers: Vec<_> = (0..8).map(|i| calls(&[&format!("r{i}:Read:/w/a.rs")])).collect();
    answers.push(text("done"));
    let mut world = World::with(settings, answers);
    world.outcomes = (0..8)
        .map(|i| (format!("r{i}"), ToolOutcome::ok(format!("reading {i} ") + &"word ".repeat(800))))
        .collect();
    let play = play(world);
    assert!(play.requests.iter().all(|it| it.purpose == Purpose::Turn), "{}", play.log());
    let body =
        String::from_utf8(play.requests.last().unwrap().request.body.to_bytes().to_vec()).unwrap();
    assert!(!body.contains("reading 0 ") && body.contains("reading 7 "), "{body}");
    // Where the whole is can be read: it was kept, and the model is told where.
    let digest = Digest::of(format!("reading 0 {}", "word ".repeat(800)).as_bytes());
    assert!(body.contains(&format!("/t/s/tool-results/{digest}.txt")), "{body}");
    assert!(play.stored.contains_key(&digest));
    let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
    assert!(replayed.is_ok(), "{replayed:?}");
}

// REQ: SHP-13
#[test]
fn number_of_messages_alone_ends_no_run_and_its_summaries_wait() {
    let play = many_small_turns(crate::run::facts::REVISION, 96);
    assert_eq!(play.ends[0].0.code(), "no_pending_tools", "{}", play.log());
    // Each next try is at half as many messages again.
    let tries = play.records().filter(
        |it| matches!(&it.what, RecordKind::Shaper { stage, .. } if stage == "auto_compact"),
    );
    let turns: Vec<_> = tries.map(|it| it.turn).collect();
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert!(turns[0] + 10 < turns[1], "{turns:?}");
    let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
    assert!(replayed.is_ok(), "{replayed:?}");
}

// REQ: SES-4, MDL-6
#[test]
fn model_call_that_a_kill_cut_off_counts_after_the_resume() {
    let answers = || vec![calls(&["t:Note:x"]), text("done")];
    let (mut n_cut_off, mut kill_at) = (0, 0);
    loop {
        kill_at += 1;
        let mut world = World::new(answers());
        world.kill_at = Some(kill_at);
        let mut play = play(world);
        if play.ends[0].0.code() != "crashed" {
            break;
        }
        let is_attempt = |it: &&crate::transcript::entry::Record| {
            matches!(it.what, RecordKind::ModelAttempt { .. })
        };
        let under_way = play.requests.len() - play.records().filter(is_attempt).count();
        play.reopen();
        let retries = play.conversation.memory.retries as usize;
        // Right before a call its request is on record already.
        assert!(under_way <= retries && retries <= 1, "{kill_at}: {under_way}, {retries}");
        n_cut_off += under_way;
        play.world.kill_at = None;
        play.run("go on");
        let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
        assert!(replayed.is_ok(), "{kill_at}: {replayed:?}");
    }
    assert!(2 <= n_cut_off, "both calls were cut off at some point");
}
