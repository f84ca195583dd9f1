//! Agents that verify for hooks, over a socket: a program sees their handlers, and nothing else of them.

use super::*;

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "looks"
when.system = "you verify one event"
when.answers = 0
reply = [{ text = "I look." }, { tool = "Glob", input = { pattern = "made" } }]

[[rule]]
name = "objects once"
when.system = "you verify one event"
when.prompt.regex = '"stop_hook_active":false'
reply = [{ text = "I looked.\n{\"ok\":false,\"reason\":\"make it\"}" }]

[[rule]]
name = "is content then"
when.system = "you verify one event"
reply = [{ text = "{\"ok\":true}" }]

[[rule]]
name = "works"
reply = [{ text = "that is all" }]
"#;

// REQ: HKS-1, HKS-5, SUR-2, SUR-3
#[test]
fn program_sees_the_handler_of_an_agent_that_verifies_and_no_message_of_it() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&CommandDirs::new(), PLAYBOOK);
    let hooks =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "agent", "prompt": "Is it made?"}]}]}});
    let settings = hooks.to_string();
    let more = ["--include-hook-events", "--model", "m", "--settings", &settings];
    let ended = with_input(driven(&place, &server, &more), prompt("make").as_bytes());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let lines = lines(&ended);
    let texts: Vec<_> = of_type(&lines, "assistant")
        .iter()
        .map(|it| (&it["message"]["content"][0]["text"], &it["parent_tool_use_id"]))
        .collect();
    let own = json!("that is all");
    assert_eq!(texts, [(&own, &Value::Null), (&own, &Value::Null)]);
    assert!(!ended.stdout.contains("I look."), "{}", ended.stdout);
    let kinds: Vec<_> = of_type(&lines, "system").iter().map(|it| it["subtype"].clone()).collect();
    assert!(!kinds.iter().any(|it| it.as_str().unwrap().starts_with("task_")), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|it| *it == "hook_response").count(), 2, "{kinds:?}");
    let result = of_type(&lines, "result")[0];
    // Two answers of each agent, and two of the session.
    assert_eq!((&result["result"], &result["num_turns"]), (&own, &2.into()), "{result}");
    let transcript = odd_input::transcript(&place);
    let verified = place.run(&["verify", transcript.to_str().unwrap()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let trace = place.run(&["trace", transcript.to_str().unwrap()]);
    assert!(trace.stdout.contains("agent: Is it made?"), "{}", trace.stdout);

    // What an agent did cannot be changed unnoticed.
    let below = transcript.with_extension("").join("subagents");
    let files = fs::read_dir(below).unwrap().map(|it| it.unwrap().path());
    let files: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    assert_eq!(files.len(), 2);
    let kept = fs::read_to_string(&files[0]).unwrap();
    let n_kept = kept.lines().count() - 1;
    fs::write(&files[0], kept.split_inclusive('\n').take(n_kept).collect::<String>()).unwrap();
    let verified = place.run(&["verify", transcript.to_str().unwrap()]);
    assert_ne!(verified.code, Some(0), "{verified:?}");
    assert!(format!("{verified:?}").contains("another hash"), "{verified:?}");
    fs::remove_file(&files[0]).unwrap();
    let verified = place.run(&["verify", transcript.to_str().unwrap()]);
    assert_ne!(verified.code, Some(0), "{verified:?}");
    assert!(format!("{verified:?}").contains("is missing"), "{verified:?}");
}
