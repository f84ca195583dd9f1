//! Every sequence of outcomes of a model call up to length seven.
//!
//! Built under `#[cfg(test)]` only.

use super::{super::path1_output_escalation::MAX_ESCALATIONS, *};

/// What a call may come to: the outcomes of the requirement, in its order.
const OUTCOMES: [Option<FailureClass>; 6] = [
    None,
    Some(MaxOutput),
    Some(ContextOverflow),
    Some(Overloaded),
    // A stream that is cut, and one that stalls.
    Some(StreamBroken),
    Some(Timeout),
];

const LENGTH: usize = 7;

/// A turn so far: what was decided, and how its next call would be made.
#[derive(Clone)]
struct TurnWalk<'a> {
    ledger: RecoveryLedger,
    situation: Situation<'a>,
    n_calls: usize,
}

#[derive(Default)]
struct SequenceCounts {
    sequences: usize,
    ended_well: usize,
    ended_badly: usize,
    most_calls: usize,
}

/// Walks all continuations of a sequence. A turn that has ended is asked no more: sequences after
/// its end are counted, and the ledger must have nothing else to say about them.
fn walk(so_far: &TurnWalk<'_>, length: usize, seen: &mut SequenceCounts) {
    for outcome in OUTCOMES {
        seen.sequences += 1;
        let mut next = so_far.clone();
        next.n_calls += 1;
        let Some(class) = outcome else {
            seen.ended_well += 1;
            seen.most_calls = seen.most_calls.max(next.n_calls);
            seen.sequences += continued(length + 1);
            continue;
        };
        let remedy = next.ledger.decide(&failure(class, None), &next.situation);
        check_caps(&next.ledger, next.situation.providers.len());
        match remedy {
            Surface => {
                seen.ended_badly += 1;
                seen.most_calls = seen.most_calls.max(next.n_calls);
                for class in OUTCOMES.into_iter().flatten() {
                    let mut after = next.ledger.clone();
                    assert_eq!(after.decide(&failure(class, None), &next.situation), Surface);
                }
                seen.sequences += continued(length + 1);
                continue;
            }
            EscalateOutput { max_tokens } => {
                next.situation.streamed = true;
                next.situation.max_tokens = max_tokens;
            }
            RetryAfter { streamed, max_tokens, .. } => {
                next.situation.streamed = streamed;
                next.situation.max_tokens = max_tokens;
            }
            SwitchModel { .. } => {
                next.situation.streamed = true;
                next.situation.max_tokens = SITUATION.max_tokens;
            }
            _ => {}
        }
        if length + 1 < LENGTH {
            walk(&next, length + 1, seen);
        }
    }
}

/// Sequences that begin with one of this length and are longer.
fn continued(length: usize) -> usize {
    (length + 1..=LENGTH).map(|it| 6usize.pow((it - length) as u32)).sum()
}

#[track_caller]
fn check_caps(ledger: &RecoveryLedger, n_models: usize) {
    let decided = &ledger.decided;
    let count = |is: fn(&Remedy) -> bool| decided.iter().filter(|it| is(&it.remedy)).count();
    assert!(count(|it| matches!(it, EscalateOutput { .. })) <= MAX_ESCALATIONS as usize);
    assert!(count(|it| *it == CollapseContext) <= 1);
    assert!(count(|it| *it == CompactReactively) <= 1);
    assert!(count(|it| matches!(it, SwitchModel { .. })) < n_models);
    assert!(ledger.n_retries(Purpose::Turn) <= SITUATION.max_retries);
    // No model is asked a fourth time that was overloaded three times in a row and has a successor.
    let mut row = (0, 0);
    for decision in decided {
        let is_next = decision.class == Overloaded && decision.model == row.1;
        row = (
            if is_next { row.0 + 1 } else { usize::from(decision.class == Overloaded) },
            decision.model,
        );
        let has_next = decision.model + 1 < n_models;
        if row.0 == OVERLOADS_TO_SWITCH as usize && has_next {
            assert_eq!(decision.remedy, SwitchModel { index: decision.model + 1 });
        }
    }
}

// REQ: MDL-4, MDL-5, MDL-7, MDL-8, MDL-10
#[test]
fn after_every_sequence_of_seven_outcomes_all_counts_hold() {
    for providers in [&[0][..], &[0, 0], &[0, 1, 2, 2]] {
        let situation = Situation { providers, ..SITUATION };
        let start = TurnWalk { ledger: RecoveryLedger::default(), situation, n_calls: 0 };
        let mut seen = SequenceCounts::default();
        walk(&start, 0, &mut seen);
        assert_eq!(seen.sequences, 335_922);
        assert!(seen.most_calls <= LENGTH && 0 < seen.ended_well && 0 < seen.ended_badly);
    }
}

/// Failures of these classes alone, over and over: the longest that a turn can be made to last.
// REQ: MDL-5, MDL-6, MDL-10
#[test]
fn a_turn_that_only_meets_these_outcomes_ends_after_at_most_sixteen_failures() {
    // Ten retries, three escalations, one collapse, one compaction, and the end.
    let mut longest = 0;
    let mut open = vec![(RecoveryLedger::default(), SITUATION.max_tokens, 0usize)];
    let mut known = std::collections::BTreeSet::new();
    while let Some((ledger, max_tokens, n)) = open.pop() {
        for class in OUTCOMES.into_iter().flatten() {
            let (mut ledger, mut situation) = (ledger.clone(), SITUATION);
            situation.max_tokens = max_tokens;
            situation.model_max_tokens = u32::MAX;
            match ledger.decide(&failure(class, None), &situation) {
                Surface => longest = longest.max(n + 1),
                EscalateOutput { max_tokens } => situation.max_tokens = max_tokens,
                _ => {}
            }
            if ledger.decided.last().is_some_and(|it| it.remedy == Surface) {
                continue;
            }
            // What is left of the counts is all that decides what comes; each such state once.
            let count = |action| ledger.decided.iter().filter(|it| it.action == action).count();
            let state = [
                ledger.n_retries(Purpose::Turn) as usize,
                count(Action::RaiseCeiling),
                count(Action::Collapse),
                count(Action::Compact),
            ];
            if known.insert(state) {
                open.push((ledger, situation.max_tokens, n + 1));
            }
        }
    }
    assert_eq!(longest, 16);
}
