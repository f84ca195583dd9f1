//! Sub-agents through the Agent tool: where they write, what they may, what their parent receives.

pub(crate) mod several;
mod worktree;

use std::num::NonZeroU32;

use std::{fs, sync::Arc};

use ennead::{
    Event, RunEnd,
    permission::PermissionMode,
    tool::{Access, Concurrency, CustomTool, ToolOutcome},
};
use ennead_runtime::{catalogue::Money, cost::CostLedger};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::approver::OneAnswer;
use crate::support::scripted::{
    Asked, Reply, SESSION, Scripted, TestDirs, call, calls, lines, model, text,
};
use crate::support::until::within;

fn agent(prompt: &str, kind: Option<&str>) -> Value {
    match kind {
        Some(kind) => json!({"description": "d", "prompt": prompt, "subagent_type": kind}),
        None => json!({"description": "d", "prompt": prompt}),
    }
}

/// The top session calls one agent, which says what `child` says.
fn one_agent(
    input: Value,
    child: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Arc<Scripted> {
    model(move |asked| match (asked.is_agent(), asked.n_answers()) {
        (true, _) => child(asked),
        (false, 0) => call("a", "Agent", input.clone()),
        (false, _) => text("done"),
    })
}

// REQ: AGT-1, SES-1, SES-9
#[tokio::test]
async fn agent_writes_a_sidechain_that_its_parent_vouches_for() {
    let place = TestDirs::new();
    let model = one_agent(agent("look", None), |_| text("found"));
    place.run(&model, place.session()).await;
    let files = place.sidechains();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_stem().unwrap().to_str().unwrap();
    let id = name.strip_prefix("agent-").unwrap();
    let meta: Value =
        serde_json::from_str(&fs::read_to_string(file.with_extension("meta.json")).unwrap())
            .unwrap();
    assert_eq!(meta["agentType"], "general-purpose");
    assert_eq!(meta["toolUseId"], "a");
    let side = lines(file);
    for line in side.iter().filter(|it| it["type"] != "ennead") {
        assert_eq!(line["isSidechain"], true, "{line}");
        assert_eq!(line["agentId"], id, "{line}");
        assert_eq!(line["sessionId"], SESSION, "{line}");
    }
    let own = place.lines();
    assert!(own.iter().filter(|it| it["type"] == "user").all(|it| it["isSidechain"] == false));
    let end = own.iter().find(|it| it["kind"] == "tool_end").unwrap();
    assert_eq!(end["sidechain"]["agent"], id, "{end}");
    assert_eq!(end["sidechain"]["head"], side.last().unwrap()["hash"], "{end}");
}

// REQ: AGT-1, OUT-1, OUT-2
#[tokio::test]
async fn parent_reads_no_reasoning_and_no_heartbeat_of_its_agent() {
    for (answer, heard) in [
        ("<think>a secret plan</think>found `<think>`", "found `<think>`"),
        ("<think>nothing to do</think>\n**HEARTBEAT_OK**", "(the agent ended without an answer)"),
    ] {
        let place = TestDirs::new();
        let model = one_agent(agent("look", None), move |_| text(answer));
        let outcome = place.run(&model, place.session()).await;
        let results = outcome.messages.iter().flat_map(|it| &it.blocks);
        let results: Vec<_> = results.filter_map(|it| Some(it.as_tool_result()?.1)).collect();
        let answers: Vec<_> = results.iter().filter_map(|it| it.rsplit_once("\n\n[")).collect();
        assert!(matches!(answers[..], [(answer, _)] if answer == heard), "{results:?}");
        let structured = place.lines().iter().find(|it| it["toolUseResult"].is_object()).cloned();
        let structured = structured.unwrap()["toolUseResult"]["content"][0]["text"].clone();
        assert_eq!(structured, heard);
        let side = lines(&place.sidechains()[0]);
        assert!(
            side.iter().any(|it| it.to_string().contains("nothing to do")
                || it.to_string().contains("secret plan"))
        );
    }
}

// REQ: AGT-2
#[tokio::test]
async fn five_agents_work_at_the_same_time() {
    let place = TestDirs::new();
    let barrier = Arc::new(Barrier::new(5));
    // Passed only by five calls that wait together.
    let meet = CustomTool::raw("meet", "Meets.", r#"{"type":"object"}"#, move |_, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            ToolOutcome::ok("met")
        }
    });
    let meet = meet.access(Access::Free).build().unwrap();
    let model = model(|asked| {
        let ids = ["a0", "a1", "a2", "a3", "a4"];
        match (asked.is_agent(), asked.n_answers()) {
            (true, 0) => call("m", "meet", json!({})),
            (true, _) => text(&asked.result("m")),
            (false, 0) => calls(&ids.map(|it| (it, "Agent", agent(it, None)))),
            (false, _) => text("done"),
        }
    });
    place.run(&model, place.session().tool(Arc::new(meet))).await;
    let results = model.last_of_top().results();
    assert_eq!(results.len(), 5);
    assert!(results.iter().all(|it| it.1.starts_with("met\n") && !it.2), "{results:?}");
}

