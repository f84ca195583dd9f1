//! Lines that no program should write: each has an answer or an end, and no prompt is lost.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{
    super::{CommandDirs, Simulation, with_input},
    Driver, driven, initialize, lines, of_type, prompt,
};

fn request(id: &str, request: &Value) -> String {
    json!({"type": "control_request", "request_id": id, "request": request}).to_string() + "\n"
}

/// The one transcript of the configuration directory.
pub(super) fn transcript(place: &CommandDirs) -> PathBuf {
    let projects = place.work().join("../config/projects");
    let directory = fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let mut entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    entries.find(|it| it.extension().is_some_and(|it| it == "jsonl")).unwrap()
}

// REQ: SUR-3
#[test]
fn every_control_request_has_one_answer_whatever_it_holds() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let odd = [
        json!(null),
        json!("initialize"),
        json!({}),
        json!({"subtype": 5}),
        json!({"subtype": "initialize", "hooks": [1]}),
        json!({"subtype": "initialize", "hooks": {"PreToolUse": {"matcher": "Bash"}}}),
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"matcher": "Bash"}]}}),
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": [5]}]}}),
        json!({"subtype": "initialize", "skills": "all of them"}),
        json!({"subtype": "set_permission_mode"}),
        json!({"subtype": "set_permission_mode", "mode": "none"}),
        json!({"subtype": "set_model", "model": ["m"]}),
        json!({"subtype": "set_model", "model": ""}),
        json!({"subtype": "stop_task"}),
        json!({"subtype": "stop_task", "task_id": "nobody"}),
        json!({"subtype": "dance"}),
    ];
    let asked = odd.iter().enumerate().map(|(n, it)| request(&n.to_string(), it));
    let input = [asked.collect::<String>(), initialize(), initialize(), prompt("one")].concat();
    let ended = with_input(driven(&place, &server, &["--model", "m"]), input.as_bytes());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let lines = lines(&ended);
    let answers = of_type(&lines, "control_response");
    let responses: Vec<_> = answers.iter().map(|it| &it["response"]).collect();
    for (n, request) in odd.iter().enumerate() {
        assert_eq!(
            (&responses[n]["request_id"], &responses[n]["subtype"]),
            (&n.to_string().into(), &"error".into()),
            "{request}"
        );
        assert!(responses[n]["error"].as_str().is_some_and(|it| !it.is_empty()), "{request}");
    }
    let last: Vec<_> = responses[odd.len()..].iter().map(|it| &it["subtype"]).collect();
    assert_eq!(last, ["success", "error"], "a session is introduced once");
    assert_eq!(of_type(&lines, "result")[0]["result"], "m: one");
}

// REQ: SUR-3
#[test]
fn input_may_end_within_any_line() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let whole = [initialize(), prompt("one")].concat();
    let end = whole.len() - 1;
    let points = (0..end).step_by(17).chain([initialize().len() - 1, initialize().len(), end]);
    for point in points {
        let input = &whole.as_bytes()[..point];
        let ended = with_input(driven(&place, &server, &["--model", "m"]), input);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "at {point}: {ended:?}");
        let n_results = of_type(&lines(&ended), "result").len();
        assert_eq!(n_results, usize::from(point == end), "at {point}");
    }
}

// REQ: SUR-3, SES-1
#[test]
fn prompts_of_megabytes_between_broken_lines_are_kept_whole_or_refused_clearly() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let (long, too_long) = ("x".repeat(2_000_000), "y".repeat(10_000_000));
    let mut input = b"\xff\xfe{\n".to_vec();
    input.extend_from_slice(prompt(&long).as_bytes());
    input.extend_from_slice(b"{\"type\":\"user\",\"message\":{\"content\":\"\xff\"}}\n");
    input.extend_from_slice(prompt(&too_long).as_bytes());
    input.extend_from_slice(prompt("small").as_bytes());
    let model = ["--model", "claude-sonnet-5"];
    let ended = with_input(driven(&place, &server, &model), &input);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stderr);
    assert!(ended.stdout.lines().all(|it| it.chars().count() <= 1_000_000));
    let lines = lines(&ended);
    let results: Vec<_> = of_type(&lines, "result").iter().map(|it| &it["is_error"]).collect();
    assert_eq!(results, [false, true, false]);
    let why = of_type(&lines, "result")[1]["errors"][0].as_str().unwrap();
    assert!(why.contains("the window of the model"), "{why}");
    let kept = fs::read_to_string(transcript(&place)).unwrap();
    assert!(kept.contains(&format!("\"{long}\"")) && kept.contains("\"small\""));
}

// REQ: SUR-3, SES-1
#[test]
fn prompt_that_was_taken_is_in_the_transcript_of_a_program_that_stopped_reading() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut driver = Driver::start(driven(&place, &server, &["--model", "m"]));
    driver.write(&prompt("one"));
    while driver.next()["type"] != "result" {}
    driver.write(&prompt("two"));
    while driver.next()["subtype"] != "init" {}
    drop(driver.output);
    // Whether there are more lines to write or none, it ends with its input.
    drop(driver.child.stdin.take());
    assert!(driver.child.wait().unwrap().code().is_some_and(|it| it != 101));
    let kept = fs::read_to_string(transcript(&place)).unwrap();
    assert!(kept.contains("\"one\"") && kept.contains("m: one"), "{kept}");
}
