//! Sessions whose inputs come in random orders, and the orders that matter one by one.
//!
//! Built under `#[cfg(test)]` only.

mod checks;
mod ended_hooks;
mod messages;
mod orders;
mod shown;
mod world;

use proptest::prelude::*;

use self::world::SessionWorld;

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    // REQ: RUN-2, RUN-5, SES-3, AGT-6, AGT-8
    #[test]
    fn every_prompt_is_answered_once_whatever_comes_in_which_order(
        choices in proptest::collection::vec(any::<u16>(), 1..160),
    ) {
        let mut world = SessionWorld::new();
        for choice in choices {
            world.step(choice.into());
        }
        world.finish();
        world.check();
    }

    // REQ: TRN-1
    #[test]
    fn equal_inputs_give_equal_effects(
        choices in proptest::collection::vec(any::<u16>(), 1..80),
    ) {
        let play = || {
            let mut world = SessionWorld::new();
            choices.iter().for_each(|it| world.step(u64::from(*it)));
            world.finish();
            world.log
        };
        prop_assert_eq!(play(), play());
    }
}
