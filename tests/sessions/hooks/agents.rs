//! Hooks that have an agent verify: a sub-agent that reads, answers, and is not a part of the conversation.

mod ends;

use std::{fs, path::PathBuf, sync::Arc};

use ennead::{
    Event, RunEnd, RunOutcome, SessionOptions,
    tool::{Access, CustomTool, ToolOutcome},
};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::{Value, json};

use super::{command, hooks, probed};
use crate::support::{
    approver::OneAnswer,
    record,
    scripted::{Asked, Reply, Scripted, TestDirs, call, finish, model, text, until_end},
    settings::SettingsJson as _,
};

fn handler(prompt: &str) -> Value {
    json!({"type": "agent", "prompt": prompt})
}

fn objects() -> Reply {
    text("I have looked.\n\n{\"ok\":false,\"reason\":\"not so\"}")
}

fn is_fine() -> Reply {
    text(r#"{"ok":true}"#)
}

fn verifies(asked: &Asked) -> bool {
    asked.system().contains("you verify one event")
}

/// Calls `probe` once, then answers; an agent that verifies does what `verify` says.
fn verified(verify: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Arc<Scripted> {
    model(move |asked| match (verifies(asked), asked.n_answers()) {
        (true, _) => verify(asked),
        (false, 0) => call("t", "probe", json!({"n": 1})),
        (false, n) => text(&format!("answer {n}")),
    })
}

/// What came of a run with such hooks.
struct VerifiedRun {
    outcome: RunOutcome,
    seen: Vec<Event>,
    model: Arc<Scripted>,
    transcript: PathBuf,
    /// How the runs of sub-agents ended.
    agent_ends: Vec<String>,
}

impl VerifiedRun {
    fn end(&self) -> RunEnd {
        self.outcome.end
    }

    /// What was asked by agents that verify.
    fn by_agents(&self) -> Vec<Asked> {
        self.model.asked().into_iter().filter(verifies).collect()
    }

    /// What the model read that works, at last.
    fn read(&self) -> String {
        let asked = self.model.asked();
        let last = asked.iter().rfind(|it| !verifies(it));
        last.map(|it| it.text.clone()).unwrap_or_default()
    }
}

/// Runs one prompt in `n_turns` turns. All transcripts are in order, and a walk of them makes the same.
async fn run(
    place: &TestDirs,
    options: SessionOptions,
    model: &Arc<Scripted>,
    n_turns: u64,
) -> VerifiedRun {
    let ennead = place.start(model).await;
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    let outcome = session.prompt("do it").await.unwrap();
    let seen = until_end(&mut events).await;
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, n_turns);
    let mut agent_ends = Vec::new();
    for file in place.sidechains() {
        let n_turns = record::records(&file).iter().map(|it| it.turn).max().unwrap_or(0);
        record::replayed(&file, n_turns.into());
        agent_ends.extend(record::run_ends(&file));
    }
    VerifiedRun { outcome, seen, model: Arc::clone(model), transcript, agent_ends }
}

/// The same under these handlers of one event; says how often `probe` ran, too.
async fn under(
    event: &str,
    handlers: &[Value],
    model: Arc<Scripted>,
    n_turns: u64,
) -> (VerifiedRun, usize) {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let options = options.setting("hooks", hooks(event, handlers));
    let came = run(&place, options, &model, n_turns).await;
    let n_ran = ran.lock().unwrap().len();
    (came, n_ran)
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn agent_reads_a_file_and_holds_the_run_open_until_that_is_as_it_is_to_be() {
    let place = TestDirs::new();
    let plan = place.write("workspace/plan.md", "to do: tests\n");
    // Closes what the plan leaves open.
    let file = plan.clone();
    let close = CustomTool::raw("close", "", r#"{"type":"object"}"#, move |_, _| {
        fs::write(&file, "done: tests\n").unwrap();
        async { ToolOutcome::ok("closed") }
    });
    let close = close.access(Access::Free).build().unwrap();
    let model = model(move |asked| match (verifies(asked), asked.n_answers()) {
        (true, 0) => call("r", "Read", json!({"file_path": plan})),
        (true, _) if asked.result("r").contains("to do") => objects(),
        (true, _) => is_fine(),
        (false, 1) => call("c", "close", json!({})),
        (false, _) => text("that is all"),
    });
    let handlers = [handler("Is all of plan.md done? $ARGUMENTS")];
    let options = place.session().tool(Arc::new(close)).setting("hooks", hooks("Stop", &handlers));
    let came = run(&place, options.model("claude-sonnet-5"), &model, 3).await;
    assert_eq!((came.end(), &*came.outcome.text), (RunEnd::NoPendingTools, "that is all"));
    assert!(came.read().contains("Stop hook feedback:\\nnot so"), "{}", came.read());

    let asked = came.by_agents();
    assert_eq!(asked.len(), 4, "two agents, of two turns each");
    let first = asked[0].user();
    assert!(first.contains("Is all of plan.md done? {"), "{first}");
    assert!(first.contains(r#""hook_event_name":"Stop""#), "{first}");
    let mut tools = asked[0].tools();
    tools.sort();
    assert_eq!(tools, ["Glob", "Grep", "Read"]);
    assert_eq!(asked[0].model(), "claude-haiku-4-5", "a fast one");

    // What they used is part of the run, and their transcripts are vouched for.
    assert_eq!(came.outcome.cost.agents().len(), 2);
    assert_eq!(came.outcome.cost.tree().total().usage, came.outcome.usage);
    assert_eq!(came.outcome.cost.tree().answers.calls, 7);
    let ends: Vec<(String, String)> = record::records(&came.transcript)
        .into_iter()
        .filter_map(|it| match it.what {
            RecordKind::Hook { handler, sidechain: Some(it), effect, .. } => {
                assert!(handler.starts_with("agent: Is all"), "{handler}");
                Some((it.agent.to_string(), effect))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends.iter().map(|it| &*it.1).collect::<Vec<_>>(), ["block", "none"]);
    for file in place.sidechains() {
        assert!(ends.iter().any(|(agent, _)| file.to_string_lossy().contains(agent)), "{file:?}");
        assert_eq!(record::run_ends(&file), ["no_pending_tools"]);
    }
}

// REQ: HKS-1, HKS-4, HKS-5
#[tokio::test]
async fn objection_of_an_agent_does_at_each_event_what_that_of_a_model_does() {
    let asks = || handler("Is $ARGUMENTS harmless?");
    let goes_on = || {
        let mut asks = asks();
        asks["continueOnBlock"] = true.into();
        asks
    };
    let never = || text(r#"{"ok":false,"reason":"no way","impossible":true}"#);
    type Case = (&'static str, Value, fn() -> Reply, RunEnd, usize, u64, &'static str);
    let cases: [Case; 9] = [
        ("PreToolUse", asks(), objects, RunEnd::HookStopped, 0, 1, ""),
        ("PreToolUse", goes_on(), objects, RunEnd::NoPendingTools, 0, 2, "not so"),
        ("PreToolUse", asks(), is_fine, RunEnd::NoPendingTools, 1, 2, "probed"),
        ("PostToolUse", asks(), objects, RunEnd::HookStopped, 1, 1, ""),
        ("PostToolUse", goes_on(), objects, RunEnd::NoPendingTools, 1, 2, "not so"),
        ("PostToolBatch", asks(), objects, RunEnd::HookStopped, 1, 1, ""),
        ("UserPromptSubmit", asks(), objects, RunEnd::HookStopped, 0, 1, ""),
        ("UserPromptSubmit", asks(), is_fine, RunEnd::NoPendingTools, 1, 2, "probed"),
        ("Stop", asks(), never, RunEnd::NoPendingTools, 1, 2, "probed"),
    ];
    for (event, asks, answer, end, n_expected, n_turns, read) in cases {
        let model = verified(move |_| answer());
        let (came, n_ran) = under(event, &[command("true"), asks], model, n_turns).await;
        assert_eq!((came.end(), n_ran), (end, n_expected), "{event}");
        assert!(came.read().contains(read), "{event}: {}", came.read());
        assert_eq!(came.by_agents().len(), 1, "{event}");
    }
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn agent_that_verifies_changes_nothing_asks_nobody_and_starts_no_other_agent() {
    let place = TestDirs::new();
    let secret = place.write("outside/secret", "heron");
    let model = verified(move |asked| match asked.n_answers() {
        0 => call("w", "Write", json!({"file_path": "made", "content": "x"})),
        1 => call("b", "Bash", json!({"command": "touch made"})),
        2 => call("a", "Agent", json!({"description": "d", "prompt": "p"})),
        3 => call("p", "probe", json!({"n": 2})),
        // Somebody would be asked about it.
        4 => call("r", "Read", json!({"file_path": secret})),
        // The hooks of the session hold for it, and none of them has an agent of its own.
        5 => call("g", "Glob", json!({"pattern": "*"})),
        _ => is_fine(),
    });
    let (options, ran) = probed(&place);
    let (approver, mut asked_people) = OneAnswer::new(true, "");
    let log = place.text("log");
    let noted = command(&format!("cat >> {log}; echo >> {log}"));
    let all = json!({
        "PreToolUse": [{"hooks": [handler("Harmless?"), noted]}],
        "SubagentStart": [{"hooks": [noted]}],
        "SubagentStop": [{"hooks": [noted, handler("Done?")]}],
    });
    let options = options.approver(approver).setting("hooks", all);
    let came = run(&place, options, &model, 2).await;
    assert_eq!((came.end(), ran.lock().unwrap().len()), (RunEnd::NoPendingTools, 1));
    let by_agents = came.by_agents();
    assert_eq!(by_agents.len(), 7, "one agent");
    let results = by_agents[6].results();
    let failed: Vec<_> = results.iter().filter(|it| it.2).map(|it| &*it.0).collect();
    assert_eq!(failed, ["w", "b", "a", "p", "r"]);
    assert!(!results.iter().any(|it| it.1.contains("heron")), "{results:?}");
    assert!(asked_people.try_recv().is_err(), "nobody was asked");
    assert!(!place.has("workspace/made"));
    // Hooks of calls that it has tools for, and of the call of the session.
    let log = place.read("log");
    // Two that write at once may have their line ends elsewhere.
    let fired = serde_json::Deserializer::from_str(&log).into_iter::<Value>();
    let fired: Vec<Value> = fired.map(Result::unwrap).collect();
    let fired: Vec<_> = fired.iter().map(|it| (&it["tool_name"], &it["agent_type"])).collect();
    let kind = json!("hook-verifier");
    assert!(fired.contains(&(&json!("Glob"), &kind)), "{fired:?}");
    assert!(fired.contains(&(&json!("probe"), &Value::Null)), "{fired:?}");
    assert!(!fired.iter().any(|it| it.0.is_null()), "{fired:?}");
    let files = place.sidechains();
    let [file] = &files[..] else { panic!("{files:?}") };
    let cycles = record::records(file).into_iter().filter(
        |it| matches!(&it.what, RecordKind::Hook { ended, effect, .. } if ended == "cycle" && effect == "error"),
    );
    assert!(0 < cycles.count());
}

// REQ: HKS-1, AGT-2, SUR-2
#[tokio::test]
async fn listeners_see_the_handler_and_nothing_of_its_agent() {
    let model = verified(|asked| match asked.n_answers() {
        0 => call("g", "Glob", json!({"pattern": "*"})),
        _ => is_fine(),
    });
    let (came, _) = under("PreToolUse", &[handler("Harmless?")], model, 2).await;
    let of_agent = |it: &&Event| matches!(it, Event::AgentStarted { .. } | Event::Agent { .. });
    assert_eq!(came.seen.iter().find(of_agent), None);
    let began = came.seen.iter().any(
        |it| matches!(it, Event::HookStarted { label, .. } if label.starts_with("agent: Harm")),
    );
    let ended = came.seen.iter().any(
        |it| matches!(it, Event::HookFinished { effect, stdout, .. } if &**effect == "none" && stdout.contains("ok")),
    );
    assert!(began && ended, "{:?}", came.seen);
    let used = came.seen.iter().filter_map(|it| match it {
        Event::TokensUsed { usage } => Some(usage.total().0),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [220], "its two calls");
}

// REQ: HKS-1, AGT-7
#[tokio::test]
async fn agent_verifies_for_a_sub_agent_too_and_chooses_the_model_of_its_handler() {
    let place = TestDirs::new();
    let model = model(|asked| match (verifies(asked), asked.is_agent(), asked.n_answers()) {
        (true, ..) if asked.number < 4 => objects(),
        (true, ..) => is_fine(),
        (false, true, n) => text(&format!("found {n}")),
        (false, false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "look"})),
        (false, false, _) => text("done"),
    });
    let mut asks = handler("Found?");
    asks["model"] = "haiku".into();
    let options = place.session().setting("hooks", hooks("SubagentStop", &[asks]));
    let came = run(&place, options, &model, 2).await;
    assert!(came.read().contains("found 1"), "{}", came.read());
    let models: Vec<_> = came.by_agents().iter().map(|it| it.model().to_owned()).collect();
    assert_eq!(models, ["claude-haiku-4-5", "claude-haiku-4-5"]);
    assert_eq!(place.sidechains().len(), 3);
}

// REQ: HKS-1, PRM-1
#[tokio::test]
async fn repository_that_is_not_trusted_starts_no_agent_and_asks_no_model() {
    let is_of_hook = |it: &Asked| it.system().contains("You are a hook of a coding agent");
    for (trust, n_expected) in
        [(ennead::permission::Trust::Untrusted, 0), (ennead::permission::Trust::Trusted, 1)]
    {
        for kind in ["agent", "prompt"] {
            let place = TestDirs::new();
            let mut asks = handler("Done?");
            (asks["type"], asks["model"]) = (kind.into(), "dear".into());
            let own = json!({ "hooks": hooks("Stop", &[asks]) }).to_string();
            place.write("workspace/.claude/settings.json", &own);
            let model =
                model(move |asked| if is_of_hook(asked) { is_fine() } else { text("done") });
            let came = run(&place, place.session().trust(trust), &model, 1).await;
            let n_asked = came.model.asked().iter().filter(|it| is_of_hook(it)).count();
            assert_eq!(n_asked, n_expected, "{trust:?} {kind}");
            assert!(came.model.models().iter().all(|it| it != "dear"), "the user pays");
        }
    }
}
