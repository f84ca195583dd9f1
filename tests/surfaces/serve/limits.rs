//! What tenants may use, what is refused, what the server counts, and sessions that are not actors.

use std::time::Duration;

use ennead::serve::TenantLimits;
use serde_json::json;

use super::rig::Rig;
use crate::support::{
    scripted::{call, model, says, silence, text},
    until::until,
};

fn limits(change: impl FnOnce(&mut TenantLimits)) -> TenantLimits {
    let mut limits = TenantLimits::default();
    change(&mut limits);
    limits
}

// REQ: RUN-4, RUN-8
#[tokio::test]
async fn tenant_is_refused_sessions_and_runs_beyond_its_limits_with_when_to_ask_again() {
    let limits = limits(|it| (it.sessions, it.tokens_per_day) = (1, Some(50)));
    let rig = Rig::start_with(says(vec![]), |it| it.limits(limits)).await;
    let session = rig.session(json!({})).await;
    let second = rig.ask("POST /v1/sessions", Some(json!({}))).await;
    assert_eq!((second.status, second.code().as_str()), (429, "session_limit"));
    assert!(second.header("retry-after").is_some());
    // The other tenant has its own.
    assert_eq!(rig.ask_as(&rig.other, "POST /v1/sessions", Some(json!({}))).await.status, 201);
    rig.run(&session, "one").await;
    let line = format!("POST {session}/runs");
    let refused = rig.ask(&line, Some(json!({ "prompt": "two" }))).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "token_limit"));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait), "until the next day: {wait}");
}

// REQ: RUN-4, RUN-8
#[tokio::test]
async fn sessions_that_are_asked_for_at_once_do_not_pass_the_limit_together() {
    let rig = Rig::start_with(says(vec![]), |it| it.limits(limits(|it| it.sessions = 3))).await;
    let asked = (0..20).map(|_| rig.ask("POST /v1/sessions", Some(json!({}))));
    let replies = futures::future::join_all(asked).await;
    let made = replies.iter().filter(|it| it.status == 201).count();
    let refused =
        replies.iter().filter(|it| it.status != 201 && it.code() == "session_limit").count();
    assert_eq!((made, refused), (3, 17));
    let listed = rig.ask("GET /v1/sessions", None).await.ok(200);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 3);
}

// REQ: RUN-4, RUN-7
#[tokio::test]
async fn run_that_uses_up_its_tokens_parks_after_its_turn_and_its_session_says_why() {
    let limits = limits(|it| it.tokens_per_day = Some(150));
    let rig = Rig::start_with(
        model(|asked| {
            let n = asked.n_answers();
            call(&format!("c{n}"), "Glob", json!({ "pattern": format!("{n}*") }))
        }),
        |it| it.limits(limits),
    )
    .await;
    let session = rig.session(json!({ "max_turns": 1000 })).await;
    let run = rig.run(&session, "loop").await;
    assert_eq!(run["state"], "continued", "{run}");
    until("the session is parked", async || {
        let shown = rig.ask(&format!("GET {session}"), None).await.json();
        shown["state"] == "parked" && shown["waiting_for"]["what"] == "token_limit"
    })
    .await;
    let next = format!("GET {session}/runs/{}", run["continued_by"].as_str().unwrap());
    assert_eq!(
        rig.ask(&next, None).await.ok(200)["state"],
        "queued",
        "it resumes when there are more"
    );
}

// REQ: RUN-4, RUN-8
#[tokio::test]
async fn run_that_waited_for_its_turn_while_the_day_was_used_up_does_not_begin() {
    let limits = limits(|it| (it.all_runs, it.tokens_per_day) = (1, Some(50)));
    let rig = Rig::start_with(model(|_| text("done")), |it| it.limits(limits)).await;
    let (first, second) = (rig.session(json!({})).await, rig.session(json!({})).await);
    rig.model.hold().close();
    rig.ask(&format!("POST {first}/runs"), Some(json!({ "prompt": "held" }))).await.ok(202);
    rig.model.hold().arrived().await;
    rig.ask(&format!("POST {second}/runs"), Some(json!({ "prompt": "more" }))).await.ok(202);
    let waits_for = async |what: &str| {
        until(what, async || {
            let shown = rig.ask(&format!("GET {second}"), None).await.json();
            shown["state"] == "parked" && shown["waiting_for"]["what"] == what
        })
        .await;
    };
    waits_for("turn").await;
    rig.model.hold().open();
    waits_for("token_limit").await;
    let shown = rig.ask(&format!("GET {second}"), None).await.ok(200);
    assert_eq!((&shown["runs"], &shown["queued"]), (&json!(0), &json!(1)));
    assert_eq!(rig.model.asked().len(), 1, "the model was asked for the first alone");
}

