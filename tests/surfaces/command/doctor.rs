//! `doctor`: what the harness says that it would do.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
    thread,
};

use serde_json::{Value, json};

use super::{CommandDirs, Ended, Simulation};

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

// REQ: CTX-8
#[test]
fn estimates_are_held_against_what_the_server_counts() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args = ["doctor", "--tokens", "claude-sonnet-5"];
    let ended = server.run(&place, &args);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let lines: Vec<Vec<&str>> =
        ended.stdout.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["text", "characters", "counted", "estimated", "error"]);
    assert_eq!(lines.len(), 10, "{}", ended.stdout);

    let as_json = [&args[..], &["--output-format", "json"]].concat();
    let ended = server.run(&place, &as_json);
    let counts: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    // The simulated model counts four characters of a request as a token, and what is around a text is taken off.
    let counted = |text: &str| {
        let message = json!({"role": "user", "content": text});
        let body = json!({"model": "claude-sonnet-5", "messages": [message]});
        body.to_string().chars().count() as u64 / 4
    };
    let english = include_str!("../../../runtime/src/tokens/corpus/english.txt");
    let expected = counted(english) - (counted("x") - 1);
    assert_eq!(counts[0]["counted"], expected);
    assert_eq!((&counts[0]["chars"], &counts[0]["estimated"]), (&json!(751), &json!(174)));
    let error = (174 - expected as i64) * 100 / expected as i64;
    assert_eq!(counts[0]["error_percent"], error);
}

// REQ: CTX-8
#[test]
fn server_that_does_not_count_is_named_with_the_reason() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let ask = |change: &dyn Fn(&mut Command)| -> Ended {
        let mut command = server.command(&place, &["doctor", "--tokens", "m"]);
        change(&mut command);
        command.output().unwrap().into()
    };
    let nobody = ask(&|it| {
        it.env_remove("ANTHROPIC_BASE_URL").env_remove("ANTHROPIC_API_KEY");
    });
    let other = ask(&|it| {
        it.env("ENNEAD_PROVIDER", "openai-chat").env("OPENAI_BASE_URL", &server.address);
        it.env("OPENAI_API_KEY", "right");
    });
    let wrong_key = ask(&|it| {
        it.env("ANTHROPIC_API_KEY", "wrong");
    });
    // Takes connections, and its answer is no count: a page, or one without an end.
    let answering = |body: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _read = stream.read(&mut [0; 4096]);
            let _written = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            while stream.write_all(body).is_ok() && body.len() == 4096 {}
        });
        ask(&|it| {
            it.env("ANTHROPIC_BASE_URL", &address);
        })
    };
    let page = answering(b"<html>");
    let endless = answering(&[b'['; 4096]);
    for (ended, code, why) in [
        (nobody, 2, "there is no server that counts"),
        (other, 2, "its format has no endpoint for that"),
        (wrong_key, 3, "the server refused to count tokens (401): "),
        (page, 3, "holds no count of tokens: <html>"),
        (endless, 3, "holds no count of tokens: [[["),
    ] {
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{why}: {ended:?}");
        assert!(ended.stderr.contains(why) && ended.stderr.len() < 500, "{why}: {ended:?}");
    }
}
