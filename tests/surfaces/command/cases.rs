//! `conformance` on the corpus, and on a case that expects something else.

use std::fs;

use serde_json::Value;

use super::CommandDirs;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases");

// REQ: TRN-6, SHP-1, MDL-1, SES-7, PRM-8, TOL-9
#[test]
fn the_corpus_has_no_miss_and_every_case_has_its_line() {
    let place = CommandDirs::new();
    let ended = place.run(&["conformance", CASES, "--out", "got.jsonl"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for file in [
        "bash_classify.jsonl",
        "bash_permissions.jsonl",
        "path_permissions.jsonl",
        "shapers.jsonl",
        "sse_streams",
        "stop_check.jsonl",
    ] {
        let line = ended.stdout.lines().find(|it| it.starts_with(file)).unwrap();
        assert!(line.ends_with(" passed, 0 missed"), "{line}");
    }
    let got = fs::read_to_string(place.work().join("got.jsonl")).unwrap();
    let got: Vec<Value> = got.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(got.iter().all(|it| it.as_object().unwrap().len() == 3));
    assert!(got.iter().all(|it| !it["got"].is_null()));
    let found = |file: &str, id: &str| {
        got.iter().find(|it| it["file"] == file && it["id"] == id).unwrap()["got"].clone()
    };
    assert_eq!(found("path_permissions.jsonl", "pp-s-001"), "allow");
    assert_eq!(found("bash_permissions.jsonl", "bp-s-001"), "ask");
    assert_eq!(found("bash_classify.jsonl", "bc-s-001"), "read-only");
    assert_eq!(found("stop_check.jsonl", "st-s-001")["reason"], "no_pending_tools");
    assert_eq!(found("sse_streams", "s01_text_simple")["outcome"], "message");
}

// REQ: TRN-6
#[test]
fn a_miss_is_named_and_has_code_4() {
    let place = CommandDirs::new();
    let cases = fs::read_to_string(format!("{CASES}/stop_check.jsonl")).unwrap();
    let wrong = cases.replacen("\"no_pending_tools\"}", "\"explicit_stop\"}", 1);
    assert_ne!(cases, wrong);
    place.file("mine/stop_check.jsonl", &wrong);
    let ended = place.run(&["conformance", "mine"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("44 passed, 1 missed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("missed stop_check.jsonl st-s-001"), "{}", ended.stdout);
}