// REQ: RUN-4
#[tokio::test]
async fn runs_of_one_tenant_leave_room_for_another() {
    let limits = limits(|it| (it.all_runs, it.runs) = (2, 1));
    let model = model(|asked| if asked.user().contains("hang") { silence() } else { text("done") });
    let rig = Rig::start_with(model, |it| it.limits(limits)).await;
    let (first, second) = (rig.session(json!({})).await, rig.session(json!({})).await);
    let mut events = rig.stream(&format!("GET {first}/events"), &[], None).await;
    rig.ask(&format!("POST {first}/runs"), Some(json!({ "prompt": "hang" }))).await.ok(202);
    events.until("run_started").await;
    rig.ask(&format!("POST {second}/runs"), Some(json!({ "prompt": "more" }))).await.ok(202);
    until("the second waits for its turn", async || {
        let shown = rig.ask(&format!("GET {second}"), None).await.json();
        shown["state"] == "parked" && shown["waiting_for"]["what"] == "turn"
    })
    .await;
    let made = rig.ask_as(&rig.other, "POST /v1/sessions", Some(json!({}))).await.ok(201);
    let line = format!("POST /v1/sessions/{}/runs", made["id"].as_str().unwrap());
    let headers = [("Authorization", &*format!("Bearer {}", rig.other)), ("Prefer", "wait=60")];
    let body = json!({ "prompt": "quick" });
    let run = super::client::ask(&rig.address, &line, &headers, Some(&body)).await.ok(200);
    assert_eq!(run["outcome"]["text"], "done");
    rig.ask(&format!("POST {first}/interrupt"), None).await.ok(200);
    until("the second has run", async || {
        let shown = rig.ask(&format!("GET {second}"), None).await.json();
        shown["runs"] == 1
    })
    .await;
}

// REQ: SES-5
#[tokio::test]
async fn idle_session_becomes_no_actor_and_goes_on_with_its_conversation_when_it_is_asked() {
    let rig = Rig::start_with(
        model(|asked| text(&format!("{} answers before", asked.n_answers()))),
        |it| it.passivate_after(Duration::from_millis(50)),
    )
    .await;
    let session = rig.session(json!({})).await;
    assert_eq!(rig.run(&session, "one").await["outcome"]["text"], "0 answers before");
    until("it is passive", async || {
        rig.ask(&format!("GET {session}"), None).await.json()["state"] == "passive"
    })
    .await;
    let tree = rig.ask("GET /v1/tree", None).await.ok(200);
    assert_eq!(tree["actors"], json!([]));
    assert_eq!(rig.run(&session, "two").await["outcome"]["text"], "1 answers before");
    let runs = rig.ask(&format!("GET {session}/runs"), None).await.ok(200);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "those of before are known");
}

// REQ: RUN-6
#[tokio::test]
async fn metrics_count_what_was_run_and_hold_no_text() {
    let rig =
        Rig::start(says(vec![call("c1", "Glob", json!({ "pattern": "*" })), text("secret")])).await;
    let session = rig.session(json!({ "title": "secret" })).await;
    rig.run(&session, "secret").await;
    rig.ask("GET /v1/nothing", None).await;
    rig.ask_as("ennead_wrong", "GET /v1/sessions", None).await;
    let reply = rig.ask_as(&rig.admin, "GET /metrics", None).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.text.contains("secret") && !reply.text.contains("acme"), "{}", reply.text);
    let value = |line: &str| {
        let found = reply.text.lines().find_map(|it| it.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{line}: {}", reply.text))
    };
    let value = |line: &str| -> f64 { value(line) };
    assert_eq!(value("ennead_turns_total "), 2.0);
    assert_eq!(value("ennead_steps_total{step=\"model_call\"} "), 2.0);
    assert_eq!(value("ennead_runs_total{end=\"no_pending_tools\"} "), 1.0);
    assert_eq!(value("ennead_tokens_total{kind=\"input\"} "), 200.0);
    assert_eq!(value("ennead_refusals_total{code=\"unauthorized\"} "), 1.0);
    assert_eq!(value("ennead_sessions{state=\"idle\"} "), 1.0);
}

