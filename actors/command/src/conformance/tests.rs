//! Cases that are wrong on purpose; the corpus itself is run by the command's tests.

use super::*;

fn miss_of(file: &str, text: &str) -> Vec<Verdict> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    run(dir.path()).unwrap().into_iter().map(|it| it.verdict).collect()
}

#[test]
fn an_expectation_that_is_not_met_is_a_miss() {
    let stop = r#"{"id":"a","input":{"transcript":[],"budget":{"used":1,"max":9}},
        "expected":{"done":true,"reason":null}}"#;
    let met = stop.replace("true", "false").replace('\n', " ");
    let missed = miss_of("stop_check.jsonl", &format!("{}\n{met}\n", stop.replace('\n', " ")));
    assert!(matches!(missed[..], [Verdict::Miss { .. }, Verdict::Pass]), "{missed:?}");
}

#[test]
fn a_directory_without_cases_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(run(dir.path()), Err(ConformanceError::NoCases { .. })));
    let nowhere = dir.path().join("nowhere");
    assert!(matches!(run(&nowhere), Err(ConformanceError::Unreadable { .. })));
    fs::write(dir.path().join("stop_check.jsonl"), "{\n").unwrap();
    let error = run(dir.path()).unwrap_err().to_string();
    assert!(error.contains("stop_check.jsonl, line 1: "), "{error}");
}
