//! Step 6: what cannot run is answered, in its place, while the rest runs.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    play::{Play, play},
    script::{answer, call, calls},
    world::World,
};
use crate::{
    step5_model_call::InvalidInput,
    tool::ToolErrorKind,
    transcript::{entry::RecordKind, replay::replay},
};

/// `id:error` of all calls that failed.
fn errors(play: &Play) -> Vec<(String, ToolErrorKind)> {
    let error = |what: &RecordKind| match what {
        RecordKind::ToolEnd { call, error: Some(error), .. } => Some((call.to_string(), *error)),
        _ => None,
    };
    play.records().filter_map(|it| error(&it.what)).collect()
}

// REQ: TOL-3
#[test]
fn twenty_sixth_call_is_refused_and_the_others_run() {
    for n in [25, 26, 27] {
        let blocks = (0..n).map(|i| call(&format!("t{i}:Note:{i}"))).collect();
        let play = play(World::new(vec![answer("tool_use", blocks)]));
        let refused: Vec<_> =
            (25..n).map(|i| (format!("t{i}"), ToolErrorKind::TooManyCalls)).collect();
        assert_eq!(errors(&play), refused);
        assert_eq!(play.trace.len(), 50);
    }
}

// REQ: TOL-3, TRN-3
#[test]
fn unknown_tools_and_invalid_inputs_are_answered_in_their_place() {
    let mut asked = calls(&["a:Nope:x", "b:Note:x", "c:Note:bad", "d:Note:y", "e:Note:z"]);
    asked.as_mut().unwrap().invalid_inputs = vec![("e".into(), InvalidInput::InvalidJson)];
    let play = play(World::new(vec![asked]));
    assert!(
        play.log().contains("7 8 error:a result:b error:c result:d error:e 9"),
        "{}",
        play.log()
    );
    assert_eq!(
        errors(&play),
        [
            ("a".into(), ToolErrorKind::UnknownTool),
            ("c".into(), ToolErrorKind::InvalidInput),
            ("e".into(), ToolErrorKind::InvalidInput),
        ]
    );
}

#[test]
fn answers_of_which_nothing_can_run_still_end_their_turn() {
    let mut asked = calls(&["a:Nope:x", "b:Note:x"]);
    asked.as_mut().unwrap().invalid_inputs = vec![("b".into(), InvalidInput::NotAnObject)];
    let play = play(World::new(vec![asked]));
    assert!(play.log().contains("6 7 8 error:a error:b 9 go on"), "{}", play.log());
}

#[test]
fn second_tool_use_with_an_id_is_left_out() {
    let play = play(World::new(vec![calls(&["a:Read:a.rs", "a:Read:b.rs"])]));
    assert!(play.log().contains("alert 6 7 8 result:a 9 go on"), "{}", play.log());
}

// REQ: TOL-2
#[test]
fn id_that_an_earlier_answer_used_is_replaced_and_the_call_and_its_result_reach_the_model() {
    let mut second = calls(&["a:Note:y", "b:Note:bad", "c:Note:z"]);
    second.as_mut().unwrap().invalid_inputs = vec![("b".into(), InvalidInput::InvalidJson)];
    let play = play(World::new(vec![calls(&["a:Note:x", "b:Note:x"]), second]));
    let answers = play.conversation.history.iter().flat_map(|it| it.blocks.iter());
    let asked: Vec<String> =
        answers.filter_map(|it| it.as_tool_use()).map(|(id, ..)| id.to_string()).collect();
    let [a, b, new_a, new_b, c] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((a.as_str(), b.as_str(), c.as_str()), ("a", "b", "c"));
    assert!(new_a.starts_with("call_") && new_b.starts_with("call_") && new_a != new_b);
    assert_eq!(errors(&play), [(new_b.clone(), ToolErrorKind::InvalidInput)]);
    assert_eq!(play.log().matches("alert").count(), 2, "{}", play.log());
    let last = String::from_utf8_lossy(&play.requests.last().unwrap().request.body.to_bytes())
        .into_owned();
    for id in &asked {
        assert_eq!(last.matches(&format!("\"{id}\"")).count(), 2, "{last}");
    }
    let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
    assert_eq!(replayed.map(|it| it.turns), Ok(3));
}
