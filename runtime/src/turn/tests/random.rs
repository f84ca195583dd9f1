//! Random worlds: no turn is ever stuck, and every tool use gets its result.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    play::Play,
    script::{allowing, answer, call, failure},
    world::World,
};
use crate::{
    block::Block,
    entropy::EntropyStream,
    hook::HookEvent,
    step4_context_shapers::Stage,
    step5_model_call::{
        FailureClass, InvalidInput, ModelAnswer, ModelFailure, wire_format::Provider,
    },
    tool::{FileSeen, ToolErrorKind, ToolNote, ToolOutcome},
    transcript::entry::{RecordKind, StepDetail},
};

/// Draws, one after another.
struct Draws(EntropyStream, u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.1 += 1;
        (self.0.draw("test", self.1) % u128::from(n)) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

fn words(draws: &mut Draws) -> String {
    let n = draws.of(&[0, 3, 40, 400, 3000]);
    draws.of(&["word ", "\"q\" ", "\u{1f600}\n", "<x> "]).repeat(n)
}

fn one_answer(draws: &mut Draws, n: usize) -> Result<ModelAnswer, ModelFailure> {
    use FailureClass as F;
    if draws.one_in(5) {
        let classes = [
            F::RateLimit,
            F::Overloaded,
            F::ContextOverflow,
            F::OutputOverflow,
            F::Network,
            F::StreamBroken,
            F::Refusal,
            F::Billing,
            F::Auth,
            F::InvalidRequest,
            F::MaxOutput,
            F::Quota,
            F::BadAnswer,
        ];
        let mut failed = failure(draws.of(&classes));
        if let Err(it) = &mut failed
            && draws.one_in(4)
        {
            it.message = words(draws);
            it.retry_after_ms = Some(draws.below(900_000));
        }
        return failed;
    }
    let mut blocks = Vec::new();
    if draws.one_in(4) {
        blocks.push(Block::thinking("hm", Some("c2ln")));
    }
    if draws.one_in(2) {
        blocks.push(Block::text(&words(draws)));
    }
    let mut invalid = Vec::new();
    let n_calls = draws.of(&[0, 1, 1, 2, 3, 5, 27]);
    for i in 0..n_calls {
        let tool = draws.of(&["Read", "Read", "Edit", "Bash", "Note", "Poll", "Fetch", "Nope"]);
        let value =
            draws.of(&["src/a.rs", "b.rs", "../x", "link/passwd", "no", "bad", "rm -rf /", "same"]);
        let id = if draws.one_in(30) { "twin".into() } else { format!("t{n}_{i}") };
        if draws.one_in(12) {
            invalid.push((
                id.as_str().into(),
                draws.of(&[InvalidInput::InvalidJson, InvalidInput::NotAnObject]),
            ));
        }
        blocks.push(call(&format!("{id}:{tool}:{value}")));
    }
    let usual = if n_calls == 0 { "end_turn" } else { "tool_use" };
    let stop = match draws.below(12) {
        0 => "max_tokens",
        1 => "pause_turn",
        2 => draws.of(&["refusal", "model_context_window_exceeded", "stop_sequence", "new_reason"]),
        _ => usual,
    };
    let mut answered = answer(stop, blocks);
    if let Ok(it) = &mut answered {
        it.invalid_inputs = invalid;
        it.usage.input_tokens = draws.below(5000);
    }
    answered
}

fn settings(draws: &mut Draws) -> Value {
    let handlers = |draws: &mut Draws, event: &str| {
        let says = |key: &str| {
            format!(r#"0 {{"hookSpecificOutput":{{"hookEventName":"{event}",{key}}}}}"#)
        };
        let commands = [
            "0".to_owned(),
            "0 plain".into(),
            "1 oops".into(),
            "2 blocked".into(),
            "timeout".into(),
            "crash".into(),
            "refused".into(),
            format!("0 {}", "long ".repeat(400)),
            r#"0 {"continue":false,"stopReason":"enough"}"#.into(),
            r#"0 {"decision":"block","reason":"again"}"#.into(),
            says(r#""additionalContext":"mind the gap""#),
            says(r#""permissionDecision":"deny""#),
            says(r#""permissionDecision":"ask""#),
            says(
                r#""permissionDecision":"allow","updatedInput":{"command":"ls","file_path":"z.rs"}"#,
            ),
        ];
        let n = draws.below(3);
        let list: Vec<_> = (0..n)
            .map(|_| {
                let command = &commands[draws.below(commands.len() as u64) as usize];
                json!({ "type": "command", "command": command, "onFailure": draws.of(&["ignore", "block"]) })
            })
            .collect();
        json!([{ "matcher": draws.of(&["", "Note|Read", "Bash"]), "hooks": list }])
    };
    let mut hooks = json!({});
    for event in HookEvent::ALL.map(HookEvent::name) {
        if draws.one_in(if event == "UserPromptSubmit" { 6 } else { 3 }) {
            hooks[event] = handlers(draws, event);
        }
    }
    let trigger = draws.of(&[300, 2000, 100_000]);
    json!({
        "hooks": hooks,
        "fallbackModel": draws.of(&[&[][..], &["m-2"], &["there/m-2", "m-3"]]),
        "permissions": { "deny": draws.of(&[&[][..], &["Note"], &["Bash(rm *)"], &["Read(./b.rs)"]]) },
        "ennead": {
            "maxTurns": 12,
            "maxRetries": draws.of(&[0, 2, 10]),
            "runTokenBudget": draws.of(&[20_000, 1_000_000]),
            "maxParallelCalls": draws.of(&[1, 2, 10]),
            "fail_closed": draws.one_in(4),
            "shapers": {
                "perResultCapChars": draws.of(&[500, 50_000]),
                "HISTORY_SNIP": draws.one_in(2),
                "CONTEXT_COLLAPSE": draws.one_in(2),
                "autoCompact": !draws.one_in(4),
                "autoCompactMaxTokens": trigger,
            },
        },
    })
}

fn outcome(draws: &mut Draws) -> ToolOutcome {
    let kinds = [
        ToolErrorKind::Failed,
        ToolErrorKind::TimedOut,
        ToolErrorKind::Interrupted,
        ToolErrorKind::InvalidInput,
        ToolErrorKind::TooManyCalls,
    ];
    let mut outcome = if draws.one_in(4) {
        ToolOutcome::failed(draws.of(&kinds), words(draws))
    } else {
        ToolOutcome::ok(words(draws))
    };
    outcome.duration_ms = draws.below(100);
    outcome.exit_code = draws.one_in(3).then_some(3);
    outcome.structured = match draws.below(4) {
        0 => Some(json!({ "b": words(draws), "a": 1.5 }).to_string()),
        1 => Some("no json".into()),
        2 => Some("{\n  \"z\": 1\n}".into()),
        _ => None,
    };
    if draws.one_in(3) {
        let seen = FileSeen {
            mtime_ns: 1,
            size: 2,
            digest: Default::default(),
            partial: false,
            cells: None,
        };
        outcome.notes.push(ToolNote::FileSeen { path: "/w/src/a.rs".into(), seen });
        outcome.notes.push(ToolNote::CwdChanged { path: words(draws) });
    }
    outcome
}

/// Three runs in a random world.
pub(crate) fn random(seed: u64) -> Play {
    runs(random_world(seed))
}

fn runs(world: World) -> Play {
    let mut play = Play::new(world);
    ["go", "and then?", "and now?"].into_iter().for_each(|it| play.run(it));
    play
}

pub(super) fn random_world(seed: u64) -> World {
    let mut draws = Draws(EntropyStream::from_seed(seed), 0);
    let draws = &mut draws;
    let mut world = World::new((0..40).map(|n| one_answer(draws, n)).collect());
    world.summaries = (0..10)
        .map(|n| if draws.one_in(2) { super::script::text("sum") } else { one_answer(draws, n) })
        .collect();
    world.layers = (0..1 + draws.below(3)).map(|_| vec![allowing(settings(draws))]).collect();
    for n in 0..40 {
        for i in 0..27 {
            if draws.one_in(3) {
                world.outcomes.insert(format!("t{n}_{i}"), outcome(draws));
            }
        }
    }
    world.sources.path_rules.push(crate::step3_context_assembly::PathRule {
        path: "/w/.claude/rules/r.md".into(),
        base: "/w".into(),
        paths: vec!["src/*.rs".into()],
        text: words(draws),
    });
    if draws.one_in(2) {
        let there = Provider { name: "there".into(), format: Default::default() };
        Arc::make_mut(&mut world.facts).providers.push(there);
    }
    if draws.one_in(8) {
        world.crashes.push(draws.of(&Stage::ALL));
    }
    world.shuffle = draws.one_in(2).then(|| EntropyStream::from_seed(seed).child("order"));
    world.echo = draws.one_in(2);
    world.prefix_stays = draws.one_in(2);
    world.stop_at = draws.one_in(4).then(|| draws.below(120));
    world.interrupt_at = draws.one_in(4).then(|| draws.below(120));
    world.kill_at = draws.one_in(4).then(|| draws.below(120));
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // REQ: TRN-1, TRN-11, RUN-2
    #[test]
    fn no_turn_is_stuck_and_every_tool_use_gets_one_result(seed in any::<u64>()) {
        let play = random(seed);
        prop_assert_eq!(play.ends.len(), 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // REQ: SES-4
    #[test]
    fn loading_a_transcript_gives_the_conversation_that_wrote_it(seed in any::<u64>()) {
        // What a killed process did not write is not in the file.
        check_loaded(seed);
    }
}

#[track_caller]
fn check_loaded(seed: u64) {
    let play = runs(World { kill_at: None, ..random_world(seed) });
    let load_as = crate::transcript::load::LoadAs::Session;
    let loaded = crate::transcript::load::load(&play.bytes(), load_as);
    let ids = |it: &crate::message::Messages| {
        it.iter().map(|it| format!("{:?} {}", it.kind, it.id)).collect::<Vec<_>>()
    };
    let history = play.conversation.history.to_messages();
    assert_eq!(ids(&loaded.recorded), ids(&history), "{}", play.log());
    assert_eq!(loaded.last, play.conversation.last_entry);
}

// REQ: SES-4
#[test]
fn mark_of_a_session_whose_prompts_were_all_withdrawn_is_loaded() {
    check_loaded(4_381_316_768_171_843_669);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    // REQ: TRN-3
    #[test]
    fn audit_finds_nothing_wrong(seed in any::<u64>()) {
        let play = runs(World { interrupt_at: None, kill_at: None, ..random_world(seed) });
        // The limit comes from settings that change from turn to turn; the audit knows one.
        let over = |it: &StepDetail| matches!(
            it, StepDetail::Stop { reason: Some(reason), .. } if reason == "budget_exceeded");
        prop_assume!(!play.records().any(|it| matches!(
            &it.what, RecordKind::TurnStep { detail, .. } if over(detail))));
        let evidence = crate::transcript::audit::Evidence {
            stored: &|digest| play.stored.get(&digest).cloned(),
            sidechain: &|_| None,
            checkpoint: None,
            run_budget: &|_| None,
            also: &|_| Ok(()),
        };
        let verified = crate::transcript::audit::verify(&play.bytes(), &evidence);
        prop_assert!(verified.is_ok(), "{:?} {}", verified, play.log());
    }
}
