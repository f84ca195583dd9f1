//! Hooks after calls and before ends.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    play::{Play, play},
    script::{calls, hook, text},
    world::World,
};
use crate::{
    run::RunEnd,
    tool::{ToolErrorKind, ToolOutcome},
    transcript::{
        audit::{Evidence, verify},
        entry::{RecordKind, Stored},
        load::{LoadAs, load},
        replay::replay,
    },
};

fn result(play: &Play) -> String {
    let results =
        play.conversation.history.iter().filter_map(|it| it.blocks.first()?.as_tool_result());
    results.map(|it| it.1.to_owned()).collect::<Vec<_>>().join("|")
}

// REQ: HKS-4
#[test]
fn post_tool_use_adds_context_and_undoes_nothing() {
    let says = r#"0 {"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"mind the gap"}}"#;
    let play = play(World::with(hook("PostToolUse", "Note", &[says]), vec![calls(&["x:Note:x"])]));
    assert!(play.log().contains("8 hook:PostToolUse result:x 9 go on"), "{}", play.log());
    assert_eq!(
        result(&play),
        "done\n\n<system-reminder>\nA PostToolUse hook adds:\n\nmind the gap\n</system-reminder>"
    );
}

// REQ: HKS-4
#[test]
fn post_tool_use_puts_another_output_in_place_of_the_result() {
    let updates = |name: &str, output: &str| {
        format!(r#"0 {{"hookSpecificOutput":{{"hookEventName":"PostToolUse","{name}":{output}}}}}"#)
    };
    let context =
        r#"0 {"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"mind"}}"#;
    let blocks = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
    for (name, output, shown) in [
        ("updatedToolOutput", r#""hidden""#, "hidden"),
        ("updatedToolOutput", r#""""#, ""),
        (
            "updatedToolOutput",
            r#"{"file":{"content":"hidden"}}"#,
            r#"{"file":{"content":"hidden"}}"#,
        ),
        ("updatedToolOutput", blocks, "a\nb"),
        ("updatedToolOutput", "null", "done"),
        // Not for this tool.
        ("updatedMCPToolOutput", r#""hidden""#, "done"),
    ] {
        let hooks = hook("PostToolUse", "Note", &[context, &updates(name, output)]);
        let mut world = World::with(hooks, vec![calls(&["x:Note:x"])]);
        let ran =
            ToolOutcome { structured: Some(r#"{"secret":1}"#.into()), ..ToolOutcome::ok("done") };
        world.outcomes.insert("x".into(), ran);
        let play = play(world);
        assert_eq!(
            result(&play),
            format!(
                "{shown}\n\n<system-reminder>\nA PostToolUse hook adds:\n\nmind\n</system-reminder>"
            )
        );
        let kept = format!("{:?}", play.lines).contains("secret");
        assert_eq!(kept, shown == "done", "{name} {output}");
    }
}

// REQ: HKS-4, TRN-7
#[test]
fn post_tool_use_stops_the_run_behind_its_result() {
    let says = r#"0 {"continue":false,"stopReason":"enough"}"#;
    let world = World::with(hook("PostToolUse", "Note", &[says]), vec![calls(&["x:Note:x"])]);
    let play = play(world);
    assert!(play.log().ends_with("result:x 9 hook_stopped"), "{}", play.log());
    assert_eq!(play.ends[0], (RunEnd::HookStopped, Some("enough".into())));
}

// REQ: HKS-4
#[test]
fn failed_calls_fire_no_post_tool_use() {
    let world =
        World::with(hook("PostToolUse", "", &["0"]), vec![calls(&["x:Note:bad", "y:Nope:x"])]);
    assert!(!play(world).log().contains("hook"));
}

// REQ: HKS-6
#[test]
fn stop_hook_holds_the_run_eight_times_and_is_then_overridden() {
    let mut play = play(World::with(hook("Stop", "", &["2 not yet"]), vec![text("done"); 20]));
    let log = play.log();
    assert_eq!(log.matches("hook:Stop note go on").count(), 8, "{log}");
    assert!(log.ends_with("hook:Stop alert no_pending_tools"), "{log}");
    // Counted anew with each prompt.
    play.run("again");
    assert_eq!(play.log().matches("hook:Stop note go on").count(), 16);
}

// REQ: HKS-6, TRN-7
#[test]
fn stop_hook_is_asked_only_when_the_run_would_end_by_itself() {
    let says = r#"0 {"continue":false,"stopReason":"enough"}"#;
    let play =
        play(World::with(hook("Stop", "", &[says]), vec![calls(&["x:Note:x"]), text("done")]));
    let expected = "1 2 3 4 5 answer 6 7 8 result:x 9 go on \
                    1 2 3 4 5 answer 6 7 8 9 hook:Stop hook_stopped";
    assert_eq!(play.log(), expected);
}

// REQ: HKS-5
#[test]
fn what_hooks_say_to_the_user_is_told_and_recorded_with_the_hook_that_said_it() {
    let world = World::with(
        hook(
            "PreToolUse",
            "Note",
            &[r#"0 {"systemMessage":"mind"}"#, "0", r#"0 {"systemMessage":"the gap"}"#],
        ),
        vec![calls(&["x:Note:x"])],
    );
    let play = play(world);
    let log = play.log();
    assert!(log.contains("hook:PreToolUse says:mind says:the_gap"), "{log}");
    let messages: Vec<_> = play
        .records()
        .filter_map(|it| match &it.what {
            RecordKind::Hook { message, .. } => Some(message.clone()),
            _ => None,
        })
        .collect();
    let text = |it: &str| Some(Stored::Text(it.into()));
    assert_eq!(messages, [text("mind"), None, text("the gap")]);
}

// REQ: HKS-5
#[test]
fn every_handler_leaves_a_record_with_what_it_said() {
    let play = play(World::with(
        hook("PreToolUse", "Note", &["0 hello", "1 oops", "timeout"]),
        vec![calls(&["x:Note:x"])],
    ));
    let hooks: Vec<_> = play
        .records()
        .filter_map(|it| match &it.what {
            RecordKind::Hook { index, ended, effect, exit, matcher, .. } => {
                assert_eq!(matcher.as_deref(), Some("Note"), "of the settings, not of the call");
                Some((*index, ended.clone(), *exit, effect.clone()))
            }
            _ => None,
        })
        .collect();
    let hook = |i, ended: &str, exit, effect: &str| (i, ended.to_owned(), exit, effect.to_owned());
    assert_eq!(
        hooks,
        [
            hook(0, "exited", Some(0), "none"),
            hook(1, "exited", Some(1), "error"),
            hook(2, "timed_out", None, "error"),
        ]
    );
}

/// The turns are walked again from their lines, and the audit finds nothing wrong.
#[track_caller]
pub(super) fn check(play: &Play) {
    let stored = |digest| play.stored.get(&digest).cloned();
    replay(&play.bytes(), &stored).unwrap_or_else(|it| panic!("{it}"));
    let evidence = Evidence {
        stored: &stored,
        sidechain: &|_| None,
        checkpoint: None,
        run_budget: &|_| None,
        also: &|_| Ok(()),
    };
    verify(&play.bytes(), &evidence).unwrap_or_else(|it| panic!("{it:?}"));
}

// REQ: HKS-2
#[test]
fn refused_prompt_is_answered_by_no_model_and_is_gone_from_the_conversation() {
    let mut play = Play::new(World::with(
        hook("UserPromptSubmit", "", &["2 not that"]),
        vec![text("done"); 2],
    ));
    play.run("go");
    assert_eq!(play.ends[0], (RunEnd::HookStopped, Some("not that".into())));
    assert!(!play.log().contains("answer"), "{}", play.log());
    assert!(play.conversation.history.is_empty());
    play.world.layers = [vec![]].into();
    play.run("other");
    let texts_shown: Vec<_> = play.conversation.history.iter().map(|it| it.text()).collect();
    assert_eq!(texts_shown, ["other", "done"]);
    check(&play);
    let loaded = load(&play.bytes(), LoadAs::Session);
    let texts_shown: Vec<_> = loaded.recorded.iter().map(|it| it.text()).collect();
    assert_eq!(texts_shown, ["other", "done"]);
}

// REQ: HKS-4
#[test]
fn context_of_a_prompt_follows_it_and_a_session_starts_once() {
    let output = |event: &str, text: &str| {
        format!(
            r#"0 {{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":"{text}"}}}}"#
        )
    };
    let mut settings = hook("UserPromptSubmit", "", &[&output("UserPromptSubmit", "ctx")]);
    let start = hook("SessionStart", "startup", &[&output("SessionStart", "begun")]);
    settings["hooks"]["SessionStart"] = start["hooks"]["SessionStart"].clone();
    let mut play = Play::new(World::with(settings, vec![text("done"); 2]));
    play.run("go");
    play.run("again");
    let texts: Vec<_> = play.conversation.history.iter().map(|it| it.text()).collect();
    let added = |event: &str, text: &str| {
        format!("<system-reminder>\nA {event} hook adds:\n\n{text}\n</system-reminder>")
    };
    let (begun, ctx) = (added("SessionStart", "begun"), added("UserPromptSubmit", "ctx"));
    assert_eq!(texts, ["go", &*begun, &*ctx, "done", "again", &*ctx, "done"]);
    check(&play);
}

// REQ: HKS-4
#[test]
fn failed_call_fires_an_event_of_its_own_and_gets_its_context() {
    let says = r#"0 {"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"mind"}}"#;
    let hooks = hook("PostToolUseFailure", "Note", &[says]);
    let mut world = World::with(hooks, vec![calls(&["x:Note:x", "y:Nope:x"])]);
    world.outcomes.insert("x".into(), ToolOutcome::failed(ToolErrorKind::Failed, "broke"));
    let play = play(world);
    assert_eq!(play.log().matches("hook:PostToolUseFailure").count(), 1, "{}", play.log());
    assert!(result(&play).contains("\nmind\n"), "{}", result(&play));
    check(&play);
}

// REQ: HKS-4
#[test]
fn events_that_a_recorded_session_did_not_know_do_not_fire_in_it() {
    let mut world = World::with(hook("UserPromptSubmit", "", &["2 no"]), vec![text("done")]);
    std::sync::Arc::make_mut(&mut world.facts).revision = 5;
    let play = play(world);
    assert!(!play.log().contains("hook"), "{}", play.log());
    check(&play);
}

// REQ: HKS-2
#[test]
fn call_that_is_put_off_ends_the_run_if_it_is_the_only_one() {
    let says =
        r#"0 {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}"#;
    let hooks = || hook("PreToolUse", "Note", &[says]);
    let one = play(World::with(hooks(), vec![calls(&["x:Note:x"])]));
    assert_eq!(one.ends[0].0, RunEnd::ToolDeferred);
    check(&one);
    let two = play(World::with(hooks(), vec![calls(&["x:Note:x", "y:Note:y"]), text("done")]));
    assert_eq!(two.ends[0].0, RunEnd::NoPendingTools);
    assert!(two.alerts.iter().any(|it| it.contains("defer")), "{:?}", two.alerts);
}
