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
fn the_wire_cases_are_there() {
    for (dir, n_streams, n_whole) in [("openai_chat", 31, 7), ("openai_responses", 25, 5)] {
        let names = names(format!("tests/cases/wire/{dir}"));
        let count = |ending: &str| names.iter().filter(|it| it.ends_with(ending)).count();
        let n_all = n_streams + n_whole;
        assert_eq!((count(".sse"), count(".expected.json")), (n_streams, n_all), "{dir}");
        assert_eq!(names.len(), 2 * n_all, "{dir}");
    }
    for (dir, ending, n_streams, n_whole) in
        [("anthropic", ".sse", 10, 4), ("vertex", ".sse", 3, 1), ("bedrock", ".bin", 13, 1)]
    {
        let names = names(format!("tests/cases/wire/{dir}"));
        let count = |ending: &str| names.iter().filter(|it| it.ends_with(ending)).count();
        let n_all = n_streams + n_whole;
        assert_eq!((count(ending), count(".expected.json")), (n_streams, n_all), "{dir}");
        assert_eq!(names.len(), 2 * n_all, "{dir}");
    }
}

#[test]
fn the_transcripts_are_there() {
    check("tests/cases/transcripts", 34, ["jsonl", "expected.json"]);
}

#[test]
fn the_tables_are_there_and_every_line_is_json() {
    let tables = [
        ("bash_classify", 144),
        ("bash_permissions", 422),
        ("path_permissions", 114),
        ("shapers", 10),
        ("stop_check", 10),
    ];
    for (name, least) in tables {
        let text = read(format!("tests/cases/{name}.jsonl"));
        let mut n_cases = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
            n_cases += 1;
        }
        assert!(least <= n_cases, "{name}: {n_cases}");
    }
}
