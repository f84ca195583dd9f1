//! Sessions in order, and those that were changed afterwards.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::*;
use crate::{
    catalogue::{Catalogue, ModelFacts},
    digest::Digest,
    entropy::EntropyStream,
    run::{RunEnd, facts::REVISION},
    step::Step,
    step5_model_call::FailureClass,
    tool::{ToolOutcome, Truncation},
    transcript::{
        entry::{Record, StepDetail},
        trace,
    },
    turn::tests::{
        play::{Play, play},
        script::{answer, calls, failure, hook, text},
        world::World,
    },
};

// REQ: SES-4, TRN-13
#[test]
fn sessions_are_walked_again() {
    let tools =
        || vec![calls(&["a:Read:a.rs", "b:Edit:b.rs", "c:Nope:x", "d:Note:bad"]), text("done")];
    let added =
        r#"0 {"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"mind"}}"#;
    let updated =
        r#"0 {"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"a":1}}}"#;
    let batch = added.replace("PostToolUse", "PostToolBatch");
    let long = "x".repeat(20_000);
    let long_context = added.replace("mind", &long);
    let long_output = updated.replace(r#"{"a":1}"#, &format!("{long:?}"));
    for world in [
        World::new(vec![text("done")]),
        World::new(tools()),
        World::with(hook("PostToolUse", "", &[added, "1 oops"]), tools()),
        World::with(hook("PostToolUse", "", &[added, &long_context]), tools()),
        World::with(hook("PostToolUse", "", &[added, updated]), tools()),
        World::with(hook("PostToolUse", "", &[&long_output, added]), tools()),
        World::with(hook("PreToolUse", "", &["2 no"]), tools()),
        World::with(hook("Stop", "", &["2 again"]), tools()),
        World::with(hook("PostToolBatch", "", &[&batch, "1 oops"]), tools()),
        World::with(hook("PostToolBatch", "", &["2 no"]), tools()),
        World::with(json!({ "permissions": { "deny": ["Read(./a.rs)"] } }), tools()),
        World::new(vec![failure(FailureClass::StreamBroken), text("done")]),
        World::new(vec![failure(FailureClass::Auth)]),
        World::with(
            json!({ "fallbackModel": ["there/m-2"] }),
            vec![
                answer("pause_turn", vec![crate::block::Block::text("one")]),
                failure(FailureClass::Overloaded),
                failure(FailureClass::Overloaded),
                failure(FailureClass::Overloaded),
                answer("pause_turn", vec![crate::block::Block::text("two")]),
                text("three"),
            ],
        ),
        World::new(vec![text(" "), text("done")]),
        World::new(vec![answer("end_turn", vec![]); 2]),
        World::new(vec![answer("max_tokens", vec![crate::block::Block::text("half")]); 3]),
        World::new(vec![answer("pause_turn", vec![crate::block::Block::text("one")]), text("two")]),
        World::new(vec![calls(&["a:Poll:x"]); 40]),
    ] {
        let mut play = play(world);
        play.run("and then?");
        let turns = play.records().map(|it| (it.run.clone(), it.turn)).filter(|it| it.1 != 0);
        let turns: std::collections::BTreeSet<_> = turns.collect();
        assert_eq!(check(&play).turns, turns.len() as u64);
    }
}

/// Changes what the turn decided, if this record holds it.
fn change(what: &mut RecordKind) {
    match what {
        RecordKind::ModelAttempt { request: digest, .. }
        | RecordKind::ToolIntent { digest, .. } => {
            *digest = Digest::of(b"another");
        }
        RecordKind::Permission { decision, .. } => decision.allowed = false,
        RecordKind::ShapersPassed { tokens, .. }
        | RecordKind::Shaper { tokens_before: tokens, .. } => {
            tokens.0 += 1;
        }
        RecordKind::TurnStep { detail, .. } => match detail {
            StepDetail::Context { sizes, .. } => sizes[7] += 1,
            StepDetail::Stop { done, .. } => *done = true,
            StepDetail::Gate { allowed, .. } => *allowed += 1,
            StepDetail::State { messages, .. } => *messages += 1,
            _ => {}
        },
        _ => {}
    }
}

// REQ: SES-4, TRN-3
#[test]
fn the_first_line_that_was_changed_is_named_with_its_step() {
    let mut steps = Vec::new();
    let mut whole = play(World::new(vec![calls(&["a:Read:a.rs", "b:Edit:b.rs"])]));
    // So that the line says which record differs.
    whole.take_apart();
    for at in 0..whole.lines.len() {
        let mut changed = Play::new(World::new(Vec::new()));
        changed.lines.clone_from(&whole.lines);
        if let Line::Harness(record) = &mut changed.lines[at] {
            change(&mut record.what);
        }
        if changed.lines[at] == whole.lines[at] || steps.last() == Some(&Step::StopCheck) {
            continue;
        }
        match replay(&changed.bytes(), &|digest| whole.stored.get(&digest).cloned()) {
            Err(ReplayError::Differs { line, step, .. }) => {
                assert_eq!(line, at as u64 + 1);
                steps.push(step);
            }
            other => panic!("{other:?}"),
        }
    }
    steps.dedup();
    assert_eq!(
        steps,
        [
            Step::StateInitialization,
            Step::ContextAssembly,
            Step::ContextShaping,
            Step::ModelCall,
            Step::PermissionGate,
            Step::ToolExecution,
            Step::StopCheck,
        ]
    );
}

/// Changes one record of a session with a call that names a path, and replays.
fn changed(change: impl Fn(&mut Record)) -> Result<Replayed, ReplayError> {
    changed_of("a:Read:a.rs", change)
}

/// Changes one record of a session with such a call, and replays.
fn changed_of(call: &str, change: impl Fn(&mut Record)) -> Result<Replayed, ReplayError> {
    let whole = play(World::new(vec![calls(&[call]), text("done")]));
    let mut changed = Play::new(World::new(Vec::new()));
    changed.lines.clone_from(&whole.lines);
    for line in &mut changed.lines {
        if let Line::Harness(record) = line {
            change(record);
        }
    }
    replay(&changed.bytes(), &|digest| whole.stored.get(&digest).cloned())
}

// REQ: TRN-3
#[test]
fn path_that_was_judged_is_that_of_the_call() {
    type Change = fn(&mut crate::step7_permission_gate::ResolvedPath);
    let changes: [Change; 5] = [
        |it| it.given = "b.rs".into(),
        |it| it.lexical.push('x'),
        |it| it.real.push('x'),
        |it| it.passed.clear(),
        |it| it.passed[0].push('x'),
    ];
    assert!(changed(|_| {}).is_ok());
    for (i, change) in changes.iter().enumerate() {
        let found = changed(|it| {
            if let RecordKind::Path { path, .. } = &mut it.what {
                change(path);
            }
        });
        let step = Step::PermissionGate;
        assert!(
            matches!(&found, Err(ReplayError::Differs { step: it, .. }) if *it == step),
            "change {i}: {found:?}"
        );
    }
}

// REQ: TRN-3
#[test]
fn command_that_was_judged_before_there_were_classes_is_not_judged_again() {
    let replayed = |has_class| {
        changed_of("a:Bash:ls", |it| {
            if let RecordKind::Permission { decision, .. } = &mut it.what {
                decision.reason = "as the rules of that time had it".into();
                decision.class = decision.class.filter(|_| has_class);
            }
        })
    };
    assert_eq!(replayed(false).map(|it| it.turns), Ok(2));
    let found = replayed(true);
    assert!(matches!(found, Err(ReplayError::Differs { .. })), "{found:?}");
}

// REQ: TRN-3
#[test]
fn end_of_a_run_that_names_a_turn_is_not_what_the_session_makes() {
    let found = changed(|it| {
        if let RecordKind::RunEnd { .. } = it.what {
            it.turn = 1;
        }
    });
    assert!(matches!(found, Err(ReplayError::Decided { .. })), "{found:?}");
}

// REQ: SES-4
#[test]
fn warnings_about_entries_that_are_known_now_are_no_difference_in_earlier_sessions() {
    for (revision, is_same) in [(REVISION - 1, true), (REVISION, false)] {
        let mut world = World::new(vec![text("done")]);
        Arc::make_mut(&mut world.facts).revision = revision;
        let mut play = play(world);
        for line in &mut play.lines {
            if let Line::Harness(record) = line
                && let RecordKind::TurnStep {
                    detail: StepDetail::Settings { warnings, .. }, ..
                } = &mut record.what
            {
                *warnings += 1;
            }
        }
        let found = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
        assert_eq!(found.is_ok(), is_same, "{revision}: {found:?}");
    }
}

/// The same run twice, by the rules of a revision, with another end in the record of the first.
fn altered_end(revision: u32) -> Result<Replayed, ReplayError> {
    let mut world = World::new(vec![text("done"), text("done")]);
    let mut facts = (*world.facts).clone();
    facts.revision = revision;
    world.facts = Arc::new(facts);
    let mut play = play(world);
    play.run("and then?");
    for line in &mut play.lines {
        if let Line::Harness(record) = line
            && let RecordKind::RunEnd { usage, reason, .. } = &mut record.what
        {
            usage.output_tokens += 1;
            *reason = RunEnd::MaxTurns.code().into();
            break;
        }
    }
    replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned())
}

