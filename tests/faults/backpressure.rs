//! Listeners that are slow, or do not read at all: the session does not notice (MDL-3).

use std::{sync::Arc, time::Duration};

use ennead::{
    Ennead, Event, Events, Options, Placement, RunEnd, SessionHandle,
    data::Numbered,
    internal::{CAPACITY, EventHub, MAX_BYTES, SimulatedTransport, Simulator},
    settings::Durability,
    testing::Playbook,
    tool::{Access, Concurrency, CustomTool, ToolOutcome},
};
use ennead_runtime::event::Weight;
use tokio::time::Instant;

use crate::support::scripted::{TestDirs, finish};
use crate::support::settings::SettingsJson as _;
use crate::support::until::within;

/// Fifteen turns of some two hundred deltas and five calls each, an event each 10 ms.
const PLAYBOOK: &str = r#"
[[rule]]
name = "work"
when.prompt = "work"
when.answers = { max = 14 }
let.words = "range(100)|list"
let.calls = "range(5)|list"
delta = 4
pace = { between_ms = 10 }
reply = [
  { thinking = "{% for n in words %}step{% endfor %}" },
  { text = "{% for n in words %}{{ 1000 + n }}{% endfor %}" },
  { tool = "echo", each = "calls", input_json = '{"turn":{{ answers }},"call":{{ item }}}' },
]

[[rule]]
name = "many"
when.prompt = "many"
when.answers = { max = 14 }
let.calls = "range(20)|list"
reply = [
  { tool = "echo", each = "calls", input_json = '{"turn":{{ answers }},"call":{{ item }}}' },
]

[[rule]]
name = "done"
reply = [{ text = "done" }]
"#;

async fn open(place: &TestDirs) -> (Ennead, SessionHandle) {
    let simulator = Simulator::new(Playbook::parse(PLAYBOOK, "test").unwrap());
    let options = Options::default()
        .placement(Placement::Ambient)
        .seed(7)
        .clock(place.clock.clone())
        .transport(Arc::new(SimulatedTransport::new(simulator)));
    let echo = CustomTool::raw("echo", "Echoes.", r#"{"type":"object"}"#, |input, _| async move {
        ToolOutcome::ok(&*input)
    });
    let echo = echo.access(Access::Free).concurrency(Concurrency::Together { max: 5 });
    let ennead = Ennead::start(options).await.unwrap();
    // Nothing is summed up: that would be a model call more.
    let shapers = serde_json::json!({"maxMessages": 100_000});
    let options = place.session().durability(Durability::Process).own_setting("shapers", shapers);
    let session = ennead.open(options.tool(Arc::new(echo.build().unwrap()))).await.unwrap();
    (ennead, session)
}

/// Works, and says how long it took.
async fn work(session: &SessionHandle) -> Duration {
    let start = Instant::now();
    let outcome = session.prompt("work").await.unwrap();
    assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 16));
    start.elapsed()
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::RunFinished { .. } | Event::RunLost { .. })
}

/// Reads up to the end of a run, and waits before each event.
async fn read(events: &mut Events, pause: Duration) -> Vec<Numbered> {
    let mut all = Vec::new();
    loop {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let (n_events, n_bytes) = events.backlog();
        assert!(n_events <= CAPACITY && n_bytes <= MAX_BYTES, "{n_events} {n_bytes}");
        let next = within("the end of the run", events.next()).await.unwrap();
        let ends = is_end(&next.event);
        all.push(next);
        if ends {
            return all;
        }
    }
}

fn kept(all: &[Numbered]) -> Vec<&Event> {
    all.iter().map(|it| &it.event).filter(|it| it.weight() == Weight::Kept).collect()
}

/// What was said and what was thought, message by message.
fn shown(all: &[Numbered]) -> Vec<(String, String)> {
    let (mut messages, mut open) = (Vec::new(), (String::new(), String::new()));
    for Numbered { event, .. } in all {
        match event {
            Event::TextDelta { text, .. } => open.0.push_str(text),
            Event::ReasoningDelta { text, .. } => open.1.push_str(text),
            Event::MessageCompleted { text, .. } => {
                assert_eq!(open.0, **text, "deltas are the message");
                messages.push(std::mem::take(&mut open));
            }
            _ => {}
        }
    }
    messages
}

fn n_deltas(all: &[Numbered]) -> usize {
    all.iter().filter(|it| it.event.weight() == Weight::Piece).count()
}

/// Every event is counted once, and they come in order.
#[track_caller]
fn check_numbers(all: &[Numbered]) {
    assert_eq!(all.iter().map(|it| it.stands_for).sum::<u64>(), all.last().unwrap().seq);
    assert!(all.is_sorted_by(|a, b| a.first_seq < b.first_seq));
}

