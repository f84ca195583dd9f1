//! Texts from outside that a stage has cut stay in their frames, in the bytes of requests.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    origins::{ATTACKS, file, n_exact, n_tags, open_at, texts},
    play::{Play, play},
    script::{calls, hook, text},
    world::World,
};
use crate::{
    run::facts::{KEEPS_FRAMES, REVISION, SessionFacts},
    step3_context_assembly::PathRule,
    step5_model_call::wire_format::WireFormat,
    tool::{FileSeen, ToolNote, ToolOutcome},
    turn::effect::Purpose,
};

/// A session in which long texts from outside are cut, each `shift` characters after its beginning.
fn cut(format: WireFormat, revision: u32, attack: &str, shift: usize) -> Play {
    let long = format!("{}{attack} {}{attack}", "x".repeat(shift), "word ".repeat(500));
    let says = |event: &str| {
        let specific = json!({ "hookEventName": event, "additionalContext": long });
        format!("0 {}", json!({ "hookSpecificOutput": specific }))
    };
    let events = ["PostToolUse", "UserPromptSubmit"];
    let hooks = events.map(|it| hook(it, "", &[&says(it)])["hooks"][it].clone());
    let by_event: serde_json::Map<_, _> = events.map(String::from).into_iter().zip(hooks).collect();
    let shapers = json!({ "shapers": {
        "CONTEXT_COLLAPSE": true, "autoCompact": false, "autoCompactMaxTokens": 2_000,
        "keepNewest": 1, "perResultCapChars": 1_500,
    } });
    let settings = json!({ "hooks": by_event, "ennead": shapers });
    let answers = (0..4).map(|n| calls(&[&format!("c{n}:Read:src/a.rs")]));
    let mut world = World::with(settings, answers.chain([text("done")]).collect());
    let facts: &mut SessionFacts = Arc::make_mut(&mut world.facts);
    (facts.providers[0].format, facts.revision) = (format, revision);
    world.sources.path_rules = vec![PathRule {
        path: "/w/.claude/rules/rust.md".into(),
        base: "/w".into(),
        paths: vec!["**/*.rs".into()],
        text: long.clone(),
    }];
    world.nested = vec![("src".into(), file("/w/src/CLAUDE.md", long.clone()))];
    for n in 0..4 {
        let seen = FileSeen {
            mtime_ns: 1,
            size: 2,
            digest: Default::default(),
            partial: false,
            cells: None,
        };
        let notes = vec![ToolNote::FileSeen { path: "/w/src/a.rs".into(), seen }];
        world.outcomes.insert(format!("c{n}"), ToolOutcome { notes, ..ToolOutcome::ok(&*long) });
    }
    play(world)
}

/// What is wrong with the frames of the requests, and how many texts with a frame were cut.
fn check(play: &Play) -> (Vec<String>, usize) {
    let (mut wrong, mut n_cut) = (Vec::new(), 0);
    for request in play.requests.iter().filter(|it| it.purpose == Purpose::Turn) {
        let body: Value = serde_json::from_slice(&request.request.body.to_bytes()).unwrap();
        let mut found = Vec::new();
        texts(&body, false, false, &mut found);
        for (text, in_result, of_model) in found {
            let text = text.replace("Text between <system-reminder> tags", "");
            let open = open_at(&text, text.len());
            if n_tags(&text) != n_exact(&text) || open != Ok(Vec::new()) {
                wrong.push(text.clone());
            }
            for (at, _) in text.match_indices("OBEY").filter(|_| !in_result) {
                if of_model || open_at(&text, at).is_ok_and(|it| it.is_empty()) {
                    wrong.push(text.clone());
                }
            }
            let marks = text.match_indices(" characters left out; the whole text is in ");
            for (at, _) in marks.filter(|_| text.contains("<system-reminder>")) {
                n_cut += 1;
                if open_at(&text, at) != Ok(Vec::new()) {
                    wrong.push(text.clone());
                }
            }
        }
    }
    (wrong, n_cut)
}

// REQ: CTX-6, SHP-6
#[test]
fn text_that_was_cut_ends_in_its_frame_in_all_wire_formats() {
    for format in
        [WireFormat::AnthropicMessages, WireFormat::OpenAiChat, WireFormat::OpenAiResponses]
    {
        for (n, attack) in ATTACKS.into_iter().enumerate() {
            // The cut falls before, into and after what attacks.
            for shift in [0, 60 + 11 * n, 150, 190] {
                let play = cut(format, REVISION, attack, shift);
                let (wrong, n_cut) = check(&play);
                assert_eq!(wrong, Vec::<String>::new(), "{format:?}, {shift}");
                assert!(0 < n_cut, "{format:?}, {shift}: {}", play.log());
                play.check_replay();
            }
        }
    }
}

// REQ: CTX-6, SES-4
#[test]
fn cuts_of_an_earlier_session_are_made_again_as_they_were() {
    let play = cut(WireFormat::AnthropicMessages, KEEPS_FRAMES - 1, ATTACKS[0], 0);
    let (wrong, _) = check(&play);
    assert_ne!(wrong, Vec::<String>::new());
    play.check_replay();
}
