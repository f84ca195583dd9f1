//! `-p` without JSON lines: sessions that are gone on with, answers that fit a schema, and what answers questions.

use std::fs;

use serde_json::{Value, json};

use super::{CommandDirs, Simulation};

const PLAYBOOK: &str = r#"
key = "right"
[[rule]]
name = "after results"
when.answers = { min = 1 }
reply = [{ text = "results: {{ new_results|map(attribute='text')|join(' | ') }}" }]
[[rule]]
name = "call"
when.prompt = { regex = "^call " }
let.found = "prompt|capture('(?s)^call (\\S+) (.*)$')"
reply = [{ tool = "{{ found[1] }}", input_json = "{{ found[2] }}" }]
[[rule]]
name = "said"
when.prompt = "what was said"
reply = [{ text = "{{ messages|json }}" }]
[[rule]]
name = "model"
when.prompt = "which model"
reply = [{ text = "{{ model }}" }]
[[rule]]
name = "say"
reply = [{ text = "heard" }]
"#;

fn asked(server: &Simulation, place: &CommandDirs, prompt: &str, flags: &[&str]) -> Value {
    let ended = server.run(place, &[&["-p", prompt, "--output-format", "json"], flags].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

// REQ: SUR-2, SES-2
#[test]
fn session_is_gone_on_with_copied_and_cut_without_lines() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let first = asked(&server, &place, "the first", &[]);
    let id = first["session_id"].as_str().unwrap();
    let on = asked(&server, &place, "what was said", &["--resume", id]);
    assert_eq!(on["session_id"], id);
    assert!(on["result"].as_str().unwrap().contains("the first"), "{on}");
    let newest = asked(&server, &place, "what was said", &["-c", "--trust"]);
    assert_eq!(newest["session_id"], id);
    let transcript = place.work().join(format!(".transcripts/{id}.jsonl"));
    let before = fs::read(&transcript).unwrap();
    let copy = asked(&server, &place, "what was said", &["-r", id, "--fork-session"]);
    assert_ne!(copy["session_id"], id);
    assert!(copy["result"].as_str().unwrap().contains("the first"), "{copy}");
    assert_eq!(fs::read(&transcript).unwrap(), before, "the source stays");

    let lines = String::from_utf8(before).unwrap();
    let lines = lines.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let answer = lines.into_iter().find(|it| it["type"] == "assistant").unwrap();
    let until = answer["uuid"].as_str().unwrap();
    let cut = asked(
        &server,
        &place,
        "what was said",
        &["--resume", id, "--fork-session", "--resume-session-at", until],
    );
    let said = cut["result"].as_str().unwrap();
    assert_eq!(said.matches("what was said").count(), 1, "{said}");
}

// REQ: SUR-2, SES-2
#[test]
fn session_that_is_not_there_is_an_error_and_asks_no_model() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let unknown = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90";
    let why = format!("No conversation found with session ID: {unknown}");
    let result = asked(&server, &place, "say", &["--resume", unknown]);
    assert_eq!((&result["is_error"], &result["errors"]), (&true.into(), &json!([why])));
    let ended = server.run(&place, &["-p", "say", "--resume", unknown]);
    assert!(ended.code == Some(1) && ended.stderr.contains(&why), "{ended:?}");
    let alone = asked(&server, &place, "say", &["--fork-session"]);
    assert!(alone["errors"][0].as_str().unwrap().contains("--resume or --continue"), "{alone}");
    let first = asked(&server, &place, "say", &["--continue"]);
    assert_eq!(first["result"], "heard", "there is none, and a new one begins");
}

// REQ: SUR-2
#[test]
fn conversation_that_came_with_a_directory_is_not_gone_on_with_unless_somebody_names_it() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let id = asked(&server, &place, "a heron", &[])["session_id"].as_str().unwrap().to_owned();
    let other = asked(&server, &place, "what was said", &["--continue"]);
    assert_ne!(other["session_id"], *id, "nobody trusts the directory");
    assert!(!other["result"].as_str().unwrap().contains("a heron"), "{other}");
}

// REQ: SUR-2
#[test]
fn answer_fits_a_schema_as_text_and_as_json() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let prompt = r#"call StructuredOutput {"n": 5}"#;
    let result = asked(&server, &place, prompt, &["--json-schema", schema]);
    assert_eq!(result["structured_output"], json!({"n": 5}), "{result}");
    let ended = server.run(&place, &["-p", prompt, "--json-schema", schema]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), r#"{"n":5}"#), "{ended:?}");
    let refused = server.run(&place, &["-p", "never", "--json-schema", schema]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(server.run(&place, &["-p", "x", "--json-schema", "{"]).code, Some(2));
}

// REQ: SUR-2
#[test]
fn model_of_the_environment_holds_where_no_flag_names_one() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    place.file("../home/.claude/settings.json", r#"{"model": "claude-opus-4-1"}"#);
    let mut command = server.command(&place, &["-p", "which model"]);
    command.env("ANTHROPIC_MODEL", "claude-haiku-4-5");
    let ended: super::Ended = command.output().unwrap().into();
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "claude-haiku-4-5"), "{ended:?}");
}
