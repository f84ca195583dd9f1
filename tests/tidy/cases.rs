//! The test data is all there: a case that went missing would otherwise pass.

use super::{names, read};

/// Names `s01_…` to the last number, each once with every ending.
#[track_caller]
fn check(dir: &str, n_cases: usize, endings: [&str; 2]) {
    let names = names(dir);
    for ending in endings {
        let numbers: Vec<&str> = names
            .iter()
            .filter(|it| it.split_once('.').is_some_and(|(_, end)| end == ending))
            .map(|it| &it[..3])
            .collect();
        let expected: Vec<String> = (1..=n_cases).map(|n| format!("s{n:02}")).collect();
        assert_eq!(numbers, expected, "{dir}: {ending}");
    }
    assert_eq!(names.len(), n_cases * endings.len(), "{dir}");
}

#[test]
fn the_streams_are_there() {
    check("tests/cases/sse_streams", 36, ["sse", "expected.json"]);
}

#[test]
fn the_transcripts_are_there() {
    check("tests/cases/transcripts", 34, ["jsonl", "expected.json"]);
}

#[test]
fn the_tables_are_there_and_every_line_is_json() {
    for name in ["bash_classify", "bash_permissions", "path_permissions", "shapers", "stop_check"] {
        let text = read(format!("tests/cases/{name}.jsonl"));
        let mut n_cases = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
            n_cases += 1;
        }
        assert!(10 < n_cases, "{name}: {n_cases}");
    }
}
