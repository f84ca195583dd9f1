//! Random sessions, and the seeds of those that were once refused.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::*;
use crate::turn::tests::random::random;

// REQ: SES-4, HKS-1
#[test]
fn settings_file_whose_changes_are_refused_one_after_the_other_is_walked_again() {
    check(&random(17_225_341_602_228_364_557));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // REQ: SES-4, TRN-13
    #[test]
    fn random_sessions_are_walked_again(seed in any::<u64>()) {
        let play = random(seed);
        let n_lines = play.lines.iter().filter(|it| matches!(it, Line::Harness(it) if it.turn != 0)).count();
        let replayed = check(&play);
        prop_assert!(n_lines as u64 <= replayed.lines);
    }
}

// A run is ended from outside while somebody is asked about a call.
// REQ: SES-4
#[test]
fn call_that_somebody_was_asked_about_is_closed_as_denied() {
    check(&random(10_218_582_659_841_667_776));
}

// What the view leaves out is recorded when a summary is safe, a moment after the summary itself.
// REQ: SES-4
#[test]
fn what_follows_from_a_line_that_is_recorded_bears_its_own_time() {
    check(&random(14_280_717_122_942_991_480));
}

// A process is killed while a hook is asked about changed settings, before the first step of a turn is recorded.
// REQ: SES-4, HKS-1
#[test]
fn turn_that_had_not_come_to_its_first_step_is_ended_by_its_own_number() {
    check(&random(10_869_018_123_665_233_065));
}
