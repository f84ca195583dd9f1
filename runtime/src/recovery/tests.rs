//! Decision tables, one per path, and the bounds that hold whatever fails.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::{
    Remedy::*,
    fallback::{
        BACKOFF_BASE_MS, BACKOFF_CAP_MS, MAX_RETRIES, MAX_RETRY_AFTER_MS, WHOLE_MAX_TOKENS,
    },
    path1_output_escalation::{MAX_ESCALATIONS, MAX_REDUCTIONS, REDUCTION_FLOOR},
    *,
};
use FailureClass::*;

const SITUATION: Situation = Situation {
    max_tokens: 8_000,
    model_max_tokens: 64_000,
    streamed: true,
    n_models: 1,
    // Half of each step: the shortest wait.
    jitter_draw: 0,
};

fn failure(class: FailureClass, retry_after_ms: Option<u64>) -> ModelFailure {
    let (message, partial_text) = (String::new(), String::new());
    ModelFailure { class, status: None, message, retry_after_ms, partial_text }
}

fn retry(delay_ms: u64) -> Remedy {
    RetryAfter { delay_ms, streamed: true, max_tokens: 8_000 }
}

/// Feeds failures to a ledger; ceilings and the way of asking follow what it decides.
#[track_caller]
fn check_in(situation: Situation, failures: &[(FailureClass, Option<u64>)], expected: &[Remedy]) {
    let mut ledger = Ledger::new();
    let mut situation = situation;
    let mut remedies = Vec::new();
    for (class, retry_after_ms) in failures {
        let remedy = ledger.decide(&failure(*class, *retry_after_ms), &situation);
        match remedy {
            EscalateOutput { max_tokens } | ReduceOutput { max_tokens } => {
                situation.max_tokens = max_tokens;
            }
            RetryAfter { streamed, max_tokens, .. } => {
                (situation.streamed, situation.max_tokens) = (streamed, max_tokens);
            }
            CollapseContext | CompactReactively | SwitchModel { .. } | Surface => {}
        }
        remedies.push(remedy);
    }
    assert_eq!(remedies, expected);
}

#[track_caller]
fn check(failures: &[FailureClass], expected: &[Remedy]) {
    let failures: Vec<_> = failures.iter().map(|it| (*it, None)).collect();
    check_in(SITUATION, &failures, expected);
}

#[track_caller]
fn check_chain(failures: &[FailureClass], expected: &[Remedy]) {
    let failures: Vec<_> = failures.iter().map(|it| (*it, None)).collect();
    check_in(Situation { n_models: 2, ..SITUATION }, &failures, expected);
}

// REQ: MDL-4
#[test]
fn cut_answer_is_asked_for_with_twice_the_ceiling_three_times() {
    check(
        &[MaxOutput; 4],
        &[
            EscalateOutput { max_tokens: 16_000 },
            EscalateOutput { max_tokens: 32_000 },
            EscalateOutput { max_tokens: 64_000 },
            Surface,
        ],
    );
    let most = Situation { model_max_tokens: u32::MAX, ..SITUATION };
    check_in(
        most,
        &[(MaxOutput, None); 4],
        &[
            EscalateOutput { max_tokens: 16_000 },
            EscalateOutput { max_tokens: 32_000 },
            EscalateOutput { max_tokens: 64_000 },
            Surface,
        ],
    );
}

// REQ: MDL-4
#[test]
fn ceiling_never_passes_what_the_model_takes() {
    let small = Situation { model_max_tokens: 10_000, ..SITUATION };
    check_in(small, &[(MaxOutput, None); 2], &[EscalateOutput { max_tokens: 10_000 }, Surface]);
    check_in(Situation { model_max_tokens: 8_000, ..SITUATION }, &[(MaxOutput, None)], &[Surface]);
}

// REQ: MDL-5
#[test]
fn prompt_too_long_collapses_then_compacts_then_ends() {
    check(&[ContextOverflow; 3], &[CollapseContext, CompactReactively, Surface]);
}

