//! What waits for a slow listener, and what it gets of it. Built under `#[cfg(test)]` only.

use std::sync::Arc;

use ennead_runtime::{
    event::{Event, Numbered, Weight},
    step::Step,
    tokens::Usage,
};
use proptest::prelude::*;

use super::{Backlog, CAPACITY, EventGap, Full, JOIN_FROM, MAX_BYTES, MAX_JOINED};

fn text(text: &str) -> Event {
    Event::TextDelta { attempt: 1, text: text.into() }
}

fn reasoning(text: &str) -> Event {
    Event::ReasoningDelta { attempt: 1, text: text.into() }
}

fn preview(call: &str, input: &str) -> Event {
    Event::ToolInputPreview {
        attempt: 1,
        call: call.into(),
        tool: "Read".into(),
        input: input.into(),
    }
}

fn step() -> Event {
    Event::StepStarted { turn: 1, step: Step::ModelCall }
}

fn kept(n: usize) -> Event {
    Event::Alert { what: n.to_string().into() }
}

fn completed(text: &str) -> Event {
    Event::MessageCompleted { attempt: 1, text: text.into(), usage: Usage::default() }
}

fn of_agent(event: Event) -> Event {
    Event::Agent { agent: "a".into(), event: Arc::new(event) }
}

/// A backlog that holds this many kept events, numbered from 1.
fn filled(n: usize) -> (Backlog, u64) {
    let mut backlog = Backlog::default();
    for n in 1..=n {
        backlog.push(n as u64, &kept(n)).unwrap();
    }
    (backlog, n as u64)
}

fn read(backlog: &mut Backlog) -> Vec<Numbered> {
    std::iter::from_fn(|| backlog.pop()).collect()
}

/// What is read after `n` kept events, of the events given.
#[track_caller]
fn check(n: usize, events: &[Event], expected: &[(u64, u64, u64, Event)]) {
    let (mut backlog, before) = filled(n);
    for (seq, event) in (before + 1..).zip(events) {
        backlog.push(seq, event).unwrap();
    }
    let found: Vec<_> = read(&mut backlog)
        .into_iter()
        .skip(n)
        .map(|it| (it.first_seq - before, it.seq - before, it.stands_for, it.event))
        .collect();
    assert_eq!(found, expected);
    assert_eq!((backlog.len(), backlog.n_bytes()), (0, 0));
}

// REQ: MDL-3
#[test]
fn listener_that_keeps_up_gets_every_event_as_it_is() {
    let events = [text("a"), text("b"), step(), step(), preview("c", "{}"), preview("c", "{}")];
    let alone: Vec<_> = (1..).zip(&events).map(|(n, it)| (n, n, 1, it.clone())).collect();
    check(0, &events, &alone);
    check(JOIN_FROM - events.len(), &events, &alone);
}

// REQ: MDL-3
#[test]
fn deltas_join_and_notes_give_way_once_the_listener_is_behind() {
    check(
        JOIN_FROM,
        &[text("a"), text("b"), reasoning("c"), text("d"), reasoning("e"), completed("abd")],
        &[(1, 4, 3, text("abd")), (3, 5, 2, reasoning("ce")), (6, 6, 1, completed("abd"))],
    );
    check(
        JOIN_FROM,
        &[step(), step(), preview("c", "{}"), preview("d", "[]"), preview("c", "{1}"), kept(0)],
        &[
            (1, 2, 2, step()),
            (3, 5, 2, preview("c", "{1}")),
            (4, 4, 1, preview("d", "[]")),
            (6, 6, 1, kept(0)),
        ],
    );
    // Nothing goes past a kept event.
    check(
        JOIN_FROM,
        &[text("a"), kept(0), text("b"), text("c")],
        &[(1, 1, 1, text("a")), (2, 2, 1, kept(0)), (3, 4, 2, text("bc"))],
    );
    // Notes of sub-agents are left out, and counted.
    check(JOIN_FROM, &[of_agent(step()), of_agent(kept(0))], &[(1, 2, 2, of_agent(kept(0)))]);
}

// REQ: MDL-3
#[test]
fn joined_text_is_bounded_and_stays_the_beginning_of_its_message() {
    let half = "x".repeat(MAX_JOINED / 2);
    check(
        JOIN_FROM,
        &[text(&half), text(&half), text("y"), text("z"), completed("whole"), text("new")],
        &[(1, 2, 2, text(&half.repeat(2))), (3, 5, 3, completed("whole")), (6, 6, 1, text("new"))],
    );
    // Also when the listener has caught up in between.
    let (mut backlog, seq) = filled(JOIN_FROM);
    backlog.push(seq + 1, &text(&half.repeat(2))).unwrap();
    backlog.push(seq + 2, &text("y")).unwrap();
    read(&mut backlog);
    backlog.push(seq + 3, &text("z")).unwrap();
    assert_eq!(backlog.len(), 0);
    backlog.push(seq + 4, &Event::Withdrawn { attempt: 1 }).unwrap();
    backlog.push(seq + 5, &text("a")).unwrap();
    let stand: Vec<_> = read(&mut backlog).iter().map(|it| (it.first_seq, it.stands_for)).collect();
    assert_eq!(stand, [(seq + 2, 3), (seq + 5, 1)]);
}

