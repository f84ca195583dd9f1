//! Money of a tree of agents.

use std::num::NonZeroU32;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ennead::RunEnd;
use ennead_runtime::catalogue::Money;
use serde_json::json;

use super::tree::{agent, parent_of, run};
use crate::support::scripted::{Scripted, TestDirs, call, model, text};
use crate::support::settings::SettingsJson as _;

/// At 2 dollars per million tokens of input and 10 of output.
const PRICED: &str = "claude-sonnet-5";

/// Has an agent do something in each turn; no two answers are equal.
fn delegating() -> Arc<Scripted> {
    let n = AtomicUsize::new(0);
    model(move |asked| {
        if asked.is_agent() {
            text(&format!("found {}", n.fetch_add(1, Ordering::SeqCst))).measured()
        } else {
            call(&format!("a{}", asked.n_answers()), "Agent", agent("look")).measured()
        }
    })
}

// REQ: AGT-7
#[tokio::test]
async fn money_of_a_tree_is_never_more_than_its_limit() {
    const LIMIT: u64 = 500_000;
    let place = TestDirs::new();
    let options = place
        .session()
        .model(PRICED)
        .max_turns(NonZeroU32::new(200).unwrap())
        .own_setting("maxOutputTokens", 10.into())
        .own_setting(
            "agents",
            json!({"maxTreeMicroUsd": LIMIT, "maxInTree": 200, "maxPerMinute": 200}),
        );
    let model = delegating();
    let outcome = run(&place, &model, options).await;
    assert_eq!(outcome.end, RunEnd::TreeLimit, "{:?}", outcome.error);
    let why = outcome.error.unwrap_or_default();
    assert!(why.starts_with("Budget limit reached: $0."), "{why}");
    let cost = outcome.cost.tree().total().known_cost().map(Money::micro_usd).unwrap();
    assert!((LIMIT / 2..=LIMIT).contains(&cost), "{cost}");
}

// REQ: AGT-7
#[tokio::test]
async fn model_without_a_price_is_asked_only_where_money_is_not_limited() {
    for (limits, end) in [
        (json!({"maxTreeMicroUsd": 1_000_000_000}), RunEnd::TreeLimit),
        (json!({}), RunEnd::NoPendingTools),
    ] {
        let place = TestDirs::new();
        let model = parent_of(1);
        let options = place.session().model("nobody-knows").own_setting("agents", limits);
        let outcome = run(&place, &model, options).await;
        assert_eq!(outcome.end, end);
        if end == RunEnd::TreeLimit {
            let why = outcome.error.unwrap_or_default();
            assert!(why.contains("`nobody-knows`") && why.contains("ennead.catalogue"), "{why}");
            assert!(model.asked().is_empty());
        }
    }
}