// REQ: SES-4
#[test]
fn sessions_of_older_rules_are_walked_again_by_their_turns_alone() {
    for revision in [1, 2, 3] {
        assert_eq!(altered_end(revision).map(|it| it.turns), Ok(2));
    }
    let found = altered_end(REVISION);
    assert!(matches!(found, Err(ReplayError::Decided { .. })), "{found:?}");
}

// REQ: TRN-3
#[test]
fn prompt_is_written_as_one_of_its_session() {
    let play = play(World::new(vec![text("done")]));
    let stored = |digest| play.stored.get(&digest).cloned();
    for (field, other) in [("session", "other"), ("workspace", "/elsewhere")] {
        let mut forged = Play::new(World::new(Vec::new()));
        forged.lines.clone_from(&play.lines);
        let mut facts = (*forged.world.facts).clone();
        match field {
            "session" => facts.session = other.into(),
            _ => facts.workspace = other.into(),
        }
        forged.world.facts = Arc::new(facts);
        let found = replay(&forged.bytes(), &stored);
        assert!(matches!(found, Err(ReplayError::WrongPrompt { line: 1, .. })), "{found:?}");
    }
}

// REQ: SES-4
#[test]
fn a_line_that_is_gone_is_noticed() {
    let whole = play(World::new(vec![calls(&["a:Read:a.rs", "b:Edit:b.rs"]), text("done")]));
    let is_of_a_turn = |line: &Line| match line {
        Line::Harness(record) => record.turn != 0,
        Line::Conversation(line) => line.message.kind != MessageKind::Prompt,
    };
    let stored = |digest| whole.stored.get(&digest).cloned();
    // The last line of a turn may be missing: then the turn ended before it.
    for at in (0..whole.lines.len() - 1).filter(|it| is_of_a_turn(&whole.lines[*it])) {
        let is_last = matches!(&whole.lines[at], Line::Harness(record) if matches!(
            record.what, RecordKind::TurnStep { number: 9, .. }));
        let mut changed = Play::new(World::new(Vec::new()));
        changed.lines.clone_from(&whole.lines);
        changed.lines.remove(at);
        assert!(is_last || replay(&changed.bytes(), &stored).is_err(), "line {}", at + 1);
    }
}