// REQ: RUN-4, RUN-7, RUN-8
#[tokio::test]
async fn tenant_whose_sessions_take_all_its_memory_is_refused_until_they_end_and_no_other_is() {
    let limits = limits(|it| it.memory_bytes = Some(150_000));
    let model = model(|asked| if asked.user().contains("hang") { silence() } else { text("done") });
    let rig =
        Rig::start_with(model, |it| it.limits(limits).passivate_after(Duration::from_millis(20)))
            .await;
    let (first, second) = (rig.session(json!({})).await, rig.session(json!({})).await);
    let mut events = rig.stream(&format!("GET {first}/events"), &[], None).await;
    let long = json!({ "prompt": format!("hang {}", "word ".repeat(40_000)) });
    rig.ask(&format!("POST {first}/runs"), Some(long)).await.ok(202);
    events.until("run_started").await;
    let line = format!("POST {second}/runs");
    let mut refused = None;
    until("it is measured", async || {
        let reply = rig.ask(&line, Some(json!({ "prompt": "short" }))).await;
        refused = (reply.status == 429).then_some(reply);
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(refused.code(), "memory_limit");
    assert!((1..=5).contains(&refused.header("retry-after").unwrap().parse::<u64>().unwrap()));
    let made = rig.ask_as(&rig.other, "POST /v1/sessions", Some(json!({}))).await.ok(201);
    let of_other = format!("POST /v1/sessions/{}/runs", made["id"].as_str().unwrap());
    assert_eq!(
        rig.ask_as(&rig.other, &of_other, Some(json!({ "prompt": "short" }))).await.status,
        202
    );
    rig.ask(&format!("POST {first}/interrupt"), None).await.ok(200);
    until("there is room again", async || {
        rig.ask(&line, Some(json!({ "prompt": "short" }))).await.status == 202
    })
    .await;
}

// REQ: RUN-7
#[tokio::test]
async fn run_that_takes_all_memory_parks_after_its_turn_and_goes_on_when_its_part_is_free() {
    let limits = limits(|it| it.memory_bytes = Some(150_000));
    let model = model(|asked| match asked.results().len() {
        n if n < 40 && !asked.user().contains("had to stop") => call(
            &format!("c{n}"),
            "Glob",
            json!({ "pattern": format!("{n}{}", "x".repeat(8_000)) }),
        ),
        _ => text("went on"),
    });
    let rig =
        Rig::start_with(model, |it| it.limits(limits).passivate_after(Duration::from_millis(5)))
            .await;
    let session = rig.session(json!({ "max_turns": 1000 })).await;
    let run = rig.run(&session, "much").await;
    assert_eq!(run["state"], "continued", "{run}");
    let next = format!("GET {session}/runs/{}", run["continued_by"].as_str().unwrap());
    until("it has gone on", async || {
        let next = rig.ask(&next, None).await.json();
        next["state"] == "finished" && next["outcome"]["text"] == "went on"
    })
    .await;
}

// REQ: RUN-8
#[tokio::test]
async fn body_longer_than_the_server_takes_is_refused_and_one_as_long_is_not() {
    let body = json!({ "title": "t".repeat(50) });
    let max = body.to_string().len();
    let rig = Rig::start_with(says(vec![]), |it| it.max_body(max)).await;
    rig.ask("POST /v1/sessions", Some(body)).await.ok(201);
    let longer = json!({ "title": "t".repeat(51) });
    let refused = rig.ask("POST /v1/sessions", Some(longer)).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "body_too_large"));
}

// REQ: RUN-8
#[tokio::test]
async fn as_many_prompts_wait_in_a_session_as_the_server_says_and_the_next_one_is_refused() {
    let rig = Rig::start_with(model(|_| silence()), |it| it.max_queued_runs(2)).await;
    let session = rig.session(json!({})).await;
    let mut events = rig.stream(&format!("GET {session}/events"), &[], None).await;
    let line = format!("POST {session}/runs");
    rig.ask(&line, Some(json!({ "prompt": "at work" }))).await.ok(202);
    events.until("run_started").await;
    for _ in 0..2 {
        rig.ask(&line, Some(json!({ "prompt": "waits" }))).await.ok(202);
    }
    let refused = rig.ask(&line, Some(json!({ "prompt": "too many" }))).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"));
    assert!(refused.header("retry-after").is_some());
    rig.ask(&format!("POST {session}/interrupt"), None).await.ok(200);
}

// REQ: RUN-8
#[tokio::test]
async fn as_many_read_the_events_of_a_session_as_the_server_says_and_the_next_one_is_refused() {
    let rig = Rig::start_with(says(vec![]), |it| it.max_readers(2)).await;
    let (session, other) = (rig.session(json!({})).await, rig.session(json!({})).await);
    let line = format!("GET {session}/events");
    let (first, _second) = (rig.stream(&line, &[], None).await, rig.stream(&line, &[], None).await);
    let refused = rig.ask(&line, None).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "stream_limit"));
    let _of_another = rig.stream(&format!("GET {other}/events"), &[], None).await;
    drop(first);
    let bearer = format!("Bearer {}", rig.user);
    until("the place of one that left is free", async || {
        let headers = [("Authorization", &*bearer)];
        super::client::status(&rig.address, &line, &headers).await == 200
    })
    .await;
}

// REQ: RUN-4, RUN-6, HKS-1
#[tokio::test]
async fn what_models_used_for_hooks_counts_for_the_tenant_and_in_the_metrics() {
    for kind in ["agent", "prompt"] {
        let model =
            model(|asked| match asked.system().contains("You are a hook of a coding agent") {
                true => text(r#"{"ok":true}"#),
                false => text("done"),
            });
        // The answer takes 110 tokens, and so does the judgement.
        let limits = limits(|it| it.tokens_per_day = Some(111));
        let hook = json!([{ "hooks": [{ "type": kind, "prompt": "Is it done?" }] }]);
        let rig = Rig::start_with(model, |mut it| {
            it.session = it.session.settings_json(json!({ "hooks": { "Stop": hook } })).unwrap();
            it.limits(limits)
        })
        .await;
        let session = rig.session(json!({})).await;
        rig.run(&session, "one").await;
        let refused =
            rig.ask(&format!("POST {session}/runs"), Some(json!({"prompt": "two"}))).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "token_limit"), "{kind}");
        let text = rig.ask_as(&rig.admin, "GET /metrics", None).await.text;
        assert!(text.contains("ennead_tokens_total{kind=\"input\"} 200"), "{kind}: {text}");
    }
}
