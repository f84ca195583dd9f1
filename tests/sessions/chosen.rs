//! Each option of a session, and each setting of its own method, changes what a session does.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use ennead::{
    Endpoint, Ennead, RunRequest, SessionOptions,
    permission::{HookEvent, HookInput, HookReply, SettingSources},
    settings::Settings,
    tool::{Access, AgentType, CustomTool, ToolOutcome},
};
use serde_json::{Value, json};

use crate::support::{
    barrier::Barrier,
    scripted::{Asked, Reply, TestDirs, call, finish, model, refusal, replies, says, text},
    until::within,
};

/// What the model is asked first by a session with these options.
async fn first_request(place: &TestDirs, options: SessionOptions) -> Asked {
    let model = says(Vec::new());
    place.run(&model, options).await;
    model.asked().swap_remove(0)
}

// REQ: SUR-1
#[tokio::test]
async fn replaced_system_prompt_is_all_only_when_it_is_to_be() {
    let place = TestDirs::new();
    let own = || place.session().system_prompt("Own.").append_system_prompt("More.");
    let bare = first_request(&place, own().bare_system_prompt(true)).await.system();
    assert_eq!(bare.split_whitespace().collect::<Vec<_>>(), ["Own.", "More."]);
    let other = TestDirs::new();
    let whole = other.session().system_prompt("Own.").append_system_prompt("More.");
    let whole = first_request(&other, whole).await.system();
    assert!(whole.contains("Own.") && whole.contains(&other.text("workspace")), "{whole}");
}

// REQ: SUR-1
#[tokio::test]
async fn static_system_prompt_leaves_directories_to_the_first_message() {
    for is_static in [false, true] {
        let place = TestDirs::new();
        let options = place.session().static_system_prompt(is_static);
        let asked = first_request(&place, options).await;
        let directory = place.text("workspace");
        assert_eq!(asked.system().contains(&directory), !is_static, "{}", asked.system());
        assert!(asked.user().contains(&directory), "{}", asked.user());
    }
}

// REQ: CTX-2
#[tokio::test]
async fn instructions_are_read_unless_an_option_leaves_them_out() {
    let not_of_the_user = SettingSources { user: false, project: true, local: true };
    for (option, reads) in [("", true), ("sources", false), ("whose", false)] {
        let place = TestDirs::new();
        place.write("home/.claude/CLAUDE.md", "Speak of otters.");
        let options = match option {
            "sources" => place.session().reads_sources(false),
            "whose" => place.session().setting_sources(not_of_the_user),
            _ => place.session(),
        };
        let asked = first_request(&place, options).await;
        assert_eq!(asked.text.contains("Speak of otters."), reads, "{option}: {}", asked.text);
    }
}

// REQ: AGT-1
#[tokio::test]
async fn types_of_agents_replace_those_that_were_given_before() {
    let place = TestDirs::new();
    let kind = |name: &str| AgentType::new(name, &format!("Looks for {name}."), "Look.");
    let options = place.session().agent_type(kind("badgers")).agent_types(vec![kind("otters")]);
    let asked = first_request(&place, options).await;
    assert!(asked.text.contains("Looks for otters."), "{}", asked.text);
    assert!(!asked.text.contains("Looks for badgers."), "{}", asked.text);
}

/// A session whose pauses end at once.
async fn hurried(place: &TestDirs, model: &Arc<crate::support::scripted::Scripted>) -> Ennead {
    Ennead::start(place.options(model).timer(place.clock.clone())).await.unwrap()
}

// REQ: MDL-10
#[tokio::test]
async fn other_endpoints_are_turned_to_in_the_order_in_which_they_are_given() {
    let place = TestDirs::new();
    let model = model(|asked| match asked.head.contains("http://last.test") {
        true => text("here"),
        false => Reply::error(529, "overloaded_error", "Overloaded"),
    });
    let others = ["http://other.test", "http://last.test"];
    let others = others.map(|it| Endpoint::messages(it, None).named(it));
    let ennead = hurried(&place, &model).await;
    let options = place.session().fallback(Endpoint::messages("http://unused.test", None));
    let session = ennead.open(options.fallbacks(others.into())).await.unwrap();
    assert_eq!(session.prompt("go").await.unwrap().text, "here");
    let mut servers: Vec<String> = model.asked().into_iter().map(|it| it.head).collect();
    servers.iter_mut().for_each(|it| it.truncate(it.find("/v1/").unwrap()));
    servers.dedup();
    let expected = ["model", "other", "last"].map(|it| format!("POST http://{it}.test"));
    assert_eq!(servers, expected);
    finish(ennead, session).await;
}

// REQ: SES-4
#[tokio::test]
async fn session_goes_on_from_an_earlier_message() {
    let place = TestDirs::new();
    let first = replies(vec![text("otters"), text("weasels")]);
    let ennead = place.start(&first).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.prompt("first").await.unwrap();
    session.prompt("badgers").await.unwrap();
    finish(ennead, session).await;
    let answer = place.lines().into_iter().find(|it| it["type"] == "assistant").unwrap();
    let id = answer["uuid"].as_str().unwrap().to_owned();
    let asked = first_request(&place, place.session().goes_on_from(id)).await;
    assert!(asked.text.contains("otters") && !asked.text.contains("badgers"), "{}", asked.text);
}