// REQ: SES-4
#[test]
fn texts_that_are_not_at_hand_are_named() {
    let play = play(World::new(vec![text("done")]));
    let replayed = replay(&play.bytes(), &|_| None);
    assert!(matches!(replayed, Err(ReplayError::NotStored { line: 2, .. })), "{replayed:?}");
    let forged = replay(&play.bytes(), &|_| Some("{}".into()));
    assert!(matches!(forged, Err(ReplayError::NotStored { .. })), "{forged:?}");
    assert_eq!(replay(b"", &|_| None), Ok(Replayed::default()));
    assert_eq!(replay(b"no transcript\n{}\n", &|_| None), Ok(Replayed::default()));
}

// REQ: SES-4, SES-3
#[test]
fn sessions_that_were_killed_and_opened_again_are_walked_again() {
    let usual: &[&str] = &["a:Read:a.rs", "b:Edit:b.rs"];
    // The first and the last are refused before the gate, the one between is asked about.
    let asked: &[&str] = &["a:Note:bad", "b:Bash:rm -rf /", "c:Nope:x"];
    let cases = (0..6).flat_map(|seed| (1..45).map(move |at| (seed, at)));
    for (answered, (seed, at)) in
        [usual, asked].into_iter().flat_map(|it| cases.clone().map(move |case| (it, case)))
    {
        let mut world = World::new(vec![calls(answered), text("done")]);
        // The draws of the order say how many of the last lines are lost.
        world.shuffle = (seed != 0).then(|| EntropyStream::from_seed(seed).child("order"));
        world.kill_at = Some(at);
        let mut play = play(world);
        play.run("and then?");
        play.reopen();
        play.run("and now?");
        check(&play);
    }
}

