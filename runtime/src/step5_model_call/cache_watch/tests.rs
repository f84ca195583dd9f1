//! What is reported about drops, by what was done to the request.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{
    block::Block,
    message::Role,
    step5_model_call::{
        fixture::tool,
        request::{CachePlan, PromptCaching},
        view::ViewMessage,
        wire_format::WireFormat,
    },
    tool::ToolSpec,
};

const MINUTE: u64 = 60_000;

fn head() -> RequestHead {
    RequestHead {
        model: "m".into(),
        max_tokens: 100,
        stream: true,
        system: vec!["base".into(), "git".into()],
        tools: vec![tool("A").into(), tool("B").into()],
        cache: CachePlan { caching: PromptCaching::FiveMinutes, n_static: 1 },
        parameters: Default::default(),
    }
}

fn view(texts: &[&str]) -> View {
    let message = |(i, text): (usize, &&str)| ViewMessage {
        role: if i % 2 == 0 { Role::User } else { Role::Assistant },
        blocks: text.split('|').map(Block::text).collect(),
    };
    View { messages: texts.iter().enumerate().map(message).collect(), notes: Vec::new() }
}

fn usage(read: u64, written: u64) -> Usage {
    Usage {
        input_tokens: 10,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        ..Usage::default()
    }
}

/// A session of two requests. The first one writes 9,000 tokens and reads 1,000.
struct Case {
    head: RequestHead,
    texts: Vec<&'static str>,
    summary: Option<bool>,
    minutes: u64,
    min_cached: u32,
    usage: Usage,
}

fn case() -> Case {
    Case {
        head: head(),
        texts: vec!["hi|there", "ho", "go on"],
        summary: None,
        minutes: 1,
        min_cached: 0,
        usage: usage(0, 10_000),
    }
}

fn event(case: Case) -> Option<PromptCacheEvent> {
    let mut watch = CacheWatch::default();
    let mut chain = PrefixChain::default();
    let mut ask = |watch: &mut CacheWatch, head: RequestHead, texts: &[&str]| {
        let (head, view) = (EncodedHead::new(head), view(texts));
        WireFormat::AnthropicMessages.encode(&head, &view, &mut chain);
        watch.note_sent(&head, &view.clone().into(), &chain);
    };
    ask(&mut watch, head(), &["hi|there"]);
    assert_eq!(watch.note_answer(&usage(1_000, 9_000), Timestamp(5_000), 4_000, 0), None);
    if let Some(summary) = case.summary {
        watch.shaped(summary);
    }
    // One that fails and is asked again changes nothing about it.
    ask(&mut watch, case.head.clone(), &case.texts);
    ask(&mut watch, RequestHead { max_tokens: 7, stream: false, ..case.head }, &case.texts);
    let now = Timestamp(1_000 + case.minutes * MINUTE + 300);
    watch.note_answer(&case.usage, now, 300, case.min_cached)
}

#[track_caller]
fn check(case: Case, unexpected: bool, reason: DropReason, at: Option<&str>) {
    let expected = PromptCacheEvent {
        unexpected,
        reason,
        at: at.map(Into::into),
        previous: 10_000,
        current: case.usage.cache_read_input_tokens,
        token_drop: 10_000 - case.usage.cache_read_input_tokens,
    };
    assert_eq!(event(case), Some(expected));
}

// REQ: CTX-7
#[test]
fn drop_names_the_first_part_that_differs_and_why() {
    use DropReason::*;
    let base = case;
    check(base(), true, ServerSide, None);
    let other = RequestHead { model: "n".into(), ..head() };
    let place = Some("model n in place of m");
    check(Case { head: other, ..base() }, false, ModelSwitched, place);
    let changed = ToolSpec { description: "does more".into(), ..tool("B") };
    let tools = |tools: Vec<ToolSpec>| RequestHead {
        tools: tools.into_iter().map(Into::into).collect(),
        system: vec!["other".into()],
        ..head()
    };
    for (head, place) in [
        (tools(vec![tool("A"), changed]), "tool B"),
        (tools(vec![tool("A"), tool("AA"), tool("B")]), "tool AA in place of B"),
        (tools(vec![tool("A"), tool("B"), tool("C")]), "tool C is new"),
        (tools(vec![tool("A")]), "tool B is gone"),
    ] {
        check(Case { head, ..base() }, true, ToolsChanged, Some(place));
    }
    let other = RequestHead { system: vec!["base".into(), "svn".into()], ..head() };
    check(Case { head: other, ..base() }, true, SystemChanged, Some("system segment 1"));
    let texts = vec!["hi|you", "ho", "go on"];
    let place = Some("message 0, block 1");
    check(Case { texts: texts.clone(), ..base() }, true, MessageChanged, place);
    let shaped = Case { texts: texts.clone(), summary: Some(false), ..base() };
    check(shaped, false, ContextShaped, place);
    check(Case { texts, summary: Some(true), ..base() }, false, Compaction, place);
    check(Case { texts: vec!["hi"], ..base() }, true, MessageChanged, Some("end of message 0"));
}

// REQ: CTX-7
#[test]
fn time_and_minimum_explain_a_drop_only_when_nothing_differs() {
    use DropReason::*;
    check(Case { minutes: 5, ..case() }, true, ServerSide, None);
    check(Case { minutes: 6, ..case() }, false, Expired, None);
    let texts = vec!["ha", "ho", "go on"];
    check(Case { minutes: 6, texts, ..case() }, true, MessageChanged, Some("message 0, block 0"));
    let below = Case { min_cached: 4_096, usage: usage(0, 0), ..case() };
    check(below, false, BelowMinimum, None);
    let hour =
        RequestHead { cache: CachePlan { caching: PromptCaching::OneHour, n_static: 1 }, ..head() };
    let mut watch = CacheWatch::default();
    let (head, view) = (EncodedHead::new(hour), view(&["hi"]));
    let chain = PrefixChain::default();
    for (minutes, reason) in [(0, None), (30, Some(ServerSide)), (30 + 61, Some(Expired))] {
        watch.note_sent(&head, &view.clone().into(), &chain);
        let event = watch.note_answer(&usage(0, 5_000), Timestamp(minutes * MINUTE), 0, 0);
        assert_eq!(event.map(|it| it.reason), reason);
    }
}

// REQ: CTX-7
#[test]
fn little_that_is_missing_is_no_drop() {
    let told_of = |read| event(Case { usage: usage(read, 0), ..case() }).map(|it| it.token_drop);
    // Five in a hundred of 10,000 would be 500; less than 1,024 are not reported.
    assert_eq!(told_of(10_000), None);
    assert_eq!(told_of(8_977), None);
    assert_eq!(told_of(8_976), Some(1_024));
    assert_eq!(told_of(20_000), None);
    let mut watch = CacheWatch::default();
    let (head, view, chain) = (EncodedHead::new(head()), view(&["hi"]), PrefixChain::default());
    let mut answered = |read, written| {
        watch.note_sent(&head, &view.clone().into(), &chain);
        watch.note_answer(&usage(read, written), Timestamp(0), 0, 0).is_some()
    };
    assert!(!answered(0, 100_000));
    assert!(!answered(95_001, 4_999));
    assert!(answered(95_000, 0));
    // An answer without a request is passed over.
    assert_eq!(CacheWatch::default().note_answer(&usage(0, 0), Timestamp(0), 0, 0), None);
}
