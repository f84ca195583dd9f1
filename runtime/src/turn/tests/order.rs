//! Step 8: what runs at the same time as what, and that the record does not show it afterwards.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::{
    play::{Play, play},
    script::calls,
    world::World,
};
use crate::{
    entropy::EntropyStream,
    tool::{ToolErrorKind, ToolOutcome},
    transcript::entry::Line,
};

fn asked() -> Vec<&'static str> {
    vec![
        "a:Read:a.rs",
        "b:Read:b.rs",
        "c:Edit:c.rs",
        "d:Read:d.rs",
        "e:Bash:ls",
        "f:Poll:x",
        "g:Nope:x",
        "h:Read:h.rs",
    ]
}

// REQ: TOL-2
#[test]
fn neighbouring_reads_run_together_and_an_edit_alone() {
    let play = play(World::new(vec![calls(&asked())]));
    assert_eq!(play.trace.join(" "), "+a +b -a -b +c -c +d -d +e -e +f +h -f -h");
}

/// Everything about the lines but their times.
fn shape_of(play: &Play) -> Vec<String> {
    let without_time = |line: &Line| match line {
        Line::Conversation(line) => format!("{:?} {:?}", line.message.kind, line.message.blocks),
        Line::Harness(record) => format!("{} {:?}", record.turn, record.what),
    };
    play.lines.iter().filter(|it| !is_run_record(it)).map(without_time).collect()
}

/// These hold names that are made from the time.
fn is_run_record(line: &Line) -> bool {
    matches!(line, Line::Harness(record) if record.turn == 0)
}

fn world() -> World {
    let hooks = super::script::hook("PostToolUse", "Read", &["0 {}"]);
    let mut world = World::with(hooks, vec![calls(&asked())]);
    let failed = ToolOutcome::failed(ToolErrorKind::Failed, "no such file");
    world.outcomes = [("b".into(), failed), ("d".into(), ToolOutcome::ok("text"))].into();
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // REQ: TOL-2, TRN-13
    #[test]
    fn transcript_does_not_depend_on_the_order_in_which_calls_end(seed in any::<u64>()) {
        let expected = shape_of(&play(world()));
        let shuffled = play(World { shuffle: Some(EntropyStream::from_seed(seed)), ..world() });
        prop_assert_eq!(shape_of(&shuffled), expected);
    }
}

// REQ: TRN-13
#[test]
fn nothing_counts_twice() {
    let expected = shape_of(&play(world()));
    assert_eq!(shape_of(&play(World { echo: true, ..world() })), expected);
}