// REQ: MDL-3
#[tokio::test(start_paused = true)]
async fn slow_listener_gets_joined_deltas_and_all_else_and_the_turn_takes_as_long_as_alone() {
    let alone = TestDirs::new();
    let (ennead, session) = open(&alone).await;
    let took_alone = work(&session).await;
    finish(ennead, session).await;

    let place = TestDirs::new();
    let (ennead, session) = open(&place).await;
    let (mut never, mut slow, mut fast) = (session.events(), session.events(), session.events());
    let reading = async {
        let all = read(&mut fast, Duration::ZERO).await;
        (all, never.backlog(), Instant::now())
    };
    let slowly = async {
        let all = read(&mut slow, Duration::from_secs(1)).await;
        (all, Instant::now())
    };
    let (took, (fast, left, ended), (slow, read_at)) =
        tokio::join!(work(&session), reading, slowly);
    assert_eq!(took, took_alone, "nobody waited for a listener");
    assert!(ended + Duration::from_secs(60) < read_at, "the slow one was far behind");

    assert!(3000 <= n_deltas(&fast), "{}", n_deltas(&fast));
    assert!(fast.iter().all(|it| it.stands_for == 1 && it.first_seq == it.seq));
    let numbers: Vec<u64> = fast.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, (1..=fast.len() as u64).collect::<Vec<_>>(), "every event");
    let messages = shown(&fast);
    assert_eq!((messages.len(), messages[0].0.len(), messages[0].1.len()), (16, 400, 400));

    assert!(n_deltas(&slow) * 2 < n_deltas(&fast), "{} {}", n_deltas(&slow), n_deltas(&fast));
    check_numbers(&slow);
    assert_eq!(kept(&slow), kept(&fast));
    assert_eq!(shown(&slow), messages);
    let results = |all: &[Numbered]| {
        all.iter().filter(|it| matches!(it.event, Event::ToolFinished { .. })).count()
    };
    assert_eq!((results(&slow), results(&fast)), (75, 75));

    assert!(left.0 <= CAPACITY && left.1 <= MAX_BYTES, "{left:?}");
    let never = read(&mut never, Duration::ZERO).await;
    assert_eq!(never.len(), left.0);
    check_numbers(&never);
    assert_eq!(kept(&never), kept(&fast));
    assert_eq!(shown(&never), messages);
    finish(ennead, session).await;
}

// REQ: MDL-3, RUN-1, TRN-11
#[tokio::test]
async fn listener_that_never_reads_is_let_go_with_all_that_waits_and_told_what_it_missed() {
    let place = TestDirs::new();
    let (ennead, session) = open(&place).await;
    let (mut never, mut fast) = (session.events(), session.events());
    let (all, outcome) = tokio::join!(read(&mut fast, Duration::ZERO), session.prompt("many"));
    assert_eq!(outcome.unwrap().turns, 16);
    let shown = all.last().unwrap().seq;
    let (_, n_bytes) = never.backlog();
    assert!(n_bytes <= MAX_BYTES, "{n_bytes}");
    assert!(CAPACITY < kept(&all).len(), "{}", kept(&all).len());
    assert_eq!(never.backlog().0, CAPACITY);
    let mut got = Vec::new();
    let lagged = loop {
        let next = within("the hole", never.next()).await.unwrap();
        match next.event {
            Event::Lagged { .. } => break next,
            _ => got.push(next),
        }
    };
    assert_eq!(kept(&got), kept(&all)[..CAPACITY], "all up to the hole, in order");
    let Event::Lagged { missed, run } = &lagged.event else { unreachable!() };
    let before: u64 = got.iter().map(|it| it.stands_for).sum();
    assert_eq!(before + missed, shown, "what is not there was told");
    assert_eq!((lagged.seq, lagged.stands_for, run), (shown, *missed, &None));
    assert_eq!(lagged.first_seq, got.last().unwrap().seq + 1);

    // After the hole it receives everything again.
    session.prompt("short").await.unwrap();
    assert_eq!(read(&mut never, Duration::ZERO).await, read(&mut fast, Duration::ZERO).await);
    finish(ennead, session).await;
    assert_eq!(never.next().await, None);
}

// REQ: MDL-3
#[tokio::test]
async fn listener_that_was_let_go_during_a_run_is_told_which_run_goes_on() {
    let hub = EventHub::new(None);
    let mut never = hub.subscribe();
    let run = "r".into();
    hub.publish(Event::RunStarted { run, woken: false });
    for turn in 0..2 * CAPACITY {
        hub.publish(Event::TurnFinished { turn: u32::try_from(turn).unwrap() });
    }
    for _ in 0..CAPACITY {
        never.next().await.unwrap();
    }
    let lagged = never.next().await.unwrap().event;
    assert_eq!(lagged, Event::Lagged { missed: CAPACITY as u64 + 1, run: Some("r".into()) });
    hub.close();
    assert_eq!(never.next().await, None);
    assert_eq!(hub.subscribe().next().await, None, "nothing comes after the end");
}