// REQ: MDL-5
#[test]
fn the_end_of_the_overflow_chain_is_final() {
    check_chain(
        &[
            ContextOverflow,
            Network,
            ContextOverflow,
            ContextOverflow,
            Network,
            RateLimit,
            MaxOutput,
        ],
        &[CollapseContext, retry(250), CompactReactively, Surface, Surface, Surface, Surface],
    );
}

// REQ: MDL-6
#[test]
fn waits_double_up_to_the_cap_and_end_after_ten() {
    check(
        &[Network; 11],
        &[
            retry(250),
            retry(500),
            retry(1_000),
            retry(2_000),
            retry(4_000),
            retry(8_000),
            retry(16_000),
            retry(16_000),
            retry(16_000),
            retry(16_000),
            Surface,
        ],
    );
}

// REQ: MDL-6
#[test]
fn what_the_provider_asks_for_is_waited_and_a_quota_is_not() {
    // T9.7
    check_in(SITUATION, &[(RateLimit, Some(3_000))], &[retry(3_000)]);
    check_in(SITUATION, &[(RateLimit, Some(MAX_RETRY_AFTER_MS))], &[retry(MAX_RETRY_AFTER_MS)]);
    check_in(SITUATION, &[(RateLimit, Some(MAX_RETRY_AFTER_MS + 1))], &[Surface]);
    let chain = Situation { n_models: 2, ..SITUATION };
    check_in(chain, &[(RateLimit, Some(u64::MAX))], &[SwitchModel { index: 1 }]);
}

// REQ: MDL-7
#[test]
fn broken_stream_is_asked_for_in_one_piece_with_a_ceiling_that_fits() {
    let whole = |delay_ms| RetryAfter { delay_ms, streamed: false, max_tokens: 8_000 };
    check(&[StreamBroken, StreamBroken], &[whole(250), whole(500)]);
    check(&[StreamBroken, Network], &[whole(250), whole(500)]);
    check_in(
        Situation { max_tokens: 64_000, ..SITUATION },
        &[(StreamBroken, None)],
        &[RetryAfter { delay_ms: 250, streamed: false, max_tokens: WHOLE_MAX_TOKENS }],
    );
}

// REQ: MDL-9
#[test]
fn output_that_does_not_fit_is_lowered_before_anything_is_compacted() {
    check(
        &[OutputOverflow; 5],
        &[
            ReduceOutput { max_tokens: 5_600 },
            ReduceOutput { max_tokens: 3_920 },
            CollapseContext,
            CompactReactively,
            Surface,
        ],
    );
    let at_floor = Situation { max_tokens: REDUCTION_FLOOR, ..SITUATION };
    check_in(at_floor, &[(OutputOverflow, None)], &[CollapseContext]);
    let above = Situation { max_tokens: REDUCTION_FLOOR + 1, ..SITUATION };
    check_in(above, &[(OutputOverflow, None)], &[ReduceOutput { max_tokens: 2_867 }]);
}

// REQ: MDL-9
#[test]
fn a_ceiling_that_did_not_fit_is_not_asked_for_again() {
    check(
        &[OutputOverflow, MaxOutput, MaxOutput],
        &[ReduceOutput { max_tokens: 5_600 }, EscalateOutput { max_tokens: 7_999 }, Surface],
    );
}

// REQ: MDL-10
#[test]
fn third_overload_in_a_row_switches_when_there_is_whom_to_switch_to() {
    // T9.8
    check(&[Overloaded; 3], &[retry(250), retry(500), retry(1_000)]);
    check_chain(
        &[Overloaded, Overloaded, Overloaded, Overloaded],
        &[retry(250), retry(500), SwitchModel { index: 1 }, retry(250)],
    );
    check_chain(
        &[Overloaded, Overloaded, Network, Overloaded, Overloaded, Overloaded],
        &[
            retry(250),
            retry(500),
            retry(1_000),
            retry(2_000),
            retry(4_000),
            SwitchModel { index: 1 },
        ],
    );
}

