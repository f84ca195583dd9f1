//! TaskOutput and TaskStop: the model waits for what is in the background, reads it and ends it, and an end that it has
//! read so is not reported to it again.

use std::{fs, path::Path, sync::Arc};

use ennead::{RunEnd, SessionHandle, permission::PermissionMode};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::{Value, json};

use crate::support::{
    barrier::Barrier,
    host::{interrupted, prompt},
    processes::{fifo, read_to_end},
    record,
    scripted::{Asked, Reply, Scripted, TestDirs, call, calls, finish, model, text},
    settings::SettingsJson as _,
    tools::wait_at,
    until::until,
};

/// What a call that starts an agent says; the word has its first request wait.
fn agent() -> Value {
    json!({"description": "look", "prompt": "held: look about", "run_in_background": true})
}

/// The id of the agent that the call `a` has started.
fn id_of_agent(asked: &Asked) -> String {
    let result = asked.result("a");
    let id = result.strip_prefix("The agent ").and_then(|it| it.split(' ').next());
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// A call about the agent that `a` has started.
fn about_agent(asked: &Asked, id: &str, tool: &str, more: Value) -> Reply {
    let mut input = json!({"task_id": id_of_agent(asked)});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(id, tool, input)
}

/// The states of agents in the background that are on record.
fn states(transcript: &Path) -> String {
    let state = |what: RecordKind| match what {
        RecordKind::BackgroundAgent(it) if it.is_unreported => Some(it.state + " untold"),
        RecordKind::BackgroundAgent(it) => Some(it.state),
        _ => None,
    };
    let records = record::records(transcript).into_iter();
    records.filter_map(|it| state(it.what)).collect::<Vec<_>>().join(", ")
}

/// How often the harness has reported an end by itself.
fn n_told(asked: &Asked) -> usize {
    asked.user().matches("The background agent ").count()
}

/// The structured result of a call.
fn structured(transcript: &Path, call: &str) -> Value {
    let lines = fs::read_to_string(transcript).unwrap();
    let lines = lines.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let is_meant = |it: &Value| it["message"]["content"][0]["tool_use_id"] == call;
    let mut found = lines.filter(is_meant);
    found.next().unwrap()["toolUseResult"].clone()
}

async fn n_asked_top(model: &Scripted, n: usize) {
    let n_asked = || model.asked().iter().filter(|it| !it.is_agent()).count();
    until("the top session has asked", async || n_asked() == n).await;
}

/// No run of the session's own follows.
async fn nothing_follows(session: &SessionHandle) {
    assert!(session.next_woken_run().await.unwrap().is_none());
}

/// The top session starts an agent that says `found it`, and waits for it.
fn waits() -> Arc<Scripted> {
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => text("found it"),
        (false, 0) => call("a", "Agent", agent()),
        (false, 1) => about_agent(asked, "b", "TaskOutput", json!({"timeout": 600_000})),
        (false, n) => text(&format!("answer {n}")),
    });
    model.hold().close();
    model
}

// REQ: AGT-6, AGT-8
#[tokio::test]
async fn model_waits_for_an_agent_and_is_told_its_end_by_that_alone() {
    let place = TestDirs::new();
    let model = waits();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let run = prompt(&session, "go");
    model.hold().arrived().await;
    n_asked_top(&model, 2).await;
    model.hold().open();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "answer 2"));
    let asked = model.last_of_top();
    let result = asked.result("b");
    assert!(result.ends_with("has completed its task. Its answer:\nfound it"), "{result}");
    nothing_follows(&session).await;
    session.prompt("more").await.unwrap();
    assert_eq!(n_told(&model.last_of_top()), 0, "the result has told it");
    assert_eq!(states(session.transcript()), "running, completed");
    let result = structured(session.transcript(), "b");
    assert_eq!(result["retrieval_status"], "success");
    let task = &result["task"];
    assert_eq!((&task["task_type"], &task["status"]), (&json!("local_agent"), &json!("completed")));
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 4);
}

