//! The scripted model on a real socket.
//!
//! Written on plain TCP, because what it is for is what HTTP libraries prevent: bodies that end too
//! early, and bodies that do not end.

use std::{io, pin::pin, sync::Arc};

use ennead::{
    Endpoint,
    data::{ResponseBody, TransportError, WireRequest, WireResponse},
    internal::Http,
    model::{GovernorLimits, Transport},
    tool::BoxFuture,
};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::JoinHandle,
};

pub(crate) use super::scripted::Reply;
use super::scripted::{Asked, Body, End, Scripted};

/// Tells [`Patience`] after how many bytes nothing comes any more.
const STALLS: &str = "x-stalls-behind";

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ModelServer {
    address: String,
    model: Arc<Scripted>,
    accepting: JoinHandle<()>,
    /// Its own, for tests that have none.
    runtime: Option<Runtime>,
}

impl ModelServer {
    /// Serves what this function says, and keeps nothing of what it is asked.
    pub(crate) async fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(Scripted::forgetful(script))).await
    }

    /// Serves this model on a loopback port that the system chooses.
    pub(crate) async fn serve(model: Arc<Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&model)));
        Self { address, model, accepting, runtime: None }
    }

    /// Serves this model on a thread, to a process that the test waits for.
    pub(crate) fn on_a_thread(model: Arc<Scripted>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let mut server = runtime.block_on(Self::serve(model));
        server.runtime = Some(runtime);
        server
    }

    /// Its address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The model that it serves.
    pub(crate) fn model(&self) -> &Scripted {
        &self.model
    }

    /// Where it is, as a provider of this name.
    pub(crate) fn endpoint(&self, provider: &str) -> Endpoint {
        Endpoint::messages(&self.address, None).named(provider)
    }
}

/// Limits under which the governor lets every call through: for tests of what a turn makes of
/// failures, hundreds of which would open its breaker. It has tests of its own.
pub(crate) fn letting_through() -> GovernorLimits {
    let mut limits = GovernorLimits::default();
    limits.breaker.failure_percent = 101;
    (limits.retries.percent, limits.retries.per_second, limits.retries.most) =
        (100, u32::MAX, u32::MAX);
    limits
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, model: Arc<Scripted>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        tokio::spawn(serve(stream, Arc::clone(&model)));
    }
}

/// Serves one connection until somebody closes it.
async fn serve(stream: TcpStream, model: Arc<Scripted>) {
    let mut stream = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut stream).await {
        let (asked, reply) = model.receive(body, head);
        let waiting = async {
            reply.wait().await;
            !matches!(reply.end, End::HungUp) && send(&mut stream, &asked, &reply).await.is_ok()
        };
        if !waiting.await {
            return;
        }
        match &reply.end {
            End::Proper => {}
            End::Silent | End::HungUp | End::Cut => return,
            End::Stall(barrier) => {
                // Until the client has had enough.
                let (passed, closed) = (barrier.pass(), stream.read_u8());
                let _closed = tokio::join!(passed, closed);
                return;
            }
        }
    }
}

/// Sends the answer as far as it comes.
async fn send(stream: &mut BufReader<TcpStream>, asked: &Asked, reply: &Reply) -> io::Result<()> {
    let (body, content_type) = reply.encode(asked);
    let half = body.len() / 2;
    let mut head = format!("HTTP/1.1 {} said\r\ncontent-type: {content_type}\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Body::Paced(paced) = &reply.body {
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut pieces = pin!(paced.clone().stream());
        while let Some(piece) = pieces.next().await {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            stream.write_all(chunk.as_bytes()).await?;
        }
        return Ok(());
    }
    head.push_str(&format!("content-length: {}\r\n", body.len()));
    if matches!(reply.end, End::Stall(_)) {
        head.push_str(&format!("{STALLS}: {half}\r\n"));
    }
    head.push_str("\r\n");
    let sent = match reply.end {
        End::Cut | End::Stall(_) => &body[..half],
        _ => &body[..],
    };
    stream.write_all(&[head.as_bytes(), sent].concat()).await
}

/// The lines in front of the body, and the body.
async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut head, mut length) = (String::new(), None);
    loop {
        let begun = head.len();
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        let line = head[begun..].trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse::<usize>().ok();
        }
    }
    let mut body = vec![0; length?];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

/// HTTP that finds a stream stalled as soon as it is: where its server says that nothing comes any
/// more, nobody waits for that.
#[derive(Debug)]
pub(crate) struct Patience(Http);

impl Patience {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Http::new().unwrap()))
    }
}

impl Transport for Patience {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let sent = self.0.send(request);
        Box::pin(async move {
            let mut response = sent.await?;
            let stalls = response.headers.get(STALLS).and_then(|it| it.to_str().ok());
            if let Some(left) = stalls.and_then(|it| it.parse().ok()) {
                response.body = stalled(response.body, left);
            }
            Ok(response)
        })
    }
}

/// The body until this many bytes of it have come, and then silence for too long.
fn stalled(body: ResponseBody, left: usize) -> ResponseBody {
    Box::pin(stream::try_unfold((body, left), async |(mut body, left)| {
        if left == 0 {
            return Err(TransportError::Idle { ms: 300_000 });
        }
        let chunk = body.try_next().await?;
        Ok(chunk.map(|it| {
            let left = left.saturating_sub(it.len());
            (it, (body, left))
        }))
    }))
}
