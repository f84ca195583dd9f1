//! The server over a real socket: what a client sees of every fault.
//!
//! Built under `#[cfg(test)]` only.

mod faults;

use std::io::ErrorKind;

use ennead::testing::Playbook;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;

const FAULTS: &str = r#"
[[rule]]
name = "reset"
when.prompt = "reset"
reply = [{ text = "Hello" }]
fault = { action = "reset", at = 200 }
[[rule]]
name = "reset at once"
when.prompt = "at once"
reply = [{ text = "Hello" }]
fault = { action = "reset" }
[[rule]]
name = "stall"
when.prompt = "stall"
reply = [{ text = "Hello" }]
fault = { action = "stall", at = 200 }
[[rule]]
name = "cut"
when.prompt = "cut"
reply = [{ text = "Hello" }]
fault = { action = "end", at = 200 }
[[rule]]
name = "garbage"
when.prompt = "garbage"
reply = [{ text = "Hello" }]
fault = { action = "garbage", at = 200, size = 1000 }
[[rule]]
name = "huge"
when.prompt = "huge"
reply = [{ text = "Hello" }]
fault = { action = "huge_event", size = 3000000, content_type = "text/plain" }
[[rule]]
name = "busy"
when.prompt = "busy"
times = 1
fault = { status = 529, headers = { retry-after = "1" } }
[[rule]]
name = "pieces"
when.prompt = "pieces"
reply = [{ text = "Hello" }]
pace.cut = [1]
[[rule]]
name = "hello"
reply = [{ text = "Hello" }]
"#;

/// Runs `client` against a server, and ends the server.
async fn with_server<F: Future<Output = ()>>(client: impl FnOnce(u16, Arc<Simulator>) -> F) {
    serving(Playbook::parse(FAULTS, "test").unwrap(), client).await;
}

async fn serving<F: Future<Output = ()>>(
    playbook: Playbook,
    client: impl FnOnce(u16, Arc<Simulator>) -> F,
) {
    let simulator = Simulator::new(playbook);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let shutdown = CancellationToken::new();
    let server = serve(simulator.clone(), listener, shutdown.clone());
    let client = async {
        client(port, simulator).await;
        shutdown.cancel();
    };
    let (served, ()) = tokio::join!(server, client);
    served.unwrap();
}

async fn send(port: u16, method: &str, path: &str, body: &str) -> TcpStream {
    send_with("host: localhost\r\n", port, method, path, body).await
}

async fn send_with(headers: &str, port: u16, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let n_bytes = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {n_bytes}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}

fn asking(prompt: &str) -> String {
    json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": prompt}]})
        .to_string()
}

/// All that came, head and body, and how it ended.
async fn receive(mut stream: TcpStream) -> (String, Vec<u8>, Result<(), ErrorKind>) {
    let mut all = Vec::new();
    let end = loop {
        let mut buffer = [0; 8192];
        match stream.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(n) => all.extend_from_slice(&buffer[..n]),
            Err(error) => break Err(error.kind()),
        }
    };
    let at = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head came") + 4;
    let head = String::from_utf8(all[..at].to_vec()).unwrap();
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(&all[at..]) } else { all[at..].to_vec() };
    (head, body, end)
}

/// The content of chunks, as far as they came.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(at) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            content.extend_from_slice(b"<END>");
            break;
        }
        content.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 4 + size..];
    }
    content
}

async fn exchange(port: u16, prompt: &str) -> (String, Vec<u8>, Result<(), ErrorKind>) {
    receive(send(port, "POST", "/v1/messages", &asking(prompt)).await).await
}

