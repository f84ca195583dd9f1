//! Stages one by one, at their limits.

use std::sync::Arc;

use crate::{
    block::Block,
    digest::Digest,
    ids::EntryId,
    message::{Message, MessageKind, Messages, tokens_of},
    step1_settings_resolution::ShaperSettings,
    step4_context_shapers::*,
    tokens::{Counting, Tokens},
};

pub(in crate::step4_context_shapers) fn setup(
    change: impl FnOnce(&mut ShaperSettings),
) -> ShaperSetup {
    let mut settings = ShaperSettings::default();
    change(&mut settings);
    ShaperSetup {
        settings: Arc::new(settings),
        context_budget: Tokens(1_000_000),
        trigger_override: None,
        fixed: Tokens(0),
        spent_micro_usd: 0,
        reference_prefix: "/kept".into(),
        idle_ms: 0,
        cold: None,
        exempt_tools: Arc::new([]),
        own_caps: Arc::new([]),
        sharing: Sharing::default(),
        grades: true,
        clears: true,
        keeps_frames: true,
        counts_cleared: true,
        clears_uncapped: true,
        summary_pause: 0,
        pauses_where_it_fits: true,
        asked: None,
        counting: Counting::Chars,
    }
}

pub(super) fn prompt(i: usize, chars: usize) -> Arc<Message> {
    Arc::new(Message::prompt(EntryId::new(format!("m{i}")), &"p".repeat(chars)))
}

pub(super) fn answer(i: usize, chars: usize) -> Arc<Message> {
    let blocks = vec![Block::text(&"a".repeat(chars))];
    Arc::new(Message::answer(EntryId::new(format!("m{i}")), "api", blocks))
}

pub(super) fn call(i: usize, id: &str) -> Arc<Message> {
    let blocks = vec![Block::tool_use(&id.into(), &"Bash".into(), "{}")];
    Arc::new(Message::answer(EntryId::new(format!("m{i}")), &format!("api{i}"), blocks))
}

pub(super) fn results(i: usize, of: &[(&str, usize)]) -> Arc<Message> {
    let result =
        |(id, n): &(&str, usize)| Block::tool_result(&(*id).into(), &"r".repeat(*n), false);
    let blocks = of.iter().map(result).collect();
    let id = EntryId::new(format!("m{i}"));
    Arc::new(Message::user(id, MessageKind::ToolResults, blocks))
}

fn talk(n: usize, chars: usize) -> Messages {
    (0..n).map(|i| if i % 2 == 0 { prompt(i, chars) } else { answer(i, chars) }).collect()
}

/// One prompt, and rounds of one call each.
fn long_run(n_rounds: usize, chars: usize) -> Messages {
    let mut messages = vec![prompt(0, 40)];
    for i in 0..n_rounds {
        let id = format!("t{i}");
        messages.push(call(2 * i + 1, &id));
        messages.push(results(2 * i + 2, &[(&id, chars)]));
    }
    messages
}

#[track_caller]
pub(super) fn changed(result: StageResult) -> (ShapedContext, Vec<(Digest, String)>) {
    match result {
        StageResult::Changed { context, stored, .. } => (context, stored),
        other => panic!("{other:?}"),
    }
}