// REQ: SES-4
#[test]
fn words_that_do_not_fit_a_record_are_told_whole() {
    let mut failed = failure(FailureClass::Auth);
    if let Err(it) = &mut failed {
        it.message = "\u{1}".repeat(5000);
    }
    let path = format!("a:Read:{}/x.rs", "deep/".repeat(900));
    let mut world = World::new(vec![calls(&[&path, "b:Bash:no"]), failed]);
    world.layers = [Vec::new()].into();
    check(&play(world));
}

// REQ: SES-4, TRN-3
#[test]
fn output_that_was_cut_is_told_by_its_record_and_walked_again() {
    let stored_at = Some("/t/s/tool-results/a.txt".into());
    let cut = Truncation { original_chars: 30_000, kept_chars: 2_000, stored_at };
    let outcome = ToolOutcome { truncation: Some(cut.clone()), ..ToolOutcome::ok("begins") };
    let mut world = World::new(vec![calls(&["a:Read:a.rs"]), text("done")]);
    world.outcomes.insert("a".into(), outcome);
    let play = play(world);
    check(&play);
    let recorded = play.records().find_map(|it| match &it.what {
        RecordKind::ToolEnd { truncation, .. } => truncation.clone(),
        _ => None,
    });
    assert_eq!(recorded, Some(cut));
    let shown = trace::render(&play.bytes()).unwrap();
    let whole_text = "shown are 2000 of 30000 characters, all are in /t/s/tool-results/a.txt";
    assert!(shown.contains(whole_text), "{shown}");
}

// REQ: CTX-4, SES-4
#[test]
fn session_is_walked_again_with_what_was_known_about_models_then() {
    let facts = ModelFacts {
        id: "m".into(),
        window: 9_000,
        max_output: 4_000,
        default_output: 3_000,
        style: "Be terse.".into(),
        ..ModelFacts::default()
    };
    let over = json!({ "ennead": { "catalogue": { "models": { "m": { "max_output": 3_500 } } } } });
    let world = World::with(over, vec![calls(&["a:Poll:x"]), text("done")]);
    let mut play = Play::new(world);
    play.conversation.memory.catalogue = std::sync::Arc::new(Catalogue::of([facts]));
    play.run("go");
    play.run("and then?");
    let settings = &play.conversation.memory.resolved.as_ref().unwrap().settings;
    assert_eq!((settings.context_window, settings.model_max_output_tokens), (9_000, 3_500));
    let body = String::from_utf8(play.requests[0].request.body.to_bytes().to_vec()).unwrap();
    assert!(body.contains(r#""max_tokens":3000"#) && body.contains("Be terse."), "{body}");
    // The replay starts from an empty catalogue; it reads the facts off the first turn.
    assert_eq!(check(&play).turns, 3);
    let with_models = play.records().filter(|it| {
        let RecordKind::TurnStep { detail, .. } = &it.what else { return false };
        matches!(detail, StepDetail::Settings { models: Some(_), .. })
    });
    assert_eq!(with_models.count(), 1);
}
