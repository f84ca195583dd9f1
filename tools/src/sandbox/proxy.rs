//! The only way from a confined command to a network: a proxy that lets listed hosts pass.
//!
//! The command runs in a network of its own that has nothing but a loopback device. Its helper listens
//! there and hands the socket to this process, which accepts on it: what connects comes from inside, what
//! is connected to is outside. Names are resolved here, and the address that was judged is the one that is
//! connected to.

mod request;
#[cfg(test)]
mod tests;

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use ennead_runtime::sandbox::{Host, HostRules};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional, sink},
    net::{TcpListener, TcpStream, lookup_host},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use self::request::{Refusal, Request};
use ennead_runtime::saturating::Saturating as _;

/// Connections of one command at a time: a browser has six for each host, package managers up to fifty.
/// More wait to be accepted.
const MAX_CONNECTIONS: usize = 64;

/// Bytes of the head of a request; servers commonly take 8 KiB.
const MAX_HEAD: usize = 16 * 1024;

/// How long a client has to send a head, however slowly it does.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// How long names are resolved and connections made.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How long what a refused client still sends is read, so that it gets the answer, and how much.
const DRAIN: (Duration, u64) = (Duration::from_secs(1), 64 * 1024);

/// A proxy for one command. Ends with all its connections when dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Serves what connects to this socket. To be called on a runtime.
    ///
    /// # Errors
    ///
    /// When the runtime cannot wait for the socket.
    pub(crate) fn start(socket: StdListener, rules: HostRules) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        let mut serving = JoinSet::new();
        serving.spawn(serve(socket, Arc::new(rules)));
        Ok(Self { _serving: serving })
    }
}

async fn serve(socket: TcpListener, rules: Arc<HostRules>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        // What has ended is taken out, so that the set does not grow.
        while connections.try_join_next().is_some() {}
        match socket.accept().await {
            Ok((client, _)) => {
                let rules = Arc::clone(&rules);
                connections.spawn(async move {
                    // Whoever broke off needs no word.
                    let _broken = connection(client, &rules).await;
                    drop(slot);
                });
            }
            // There are no descriptors, or the client is gone; others get a turn in between.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one request, and what follows it in its tunnel.
async fn connection(mut client: TcpStream, rules: &HostRules) -> io::Result<()> {
    let served = match timeout(HEAD_LIMIT, read_head(&mut client)).await {
        Ok(Ok(Some((head, rest)))) => match Request::read(&head) {
            Ok(request) => connect(&request, rules).await.map(|server| (request, server, rest)),
            Err(refusal) => Err(refusal),
        },
        Ok(Ok(None)) => {
            let status = "431 Request Header Fields Too Large";
            Err(Refusal(status, format!("a head has {MAX_HEAD} bytes at most")))
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => Err(Refusal("408 Request Timeout", "the head took too long".to_owned())),
    };
    match served {
        Ok((request, server, rest)) => pass(client, server, request, &rest).await,
        Err(refusal) => refuse(client, refusal).await,
    }
}

/// Reads until the empty line: the head, and what came after it. `None`: it is too long.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::with_capacity(1024);
    let mut n_seen: usize = 0;
    while bytes.len() < MAX_HEAD {
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = n_seen.saturating_sub(3);
        if let Some(at) = bytes[from..].windows(4).position(|it| it == b"\r\n\r\n") {
            let rest = bytes.split_off(from + at + 4);
            return Ok((bytes.len() <= MAX_HEAD).then_some((bytes, rest)));
        }
        n_seen = bytes.len();
    }
    Ok(None)
}

/// Connects to the host of a request, at an address that it may be reached at.
async fn connect(request: &Request, rules: &HostRules) -> Result<TcpStream, Refusal> {
    let Request { host, port, .. } = request;
    let shown = match host {
        Host::Name(name) => name.clone(),
        Host::Address(address) => address.to_string(),
    };
    let refused = |why: &str| {
        let words = format!("the sandbox does not let {shown} be reached: {why}");
        Err(Refusal("403 Forbidden", words))
    };
    if !rules.allow(host) {
        return refused("it is not in sandbox.network.allowedDomains, or is in deniedDomains");
    }
    let reach = async {
        let all: Vec<SocketAddr> = match host {
            Host::Address(address) => vec![SocketAddr::new(*address, *port)],
            Host::Name(name) => lookup_host((name.as_str(), *port)).await?.collect(),
        };
        let allowed = all.iter().filter(|it| rules.allow_at(host, it.ip()));
        let mut last = None;
        for address in allowed.take(MAX_ADDRESSES) {
            match TcpStream::connect(address).await {
                Ok(server) => return Ok(Some(server)),
                Err(error) => last = Some(error),
            }
        }
        last.map_or(Ok(None), Err)
    };
    match timeout(CONNECT_LIMIT, reach).await {
        Ok(Ok(Some(server))) => Ok(server),
        Ok(Ok(None)) => refused("it has no address but those of this machine or its network"),
        Ok(Err(error)) => {
            Err(Refusal("502 Bad Gateway", format!("{shown} cannot be reached: {error}")))
        }
        Err(_) => Err(Refusal("504 Gateway Timeout", format!("{shown} does not answer"))),
    }
}

/// Passes a request on, with its body and no more, or opens a tunnel.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    request: Request,
    rest: &[u8],
) -> io::Result<()> {
    let Some(plain) = request.plain else {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        server.write_all(rest).await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    };
    server.write_all(plain.head.as_bytes()).await?;
    let n_here = rest.len().min(usize::saturating(plain.body));
    server.write_all(&rest[..n_here]).await?;
    let (from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut body = from_client.take(plain.body - n_here as u64);
    {
        let mut upload = pin!(copy(&mut body, &mut to_server));
        let mut download = pin!(copy(&mut from_server, &mut to_client));
        tokio::select! {
            biased;
            done = &mut download => { done?; }
            // A server may answer what it did not read to its end.
            _sent = &mut upload => { download.await?; }
        }
    }
    to_client.shutdown().await
}

async fn refuse(mut client: TcpStream, Refusal(status, why): Refusal) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    client.write_all(head.as_bytes()).await?;
    client.shutdown().await?;
    let rest = async { copy(&mut client.take(DRAIN.1), &mut sink()).await };
    let _late = timeout(DRAIN.0, rest).await;
    Ok(())
}