// REQ: AGT-6, AGT-8
#[tokio::test]
async fn model_reads_what_an_agent_at_work_said_and_stops_it() {
    let place = TestDirs::new();
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (true, 0) => call("g", "agent_waits", json!({})).after("half of it"),
        (true, _) => text("never said"),
        (false, 0) => calls(&[("a", "Agent", agent()), ("w", "top_waits", json!({}))]),
        (false, 1) => about_agent(asked, "b", "TaskOutput", json!({"block": false})),
        (false, 2) => about_agent(asked, "c", "TaskOutput", json!({"timeout": 1})),
        (false, 3) => call("d", "TaskStop", json!({"task_id": "nobody"})),
        (false, 4) => about_agent(asked, "e", "TaskStop", json!({})),
        (false, 5) => about_agent(asked, "f", "TaskStop", json!({})),
        (false, _) => text("done"),
    });
    let (at_work, top) = (Barrier::closed(), Barrier::closed());
    let ennead = place.start(&model).await;
    let options = place.session().tool(wait_at("agent_waits", &at_work));
    let session = ennead.open(options.tool(wait_at("top_waits", &top))).await.unwrap();
    let run = prompt(&session, "go");
    at_work.arrived().await;
    top.open();
    run.await.unwrap().unwrap();
    let asked = model.last_of_top();
    let id = id_of_agent(&asked);
    let so_far = format!(
        "The background agent {id} (`look`) is at work. The last that it said:\nhalf of it"
    );
    assert_eq!((asked.result("b"), asked.result("c")), (so_far.clone(), so_far));
    let unknown = asked.result("d");
    assert!(unknown.contains(&format!("no task nobody in the background. Running:\n{id}: agent")));
    let stopped = asked.result("e");
    assert!(stopped.ends_with("stopped before its end. The last that it said:\nhalf of it"));
    assert!(asked.result("f").starts_with("The agent was not stopped: it had ended before."));
    let failed: Vec<_> = asked.results().into_iter().filter(|it| it.2).map(|it| it.0).collect();
    assert_eq!(failed, ["d", "f"]);
    nothing_follows(&session).await;
    session.prompt("more").await.unwrap();
    assert_eq!(n_told(&model.last_of_top()), 0, "the result has told it");
    let of = |call| structured(session.transcript(), call);
    assert_eq!(of("b")["retrieval_status"], "not_ready");
    assert_eq!(of("c")["retrieval_status"], "timeout");
    assert_eq!((&of("e")["task_type"], &of("e")["task_id"]), (&json!("local_agent"), &json!(id)));
    assert!(states(session.transcript()).starts_with("running, cancelled"));
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 8);
}

// REQ: AGT-6, AGT-8, RUN-2
#[tokio::test]
async fn interrupt_ends_the_wait_and_the_end_is_reported_by_the_session() {
    let place = TestDirs::new();
    let model = waits();
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session()).await.unwrap();
    let run = prompt(&session, "go");
    model.hold().arrived().await;
    n_asked_top(&model, 2).await;
    session.interrupt();
    interrupted(run).await;
    assert_eq!(session.status().await.unwrap().agents, 1, "the agent is spared");
    model.hold().open();
    session.next_woken_run().await.unwrap().unwrap();
    assert_eq!(n_told(&model.last_of_top()), 1);
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 3);
}

