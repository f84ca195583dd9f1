//! Servers that say nothing: not reached, or fallen silent.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

// REQ: MDL-6
#[test]
fn server_that_cannot_be_reached_is_left_within_twenty_seconds() {
    // All of each step: the longest waits.
    let late = Situation { jitter_draw: 16_000, ..SITUATION };
    let mut ledger = RecoveryLedger::default();
    let mut waited = Vec::new();
    while let RetryAfter { delay_ms, .. } = ledger.decide(&failure(Unreachable, None), &late) {
        waited.push(delay_ms);
    }
    assert_eq!(waited.len(), 5);
    assert!(waited.iter().sum::<u64>() <= 15_500, "{waited:?}");
    let six: Vec<_> =
        waited.iter().map(|it| retry(*it)).chain([SwitchModel { index: 1 }]).collect();
    let chain = Situation { providers: &[0, 0], ..late };
    check_in(chain, &[(Unreachable, None); 6], &six);
    assert_eq!(table::most_retries(Unreachable, 10), 5);
    assert_eq!(table::most_retries(Timeout, 1), 1);
    assert_eq!(table::most_retries(RateLimit, 10), 10);
}

// REQ: MDL-6, MDL-12
#[test]
fn silence_is_asked_again_twice_within_fifteen_minutes_of_the_turn() {
    let silent = |took_ms| Situation { took_ms, ..SITUATION };
    let decide =
        |ledger: &mut RecoveryLedger, situation| ledger.decide(&failure(Timeout, None), &situation);
    let mut ledger = RecoveryLedger::default();
    assert_eq!(ledger.patience_ms(), None);
    for left in [600_000, 300_000] {
        assert!(matches!(decide(&mut ledger, silent(300_000)), RetryAfter { streamed: true, .. }));
        assert_eq!(ledger.patience_ms(), Some(left));
    }
    assert_eq!(decide(&mut ledger, silent(300_000)), Surface);
    // Short silences are counted.
    check(&[Timeout; 3], &[retry(250), retry(500), Surface]);
    check_chain(&[Timeout; 3], &[retry(250), retry(500), SwitchModel { index: 1 }]);
    // Long ones use the time up, for every model and for summaries, too.
    let mut ledger = RecoveryLedger::default();
    let summary = Situation { purpose: Purpose::Compaction, ..silent(800_000) };
    assert!(matches!(decide(&mut ledger, summary), RetryAfter { .. }));
    assert_eq!(
        decide(&mut ledger, Situation { took_ms: 100_000, ..CHAIN }),
        SwitchModel { index: 1 }
    );
    assert_eq!(decide(&mut ledger, Situation { took_ms: 1, ..CHAIN }), Surface);
    // What was shown is asked for in one piece.
    let begun = Situation { has_begun: true, ..SITUATION };
    let whole = RetryAfter { delay_ms: 250, streamed: false, max_tokens: 8_000 };
    check_in(begun, &[(Timeout, None)], &[whole]);
}
