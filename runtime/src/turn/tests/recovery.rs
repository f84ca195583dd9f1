//! Remedies of step 5: what is asked again, how, and when that ends.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    play::{Play, play},
    script::{allowing, answer, call, calls, failure, text},
    world::World,
};
use crate::{
    block::Block,
    run::RunEnd,
    step5_model_call::{
        FailureClass::{
            self, ContextOverflow, Network, OutputOverflow, Overloaded, RateLimit, Refusal,
            StreamBroken,
        },
        wire_format::Provider,
    },
    tool::ToolOutcome,
    transcript::entry::RecordKind,
    turn::effect::Purpose,
};

/// The log of step 5 alone, in the first turn.
#[track_caller]
fn check(
    answers: Vec<
        Result<crate::step5_model_call::ModelAnswer, crate::step5_model_call::ModelFailure>,
    >,
    log: &str,
) -> Play {
    let play = play(World::new(answers));
    let whole = play.log();
    let step = whole.split(" 5 ").nth(1).unwrap_or_default();
    let until = step.find(" 6 ").or_else(|| step.find(" 9")).unwrap_or(step.len());
    assert_eq!(&step[..until], log, "{whole}");
    play
}

/// `(attempt, max_tokens, streamed, cause, outcome)` of all attempts.
fn attempts(play: &Play) -> Vec<(u32, u32, bool, Option<String>, String)> {
    let attempt = |what: &RecordKind| match what {
        RecordKind::ModelAttempt { attempt, max_tokens, streamed, cause, outcome, .. } => {
            Some((*attempt, *max_tokens, *streamed, cause.clone(), outcome.clone()))
        }
        _ => None,
    };
    play.records().filter_map(|it| attempt(&it.what)).collect()
}

// REQ: MDL-4
#[test]
fn cut_answer_is_asked_for_again_with_more_room_and_then_taken_as_it_is() {
    let cut = || answer("max_tokens", vec![Block::text("half"), call("a:Note:x")]);
    let play = check(vec![cut(), text("whole")], "withdrawn max_output_escalation answer");
    let cause = || Some("max_output".to_owned());
    assert_eq!(
        attempts(&play),
        [(1, 32_000, true, None, "ok".into()), (2, 64_000, true, cause(), "ok".into())]
    );
    let play = check(vec![cut(), cut()], "withdrawn max_output_escalation answer mark");
    assert_eq!(play.ends[0].0, RunEnd::Error);
    let answer_message = play.messages().find(|it| it.answer.is_some()).unwrap();
    assert_eq!(
        answer_message.message.blocks,
        [Block::text("half")],
        "an unfinished message runs nothing"
    );
}

// REQ: MDL-7
#[test]
fn broken_stream_is_withdrawn_and_asked_for_in_one_piece() {
    let play = check(
        vec![failure(StreamBroken), text("whole")],
        "withdrawn retry_without_streaming wait answer",
    );
    let cause = Some("stream_broken".into());
    assert_eq!(
        attempts(&play),
        [(1, 32_000, true, None, "stream_broken".into()), (2, 21_333, false, cause, "ok".into())]
    );
}

// REQ: MDL-4, MDL-7
#[test]
fn answer_in_one_piece_that_is_cut_is_asked_for_as_a_stream_again() {
    let cut = answer("max_tokens", vec![Block::text("half")]);
    let play = check(
        vec![failure(StreamBroken), cut, text("whole")],
        "withdrawn retry_without_streaming wait withdrawn max_output_escalation answer",
    );
    let ways: Vec<_> = attempts(&play).into_iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(ways, [(32_000, true), (21_333, false), (42_666, true)]);
}

// REQ: MDL-6, MDL-10
#[test]
fn passing_failures_are_waited_out_ten_times_and_told_of_once() {
    for class in [RateLimit, Network, Overloaded] {
        check(vec![failure(class), text("x")], "withdrawn retry wait answer");
        let ten = "withdrawn retry wait ".repeat(10);
        let play = check(
            vec![failure(class); 11],
            &format!(
                "{}mark withdrawn surface",
                ten.replacen("withdrawn", "W", 9)
                    .replace(" withdrawn", " alert withdrawn")
                    .replace('W', "withdrawn")
            ),
        );
        assert_eq!(play.ends[0].0, RunEnd::Error);
    }
}

// REQ: MDL-10
#[test]
fn what_asking_again_cannot_help_ends_the_turn() {
    use FailureClass::{Auth, Billing, Internal, InvalidRequest};
    for class in [Billing, Auth, InvalidRequest, Internal] {
        check(vec![failure(class)], "mark withdrawn surface");
    }
    check(vec![failure(Refusal)], "mark withdrawn surface");
    let play =
        check(vec![answer("refusal", vec![Block::text("I will not")])], "mark withdrawn surface");
    assert!(play.messages().all(|it| it.answer.is_none()), "what was refused is not kept");
}

// REQ: MDL-9
#[test]
fn ceiling_is_lowered_before_anything_is_compacted() {
    let play = check(vec![failure(OutputOverflow), text("x")], "withdrawn output_reduction answer");
    assert_eq!(attempts(&play)[1].1, 22_400);
}

