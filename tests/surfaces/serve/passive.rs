//! Sessions that are not actors, and how they wake: from an index where that holds, and from the transcript else.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{process::ServeDirs, rig::Rig};
use crate::support::{
    scripted::{model, text},
    until::until,
};

/// An answer of 60 KB, which says how many there were before it.
fn long(n_answers: usize) -> String {
    format!("{n_answers} answers before {}", "word ".repeat(12_000))
}

/// The transcript of a session, and its index.
fn files(rig: &Rig, session: &str) -> (PathBuf, PathBuf) {
    let id = session.rsplit('/').next().unwrap();
    let directory = rig.directory.path().join("state/transcripts/acme");
    (directory.join(format!("{id}.jsonl")), directory.join(id).join("index"))
}

async fn until_passive(rig: &Rig, session: &str) {
    until("it is passive", async || {
        rig.ask(&format!("GET {session}"), None).await.json()["state"] == "passive"
    })
    .await;
}

fn answer(run: &Value) -> String {
    run["outcome"]["text"].as_str().unwrap_or_else(|| panic!("{run}")).chars().take(40).collect()
}

// REQ: SES-5
#[tokio::test]
async fn session_wakes_with_its_conversation_whatever_has_become_of_its_index() {
    let rig = Rig::start_with(model(|asked| text(&long(asked.n_answers()))), |it| {
        it.passivate_after(Duration::from_millis(1))
    })
    .await;
    let session = rig.session(json!({})).await;
    let (transcript, index) = files(&rig, &session);
    for n in 0..6 {
        assert!(answer(&rig.run(&session, "more").await).starts_with(&format!("{n} answers")));
    }
    until("its index is there", async || index.exists()).await;
    let good = fs::read(&index).unwrap();
    let cases: [(&str, Option<Vec<u8>>); 4] = [
        ("whole", Some(good.clone())),
        ("torn", Some(good[..good.len() - 9].to_vec())),
        ("of an older form", Some([&good[..6], &[0], &good[7..]].concat())),
        ("missing", None),
    ];
    for (n, (what, bytes)) in (6..).zip(cases) {
        until_passive(&rig, &session).await;
        match bytes {
            Some(bytes) => fs::write(&index, bytes).unwrap(),
            None => fs::remove_file(&index).unwrap(),
        }
        let run = rig.run(&session, "more").await;
        assert!(answer(&run).starts_with(&format!("{n} answers")), "{what}: {}", answer(&run));
    }
    until("it is made anew", async || index.exists()).await;
    rig.server.shutdown().await;
    ennead::transcript::verify(&transcript).unwrap();
}

// REQ: SES-5
#[tokio::test]
async fn prompts_that_come_while_a_session_is_put_to_sleep_are_all_answered_in_order() {
    let rig = Rig::start_with(model(|asked| text(&long(asked.n_answers()))), |it| {
        it.passivate_after(Duration::from_millis(1))
    })
    .await;
    let session = rig.session(json!({})).await;
    let (transcript, _) = files(&rig, &session);
    // Some come when it is an actor, some when it is none, and some in between.
    for n in 0..25 {
        let run = rig.run(&session, "more").await;
        assert!(answer(&run).starts_with(&format!("{n} answers")), "{n}: {}", answer(&run));
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
    }
    rig.server.shutdown().await;
    ennead::transcript::verify(&transcript).unwrap();
}

// REQ: SES-5, RUN-9
#[tokio::test]
async fn server_that_is_killed_while_it_writes_an_index_loses_nothing() {
    let place = ServeDirs::new();
    let token = place.token("ci");
    let mut session = String::new();
    let mut files = PathBuf::new();
    for n in 0..4 {
        let server = place.serve_with(&["--passivate-after", "1"]);
        if session.is_empty() {
            let made = server.ask(&token, "POST /v1/sessions", Some(json!({}))).await.ok(201);
            let id = made["id"].as_str().unwrap();
            session = format!("/v1/sessions/{id}");
            files = place.path("ennead-server/state/transcripts/acme").join(id);
        }
        let prompt = format!("{n} {}", "word ".repeat(30_000));
        let line = format!("POST {session}/runs");
        let run = server.ask(&token, &line, Some(json!({ "prompt": prompt }))).await.ok(200);
        assert!(answer(&run).starts_with(&format!("said {n} ")), "{}", answer(&run));
        let shown = server.ask(&token, &format!("GET {session}"), None).await.ok(200);
        assert_eq!(shown["runs"], n + 1, "those before are known");
        // From the moment on that it is written at, or is there.
        let before = fs::metadata(files.join("index")).and_then(|it| it.modified()).ok();
        until("its index is written", async || {
            let now = fs::metadata(files.join("index")).and_then(|it| it.modified()).ok();
            files.join("index.new").exists() || now != before
        })
        .await;
        server.send(Signal::KILL);
        server.end().await;
    }
    let checked = place.command(&["verify", &format!("{}.jsonl", files.display())]).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
