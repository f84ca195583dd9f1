//! The stop check: the corpus and properties.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{block::Block, ids::EntryId, message::MessageKind, message::Messages};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/stop_check.jsonl");

// REQ: TRN-6
#[test]
fn every_case_gets_the_expected_decision() {
    let cases = std::fs::read_to_string(CASES).unwrap();
    let mut n_cases = 0;
    for line in cases.lines().filter(|it| !it.is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let before = case.clone();
        assert_eq!(conformance::run_case(&case).unwrap(), case["expected"], "{}", case["id"]);
        assert_eq!(case, before);
        n_cases += 1;
    }
    assert!(40 <= n_cases, "only {n_cases} cases in {CASES}");
}

// REQ: TRN-6
#[test]
fn message_of_another_role_does_not_matter() {
    let message =
        |role: &str| serde_json::json!({"role": role, "content": [{"type": "tool_use", "n": 1}]});
    let case = |extra: &[Value]| {
        let mut transcript = vec![
            serde_json::json!({"role": "user", "content": "q"}),
            serde_json::json!({"role": "assistant", "content": "a"}),
        ];
        transcript.extend_from_slice(extra);
        serde_json::json!({"input": {"transcript": transcript, "budget": {"used": 0, "max": null}}})
    };
    let plain = conformance::run_case(&case(&[])).unwrap();
    assert_eq!(plain["reason"], "no_pending_tools");
    for role in ["developer", "progress", ""] {
        assert_eq!(conformance::run_case(&case(&[message(role)])).unwrap(), plain, "{role}");
    }
}

#[test]
fn case_without_a_transcript_is_refused() {
    let case: Value = serde_json::from_str(r#"{"input":{"budget":{"used":1,"max":2}}}"#).unwrap();
    assert!(matches!(conformance::run_case(&case), Err(conformance::BadCase::Missing { .. })));
}

// REQ: TRN-6
#[test]
fn a_result_serves_every_earlier_call_of_its_id() {
    let transcript = vec![
        message(Role::User, vec![Block::text("q")]),
        message(Role::Assistant, vec![call("1")]),
        message(Role::Assistant, vec![call("1")]),
        message(Role::User, vec![Block::tool_result(&"1".into(), "ok", false)]),
        message(Role::Assistant, vec![Block::text("a")]),
    ];
    check(&transcript, None, Some(EndReason::NoPendingTools));
}

// REQ: TRN-6
#[test]
fn an_error_before_a_later_answer_is_overcome() {
    let transcript = vec![
        message(Role::User, vec![Block::text("q")]),
        message(Role::System, vec![Block::error("overloaded")]),
        message(Role::Assistant, vec![Block::text("a")]),
    ];
    check(&transcript, None, Some(EndReason::NoPendingTools));
}

#[test]
fn a_message_of_marks_alone_is_no_prompt() {
    let transcript = vec![
        message(Role::User, vec![Block::text("q")]),
        message(Role::User, vec![Block::stop_request()]),
    ];
    check(&transcript, None, Some(EndReason::ExplicitStop));
}

#[track_caller]
fn check(transcript: &Messages, max: Option<u64>, reason: Option<EndReason>) {
    let decision = check_stop_condition(transcript, RunBudget { used: 1, max });
    assert_eq!(decision, StopDecision { done: reason.is_some(), reason });
}

/// The same by walking back from the end.
fn walked(transcript: &Messages, budget: RunBudget) -> StopDecision {
    let mut last_answer = None;
    let mut has_error = false;
    for message in transcript.iter().rev() {
        if is_prompt(message) {
            break;
        }
        for block in &message.blocks {
            match block.kind() {
                BlockKind::StopRequest => return StopDecision::end(EndReason::ExplicitStop),
                BlockKind::Error(_) => has_error |= last_answer.is_none(),
                _ => {}
            }
        }
        if message.role == Role::Assistant && last_answer.is_none() {
            last_answer = Some(message);
        }
    }
    if has_error {
        return StopDecision::end(EndReason::Error);
    }
    if budget.is_exceeded() {
        return StopDecision::end(EndReason::BudgetExceeded);
    }
    let Some(last_answer) = last_answer else { return StopDecision::GO_ON };
    let mut answered: BTreeSet<&ToolUseId> = BTreeSet::new();
    let mut blocks = transcript.iter().rev().flat_map(|it| it.blocks.iter().rev());
    let has_open_call = blocks.any(|block| match block.kind() {
        BlockKind::ToolResult { id, .. } => {
            answered.insert(id);
            false
        }
        BlockKind::ToolUse { id, .. } => !answered.contains(id),
        _ => false,
    });
    if last_answer.tool_uses().next().is_some() || has_open_call {
        StopDecision::GO_ON
    } else {
        StopDecision::end(EndReason::NoPendingTools)
    }
}

fn message(role: Role, blocks: Vec<Block>) -> Arc<Message> {
    let id = EntryId::from("m");
    Arc::new(Message { id, role, kind: MessageKind::Meta, api_id: None, model: None, blocks })
}

fn call(id: &str) -> Block {
    Block::tool_use(&id.into(), &"Bash".into(), "{}")
}

fn any_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        4 => Just(Block::text("t")),
        4 => (0..4u8).prop_map(|i| call(&i.to_string())),
        6 => (0..4u8).prop_map(|i| Block::tool_result(&i.to_string().into(), "r", false)),
        1 => Just(Block::thinking("hm", None)),
        1 => Just(Block::stop_request()),
        1 => Just(Block::error("e")),
    ]
}

