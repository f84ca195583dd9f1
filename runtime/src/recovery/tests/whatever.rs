//! Whatever fails, in whatever order: no count is passed, and there is an end.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::{
    super::{
        backoff::{BACKOFF_BASE_MS, BACKOFF_CAP_MS, MAX_RETRIES, MAX_RETRY_AFTER_MS},
        chain::MAX_FALLBACKS,
        path1_output_escalation::{MAX_ESCALATIONS, MAX_FITS, MAX_REDUCTIONS},
        table::*,
    },
    *,
};

fn any_class() -> impl Strategy<Value = FailureClass> {
    let lasting = [Billing, Auth, InvalidRequest, Internal];
    let classes: Vec<_> =
        FailureClass::ALL.into_iter().filter(|it| !lasting.contains(it)).collect();
    proptest::sample::select(classes)
}

/// The least number of decisions that a turn of these situations is over after, whatever fails.
fn bound(n_models: usize, max_retries: u32) -> usize {
    let per_purpose = n_models * max_retries as usize
        + (MAX_ESCALATIONS + MAX_FITS + MAX_REDUCTIONS + MAX_PAUSES + MAX_EMPTY_ANSWERS) as usize;
    2 * per_purpose + 2 + MAX_SHRINKS as usize + n_models - 1
}

#[test]
fn room_of_the_ledger_is_never_what_ends_a_turn() {
    let most = bound(MAX_FALLBACKS + 1, MAX_RETRIES);
    assert_eq!(most, 194);
    assert!(most < MAX_DECISIONS);
}

proptest! {
    // REQ: MDL-4, MDL-5, MDL-6, MDL-10
    #[test]
    fn whatever_fails_a_turn_ends_and_no_count_is_passed(
        failures in proptest::collection::vec(
            (any_class(), proptest::option::of(0u64..2_000_000), 1u32..2_000_000, any::<u64>()),
            MAX_DECISIONS + 1,
        ),
        streams in any::<bool>(),
        streamed in any::<bool>(),
        providers in proptest::collection::vec(0usize..3, 0..5),
        max_retries in 0..=MAX_RETRIES,
    ) {
        let mut ledger = RecoveryLedger::default();
        let mut remedies = Vec::new();
        for (class, retry_after_ms, max_tokens, jitter_draw) in failures {
            let streamed = streams && streamed;
            let fits = |ceiling: u32, streamed: bool| streamed || ceiling <= WHOLE_MAX_TOKENS;
            let max_tokens = if streamed { max_tokens } else { max_tokens.min(WHOLE_MAX_TOKENS) };
            let situation = Situation {
                max_tokens,
                model_max_tokens: 128_000,
                streamed,
                streams,
                providers: &providers,
                max_retries,
                jitter_draw,
                took_ms: jitter_draw % 1_000_000,
                has_begun: jitter_draw % 3 == 0,
                fits: (jitter_draw % 5 == 0).then_some(max_tokens / 2),
                ..SITUATION
            };
            let remedy = ledger.decide(&failure(class, retry_after_ms), &situation);
            match remedy {
                RetryAfter { delay_ms, max_tokens: ceiling, streamed } => {
                    prop_assert!(fits(ceiling, streamed));
                    let names_none = [StreamBroken, BadAnswer, Timeout, Unreachable];
                    let named = (!names_none.contains(&class))
                        .then_some(retry_after_ms)
                        .flatten();
                    prop_assert!(named.is_none_or(|it| it <= MAX_RETRY_AFTER_MS));
                    let spread = |it: u64| (it + it / 10).max(BACKOFF_BASE_MS);
                    let longest = named.map_or(BACKOFF_CAP_MS, spread);
                    let least = named.unwrap_or(BACKOFF_BASE_MS / 2);
                    prop_assert!((least..=longest).contains(&delay_ms));
                    prop_assert!(ceiling <= max_tokens);
                }
                EscalateOutput { max_tokens: ceiling } => {
                    prop_assert!(max_tokens < ceiling && ceiling <= 128_000);
                    prop_assert!(fits(ceiling, streams));
                }
                ReduceOutput { max_tokens: ceiling } => {
                    prop_assert!(ceiling < max_tokens && fits(ceiling, streamed));
                }
                SwitchModel { index } => prop_assert!(index < providers.len()),
                _ => {}
            }
            remedies.push(remedy);
        }
        let count = |is: fn(&Remedy) -> bool| remedies.iter().filter(|it| is(it)).count();
        let n_models = providers.len().max(1);
        let n_escalations = count(|it| matches!(it, EscalateOutput { .. }));
        let n_reductions = count(|it| matches!(it, ReduceOutput { .. }));
        prop_assert!(n_escalations <= MAX_ESCALATIONS as usize);
        prop_assert!(n_reductions <= (MAX_FITS + MAX_REDUCTIONS) as usize);
        prop_assert!(count(|it| *it == CollapseContext) <= 1);
        prop_assert!(count(|it| *it == CompactReactively) <= 1);
        prop_assert!(count(|it| *it == Continue) <= MAX_PAUSES as usize);
        prop_assert!(count(|it| *it == AskAgain) <= MAX_EMPTY_ANSWERS as usize);
        let n_retries = count(|it| matches!(it, RetryAfter { .. }));
        prop_assert!(n_retries <= max_retries as usize * n_models);
        let end = remedies.iter().position(|it| *it == Surface).unwrap();
        prop_assert!(end <= bound(n_models, max_retries));
        prop_assert!(remedies[end..].iter().all(|it| *it == Surface));
    }
}
