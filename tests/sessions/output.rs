//! Channels of a session: one run, delivered to each place by its own policy.

use std::{path::Path, sync::Arc};

use ennead::{
    Channel, ChannelPolicy, Ennead, Options, Payload, Placement, SessionHandle,
    internal::{SimulatedTransport, Simulator},
    testing::Playbook,
};
use serde_json::json;

use crate::support::settings::SettingsJson as _;
use crate::support::{
    record,
    scripted::{SESSION, TestDirs, call, finish, says, text},
};

/// Speaks in deltas of three characters, one event a millisecond.
const PLAYBOOK: &str = r#"
[[rule]]
name = "look"
when.prompt = "look"
when.answers = 0
delta = 3
pace = { between_ms = 1 }
reply = [
  { thinking = "a field of its own" },
  { text = "<think>secret plan</think>Let me look. `<think>` is a tag." },
  { tool = "Glob", input = { pattern = "*.none" } },
]

[[rule]]
name = "looked"
when.prompt = "look"
delta = 3
pace = { between_ms = 1 }
reply = [{ text = "<THINKING effort='9'>secret doubt</THINKING>\n\nFirst.\n\n```xml\n<think>x</think>\n```\n\nLast." }]

[[rule]]
name = "cut"
times = 1
when.prompt = "break"
delta = 3
pace = { between_ms = 1 }
reply = [{ text = "Half of it <think>never closed, and a long thought that is cut off" }]
fault = { action = "reset", at = 2000 }

[[rule]]
name = "whole"
when.prompt = "break"
delta = 3
reply = [{ text = "All of it." }]

[[rule]]
name = "beat"
when.prompt = "beat"
delta = 3
reply = [{ text = "<think>nothing to do</think>\n**HEARTBEAT_OK**\n" }]

[[rule]]
name = "slow"
when.prompt = "slow"
delta = 4
pace = { between_ms = 400 }
reply = [{ text = "One. Two. Three." }]
"#;

async fn start(place: &TestDirs) -> Ennead {
    let simulator = Simulator::new(Playbook::parse(PLAYBOOK, "test").unwrap());
    let options = Options::default()
        .placement(Placement::Ambient)
        .seed(7)
        .clock(place.clock.clone())
        .transport(Arc::new(SimulatedTransport::new(simulator)));
    Ennead::start(options).await.unwrap()
}

/// Everything up to the end of the run.
async fn until_end(channel: &mut Channel) -> Vec<Payload> {
    let mut all = Vec::new();
    while let Some(payload) = channel.next().await {
        let is_end = matches!(payload, Payload::Ended { .. });
        all.push(payload);
        if is_end {
            break;
        }
    }
    all
}

fn texts_of(payloads: &[Payload]) -> String {
    let text = |it: &Payload| match it {
        Payload::Text { piece, .. } => Some(piece.text.clone()),
        _ => None,
    };
    payloads.iter().filter_map(text).collect()
}

fn thought(payloads: &[Payload]) -> String {
    let text = |it: &Payload| match it {
        Payload::Reasoning { text, .. } => Some(text.clone()),
        _ => None,
    };
    payloads.iter().filter_map(text).collect()
}

fn count(payloads: &[Payload], fits: fn(&Payload) -> bool) -> usize {
    payloads.iter().filter(|it| fits(it)).count()
}

fn is_text(payload: &Payload) -> bool {
    matches!(payload, Payload::Text { .. })
}

fn check_record(place: &TestDirs) {
    record::verified(&place.path(&format!("transcripts/{SESSION}.jsonl")));
}

async fn run(session: &SessionHandle, prompt: &str) {
    let (session, prompt) = (session.clone(), prompt.to_owned());
    session.prompt(prompt).await.unwrap();
}

const FIRST: &str = "Let me look. `<think>` is a tag.";
const LAST: &str = "First.\n\n```xml\n<think>x</think>\n```\n\nLast.";

