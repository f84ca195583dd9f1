//! Sessions and their runs, from the request to the record.

use serde_json::{Value, json};

use super::rig::Rig;
use crate::support::scripted::{Asked, call, model, says, silence, text};

/// The prompt among these that was said last.
fn newest(asked: &Asked, prompts: &[&'static str]) -> &'static str {
    let user = asked.user();
    let found = prompts.iter().filter_map(|it| Some((user.rfind(&format!("do {it}"))?, *it)));
    found.max().map_or("", |it| it.1)
}

// REQ: SUR-5
#[tokio::test]
async fn session_runs_a_prompt_and_its_turns_and_transcript_can_be_read() {
    let rig =
        Rig::start(says(vec![call("c1", "Glob", json!({ "pattern": "*" })), text("none")])).await;
    let session = rig.session(json!({ "title": "first", "directory": "a/b" })).await;
    assert!(rig.work("a/b").is_dir());
    let shown = rig.ask(&format!("GET {session}"), None).await.ok(200);
    assert_eq!((&shown["state"], &shown["title"]), (&json!("passive"), &json!("first")));

    let run = rig.run(&session, "what is here?").await;
    assert_eq!((&run["state"], &run["outcome"]["text"]), (&json!("finished"), &json!("none")));
    assert_eq!(run["outcome"]["turns"], 2);
    let line = format!("GET {session}/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(rig.ask(&line, None).await.ok(200)["outcome"], run["outcome"]);

    let turns = rig.ask(&format!("GET {session}/turns"), None).await.ok(200);
    let names: Vec<_> = turns["turns"][0]["steps"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 9, "{turns}");
    assert_eq!(turns["turns"].as_array().unwrap().len(), 2);
    let turn = rig.ask(&format!("GET {session}/turns/1"), None).await.ok(200);
    assert_eq!(turn["decisions"][0]["decision"]["allowed"], true, "{turn}");
    assert_eq!(turn["calls"][0]["tool"], "Glob");
    assert_eq!(turn["attempts"][0]["outcome"], "ok");
    assert_eq!(rig.ask(&format!("GET {session}/turns/3"), None).await.code(), "turn_not_found");

    let all = rig.ask(&format!("GET {session}/transcript"), None).await;
    assert_eq!(all.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = all.text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["kind"], "run_end");
    let line = format!("GET {session}/transcript");
    let part = rig.ask_with(&line, &[("Range", "bytes=5-9")], None).await;
    assert_eq!((part.status, part.text.as_str()), (206, &all.text[5..10]));
    let range = format!("bytes 5-9/{}", all.text.len());
    assert_eq!(part.header("content-range"), Some(&*range));

    let shown = rig.ask(&format!("GET {session}"), None).await.ok(200);
    assert_eq!((&shown["state"], &shown["turns"]), (&json!("idle"), &json!(2)));
    let list = rig.ask("GET /v1/sessions", None).await.ok(200);
    assert_eq!(list["sessions"][0]["id"], shown["id"]);
    assert_eq!(rig.ask(&format!("DELETE {session}"), None).await.status, 204);
    assert_eq!(rig.ask(&format!("GET {session}"), None).await.code(), "session_not_found");
}

// REQ: SUR-5
#[tokio::test]
async fn list_of_sessions_is_read_by_pages() {
    let rig = Rig::start(says(vec![])).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(rig.session(json!({})).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = rig.ask(&format!("GET /v1/sessions?limit=2{cursor}"), None).await.ok(200);
        for it in page["sessions"].as_array().unwrap() {
            seen.push(format!("/v1/sessions/{}", it["id"].as_str().unwrap()));
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.sort();
    made.sort();
    assert_eq!(seen, made);
    assert_eq!(rig.ask("GET /v1/sessions?cursor=x", None).await.code(), "bad_request");
}

// REQ: SUR-5
#[tokio::test]
async fn request_that_is_sent_again_under_its_key_is_the_same_run_also_after_a_restart() {
    let rig = Rig::start(says(vec![])).await;
    let session = rig.session(json!({})).await;
    let line = format!("POST {session}/runs");
    let keyed = [("Idempotency-Key", "k-1"), ("Prefer", "wait=60")];
    let body = json!({ "prompt": "once" });
    let first = rig.ask_with(&line, &keyed, Some(body.clone())).await.ok(200);
    let again = rig.ask_with(&line, &keyed, Some(body.clone())).await.ok(200);
    assert_eq!(first["id"], again["id"]);
    let other = rig.ask_with(&line, &keyed, Some(json!({ "prompt": "twice" }))).await;
    assert_eq!(other.code(), "idempotency_key_reused");
    let Rig { server, directory, .. } = rig;
    server.shutdown().await;
    let rig = Rig::start_in(directory, says(vec![]), |it| it).await;
    let again = rig.ask_with(&line, &keyed, Some(body)).await.ok(200);
    assert_eq!(first["id"], again["id"]);
    assert_eq!(rig.model.asked().len(), 0, "nothing ran again");
}

// REQ: INP-2
#[tokio::test]
async fn prompts_during_a_run_wait_or_end_it_and_each_gets_a_receipt() {
    // The first run never ends by itself.
    let rig = Rig::start(model(|asked| match newest(asked, &["hang", "now", "last"]) {
        "hang" => silence(),
        other => text(&format!("did {other}")),
    }))
    .await;
    let session = rig.session(json!({})).await;
    let line = format!("POST {session}/runs");
    let mut events = rig.stream(&format!("GET {session}/events"), &[], None).await;
    let first = rig.ask(&line, Some(json!({ "prompt": "do hang" }))).await.ok(202);
    events.until("run_started").await;
    let queued = rig.ask(&line, Some(json!({ "prompt": "do last" }))).await.ok(202);
    assert_eq!((&queued["state"], &queued["position"]), (&json!("queued"), &json!(1)));
    let body = json!({ "prompt": "do now", "delivery": "interrupt" });
    let now = rig.ask_with(&line, &[("Prefer", "wait=60")], Some(body)).await.ok(200);
    assert_eq!(now["outcome"]["text"], "did now");
    let shown = |id: &Value| format!("GET {session}/runs/{}", id.as_str().unwrap());
    let wait = [("Prefer", "wait=60")];
    let first = rig.ask_with(&shown(&first["id"]), &wait, None).await.ok(200);
    assert_eq!(first["outcome"]["end"], "interrupted");
    let queued = rig.ask_with(&shown(&queued["id"]), &wait, None).await.ok(200);
    assert_eq!(queued["outcome"]["text"], "did last");
    assert!(now["ended_at"].as_u64() <= queued["started_at"].as_u64(), "{now} {queued}");
}

// REQ: INP-2
#[tokio::test]
async fn prompt_that_steers_runs_after_the_tool_calls_of_the_turn_and_before_those_that_wait() {
    // The run calls tools for ever, until another prompt comes.
    let rig = Rig::start(model(|asked| match newest(asked, &["loop", "turn left", "last"]) {
        "loop" => {
            let n = asked.n_answers();
            call(&format!("c{n}"), "Glob", json!({ "pattern": format!("{n}*") }))
        }
        other => text(&format!("did {other}")),
    }))
    .await;
    let session = rig.session(json!({ "max_turns": 1000 })).await;
    let line = format!("POST {session}/runs");
    let mut events = rig.stream(&format!("GET {session}/events"), &[], None).await;
    let first = rig.ask(&line, Some(json!({ "prompt": "do loop" }))).await.ok(202);
    events.until("tool_finished").await;
    let queued = rig.ask(&line, Some(json!({ "prompt": "do last" }))).await.ok(202);
    let body = json!({ "prompt": "do turn left", "delivery": "steer" });
    let steered = rig.ask_with(&line, &[("Prefer", "wait=60")], Some(body)).await.ok(200);
    assert_eq!(steered["outcome"]["text"], "did turn left");
    let shown = |id: &Value| format!("GET {session}/runs/{}", id.as_str().unwrap());
    let wait = [("Prefer", "wait=60")];
    let first = rig.ask_with(&shown(&first["id"]), &wait, None).await.ok(200);
    assert_eq!(first["outcome"]["end"], "explicit_stop", "{first}");
    let queued = rig.ask_with(&shown(&queued["id"]), &wait, None).await.ok(200);
    assert!(steered["ended_at"].as_u64() <= queued["started_at"].as_u64());
}

// REQ: PRM-9
#[tokio::test]
async fn question_of_a_session_is_listed_and_answered_once() {
    let input = json!({ "file_path": "new.txt", "content": "hello" });
    let rig = Rig::start(says(vec![call("c1", "Write", input), text("written")])).await;
    let session = rig.session(json!({ "directory": "d" })).await;
    let mut events = rig.stream(&format!("GET {session}/events"), &[], None).await;
    let line = format!("POST {session}/runs");
    let run = rig.ask(&line, Some(json!({ "prompt": "write" }))).await.ok(202);
    events.until("permission_asked").await;
    let shown = rig.ask(&format!("GET {session}"), None).await.ok(200);
    assert_eq!(
        (&shown["state"], &shown["waiting_for"]["kind"]),
        (&json!("waiting"), &json!("approval"))
    );
    let open = rig.ask("GET /v1/approvals", None).await.ok(200);
    let question = &open["approvals"][0];
    assert_eq!(
        (&question["tool"], &question["input"]["content"]),
        (&json!("Write"), &json!("hello"))
    );
    let tree = rig.ask("GET /v1/tree", None).await.ok(200);
    let turn = tree["actors"].as_array().unwrap().iter().find(|it| it["kind"] == "turn_supervisor");
    assert_eq!(turn.unwrap()["step"], "permission_gate");
    assert_eq!(turn.unwrap()["waiting_for"], "answer");
    let metrics = rig.ask_as(&rig.admin, "GET /metrics", None).await.text;
    assert!(metrics.contains("ennead_sessions{state=\"waiting\"} 1"), "{metrics}");
    let line = format!("POST /v1/approvals/{}", question["id"].as_str().unwrap());
    let answer = json!({ "allow": true, "digest": question["digest"], "epoch": question["epoch"] });
    assert_eq!(rig.ask_as(&rig.viewer, &line, Some(answer.clone())).await.code(), "forbidden");
    let wrong = json!({ "allow": true, "digest": question["epoch"], "epoch": question["epoch"] });
    assert_eq!(rig.ask(&line, Some(wrong)).await.code(), "approval_mismatch");
    assert_eq!(rig.ask(&line, Some(answer.clone())).await.status, 204);
    let line_of_run = format!("GET {session}/runs/{}", run["id"].as_str().unwrap());
    let run = rig.ask_with(&line_of_run, &[("Prefer", "wait=60")], None).await.ok(200);
    assert_eq!(run["outcome"]["text"], "written");
    assert_eq!(std::fs::read_to_string(rig.work("d/new.txt")).unwrap(), "hello");
    let again = rig.ask(&line, Some(answer.clone())).await;
    assert_eq!((again.status, again.code().as_str()), (409, "approval_closed"));
    let theirs = rig.ask_as(&rig.other, &line, Some(answer)).await;
    assert_eq!(theirs.code(), "approval_not_found", "for others it never was");
}
