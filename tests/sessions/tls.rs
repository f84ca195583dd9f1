//! Model servers over TLS: what is spoken, how many connections it takes, and whom ennead believes.

use std::{path::Path, process::Stdio, time::Duration};

use axum::http::Version;
use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, RunOutcome, SessionOptions,
    data::{WireRequest, WireResponse},
    internal::Http,
    model::Transport,
};
use ennead_runtime::{step1_settings_resolution::Certificates, transcript::entry::RecordKind};
use futures::{FutureExt, TryStreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::settings::SettingsJson as _;
use crate::support::{
    record,
    tls_server::{First, RefusingServer, TlsServer, Traffic},
};

/// Addresses that the certificates of these tests are for.
const HERE: &[&str] = &["127.0.0.1"];

/// Runs two prompts in one session with these variables in the user's settings, and gives what became
/// of them, and class and message of each attempt.
async fn two_prompts(base: &str, env: Value) -> ([RunOutcome; 2], Vec<(String, String)>) {
    let options = Options::default().placement(Placement::Ambient);
    let ennead = Ennead::start(options).await.unwrap();
    let directory = TempDir::new().unwrap();
    let session = session_in(&directory, base).setting("env", env);
    let session = ennead.open(session).await.unwrap();
    let outcomes = [session.prompt("one").await.unwrap(), session.prompt("two").await.unwrap()];
    session.close().await;
    record::verified(session.transcript());
    let records = record::records(session.transcript()).into_iter();
    let attempts = records.filter_map(|it| match it.what {
        RecordKind::ModelAttempt { outcome, message, .. } => {
            Some((outcome, message.unwrap_or_default()))
        }
        _ => None,
    });
    (outcomes, attempts.collect())
}

fn session_in(directory: &TempDir, base: &str) -> SessionOptions {
    let session = SessionOptions::new(directory.path(), Endpoint::messages(base, None))
        .home(directory.path().to_owned())
        .tools(Vec::new());
    session.isolated()
}

fn trusting(file: &Path) -> Value {
    json!({ "NODE_EXTRA_CA_CERTS": file, "SSL_CERT_FILE": "" })
}

// REQ: MDL-1
#[tokio::test]
async fn calls_go_over_one_connection_in_the_best_protocol_that_is_offered() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["h2"], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let server = TlsServer::start(protocols, HERE).await;
        let (outcomes, _) = two_prompts(&server.base(), trusting(&server.authority())).await;
        for outcome in outcomes {
            assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done"));
        }
        let expected = Traffic { connections: 1, refused: 0, requests: vec![version; 2] };
        assert_eq!(server.traffic(), expected, "{protocols:?}");
    }
}

// REQ: MDL-1, MDL-12
#[tokio::test]
async fn connection_that_fails_an_exchange_is_not_used_again() {
    for (protocol, version) in [("h2", Version::HTTP_2), ("http/1.1", Version::HTTP_11)] {
        for (first, class) in
            [(First::IsSilent, "timeout"), (First::Stalls, "timeout"), (First::Cuts, "network")]
        {
            let server = TlsServer::start_with(first, &[protocol], HERE).await;
            let options = Options::default().placement(Placement::Ambient);
            let ennead = Ennead::start(options).await.unwrap();
            let directory = TempDir::new().unwrap();
            let session = session_in(&directory, &server.base())
                .setting("env", trusting(&server.authority()))
                .own_setting("maxRetries", 1.into())
                // Only the bad connection is silent, so how long it is waited for decides nothing.
                .own_setting("http", json!({ "firstByteMs": 1_000, "idleMs": 1_000 }));
            let session = ennead.open(session).await.unwrap();
            let outcome = session.prompt("go").await.unwrap();
            let what = format!("{protocol}, {first:?}");
            assert_eq!((outcome.end, &*outcome.text), (RunEnd::NoPendingTools, "done"), "{what}");
            session.close().await;
            let records = record::records(session.transcript()).into_iter();
            let attempts: Vec<_> = records
                .filter_map(|it| match it.what {
                    RecordKind::ModelAttempt { outcome, .. } => Some(outcome),
                    _ => None,
                })
                .collect();
            assert_eq!(attempts, [class, "ok"], "{what}");
            let expected = Traffic { connections: 2, refused: 0, requests: vec![version; 2] };
            assert_eq!(server.traffic(), expected, "{what}");
        }
    }
}

/// A streamed request as the transport is given it.
fn wire_request(server: &TlsServer) -> WireRequest {
    let messages = json!([{ "role": "user", "content": "go" }]);
    let body = json!({ "model": "m", "max_tokens": 9, "stream": true, "messages": messages });
    request_to(&server.base(), &server.authority(), body.to_string())
}

fn request_to(base: &str, authority: &Path, body: String) -> WireRequest {
    let file = |path: &Path| Some(path.to_str().unwrap().into());
    let url = format!("{base}/v1/messages");
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let mut request = WireRequest::new(url, headers, body, Duration::from_secs(10));
    request.certificates = Certificates::new(file(authority), file(Path::new("")));
    request
}

async fn whole(mut response: WireResponse) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.body.try_next().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

