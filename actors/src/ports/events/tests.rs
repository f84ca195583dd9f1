//! Which events listeners get, and when they end.

use super::*;

fn received(events: &mut Events) -> Vec<(u64, Event)> {
    let next = std::iter::from_fn(|| events.hub.take(events.key, None).ok().flatten());
    next.map(|it| (it.seq, it.event)).collect()
}

fn delta(text: &str) -> Event {
    Event::TextDelta { attempt: 1, text: text.into() }
}

// REQ: MDL-3
#[test]
fn deltas_that_nobody_hears_are_counted_and_not_made() {
    let parent = EventHub::new(None);
    let mut above = parent.subscribe();
    let hub = EventHub::new(Some((parent.clone(), AgentId::from("a"))));
    hub.publish_delta(|| panic!("nobody listens"));
    let mut events = hub.subscribe();
    hub.publish_delta(|| delta("b"));
    hub.publish(Event::Unparked { attempt: 1 });
    let expected = [(2, delta("b")), (3, Event::Unparked { attempt: 1 })];
    assert_eq!(received(&mut events), expected);
    assert_eq!(received(&mut above).len(), 1, "no delta goes to a parent");
    hub.close();
    hub.publish_delta(|| panic!("it is over"));
}

// REQ: TRN-11
#[test]
fn nothing_of_an_answer_follows_the_loss_of_its_run() {
    let hub = EventHub::new(None);
    let mut events = hub.subscribe();
    let run = || RunId::from("r");
    hub.publish(Event::RunStarted { run: run(), woken: false });
    hub.publish(Event::RunLost { run: run(), reason: "crashed".into() });
    hub.publish_delta(|| panic!("its run is over"));
    hub.publish(Event::RunStarted { run: run(), woken: false });
    hub.publish_delta(|| delta("b"));
    assert_eq!(received(&mut events).pop(), Some((4, delta("b"))));
}

// REQ: MDL-3
#[tokio::test]
async fn events_are_a_stream_that_ends_with_the_session() {
    use futures::StreamExt;

    let hub = EventHub::new(None);
    let reader = hub.subscribe().map(|it| it.seq).collect::<Vec<u64>>();
    let writer = async {
        for attempt in 1..=3 {
            // The reader sleeps, and is woken.
            tokio::task::yield_now().await;
            hub.publish(Event::Unparked { attempt });
        }
        hub.close();
    };
    assert_eq!(tokio::join!(reader, writer).0, [1, 2, 3]);
}
