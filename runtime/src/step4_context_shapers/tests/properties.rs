//! What holds of the chain on random histories.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use proptest::prelude::*;

use crate::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind, Messages, estimate_of},
    step1_settings_resolution::ShaperSettings,
    step4_context_shapers::{
        ShapedContext, ShaperSetup, Sharing, Stage,
        cap_watch::CapWatch,
        chain::{Shaped, shape},
        conformance::{ShaperCase, Summariser, invariants},
        trigger,
    },
    tokens::{Counting, Learned, Tokens},
};

/// A prompt and what came of it.
#[derive(Clone, Debug)]
struct PromptRun {
    prompt: usize,
    rounds: Vec<Round>,
    /// Whether it ends with an answer in words.
    answer: Option<usize>,
    /// A reminder of the harness is before the answer.
    has_reminder: bool,
}

/// One answer with calls, and their results.
#[derive(Clone, Debug)]
struct Round {
    thinking: Option<usize>,
    text: usize,
    results: Vec<usize>,
    /// Results come in one message, or in one each.
    is_split: bool,
    /// Calls are in one message each, as in transcripts that were written while streaming.
    is_apart: bool,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..60usize, 3 => 60..900usize, 1 => 900..6_000usize]
}

fn any_history() -> impl Strategy<Value = Messages> {
    let round = (
        prop::option::of(size()),
        size(),
        prop::collection::vec(size(), 1..5),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(thinking, text, results, is_split, is_apart)| Round {
            thinking,
            text,
            results,
            is_split,
            is_apart,
        });
    let run = (size(), prop::collection::vec(round, 0..6), prop::option::of(size()), any::<bool>())
        .prop_map(|(prompt, rounds, answer, has_reminder)| PromptRun {
            prompt,
            rounds,
            answer,
            has_reminder,
        });
    let open = prop::option::of(0..3usize);
    (prop::collection::vec(run, 0..8), open, any::<bool>(), any::<bool>()).prop_map(
        |(runs, open, has_summary, has_equal_ids)| build(&runs, open, has_summary, has_equal_ids),
    )
}

/// `open` is how many of its two calls the last answer already has results for.
fn build(
    runs: &[PromptRun],
    open: Option<usize>,
    has_summary: bool,
    has_equal_ids: bool,
) -> Messages {
    let mut list = MessageList { messages: Vec::new(), n_calls: 0, has_equal_ids };
    if has_summary && !runs.is_empty() {
        list.user(MessageKind::CompactSummary, vec![text(90)]);
    }
    for run in runs {
        list.user(MessageKind::Prompt, vec![text(run.prompt)]);
        for round in &run.rounds {
            list.round(round);
        }
        if run.has_reminder {
            list.user(MessageKind::Meta, vec![text(20)]);
        }
        if let Some(answer) = run.answer {
            list.answer(vec![text(answer)]);
        }
    }
    if let (Some(n_results), false) = (open, runs.is_empty()) {
        list.answer(vec![call("open1"), call("open2")]);
        for id in ["open1", "open2"].iter().take(n_results) {
            list.user(MessageKind::ToolResults, vec![result(id, 500)]);
        }
    }
    list.messages
}

struct MessageList {
    messages: Messages,
    n_calls: usize,
    has_equal_ids: bool,
}

impl MessageList {
    fn id(&self) -> EntryId {
        EntryId::new(format!("m{}", self.messages.len()))
    }

    fn user(&mut self, kind: MessageKind, blocks: Vec<Block>) {
        self.messages.push(Arc::new(Message::user(self.id(), kind, blocks)));
    }

    fn answer(&mut self, blocks: Vec<Block>) {
        self.messages.push(Arc::new(Message::answer(self.id(), "api", blocks)));
    }

    fn round(&mut self, round: &Round) {
        // Some providers count calls anew in each answer.
        let first = if self.has_equal_ids { 0 } else { self.n_calls };
        self.n_calls += round.results.len();
        let ids: Vec<_> = (0..round.results.len()).map(|i| format!("t{}", first + i)).collect();
        let mut blocks = Vec::new();
        blocks.extend(round.thinking.map(|n| Block::thinking(&"h".repeat(n), Some("sig"))));
        blocks.push(text(round.text));
        blocks.extend(ids.iter().map(|id| call(id)));
        if round.is_apart {
            blocks.into_iter().for_each(|it| self.answer(vec![it]));
        } else {
            self.answer(blocks);
        }
        let results: Vec<_> =
            ids.iter().zip(&round.results).map(|(id, n)| result(id, *n)).collect();
        if round.is_split {
            results.into_iter().for_each(|it| self.user(MessageKind::ToolResults, vec![it]));
        } else {
            self.user(MessageKind::ToolResults, results);
        }
    }
}

fn text(n: usize) -> Block {
    Block::text(&"aß語🙂".chars().cycle().take(n).collect::<String>())
}

