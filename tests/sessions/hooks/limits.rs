//! Hooks that take too long, say too much, or never let go.

use std::{fs::File, process::Command};

use ennead::RunEnd;
use serde_json::{Value, json};

use super::{answers, came_of, command, hooks, probed};
use crate::support::scripted::{TestDirs, alerts, call, says, text};
use crate::support::settings::SettingsJson as _;

// REQ: HKS-2
#[tokio::test]
async fn late_hook_is_killed_with_all_it_started_and_the_call_goes_on() {
    // The shell waits for the sleep, which alone holds the pipe open.
    let mut late = vec!["sleep 1000 > PIPE; true"];
    // One that left its session can be found there only.
    if cfg!(target_os = "linux") {
        late.push("trap '' TERM; exec 3> PIPE; setsid sleep 1000 & sleep 1000");
    }
    for script in late {
        let place = TestDirs::new();
        let (options, ran) = probed(&place);
        let pipe = place.text("outside/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut late = command(&script.replace("PIPE", &pipe));
        late["timeout"] = json!(0.5);
        // The test holds the pipe too until the hook is over, which may be stopped before it opens it.
        let held = File::options().read(true).write(true).open(&pipe).unwrap();
        let reader = File::open(pipe).unwrap();
        let read = tokio::task::spawn_blocking(move || std::io::read_to_string(reader).unwrap());
        let options = options.setting("hooks", hooks("PreToolUse", &[late]));
        let came = came_of(&place, options, &ran).await;
        drop(held);
        assert_eq!(came.result, "probed", "{script}");
        assert!(
            alerts(&came.events_seen).join("").contains("was stopped after"),
            "{:?}",
            came.events_seen
        );
        // Ends when nobody holds the pipe any more.
        assert_eq!(read.await.unwrap(), "", "{script}");
    }
}

// REQ: HKS-4
#[tokio::test]
async fn hook_has_answered_when_it_has_ended_whatever_it_left_behind() {
    // Each leaves a process that waits for the pipe: one holds the outputs, one the input, which is
    // more than fits without a reader.
    let held = ["cat PIPE & echo no >&2; exit 2", "exec 3<&0; cat PIPE <&3 >OUT 2>&1 & exit 2"];
    for script in held {
        let place = TestDirs::new();
        let (options, ran) = probed(&place);
        let pipe = place.text("outside/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = script.replace("PIPE", &pipe).replace("OUT", &place.text("outside/out"));
        // Time enough to end, and too little to wait for what is left.
        let mut denies = command(&script);
        denies["timeout"] = json!(20);
        let options = options.setting("hooks", hooks("PreToolUse", &[denies]));
        let input = json!({"n": 1, "text": "x".repeat(1 << 20)});
        let model = says(vec![call("t", "probe", input)]);
        let (_, events_seen) = place.run_with_events(&model, options).await;
        assert!(model.last().result("t").starts_with("Permission denied"), "{script}");
        assert!(ran.lock().unwrap().is_empty());
        assert!(alerts(&events_seen).is_empty(), "{events_seen:?}");
        // What it left is still there to read this.
        let write = tokio::task::spawn_blocking(move || std::fs::write(pipe, "x"));
        write.await.unwrap().unwrap();
    }
}

// REQ: HKS-4
#[tokio::test]
async fn overlong_context_is_kept_in_a_file_that_the_model_may_read() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let script = place.script(
        "outside/long.sh",
        r#"long=$(head -c 12000 /dev/zero | tr '\0' x)
echo "{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":\"${long}END\"}}""#,
    );
    let options = options.setting("hooks", hooks("PostToolUse", &[command(&script)]));
    let came = came_of(&place, options, &ran).await;
    assert!(!came.result.contains("END") && came.result.len() < 4_000, "{}", came.result);
    let (_, path) = came.result.split_once("(all of it: ").unwrap();
    let path = path.split(')').next().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().ends_with("xEND"));
}

fn stop_inputs(place: &TestDirs) -> Vec<bool> {
    let seen = place.read("outside/stops");
    let inputs = seen.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    inputs.map(|it| it["stop_hook_active"].as_bool().unwrap()).collect()
}

