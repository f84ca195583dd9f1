//! What handlers answer, case by case, for the events that exist.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{
    hook::{MAX_SHOWN_CHARS, MAX_STOP_HOLDS, may_hold, merge, session_title::HOOKS_NAME_SESSIONS},
    run::facts::REVISION,
};

fn exited(code: i32, stdout: &str, stderr: &str) -> HandlerOutput {
    HandlerOutput::new(HandlerEnd::Exited(code), stdout.into(), stderr.into(), 5)
}

fn ended(ended: HandlerEnd) -> HandlerOutput {
    HandlerOutput { ended, ..exited(0, "", "") }
}

fn verdict(event: HookEvent, outputs: &[HandlerOutput]) -> HookVerdict {
    let answers =
        outputs.iter().map(|it| read_answer(event, it, OnFailure::Ignore, false, REVISION));
    merge(event, answers.collect())
}

fn pre(outputs: &[HandlerOutput]) -> HookVerdict {
    verdict(HookEvent::PreToolUse, outputs)
}

fn deny(reason: &str) -> Option<HookDecision> {
    Some(HookDecision::Deny { reason: reason.into() })
}

fn permission(decision: &str) -> HandlerOutput {
    let specific = format!(
        r#"{{"hookEventName":"PreToolUse","permissionDecision":"{decision}","permissionDecisionReason":"r"}}"#
    );
    exited(0, &format!(r#"{{"hookSpecificOutput":{specific}}}"#), "")
}
#[test]
fn exit_one_is_an_error_that_the_user_sees_and_no_decision() {
    let verdict = pre(&[exited(1, "", "first\nsecond")]);
    assert_eq!(verdict.decision, None);
    assert_eq!(verdict.errors, ["a PreToolUse hook failed with exit code 1: first"]);
}
#[test]
fn valid_answer_decides_whatever_the_exit_code() {
    let output = HandlerOutput { ended: HandlerEnd::Exited(1), ..permission("deny") };
    assert_eq!(pre(&[output]).decision, deny("r"));
}
#[test]
fn exit_two_is_not_softened_by_an_allow() {
    let output =
        HandlerOutput { ended: HandlerEnd::Exited(2), stderr: "no".into(), ..permission("allow") };
    assert_eq!(pre(&[output]).decision, deny("no"));
    let output =
        HandlerOutput { ended: HandlerEnd::Exited(2), stderr: "no".into(), ..permission("deny") };
    assert_eq!(pre(&[output]).decision, deny("r"));
}

// REQ: HKS-4
#[test]
fn strictest_decision_wins() {
    assert_eq!(pre(&[permission("allow"), permission("deny")]).decision, deny("r"));
    let ask = Some(HookDecision::Ask { reason: "r".into() });
    assert_eq!(pre(&[permission("allow"), permission("ask")]).decision, ask);
    let deferred = pre(&[permission("defer"), permission("allow")]);
    assert_eq!(deferred.decision, Some(HookDecision::Defer { reason: "r".into() }));
    let deferred = pre(&[permission("ask"), permission("defer")]);
    assert_eq!(deferred.decision, Some(HookDecision::Defer { reason: "r".into() }));
    assert_eq!(pre(&[permission("deny"), permission("defer")]).decision, deny("r"));
    assert_eq!(pre(&[permission("allow"), permission("ask")]).decision, ask);
}

// REQ: HKS-4
#[test]
fn answer_to_a_question_is_read_from_its_fields_alone() {
    let event = HookEvent::PermissionRequest;
    let output_of = |decision: &str| {
        let fields = format!(r#"{{"hookEventName":"PermissionRequest","decision":{decision}}}"#);
        let output = exited(0, &format!(r#"{{"hookSpecificOutput":{fields}}}"#), "");
        verdict(event, &[output])
    };
    let allowed = output_of(r#"{"behavior":"allow","updatedInput":{"a":1}}"#).permission.unwrap();
    assert_eq!((allowed.denies, allowed.input.as_deref()), (None, Some(r#"{"a":1}"#)));
    let denied =
        output_of(r#"{"behavior":"deny","message":"no","interrupt":true}"#).permission.unwrap();
    assert_eq!((denied.denies.as_deref(), denied.interrupts), (Some("no"), true));
    assert_eq!(output_of(r#"{"behavior":"maybe"}"#).permission, None);
    assert_eq!(verdict(event, &[exited(2, "", "no")]).permission, None);
}

// REQ: HKS-4
#[test]
fn plain_text_is_context_at_a_prompt_and_blocks_nothing_that_cannot_be_blocked() {
    let output_of = verdict(HookEvent::UserPromptSubmit, &[exited(0, "ctx\n", "")]);
    assert_eq!(output_of.additional_context, ["ctx"]);
    assert!(verdict(HookEvent::UserPromptSubmit, &[exited(2, "", "no")]).block_reason.is_some());
    for event in HookEvent::ALL.into_iter().filter(|it| !it.can_block()) {
        let output_of = verdict(event, &[exited(2, "", "no")]);
        assert!(output_of.block_reason.is_none() && !output_of.errors.is_empty(), "{event:?}");
    }
}

#[test]
fn plain_text_after_a_call_reaches_nobody() {
    assert_eq!(verdict(HookEvent::PostToolUse, &[exited(0, "ctx", "")]), HookVerdict::default());
}

// REQ: HKS-6
#[test]
fn stop_hook_holds_a_run_eight_times_in_a_row() {
    let blocked = verdict(HookEvent::Stop, &[exited(2, "", "go on")]);
    assert_eq!(blocked.block_reason.as_deref(), Some("go on"));
    assert_eq!((0..20).filter(|&n_held| may_hold(n_held)).count(), 8);
    assert!(!may_hold(MAX_STOP_HOLDS));
}
#[test]
fn new_input_needs_no_decision() {
    let specific = r#"{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}"#;
    let output = exited(0, &format!(r#"{{"hookSpecificOutput":{specific}}}"#), "");
    let verdict = pre(&[output.clone(), output]);
    assert_eq!(verdict.decision, None);
    assert_eq!(verdict.updated_input.as_deref(), Some(r#"{"command":"ls"}"#));
    assert_eq!(verdict.errors.len(), 1, "several inputs are told");
}
#[test]
fn answer_for_no_event_is_an_error() {
    let output = exited(0, r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#, "");
    let verdict = pre(&[output]);
    assert_eq!(verdict.decision, None);
    assert_eq!(verdict.errors.len(), 1);
}
#[test]
fn long_context_becomes_a_preview() {
    let long = "\u{e9}".repeat(12_000);
    let specific = format!(r#"{{"hookEventName":"PostToolUse","additionalContext":"{long}"}}"#);
    let output = exited(0, &format!(r#"{{"hookSpecificOutput":{specific}}}"#), "");
    let mut verdict = verdict(HookEvent::PostToolUse, &[output]);
    let [overlong] = &verdict.overlong.clone()[..] else { panic!("{verdict:?}") };
    assert_eq!(overlong.whole, long);
    assert!(overlong.preview.chars().count() < MAX_SHOWN_CHARS);
    verdict.stored(overlong, "/spill/1.txt");
    assert!(verdict.additional_context[0].ends_with("(all of it: /spill/1.txt)"));
}
#[test]
fn end_of_the_run_beats_every_other_answer() {
    let context =
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}"#;
    let outputs = [exited(0, context, ""), exited(0, r#"{"continue":false,"stopReason":"s"}"#, "")];
    let verdict = verdict(HookEvent::PostToolUse, &outputs);
    assert_eq!(verdict.stop.as_deref(), Some("s"));
    assert_eq!(verdict.additional_context, ["c"]);
}
#[test]
fn block_after_a_call_gives_the_reason_to_the_model() {
    let output = exited(0, r#"{"decision":"block","reason":"x"}"#, "");
    assert_eq!(
        verdict(HookEvent::PostToolUse, std::slice::from_ref(&output)).block_reason.as_deref(),
        Some("x")
    );
    assert_eq!(pre(&[output]).decision, deny("x"));
    let approve = exited(0, r#"{"decision":"approve"}"#, "");
    assert!(matches!(pre(&[approve]).decision, Some(HookDecision::Allow { .. })));
}
#[test]
fn exit_two_blocks_though_the_answer_is_not_valid() {
    let output = exited(2, r#"{"hookSpecificOutput":7}"#, "no");
    assert_eq!(pre(&[output]).decision, deny("no"));
}

// REQ: HKS-4
#[test]
fn slow_or_crashed_hook_makes_no_decision_unless_failing_denies() {
    for end in [HandlerEnd::TimedOut, HandlerEnd::Crashed, HandlerEnd::Exited(3)] {
        let output = ended(end);
        assert_eq!(pre(std::slice::from_ref(&output)).decision, None);
        for (on_failure, fail_closed) in [(OnFailure::Block, false), (OnFailure::Ignore, true)] {
            let answer =
                read_answer(HookEvent::PreToolUse, &output, on_failure, fail_closed, REVISION);
            assert_eq!(answer.effect(), "deny");
        }
    }
}

// REQ: HKS-4
#[test]
fn hook_that_the_harness_cannot_run_denies_a_call_and_is_noted_elsewhere() {
    let refused = ended(HandlerEnd::Refused);
    assert_eq!(
        pre(std::slice::from_ref(&refused)).decision,
        deny("a PreToolUse hook could not be run")
    );
    for event in [HookEvent::PostToolUse, HookEvent::PreCompact, HookEvent::Stop] {
        let verdict = verdict(event, std::slice::from_ref(&refused));
        assert_eq!((verdict.block_reason, verdict.errors.len()), (None, 1));
    }
}

// REQ: HKS-5
#[test]
fn effect_is_a_word_for_the_trace() {
    for (output, effect) in [
        (permission("allow"), "allow"),
        (permission("ask"), "ask"),
        (exited(2, "", "no"), "deny"),
        (exited(0, "", ""), "none"),
        (exited(9, "", ""), "error"),
        (exited(0, r#"{"continue":false}"#, ""), "stop"),
    ] {
        let answer =
            read_answer(HookEvent::PreToolUse, &output, OnFailure::Ignore, false, REVISION);
        assert_eq!(answer.effect(), effect);
    }
}

// REQ: HKS-1
#[test]
fn output_that_was_read_before_means_the_same_and_is_not_read_again() {
    for (code, stdout) in [
        (0, r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#),
        (0, r#"{"continue":false,"stopReason":"enough"}"#),
        (0, "{no object"),
        (0, "plain"),
        (2, r#"{"decision":"block","reason":"no"}"#),
        (1, ""),
    ] {
        let output = exited(code, stdout, "said so");
        let before = output.clone().read();
        assert_eq!(pre(std::slice::from_ref(&before)), pre(&[output]), "{stdout}");
        let gone = HandlerOutput { stdout: "nothing".into(), ..before.clone() };
        assert_eq!(pre(&[gone]), pre(&[before]), "{stdout}");
    }
    assert!(exited(0, &" ".repeat(IN_PLACE), "").is_short());
    assert!(!exited(0, &" ".repeat(IN_PLACE + 1), "").is_short());
}

// REQ: HKS-4
#[test]
fn title_counts_at_the_beginning_and_at_prompts_and_another_value_is_an_error() {
    let answer = |event: HookEvent, title: &str, revision| {
        let name = event.name();
        let fields = format!(r#"{{"hookEventName":"{name}","sessionTitle":{title}}}"#);
        let output = exited(0, &format!(r#"{{"hookSpecificOutput":{fields}}}"#), "");
        read_answer(event, &output, OnFailure::Ignore, false, revision)
    };
    for event in [HookEvent::SessionStart, HookEvent::UserPromptSubmit] {
        let named = answer(event, r#"" the\n plan ""#, REVISION);
        assert_eq!(named.verdict.title.as_deref(), Some("the plan"));
        let (other, last) =
            (answer(event, r#""other""#, REVISION), answer(event, "null", REVISION));
        assert_eq!(last.verdict, HookVerdict::default());
        let merged = merge(event, vec![named.clone(), other, last]);
        assert_eq!(merged.title.as_deref(), Some("other"));
        assert_eq!(named.restricting().verdict.title, None);
        assert_eq!(answer(event, "7", REVISION).effect(), "error");
        for title in ["7", r#""t""#] {
            let earlier = answer(event, title, HOOKS_NAME_SESSIONS - 1);
            assert_eq!(earlier.verdict, HookVerdict::default());
        }
    }
    assert_eq!(answer(HookEvent::Stop, "7", REVISION).verdict, HookVerdict::default());
}

// REQ: HKS-4
#[test]
fn first_words_of_the_user_count_at_the_beginning_alone_and_are_bounded() {
    let answer = |event: HookEvent, message: &str, revision| {
        let name = event.name();
        let fields = format!(r#"{{"hookEventName":"{name}","initialUserMessage":{message}}}"#);
        let output = exited(0, &format!(r#"{{"hookSpecificOutput":{fields}}}"#), "");
        read_answer(event, &output, OnFailure::Ignore, false, revision)
    };
    let start = HookEvent::SessionStart;
    let all = [r#""a""#, "null", r#"" \n""#, r#""b""#].map(|it| answer(start, it, REVISION));
    assert_eq!((all[0].effect(), all[2].effect()), ("context", "none"));
    let merged = merge(start, all.to_vec()).initial_message;
    assert_eq!(merged.as_deref(), Some("a\n\nb"));
    assert_eq!(all[0].clone().restricting().verdict.initial_message, None);
    assert_eq!(answer(start, "[]", REVISION).effect(), "error");
    let long = format!(r#""{}""#, "x".repeat(MAX_SHOWN_CHARS + 1));
    assert_eq!(answer(start, &long, REVISION).verdict.overlong.len(), 1);
    let earlier = specific::HOOKS_ADD_MESSAGES - 1;
    for (event, revision) in [(start, earlier), (HookEvent::UserPromptSubmit, REVISION)] {
        assert_eq!(answer(event, r#""a""#, revision).verdict, HookVerdict::default());
    }
}
