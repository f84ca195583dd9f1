//! A server of pages on this machine that sends what a test says, byte by byte.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// What a server sends for a path.
type Script = dyn Fn(&str) -> Vec<u8> + Send + Sync;

/// A server on this machine, and what it was sent.
pub(super) struct Site {
    pub(super) base: String,
    pub(super) heads: Arc<Mutex<Vec<String>>>,
    /// Bytes that were taken from it.
    pub(super) n_sent: Arc<AtomicU64>,
    /// A request has come that gets no answer.
    pub(super) is_stuck: Arc<Notify>,
    pub(super) is_left: Arc<Notify>,
}

impl Site {
    /// Starts one that sends what the script says, byte by byte as it is. After nothing it is silent.
    pub(super) async fn start(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            heads: Arc::default(),
            n_sent: Arc::default(),
            is_stuck: Arc::default(),
            is_left: Arc::default(),
        };
        let (heads, n_sent) = (Arc::clone(&site.heads), Arc::clone(&site.n_sent));
        let (stuck, left) = (Arc::clone(&site.is_stuck), Arc::clone(&site.is_left));
        let script: Arc<Script> = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let head = head_of(&mut socket).await;
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                heads.lock().unwrap().push(head);
                let (answer, n_sent) = (script(&path), Arc::clone(&n_sent));
                let (stuck, left) = (Arc::clone(&stuck), Arc::clone(&left));
                tokio::spawn(async move {
                    if answer.is_empty() {
                        stuck.notify_one();
                        let _closed = socket.read(&mut [0; 16]).await;
                        left.notify_one();
                        return;
                    }
                    for chunk in answer.chunks(64 * 1024) {
                        if socket.write_all(chunk).await.is_err() {
                            return;
                        }
                        n_sent.fetch_add(chunk.len() as u64, Ordering::SeqCst);
                    }
                });
            }
        });
        site
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads.iter().map(|it| it.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
    }
}

pub(super) async fn head_of(socket: &mut TcpStream) -> String {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(n) => head.extend_from_slice(&buffer[..n]),
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(super) fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(super) fn html(body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", "content-type: text/html; charset=utf-8\r\n", body)
}