// REQ: MDL-3
#[test]
fn thousand_kept_events_wait_and_not_one_more() {
    let mut backlog = Backlog::default();
    let mut seq = 0;
    // A thousand kept events and ten thousand others, mixed.
    for n in 1..=CAPACITY {
        for light in 0..10 {
            seq += 1;
            let light = match light % 3 {
                0 => text("abc"),
                1 => step(),
                _ => preview("c", "{}"),
            };
            backlog.push(seq, &light).unwrap();
            assert!(backlog.len() <= CAPACITY);
        }
        seq += 1;
        backlog.push(seq, &kept(n)).unwrap();
    }
    assert_eq!(backlog.len(), CAPACITY);
    assert_eq!(backlog.push(seq + 1, &text("x")), Ok(()), "it is left out");
    assert_eq!(backlog.push(seq + 2, &kept(0)), Err(Full));
    let all = read(&mut backlog);
    let alerts: Vec<_> = all.iter().map(|it| it.event.clone()).collect();
    assert_eq!(alerts, (1..=CAPACITY).map(kept).collect::<Vec<_>>());
    assert_eq!(all.iter().map(|it| it.stands_for).sum::<u64>(), seq);
    assert_eq!(backlog.take_left_out(), Some(EventGap { first_seq: seq + 1, count: 1 }));
}

// REQ: MDL-3
#[test]
fn bytes_are_bounded_as_well() {
    let large = "x".repeat(MAX_BYTES / 8);
    let mut backlog = Backlog::default();
    for seq in 1..=8 {
        backlog.push(seq, &completed(&large)).unwrap();
    }
    assert_eq!(backlog.push(9, &completed("x")), Err(Full));
    assert_eq!(backlog.n_bytes(), MAX_BYTES);
    assert_eq!(read(&mut backlog).len(), 8);
    // One alone may be larger.
    assert_eq!(backlog.push(10, &completed(&large.repeat(9))), Ok(()));
    assert_eq!(backlog.push(11, &completed("")), Err(Full));
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(text("abc")),
        2 => Just(reasoning("de")),
        2 => Just(step()),
        1 => (0..4_u8).prop_map(|it| preview(&it.to_string(), "{}")),
        1 => Just(of_agent(step())),
        4 => Just(kept(0)),
        1 => Just(completed("whole")),
        1 => Just(text(&"x".repeat(MAX_JOINED / 3))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // REQ: MDL-3
    #[test]
    fn kept_events_come_all_in_order_and_every_event_is_counted_once(
        ahead in 0..CAPACITY,
        todo in proptest::collection::vec((any_event(), 0..4_usize), 0..1500),
    ) {
        let (mut backlog, mut seq) = filled(ahead);
        let (mut got, mut expected) = (Vec::new(), Vec::new());
        for n in 1..=ahead {
            expected.push(kept(n));
        }
        let mut is_full = false;
        for (event, n_read) in todo {
            seq += 1;
            match backlog.push(seq, &event) {
                Ok(()) if event.weight() == Weight::Kept => expected.push(event),
                Ok(()) => {}
                Err(Full) => {
                    seq -= 1;
                    is_full = true;
                    break;
                }
            }
            prop_assert!(backlog.len() <= CAPACITY && backlog.n_bytes() <= MAX_BYTES);
            // It reads one event for about two that come.
            for _ in 0..n_read / 3 {
                got.extend(backlog.pop());
            }
        }
        prop_assert!(!is_full || backlog.len() == CAPACITY || MAX_BYTES / 2 < backlog.n_bytes());
        got.extend(read(&mut backlog));
        let left_out = backlog.take_left_out().map_or(0, |it| it.count);
        prop_assert_eq!(got.iter().map(|it| it.stands_for).sum::<u64>() + left_out, seq);
        prop_assert!(got.is_sorted_by(|a, b| a.first_seq < b.first_seq));
        prop_assert!(got.iter().all(|it| it.first_seq <= it.seq));
        got.retain(|it| it.event.weight() == Weight::Kept);
        prop_assert_eq!(got.into_iter().map(|it| it.event).collect::<Vec<_>>(), expected);
    }
}
