//! Hooks at what seldom happens: denials of a model, failures, loaded instructions, other directories.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::json;

use super::{
    appending::read_of,
    hooks::check,
    play::{Play, play},
    script::{calls, failure, hook, layer, text},
    world::World,
};
use crate::{
    approval::AnsweredBy,
    hook::HookEvent,
    permission::{PermissionMode, Scope},
    run::{
        RunEnd,
        facts::{FIRES_AT_BATCHES, HOOKS_START_AGENTS, REVISION},
    },
    step3_context_assembly::{InstructionFile, PathRule},
    step5_model_call::FailureClass,
    tool::{ToolNote, ToolOutcome},
    transcript::entry::RecordKind,
};

fn says(event: &str, field: &str) -> String {
    format!(r#"0 {{"hookSpecificOutput":{{"hookEventName":"{event}",{field}}}}}"#)
}

/// How often an event fired.
fn fired(play: &Play, event: HookEvent) -> usize {
    let of_event =
        |it: &RecordKind| matches!(it, RecordKind::Hook { event: of, .. } if *of == event);
    play.records().filter(|it| of_event(&it.what)).count()
}

/// A world in which a model decides about `make`, with these words.
fn auto(mut settings: serde_json::Value, verdict: &str) -> World {
    settings["permissions"] = json!({ "defaultMode": "auto" });
    let mut world = World::new(vec![calls(&["x:Bash:make"]), text("done")]);
    world.layers = [vec![layer(Scope::User, settings)]].into();
    world.verdicts = [text(verdict)].into();
    world
}

const DENIES: &str = r#"{"token":"TOKEN","verdict":"deny","reason":"rather not"}"#;
const ALLOWS: &str = r#"{"token":"TOKEN","verdict":"allow","reason":"fine"}"#;

fn read(play: &Play) -> String {
    play.conversation.history.iter().map(|it| format!("{:?}", it.blocks)).collect()
}

// REQ: HKS-1
#[test]
fn denial_of_a_model_fires_an_event_and_a_hook_may_let_the_model_try_again() {
    for (retry, shown) in [("true", true), ("false", false)] {
        let handler = says("PermissionDenied", &format!(r#""retry":{retry}"#));
        let play = play(auto(hook("PermissionDenied", "Bash", &[&handler]), DENIES));
        assert_eq!(fired(&play, HookEvent::PermissionDenied), 1, "{}", play.log());
        assert!(play.log().contains("error:x"), "{}", play.log());
        assert_eq!(read(&play).contains("try this call again"), shown, "{}", read(&play));
        check(&play);
    }
    let handler = says("PermissionDenied", r#""retry":true"#);
    let play = play(auto(hook("PermissionDenied", "Bash", &[&handler]), ALLOWS));
    assert_eq!(fired(&play, HookEvent::PermissionDenied), 0, "{}", play.log());
}

// REQ: HKS-1, HKS-4
#[test]
fn hook_of_a_denial_allows_nothing_whatever_it_answers() {
    let allow = r#""permissionDecision":"allow","decision":{"behavior":"allow"}"#;
    for handler in ["2 no", "1 no", "timeout", &says("PermissionDenied", allow)] {
        let play = play(auto(hook("PermissionDenied", "", &[handler]), DENIES));
        assert!(play.log().contains("error:x"), "{handler}: {}", play.log());
        check(&play);
    }
}

// REQ: HKS-1, PRM-4
#[test]
fn denial_counts_under_no_mode_that_was_set_while_its_hooks_ran() {
    let mut world = auto(hook("PermissionDenied", "", &["0"]), DENIES);
    world.mode_during = Some((AnsweredBy::Hook, PermissionMode::DontAsk));
    let play = play(world);
    assert_eq!(fired(&play, HookEvent::PermissionDenied), 1, "{}", play.log());
    let is_answer = |it: &RecordKind| matches!(it, RecordKind::Approval { .. });
    assert!(!play.records().any(|it| is_answer(&it.what)), "{}", play.log());
    assert!(play.log().contains("error:x"), "{}", play.log());
    check(&play);
}

// REQ: HKS-1
#[test]
fn failure_of_a_server_fires_an_event_by_its_kind_and_the_run_has_failed_all_the_same() {
    for (matcher, n_fired) in [("authentication_failed", 1), ("overloaded", 0), ("", 1)] {
        let world = World::with(
            hook("StopFailure", matcher, &["2 go on"]),
            vec![failure(FailureClass::Auth)],
        );
        let play = play(world);
        assert_eq!(fired(&play, HookEvent::StopFailure), n_fired, "{matcher}: {}", play.log());
        assert_eq!(play.ends[0].0, RunEnd::Error);
        check(&play);
    }
    let done = play(World::with(hook("StopFailure", "", &["0"]), vec![text("done")]));
    assert_eq!(fired(&done, HookEvent::StopFailure), 0);
}

// REQ: HKS-1
#[test]
fn call_that_moves_the_working_directory_fires_an_event_after_its_result() {
    let mut world = World::with(
        hook("CwdChanged", "", &["0"]),
        vec![calls(&["x:Note:x", "y:Note:y"]), calls(&["z:Note:z"]), text("done")],
    );
    let moves = |to: &str| ToolOutcome {
        notes: vec![ToolNote::CwdChanged { path: to.into() }],
        ..ToolOutcome::ok("moved")
    };
    world.outcomes = [("x".into(), moves("/w/src")), ("z".into(), moves("/w/src"))].into();
    let play = play(world);
    assert_eq!(fired(&play, HookEvent::CwdChanged), 1, "{}", play.log());
    assert!(play.log().contains("result:x hook:CwdChanged result:y"), "{}", play.log());
    check(&play);
}

// REQ: HKS-1
#[test]
fn hook_of_a_move_ends_the_run_after_all_calls_are_answered() {
    let stop = r#"0 {"continue":false,"stopReason":"not there"}"#;
    let mut world =
        World::with(hook("CwdChanged", "", &[stop]), vec![calls(&["x:Note:x", "y:Note:y"])]);
    let note = ToolNote::CwdChanged { path: "/w/src".into() };
    world.outcomes =
        [("x".into(), ToolOutcome { notes: vec![note], ..ToolOutcome::ok("moved") })].into();
    let play = play(world);
    assert!(play.log().ends_with("result:y 9 hook_stopped"), "{}", play.log());
    check(&play);
}

fn instructions(path: &str, scope: Scope) -> InstructionFile {
    InstructionFile { scope, path: path.into(), text: format!("what {path} wants") }
}

// REQ: HKS-1, CTX-3
#[test]
fn every_instruction_file_fires_an_event_when_it_enters_the_context_and_once() {
    let mut world = World::with(
        hook("InstructionsLoaded", "", &["0"]),
        vec![calls(&["x:Note:x"]), calls(&["y:Note:y"]), text("done")],
    );
    world.sources.instructions = vec![
        instructions("/h/.claude/CLAUDE.md", Scope::User),
        instructions("/w/CLAUDE.md", Scope::Project),
    ];
    let rule = PathRule {
        path: "/w/.claude/rules/r.md".into(),
        base: "/w".into(),
        paths: vec!["src/**".into()],
        text: "mind".into(),
    };
    world.sources.path_rules = vec![rule];
    world.nested = vec![("src".into(), instructions("/w/src/CLAUDE.md", Scope::Project))];
    world.outcomes = [("x".into(), read_of("/w/src/a.rs", "x".into()))].into();
    let play = play(world);
    let begins = "1 2 3 hook:InstructionsLoaded hook:InstructionsLoaded 4";
    assert!(play.log().starts_with(begins), "{}", play.log());
    assert_eq!(fired(&play, HookEvent::InstructionsLoaded), 4, "{}", play.log());
    check(&play);
}

// REQ: HKS-1
#[test]
fn matcher_of_loaded_instructions_is_the_reason() {
    for (matcher, n_fired) in [("session_start", 1), ("nested_traversal", 0), ("compact", 0)] {
        let mut world =
            World::with(hook("InstructionsLoaded", matcher, &["2 no"]), vec![text("done")]);
        world.sources.instructions = vec![instructions("/w/CLAUDE.md", Scope::Project)];
        let play = play(world);
        assert_eq!(fired(&play, HookEvent::InstructionsLoaded), n_fired, "{matcher}");
        assert_eq!(play.ends[0].0, RunEnd::NoPendingTools, "a hook changes nothing of it");
        check(&play);
    }
}

/// A conversation that is compacted once, with these hooks.
fn compacted(mut settings: serde_json::Value) -> Play {
    settings["ennead"] = json!({ "shapers": { "autoCompactMaxTokens": 3000 } });
    let answers = (0..14).map(|i| calls(&[&format!("t{i}:Note:{i}")])).collect();
    let mut world = World::with(settings, answers);
    let long = |i: usize| (format!("t{i}"), ToolOutcome::ok(format!("{i}").repeat(1500)));
    world.outcomes = (0..14).map(long).collect();
    world.summaries = [text("all was well")].into();
    play(world)
}

// REQ: HKS-1, HKS-4
#[test]
fn session_starts_again_after_a_compaction_and_its_context_is_in_the_next_request() {
    let adds = says("SessionStart", r#""additionalContext":"the sky is green""#);
    let play = compacted(hook("SessionStart", "compact", &[&adds]));
    let log = play.log();
    assert!(log.contains("summary auto_compact") && !log.starts_with("1 2 hook"), "{log}");
    assert!(log.contains("hook:SessionStart"), "{log}");
    let sent = |it: &crate::turn::effect::ModelCallOrder| {
        String::from_utf8_lossy(&it.request.body.to_bytes()).contains("the sky is green")
    };
    assert!(play.requests.iter().any(sent), "{log}");
    check(&play);
}

// REQ: HKS-1
#[test]
fn session_of_the_revision_before_fires_none_of_them() {
    let mut settings = hook("StopFailure", "", &["0"]);
    settings["hooks"]["InstructionsLoaded"] =
        hook("InstructionsLoaded", "", &["0"])["hooks"]["InstructionsLoaded"].clone();
    let mut world = World::with(settings, vec![failure(FailureClass::Auth)]);
    world.sources.instructions = vec![instructions("/w/CLAUDE.md", Scope::Project)];
    Arc::make_mut(&mut world.facts).revision = 11;
    let play = play(world);
    assert!(!play.log().contains("hook"), "{}", play.log());
    check(&play);
}

// REQ: HKS-1, HKS-4
#[test]
fn all_calls_of_an_answer_fire_one_event_and_in_earlier_sessions_none() {
    for (revision, n_fired) in [(REVISION, 2), (FIRES_AT_BATCHES - 1, 0)] {
        let settings = hook("PostToolBatch", "none of these", &["1 oops", "0"]);
        let answers = vec![calls(&["a:Read:a.rs", "b:Nope:x"]), text("done")];
        let mut world = World::with(settings, answers);
        Arc::make_mut(&mut world.facts).revision = revision;
        let play = play(world);
        assert_eq!(fired(&play, HookEvent::PostToolBatch), n_fired, "{revision}: {}", play.log());
        check(&play);
    }
}

// REQ: HKS-1
#[test]
fn agents_verify_for_hooks_and_in_earlier_sessions_none_does() {
    let handler = json!({"type": "agent", "prompt": "0 {\"ok\":false}"});
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [handler]}]}});
    for (revision, n_fired) in [(REVISION, 1), (HOOKS_START_AGENTS - 1, 0)] {
        let answers = vec![calls(&["a:Read:a.rs"]), text("done")];
        let mut world = World::with(settings.clone(), answers);
        Arc::make_mut(&mut world.facts).revision = revision;
        let play = play(world);
        assert_eq!(fired(&play, HookEvent::PreToolUse), n_fired, "{revision}: {}", play.log());
        assert_eq!(read(&play).contains("a PreToolUse hook objects"), n_fired == 1, "{revision}");
        check(&play);
    }
}

