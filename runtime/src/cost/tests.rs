//! Sums are the same whichever way they are made, and nothing is counted twice.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    catalogue::{Catalogue, ModelFacts, Prices},
    step5_model_call::{FailureClass, ModelFailure},
    turn::tests::{
        play::Play,
        script::{answer, calls, failure, text},
        world::World,
    },
};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

fn account(input: u64, cost: Option<u64>) -> Account {
    Account::of_call(usage(input, 1), cost.map(Money))
}

/// The ledger of what was played.
fn ledger(play: &Play) -> CostLedger {
    let mut ledger = CostLedger::default();
    play.records().for_each(|it| ledger.note(&it.what));
    ledger
}

/// A dollar per million tokens of input, ten for output.
fn priced(answers: Vec<Result<crate::step5_model_call::ModelAnswer, ModelFailure>>) -> Play {
    let prices = Prices {
        input: 1_000_000,
        output: 10_000_000,
        cache_write_5m: 1_250_000,
        cache_write_1h: 2_000_000,
        cache_read: 100_000,
        web_search: None,
        long_prompt: None,
    };
    let facts = ModelFacts { id: "m".into(), prices: Some(prices), ..ModelFacts::default() };
    let mut play = Play::new(World::new(answers));
    play.conversation.memory.catalogue = Arc::new(Catalogue::of([facts]));
    play.run("go");
    play
}

// REQ: TRN-9
#[test]
fn retries_and_summaries_are_shown_apart() {
    let play = priced(vec![
        failure(FailureClass::StreamBroken),
        answer("max_tokens", vec![crate::block::Block::text("half")]),
        calls(&["a:Poll:x"]),
        text("done"),
    ]);
    let own = ledger(&play).own_accounts();
    assert_eq!((own.answers.calls, own.retries.calls, own.compactions.calls), (2, 2, 0));
    assert_eq!(own.total().unpriced, 0);
    assert!(Money(0) < own.answers.cost && Money(0) < own.retries.cost);
}

#[test]
fn what_a_failed_stream_had_used_is_paid_for() {
    let mut play = Play::new(World::new(vec![failure(FailureClass::StreamBroken), text("done")]));
    play.world.failed_usage = usage(500, 20);
    play.run("go");
    let own = ledger(&play).own_accounts();
    assert_eq!(own.retries.usage, usage(500, 20));
    // Without a price the amount is unknown, not nothing.
    assert_eq!((own.retries.known_cost(), own.retries.unpriced), (None, 1));
    let used: Usage =
        [own.answers.usage, own.retries.usage].into_iter().fold(Usage::default(), Add::add);
    assert_eq!(play.used, used);
}

#[test]
fn call_that_used_nothing_needs_no_price() {
    let refused = Account::of_call(Usage::default(), None);
    assert_eq!((refused.calls, refused.known_cost()), (1, Some(Money(0))));
}

#[test]
fn first_model_gets_its_name_later() {
    let mut ledger = CostLedger::default();
    ledger.count("", CallKind::Answer, account(5, Some(7)));
    ledger.count("m", CallKind::Answer, account(6, Some(8)));
    let named = ledger.named("m");
    assert_eq!(named.by_model().keys().map(|it| &**it).collect::<Vec<_>>(), ["m"]);
    assert_eq!(named.own_accounts().answers.cost, Money(15));
}

// REQ: MDL-8
#[test]
fn call_of_a_fallback_model_is_counted_under_its_name() {
    let play = priced(vec![text("hi")]);
    let mut ledger = CostLedger::default();
    for record in play.records() {
        let mut what = record.what.clone();
        if let RecordKind::ModelAttempt { model, .. } = &mut what {
            *model = Some("second".into());
        }
        ledger.note(&what);
    }
    assert_eq!(ledger.by_model().keys().map(|it| &**it).collect::<Vec<_>>(), ["second"]);
}

