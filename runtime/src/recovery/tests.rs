//! Decision tables, one per path, and the bounds that hold whatever fails.
//!
//! Built under `#[cfg(test)]` only.

mod sequences;
mod silence;
mod whatever;

use super::{
    Remedy::*,
    backoff::MAX_RETRY_AFTER_MS,
    path1_output_escalation::{REDUCTION_FLOOR, WHOLE_MAX_TOKENS},
    path2_reactive_compaction::MAX_SHRINKS,
    table::{MAX_BAD_ANSWERS, MAX_EMPTY_ANSWERS, MAX_PAUSES},
    *,
};
use FailureClass::*;

const SITUATION: Situation<'static> = Situation {
    purpose: Purpose::Turn,
    max_tokens: 8_000,
    model_max_tokens: 64_000,
    streamed: true,
    streams: true,
    providers: &[0],
    can_reduce: false,
    max_retries: 10,
    // Half of each step: the shortest wait.
    jitter_draw: 0,
    took_ms: 1,
    has_begun: false,
    fits: None,
};

/// The same with a second model at the same provider.
const CHAIN: Situation<'static> = Situation { providers: &[0, 0], ..SITUATION };

fn failure(class: FailureClass, retry_after_ms: Option<u64>) -> ModelFailure {
    let (message, partial_text) = (String::new(), String::new());
    ModelFailure { class, status: None, message, retry_after_ms, partial_text }
}

fn retry(delay_ms: u64) -> Remedy {
    RetryAfter { delay_ms, streamed: true, max_tokens: 8_000 }
}

