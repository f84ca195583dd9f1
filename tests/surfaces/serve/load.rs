//! A server with many runs under way that is told to end.

use rustix::process::Signal;
use serde_json::json;

use super::{client::ask, process::ServeDirs};
use crate::support::until::until;

// REQ: RUN-9
#[tokio::test]
async fn server_that_is_told_to_end_under_load_loses_no_run_and_the_next_one_goes_on_with_each() {
    const SESSIONS: usize = 200;
    let place = ServeDirs::new();
    let (token, watch) = (place.token("ci"), place.token("watch"));
    let more = ["--drain", "30", "--tenant-runs", "200"];
    let server = place.serve_with(&more);
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    let mut sessions = Vec::new();
    for at in 0..SESSIONS {
        let line = "POST /v1/sessions";
        let made = server.ask(&token, line, Some(json!({ "max_turns": 100_000 }))).await.ok(201);
        let runs = format!("/v1/sessions/{}/runs", made["id"].as_str().unwrap());
        // One in ten does not settle by itself, and has another prompt that waits.
        let prompts: &[&str] = if at % 10 == 0 { &["stall", "later"] } else { &["turn"] };
        for prompt in prompts {
            let body = json!({ "prompt": prompt });
            let line = format!("POST {runs}");
            ask(&server.address, &line, &headers, Some(&body)).await.ok(202);
        }
        sessions.push((runs, prompts));
    }
    until("all run", async || {
        let list = server.ask(&watch, "GET /v1/sessions?limit=200", None).await.json();
        // Asked faster than a token may, it is refused for a moment.
        let list = list["sessions"].as_array().cloned().unwrap_or_default();
        list.iter().filter(|it| it["state"] == "running").count() == SESSIONS
    })
    .await;
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));

    let server = place.serve_with(&more);
    for (runs, prompts) in sessions {
        let list = server.ask(&token, &format!("GET {runs}"), None).await.ok(200);
        let known = list["runs"].as_array().unwrap();
        assert_eq!(known.len(), prompts.len() + 1, "{list}");
        // The newest comes first.
        let mut texts = Vec::new();
        for run in known {
            let line = format!("GET {runs}/{}", run["id"].as_str().unwrap());
            let run = server.ask(&watch, &line, None).await.ok(200);
            if run["state"] == "continued" {
                assert!(run["continued_by"].is_string(), "{run}");
            } else {
                assert_eq!(run["state"], "finished", "{run}");
                texts.push(run["outcome"]["text"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(texts.len(), prompts.len(), "{texts:?}");
        assert!(texts.iter().any(|it| it == "went on"), "{texts:?}");
        let later = texts.iter().filter(|it| it.ends_with("later")).count();
        assert_eq!(later, prompts.len() - 1, "{texts:?}");
    }
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));
}