// REQ: HKS-1, HKS-3
#[test]
fn what_verifies_for_a_hook_fires_nothing_about_its_own_beginning_and_end() {
    let settings = json!({"hooks": {
        "SubagentStart": [{"hooks": [{"type": "command", "command": "0"}]}],
        "SubagentStop": [{"hooks": [{"type": "command", "command": "0"}]}],
    }});
    for (verifies, n_fired) in [(false, 1), (true, 0)] {
        let mut world = World::with(settings.clone(), vec![text("done")]);
        let facts = Arc::make_mut(&mut world.facts);
        (facts.agent, facts.verifies) = (Some("a".into()), verifies);
        let play = play(world);
        for event in [HookEvent::SubagentStart, HookEvent::SubagentStop] {
            assert_eq!(fired(&play, event), n_fired, "{event:?}: {}", play.log());
        }
    }
}

// REQ: HKS-1, HKS-4
#[test]
fn hook_at_the_start_has_the_user_say_more_with_a_prompt_that_is_not_refused() {
    for (refuses, shown) in [(false, 1), (true, 0)] {
        let start =
            says("SessionStart", r#""additionalContext":"ctx","initialUserMessage":"and <b>""#);
        let mut hooks = hook("SessionStart", "", &[&start]);
        if refuses {
            hooks["hooks"]["UserPromptSubmit"] =
                hook("UserPromptSubmit", "", &["2 no"])["hooks"]["UserPromptSubmit"].clone();
        }
        let mut play = Play::new(World::with(hooks, vec![text("done"); 2]));
        play.run("go");
        play.run("go on");
        let said = play.conversation.history.iter().filter(|it| it.text() == "and <b>").count();
        assert_eq!(said, shown, "{refuses}: {}", play.log());
        check(&play);
    }
}

// REQ: HKS-4
#[test]
fn hook_has_the_session_known_by_another_title_once() {
    let title = |event: &str, title: &str| {
        let command = says(event, &format!(r#""sessionTitle":{title}"#));
        json!([{"hooks": [{"type": "command", "command": command}]}])
    };
    for (revision, titles) in [(REVISION, &["first", "plan"][..]), (24, &[])] {
        let hooks = json!({"hooks": {
            "SessionStart": title("SessionStart", r#""first""#),
            "UserPromptSubmit": title("UserPromptSubmit", r#"" plan ""#),
            "Stop": title("Stop", r#""no""#),
        }});
        let mut world = World::with(hooks, vec![text("done"); 2]);
        Arc::make_mut(&mut world.facts).revision = revision;
        let mut play = Play::new(world);
        play.run("go");
        play.run("go on");
        assert_eq!(play.titles, titles, "{revision}");
        check(&play);
    }
}