// REQ: AGT-2
#[tokio::test]
async fn progress_of_an_agent_reaches_listeners_of_its_parent() {
    let place = TestDirs::new();
    let model = one_agent(agent("look", None), |asked| match asked.n_answers() {
        0 => call("g", "Glob", json!({"pattern": "*"})),
        _ => text("found"),
    });
    let (_, seen) = place.run_with_events(&model, place.session()).await;
    let started = seen.iter().filter(|it| matches!(it, Event::AgentStarted { .. })).count();
    let inner: Vec<&Event> = seen
        .iter()
        .filter_map(|it| match it {
            Event::Agent { event, .. } => Some(&**event),
            _ => None,
        })
        .collect();
    assert_eq!(started, 1);
    let has = |what: fn(&Event) -> bool| inner.iter().any(|it| what(it));
    assert!(has(|it| matches!(it, Event::RunStarted { .. })));
    assert!(has(|it| matches!(it, Event::ToolFinished { .. })));
    assert!(has(|it| matches!(it, Event::RunFinished { .. })));
    assert!(!has(|it| matches!(it, Event::TextDelta { .. })), "deltas stay below");
}

// REQ: AGT-2, AGT-8
#[tokio::test]
async fn only_the_last_text_comes_back_and_usage_adds_up() {
    let place = TestDirs::new();
    let model = one_agent(agent("look", None), |asked| match asked.n_answers() {
        0 => call("g", "Glob", json!({"pattern": "*"})),
        _ => text("found"),
    });
    let outcome = place.run(&model, place.session().model("claude-sonnet-5")).await;
    let last = model.last_of_top();
    let id = place.sidechains()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let id = id.strip_prefix("agent-").unwrap();
    let trailer = format!("[The id of the agent is {id}. SendMessage has it go on.]");
    assert_eq!(last.result("a"), format!("found\n\n{trailer}"));
    assert!(!last.body.to_string().contains("Glob\",\"input"), "nothing of the agent's work");
    // Two answers of each, 100 in and 10 out.
    assert_eq!(outcome.usage.total().0, 440);
    let cost = &outcome.cost;
    assert_eq!((cost.own_accounts().answers.calls, cost.tree().answers.calls), (2, 4));
    assert_eq!((cost.agents().len(), cost.tree().total().usage), (1, outcome.usage));
    // At 2 and 10 dollars per million tokens.
    assert_eq!(cost.tree().total().known_cost().map(Money::micro_usd), Some(4 * 300));
    assert_eq!(cost.by_model().keys().map(|it| &**it).collect::<Vec<_>>(), ["claude-sonnet-5"]);
    assert_eq!(outcome.session_cost, outcome.cost);
    // One call in each turn, 100 in and 10 out, at 300 millionths of a dollar.
    let of_turn = |(turn, it): (&u32, &CostLedger)| {
        (
            *turn,
            it.own_accounts().answers.calls,
            it.own_accounts().total().known_cost().map(Money::micro_usd),
        )
    };
    let turns: Vec<_> = outcome.turn_costs.iter().map(of_turn).collect();
    assert_eq!(turns, [(1, 1, Some(300)), (2, 1, Some(300))]);
}

// REQ: AGT-5, AGT-1
#[tokio::test]
async fn exploring_agent_has_only_tools_that_read() {
    let place = TestDirs::new();
    let model = one_agent(agent("look", Some("Explore")), |_| text("found"));
    place.run(&model, place.session()).await;
    let asked = model.asked_by_agents();
    let tools = asked[0].tools();
    assert!(tools.contains(&"Read".to_owned()), "{tools:?}");
    for tool in ["Write", "Edit", "Bash", "Agent"] {
        assert!(!tools.contains(&tool.to_owned()), "{tool}");
    }
}

// REQ: AGT-5
#[tokio::test]
async fn unknown_type_is_a_result_that_names_the_others() {
    let place = TestDirs::new();
    let model = one_agent(agent("look", Some("Xplore")), |_| text("found"));
    let outcome = place.run(&model, place.session()).await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let seen = model.last_of_top().result("a");
    assert!(seen.contains("Xplore") && seen.contains("Explore"), "{seen}");
    assert!(place.sidechains().is_empty());
}

