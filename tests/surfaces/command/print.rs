//! `-p`: text, JSON, what is piped in, limits and rules.

use serde_json::Value;

use super::{CommandDirs, Ended, Simulation, text, with_input};

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    serde_json::from_str(&ended.stdout).unwrap()
}

// REQ: SUR-2
#[test]
fn the_answer_is_printed_and_the_transcript_is_in_order() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let ended = server.run(&place, &["-p", "what is it", "--model", "m-1"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "m-1: what is it\n"), "{ended:?}");
    assert_eq!(ended.stderr, "");
    let verified = place.run(&["verify", text(&place.transcript(".transcripts"))]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("1 runs, 1 turns"), "{}", verified.stdout);
}

// REQ: SUR-2, INP-1
#[test]
fn prompt_with_the_name_of_a_command_or_a_skill_is_its_text() {
    let place = CommandDirs::new();
    place.file("../home/.claude/commands/loud.md", "Say $0 and $1!");
    place.file(
        "../home/.claude/skills/kind/SKILL.md",
        "---\ndescription: d\n---\nBe kind to $ARGUMENTS.",
    );
    let server = Simulation::start(&place);
    let said = |prompt: &str| server.run(&place, &["-p", prompt, "--model", "m"]).stdout;
    assert_eq!(said("/loud hello 'old world'"), "m: Say hello and old world!\n");
    let kind = said("/kind all cats");
    assert!(kind.ends_with("Be kind to all cats.\n") && kind.contains("skills/kind"), "{kind}");
    for other in ["/none of them", " /loud hello", "say /loud"] {
        assert_eq!(said(other), format!("m: {}\n", other.trim()));
    }
    let piped =
        with_input(server.command(&place, &["-p", "/loud", "--model", "m"]), b"from a pipe");
    assert!(piped.stdout.starts_with("m: Say $0 and $1!\n"), "{piped:?}");
    assert!(piped.stdout.contains("from a pipe"), "{piped:?}");
}

// REQ: MDL-6, MDL-8
#[test]
fn model_that_is_overloaded_is_replaced_by_the_next_one_and_that_is_told() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args = ["-p", "hey", "--model", "full", "--fallback-model", "full-2,m-2"];
    let mut command = server.command(&place, &[&args[..], &["--output-format", "json"]].concat());
    // The third overload in a row would come after two waits of half a second and one.
    let ended: Ended = command.env("CLAUDE_CODE_MAX_RETRIES", "0").output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = json(&ended);
    assert_eq!(result["result"], "full-2: hey");
    assert_eq!(result["fallback"]["model"], "full-2");
    assert!(ended.stderr.contains("model_fallback to full-2"), "{}", ended.stderr);
    let ended = place.run(&["-p", "hey", "--fallback-model", "a,,b"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

// REQ: SUR-2
#[test]
fn json_has_the_fields_of_a_result() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let id = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90";
    let ended = server
        .run(&place, &["-p", "--output-format", "json", "--session-id", id, "--model", "m", "hey"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = json(&ended);
    for (field, expected) in [
        ("type", "result".into()),
        ("subtype", "success".into()),
        ("is_error", false.into()),
        ("result", "m: hey".into()),
        ("session_id", id.into()),
        ("num_turns", 1.into()),
        ("stop_reason", "end_turn".into()),
        ("permission_denials", Value::Array(Vec::new())),
    ] {
        assert_eq!(result[field], expected, "{field} of {result}");
    }
    let usage = &result["usage"];
    assert!(0 < usage["output_tokens"].as_u64().unwrap(), "{usage}");
    assert_eq!(result["modelUsage"]["m"]["outputTokens"], usage["output_tokens"]);
    assert!(result["duration_ms"].is_u64() && result["duration_api_ms"].is_u64());
    assert!(result["total_cost_usd"].is_null(), "no price is made up: {result}");
}

// REQ: SUR-2, CTX-4
#[test]
fn json_says_what_a_model_with_a_known_price_cost() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args = ["-p", "--output-format", "json", "--model", "haiku", "hey"];
    let result = json(&server.run(&place, &args));
    assert_eq!(result["result"], "claude-haiku-4-5: hey");
    let used = &result["modelUsage"]["claude-haiku-4-5"];
    assert_eq!(
        (&used["contextWindow"], &used["maxOutputTokens"]),
        (&200_000.into(), &64_000.into())
    );
    let tokens = |name: &str| used[name].as_u64().unwrap();
    let micro_usd = tokens("inputTokens") + 5 * tokens("outputTokens");
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert_eq!(format!("{cost:.9}"), format!("{:.9}", micro_usd as f64 / 1e6));
    assert_eq!(used["costUSD"], result["total_cost_usd"]);
}

// REQ: OUT-1, OUT-2, SUR-2
#[test]
fn no_output_has_reasoning_and_heartbeats_and_the_transcript_has_what_was_said() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let prompt = "<think>secret</think>it is `<think>`";
    let ended = server.run(&place, &["-p", prompt, "--model", "m"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "m: it is `<think>`\n"), "{ended:?}");
    let transcript = std::fs::read_to_string(place.transcript(".transcripts")).unwrap();
    assert!(transcript.contains(&format!("m: {prompt}")), "{transcript}");

    let ended = server.run(&place, &["-p", prompt, "--model", "m", "--output-format", "json"]);
    assert_eq!(json(&ended)["result"], "m: it is `<think>`");

    let tokens = r#"{"ennead": {"output": {"heartbeatTokens": ["m:", "PING"]}}}"#;
    let ended = server.run(&place, &["-p", "PING", "--model", "m", "--settings", tokens]);
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), "", ""), "{ended:?}");
    let args = ["-p", "PING", "--model", "m", "--settings", tokens, "--output-format", "json"];
    let result = json(&server.run(&place, &args));
    assert_eq!((&result["result"], &result["is_error"]), (&"".into(), &false.into()));
}

