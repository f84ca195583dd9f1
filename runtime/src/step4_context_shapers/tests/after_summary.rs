//! What dearer stages leave above the limit is relieved of old results in the same step.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use super::stages::{answer, call, prompt, results, setup};
use crate::{
    digest::Digest,
    step4_context_shapers::{
        chain::{Shaped, Summarised, shape},
        *,
    },
};

/// Old texts of 4,000 tokens together, and two rounds with a long result each.
fn context() -> ShapedContext {
    let mut messages = vec![prompt(0, 40)];
    messages.extend((1..5).map(|i| answer(i, 4_000)));
    for i in [5, 7] {
        let id = format!("t{i}");
        messages.extend([call(i, &id), results(i + 1, &[(&id, 4_000)])]);
    }
    ShapedContext::estimated(messages)
}

fn limited() -> ShaperSetup {
    setup(|it| {
        it.auto_compact_max_tokens = Some(1_500);
        it.keep_newest = 1;
    })
}

fn shaped(setup: &ShaperSetup, context: ShapedContext, works: bool) -> Shaped {
    let answer = |_: &SummaryRequest| {
        if works {
            Summarised::Text("short".into())
        } else {
            Summarised::Failed { why: "no".into() }
        }
    };
    shape(context, setup, &"s".into(), answer)
}

// REQ: SHP-7, SHP-8
#[test]
fn summary_that_leaves_too_much_clears_old_results_in_what_it_kept() {
    let (setup, before) = (limited(), context());
    let first = shaped(&setup, before.clone(), true);
    assert_eq!(first.fired().collect::<Vec<_>>(), [Stage::AutoCompact]);
    let why = &first.log[4].why;
    assert!(why.ends_with("; cleared 1 old results in what was left"), "{why}");
    let whole = "r".repeat(4_000);
    assert_eq!(first.stored, [(Digest::of(whole.as_bytes()), whole)]);
    let sizes: Vec<u64> = first.context.messages.iter().map(|it| it.blocks[0].chars()).collect();
    assert!(sizes[2] < 200 && sizes[4] == 4_000, "{sizes:?}");
    let second = shaped(&setup, first.context.clone(), true);
    assert_eq!((second.fired().next(), &second.context), (None, &first.context));

    let earlier = ShaperSetup { clears: false, ..setup.clone() };
    assert_eq!(shaped(&earlier, before.clone(), true).stored, [], "an earlier revision");
    let failed = shaped(&setup, before.clone(), false);
    assert_eq!(failed.context, before, "without a summary nothing is cleared");
}

// REQ: SHP-8
#[test]
fn collapse_that_leaves_too_much_clears_old_results_and_spares_the_summary() {
    let mut setup = limited();
    Arc::make_mut(&mut setup.settings).context_collapse = true;
    let before = context();
    let first = shaped(&setup, before, true);
    assert_eq!(first.fired().collect::<Vec<_>>(), [Stage::ContextCollapse]);
    assert_eq!(first.n_model_calls, 0);
    let second = shaped(&setup, first.context.clone(), true);
    assert_eq!((second.fired().next(), &second.context), (None, &first.context));
}