// REQ: TRN-14
#[tokio::test]
async fn record_of_a_run_names_where_it_was_asked_for() {
    let place = TestDirs::new();
    let ennead = place.start(&says(Vec::new())).await;
    let session = ennead.open(place.session()).await.unwrap();
    session.run(RunRequest::new("go").origin("schedule")).await.unwrap();
    finish(ennead, session).await;
    let begun = place.lines().into_iter().find(|it| it["kind"] == "run_start").unwrap();
    assert_eq!(begun["origin"], "schedule");
}

/// A tool that answers at once.
fn probe() -> Arc<CustomTool> {
    let tool = CustomTool::raw("probe", "", r#"{"type":"object"}"#, |_, _| async {
        ToolOutcome::ok("probed")
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

// REQ: HKS-2
#[tokio::test]
async fn failed_hook_blocks_a_call_only_if_it_guards_it() {
    let broken = |_: HookInput| async { HookReply::failed("it broke") };
    let limit = Duration::from_secs(60);
    for guards in [false, true] {
        let place = TestDirs::new();
        let options = place.session().tool(probe());
        let hook = Arc::new(broken);
        let event = HookEvent::PreToolUse;
        let options = if guards {
            options.guarding_hook(event, "probe", limit, hook).unwrap()
        } else {
            options.hook(event, "probe", limit, hook).unwrap()
        };
        let model = says(vec![call("t", "probe", json!({}))]);
        place.run(&model, options).await;
        assert_eq!(model.last().result("t") == "probed", !guards, "{}", model.last().text);
    }
}

/// A day. A limit that followed another timer than that of the options would not be reached within the test.
const LONG: Duration = Duration::from_secs(86_400);

/// The result of a call in a session in which something reaches `waits` and its limit is over then.
async fn result_after_the_limit(
    options: SessionOptions,
    place: &TestDirs,
    waits: &Barrier,
) -> String {
    let model = says(vec![call("t", "probe", json!({}))]);
    let ennead = hurried(place, &model).await;
    let session = ennead.open(options).await.unwrap();
    let end = async {
        waits.arrived().await;
        place.clock.advance(LONG);
    };
    let (outcome, ()) = tokio::join!(within("the end of the run", session.prompt("go")), end);
    assert_eq!(outcome.unwrap().text, "done");
    finish(ennead, session).await;
    model.last().result("t")
}

#[tokio::test]
async fn limit_of_a_tool_follows_the_timer_of_the_options() {
    let (place, waits) = (TestDirs::new(), Barrier::closed());
    let reached = waits.clone();
    let tool = CustomTool::raw("probe", "", r#"{"type":"object"}"#, move |_, _| {
        let reached = reached.clone();
        async move {
            reached.pass().await;
            ToolOutcome::ok("never")
        }
    });
    let limit = u64::try_from(LONG.as_millis()).unwrap();
    let tool = tool.access(Access::Free).timeout_ms(limit).build().unwrap();
    let options = place.session().tool(Arc::new(tool));
    let result = result_after_the_limit(options, &place, &waits).await;
    assert!(result.contains("did not end within 86400000 ms"), "{result}");
}

// REQ: HKS-2
#[tokio::test]
async fn limit_of_a_hook_follows_the_timer_of_the_options() {
    let (place, waits) = (TestDirs::new(), Barrier::closed());
    let reached = waits.clone();
    let hook = move |_: HookInput| {
        let reached = reached.clone();
        async move {
            reached.pass().await;
            HookReply::proceed()
        }
    };
    let options = place.session().tool(probe());
    let hook = options.guarding_hook(HookEvent::PreToolUse, "probe", LONG, Arc::new(hook));
    let result = result_after_the_limit(hook.unwrap(), &place, &waits).await;
    assert!(result.starts_with("Permission denied"), "{result}");
}

// REQ: MDL-6
#[tokio::test]
async fn failed_call_is_repeated_as_often_as_the_settings_say() {
    for retries in [0, 2] {
        let place = TestDirs::new();
        let model = replies(vec![refusal(500)]);
        let ennead = hurried(&place, &model).await;
        let settings = Settings::new().max_retries(retries);
        let session = ennead.open(place.session().settings(settings)).await.unwrap();
        session.prompt("go").await.unwrap().into_answer().unwrap_err();
        finish(ennead, session).await;
        assert_eq!(model.asked().len(), 1 + usize::try_from(retries).unwrap());
    }
}

#[tokio::test]
async fn file_of_an_additional_directory_is_read_without_a_question() {
    for is_added in [false, true] {
        let place = TestDirs::new();
        let file = place.write("outside/a.txt", "an otter");
        let settings = match is_added {
            true => Settings::new().additional_directory(&place.text("outside")),
            false => Settings::new(),
        };
        let model = says(vec![call("t", "Read", json!({ "file_path": file }))]);
        place.run(&model, place.session().settings(settings)).await;
        let result = model.last().result("t");
        assert_eq!(result.contains("an otter"), is_added, "{result}");
    }
}

#[test]
fn settings_of_methods_are_those_of_files() {
    let n = |it| NonZeroU32::new(it).unwrap();
    let cases: [(Settings, Value); 5] = [
        (Settings::new().max_output_tokens(n(7)), json!({ "maxOutputTokens": 7 })),
        (Settings::new().context_window(9_000), json!({ "contextWindow": 9_000 })),
        (Settings::new().run_token_budget(300), json!({ "runTokenBudget": 300 })),
        (Settings::new().max_agents(n(3)), json!({ "agents": { "maxInTree": 3 } })),
        (Settings::new().max_retries(2), json!({ "maxRetries": 2 })),
    ];
    for (settings, own) in cases {
        assert_eq!(settings, Settings::from_json(json!({ "ennead": own })).unwrap());
    }
}