// REQ: MDL-1, MDL-12
#[tokio::test]
async fn what_is_under_way_stays_on_a_connection_that_another_exchange_gave_up() {
    let server = TlsServer::start_with(First::Stalls, &["h2"], HERE).await;
    let http = Http::new().unwrap();
    let under_way = http.send(wire_request(&server)).await.unwrap();
    let mut given_up = http.send(wire_request(&server)).await.unwrap();
    assert_eq!(server.traffic().connections, 1);
    // As a watchdog does that has waited long enough.
    while given_up.body.try_next().now_or_never().is_some() {}
    drop(given_up);
    let after = whole(http.send(wire_request(&server)).await.unwrap()).await;
    assert!(String::from_utf8_lossy(&after).contains("message_stop"), "{after:?}");
    server.resume();
    assert_eq!(whole(under_way).await.len(), after.len());
    let requests = vec![Version::HTTP_2; 3];
    assert_eq!(server.traffic(), Traffic { connections: 2, refused: 0, requests });
}

// REQ: MDL-1, MDL-10
#[tokio::test]
async fn request_that_a_server_has_not_looked_at_is_sent_again_however_long_it_is() {
    // Short ones are handed over whole, long ones in pieces.
    for n_bytes in [1_000, 64 * 1024, 64 * 1024 + 1, 1_000_000] {
        for (n_refused, is_answered) in [(0, true), (2, true), (3, false)] {
            let server = RefusingServer::start(n_refused, HERE).await;
            let request = request_to(&server.base(), &server.authority(), "x".repeat(n_bytes));
            let sent = Http::new().unwrap().send(request).await;
            let what = format!("{n_bytes} bytes, refused {n_refused} times");
            assert_eq!(sent.is_ok(), is_answered, "{what}: {:?}", sent.err());
            if let Ok(response) = sent {
                let answer = String::from_utf8(whole(response).await).unwrap();
                assert_eq!(answer, format!("{n_bytes} of {n_bytes}"), "{what}");
            }
        }
    }
}

/// Both runs fail at once with these words, and each is one attempt that no other follows.
#[track_caller]
fn check_refused((outcomes, attempts): ([RunOutcome; 2], Vec<(String, String)>), words: &[&str]) {
    for outcome in outcomes {
        assert_eq!(outcome.end, RunEnd::Error, "{outcome:?}");
    }
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    for (class, message) in attempts {
        assert_eq!(class, "invalid_request", "{message}");
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
    }
}

// REQ: MDL-13
#[tokio::test]
async fn servers_that_nobody_vouches_for_are_refused_for_good_and_people_are_told_what_to_do() {
    let server = TlsServer::start(&["h2"], HERE).await;
    let nobody = json!({ "NODE_EXTRA_CA_CERTS": "", "SSL_CERT_FILE": "" });
    let refused = two_prompts(&server.base(), nobody).await;
    check_refused(refused, &["UnknownIssuer", "name its PEM file in NODE_EXTRA_CA_CERTS"]);
    assert_eq!(server.traffic(), Traffic { refused: 2, ..Traffic::default() });

    let elsewhere = TlsServer::start(&["h2"], &["model.test"]).await;
    let refused = two_prompts(&elsewhere.base(), trusting(&elsewhere.authority())).await;
    check_refused(refused, &["not valid for name"]);
    // The file of one authority says nothing for the server of another.
    let refused = two_prompts(&server.base(), trusting(&elsewhere.authority())).await;
    check_refused(refused, &["UnknownIssuer"]);
}

// REQ: MDL-13
#[tokio::test]
async fn files_that_hold_no_certificate_are_named() {
    let server = TlsServer::start(&["h2"], HERE).await;
    let directory = TempDir::new().unwrap();
    let none = directory.path().join("none.pem");
    std::fs::write(&none, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    for (file, words) in [
        (directory.path().join("missing.pem"), ["cannot read `", "missing.pem"]),
        (directory.path().to_owned(), ["cannot read `", "not a regular file"]),
        (none, ["none.pem`", "holds no certificate in PEM"]),
    ] {
        for name in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
            let mut env = json!({ "NODE_EXTRA_CA_CERTS": "", "SSL_CERT_FILE": "" });
            env[name] = json!(file);
            let refused = two_prompts(&server.base(), env).await;
            check_refused(refused, &[words[0], words[1], &format!("which {name} names")]);
        }
    }
    assert_eq!(server.traffic(), Traffic::default());
}

// REQ: MDL-13
#[tokio::test]
async fn servers_without_tls_are_told_from_those_that_are_away() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            // Until the client has read it.
            let _closed = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    check_refused(two_prompts(&base, json!({})).await, &["does not seem to speak TLS"]);
}

// REQ: MDL-1
#[tokio::test(flavor = "multi_thread")]
async fn command_believes_whom_its_environment_names() {
    let server = TlsServer::start(&["h2", "http/1.1"], HERE).await;
    let asked = |name: Option<&str>| {
        let directory = TempDir::new().unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ennead"));
        command
            .args(["-p", "go", "--model", "m"])
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .env_remove("ENNEAD_PROVIDER")
            .env_remove("NODE_EXTRA_CA_CERTS")
            .env_remove("SSL_CERT_FILE")
            .env("ANTHROPIC_BASE_URL", server.base())
            .env("ANTHROPIC_API_KEY", "k")
            .stdin(Stdio::null());
        if let Some(name) = name {
            command.env(name, server.authority());
        }
        tokio::task::block_in_place(|| command.output().unwrap())
    };
    for name in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        let ended = asked(Some(name));
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "done\n", "{name}: {ended:?}");
    }
    let ended = asked(None);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("NODE_EXTRA_CA_CERTS"), "{ended:?}");
}