// REQ: OUT-1, OUT-4, OUT-5
#[tokio::test(start_paused = true)]
async fn one_run_goes_to_each_channel_by_its_policy_and_tags_cut_by_the_stream_never_get_out() {
    let place = TestDirs::new();
    let ennead = start(&place).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut partial = session.channel(ChannelPolicy::partial());
    let mut rich = session.channel(ChannelPolicy::partial().reasoning().tool_results(10));
    let mut last = session.channel(ChannelPolicy::final_answer());
    let mut messages = session.channel(ChannelPolicy::messages().tool_results(1000));
    let (partial, rich, last, messages, ()) = tokio::join!(
        until_end(&mut partial),
        until_end(&mut rich),
        until_end(&mut last),
        until_end(&mut messages),
        run(&session, "look"),
    );
    assert_eq!(texts_of(&partial), format!("{FIRST}{LAST}"));
    assert!(10 < count(&partial, is_text), "it came while it was said");
    assert_eq!(thought(&partial), "");

    assert_eq!(texts_of(&rich), texts_of(&partial));
    assert_eq!(thought(&rich), "a field of its ownsecret plansecret doubt");
    let result = rich.iter().find_map(|it| match it {
        Payload::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!((result.tool.as_str(), result.is_error), ("Glob", false));
    assert!(result.is_truncated() && result.text.chars().count() == 10, "{result:?}");

    assert_eq!((texts_of(&last), last.len()), (LAST.to_owned(), 2));
    assert_eq!(texts_of(&messages), format!("{FIRST}{LAST}"));
    assert_eq!((count(&messages, is_text), messages.len()), (2, 4));
    let ended =
        |it: &[Payload]| matches!(it.last(), Some(Payload::Ended { is_failure: false, .. }));
    assert!([&partial, &rich, &last, &messages].into_iter().all(|it| ended(it)));
    finish(ennead, session).await;
    check_record(&place);
}

// REQ: OUT-3, MDL-7
#[tokio::test(start_paused = true)]
async fn withdrawn_attempt_is_taken_back_by_name_and_the_answer_is_said_once() {
    let place = TestDirs::new();
    let ennead = start(&place).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut partial = session.channel(ChannelPolicy::partial());
    let mut last = session.channel(ChannelPolicy::final_answer());
    let (partial, last, ()) =
        tokio::join!(until_end(&mut partial), until_end(&mut last), run(&session, "break"));
    let at = partial.iter().position(|it| matches!(it, Payload::Retracted { .. })).unwrap();
    let (before, after) = partial.split_at(at);
    assert_eq!(texts_of(before), "Half of it");
    let n = count(before, is_text) as u64;
    assert_eq!(after[0], Payload::Retracted { first_id: 1, last_id: n });
    assert_eq!(texts_of(after), "All of it.");
    assert_eq!(texts_of(&last), "All of it.");
    assert_eq!(last.len(), 2, "{last:?}");
    finish(ennead, session).await;
    check_record(&place);
}

// REQ: OUT-2
#[tokio::test(start_paused = true)]
async fn heartbeat_reaches_no_channel_and_stays_in_the_outcome() {
    let place = TestDirs::new();
    let ennead = start(&place).await;
    let session = ennead.open(place.session()).await.unwrap();
    let mut partial = session.channel(ChannelPolicy::partial());
    let mut last = session.channel(ChannelPolicy::final_answer());
    let outcome = session.prompt("beat").await.unwrap();
    assert_eq!(outcome.text, "<think>nothing to do</think>\n**HEARTBEAT_OK**");
    for channel in [&mut partial, &mut last] {
        assert_eq!(until_end(channel).await.len(), 1, "the end alone");
    }
    finish(ennead, session).await;
}

/// What came after how many milliseconds.
async fn timed(channel: &mut Channel) -> Vec<(u64, String)> {
    let (start, mut all) = (tokio::time::Instant::now(), Vec::new());
    while let Some(payload) = channel.next().await {
        match payload {
            Payload::Text { piece, .. } => {
                all.push((u64::try_from(start.elapsed().as_millis()).unwrap(), piece.shown()));
            }
            Payload::Ended { .. } => break,
            _ => {}
        }
    }
    all
}

// REQ: OUT-3
#[tokio::test(start_paused = true)]
async fn times_and_sizes_come_from_the_settings_of_the_session() {
    let place = TestDirs::new();
    let ennead = start(&place).await;
    let output = json!({"chunkMin": 4, "chunkMax": 16, "flushIdleMs": 300});
    let session = ennead.open(place.session().own_setting("output", output)).await.unwrap();
    let (mut blocks, mut whole) =
        (session.channel(ChannelPolicy::blocks()), session.channel(ChannelPolicy::messages()));
    let (blocks, whole, ()) =
        tokio::join!(timed(&mut blocks), timed(&mut whole), run(&session, "slow"));
    let texts: Vec<&str> = blocks.iter().map(|it| it.1.as_str()).collect();
    // Deltas of four characters every 400 ms: each waits 300 ms and goes up to its last break.
    assert_eq!(texts, ["One.", " Two.", "Three."], "{blocks:?}");
    let first_delta = blocks[0].0 - 300;
    assert_eq!(first_delta % 400, 0, "{blocks:?}");
    assert!(blocks[0].0 < whole[0].0, "before the message was complete");
    assert_eq!(whole.len(), 1);
    assert_eq!(session.output().chunk_max, 16);
    finish(ennead, session).await;
}

// REQ: OUT-5, SUR-1
#[tokio::test]
async fn channel_that_is_opened_between_runs_hears_the_next_one_and_the_end_of_the_session() {
    let place = TestDirs::new();
    let model =
        says(vec![text("first"), call("g", "Glob", json!({"pattern": "*"})), text("second")]);
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.prompt("go").await.unwrap();
    let mut channel = session.channel(ChannelPolicy::messages());
    session.prompt("on").await.unwrap();
    finish(ennead, session).await;
    let mut all = Vec::new();
    while let Some(payload) = channel.next().await {
        all.push(payload);
    }
    assert_eq!(texts_of(&all), "second");
    assert!(Path::new(&place.text("transcripts")).exists());
}
