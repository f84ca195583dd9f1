//! Silence of a model server, of every kind: each is noticed on time, told as what it is, and acted
//! on. Time is paused.

use std::{sync::Arc, time::Duration};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, RunOutcome, SessionOptions, model::HttpLimits,
};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::json;
use tempfile::TempDir;

use crate::support::settings::SettingsJson as _;
use crate::support::{
    paused::Paused,
    record,
    scripted::{Reply, Scripted, replies, silence, text},
};

const START: &str = r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

"#;

const MORE: &str = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}

"#;

const END: &str = r#"data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

"#;

const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// A head; then each piece after this many milliseconds; then nothing more.
fn pieces(pieces: Vec<(u64, &'static str)>) -> Reply {
    Reply::paced(200, pieces)
}

/// A head; then this every this many milliseconds, without end.
fn forever(ms: u64, piece: &'static str) -> Reply {
    pieces(Vec::new()).forever(ms, piece)
}

/// The head of an error with this status, these words, and then a byte every 200 milliseconds, without end.
fn refuses(status: u16, words: &'static str) -> Reply {
    Reply::paced(status, vec![(0, words)]).forever(200, " ")
}

/// A server that answers the first request so and every later one at once.
fn at_first(first: Reply) -> Arc<Scripted> {
    replies(vec![first, text("done")])
}

/// An attempt as the transcript has it: outcome, what was said about it, and how long it took.
type Attempt = (String, Option<String>, u64);

/// Runs one prompt against a server that behaves like this first, and gives the attempts. Whatever
/// it was, the run ends well, since the next attempt is answered.
async fn attempts(
    server: Arc<Scripted>,
    http: HttpLimits,
    answer: serde_json::Value,
) -> Vec<Attempt> {
    let (outcome, attempts) = run(server, http, answer).await;
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
    attempts
}

/// The same, however it ends.
async fn run(
    server: Arc<Scripted>,
    http: HttpLimits,
    answer: serde_json::Value,
) -> (RunOutcome, Vec<Attempt>) {
    let options = Options::default()
        .placement(Placement::Ambient)
        .clock(Arc::new(Paused::default()))
        .transport(server)
        .http(http);
    let ennead = Ennead::start(options).await.unwrap();
    let directory = TempDir::new().unwrap();
    let session =
        SessionOptions::new(directory.path(), Endpoint::messages("http://model.test", None))
            .home(directory.path().to_owned())
            .tools(Vec::new());
    let session = ennead.open(session.isolated().own_setting("http", answer)).await.unwrap();
    let outcome = session.prompt("go").await.unwrap();
    session.close().await;
    record::verified(session.transcript());
    let records = record::records(session.transcript()).into_iter();
    let attempts = records
        .filter_map(|it| match it.what {
            RecordKind::ModelAttempt { outcome, message, duration_ms, .. } => {
                Some((outcome, message, duration_ms))
            }
            _ => None,
        })
        .collect();
    (outcome, attempts)
}

/// The first attempt fails as `class` after this many milliseconds with these words, and the second
/// is answered.
async fn check(first: Reply, answer: serde_json::Value, expected: (&str, &str, u64)) {
    let attempts = attempts(at_first(first), HttpLimits::default(), answer).await;
    let [(class, Some(message), ms), (ok, None, _)] = &attempts[..] else { panic!("{attempts:?}") };
    // People are told where.
    let answer = message.strip_prefix("http://model.test/v1/messages: ").unwrap_or(message);
    assert_eq!((class.as_str(), answer, *ms), expected);
    assert_eq!(ok, "ok");
}

// REQ: MDL-12
#[tokio::test(start_paused = true)]
async fn answer_that_does_not_begin_is_given_up_and_asked_for_again() {
    let expected = ("timeout", "no answer for 300000 ms", 300_000);
    check(silence(), json!({}), expected).await;
    let expected = ("timeout", "no answer for 2000 ms", 2_000);
    check(silence(), json!({ "firstByteMs": 2_000 }), expected).await;
    // No time of its own is longer than that for all.
    let expected = ("timeout", "the answer took longer than 1000 ms", 1_000);
    check(silence(), json!({ "totalMs": 1_000 }), expected).await;
}

// REQ: MDL-12, MDL-7
#[tokio::test(start_paused = true)]
async fn stream_that_falls_silent_is_given_up() {
    let stalls = || pieces(vec![(1_000, START), (1_000, MORE)]);
    let expected = ("timeout", "no byte for 300000 ms", 302_000);
    check(stalls(), json!({}), expected).await;
    let expected = ("timeout", "no byte for 5000 ms", 7_000);
    check(stalls(), json!({ "idleMs": 5_000 }), expected).await;
}

// REQ: MDL-12
#[tokio::test(start_paused = true)]
async fn pings_for_ever_are_silence_too() {
    let pings = || forever(10_000, PING);
    let expected = ("timeout", "no event for 600000 ms", 600_000);
    check(pings(), json!({}), expected).await;
    let comments = forever(700, ": keep-alive\n\n");
    let expected = ("timeout", "no event for 20000 ms", 20_000);
    check(comments, json!({ "eventIdleMs": 20_000 }), expected).await;
}

// REQ: MDL-12, MDL-6
#[tokio::test(start_paused = true)]
async fn words_of_an_error_that_do_not_end_are_waited_for_ten_seconds() {
    for (status, words, class, answer) in [
        (500, "abc", "network", "HTTP 500: abc"),
        (529, "", "overloaded", "HTTP 529: no body"),
        (429, "slowly", "rate_limit", "HTTP 429: slowly"),
        (400, "", "timeout", "no event for 10000 ms"),
    ] {
        let limits = HttpLimits::default();
        let attempts = attempts(at_first(refuses(status, words)), limits, json!({})).await;
        let (found, message, ms) = &attempts[0];
        assert_eq!((found.as_str(), *ms), (class, 10_000), "{message:?}");
        assert!(message.as_ref().unwrap().contains(answer), "{message:?}, not {answer}");
    }
}

// REQ: MDL-12
#[tokio::test(start_paused = true)]
async fn events_for_ever_end_with_the_time_for_all() {
    // Those that nobody knows are silence, and so is a piece of one that never ends.
    let silence =
        [(100_000, "data: {\"type\":\"unknown\"}\n\n"), (50_000, "data: x"), (10_000, "x")];
    for (ms, piece) in silence {
        let expected = ("timeout", "no event for 600000 ms", 600_000);
        check(forever(ms, piece), json!({}), expected).await;
    }
    // An hour is more than a turn has for attempts that end so.
    let limits = HttpLimits::default();
    let (outcome, attempts) =
        run(at_first(pieces(vec![(0, START)]).forever(100_000, MORE)), limits, json!({})).await;
    assert_eq!((outcome.end, attempts.len(), attempts[0].2), (RunEnd::Error, 1, 3_600_000));
    assert!(outcome.error.unwrap().ends_with("the answer took longer than 3600000 ms"));
    // Also when there is no moment between them.
    let flood = forever(1, "data: {\"type\":\"unknown\"}\n\n");
    let expected = ("timeout", "the answer took longer than 50 ms", 50);
    check(flood, json!({ "totalMs": 50 }), expected).await;
}

// REQ: MDL-6, MDL-12
#[tokio::test(start_paused = true)]
async fn server_that_is_always_silent_costs_fifteen_minutes_and_three_attempts() {
    let limits = HttpLimits::default();
    let (outcome, attempts) = run(replies(vec![silence()]), limits, json!({})).await;
    assert_eq!(outcome.end, RunEnd::Error);
    let error = outcome.error.unwrap();
    assert_eq!(error, "timeout: http://model.test/v1/messages: no answer for 300000 ms");
    let took: Vec<u64> = attempts.iter().map(|it| it.2).collect();
    assert_eq!(took, [300_000; 3]);
    assert!(attempts.iter().all(|it| it.0 == "timeout"));
    // What is left of the time bounds the next attempt, whatever the settings say.
    let answer = json!({ "firstByteMs": 500_000 });
    let (_, attempts) = run(replies(vec![silence()]), limits, answer).await;
    let took: Vec<u64> = attempts.iter().map(|it| it.2).collect();
    assert_eq!(took, [500_000, 400_000]);
}

// REQ: MDL-12
#[tokio::test(start_paused = true)]
async fn answer_that_keeps_coming_is_left_alone() {
    let slow = vec![(299_000, START), (299_000, PING), (299_000, MORE), (299_000, END)];
    let attempts = attempts(at_first(pieces(slow)), HttpLimits::default(), json!({})).await;
    assert_eq!(attempts, [("ok".to_owned(), None, 4 * 299_000)]);
}

// REQ: MDL-12
#[test]
fn settings_stand_in_for_what_the_embedder_said() {
    let mut embedder = HttpLimits::default();
    embedder.idle = Duration::from_secs(7);
    embedder.total = Duration::MAX;

    let answer = serde_json::from_value(json!({ "connect_ms": 1, "total_ms": u64::MAX })).unwrap();
    let limits = embedder.with(&answer);
    assert_eq!(limits.connect, Duration::from_millis(1));
    assert_eq!(limits.idle, Duration::from_secs(7));
    // A wait cannot be without end.
    assert_eq!(limits.total, Duration::from_secs(86_400));
}