// REQ: AGT-8, SES-3
#[tokio::test]
async fn end_that_was_read_before_an_interrupt_is_not_reported_again() {
    let place = TestDirs::new();
    for name in ["alive", "gate"] {
        fifo(&place.path(&format!("workspace/{name}")));
    }
    let model = waits();
    model.hold().open();
    // It has the turn wait after the call has ended and before its result is on record.
    let hook =
        json!({"type": "command", "command": "exec 9> alive; echo up >&9; read line < gate"});
    let table = json!({"PostToolUse": [{"matcher": "TaskOutput", "hooks": [hook]}]});
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().setting("hooks", table)).await.unwrap();
    let (up, alive) = read_to_end(&place.path("workspace/alive"));
    let run = prompt(&session, "go");
    up.pass().await;
    session.interrupt();
    interrupted(run).await;
    alive.await.unwrap();
    nothing_follows(&session).await;
    session.prompt("more").await.unwrap();
    let asked = model.last_of_top();
    assert!(asked.result("b").ends_with("Its answer:\nfound it"), "{}", asked.result("b"));
    assert_eq!(n_told(&asked), 0, "the result has told it");
    assert_eq!(states(session.transcript()), "running, completed");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 3);
}

// REQ: TOL-6, TOL-8
#[tokio::test]
async fn model_waits_for_a_command_and_stops_another() {
    let place = TestDirs::new();
    for name in ["alive", "gate"] {
        fifo(&place.path(&format!("workspace/{name}")));
    }
    let bash = |command: &str| json!({"command": command, "run_in_background": true});
    let (first, second) =
        (bash("echo up > alive; read line < gate; echo over; exit 3"), bash("exec sleep 1000"));
    let model = model(move |asked| match asked.n_answers() {
        0 => calls(&[("a", "Bash", first.clone()), ("b", "Bash", second.clone())]),
        1 => call("c", "TaskOutput", json!({"task_id": "bash_1"})),
        2 => call("d", "TaskStop", json!({"task_id": "bash_2"})),
        _ => text("done"),
    });
    let ennead = place.start(&model).await;
    let options = place.session().mode(PermissionMode::BypassPermissions);
    let session = ennead.open(options).await.unwrap();
    let (up, alive) = read_to_end(&place.path("workspace/alive"));
    let run = prompt(&session, "go");
    up.pass().await;
    n_asked_top(&model, 2).await;
    let gate = place.path("workspace/gate");
    tokio::task::spawn_blocking(move || fs::write(gate, "\n")).await.unwrap().unwrap();
    run.await.unwrap().unwrap();
    alive.await.unwrap();
    session.prompt("more").await.unwrap();
    let asked = model.last_of_top();
    let result = asked.result("c");
    assert!(result.ends_with("ended with exit code 3.\nover"), "{result}");
    assert!(asked.result("d").contains("was killed"), "{}", asked.result("d"));
    assert!(!asked.user().contains("The background command"), "{}", asked.user());
    let (read, stopped) =
        (structured(session.transcript(), "c"), structured(session.transcript(), "d"));
    assert_eq!(
        (&read["retrieval_status"], &read["task"]["exitCode"]),
        (&json!("success"), &json!(3))
    );
    assert_eq!(stopped["task_type"], "local_bash");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 5);
}

// REQ: AGT-9
#[tokio::test]
async fn sub_agent_has_no_tool_that_waits_for_tasks() {
    for in_background in [false, true] {
        let place = TestDirs::new();
        let input = json!({"description": "d", "prompt": "p", "run_in_background": in_background});
        let model = model(move |asked| match (asked.is_agent(), asked.n_answers()) {
            (false, 0) => call("a", "Agent", input.clone()),
            _ => text("done"),
        });
        let ennead = place.start(&model).await;
        let session = ennead.open(place.session()).await.unwrap();
        session.prompt("go").await.unwrap();
        while session.next_woken_run().await.unwrap().is_some() {}
        let has = |asked: &Asked, tool: &str| asked.tools().iter().any(|it| it == tool);
        let (top, agent) = (model.last_of_top(), model.asked_by_agents().remove(0));
        assert_eq!((has(&top, "TaskOutput"), has(&agent, "TaskOutput")), (true, false));
        assert!(has(&agent, "TaskStop") && has(&agent, "Bash"));
        assert!(!has(&agent, "AskUserQuestion") && !has(&agent, "EnterPlanMode"));
        finish(ennead, session).await;
    }
}