// REQ: MDL-11
#[tokio::test]
async fn a_reset_reaches_the_client_after_the_bytes_before_it() {
    with_server(async |port, _| {
        let (head, body, end) = exchange(port, "reset").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!((body.len(), end), (200, Err(ErrorKind::ConnectionReset)));
        let (_, body, end) = exchange(port, "at once").await;
        assert_eq!((body.len(), end), (0, Err(ErrorKind::ConnectionReset)));
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_cut_ends_properly_and_too_early() {
    with_server(async |port, _| {
        let (_, body, end) = exchange(port, "cut").await;
        assert_eq!((body.len(), end), (200, Ok(())));
        assert!(!String::from_utf8(body).unwrap().contains("message_stop"));
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn a_stall_holds_the_connection_until_the_server_ends() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    with_server(async move |port, _| {
        let mut stream = send(port, "POST", "/v1/messages", &asking("stall")).await;
        let mut seen = Vec::new();
        let chunk = |seen: &[u8]| {
            let at = seen.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            at.is_some_and(|at| seen.len() == at + "c8\r\n".len() + 200 + "\r\n".len())
        };
        while !chunk(&seen) {
            let mut buffer = [0; 1024];
            let n = stream.read(&mut buffer).await.unwrap();
            assert!(n > 0 && seen.len() < 1024, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..n]);
        }
        // Another connection is served meanwhile, and nothing more has come on this one.
        let (head, ..) = exchange(port, "hello").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let more = stream.try_read(&mut [0; 8]).map_err(|error| error.kind());
        assert_eq!(more, Err(ErrorKind::WouldBlock));
        sender.send(stream).unwrap();
    })
    .await;
    // `with_server` has returned: the stalled answer did not keep the server up.
    let mut rest = Vec::new();
    let _ = receiver.await.unwrap().read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("message_stop"));
}

// REQ: MDL-11
#[tokio::test]
async fn odd_bytes_and_headers_arrive_as_written() {
    with_server(async |port, _| {
        let (head, plain, _) = exchange(port, "hello").await;
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("x-ennead-simulated: test"), "{head}");
        let (_, body, _) = exchange(port, "garbage").await;
        assert!(std::str::from_utf8(&body).is_err());
        let (head, body, _) = exchange(port, "huge").await;
        assert!(head.contains("content-type: text/plain"), "{head}");
        assert!(body.len() > 3_000_000);
        let (_, body, _) = exchange(port, "pieces").await;
        assert_eq!(body.len(), plain.len() + "<END>".len());
        let (head, ..) = exchange(port, "busy").await;
        assert!(head.starts_with("HTTP/1.1 529") && head.contains("retry-after: 1"), "{head}");
        let (head, ..) = exchange(port, "busy").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    })
    .await;
}

/// A request to count tokens, which takes no fields about an answer.
const COUNTED: &str =
    r#"{"model":"claude-sonnet-5","messages":[{"role":"user","content":"how many"}]}"#;

// REQ: MDL-11
#[tokio::test]
async fn other_requests_are_refused_as_the_api_does_and_all_are_logged() {
    with_server(async |port, simulator| {
        for (method, path, body, status, part) in [
            ("GET", "/v1/messages", "", "405", "invalid_request_error"),
            ("POST", "/v1/other", "", "404", "not_found_error"),
            ("POST", "/v1/models", "", "405", "invalid_request_error"),
            ("GET", "/v1/models", "", "200", "\"data\""),
            ("POST", "/v1/messages", "{", "400", "invalid_request_error"),
            ("POST", "/v1/messages/count_tokens", COUNTED, "200", "input_tokens"),
        ] {
            let (head, answer, _) = receive(send(port, method, path, body).await).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
            assert!(String::from_utf8(answer).unwrap().contains(part), "{path}");
        }
        let log = simulator.log();
        let statuses: Vec<_> = log.requests.iter().map(|request| request.status).collect();
        assert_eq!((log.n_requests, statuses), (6, vec![405, 404, 405, 200, 400, 200]));
    })
    .await;
}

// REQ: MDL-11
#[tokio::test]
async fn two_hundred_clients_are_served_at_once() {
    with_server(async |port, simulator| {
        let clients = (0..200).map(|i| async move { exchange(port, &format!("hello {i}")).await });
        for (head, body, end) in futures::future::join_all(clients).await {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert!(String::from_utf8(body).unwrap().contains("message_stop"));
            assert_eq!(end, Ok(()));
        }
        assert_eq!(simulator.log().n_requests, 200);
    })
    .await;
}

#[tokio::test]
async fn page_of_another_site_is_refused_before_the_model_hears_of_it() {
    with_server(|port, _| async move {
        for (headers, status) in [
            ("host: 127.0.0.1:80\r\n", 200),
            ("host: localhost\r\norigin: http://localhost:3000\r\n", 200),
            ("host: evil.example\r\n", 403),
            ("host: localhost\r\norigin: https://evil.example\r\n", 403),
        ] {
            let stream = send_with(headers, port, "POST", "/v1/messages", &asking("hi")).await;
            let (head, body, _) = receive(stream).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {head}");
            let body = String::from_utf8_lossy(&body);
            assert_eq!(body.contains("foreign site"), status == 403, "{headers}: {body}");
        }
    })
    .await;
}
