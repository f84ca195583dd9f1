//! Every fault of a playbook, as the HTTP client of ennead sees it.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, path::Path};

use ennead::internal::{Http, parse_in};
use ennead_runtime::ports::{Transport, TransportError, WireRequest, WireResponse};
use futures::{FutureExt, TryStreamExt};
use http::HeaderMap;
use tokio::io::AsyncReadExt;

use super::{asking, receive, send, serving};

/// One rule for each prompt. Texts of refusals are those of the API.
const FAULTS: &str = r#"
[[rule]]
name = "rate limited"
when.prompt = "429"
fault = { status = 429, message = "Number of requests has exceeded your rate limit", headers = { retry-after = "7", anthropic-ratelimit-requests-remaining = "0", anthropic-ratelimit-requests-reset = "2026-01-01T00:00:00Z" } }
[[rule]]
name = "headers of an answer"
when.prompt = "remaining"
reply = [{ text = "Hello" }]
fault.headers = { anthropic-ratelimit-tokens-remaining = "12" }
[[rule]]
name = "too long"
when.prompt = "too long"
fault = { status = 400, message = "prompt is too long: 210000 tokens > 200000 maximum" }
[[rule]]
name = "no JSON"
when.prompt = "page"
fault = { status = 200, body = "<html>please log in</html>", content_type = "text/html" }
[[rule]]
name = "refusal"
when.prompt = "refusal"
reply = []
stop = "refusal"
[[rule]]
name = "cut by the ceiling"
when.prompt = "ceiling"
reply = [{ text = "Hel" }]
stop = "max_tokens"
[[rule]]
name = "pause"
when.prompt = "pause"
reply = [{ text = "Let me look." }]
stop = "pause_turn"
[[rule]]
name = "error in the middle"
when.prompt = "error"
reply = [{ text = "Hello" }]
fault = { action = "error_event", at = 300, error = "overloaded_error" }
[[rule]]
name = "drip"
when.prompt = "drip"
reply = [{ text = "Hello" }]
pace = { cut = [1], between_ms = 1 }
fault = { action = "end", at = 40 }
[[rule]]
name = "drip of an error"
when.prompt = "trickle"
pace = { cut = [10], between_ms = 1 }
fault = { status = 500, body = "0123456789abcdefghij" }
[[rule]]
name = "storm"
when.prompt = "storm"
faults = [{ status = 529 }, { action = "reset", at = 100 }, { action = "close", at = 100 }, {}]
reply = [{ text = "Hello" }]
[[rule]]
name = "no answer"
when.prompt = "no answer"
fault = { action = "end", before_head = true }
[[rule]]
name = "no answer but a reset"
when.prompt = "slammed"
fault = { action = "reset", before_head = true }
[[rule]]
name = "silence"
when.prompt = "silence"
fault = { action = "stall", before_head = true }
[[rule]]
name = "stall"
when.prompt = "stall"
reply = [{ text = "Hello" }]
fault = { action = "stall", at = 50 }
[[rule]]
name = "recorded"
when.prompt = "recorded"
fault = { status = 200, body_file = "s15_bom.sse", content_type = "text/event-stream", action = "end", at = "prompt|number" }
"#;

const STREAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/sse_streams");

/// A client against the server of [`FAULTS`].
struct Client {
    http: Http,
    url: String,
}

/// How an answer ended.
#[derive(Debug, PartialEq, Eq)]
enum AnswerEnd {
    Properly,
    /// The error came from the server, not from a limit of the client.
    Broken,
    /// There was nothing more to read, and no end.
    Not,
}

impl Client {
    async fn ask(&self, prompt: &str) -> Result<WireResponse, TransportError> {
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let patience = std::time::Duration::MAX;
        let request = WireRequest::new(self.url.as_str(), headers, asking(prompt), patience);
        self.http.send(request).await
    }

    /// Status, headers, body, end.
    async fn read(&self, prompt: &str) -> (u16, HeaderMap, String, AnswerEnd) {
        let mut response = self.ask(prompt).await.unwrap();
        let mut body = Vec::new();
        let end = loop {
            match response.body.try_next().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => break AnswerEnd::Properly,
                Err(TransportError::Broken { .. }) => break AnswerEnd::Broken,
                Err(other) => panic!("{prompt}: {other}"),
            }
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        (response.status, response.headers, body, end)
    }
}

async fn with_client<F: Future<Output = ()>>(work: impl FnOnce(Client) -> F) {
    let playbook = parse_in(Path::new(STREAMS), FAULTS, "faults").unwrap();
    serving(playbook, async |port, _| {
        let http = Http::new().unwrap();
        work(Client { http, url: format!("http://127.0.0.1:{port}/v1/messages") }).await;
    })
    .await;
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |it| it.to_str().unwrap())
}