fn ids(messages: &[Arc<Message>]) -> String {
    messages.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_pressure(messages: Messages, setup: &ShaperSetup, expected: Option<Trigger>) {
    assert_eq!(under_pressure(&ShapedContext::estimated(messages), setup), expected);
}

// REQ: SHP-7
#[test]
fn pressure_begins_above_70_percent_or_the_fixed_limit() {
    let percent = ShaperSetup { context_budget: Tokens(100), ..setup(|_| {}) };
    check_pressure(vec![prompt(0, 280)], &percent, None);
    check_pressure(vec![prompt(0, 281)], &percent, Some(Trigger::Tokens));
    let fixed = setup(|it| it.auto_compact_max_tokens = Some(10));
    check_pressure(vec![prompt(0, 40)], &fixed, None);
    check_pressure(vec![prompt(0, 41)], &fixed, Some(Trigger::Tokens));
    let forced = ShaperSetup { trigger_override: Some(Tokens(9)), ..fixed };
    check_pressure(vec![prompt(0, 40)], &forced, Some(Trigger::Tokens));
}

// REQ: SHP-7
#[test]
fn number_and_money_count_only_from_50_messages_on() {
    check_pressure(talk(199, 4), &setup(|_| {}), None);
    check_pressure(talk(200, 4), &setup(|_| {}), Some(Trigger::Messages));
    let few = setup(|it| it.max_messages = 10);
    check_pressure(talk(49, 4), &few, None);
    check_pressure(talk(50, 4), &few, Some(Trigger::Messages));
    let paid = |spent_micro_usd| ShaperSetup { spent_micro_usd, ..setup(|_| {}) };
    check_pressure(talk(50, 4), &paid(4_999_999), None);
    check_pressure(talk(50, 4), &paid(5_000_000), Some(Trigger::Cost));
    check_pressure(talk(49, 4), &paid(5_000_000), None);
}

// REQ: SHP-3
#[test]
fn cut_result_keeps_both_ends_and_the_whole_is_handed_back() {
    let setup = setup(|it| it.per_result_cap_chars = 1_000);
    let whole = format!("BEGIN{}END", "x".repeat(5_000));
    let result = Block::tool_result(&"t".into(), &whole, true);
    let message = Message::user("m2".into(), MessageKind::ToolResults, vec![result]);
    let context = ShapedContext {
        messages: vec![prompt(0, 4), call(1, "t"), Arc::new(message)].into(),
        tokens: Tokens(10_000),
    };
    let (after, stored) = changed(run_stage(Stage::BudgetReduction, &context, &setup));
    let (_, text, is_error) = after.messages[2].blocks[0].as_tool_result().unwrap();
    assert!(text.starts_with("BEGIN") && text.ends_with("END") && is_error);
    assert!(text.contains("of 5008 characters") && text.chars().count() <= 1_000);
    assert!(text.contains(&format!("/kept/{}.txt", stored[0].0)));
    assert_eq!(stored, [(Digest::of(whole.as_bytes()), whole)]);
    let freed = tokens_of(context.messages.walk()).saturating_sub(tokens_of(after.messages.walk()));
    assert_eq!(after.tokens, Tokens(10_000 - freed.0));
}

// REQ: SHP-3
#[test]
fn tools_may_declare_themselves_exempt() {
    let mut setup = setup(|it| it.per_result_cap_chars = 100);
    setup.exempt_tools = Arc::new(["Bash".into()]);
    let messages = vec![prompt(0, 4), call(1, "t"), results(2, &[("t", 500)])];
    let context = ShapedContext::estimated(messages);
    assert!(trigger(Stage::BudgetReduction, &context, &setup).is_err());
}

// REQ: SHP-3
#[test]
fn budget_of_a_result_is_the_tools_own_cap_if_that_is_larger() {
    for (own, chars, is_cut) in [
        (None, 1_001, true),
        (Some(2_000), 2_000, false),
        (Some(2_000), 2_001, true),
        (Some(9), 1_000, false),
    ] {
        let mut setup = setup(|it| it.per_result_cap_chars = 1_000);
        setup.own_caps = own.map(|cap| ("Bash".into(), cap)).into_iter().collect();
        let messages = vec![prompt(0, 4), call(1, "t"), results(2, &[("t", chars)])];
        let context = ShapedContext::estimated(messages);
        assert_eq!(trigger(Stage::BudgetReduction, &context, &setup).is_ok(), is_cut, "{own:?}");
        if is_cut {
            let (after, _) = changed(run_stage(Stage::BudgetReduction, &context, &setup));
            let limit = own.unwrap_or(1_000);
            assert!(after.messages[2].blocks[0].chars() <= limit, "{own:?}");
            assert!(trigger(Stage::BudgetReduction, &after, &setup).is_err(), "once is enough");
        }
    }
}

// REQ: SHP-3
#[test]
fn results_of_one_message_are_capped_together_under_pressure() {
    let uses = ["a", "b", "c", "d", "e", "f"];
    let blocks = uses.map(|id| Block::tool_use(&id.into(), &"Bash".into(), "{}"));
    let asked = Arc::new(Message::answer("m1".into(), "api", blocks.into()));
    let messages = vec![prompt(0, 4), asked, results(2, &uses.map(|id| (id, 3_000)))];
    let context = ShapedContext::estimated(messages);
    let calm = setup(|it| it.per_result_cap_chars = 3_000);
    assert!(trigger(Stage::BudgetReduction, &context, &calm).is_err());
    let pressed = ShaperSetup { trigger_override: Some(Tokens(10)), ..calm };
    let (after, _) = changed(run_stage(Stage::BudgetReduction, &context, &pressed));
    let total: u64 = after.messages[2].blocks.iter().map(Block::chars).sum();
    assert!(total <= 12_000, "{total}");
}

// REQ: SHP-3
#[test]
fn an_image_in_a_result_is_not_lost_with_its_text() {
    let wire = format!(
        r#"{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"image"}},{{"type":"text","text":"{}"}}]}}"#,
        "x".repeat(500)
    );
    let blocks = vec![Block::from_wire(&wire).unwrap()];
    let message = Arc::new(Message::user("m2".into(), MessageKind::ToolResults, blocks));
    let context = ShapedContext::estimated(vec![prompt(0, 4), call(1, "t"), message]);
    let setup = setup(|it| it.per_result_cap_chars = 300);
    let result = run_stage(Stage::BudgetReduction, &context, &setup);
    assert!(matches!(result, StageResult::Unchanged { .. }));
}

// REQ: SHP-5
#[test]
fn microcompact_clears_old_results_once_the_cache_is_cold_and_keeps_the_newest() {
    let idle = |minutes: u64| ShaperSetup { idle_ms: minutes * 60_000, ..setup(|_| {}) };
    let context = ShapedContext::estimated(long_run(6, 2_000));
    assert_eq!(trigger(Stage::Microcompact, &context, &idle(59)), Err("the cache is warm"));
    let (after, stored) = changed(run_stage(Stage::Microcompact, &context, &idle(60)));
    // The four newest messages hold two results; the four older ones are cleared.
    assert_eq!(stored.len(), 4);
    let sizes: Vec<u64> =
        after.messages.iter().skip(2).step_by(2).map(|it| it.blocks[0].chars()).collect();
    assert!(sizes[..4].iter().all(|it| *it < 200) && sizes[4..] == [2_000, 2_000], "{sizes:?}");
    assert!(after.tokens < context.tokens);
    assert!(trigger(Stage::Microcompact, &after, &idle(60)).is_err(), "once is enough");
    let mut named = idle(60);
    let mut settings = ShaperSettings::clone(&named.settings);
    settings.cached_microcompact = true;
    named.settings = Arc::new(settings);
    assert_eq!(
        run_stage(Stage::Microcompact, &context, &named),
        run_stage(Stage::Microcompact, &context, &idle(60))
    );
}

// REQ: SHP-4
#[test]
fn snip_is_gated_and_takes_the_freed_tokens_off_an_anchored_count() {
    let messages = talk(20, 400);
    let context = ShapedContext { messages: messages.into(), tokens: Tokens(2_600) };
    let off = setup(|it| it.auto_compact_max_tokens = Some(2_500));
    assert_eq!(trigger(Stage::Snip, &context, &off), Err("HISTORY_SNIP is off"));
    let on = setup(|it| {
        it.auto_compact_max_tokens = Some(2_500);
        it.history_snip = true;
    });
    let (after, _) = changed(run_stage(Stage::Snip, &context, &on));
    // 2,600 is anchored: 725 must go to reach 75 % of 2,500. The first prompt stays.
    assert_eq!(ids(&after.messages), format!("m0 {}", ids(&context.messages[10..])));
    assert_eq!(after.tokens, Tokens(1_700));
}

// REQ: SHP-4
#[test]
fn snip_within_a_long_run_keeps_its_prompt_and_whole_pairs() {
    let context = ShapedContext::estimated(long_run(20, 400));
    let setup = setup(|it| {
        it.auto_compact_max_tokens = Some(1_000);
        it.history_snip = true;
    });
    let (after, _) = changed(run_stage(Stage::Snip, &context, &setup));
    assert!(after.tokens <= Tokens(750));
    assert_eq!(after.messages[0].id, "m0".into());
    assert_eq!(after.messages[1].tool_uses().count(), 1);
}

// REQ: SHP-8
#[test]
fn response_that_stands_in_several_messages_is_not_torn() {
    let mut messages = vec![prompt(0, 4_000)];
    messages.push(Arc::new(Message::answer(
        "m1".into(),
        "one",
        vec![Block::thinking("hm", Some("s"))],
    )));
    messages
        .push(Arc::new(Message { api_id: Some("one".into()), ..Message::clone(&call(2, "t")) }));
    messages.push(results(3, &[("t", 40)]));
    messages.push(Arc::new(Message::answer("m4".into(), "two", vec![Block::text("done")])));
    messages.push(prompt(5, 40));
    let context = ShapedContext::estimated(messages);
    let request = shaper5_auto_compact::request(&context, &setup(|_| {}), None).unwrap();
    assert_eq!(request.preserved, Some(("m1".into(), "m5".into())));
}

#[test]
fn stale_summary_is_not_applied() {
    let (context, setup) = (ShapedContext::estimated(talk(20, 400)), setup(|_| {}));
    let request = shaper5_auto_compact::request(&context, &setup, Some("names")).unwrap();
    assert!(request.messages.last().unwrap().text().contains("names"));
    let mut later = context.clone();
    later.messages.push(prompt(20, 4));
    let id = EntryId::from("s");
    let on_later = apply_summary(&later, &setup, &request, "short", id.clone());
    assert!(matches!(on_later, StageResult::Unchanged { .. }));
    assert!(matches!(
        apply_summary(&context, &setup, &request, " ", id.clone()),
        StageResult::Unchanged { .. }
    ));
    let (after, _) = changed(apply_summary(&context, &setup, &request, "short", id));
    assert_eq!(ids(&after.messages), "s m16 m17 m18 m19");
    assert_eq!(request.preserved, Some(("m16".into(), "m19".into())));
}

// REQ: SHP-7
#[test]
fn request_that_is_too_long_loses_its_oldest_part_three_times_at_most() {
    let (context, setup) = (ShapedContext::estimated(long_run(40, 400)), setup(|_| {}));
    let mut request = shaper5_auto_compact::request(&context, &setup, None).unwrap();
    for _ in 0..3 {
        let smaller = shrink(&request).unwrap();
        assert!(tokens_of(&smaller.messages).0 * 4 < tokens_of(&request.messages).0 * 3);
        assert_eq!(smaller.messages.last(), request.messages.last());
        assert!(smaller.messages[0].text().contains("left out"));
        assert_eq!(smaller.messages[1].tool_uses().count(), 1);
        request = smaller;
    }
    assert_eq!(shrink(&request), None);
    let applied = apply_summary(&context, &setup, &request, "short", "s".into());
    assert!(matches!(applied, StageResult::Changed { .. }));
}

// REQ: SHP-8, SHP-13
#[test]
fn results_that_were_cleared_leave_less_than_the_limit_whatever_their_marks_weigh() {
    let mut setup = setup(|it| it.auto_compact_max_tokens = Some(700));
    setup.counting = Counting::Classes(crate::tokens::Learned::default().factor(|_| false));
    setup.reference_prefix = "/a/long/path".repeat(20).into();
    for chars in [900, 1_000, 1_200, 1_500, 2_000] {
        let messages = long_run(4, chars);
        let tokens = setup.counting.tokens(crate::message::estimate_of(&messages));
        let before = ShapedContext { messages: messages.into(), tokens };
        if let StageResult::Changed { context, .. } =
            run_stage(Stage::Microcompact, &before, &setup)
        {
            let again = run_stage(Stage::Microcompact, &context, &setup);
            assert!(matches!(again, StageResult::Unchanged { .. }), "{chars}: {again:?}");
        }
    }
}
