//! Leases and trees: limits, refusals, sums.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::*;

fn limits() -> AgentLimits {
    AgentLimits {
        max_depth: 2,
        max_at_once: 2,
        max_in_tree: 3,
        max_tree_turns: None,
        max_tree_tokens: Some(100),
    }
}

fn agent(n: usize) -> AgentId {
    AgentId::new(format!("{n:016x}"))
}

// REQ: AGT-7
#[test]
fn depth_ends_where_the_limit_says() {
    let mut top = Lease::top(limits());
    let mut child = top.child(&agent(1)).unwrap();
    let mut grandchild = child.child(&agent(2)).unwrap();
    assert_eq!((top.depth(), child.depth(), grandchild.depth()), (0, 1, 2));
    assert!(child.allows_nesting() && !grandchild.allows_nesting());
    assert_eq!(grandchild.child(&agent(3)), Err(LeaseRefused::TooDeep { max: 2 }));
}

// REQ: AGT-7
#[test]
fn a_place_comes_free_once_when_an_agent_ends() {
    let mut lease = Lease::top(limits());
    lease.child(&agent(1)).unwrap();
    lease.child(&agent(2)).unwrap();
    assert_eq!(lease.child(&agent(3)), Err(LeaseRefused::TooManyAtOnce { max: 2 }));
    assert!(lease.ended(&agent(1)));
    assert!(!lease.ended(&agent(1)));
    assert_eq!(lease.child(&agent(1)), Err(LeaseRefused::KnownAgent));
    lease.child(&agent(3)).unwrap();
    assert_eq!(lease.running(), 2);
}

// REQ: AGT-7
#[test]
fn narrowing_never_widens() {
    let wide = AgentLimits { max_depth: 9, max_at_once: 9, ..limits() };
    assert_eq!(Lease::top(limits()).narrowed(&wide), Lease::top(limits()));
    let narrow = AgentLimits { max_depth: 0, ..wide };
    assert!(!Lease::top(limits()).narrowed(&narrow).allows_nesting());
}

// REQ: AGT-7
#[test]
fn agents_of_the_whole_tree_are_counted_for_good() {
    let mut tree = Tree::new(limits(), 0, Tokens(0));
    for n in 1..=3 {
        tree.admit(&agent(n)).unwrap();
        tree.close(&agent(n));
    }
    assert_eq!(tree.admit(&agent(4)), Err(LeaseRefused::TooManyInTree { max: 3 }));
    assert_eq!(tree.admit(&agent(1)), Err(LeaseRefused::KnownAgent));
    assert_eq!(tree.debit(Some(&agent(1)), Tokens(1)), Err(LeaseRefused::Closed));
    assert_eq!(tree.debit(Some(&agent(4)), Tokens(1)), Err(LeaseRefused::Closed));
}

// REQ: AGT-7
#[test]
fn a_call_that_only_reservations_stop_may_wait() {
    let mut tree = Tree::new(limits(), 0, Tokens(20));
    tree.debit(None, Tokens(50)).unwrap();
    assert_eq!(tree.debit(None, Tokens(31)), Err(LeaseRefused::Reserved));
    assert_eq!(
        tree.debit(None, Tokens(81)),
        Err(LeaseRefused::TokensUsedUp { max: 100, used: 20 })
    );
    tree.settle(None, Tokens(50), Tokens(10));
    assert_eq!((tree.tokens(), tree.reserved()), (Tokens(30), Tokens(0)));
    tree.debit(None, Tokens(70)).unwrap();
}

// REQ: AGT-7
#[test]
fn what_an_agent_did_not_settle_returns_once() {
    let mut tree = Tree::new(limits(), 0, Tokens(0));
    tree.admit(&agent(1)).unwrap();
    tree.debit(Some(&agent(1)), Tokens(60)).unwrap();
    assert_eq!(tree.close(&agent(1)), Tokens(60));
    assert_eq!(tree.close(&agent(1)), Tokens(0));
    assert_eq!(tree.reserved(), Tokens(0));
    tree.settle(Some(&agent(1)), Tokens(60), Tokens(5));
    assert_eq!(tree.tokens(), Tokens(5));
}

// REQ: AGT-7
#[test]
fn turns_of_the_whole_tree_are_bounded() {
    let limits = AgentLimits { max_tree_turns: Some(2), ..limits() };
    let mut tree = Tree::new(limits, 0, Tokens(0));
    tree.admit(&agent(1)).unwrap();
    tree.debit(None, Tokens(1)).unwrap();
    tree.debit(Some(&agent(1)), Tokens(1)).unwrap();
    assert_eq!(tree.debit(None, Tokens(1)), Err(LeaseRefused::TurnsUsedUp { max: 2 }));
    assert_eq!(tree.admit(&agent(2)), Err(LeaseRefused::TurnsUsedUp { max: 2 }));
    assert_eq!(tree.turns(), 2);
}

proptest! {
    // REQ: AGT-7
    #[test]
    fn used_and_set_aside_stay_within_the_limit_when_calls_keep_their_word(
        steps in prop::collection::vec((0..4u8, 0..4usize, 0..60u64), 0..60),
    ) {
        let mut tree = Tree::new(limits(), 0, Tokens(0));
        let mut open: Vec<(Option<AgentId>, Tokens)> = Vec::new();
        for (what, n, amount) in steps {
            let who = (0 < n).then(|| agent(n));
            match what {
                0 => drop(tree.admit(&agent(n))),
                1 => {
                    if tree.debit(who.as_ref(), Tokens(amount)).is_ok() {
                        open.push((who, Tokens(amount)));
                    }
                }
                2 if !open.is_empty() => {
                    let (who, worst) = open.remove(n % open.len());
                    tree.settle(who.as_ref(), worst, Tokens(amount.min(worst.0)));
                }
                _ => {
                    tree.close(&agent(n));
                    open.retain(|(it, _)| *it != Some(agent(n)));
                }
            }
            prop_assert!((tree.tokens() + tree.reserved()).0 <= 100);
            prop_assert_eq!(tree.reserved(), open.iter().map(|it| it.1).sum());
        }
    }
}
