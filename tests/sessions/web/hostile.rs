//! Servers and addresses that are made to do harm.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

use super::{
    allowed, fetch, fetched, fetches, is_about_page,
    site::{Site, head_of, html, response},
    transcript,
};
use crate::support::{
    host::{interrupted, prompt, results},
    record,
    scripted::{Asked, TestDirs, calls, finish, model, text},
    settings::SettingsJson as _,
    tls_server::TlsServer,
    until::within,
};

// REQ: TOL-6
#[tokio::test]
async fn redirect_to_another_host_is_named_and_not_followed() {
    let other = Site::start(|_| html("never")).await;
    let to = other.url("/secret?a=1");
    let location = format!("location: {to}\r\n");
    let site = Site::start(move |path| match path {
        "/a" => response("302 Found", "location: /b\r\n", ""),
        "/b" => response("301 Moved Permanently", "location: b/../c\r\n", ""),
        "/c" => html("<p>found"),
        "/loop" => response("307 Temporary Redirect", "location: /loop\r\n", ""),
        "/user" => response("302 Found", "location: //user:pw@127.0.0.1/\r\n", ""),
        "/file" => response("302 Found", "location: file:///etc/passwd\r\n", ""),
        "/meta" => response("302 Found", "location: http://169.254.169.254/latest\r\n", ""),
        _ => response("302 Found", &location, "ignored"),
    })
    .await;
    let urls = ["/a", "/away", "/loop", "/user", "/file", "/meta"].map(|it| site.url(it));
    let found = fetched(urls.to_vec()).await;
    assert_eq!(found[0], (false, "It is so.".to_owned()));
    let (is_error, away) = &found[1];
    assert!(!is_error && away.contains(&to) && away.contains(&site.url("/away")), "{away}");
    for (at, words) in
        [(2, "more than 10"), (3, "password"), (4, "http or https"), (5, "metadata of clouds")]
    {
        assert!(found[at].0 && found[at].1.contains(words), "{:?}", found[at]);
    }
    assert!(other.paths().is_empty());
    assert_eq!(site.paths().iter().filter(|it| *it == "/loop").count(), 11);
}

// REQ: TOL-6
#[tokio::test]
async fn what_is_no_page_is_an_error_with_its_reason() {
    let site = Site::start(|path| match path {
        "/404" => response("404 Not Found", "content-type: text/html\r\n", "gone"),
        "/png" => response("200 OK", "content-type: image/png\r\n", b"\x89PNG"),
        "/gzip" => {
            response("200 OK", "content-type: text/html\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b")
        }
        "/zero" => response("200 OK", "content-type: text/plain\r\n", b"a\0b"),
        "/empty" => html("<script>x</script>"),
        "/flood" => {
            let flood: String = (0..200_000).map(|n| format!("x-{n}: {n}\r\n")).collect();
            response("200 OK", &flood, "x")
        }
        "/long" => response("200 OK", &format!("x: {}\r\n", "y".repeat(5_000_000)), "x"),
        "/short" => {
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\nabc".to_vec()
        }
        _ => b"SSH-2.0-OpenSSH\r\n".to_vec(),
    })
    .await;
    let paths = ["/404", "/png", "/gzip", "/zero", "/empty", "/flood", "/long", "/short", "/ssh"];
    let found = fetched(paths.map(|it| site.url(it)).to_vec()).await;
    let words = [
        "404 Not Found",
        "image/png",
        "gzip",
        "binary",
        "no text",
        "not fetched",
        "not fetched",
        "not fetched",
        "not fetched",
    ];
    for ((path, words), (is_error, result)) in paths.iter().zip(words).zip(&found) {
        assert!(*is_error && result.contains(words), "{path}: {result}");
        assert!(result.len() < 2000, "{path}: {}", result.len());
    }
}

// REQ: TOL-6, TOL-2
#[tokio::test]
async fn hostile_pages_are_read_as_far_as_they_may_be_and_harm_nobody() {
    const MIB: usize = 1024 * 1024;
    let site = Site::start(|path| match path {
        "/deep" => html(format!("<p>start{}end", "<div><b>".repeat(100_000))),
        "/closed" => html(format!("{}end{}", "<i>".repeat(100_000), "</i>".repeat(100_000))),
        "/adopted" => html("<a><b><p></a>x".repeat(100_000)),
        "/huge" => html("<p>0123456789</p>\n".repeat(50 * MIB / 18)),
        "/hidden" => html(format!("<script>{}", "x".repeat(50 * MIB))),
        "/lie" => response(
            "200 OK",
            "content-type: text/html; charset=utf-16\r\n",
            b"\x80abc".repeat(1000),
        ),
        _ => Vec::new(),
    })
    .await;
    let paths = ["/deep", "/closed", "/adopted", "/huge", "/lie", "/hidden"];
    let found = fetched(paths.map(|it| site.url(it)).to_vec()).await;
    for (path, (is_error, result)) in paths.iter().zip(&found).take(5) {
        assert!(!is_error, "{path}: {result}");
    }
    assert!(found[5].0 && found[5].1.contains("no text"), "{:?}", found[5]);
    let n_sent = site.n_sent.load(Ordering::SeqCst);
    assert!(n_sent < 60 * MIB as u64, "of 100 MiB {n_sent} bytes were taken");
}

