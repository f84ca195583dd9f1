//! Which kinds of input the random orders produce. A new kind stops the build here until it has its line.

use std::collections::BTreeSet;

use super::random::Orders;
use crate::{
    entropy::EntropyStream,
    session::{OpenedTranscript, SessionInput},
};

/// Defines a list of names and the function that names a value, from one list of variants.
macro_rules! kinds {
    ($list:ident, $name_of:ident, $type:ident: $($kind:ident)+) => {
        const $list: &[&str] = &[$(stringify!($kind)),+];

        pub(super) fn $name_of(it: &$type) -> &'static str {
            match it {
                $($type::$kind { .. } => stringify!($kind),)+
            }
        }
    };
}

kinds!(INPUTS, input_kind, SessionInput:
    Prompt Message Interrupt Stop Close SetMode
    Opened Loaded SettingsRead Written
    Append Flush TurnDone TurnFailed TurnCrashed TurnQuiet
    ShellKept ShellsEnded AgentKept AgentsEnded HookEnded HooksKept
    Watch FilesChanged WatcherGone ServerAnswered TurnLeft TimeIsUp
    CallWaits SpawnAgent SendMessage MessageAnswered StopAgent
    AgentRefused AgentEnded AgentCrashed TreeQuestion TreeAnswer
);

kinds!(OPENINGS, opening_kind, OpenedTranscript: New Existing Restarted Failed);

// REQ: RUN-2
#[test]
fn random_orders_produce_every_kind_of_input_and_of_opening() {
    let stream = EntropyStream::from_seed(1);
    let mut seen = BTreeSet::new();
    for n in 0..200 {
        let draw = |of, n| stream.draw(of, n) as u16;
        let choices = |of| (0..120).map(|it| draw(of, n * 1000 + it)).collect();
        let before = if n % 2 == 0 { Vec::new() } else { choices("before") };
        let (place, n_kept, choices) = (draw("place", n), draw("kept", n), choices("choices"));
        let orders = Orders { place, before, n_kept, choices };
        seen.append(&mut orders.play().kinds);
    }
    let missing: Vec<_> = INPUTS.iter().chain(OPENINGS).filter(|it| !seen.contains(*it)).collect();
    assert!(missing.is_empty(), "never produced: {missing:?}");
}
