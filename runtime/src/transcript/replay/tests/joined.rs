//! Sessions whose tools joined while they were open.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use super::*;
use crate::{
    run::RunEnd,
    tool::ToolSpec,
    transcript::entry::StepDetail,
    turn::tests::{
        play::Play,
        script::{calls, text},
        world::World,
    },
};

/// A world without these tools, and them.
fn without(names: &[&str]) -> (World, Vec<Arc<ToolSpec>>) {
    let answers = vec![text("first"), calls(&["p:Poll:x"]), calls(&["q:Poll:x"]), text("done")];
    let mut world = World::new(answers);
    let facts = Arc::make_mut(&mut world.facts);
    let (late, fixed) =
        facts.tools.drain(..).partition(|it| names.iter().any(|name| it.name.as_str() == *name));
    facts.tools = fixed;
    (world, late)
}

fn has_tool(play: &Play, request: usize, name: &str) -> bool {
    let body = String::from_utf8(play.requests[request].request.body.to_bytes().to_vec()).unwrap();
    body.contains(&format!(r#"{{"name":"{name}""#)) && body.contains(&format!(", {name}"))
}

fn n_joins(play: &Play) -> usize {
    let joins = play.records().filter(|it| {
        let RecordKind::TurnStep { detail, .. } = &it.what else { return false };
        matches!(detail, StepDetail::Settings { tools: Some(_), .. })
    });
    joins.count()
}

// REQ: SES-4, TOL-11
#[test]
fn tools_that_join_are_offered_from_the_next_turn_on_and_the_session_is_walked_again() {
    let (world, late) = without(&["Poll"]);
    let mut play = Play::new(world);
    play.run("go");
    play.conversation.join_tools(late.clone());
    play.run("and now?");
    assert!(!has_tool(&play, 0, "Poll") && has_tool(&play, 1, "Poll"));
    let result = |name: &str| {
        let found = play.lines.iter().find_map(|it| match it {
            Line::Conversation(line) => {
                let of = |it: &crate::block::Block| {
                    it.as_tool_result().filter(|it| it.0.as_str() == name).map(|it| it.2)
                };
                line.message.blocks.iter().find_map(of)
            }
            Line::Harness(_) => None,
        });
        found.unwrap()
    };
    assert!(!result("p"), "a call of it works");
    assert_eq!(n_joins(&play), 1);
    // Again the same changes nothing.
    play.conversation.join_tools(late);
    play.run("and then?");
    assert_eq!(n_joins(&play), 1);
    check(&play);
}

// REQ: SES-4, TRN-11
#[test]
fn turn_that_is_ended_anywhere_leaves_what_joined_to_the_next() {
    for at in 1.. {
        let (world, mut late) = without(&["Note", "Poll"]);
        let mut play = Play::new(world);
        play.run("go");
        let other = late.split_off(1);
        play.conversation.join_tools(late);
        play.world.interrupt_at = Some(play.n_inputs + at);
        play.run("and now?");
        if play.ends[1].0 != RunEnd::Interrupted {
            assert!(20 < at, "{at}");
            break;
        }
        play.conversation.join_tools(other);
        play.run("and then?");
        let last = play.requests.len() - 1;
        assert!(has_tool(&play, last, "Note") && has_tool(&play, last, "Poll"), "{at}");
        assert!(1 <= n_joins(&play), "{at}");
        check(&play);
    }
}

#[test]
fn tools_that_joined_and_are_not_at_hand_are_named() {
    let (world, late) = without(&["Poll"]);
    let mut play = Play::new(world);
    play.conversation.join_tools(late);
    play.run("go");
    let error = replay(&play.bytes(), &|digest| {
        play.stored.get(&digest).filter(|it| !it.starts_with(r#"[{"name":"Poll""#)).cloned()
    });
    assert!(matches!(error, Err(ReplayError::NotStored { .. })), "{error:?}");
    let changed = replay(&play.bytes(), &|digest| {
        play.stored.get(&digest).cloned().map(|it| it.replace("does Poll", "does more"))
    });
    assert!(matches!(changed, Err(ReplayError::NotStored { .. })), "{changed:?}");
}