/// Every other call reads or changes one of two files.
fn call(id: &str) -> Block {
    let number: usize = id.trim_start_matches(char::is_alphabetic).parse().unwrap();
    let (tool, input) = match number % 6 {
        1 => ("Read", r#"{"file_path":"a"}"#),
        3 => ("Read", r#"{"file_path":"b","offset":1,"limit":9}"#),
        5 => ("Edit", r#"{"file_path":"a"}"#),
        _ => ("Bash", r#"{"command":"ls"}"#),
    };
    Block::tool_use(&id.into(), &tool.into(), input)
}

fn result(id: &str, n: usize) -> Block {
    Block::tool_result(&id.into(), &"r語".chars().cycle().take(n).collect::<String>(), false)
}

prop_compose! {
    fn any_setup()(
        cap in prop_oneof![0..300u64, 300..5_000u64],
        gates in any::<[bool; 3]>(),
        keep in 0..8u32,
        is_idle in any::<bool>(),
        max_messages in prop_oneof![Just(200), 0..80u32],
        limit in 0..8_000u64,
        spent in prop_oneof![Just(0), Just(9_000_000)],
        is_exempt in any::<bool>(),
        prefix in prop_oneof![Just("r".to_owned()), Just("/a/long/path".repeat(20))],
        counting in prop_oneof![
            Just(Counting::Chars), Just(Counting::Classes(Learned::default().factor(|_| false)))
        ],
    ) -> ShaperSetup {
        ShaperSetup {
            settings: Arc::new(ShaperSettings {
                per_result_cap_chars: cap,
                history_snip: gates[0],
                context_collapse: gates[1],
                auto_compact: gates[2],
                auto_compact_max_tokens: Some(limit),
                max_messages,
                keep_newest: keep,
                exempt_tools: if is_exempt { vec!["Bash".into(), "Read".into(), "Edit".into()] } else { Vec::new() },
                ..ShaperSettings::default()
            }),
            context_budget: Tokens(10_000),
            trigger_override: None,
            fixed: Tokens(0),
            spent_micro_usd: spent,
            reference_prefix: prefix.into(),
            idle_ms: if is_idle { 3_600_000 } else { 0 },
            cold: None,
            exempt_tools: Arc::new([]),
            own_caps: Arc::new([]),
            grades: true,
        clears: true,
        keeps_frames: true,
        counts_cleared: true,
        clears_uncapped: true,
            sharing: Sharing::default(),
        summary_pause: 0,
        pauses_where_it_fits: true,
        asked: None,
        counting,
        }
    }
}

fn any_case() -> impl Strategy<Value = ShaperCase> {
    let summariser = prop_oneof![
        3 => Just(Summariser::Works), 1 => Just(Summariser::Fails), 1 => Just(Summariser::TooLong)
    ];
    (any_history(), any_setup(), summariser).prop_map(|(messages, setup, summariser)| {
        let tokens = setup.counting.tokens(estimate_of(&messages));
        ShaperCase { messages, tokens, setup, summariser }
    })
}

fn run(case: &ShaperCase) -> Shaped {
    let context = ShapedContext { messages: case.messages.clone().into(), tokens: case.tokens };
    shape(context, &case.setup, &"summary".into(), |it| case.summariser.answer(it))
}

proptest! {
    // REQ: SHP-8, SHP-13
    #[test]
    fn every_invariant_holds_on_random_histories(case in any_case()) {
        let shaped = run(&case);
        prop_assert_eq!(invariants::violated(&case, &shaped), Vec::<&str>::new());
    }

    // REQ: SHP-1, SHP-2, SHP-13
    #[test]
    fn each_stage_is_logged_and_one_that_fired_made_the_context_smaller(case in any_case()) {
        let shaped = run(&case);
        prop_assert!(shaped.log.iter().map(|it| it.stage).eq(Stage::ALL));
        for entry in &shaped.log {
            prop_assert!(entry.tokens_after <= entry.tokens_before);
            prop_assert!(entry.fired || entry.tokens_after == entry.tokens_before);
            prop_assert!(!entry.why.is_empty());
        }
        prop_assert_eq!(shaped.fired().next().is_some(), shaped.context.messages[..] != case.messages);
        let counted = case.setup.counting.tokens(estimate_of(shaped.context.messages.walk()));
        prop_assert_eq!(shaped.context.tokens, counted);
    }

    // REQ: SHP-10
    #[test]
    fn a_stage_that_is_off_never_fires(case in any_case()) {
        for stage in run(&case).fired() {
            let settings = &case.setup.settings;
            let is_on = match stage {
                Stage::BudgetReduction => !settings.exempt_tools.contains(&"Bash".to_owned()),
                Stage::Snip => settings.history_snip,
                Stage::Microcompact => !settings.exempt_tools.contains(&"Bash".to_owned()),
                Stage::ContextCollapse => settings.context_collapse,
                Stage::AutoCompact => settings.auto_compact,
                Stage::OverflowReduction => false,
            };
            prop_assert!(is_on, "{}", stage.name());
        }
    }

    // REQ: SHP-3
    #[test]
    fn watch_of_caps_says_of_a_growing_context_what_a_walk_over_it_says(
        case in any_case(),
        dropped in 0..20_usize,
    ) {
        let (mut watch, setup) = (CapWatch::default(), Arc::new(case.setup.clone()));
        let roomy = Arc::new(ShaperSetup {
            trigger_override: Some(Tokens(u64::MAX)),
            ..ShaperSetup::clone(&setup)
        });
        let all = &case.messages;
        let grown = (0..=all.len()).map(|n| &all[..n]);
        for messages in grown.chain([&all[dropped.min(all.len())..]]) {
            let context = ShapedContext::estimated(messages.to_vec());
            for setup in [&roomy, &setup] {
                let expected = trigger(Stage::BudgetReduction, &context, setup).map(drop);
                prop_assert_eq!(watch.trigger(&context, setup), expected);
            }
        }
    }
}
