//! Sessions whose inputs come in random orders, and the orders that matter one by one.
//!
//! Built under `#[cfg(test)]` only.

mod agents;
mod answers;
mod checks;
mod earlier;
mod effects;
mod ended_hooks;
mod in_background;
mod kinds;
mod messages;
mod orders;
mod random;
mod shown;
mod tallies;
mod unasked;
mod world;

use proptest::prelude::*;

use self::random::Orders;

prop_compose! {
    fn orders(n_choices: usize)(
        place in any::<u16>(),
        before in prop_oneof![
            Just(Vec::new()),
            proptest::collection::vec(any::<u16>(), 1..n_choices),
        ],
        n_kept in any::<u16>(),
        choices in proptest::collection::vec(any::<u16>(), 1..n_choices),
    ) -> Orders {
        Orders { place, before, n_kept, choices }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    // REQ: RUN-2, RUN-5, SES-3, SES-4, AGT-6, AGT-8, HKS-1
    #[test]
    fn nothing_is_lost_or_comes_twice_whatever_comes_in_which_order(orders in orders(160)) {
        orders.play();
    }

    // REQ: TRN-1
    #[test]
    fn equal_inputs_give_equal_effects(orders in orders(80)) {
        prop_assert_eq!(orders.play().log, orders.play().log);
    }
}