// REQ: TOL-6, TOL-3
#[tokio::test]
async fn interrupt_leaves_a_server_that_is_silent() {
    let site = Site::start(|_| Vec::new()).await;
    let place = TestDirs::new();
    let model = fetches(vec![site.url("/")], || text("never"));
    let ennead = place.start(&model).await;
    let session = ennead.open(allowed(&place)).await.unwrap();
    let run = prompt(&session, "go");
    within("a request", site.is_stuck.notified()).await;
    session.interrupt();
    interrupted(run).await;
    within("an end of the exchange", site.is_left.notified()).await;
    finish(ennead, session).await;
    drop(record::verified(&transcript(&place)));
}

// REQ: TOL-2
#[tokio::test]
async fn three_pages_are_fetched_at_once_and_no_more() {
    let most = Arc::new(AtomicU64::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let peak = Arc::clone(&most);
    tokio::spawn(async move {
        let mut waiting = Vec::new();
        loop {
            // With three that wait, a fourth has this long to come.
            let next = tokio::time::timeout(Duration::from_millis(100), listener.accept());
            if waiting.len() < 3 {
                waiting.push(listener.accept().await.unwrap().0);
            } else if let Ok(accepted) = next.await {
                waiting.push(accepted.unwrap().0);
            } else {
                peak.fetch_max(waiting.len() as u64, Ordering::SeqCst);
                for mut socket in waiting.drain(..) {
                    head_of(&mut socket).await;
                    socket.write_all(&html("<p>x")).await.unwrap();
                }
            }
        }
    });
    let all: Vec<_> = (0..6).map(|n| (format!("t{n}"), fetch(&format!("{base}/{n}")))).collect();
    let place = TestDirs::new();
    let model = model(move |asked: &Asked| match (is_about_page(asked), asked.n_answers()) {
        (true, _) => text("ok"),
        (false, 0) => {
            let all: Vec<_> = all.iter().map(|it| (&*it.0, "WebFetch", it.1.clone())).collect();
            calls(&all)
        }
        _ => text("done"),
    });
    let outcome = place.run(&model, allowed(&place)).await;
    assert_eq!(results(&outcome).len(), 6);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

// REQ: TOL-6
#[tokio::test]
async fn addresses_that_are_not_of_the_web_are_refused_before_anything_is_sent() {
    let place = TestDirs::new();
    let site = Site::start(|_| html("never")).await;
    let port = site.base.rsplit(':').next().unwrap().to_owned();
    let urls = [
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://0.0.0.0:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://user:pw@127.0.0.1:{port}/"),
        format!("http://[::ffff:0.0.0.0]:{port}/"),
    ];
    let model = fetches(urls.to_vec(), || text("never"));
    let outcome = place.run(&model, allowed(&place)).await;
    let found = results(&outcome);
    assert_eq!(found.len(), urls.len());
    assert!(found.iter().all(|it| it.0), "{found:?}");
    assert!(site.paths().is_empty());
    assert!(!model.asked().iter().any(is_about_page));
}

// REQ: TOL-6, MDL-1
#[tokio::test]
async fn server_of_pages_is_believed_as_one_of_models_is() {
    for protocols in [&["h2", "http/1.1"][..], &["http/1.1"]] {
        let server = TlsServer::start(protocols, &["127.0.0.1"]).await;
        let url = format!("{}/page", server.base());
        for (extra, words) in
            [(json!(""), "certificate"), (json!(server.authority()), "answered 404")]
        {
            let place = TestDirs::new();
            let model = fetches(vec![url.clone()], || text("never"));
            let env = json!({"NODE_EXTRA_CA_CERTS": extra, "SSL_CERT_FILE": ""});
            let outcome = place.run(&model, allowed(&place).setting("env", env)).await;
            let (is_error, result) = results(&outcome).remove(0);
            assert!(is_error && result.contains(words), "{protocols:?}: {result}");
        }
        assert!(0 < server.traffic().refused);
    }
}
