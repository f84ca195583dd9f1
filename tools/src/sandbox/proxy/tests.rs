//! The proxy between real sockets of this machine.

use std::net::SocketAddr;

use super::*;

/// A proxy with these rules, and its address.
async fn proxy(allowed: &[&str], denied: &[&str]) -> (Proxy, SocketAddr) {
    let texts = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
    let rules = HostRules { allowed: texts(allowed), denied: texts(denied) };
    let socket = StdListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (Proxy::start(socket, rules).unwrap(), address)
}

/// A server that answers one connection with what it read of it until `end`.
async fn server(end: &'static str) -> (u16, JoinSet<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let served = async move {
        let (mut client, _) = socket.accept().await.unwrap();
        let mut text = String::new();
        let mut bytes = [0; 1024];
        while !text.ends_with(end) {
            let n = client.read(&mut bytes).await.unwrap();
            assert_ne!(n, 0, "{text:?}");
            text += std::str::from_utf8(&bytes[..n]).unwrap();
        }
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\nhey").await.unwrap();
        text
    };
    let mut serving = JoinSet::new();
    serving.spawn(served);
    (port, serving)
}

/// What the proxy answers to these bytes.
async fn ask(address: SocketAddr, bytes: &str) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await;
    read.unwrap().unwrap();
    answer
}

// REQ: TOL-10
#[tokio::test]
async fn listed_host_is_reached_and_gets_one_request_with_its_own_name() {
    let (_proxy, address) = proxy(&["127.0.0.1"], &[]).await;
    let (port, mut served) = server("abc").await;
    let answer = ask(
        address,
        &format!(
            "POST http://127.0.0.1:{port}/p HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\n\
             abcGET /second HTTP/1.1\r\nHost: other.example\r\n\r\n"
        ),
    )
    .await;
    assert!(answer.ends_with("\r\n\r\nhey"), "{answer}");
    let got = served.join_next().await.unwrap().unwrap();
    let expected = format!(
        "POST /p HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    );
    assert_eq!(got, expected);
}

// REQ: TOL-10
#[tokio::test]
async fn tunnel_carries_any_bytes_both_ways() {
    let (_proxy, address) = proxy(&["localhost"], &[]).await;
    let (port, mut served) = server("ping").await;
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nping");
    let answer = ask(address, &request).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hey"), "{answer}");
    assert_eq!(served.join_next().await.unwrap().unwrap(), "ping");
}

// REQ: TOL-10
#[tokio::test]
async fn host_that_is_not_listed_is_refused_and_no_connection_is_made() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let get = |host: &str| format!("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n");
    let connect = |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n");
    for (allowed, denied, host) in [
        (&["a.example"][..], &[][..], "127.0.0.1"),
        (&["*"], &[], "127.0.0.1"),
        (&["*"], &[], "localhost"),
        (&["*"], &[], "[::ffff:127.0.0.1]"),
        (&["localhost", "127.0.0.1"], &["127.0.0.1"], "127.0.0.1"),
        (&["localhost"], &["127.0.0.1", "::1"], "localhost"),
    ] {
        let (_proxy, address) = proxy(allowed, denied).await;
        for request in [get(host), connect(host)] {
            let answer = ask(address, &request).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{allowed:?} {request}: {answer}");
        }
    }
    let none = timeout(Duration::from_millis(1), socket.accept()).await;
    assert!(none.is_err(), "{none:?}");
}

// REQ: TOL-10
#[tokio::test(start_paused = true)]
async fn head_without_end_is_bounded_in_time_and_bytes() {
    let (_proxy, address) = proxy(&["127.0.0.1"], &[]).await;
    let slow = ask(address, "GET http://127.0.0.1/ HTTP/1.1\r\nA: b\r\n").await;
    assert!(slow.starts_with("HTTP/1.1 408 "), "{slow}");
    let long = format!("GET http://127.0.0.1/ HTTP/1.1\r\nA: {}", "b".repeat(MAX_HEAD));
    let long = ask(address, &long).await;
    assert!(long.starts_with("HTTP/1.1 431 "), "{long}");
    let odd = ask(address, "GET http://127.0.0.1/ HTTP/1.1\nHost: a\r\n\r\n").await;
    assert!(odd.starts_with("HTTP/1.1 400 "), "{odd}");
}

// REQ: TOL-10
#[tokio::test]
async fn proxy_that_is_dropped_ends_its_tunnels() {
    let (proxy, address) = proxy(&["127.0.0.1"], &[]).await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let (mut inner, _) = socket.accept().await.unwrap();
    drop(proxy);
    let mut bytes = Vec::new();
    let ended = timeout(Duration::from_secs(60), inner.read_to_end(&mut bytes)).await;
    assert!(ended.is_ok(), "the tunnel is closed");
    assert!(TcpStream::connect(address).await.is_err());
}