fn any_transcript() -> impl Strategy<Value = Messages> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::System)];
    let message = (role, prop::collection::vec(any_block(), 0..4))
        .prop_map(|(role, blocks)| message(role, blocks));
    prop::collection::vec(message, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    // REQ: TRN-6
    #[test]
    fn message_by_message_it_says_what_a_walk_back_says(
        transcript in any_transcript(), used in 0..4u64, max in prop::option::of(0..4u64),
    ) {
        let budget = RunBudget { used, max };
        let (mut state, mut before) = (StopState::default(), Messages::new());
        for message in transcript {
            state.note(&message);
            before.push(message);
            prop_assert_eq!(state.decision(budget), walked(&before, budget));
        }
    }
}

proptest! {
    // REQ: TRN-6
    #[test]
    fn asked_twice_it_answers_the_same_and_names_a_reason_when_done(
        transcript in any_transcript(), used in 0..4u64, max in prop::option::of(0..4u64),
    ) {
        let budget = RunBudget { used, max };
        let copy = transcript.clone();
        let first = check_stop_condition(&transcript, budget);
        prop_assert_eq!(first, check_stop_condition(&transcript, budget));
        prop_assert_eq!(first.done, first.reason.is_some());
        prop_assert_eq!(transcript, copy);
    }

    // REQ: TRN-6
    #[test]
    fn an_unanswered_call_keeps_the_run_going_unless_something_stronger_ends_it(
        mut transcript in any_transcript(), used in 0..4u64, max in prop::option::of(0..4u64),
        at in any::<prop::sample::Index>(),
    ) {
        let budget = RunBudget { used, max };
        let at = at.index(transcript.len() + 1);
        transcript.insert(at, message(Role::Assistant, vec![call("open")]));
        let reason = check_stop_condition(&transcript, budget).reason;
        prop_assert_ne!(reason, Some(EndReason::NoPendingTools));
    }

    // REQ: TRN-6
    #[test]
    fn over_budget_is_done(transcript in any_transcript(), max in 0..4u64, over in 0..4u64) {
        let budget = RunBudget { used: max + over, max: Some(max) };
        let decision = check_stop_condition(&transcript, budget);
        prop_assert!(decision.done);
        prop_assert_ne!(decision.reason, Some(EndReason::NoPendingTools));
    }
}