// REQ: MDL-11
#[tokio::test]
async fn refusals_carry_their_status_text_and_headers() {
    with_client(async |client| {
        let (status, headers, body, end) = client.read("429").await;
        assert_eq!((status, end), (429, AnswerEnd::Properly));
        assert_eq!(header(&headers, "retry-after"), "7");
        assert_eq!(header(&headers, "anthropic-ratelimit-requests-remaining"), "0");
        assert!(body.contains("rate_limit_error"), "{body}");
        let (status, _, body, _) = client.read("too long").await;
        assert_eq!(status, 400);
        assert!(body.contains("prompt is too long: 210000 tokens > 200000 maximum"), "{body}");
        let (status, headers, body, _) = client.read("remaining").await;
        assert_eq!((status, header(&headers, "anthropic-ratelimit-tokens-remaining")), (200, "12"));
        assert!(body.contains("message_stop"), "{body}");
        let (status, headers, body, _) = client.read("page").await;
        assert_eq!((status, header(&headers, "content-type")), (200, "text/html"));
        assert_eq!(body, "<html>please log in</html>");
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn answers_stop_for_the_reason_that_is_written() {
    with_client(async |client| {
        for (prompt, reason) in
            [("refusal", "refusal"), ("ceiling", "max_tokens"), ("pause", "pause_turn")]
        {
            let (_, _, body, end) = client.read(prompt).await;
            assert!(body.contains(&format!(r#""stop_reason":"{reason}""#)), "{body}");
            assert_eq!(end, AnswerEnd::Properly);
        }
        let (status, _, body, end) = client.read("error").await;
        assert_eq!((status, end), (200, AnswerEnd::Properly));
        assert!(body.contains("event: error") && !body.contains("message_stop"), "{body}");
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_drip_arrives_byte_by_byte() {
    with_client(async |client| {
        let mut response = client.ask("drip").await.unwrap();
        let mut sizes = Vec::new();
        while let Some(bytes) = response.body.try_next().await.unwrap() {
            sizes.push(bytes.len());
        }
        assert_eq!(sizes.iter().sum::<usize>(), 40);
        // What came while the client was busy arrives together.
        assert!(20 < sizes.len(), "{sizes:?}");
        let (status, _, body, _) = client.read("trickle").await;
        assert_eq!((status, body.as_str()), (500, "0123456789abcdefghij"));
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn faults_come_in_turn() {
    with_client(async |client| {
        let (status, ..) = client.read("storm").await;
        assert_eq!(status, 529);
        for fault in ["reset", "closed"] {
            let (status, _, body, end) = client.read("storm").await;
            assert_eq!((status, body.len(), end), (200, 100, AnswerEnd::Broken), "{fault}");
        }
        for _ in 0..2 {
            let (_, _, body, end) = client.read("storm").await;
            assert!(body.contains("message_stop") && end == AnswerEnd::Properly, "{body}");
        }
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_connection_may_end_before_the_head() {
    with_client(async |client| {
        for prompt in ["no answer", "slammed"] {
            let answer = client.ask(prompt).await;
            assert!(matches!(answer, Err(TransportError::Broken { .. })), "{prompt}: {answer:?}");
        }
        // One that is silent stays so while another is served.
        let mut silent = Box::pin(client.ask("silence"));
        let (status, ..) = tokio::select! {
            biased;
            answer = &mut silent => panic!("{answer:?}"),
            other = client.read("remaining") => other,
        };
        assert_eq!(status, 200);
        assert!(silent.now_or_never().is_none());
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_close_and_a_reset_are_told_apart_by_whoever_looks() {
    let playbook = parse_in(Path::new(STREAMS), FAULTS, "faults").unwrap();
    serving(playbook, async |port, _| {
        let exchange =
            async |prompt: &str| send(port, "POST", "/v1/messages", &asking(prompt)).await;
        let ended = async |prompt: &str| receive(exchange(prompt).await).await.2;
        assert!(receive(exchange("storm").await).await.0.starts_with("HTTP/1.1 529"));
        assert_eq!(ended("storm").await, Err(std::io::ErrorKind::ConnectionReset));
        let (_, body, end) = receive(exchange("storm").await).await;
        // No chunk says that this is the end.
        assert_eq!((body.len(), end), (100, Ok(())));
        let nothing = async |prompt: &str| {
            let (mut stream, mut all) = (exchange(prompt).await, Vec::new());
            let end = stream.read_to_end(&mut all).await;
            (end.map_err(|it| it.kind()), all)
        };
        assert_eq!(nothing("no answer").await, (Ok(0), Vec::new()));
        let reset = Err(std::io::ErrorKind::ConnectionReset);
        assert_eq!(nothing("slammed").await, (reset, Vec::new()));
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_stall_is_neither_an_end_nor_an_error() {
    with_client(async |client| {
        let mut response = client.ask("stall").await.unwrap();
        let mut body = Vec::new();
        while body.len() < 50 {
            body.extend_from_slice(&response.body.try_next().await.unwrap().unwrap());
        }
        let mut more = response.body.try_next();
        let end = tokio::select! {
            biased;
            more = &mut more => panic!("{more:?}"),
            _ = client.read("remaining") => AnswerEnd::Not,
        };
        assert_eq!((body.len(), end), (50, AnswerEnd::Not));
        assert!(more.now_or_never().is_none());
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_recorded_stream_is_served_to_the_byte() {
    let whole = fs::read(Path::new(STREAMS).join("s15_bom.sse")).unwrap();
    with_client(async |client| {
        for at in [0, 1, 3, 200, whole.len(), whole.len() + 1] {
            let (_, headers, body, end) = client.read(&format!("recorded {at}")).await;
            assert_eq!(body, String::from_utf8_lossy(&whole[..at.min(whole.len())]));
            assert_eq!(end, AnswerEnd::Properly);
            assert_eq!(header(&headers, "content-type"), "text/event-stream");
        }
    })
    .await;
}

// REQ: MDL-11
#[test]
fn files_of_a_playbook_lie_below_its_folder() {
    let check = |file: &str, why: &str| {
        let rule =
            format!("[[rule]]\nname = 'r'\nfault = {{ status = 200, body_file = '{file}' }}");
        let error = parse_in(Path::new(STREAMS), &rule, "p").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    check("/etc/hostname", "name a file below the folder");
    check("../stop_check.jsonl", "name a file below the folder");
    check("", "name a file below the folder");
    check("nothing", "No such file");
    check(".", "below the folder");
}