/// Feeds failures to a ledger; ceilings and the way of asking follow what it decides.
#[track_caller]
fn check_in(
    situation: Situation<'_>,
    failures: &[(FailureClass, Option<u64>)],
    expected: &[Remedy],
) {
    let mut ledger = RecoveryLedger::default();
    let mut situation = situation;
    let mut remedies = Vec::new();
    for (class, retry_after_ms) in failures {
        let remedy = ledger.decide(&failure(*class, *retry_after_ms), &situation);
        match remedy {
            EscalateOutput { max_tokens } => {
                (situation.streamed, situation.max_tokens) = (situation.streams, max_tokens);
            }
            ReduceOutput { max_tokens } => situation.max_tokens = max_tokens,
            RetryAfter { streamed, max_tokens, .. } => {
                (situation.streamed, situation.max_tokens) = (streamed, max_tokens);
            }
            _ => {}
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
    check_in(CHAIN, &failures, expected);
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

// REQ: MDL-4, MDL-7
#[test]
fn more_than_fits_in_one_piece_is_asked_for_as_a_stream_or_not_at_all() {
    let whole = RetryAfter { delay_ms: 250, streamed: false, max_tokens: WHOLE_MAX_TOKENS };
    let long = Situation { max_tokens: 32_000, ..SITUATION };
    let escalated = EscalateOutput { max_tokens: 2 * WHOLE_MAX_TOKENS };
    let failures = [(StreamBroken, None), (MaxOutput, None), (StreamBroken, None)];
    let again = RetryAfter { delay_ms: 500, streamed: false, max_tokens: WHOLE_MAX_TOKENS };
    check_in(long, &failures, &[whole, escalated, again]);
    let never = Situation { streamed: false, streams: false, max_tokens: 16_000, ..SITUATION };
    let most = EscalateOutput { max_tokens: WHOLE_MAX_TOKENS };
    check_in(never, &[(MaxOutput, None); 2], &[most, Surface]);
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
    check_in(SITUATION, &[(RateLimit, Some(3_000))], &[retry(3_000)]);
    // None comes back at once, and not all at the same moment.
    check_in(SITUATION, &[(RateLimit, Some(0))], &[retry(250)]);
    let late = Situation { jitter_draw: 300, ..SITUATION };
    check_in(late, &[(RateLimit, Some(3_000))], &[retry(3_300)]);
    check_in(SITUATION, &[(RateLimit, Some(MAX_RETRY_AFTER_MS))], &[retry(MAX_RETRY_AFTER_MS)]);
    check_in(SITUATION, &[(RateLimit, Some(MAX_RETRY_AFTER_MS + 1))], &[Surface]);
    check_in(CHAIN, &[(RateLimit, Some(u64::MAX))], &[SwitchModel { index: 1 }]);
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
    // A ceiling that the server names is asked for at once, however low it is.
    let named = Situation { fits: Some(3_000), ..SITUATION };
    check_in(named, &[(OutputOverflow, None)], &[ReduceOutput { max_tokens: 3_000 }]);
    let no_lower = Situation { fits: Some(8_000), ..SITUATION };
    check_in(no_lower, &[(OutputOverflow, None)], &[ReduceOutput { max_tokens: 5_600 }]);
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
    for class in [Billing, Auth, InvalidRequest, Internal] {
        check_chain(&[class, Network], &[Surface, Surface]);
    }
}

// REQ: MDL-8
#[test]
fn refusal_and_used_up_retries_move_along_the_chain() {
    check_chain(&[Refusal, Refusal], &[SwitchModel { index: 1 }, Surface]);
    let mut ledger = RecoveryLedger::default();
    let situation = CHAIN;
    let remedies: Vec<_> =
        (0..22).map(|_| ledger.decide(&failure(RateLimit, None), &situation)).collect();
    assert_eq!(remedies[10], SwitchModel { index: 1 });
    assert_eq!(remedies[21], Surface);
    assert_eq!((ledger.n_retries(Purpose::Turn), ledger.model()), (10, 1));
}

// REQ: MDL-8, MDL-13
#[test]
fn used_up_account_and_broken_server_move_on_to_another_provider_only() {
    check_chain(&[Quota], &[Surface]);
    let three = Situation { providers: &[0, 0, 1], ..SITUATION };
    check_in(three, &[(Quota, None), (Quota, None)], &[SwitchModel { index: 2 }, Surface]);
    check_in(three, &[(Quota, Some(3_000))], &[SwitchModel { index: 2 }]);
}

// REQ: MDL-10
#[test]
fn server_that_answers_with_garbage_is_left_after_three_tries() {
    let whole = |delay_ms| RetryAfter { delay_ms, streamed: false, max_tokens: 8_000 };
    assert_eq!(MAX_BAD_ANSWERS, 2);
    check(&[BadAnswer; 3], &[whole(250), whole(500), Surface]);
    // Other failures in between do not give it more.
    check(
        &[BadAnswer, Network, BadAnswer, BadAnswer],
        &[
            whole(250),
            RetryAfter { delay_ms: 500, streamed: false, max_tokens: 8_000 },
            whole(1_000),
            Surface,
        ],
    );
    check_chain(&[BadAnswer; 3], &[whole(250), whole(500), Surface]);
}

// REQ: MDL-10
#[test]
fn empty_answer_is_asked_for_again_once() {
    assert_eq!(MAX_EMPTY_ANSWERS, 1);
    check_chain(&[EmptyAnswer, EmptyAnswer], &[AskAgain, Surface]);
}

// REQ: MDL-10
#[test]
fn paused_answer_is_continued_ten_times() {
    let expected: Vec<_> =
        vec![Continue; MAX_PAUSES as usize].into_iter().chain([Surface]).collect();
    check(&[PauseTurn; 11], &expected);
}

// REQ: SHP-6, MDL-10
#[test]
fn summary_has_retries_and_chain_and_is_shrunk_three_times_instead_of_compacted() {
    let summary = Situation { purpose: Purpose::Compaction, ..CHAIN };
    let n = MAX_SHRINKS as usize;
    let expected: Vec<_> = vec![ShrinkSummary; n].into_iter().chain([Surface]).collect();
    check_in(summary, &vec![(ContextOverflow, None); n + 1], &expected);
    check_in(
        summary,
        &[(Overloaded, None), (Overloaded, None), (Overloaded, None), (Overloaded, None)],
        &[retry(250), retry(500), SwitchModel { index: 1 }, retry(250)],
    );
}

// REQ: MDL-10
#[test]
fn counts_of_summaries_and_of_answers_are_apart_and_the_model_is_the_same() {
    let summary = Situation { purpose: Purpose::Compaction, ..CHAIN };
    let mut ledger = RecoveryLedger::default();
    for _ in 0..3 {
        ledger.decide(&failure(Overloaded, None), &summary);
    }
    assert_eq!(ledger.model(), 1);
    let mut decide = |class| ledger.decide(&failure(class, None), &CHAIN);
    assert_eq!(decide(Overloaded), retry(250));
    assert_eq!(decide(ContextOverflow), CollapseContext);
    assert_eq!(decide(Auth), Surface);
    // The end of an answer is final; a summary may be asked for again.
    assert_eq!(decide(Network), Surface);
    assert_eq!(ledger.decide(&failure(Network, None), &summary), retry(250));
}

// REQ: MDL-6
#[test]
fn settings_say_how_often_a_model_is_asked_again() {
    let never = Situation { max_retries: 0, ..CHAIN };
    check_in(never, &[(RateLimit, Some(1)), (Network, None)], &[SwitchModel { index: 1 }, Surface]);
    check_in(
        never,
        &[(StreamBroken, None), (BadAnswer, None)],
        &[SwitchModel { index: 1 }, Surface],
    );
}

// REQ: MDL-10
#[test]
fn every_class_has_rows_next_to_each_other_and_the_last_holds_always() {
    let all: Vec<RecoveryRow> = rows().copied().collect();
    let mut left = &all[..];
    for class in FailureClass::ALL {
        let n = left.iter().take_while(|it| it.class == class).count();
        let (rows, rest) = left.split_at(n);
        let last = rows.last().expect("a class without a row");
        assert_eq!((last.when, last.action, last.caps), (&[][..], Action::Surface, &[][..]));
        left = rest;
    }
    assert!(left.is_empty(), "{left:?}");
}

// REQ: MDL-10
#[test]
fn what_is_documented_is_what_is_decided_by() {
    let page = include_str!("../../../docs/recovery.md");
    let shown = page.split("```text\n").nth(1).and_then(|it| it.split("```").next());
    assert_eq!(shown, Some(table::print(backoff::DEFAULT_RETRIES).as_str()));
}
