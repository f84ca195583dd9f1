//! Built under `#[cfg(test)]` only.

use serde_json::Value;

use super::*;
use crate::test_support::block_on;

/// The messages that come of these bytes, as JSON.
fn messages(bytes: &[u8], health: &Health) -> Vec<Value> {
    let mut lines = Lines::new(bytes, "s".into(), health.clone(), TaskTools::looking());
    let mut out = Vec::new();
    block_on(async {
        let is_broken = async {
            health.broken().await;
        };
        let mut is_broken = std::pin::pin!(is_broken);
        loop {
            tokio::select! {
                biased;
                message = lines.next() => match message {
                    None => break,
                    Some(message) => out.push(serde_json::to_value(message).unwrap()),
                },
                // Nothing is read after it.
                () = &mut is_broken => break,
            }
        }
    });
    out
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

// REQ: TOL-11
#[test]
fn messages_come_in_order_whether_they_are_short_or_long() {
    let long = "y".repeat(3 * IN_PLACE);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#
    );
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/new","params":{"a":1}}"#;
    let request = r#"{"jsonrpc":"2.0","id":"x","method":"newer/request"}"#;
    let lines = format!("\u{feff}{ANSWER}\r\n\n{long}\n{notice}\n{long}\n{request}\n{ANSWER}");
    let health = Health::new();
    let _call = health.garbled();
    let found = messages(lines.as_bytes(), &health);
    let ids: Vec<_> = found.iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [json("1"), json("2"), Value::Null, json("2"), json("\"x\"")], "{found:?}");
    assert_eq!((&found[0], &found[2]), (&json(ANSWER), &json(notice)));
    let shown = found[1]["result"]["content"][0]["text"].as_str();
    assert_eq!(shown.map(str::len), Some(3 * IN_PLACE), "{found:?}");
}

// REQ: TOL-11
#[tokio::test]
async fn long_line_is_read_where_no_session_waits() {
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"x":[{}0]}}}}{}"#,
        "0,".repeat(1 << 20),
        "\n"
    );
    let bytes = std::io::Cursor::new(long.into_bytes());
    let mut lines = Lines::new(bytes, "s".into(), Health::new(), TaskTools::looking());
    // One that only reads finds nothing at once: the work is elsewhere, and going on finds it done.
    let first = futures_now(lines.next()).await;
    assert!(first.is_none() && lines.judging.is_some());
    assert!(lines.next().await.is_some());
    assert!(lines.next().await.is_none());
}

/// The outcome of a future, if it is there when it is first looked at.
async fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        std::task::Poll::Ready(it) => std::task::Poll::Ready(Some(it)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

// REQ: TOL-11
#[test]
fn answer_that_cannot_be_read_becomes_an_error_for_the_call_that_it_names() {
    let cases: [(&[u8], &str); 5] = [
        (br#"{"jsonrpc":"2.0","id":7,"result":{oops}}"#, "what is not JSON"),
        (br#"{"id":7,"result":{}}"#, "not a message of the protocol"),
        (br#"{"jsonrpc":"1.0","result":{},"id":7}"#, "not a message of the protocol"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}", "bytes that are not UTF-8"),
        (br#"{"jsonrpc":"2.0","id":7,"result":{"x":"cut"#, "what is not JSON"),
    ];
    for (line, what) in cases {
        let health = Health::new();
        let _call = health.garbled();
        let found = messages(&[line, b"\n", ANSWER.as_bytes(), b"\n"].concat(), &health);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        let message = first["error"]["message"].as_str().unwrap();
        assert!(first["id"] == 7 && message.contains(what), "{first}");
        assert_eq!(*second, json(ANSWER), "the connection stays");
    }
}

// REQ: TOL-11
#[test]
fn line_that_is_too_long_fails_its_call_before_it_has_an_end() {
    let mut line = br#"{"jsonrpc":"2.0","id":7,"result":{"x":""#.to_vec();
    line.resize(MAX_LINE + PIECE, b'x');
    let health = Health::new();
    let _call = health.garbled();
    let found = messages(&line, &health);
    let message = found[0]["error"]["message"].as_str().unwrap();
    assert!(found.len() == 1 && found[0]["id"] == 7, "{found:?}");
    assert!(message.contains("16777216 bytes"), "{message}");
    line.extend_from_slice(format!("\n{ANSWER}\n").as_bytes());
    let found = messages(&line, &health);
    assert!(found.len() == 2 && found[1] == json(ANSWER), "{found:?}");
}

// REQ: TOL-11
#[test]
fn line_that_is_no_message_by_its_first_byte_is_passed_over() {
    for line in ["listening on stdio", "\"text\"", "42", "\u{1b}[32mINFO\u{1b}[0m ready"] {
        let lines = format!("{ANSWER}\n{line}\n{ANSWER}\n");
        let health = Health::new();
        let call = health.garbled();
        assert_eq!(messages(lines.as_bytes(), &health), [json(ANSWER), json(ANSWER)], "{line}");
        assert!(call.borrow().is_none(), "{line}");
    }
}

// REQ: TOL-11
#[test]
fn line_of_which_nobody_knows_whom_it_answers_fails_all_calls_under_way() {
    for line in ["{oops", "[1,2]", "{}", r#"{"id":null,"result":{}}"#] {
        let lines = format!("{ANSWER}\n{line}\n{ANSWER}\n");
        let health = Health::new();
        assert_eq!(messages(lines.as_bytes(), &health).len(), 2, "{line}");
        let calls = [health.garbled(), health.garbled()];
        // The answer before it still comes.
        assert_eq!(messages(lines.as_bytes(), &health), [json(ANSWER)], "{line}");
        assert!(calls.iter().all(|it| it.borrow().is_some()));
    }
}