fn long_history()
-> Vec<Result<crate::step5_model_call::ModelAnswer, crate::step5_model_call::ModelFailure>> {
    (0..8).map(|i| calls(&[&format!("t{i}:Note:{}", "word ".repeat(100 + i))])).collect()
}

/// A run of eight turns, and then one in which the prompt is too long.
fn overflowing(settings: serde_json::Value, n: usize) -> Play {
    let mut answers = long_history();
    answers.extend(vec![failure(ContextOverflow); n]);
    let mut world = World::new(answers);
    let long = |i| (format!("t{i}"), ToolOutcome::ok(format!("{i} words ").repeat(100)));
    world.outcomes = (0..8).map(long).collect();
    world.layers = [vec![allowing(settings)]].into();
    play(world)
}

// REQ: MDL-5
#[test]
fn overflow_collapses_then_compacts_then_ends() {
    let collapse = serde_json::json!({ "ennead": { "shapers": { "CONTEXT_COLLAPSE": true } } });
    for (settings, n, expected, end) in [
        (
            collapse.clone(),
            1,
            "withdrawn context_collapse context_collapse answer",
            RunEnd::NoPendingTools,
        ),
        (
            collapse.clone(),
            2,
            "withdrawn context_collapse context_collapse withdrawn reactive_compaction \
             summary auto_compact answer",
            RunEnd::NoPendingTools,
        ),
        (
            collapse,
            3,
            "withdrawn context_collapse context_collapse withdrawn reactive_compaction \
             summary auto_compact mark withdrawn surface",
            RunEnd::PromptTooLong,
        ),
        // A stage that is switched off frees nothing, so the next remedy is taken at once.
        (
            serde_json::json!({}),
            1,
            "withdrawn context_collapse reactive_compaction summary auto_compact answer",
            RunEnd::NoPendingTools,
        ),
    ] {
        let play = overflowing(settings, n);
        let log = play.log();
        let step = log.rsplit(" 5 ").next().unwrap();
        assert!(step.starts_with(expected), "{n}: {step}");
        assert_eq!(play.ends[0].0, end);
    }
}

// REQ: MDL-5
#[test]
fn reactive_compaction_is_recorded_with_its_cause_and_the_request_gets_smaller() {
    let play = overflowing(serde_json::json!({}), 1);
    let boundary = play.messages().find_map(|it| it.boundary.clone()).unwrap();
    assert_eq!(boundary.trigger, "reactive");
    let sizes: Vec<_> =
        play.requests.iter().rev().take(3).map(|it| it.request.body.len()).collect();
    assert!(sizes[0] < sizes[2], "{sizes:?}");
    assert_eq!(play.requests.iter().rev().nth(1).unwrap().purpose, Purpose::Compaction);
}

// REQ: MDL-10
#[test]
fn paused_answer_is_continued_and_joined() {
    let pause = |text: &str| answer("pause_turn", vec![Block::text(text)]);
    let play = check(vec![pause("one"), pause("two"), text("three")], "answer");
    let answer_message = play.messages().find(|it| it.answer.is_some()).unwrap();
    assert_eq!(answer_message.message.text(), "one\ntwo\nthree");
    let last = String::from_utf8(play.requests[2].request.body.to_bytes().to_vec()).unwrap();
    assert!(last.contains("one") && last.contains("two"));
}

// REQ: MDL-10
#[test]
fn paused_answer_whose_rest_fails_for_good_is_withdrawn() {
    let pause = |text: &str| answer("pause_turn", vec![Block::text(text)]);
    let failures = vec![pause("one"), pause("two"), failure(FailureClass::Auth)];
    let play = check(failures, "mark withdrawn surface withdrawn withdrawn");
    assert!(play.messages().all(|it| it.answer.is_none()));
}

// REQ: MDL-8, MDL-13
#[test]
fn call_says_whether_another_provider_is_left_in_the_chain() {
    for (fallback, expected) in [
        (vec!["second"], vec![false, false]),
        (vec!["other/second"], vec![true, false]),
        (vec!["other/second", "third"], vec![true, true, false]),
    ] {
        let mut answers = vec![failure(Refusal); fallback.len()];
        answers.push(text("x"));
        let mut world = World::with(serde_json::json!({ "fallbackModel": fallback }), answers);
        let other = Provider { name: "other".into(), format: Default::default() };
        std::sync::Arc::make_mut(&mut world.facts).providers.push(other);
        let play = play(world);
        let left: Vec<_> = play.requests.iter().map(|it| it.has_other_provider).collect();
        assert_eq!(left, expected, "{fallback:?}");
    }
}

// REQ: MDL-10
#[test]
fn an_answer_that_is_paused_without_end_is_taken_as_it_is() {
    let pauses = vec![answer("pause_turn", vec![Block::text("more")]); 20];
    let play = check(pauses, "answer");
    assert_eq!(attempts(&play).len(), 11);
}
