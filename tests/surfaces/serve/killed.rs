//! A server that is killed in the middle of a turn, and the process that goes on in its place.

use rustix::process::Signal;
use serde_json::json;

use super::{
    client::{Stream, ask},
    process::ServeDirs,
};
use crate::support::until::until;

// REQ: SCL-3, RUN-9
#[tokio::test]
async fn session_of_a_killed_server_goes_on_in_another_process_and_no_effect_comes_twice() {
    let place = ServeDirs::new();
    let token = place.token("ci");
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    let server = place.serve();
    let body = json!({ "directory": "works" });
    let made = server.ask(&token, "POST /v1/sessions", Some(body)).await.ok(201);
    let session = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
    let mut events =
        Stream::open(&server.address, &format!("GET {session}/events"), &headers, None).await;
    let line = format!("POST {session}/runs");
    let run = ask(&server.address, &line, &headers, Some(&json!({ "prompt": "wait" }))).await;
    let run = run.ok(202);
    let queued = json!({ "prompt": "later" });
    let queued = ask(&server.address, &line, &headers, Some(&queued)).await.ok(202);
    let key = events.until("permission_asked").await["key"].take();
    let answer = json!({ "allow": true, "digest": key["digest"], "epoch": key["epoch"] });
    let question = format!("POST /v1/approvals/{}", key["id"].as_str().unwrap());
    assert_eq!(server.ask(&token, &question, Some(answer)).await.status, 204);
    let effect = place.tenant().join("works/begun");
    let n_effects = || std::fs::read_to_string(&effect).unwrap_or_default().lines().count();
    until("the command has its effect", async || n_effects() == 1).await;

    server.send(Signal::KILL);
    server.end().await;
    let server = place.serve();
    let shown = |id: &str| format!("GET {session}/runs/{id}");
    let cut = server.ask(&token, &shown(run["id"].as_str().unwrap()), None).await.ok(200);
    assert_eq!(cut["state"], "continued", "{cut}");
    let next = server.ask(&token, &shown(cut["continued_by"].as_str().unwrap()), None).await;
    let next = next.ok(200);
    assert_eq!(next["outcome"]["text"], "went on", "{next}");
    // What was promised before is kept, after it.
    let queued = server.ask(&token, &shown(queued["id"].as_str().unwrap()), None).await.ok(200);
    assert_eq!(queued["outcome"]["is_success"], true, "{queued}");
    assert!(next["ended_at"].as_u64() <= queued["started_at"].as_u64());
    assert_eq!(n_effects(), 1, "nothing was done again");
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));

    let id = made["id"].as_str().unwrap();
    let transcript = place.path(&format!("ennead-server/state/transcripts/acme/{id}.jsonl"));
    let text = std::fs::read_to_string(&transcript).unwrap();
    assert_eq!(text.matches(r#""kind":"tool_intent""#).count(), 1);
    // The model was shown that the call had no end, and not that it had succeeded.
    let result = text.lines().find(|it| it.contains(r#""type":"tool_result""#)).unwrap();
    assert!(result.contains(r#""is_error":true"#), "{result}");
    let checked = place.command(&["verify", transcript.to_str().unwrap()]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