// REQ: MDL-10
#[test]
fn permanent_failures_are_never_tried_again() {
    for class in [Auth, InvalidRequest, Internal] {
        check_chain(&[class, Network], &[Surface, Surface]);
    }
}

// REQ: MDL-8
#[test]
fn refusal_and_used_up_retries_move_along_the_chain() {
    check_chain(&[Refusal, Refusal], &[SwitchModel { index: 1 }, Surface]);
    let mut ledger = Ledger::new();
    let situation = Situation { n_models: 2, ..SITUATION };
    let remedies: Vec<_> =
        (0..22).map(|_| ledger.decide(&failure(RateLimit, None), &situation)).collect();
    assert_eq!(remedies[10], SwitchModel { index: 1 });
    assert_eq!(remedies[21], Surface);
    assert_eq!((ledger.n_retries(), ledger.model()), (20, 1));
}

fn any_class() -> impl Strategy<Value = FailureClass> {
    prop_oneof![
        Just(RateLimit),
        Just(Overloaded),
        Just(ContextOverflow),
        Just(OutputOverflow),
        Just(MaxOutput),
        Just(Network),
        Just(StreamBroken),
        Just(Refusal),
    ]
}

proptest! {
    // REQ: MDL-4, MDL-5, MDL-6, MDL-10
    #[test]
    fn whatever_fails_a_turn_ends_and_no_count_is_passed(
        failures in proptest::collection::vec(
            (any_class(), proptest::option::of(0u64..5_000), 1u32..2_000_000, any::<u64>()),
            MAX_DECISIONS as usize + 1,
        ),
        streamed in any::<bool>(),
        n_models in 0usize..5,
    ) {
        let mut ledger = Ledger::new();
        let mut remedies = Vec::new();
        for (class, retry_after_ms, max_tokens, jitter_draw) in failures {
            let model_max_tokens = 128_000;
            let situation =
                Situation { max_tokens, model_max_tokens, streamed, n_models, jitter_draw };
            let remedy = ledger.decide(&failure(class, retry_after_ms), &situation);
            match remedy {
                RetryAfter { delay_ms, max_tokens: ceiling, .. } => {
                    let longest = retry_after_ms.unwrap_or(BACKOFF_CAP_MS);
                    let least = retry_after_ms.unwrap_or(BACKOFF_BASE_MS / 2);
                    prop_assert!((least..=longest).contains(&delay_ms));
                    prop_assert!(ceiling <= max_tokens);
                }
                EscalateOutput { max_tokens: ceiling } => {
                    prop_assert!(max_tokens < ceiling && ceiling <= model_max_tokens);
                }
                ReduceOutput { max_tokens: ceiling } => prop_assert!(ceiling < max_tokens),
                SwitchModel { index } => prop_assert!(index < n_models),
                CollapseContext | CompactReactively | Surface => {}
            }
            remedies.push(remedy);
        }
        let count = |is: fn(&Remedy) -> bool| remedies.iter().filter(|it| is(it)).count();
        prop_assert_eq!(remedies.last(), Some(&Surface));
        let n_escalations = count(|it| matches!(it, EscalateOutput { .. }));
        let n_reductions = count(|it| matches!(it, ReduceOutput { .. }));
        prop_assert!(n_escalations <= MAX_ESCALATIONS as usize);
        prop_assert!(n_reductions <= MAX_REDUCTIONS as usize);
        prop_assert!(count(|it| *it == CollapseContext) <= 1);
        prop_assert!(count(|it| *it == CompactReactively) <= 1);
        prop_assert!(ledger.n_retries() <= MAX_RETRIES as usize * n_models.max(1));
        let end = remedies.iter().position(|it| *it == Surface).unwrap();
        prop_assert!(remedies[end..].iter().all(|it| *it == Surface));
    }
}
