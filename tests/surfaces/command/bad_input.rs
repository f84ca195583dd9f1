//! Bad input ends with one line that says what is wrong, and with the documented code.

use ennead::{Endpoint, Ennead, Options, SessionOptions};

use super::{CommandDirs, Simulation};

/// One line on standard error that holds `what`, nothing on standard output.
#[track_caller]
fn check(place: &CommandDirs, args: &[&str], code: i32, what: &str) {
    let ended = place.run(args);
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{args:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    assert!(ended.stderr.starts_with("ennead: "), "{args:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(what), "{args:?}: {}", ended.stderr);
}

// REQ: SUR-2
#[test]
fn each_kind_of_bad_input_has_its_line_and_code_2() {
    let place = CommandDirs::new();
    place.file("bad.json", "{\"model\": ");
    place.file("list.json", "[]");
    place.file("bad.toml", "rule = 3");
    place.file("typo.toml", "[[rule]]\nname = \"a\"\nreplies = []\n");
    place.file("plain", "no directory");
    for (args, what) in [
        (&["--frob"][..], "--frob"),
        (&["demoo"], "no sub-command `demoo`"),
        (&[], "see `ennead --help`"),
        (&["-p"], "there is no prompt"),
        (&["-p", "a", "b"], "a second prompt"),
        (&["-p", "a", "--output-format", "xml"], "xml"),
        (&["-p", "a", "--max-turns", "0"], "--max-turns"),
        (&["-p", "a", "--permission-mode", "nice"], "no permission mode `nice`"),
        (&["-p", "a", "--allowedTools", "Bash("], "Bash("),
        (&["-p", "a", "--session-id", "not-a-uuid"], "must be a UUID"),
        (&["-p", "a", "--settings", "nowhere.json"], "cannot read the settings nowhere.json"),
        (&["-p", "a", "--settings", "bad.json"], "bad.json are not JSON"),
        (&["-p", "a", "--settings", "list.json"], "not a JSON object"),
        (&["-p", "a", "--settings", "{bad"], "not JSON"),
        (&["-p", "a", "--settings", "null"], "the settings of --settings are not a JSON object"),
        (&["-p", "a", "--settings", "[{}]"], "the settings of --settings are not a JSON object"),
        (&["-p", "a", "--settings", "7"], "the settings of --settings are not a JSON object"),
        (&["-p", "a", "--mcp-config", "nowhere.json"], "the MCP configuration nowhere.json"),
        (&["-p", "a", "--mcp-config", "list.json"], "not an object with an object `mcpServers`"),
        (&["-p", "a", "--mcp-config", "{bad"], "not JSON"),
        (&["-p", "a", "--transcripts", "plain"], "plain: Not a directory"),
        (&["-p", "a", "--fallback-model", "a,b,c,d"], "at most 3 names"),
        (&["demo", "nowhere"], "cannot survey nowhere"),
        (&["-p", "a", "--add-dir", "nowhere"], "cannot add the directory nowhere"),
        (&["trace", "nowhere.jsonl"], "cannot read nowhere.jsonl"),
        (&["verify", "nowhere.jsonl"], "cannot read nowhere.jsonl"),
        (&["simulate", "--playbook", "nowhere.toml"], "cannot read the playbook nowhere.toml"),
        (&["simulate", "--playbook", "bad.toml"], "playbook bad.toml: line 1"),
        (&["simulate", "--playbook", "typo.toml"], "replies"),
        (&["conformance", "nowhere"], "cannot read nowhere"),
        (&["demo", "--agents", "none"], "none"),
        (&["bench", "--turns", "0"], "--turns"),
    ] {
        check(&place, args, 2, what);
    }
}

// REQ: SUR-2
#[test]
fn a_key_that_is_no_text_is_told() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let place = CommandDirs::new();
    let key = OsStr::from_bytes(b"sk-\xff");
    let ended = place.command(&["-p", "a"]).env("ANTHROPIC_API_KEY", key).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert!(printed.contains("ANTHROPIC_API_KEY has"), "{printed}");
}

// REQ: SUR-2
#[test]
fn settings_that_cannot_be_read_end_the_run_and_malformed_ones_are_told() {
    let place = CommandDirs::new();
    std::fs::create_dir_all(place.work().join(".claude/settings.json")).unwrap();
    let ended = place.run(&["-p", "hello"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot read the settings: "), "{}", ended.stderr);
    std::fs::remove_dir(place.work().join(".claude/settings.json")).unwrap();
    for (text, what) in [
        ("{bad", "settings.json: is not JSON"),
        (r#"{"permissions": {"deny": ["Read("]}}"#, "Read("),
    ] {
        place.file(".claude/settings.json", text);
        let ended = place.run(&["-p", "hello"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let printed: Vec<&str> = ended.stderr.lines().filter(|it| it.contains(what)).collect();
        assert_eq!(printed.len(), 1, "{}", ended.stderr);
    }
}

// REQ: SUR-2
#[test]
fn what_cannot_be_used_of_given_settings_is_told_once() {
    let place = CommandDirs::new();
    place.file("null", r#"{"fallbackModel": 7}"#);
    for given in [r#"{"fallbackModel": 7}"#, "null"] {
        let ended = place.run(&["-p", "hello", "--settings", given]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let n = ended.stderr.matches("`fallbackModel` has the wrong type").count();
        assert_eq!(n, 1, "{}", ended.stderr);
    }
}

// REQ: SUR-2
#[test]
fn a_port_that_is_taken_is_told() {
    let place = CommandDirs::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    check(&place, &["simulate", "--port", &port], 2, "choose another --port");
}

// REQ: SUR-2
#[test]
fn a_server_that_is_not_there_has_code_3() {
    let place = CommandDirs::new();
    // Bound and let go, so that nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let base = format!("http://127.0.0.1:{port}");
    let run = |base: &str| {
        let output = place.command(&["-p", "a"]).env("ANTHROPIC_BASE_URL", base).output();
        super::Ended::from(output.unwrap())
    };
    let ended = run(&base);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("set ANTHROPIC_BASE_URL"), "{}", ended.stderr);
    assert_eq!(run("localhost").code, Some(2));
    assert_eq!(run("ftp://localhost").code, Some(2));
    assert_eq!(run(&format!("{base}/?a=b")).code, Some(2));
    let secret = run("http://user:hunter2@127.0.0.1:1");
    assert_eq!(secret.code, Some(2), "{secret:?}");
    assert!(!secret.stderr.contains("hunter2"), "{}", secret.stderr);
    let mut command = place.command(&["-p", "a"]);
    command.env("ANTHROPIC_BASE_URL", &base).env("ANTHROPIC_API_KEY", "a\nb");
    let ended: super::Ended = command.output().unwrap().into();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ANTHROPIC_API_KEY has a line break"), "{}", ended.stderr);
}

// REQ: SUR-2, MDL-8
#[test]
fn a_provider_that_cannot_be_used_is_told_in_one_line() {
    let place = CommandDirs::new();
    for (provider, base, code, what) in [
        ("nobody", "", 2, "there is no provider `nobody`; set ENNEAD_PROVIDER"),
        ("openai-chat", "", 2, "ENNEAD_PROVIDER=openai-chat needs OPENAI_API_KEY"),
        ("openai-responses", "", 2, "ENNEAD_PROVIDER=openai-responses needs OPENAI_API_KEY"),
        ("openai-chat", "localhost", 2, "OPENAI_BASE_URL `localhost`"),
        ("openai-chat", "http://127.0.0.1:1/v1", 3, "set OPENAI_BASE_URL"),
    ] {
        let mut command = place.command(&["-p", "a", "--model", "m"]);
        command.env("ENNEAD_PROVIDER", provider).env("OPENAI_BASE_URL", base);
        let ended: super::Ended = command.output().unwrap().into();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
    }
}

// REQ: SUR-2
#[test]
fn a_wrong_key_has_code_3_and_says_where_to_look() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let mut command = server.command(&place, &["-p", "a"]);
    let ended: super::Ended = command.env("ANTHROPIC_API_KEY", "wrong").output().unwrap().into();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("check ANTHROPIC_API_KEY"), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("API error: "), "{}", ended.stdout);
}

// REQ: SES-1
#[tokio::test]
async fn a_transcript_that_somebody_writes_has_code_5_and_its_holder_is_named() {
    let place = CommandDirs::new();
    let id = "6f1e9b0a-3c1d-4b7e-9a52-0d8f6c2e4b11";
    let ennead = Ennead::start(Options::default()).await.unwrap();
    let mut options = SessionOptions::new(place.work(), Endpoint::messages("http://x", None));
    options.id = Some(id.into());
    options.transcripts = Some(place.work().join("kept"));
    options.home = Some(place.work());
    let session = ennead.open(options).await.unwrap();
    check(
        &place,
        &["-p", "a", "--session-id", id, "--transcripts", "kept"],
        5,
        &format!("process {}", std::process::id()),
    );
    session.close().await;
    ennead.shutdown().await;
    let ended = place.run(&["-p", "a", "--session-id", id, "--transcripts", "kept"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

// REQ: SUR-2
#[test]
fn the_exit_codes_stand_in_the_help() {
    let ended = CommandDirs::new().run(&["--help"]);
    assert_eq!(ended.code, Some(0));
    for line in ["0    success", "3    the model server", "5    the transcript is locked"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    for flag in ["-V", "--version"] {
        assert_eq!(
            CommandDirs::new().run(&[flag]).stdout,
            CommandDirs::new().run(&["-v"]).stdout,
            "{flag}"
        );
    }
}
