//! `doctor`: what the harness says that it would do.

use serde_json::Value;

use super::CommandDirs;

// REQ: MDL-10
#[test]
fn recovery_table_is_printed_as_the_documentation_has_it() {
    let place = CommandDirs::new();
    let ended = place.run(&["doctor", "--recovery"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let page = include_str!("../../../docs/recovery.md");
    assert!(page.contains(&format!("```text\n{}```", ended.stdout)), "{}", ended.stdout);

    let ended = place.run(&["doctor", "--recovery", "--output-format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let classes: Vec<&str> = rows.iter().filter_map(|it| it["class"].as_str()).collect();
    for class in [
        "rate_limit",
        "overloaded",
        "context_overflow",
        "max_output",
        "auth",
        "invalid_request",
        "network",
        "stream_broken",
        "tool_error",
        "permission_denied",
        "internal",
    ] {
        assert!(classes.contains(&class), "{class}: {}", ended.stdout);
    }
}

// REQ: MDL-10, TOL-10
#[test]
fn doctor_that_is_asked_for_nothing_prints_all_that_it_knows() {
    let place = CommandDirs::new();
    let ended = place.run(&["doctor"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    for part in ["--sandbox", "--recovery"] {
        let part = place.run(&["doctor", part]).stdout;
        assert!(!part.is_empty() && ended.stdout.contains(part.trim_end()), "{}", ended.stdout);
    }
    let ended = place.run(&["doctor", "--output-format", "json"]);
    let parts: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(parts["recovery"].is_array() && parts["sandbox"]["levels"].is_array(), "{parts}");
}
