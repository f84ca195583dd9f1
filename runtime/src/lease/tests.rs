//! Leases and trees: limits, refusals, sums.
//!
//! Built under `#[cfg(test)]` only.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    catalogue::{Catalogue, ModelFacts, Money, Prices},
    tokens::Tokens,
};

fn limits() -> AgentLimits {
    AgentLimits {
        max_depth: 2,
        max_at_once: 2,
        max_in_tree: 3,
        max_tree_tokens: Some(100),
        ..AgentLimits::default()
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Of known price, and free.
fn worst(tokens: u64) -> MaxCost {
    MaxCost { tokens: Tokens(tokens), price: Price::Known(Money(0)) }
}

fn used(tokens: u64) -> Spent {
    Spent { tokens: Tokens(tokens), ..Spent::default() }
}

/// Started when the clock shows nothing.
fn admit(tree: &mut Tree, n: usize) -> Result<(), LeaseRefused> {
    tree.admit(&agent(n), None, Duration::ZERO)
}

fn agent(n: usize) -> AgentId {
    AgentId::new(format!("{n:016x}"))
}

// REQ: AGT-7
#[test]
fn depth_ends_where_the_limit_says() {
    let mut top = Lease::top(limits());
    let mut child = top.child(&agent(1), Duration::ZERO).unwrap();
    let mut grandchild = child.child(&agent(2), Duration::ZERO).unwrap();
    assert_eq!((top.depth(), child.depth(), grandchild.depth()), (0, 1, 2));
    assert!(child.allows_nesting() && !grandchild.allows_nesting());
    assert_eq!(grandchild.child(&agent(3), Duration::ZERO), Err(LeaseRefused::TooDeep { max: 2 }));
}

// REQ: AGT-7
#[test]
fn a_place_comes_free_once_when_an_agent_ends() {
    let mut lease = Lease::top(limits());
    lease.child(&agent(1), Duration::ZERO).unwrap();
    lease.child(&agent(2), Duration::ZERO).unwrap();
    assert_eq!(lease.child(&agent(3), Duration::ZERO), Err(LeaseRefused::TooManyAtOnce { max: 2 }));
    assert!(lease.mark_ended(&agent(1)));
    assert!(!lease.mark_ended(&agent(1)));
    assert_eq!(lease.child(&agent(1), Duration::ZERO), Err(LeaseRefused::KnownAgent));
    lease.child(&agent(3), Duration::ZERO).unwrap();
    assert_eq!(lease.running(), 2);
}

// REQ: AGT-7
#[test]
fn a_child_ends_no_later_than_its_parent() {
    // Limit of each agent, end of the parent, end of a child that starts at 10.
    let cases = [
        (None, None, None),
        (Some(5), None, Some(15)),
        (None, Some(12), Some(12)),
        (Some(5), Some(12), Some(12)),
        (Some(5), Some(20), Some(15)),
    ];
    for (max_agent_seconds, ends, expected) in cases {
        let mut top = Lease::top(AgentLimits { max_agent_seconds, ..limits() });
        top.set_end(ends.map(seconds));
        let mut child = top.child(&agent(1), seconds(10)).unwrap();
        assert_eq!(child.ends(), expected.map(seconds));
        // A moment later it hands on no more than it has.
        let grandchild = child.child(&agent(2), seconds(11)).unwrap();
        assert!(child.ends().is_none_or(|it| grandchild.ends().is_some_and(|own| own <= it)));
    }
}

// REQ: AGT-7
#[test]
fn nobody_is_started_when_the_time_is_over() {
    let mut top = Lease::top(limits());
    top.set_end(Some(seconds(10)));
    assert_eq!(top.child(&agent(1), seconds(10)), Err(LeaseRefused::TimeUsedUp));
    assert_eq!(top.running(), 0);
    top.child(&agent(1), seconds(9)).unwrap();
}

// REQ: AGT-7
#[test]
fn agents_of_the_whole_tree_are_counted_for_good() {
    let mut tree = Tree::new(limits());
    for n in 1..=3 {
        admit(&mut tree, n).unwrap();
        tree.close(&agent(n));
    }
    assert_eq!(admit(&mut tree, 4), Err(LeaseRefused::TooManyInTree { max: 3 }));
    assert_eq!(admit(&mut tree, 1), Err(LeaseRefused::KnownAgent));
    assert_eq!(tree.debit(Some(&agent(1)), &worst(1)), Err(LeaseRefused::Closed));
    assert_eq!(tree.debit(Some(&agent(4)), &worst(1)), Err(LeaseRefused::Closed));
}

// REQ: AGT-7
#[test]
fn a_call_that_only_reservations_of_others_stop_may_wait() {
    let mut tree = Tree::new(limits());
    admit(&mut tree, 1).unwrap();
    tree.settle(None, used(20));
    tree.debit(Some(&agent(1)), &worst(50)).unwrap();
    assert_eq!(tree.debit(None, &worst(31)), Err(LeaseRefused::Reserved));
    assert_eq!(
        tree.debit(None, &worst(81)),
        Err(LeaseRefused::TokensUsedUp { max: 100, used: 20 })
    );
    tree.settle(Some(&agent(1)), used(10));
    assert_eq!((tree.spent().tokens, tree.reserved().0), (Tokens(30), Tokens(0)));
    tree.debit(None, &worst(70)).unwrap();
    // Its own reservation is in nobody's way but that of others.
    tree.reserve(None, &worst(60)).unwrap();
    assert_eq!(tree.reserved().0, Tokens(60));
}

// REQ: AGT-7
#[test]
fn what_nobody_can_say_of_a_call_counts_as_its_worst_case() {
    let mut tree = Tree::new(limits());
    admit(&mut tree, 1).unwrap();
    tree.debit(Some(&agent(1)), &worst(60)).unwrap();
    let sums = |tree: &Tree| (tree.spent().turns, tree.spent().tokens.0, tree.reserved().0.0);
    assert_eq!(sums(&tree), (0, 0, 60));
    tree.close(&agent(1));
    assert_eq!(sums(&tree), (1, 60, 0));
    // Once.
    tree.close(&agent(1));
    assert_eq!(sums(&tree), (1, 60, 0));
    tree.settle(Some(&agent(1)), used(5));
    assert_eq!(sums(&tree), (1, 65, 0));
}

// REQ: AGT-7
#[test]
fn turn_counts_once_whether_its_call_was_made_or_given_back() {
    let limits = AgentLimits { max_tree_turns: Some(1), ..limits() };
    let mut tree = Tree::new(limits);
    admit(&mut tree, 1).unwrap();
    tree.debit(Some(&agent(1)), &worst(60)).unwrap();
    let used_up = Err(LeaseRefused::TurnsUsedUp { max: 1 });
    assert_eq!(tree.debit(None, &worst(1)), used_up);
    tree.settle(Some(&agent(1)), Spent { turns: 1, ..Spent::default() });
    assert_eq!((tree.spent().turns, tree.debit(None, &worst(1))), (1, used_up));
}

// REQ: AGT-7, AGT-3
#[test]
fn those_below_an_agent_end_with_it() {
    let mut tree = Tree::new(limits());
    admit(&mut tree, 1).unwrap();
    tree.admit(&agent(2), Some(&agent(1)), Duration::ZERO).unwrap();
    tree.admit(&agent(3), Some(&agent(2)), Duration::ZERO).unwrap();
    tree.debit(Some(&agent(3)), &worst(60)).unwrap();
    assert_eq!(tree.debit(None, &worst(60)), Err(LeaseRefused::Reserved));
    tree.close(&agent(1));
    assert_eq!((tree.spent().tokens, tree.reserved().0), (Tokens(60), Tokens(0)));
    assert!([1, 2, 3].iter().all(|it| !tree.is_open(Some(&agent(*it)))));
    tree.debit(None, &worst(40)).unwrap();
}

// REQ: AGT-7
#[test]
fn agents_started_within_a_minute_are_bounded() {
    let per_minute = |n| std::num::NonZeroU32::new(n).unwrap();
    let limits = AgentLimits { max_in_tree: 9, max_per_minute: per_minute(2), ..limits() };
    let mut tree = Tree::new(limits);
    tree.admit(&agent(1), None, seconds(100)).unwrap();
    tree.admit(&agent(2), None, seconds(130)).unwrap();
    let too_fast = |wait_s| Err(LeaseRefused::TooFast { max: 2, wait_s });
    assert_eq!(tree.admit(&agent(3), None, Duration::from_millis(140_500)), too_fast(20));
    assert_eq!(tree.admit(&agent(3), None, Duration::from_millis(159_999)), too_fast(1));
    // Who was refused does not count.
    tree.admit(&agent(3), None, seconds(160)).unwrap();
    assert_eq!(tree.admit(&agent(4), None, seconds(160)), too_fast(30));
    // Narrowed since: two places must come free before one more is there.
    tree.set_limits(AgentLimits { max_per_minute: per_minute(1), ..limits });
    let both = Err(LeaseRefused::TooFast { max: 1, wait_s: 60 });
    assert_eq!(tree.admit(&agent(4), None, seconds(160)), both);
}

fn money(limit: u64) -> AgentLimits {
    AgentLimits { max_tree_tokens: None, max_tree_micro_usd: Some(limit), ..limits() }
}

fn costs(micro_usd: u64) -> MaxCost {
    MaxCost { tokens: Tokens(1), price: Price::Known(Money::of_micro_usd(micro_usd)) }
}

// REQ: AGT-7
#[test]
fn money_of_the_whole_tree_is_bounded_to_the_last_millionth() {
    let mut tree = Tree::new(money(100));
    admit(&mut tree, 1).unwrap();
    tree.debit(None, &costs(60)).unwrap();
    tree.debit(Some(&agent(1)), &costs(40)).unwrap();
    assert_eq!(tree.debit(Some(&agent(1)), &costs(41)), Err(LeaseRefused::Reserved));
    tree.settle(None, Spent { money: Money::of_micro_usd(90), ..Spent::default() });
    let refused = tree.debit(Some(&agent(1)), &costs(11)).unwrap_err();
    let (max, used) = (Money::of_micro_usd(100), Money::of_micro_usd(90));
    assert_eq!(refused, LeaseRefused::MoneyUsedUp { max, used });
    assert!(refused.to_string().starts_with("Budget limit reached: $0.0000 of $0.0001"));
    tree.settle(Some(&agent(1)), Spent { money: Money::of_micro_usd(10), ..Spent::default() });
    assert_eq!(admit(&mut tree, 2), Err(LeaseRefused::MoneyUsedUp { max, used: max }));
}

// REQ: AGT-7
#[test]
fn a_model_without_a_price_is_asked_only_where_money_is_not_limited() {
    let unknown = MaxCost { tokens: Tokens(1), price: Price::Unknown("m".into()) };
    assert_eq!(Tree::new(limits()).debit(None, &unknown), Ok(()));
    let refused = Tree::new(money(100)).debit(None, &unknown);
    assert_eq!(refused, Err(LeaseRefused::NoPrice { model: "m".into() }));
    // What was spent before is as unknown as what is to be spent.
    let mut tree = Tree::new(money(100));
    tree.settle(None, Spent { unpriced: 2, ..Spent::default() });
    assert_eq!(tree.debit(None, &costs(1)), Err(LeaseRefused::CostUnknown { calls: 2 }));
}

// REQ: AGT-7
#[test]
fn earlier_starts_count_for_the_rate_as_long_as_they_would_have() {
    let per_minute = std::num::NonZeroU32::new(2).unwrap();
    let limits = AgentLimits { max_in_tree: 9, max_per_minute: per_minute, ..limits() };
    let mut tree = Tree::new(limits);
    // The process is 5 s old; one was started 10 s before it, one 40 s, one more than a minute.
    tree.resume_rate(seconds(5), [15, 61, 45].map(seconds));
    let too_fast = |wait_s| Err(LeaseRefused::TooFast { max: 2, wait_s });
    assert_eq!(tree.admit(&agent(1), None, seconds(5)), too_fast(15));
    assert_eq!(tree.admit(&agent(1), None, seconds(19)), too_fast(1));
    tree.admit(&agent(1), None, seconds(20)).unwrap();
    assert_eq!(tree.admit(&agent(2), None, seconds(20)), too_fast(30));
    tree.admit(&agent(2), None, seconds(50)).unwrap();
}

// REQ: AGT-7
#[test]
fn worst_case_is_that_of_the_model_that_is_asked() {
    let prices = Prices {
        input: 2,
        output: 5,
        cache_write_5m: 1,
        cache_write_1h: 3,
        cache_read: 0,
        web_search: None,
        long_prompt: None,
    };
    let facts = |id: &str, prices| ModelFacts { id: id.into(), prices, ..ModelFacts::default() };
    let models = Catalogue::of([facts("a", Some(prices)), facts("b", None)]);
    let cases = [
        ("a", Price::Known(Money(100 * 3 + 10 * 5))),
        ("b", Price::Unknown("b".into())),
        ("c", Price::Unknown("c".into())),
    ];
    for (model, price) in cases {
        let worst = MaxCost::of_call(&models, model, Tokens(100), 10);
        assert_eq!(worst, MaxCost { tokens: Tokens(110), price }, "{model}");
    }
}

// REQ: AGT-7
#[test]
fn time_of_all_runs_is_one_sum() {
    let limits = AgentLimits { max_tree_seconds: Some(10), ..limits() };
    let mut tree = Tree::new(limits);
    assert_eq!(Tree::new(AgentLimits::default()).time_left(), None);
    tree.add_time(seconds(7));
    assert_eq!(tree.time_left(), Some(seconds(3)));
    tree.debit(None, &worst(1)).unwrap();
    tree.add_time(seconds(4));
    assert_eq!(tree.time_left(), Some(Duration::ZERO));
    assert_eq!(tree.debit(None, &worst(1)), Err(LeaseRefused::TimeUsedUp));
    assert_eq!(admit(&mut tree, 1), Err(LeaseRefused::TimeUsedUp));
}

// REQ: AGT-7
#[test]
fn earlier_processes_count_like_this_one() {
    let mut tree = Tree::new(AgentLimits { max_tree_turns: Some(5), ..limits() });
    tree.resume(None, Spent { turns: 3, ..used(20) });
    tree.resume(Some(&agent(1)), Spent { turns: 2, ..used(30) });
    assert_eq!(tree.spent(), Spent { turns: 5, ..used(50) });
    assert_eq!(tree.debit(Some(&agent(1)), &worst(1)), Err(LeaseRefused::Closed));
    assert_eq!(admit(&mut tree, 1), Err(LeaseRefused::KnownAgent));
    assert_eq!(tree.debit(None, &worst(1)), Err(LeaseRefused::TurnsUsedUp { max: 5 }));
    // A turn that is under way already is the fifth, not the sixth.
    assert_eq!(tree.reserve(None, &worst(50)), Ok(()));
}

// REQ: AGT-7
#[test]
fn turns_of_the_whole_tree_are_bounded() {
    let limits = AgentLimits { max_tree_turns: Some(2), ..limits() };
    let mut tree = Tree::new(limits);
    admit(&mut tree, 1).unwrap();
    tree.debit(None, &worst(1)).unwrap();
    tree.settle(None, Spent { turns: 1, ..used(1) });
    tree.debit(Some(&agent(1)), &worst(1)).unwrap();
    assert_eq!(tree.debit(None, &worst(1)), Err(LeaseRefused::TurnsUsedUp { max: 2 }));
    assert_eq!(admit(&mut tree, 2), Err(LeaseRefused::TurnsUsedUp { max: 2 }));
    tree.settle(Some(&agent(1)), Spent { turns: 1, ..used(1) });
    assert_eq!(tree.spent().turns, 2);
}

proptest! {
    // REQ: AGT-7
    #[test]
    fn used_and_set_aside_stay_within_the_limit_when_calls_keep_their_word(
        steps in prop::collection::vec((0..4u8, 0..4usize, 0..60u64), 0..60),
    ) {
        let mut tree = Tree::new(limits());
        let mut open: BTreeMap<Option<AgentId>, u64> = BTreeMap::new();
        for (what, n, amount) in steps {
            let who = (0 < n).then(|| agent(n));
            match what {
                0 => drop(admit(&mut tree, n)),
                1 => {
                    if tree.debit(who.as_ref(), &worst(amount)).is_ok() {
                        open.insert(who, amount);
                    }
                }
                2 => {
                    let set_aside = open.remove(&who).unwrap_or_default();
                    tree.settle(who.as_ref(), used(amount.min(set_aside)));
                }
                _ => {
                    tree.close(&agent(n));
                    open.remove(&Some(agent(n)));
                }
            }
            prop_assert!((tree.spent().tokens + tree.reserved().0).0 <= 100);
            prop_assert_eq!(tree.reserved().0.0, open.values().sum::<u64>());
        }
    }
}