// REQ: HKS-6
#[tokio::test]
async fn stop_hook_holds_the_run_eight_times_and_is_then_overridden() {
    let place = TestDirs::new();
    let seen = place.text("outside/stops");
    let stop = command(&format!("cat >> {seen}; echo >> {seen}; echo 'not yet' >&2; exit 2"));
    let options = place.session().setting("hooks", hooks("Stop", &[stop]));
    let model = says((0..20).map(|it| text(&format!("answer {it}"))).collect());
    let (outcome, events_seen) = place.run_with_events(&model, options).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::NoPendingTools, 9));
    let mut active = vec![true; 9];
    active[0] = false;
    assert_eq!(stop_inputs(&place), active);
    assert!(alerts(&events_seen).join("").contains("8 times"), "{events_seen:?}");
    assert!(model.last().user().contains("Stop hook feedback:\nnot yet"));
}

// REQ: HKS-6
#[tokio::test]
async fn stop_hook_that_is_content_lets_the_run_end() {
    let place = TestDirs::new();
    let once = place.text("outside/once");
    let stop = command(&format!("test -e {once} && exit 0; touch {once}; echo more >&2; exit 2"));
    let options = place.session().setting("hooks", hooks("Stop", &[stop]));
    let outcome = place.run(&says(vec![text("one"), text("two")]), options).await;
    assert_eq!((outcome.text.as_str(), outcome.turns), ("two", 2));
}

// REQ: HKS-4
#[tokio::test]
async fn hook_can_stop_the_run_before_a_call() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let stop = answers(0, &json!({"continue": false, "stopReason": "no more"}), "");
    let came = came_of(&place, options.setting("hooks", hooks("PreToolUse", &[stop])), &ran).await;
    assert_eq!(
        (came.end, came.text.as_str(), came.inputs.len()),
        (RunEnd::HookStopped, "no more", 0)
    );
}

// REQ: HKS-1
#[tokio::test]
async fn matcher_chooses_by_the_name_of_the_tool() {
    for (matcher, runs) in [
        ("probe", true),
        ("pro.*", true),
        ("pro", false),
        ("Bash|probe", true),
        ("PROBE", false),
        ("*", true),
    ] {
        let place = TestDirs::new();
        let (options, ran) = probed(&place);
        let table = json!({"PreToolUse": [{"matcher": matcher, "hooks": [command("exit 2")]}]});
        let came = came_of(&place, options.setting("hooks", table), &ran).await;
        assert_eq!(came.inputs.is_empty(), runs, "{matcher}");
    }
}

// REQ: HKS-1
#[tokio::test]
async fn hooks_of_the_parent_run_for_its_agents_and_name_them() {
    let place = TestDirs::new();
    let (options, _) = probed(&place);
    let seen = place.text("outside/stops");
    let hook = command(&format!("cat >> {seen}; echo >> {seen}"));
    let table = json!({"PreToolUse": [{"matcher": "probe", "hooks": [hook]}]});
    let model =
        crate::support::scripted::model(|asked| match (asked.is_agent(), asked.n_answers()) {
            (true, 0) => call("p", "probe", json!({"n": 1})),
            (false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "p"})),
            _ => text("done"),
        });
    place.run(&model, options.setting("hooks", table)).await;
    let input: Value = serde_json::from_str(place.read("outside/stops").trim()).unwrap();
    assert_eq!(input["agent_type"], "general-purpose");
    assert!(input["agent_id"].is_string());
}

// REQ: HKS-2
#[tokio::test]
async fn slow_hook_delays_only_its_own_session() {
    let place = TestDirs::new();
    let (options, _) = probed(&place);
    let pipe = place.text("outside/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let model = says(vec![call("t", "probe", json!({"n": 1}))]);
    let ennead = place.start(&model).await;
    let slow = hooks("PreToolUse", &[command(&format!("cat {pipe}"))]);
    let held = ennead.open(options.clone().setting("hooks", slow)).await.unwrap();
    let mut other = options;
    other.id = Some("5f1c0000-0000-4000-8000-0000000000bb".into());
    let other = ennead.open(other).await.unwrap();
    let (waits, free) = (held.prompt("go"), other.prompt("go"));
    let mut waits = Box::pin(waits);
    // The hook ends only when somebody writes into the pipe, and nobody has yet.
    let done = tokio::select! {
        biased;
        _ = &mut waits => panic!("the hook has not ended"),
        done = free => done.unwrap(),
    };
    assert_eq!(done.text, "done");
    let write = tokio::task::spawn_blocking(move || std::fs::write(pipe, "x").unwrap());
    assert_eq!(waits.as_mut().await.unwrap().text, "done");
    drop(waits);
    write.await.unwrap();
    other.close().await;
    crate::support::scripted::finish(ennead, held).await;
}