// REQ: AGT-1
#[tokio::test]
async fn agent_asks_the_model_it_is_given_and_otherwise_its_parents() {
    for (given, asks) in [(Some("small"), "small"), (None, "large")] {
        let place = TestDirs::new();
        let mut input = agent("look", None);
        if let Some(given) = given {
            input["model"] = given.into();
        }
        let model = one_agent(input, |_| text("found"));
        place.run(&model, place.session().model("large")).await;
        assert_eq!(model.asked_by_agents()[0].body["model"], asks);
        assert_eq!(model.last_of_top().body["model"], "large");
    }
}

/// The agent calls this tool; what it is told of the call.
async fn told_to_agent(
    place: &TestDirs,
    options: ennead::SessionOptions,
    tool: &'static str,
    input: Value,
) -> String {
    let model = one_agent(agent("work", None), move |asked| match asked.n_answers() {
        0 => call("t", tool, input.clone()),
        _ => text("found"),
    });
    place.run(&model, options).await;
    model.asked_by_agents().last().unwrap().result("t")
}

// REQ: AGT-9, PRM-2
#[tokio::test]
async fn what_is_denied_to_the_parent_is_denied_to_the_agent() {
    let place = TestDirs::new();
    place.write("workspace/a.txt", "secret");
    // A path rule, so that the tool itself is still offered.
    let options = place.session().deny("Read(a.txt)").unwrap().allow("Read").unwrap();
    let input = json!({"file_path": place.text("workspace/a.txt")});
    let seen = told_to_agent(&place, options, "Read", input).await;
    assert!(seen.starts_with("Permission denied: "), "{seen}");
}

// REQ: AGT-9, PRM-4
#[tokio::test]
async fn mode_of_the_parent_holds_for_the_agent() {
    for (mode, writes) in [(PermissionMode::AcceptEdits, true), (PermissionMode::Default, false)] {
        let place = TestDirs::new();
        let input = json!({"file_path": place.text("workspace/b.txt"), "content": "x"});
        told_to_agent(&place, place.session().mode(mode), "Write", input).await;
        assert_eq!(place.has("workspace/b.txt"), writes, "{mode:?}");
    }
}

// REQ: AGT-9, PRM-5
#[tokio::test]
async fn questions_of_an_agent_go_to_the_approver_of_its_parent() {
    for allowed in [true, false] {
        let place = TestDirs::new();
        let (approver, mut asked) = OneAnswer::new(allowed, "because");
        let mut options = place.session();
        options.approver = Some(approver);
        let input = json!({"file_path": place.text("workspace/b.txt"), "content": "x"});
        let seen = told_to_agent(&place, options, "Write", input).await;
        let question = within("a question", asked.recv()).await.unwrap();
        assert_eq!(question.call.name.as_str(), "Write");
        assert_eq!(place.has("workspace/b.txt"), allowed, "{seen}");
    }
}

// REQ: AGT-8
#[tokio::test]
async fn agent_that_reaches_its_limit_gives_back_what_it_said() {
    let place = TestDirs::new();
    let echo = CustomTool::raw("echo", "", r#"{"type":"object"}"#, |it, _| async move {
        ToolOutcome::ok(&*it)
    });
    let echo = echo.access(Access::Free).concurrency(Concurrency::Together { max: 5 });
    let model = one_agent(agent("look", None), |asked| {
        call(&format!("e{}", asked.n_answers()), "echo", json!({"n": asked.n_answers()}))
    });
    let options = place
        .session()
        .max_turns(NonZeroU32::new(3).unwrap())
        .tool(Arc::new(echo.build().unwrap()));
    let outcome = place.run(&model, options).await;
    assert_eq!(outcome.text, "done");
    let seen = model.last_of_top().result("a");
    assert!(seen.contains("reached a limit"), "{seen}");
}

// REQ: AGT-1
#[tokio::test]
async fn agent_sees_nothing_of_the_conversation_but_its_task() {
    let place = TestDirs::new();
    let model = one_agent(agent("look at the moon", None), |_| text("found"));
    place.run(&model, place.session()).await;
    let asked = &model.asked_by_agents()[0];
    assert!(asked.user().contains("look at the moon"));
    assert!(!asked.user().lines().any(|it| it == "go"), "{}", asked.user());
}

// REQ: CTX-2
#[tokio::test]
async fn agents_have_the_instructions_but_for_those_who_only_look() {
    for (kind, has) in [(None, true), (Some("Explore"), false)] {
        let place = TestDirs::new();
        place.write("workspace/CLAUDE.md", "house rules");
        let model = one_agent(agent("look", kind), |_| text("found"));
        place.run(&model, place.session()).await;
        assert_eq!(model.asked_by_agents()[0].user().contains("house rules"), has, "{kind:?}");
        assert!(model.last_of_top().user().contains("house rules"));
    }
}
