//! A client as small as can be: what it sends is what the test says.

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// How long an answer may take.
pub(crate) const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl HttpReply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body, of an answer with this status.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The code of a refusal.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        assert!(self.head.contains("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        problem["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends a request and returns what is answered.
pub(crate) async fn ask(
    address: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> HttpReply {
    let answer = async {
        let mut socket = send(address, line, headers, body).await;
        let head = read_head(&mut socket).await;
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).await.unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let bytes = if is_chunked { dechunked(&bytes) } else { bytes };
        let status = head[9..12].parse().unwrap();
        HttpReply { status, head, text: String::from_utf8(bytes).unwrap() }
    };
    timeout(LIMIT, answer).await.unwrap_or_else(|_| panic!("no answer to {line}"))
}

/// Sends a request without a body and returns the status of the answer, whose body may have no end.
pub(crate) async fn status(address: &str, line: &str, headers: &[(&str, &str)]) -> u16 {
    let head = async { read_head(&mut send(address, line, headers, None).await).await };
    let head = timeout(LIMIT, head).await.unwrap_or_else(|_| panic!("no answer to {line}"));
    head[9..12].parse().unwrap()
}

async fn send(
    address: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> BufReader<TcpStream> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|it| it.0.eq_ignore_ascii_case("host")) {
        text.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = body.map(ToString::to_string).unwrap_or_default();
    if !body.is_empty() {
        text.push_str("Content-Type: application/json\r\n");
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    socket.write_all(text.as_bytes()).await.unwrap();
    BufReader::new(socket)
}

async fn read_head(socket: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let n = socket.read_line(&mut head).await.unwrap();
        assert_ne!(n, 0, "the connection ended: {head:?}");
    }
    head
}

fn dechunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = bytes.windows(2).position(|it| it == b"\r\n") {
        let n = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        all.extend_from_slice(&bytes[end + 2..end + 2 + n]);
        bytes = &bytes[end + 4 + n..];
        if n == 0 {
            break;
        }
    }
    all
}

/// A stream of events that is open.
pub(crate) struct Stream {
    socket: BufReader<TcpStream>,
    /// The id of the last event.
    pub(crate) id: String,
}

impl Stream {
    pub(crate) async fn open(
        address: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Self {
        let mut socket = send(address, line, headers, body).await;
        let head = timeout(LIMIT, read_head(&mut socket)).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Self { socket, id: String::new() }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            let read = timeout(LIMIT, self.socket.read_line(&mut line)).await;
            if read.expect("no event within a minute").unwrap() == 0 {
                return None;
            }
            // The sizes of chunks are other lines.
            if let Some(id) = line.strip_prefix("id: ") {
                self.id = id.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// Reads until an event of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event =
                self.next().await.unwrap_or_else(|| panic!("the stream ended before {kind}"));
            if event["type"] == kind {
                return event;
            }
        }
    }
}