// REQ: HKS-5, SUR-2
#[test]
fn what_a_hook_says_to_the_user_is_on_standard_error_and_in_its_record() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let says = r#"echo '{"systemMessage": "mind the gap"}'"#;
    let hooks = serde_json::json!({"hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": says},
    ]}]}});
    let args = ["-p", "hey", "--model", "m", "--settings", &hooks.to_string()];
    let ended = server.run(&place, &args);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "m: hey\n"), "{ended:?}");
    assert_eq!(ended.stderr, "ennead: a Stop hook says: mind the gap\n");
    let file = place.transcript(".transcripts");
    let trace = place.run(&["trace", text(&file)]);
    assert!(trace.stdout.contains("says: mind the gap"), "{}", trace.stdout);
    assert_eq!(place.run(&["verify", text(&file)]).code, Some(0));
}

// REQ: SUR-2, CTX-6
#[test]
fn what_is_piped_in_joins_the_prompt_up_to_ten_megabytes() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args = ["-p", "sum", "--model", "m"];
    let ended = with_input(server.command(&place, &args), b"1 and 2");
    let framed = "<untrusted origin=\"standard input\">\n1 and 2\n</untrusted>";
    assert_eq!(ended.stdout, format!("m: sum\n\n{framed}\n"), "{ended:?}");
    let ended = with_input(server.command(&place, &args), &vec![b'x'; 11 << 20]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("longer than 10 MB"), "{}", ended.stderr);
}

// REQ: SUR-2, TRN-7
#[test]
fn the_limit_on_turns_is_an_error_of_its_own() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args = ["-p", "loop", "--max-turns", "1", "--output-format", "json"];
    let ended = server.run(&place, &args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let result = json(&ended);
    assert_eq!(result["subtype"], "error_max_turns");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["num_turns"], 1);
    assert!(result["errors"][0].as_str().unwrap().contains("--max-turns"), "{result}");
}