// REQ: SHP-7
#[test]
fn money_since_the_last_compaction_makes_the_next_one_due() {
    // 60 messages at 5 dollars; no other trigger holds.
    let long = (0..30).map(|i| calls(&[&format!("t{i}:Poll:{i}")])).collect::<Vec<_>>();
    let mut world = World::with(json!({ "ennead": { "maxTurns": 40 } }), long);
    world.outcomes = (0..30)
        .map(|i| (format!("t{i}"), crate::tool::ToolOutcome::ok(format!("{i} ").repeat(30))))
        .collect();
    let mut dear = Play::new(world);
    let prices = Prices {
        input: 0,
        output: 1_000_000_000_000,
        cache_write_5m: 0,
        cache_write_1h: 0,
        cache_read: 0,
        web_search: None,
        long_prompt: None,
    };
    let facts = ModelFacts { id: "m".into(), prices: Some(prices), ..ModelFacts::default() };
    dear.conversation.memory.catalogue = Arc::new(Catalogue::of([facts]));
    dear.run("go");
    assert!(dear.log.iter().any(|it| it == "auto_compact"), "{}", dear.log());
}

/// Who spent it (0 the top, the others in a chain below), what came of it, tokens, price.
fn attempts() -> impl Strategy<Value = Vec<(usize, u8, u64, Option<u64>)>> {
    proptest::collection::vec((0..4usize, 0..3u8, 1..1000u64, proptest::option::of(0..9u64)), 0..40)
}

proptest! {
    // REQ: AGT-7
    #[test]
    fn sum_of_attempts_is_that_of_the_runs_and_of_the_tree(attempts in attempts()) {
        let mut agents: Vec<CostLedger> = vec![CostLedger::default(); 4];
        let mut sum = Account::default();
        for (who, kind, tokens, price) in &attempts {
            let kind = [CallKind::Answer, CallKind::Retry, CallKind::Compaction][usize::from(*kind)];
            let call = account(*tokens, price.map(|it| it * tokens));
            agents[*who].count(["", "a", "b"][*who % 3], kind, call);
            sum = sum + call;
        }
        let own: Account = agents.iter().map(|it| it.own_accounts().total()).fold(Account::default(), Add::add);
        prop_assert_eq!(own, sum);
        // Each into the one above it, twice over.
        while 1 < agents.len() {
            let below = agents.pop().unwrap();
            let id = AgentId::from(format!("agent{}", agents.len()).as_str());
            let above = agents.last_mut().unwrap();
            prop_assert!(above.enter(id.clone(), below.clone()));
            prop_assert!(!above.enter(id, below));
        }
        prop_assert_eq!(agents[0].tree().total(), sum);
        let by_model = agents[0].by_model().values().map(Accounts::total).fold(Account::default(), Add::add);
        prop_assert_eq!(by_model, sum);
        // Over two runs of a session.
        let mut session = agents[0].clone();
        session.add(&agents[0]);
        prop_assert_eq!(session.tree().total(), sum + sum);
        let text = serde_json::to_string(&session).unwrap();
        prop_assert_eq!(serde_json::from_str::<CostLedger>(&text).unwrap(), session);
    }
}

// REQ: CTX-7, TRN-9
#[test]
fn caches_save_what_reading_is_cheaper_less_what_writing_is_dearer() {
    let models = Catalogue::built_in();
    let saved = |read: u64, written: u64, hour: u64| {
        let usage = Usage {
            cache_read_input_tokens: read,
            cache_creation_input_tokens: written,
            cache_creation_1h_input_tokens: hour,
            ..Usage::default()
        };
        let mut ledger = CostLedger::default();
        ledger.count("claude-haiku-4-5", CallKind::Answer, Account::of_call(usage, None));
        ledger.count("unheard-of", CallKind::Answer, Account::of_call(usage, None));
        ledger.saved_by_caches(&models).micro_usd()
    };
    // A dollar per million tokens; read for a tenth, written for 1.25 and 2 of it.
    assert_eq!(saved(1_000_000, 0, 0), 900_000);
    assert_eq!(saved(1_000_000, 1_000_000, 0), 650_000);
    assert_eq!(saved(1_000_000, 400_000, 400_000), 500_000);
    assert_eq!(saved(0, 1_000_000, 0), 0);
}
