//! Built under `#[cfg(test)]` only.

use tokio::io::AsyncReadExt;

use super::*;
use crate::test_support::block_on;

/// What comes through of these bytes, read in pieces of this size.
fn passed(bytes: &[u8], size: usize, health: &Health) -> String {
    let mut lines = Lines::new(bytes, "s".into(), health.clone(), TaskTools::looking());
    let mut out = Vec::new();
    let mut piece = vec![0; size];
    block_on(async {
        loop {
            match futures_now(lines.read(&mut piece)).await {
                None | Some(Ok(0)) => break,
                Some(Ok(n)) => out.extend_from_slice(&piece[..n]),
                Some(Err(error)) => panic!("{error}"),
            }
        }
    });
    String::from_utf8(out).unwrap()
}

/// The outcome of a future that never waits for anything but what never comes.
async fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(it) => Poll::Ready(Some(it)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

// REQ: TOL-11
#[test]
fn messages_come_through_byte_for_byte_however_they_are_read() {
    let lines = format!(
        "{ANSWER}\r\n\n{}\n{}\n",
        r#"{"jsonrpc":"2.0","method":"notifications/new","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"newer/request"}"#,
    );
    for size in [1, 7, 100_000] {
        let health = Health::new();
        let _call = health.garbled();
        assert_eq!(passed(lines.as_bytes(), size, &health), lines);
    }
}

// REQ: TOL-11
#[test]
fn answer_that_cannot_be_read_becomes_an_error_for_the_call_that_it_names() {
    let cases: [(&[u8], &str); 5] = [
        (br#"{"jsonrpc":"2.0","id":7,"result":{oops}}"#, "what is no JSON"),
        (br#"{"id":7,"result":{}}"#, "no message of the protocol"),
        (br#"{"jsonrpc":"1.0","result":{},"id":7}"#, "no message of the protocol"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}", "bytes that are no UTF-8"),
        (br#"{"jsonrpc":"2.0","id":7,"result":{"x":"cut"#, "what is no JSON"),
    ];
    for (line, what) in cases {
        let health = Health::new();
        let _call = health.garbled();
        let passed = passed(&[line, b"\n", ANSWER.as_bytes(), b"\n"].concat(), 64, &health);
        let (first, second) = passed.split_once('\n').unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        let message = first["error"]["message"].as_str().unwrap();
        assert!(first["id"] == 7 && message.contains(what), "{first}");
        assert_eq!(second.trim_end(), ANSWER, "the connection stays");
    }
}

// REQ: TOL-11
#[test]
fn line_that_is_too_long_fails_its_call_before_it_has_an_end() {
    let mut line = br#"{"jsonrpc":"2.0","id":7,"result":{"x":""#.to_vec();
    line.resize(MAX_LINE + PIECE, b'x');
    let health = Health::new();
    let _call = health.garbled();
    let told = passed(&line, 4096, &health);
    assert!(told.contains(r#""id":7"#) && told.contains("16777216 bytes"), "{told}");
    line.extend_from_slice(format!("\n{ANSWER}\n").as_bytes());
    let told = passed(&line, 4096, &health);
    assert!(told.lines().count() == 2 && told.ends_with(&format!("{ANSWER}\n")), "{told}");
}

// REQ: TOL-11
#[test]
fn line_of_which_nobody_knows_whom_it_answers_fails_all_calls_under_way() {
    for line in ["oops", "[1,2]", "{}", "\"text\"", r#"{"id":null,"result":{}}"#] {
        let lines = format!("{ANSWER}\n{line}\n{ANSWER}\n");
        let health = Health::new();
        assert_eq!(passed(lines.as_bytes(), 64, &health).matches("content").count(), 2, "{line}");
        let calls = [health.garbled(), health.garbled()];
        // The answer before it still comes.
        assert_eq!(passed(lines.as_bytes(), 64, &health), format!("{ANSWER}\n"), "{line}");
        assert!(calls.iter().all(|it| it.borrow().is_some()));
        assert!(block_on(health.broken()).is_some());
    }
}