// REQ: SUR-2
#[test]
fn a_failure_of_the_server_is_a_success_that_is_an_error() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let mut command = server.command(&place, &["-p", "a", "--output-format", "json"]);
    let ended: Ended = command.env("ANTHROPIC_API_KEY", "wrong").output().unwrap().into();
    assert_eq!(ended.code, Some(3));
    let result = json(&ended);
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["api_error_status"], 401);
    assert!(result["result"].as_str().unwrap().starts_with("API error: "), "{result}");
}

// REQ: SUR-2
#[test]
fn a_token_is_sent_as_bearer() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let mut command = server.command(&place, &["-p", "a", "--model", "m"]);
    command.env_remove("ANTHROPIC_API_KEY").env("ANTHROPIC_AUTH_TOKEN", "right");
    let ended: Ended = command.output().unwrap().into();
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "m: a\n"), "{ended:?}");
}

// REQ: SUR-2, MDL-8
#[test]
fn servers_of_the_other_formats_are_reached() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    for provider in ["openai-chat", "openai-responses"] {
        // With the version in the address, as is the custom, and without.
        for base in [server.address.clone(), format!("{}/v1", server.address)] {
            let mut command = place.command(&["-p", "a", "--model", "m"]);
            command.env("ENNEAD_PROVIDER", provider).env("OPENAI_BASE_URL", base);
            let ended: Ended = command.env("OPENAI_API_KEY", "right").output().unwrap().into();
            assert_eq!((ended.code, &*ended.stdout), (Some(0), "m: a\n"), "{ended:?}");
            let ended: Ended = command.env("OPENAI_API_KEY", "wrong").output().unwrap().into();
            assert_eq!(ended.code, Some(3), "{ended:?}");
            assert!(ended.stderr.contains("check OPENAI_API_KEY"), "{}", ended.stderr);
        }
    }
}

// REQ: SUR-2, PRM-5
#[test]
fn a_call_is_denied_without_a_rule_and_runs_with_one() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let ended = server.run(&place, &["-p", "write", "--output-format", "json"]);
    let denials = json(&ended)["permission_denials"].clone();
    assert_eq!(denials[0]["tool_name"], "Write", "{ended:?}");
    assert_eq!(denials[0]["tool_input"]["file_path"], "new.txt");
    assert!(!place.work().join("new.txt").exists());
    for (args, exists) in [
        (&["--allowedTools", "Edit,Write", "--disallowed-tools", "Write"][..], false),
        (&["--settings", r#"{"permissions": {"allow": ["Write"]}}"#], true),
        (&["--allowed-tools", "Bash(git log *),Edit Write"], true),
        (&["--permission-mode", "acceptEdits"], true),
    ] {
        let ended = server.run(&place, &[&["-p", "write"], args].concat());
        let file = place.work().join("new.txt");
        assert_eq!(file.exists(), exists, "{args:?}: {ended:?}");
        if exists {
            std::fs::remove_file(file).unwrap();
        }
    }
}

// REQ: SUR-2
#[test]
fn system_prompts_stand_one_behind_the_other() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let args =
        ["-p", "system", "--system-prompt", "Be a pirate.", "--append-system-prompt", "Arr."];
    let ended = server.run(&place, &args);
    let places = (ended.stdout.find("Be a pirate."), ended.stdout.find("Arr."));
    assert!(matches!(places, (Some(a), Some(b)) if a < b), "{ended:?}");
}

// REQ: SUR-2, SES-1
#[test]
fn a_session_goes_on_under_its_name() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let id = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a91";
    for prompt in ["first", "second"] {
        let args = ["-p", prompt, "--session-id", id, "--transcripts", "kept"];
        assert_eq!(server.run(&place, &args).code, Some(0));
    }
    let verified = place.run(&["verify", &format!("kept/{id}.jsonl")]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("2 runs, 2 turns"), "{}", verified.stdout);
}

// REQ: MDL-11
#[test]
fn without_a_key_the_simulated_model_answers_and_is_announced() {
    let place = CommandDirs::new();
    let ended = place.run(&["-p", "17 + 4"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("21"), "{}", ended.stdout);
    assert!(ended.stderr.contains("embedded simulated model"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}
