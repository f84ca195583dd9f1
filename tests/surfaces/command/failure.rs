//! What failed is told, once, where somebody reads it: no key, no model, retries, a failed run.

use std::{fs::File, process::Command};

use serde_json::Value;

use super::{CommandDirs, Ended, Simulation};

/// Overloads that pass, and refusals with words that nobody should see twice, or obey.
const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "overloaded twice"
when.prompt.regex = "^busy"
faults = [{ status = 529, message = "try later" }, { status = 529, message = "try later" }]
reply = [{ text = "here" }]

[[rule]]
name = "refuses"
when.prompt.regex = "^refused"
fault = { status = 400, message = "no \u001b[2J\u001b]0;owned\u0007such\r\nthing\u009b1m" }

[[rule]]
name = "echo"
reply = [{ text = "{{ model }}: {{ prompt }}" }]
"#;

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

// REQ: MDL-11, SUR-2
#[test]
fn result_that_no_real_model_gave_says_so_in_json_and_costs_nothing_that_is_known() {
    let place = CommandDirs::new();
    let args = ["-p", "17 + 4", "--output-format", "json", "--model", "haiku"];
    let simulated = place.run(&args);
    assert_eq!(simulated.code, Some(0), "{simulated:?}");
    let result = json(&simulated);
    assert_eq!((&result["simulated"], &result["total_cost_usd"]), (&true.into(), &Value::Null));
    let models: Vec<&Value> = result["modelUsage"].as_object().unwrap().values().collect();
    assert!(!models.is_empty() && models.iter().all(|it| it["costUSD"].is_null()), "{result}");
    assert!(simulated.stderr.contains("no real model is asked"), "{}", simulated.stderr);

    let server = Simulation::playing(&place, PLAYBOOK);
    let real = server.run(&place, &args);
    let result = json(&real);
    assert!(result["simulated"].is_null() && result["total_cost_usd"].is_number(), "{result}");
    assert_eq!(real.stderr, "");
}

// REQ: SUR-2
#[test]
fn key_of_another_provider_alone_is_named_with_what_uses_it() {
    let place = CommandDirs::new();
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL"] {
        let ended: Ended = place.command(&["-p", "17 + 4"]).env(name, "x").output().unwrap().into();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let hint = format!("{name} is set, but ENNEAD_PROVIDER is not: set ENNEAD_PROVIDER=openai");
        assert!(ended.stderr.contains(&hint), "{}", ended.stderr);
    }
    let ended = place.run(&["-p", "17 + 4"]);
    assert!(!ended.stderr.contains("OPENAI"), "{}", ended.stderr);
}

// REQ: SUR-2
#[test]
fn run_that_cannot_begin_says_why_in_json_too_and_an_address_is_no_path() {
    let place = CommandDirs::new();
    let run = |name: &str, value: &str, args: &[&str]| -> Ended {
        let mut command = place.command(&[&["-p", "a"], args].concat());
        command.env(name, value).output().unwrap().into()
    };
    let away = run("ANTHROPIC_BASE_URL", "http://127.0.0.1:1", &["--output-format", "json"]);
    let result = json(&away);
    assert_eq!((away.code, &result["is_error"]), (Some(3), &true.into()), "{away:?}");
    assert!(result["errors"][0].as_str().unwrap().contains("cannot connect"), "{result}");
    for path in ["v1/messages", "v1/messages/", "v1/chat/completions", "responses"] {
        let ended = run("ANTHROPIC_BASE_URL", &format!("http://127.0.0.1:1/{path}"), &[]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("names what is asked there"), "{ended:?}");
    }
    // Who names the provider wants an answer of it.
    let named = run("ENNEAD_PROVIDER", "anthropic", &[]);
    assert_eq!((named.code, &*named.stdout), (Some(2), ""), "{named:?}");
    assert!(named.stderr.contains("ANTHROPIC_API_KEY"), "{named:?}");
}

// REQ: SUR-2, MDL-11
#[test]
fn denial_is_told_on_standard_error_where_there_is_no_terminal() {
    let place = CommandDirs::new();
    let playbook = r#"
[[rule]]
name = "call"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "make x" } }]

[[rule]]
name = "end"
reply = [{ text = "fin" }]
"#;
    let ended = Simulation::playing(&place, playbook).run(&place, &["-p", "go"]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "fin"), "{ended:?}");
    let expected = "a call of Bash was denied";
    assert!(
        ended.stderr.contains(expected) && ended.stderr.contains("'Bash(make x)'"),
        "{ended:?}"
    );
}

// REQ: SUR-2, MDL-8
#[test]
fn provider_whose_models_have_names_of_their_own_needs_one() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let run = |provider: &str, base: &str, args: &[&str]| -> Ended {
        let mut command = place.command(&[&["-p", "a"], args].concat());
        command.env("ENNEAD_PROVIDER", provider).env("OPENAI_BASE_URL", base);
        command.env("OPENAI_API_KEY", "right").output().unwrap().into()
    };
    for provider in ["openai-chat", "openai-responses"] {
        // Before anybody is asked: nothing listens there.
        let ended = run(provider, "http://127.0.0.1:1", &[]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("--model"), "{}", ended.stderr);
        let ended = run(provider, &server.address, &["--settings", r#"{"model": "m-2"}"#]);
        assert_eq!(ended.stdout, "m-2: a\n", "{ended:?}");
    }
    place.file(".claude/settings.json", r#"{"model": "m-3"}"#);
    assert_eq!(run("openai-chat", &server.address, &[]).stdout, "m-3: a\n");
}

// REQ: MDL-6, SUR-2
#[test]
fn each_retry_is_told_once_with_its_number_its_cause_and_its_wait() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let ended = server.run(&place, &["-p", "busy", "--model", "m"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "here\n"), "{ended:?}");
    let expected: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(expected.len(), 2, "{expected:#?}");
    for (n, line) in (1..).zip(expected) {
        for words in ["HTTP 529", "try later", &format!("retry {n} of 10 in ")] {
            assert_eq!(line.matches(words).count(), 1, "`{words}` in {line}");
        }
        assert!(line.ends_with(" s"), "{line}");
    }
}

// REQ: SUR-2
#[test]
fn failure_is_read_once_where_both_streams_go_to_one_place() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let run = |command: &mut Command| {
        let path = place.work().join("both");
        let file = File::create(&path).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let status = command.status().unwrap();
        (status.code(), std::fs::read_to_string(path).unwrap())
    };
    let mut command = server.command(&place, &["-p", "loop"]);
    let (code, both) = run(command.env("ANTHROPIC_API_KEY", "wrong"));
    assert_eq!((code, both.lines().count()), (Some(3), 1), "{both}");
    assert!(both.contains("check ANTHROPIC_API_KEY"), "{both}");
    let (code, both) = run(&mut server.command(&place, &["-p", "refused"]));
    assert_eq!((code, both.matches("such").count()), (Some(1), 1), "{both}");
    // Apart, each has its reader.
    let ended = server.run(&place, &["-p", "refused"]);
    assert_eq!(
        (ended.stdout.matches("such").count(), ended.stderr.matches("such").count()),
        (1, 1)
    );
}

// REQ: SUR-2, OUT-2
#[test]
fn words_of_a_server_are_shown_without_control_sequences() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    for format in ["text", "json"] {
        let ended = server.run(&place, &["-p", "refused", "--output-format", format]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        for text in [&ended.stdout, &ended.stderr] {
            let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r');
            assert!(text.contains("no ") && !text.contains(is_control), "{text:?}");
        }
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let file = place.transcript_of("refused");
    let traced = place.run(&["trace", &file]);
    assert_eq!(traced.code, Some(0), "{traced:?}");
    assert!(traced.stdout.contains("no such"), "{}", traced.stdout);
    assert!(!traced.stdout.contains(|c: char| c.is_control() && c != '\n'), "{}", traced.stdout);
}

impl CommandDirs {
    /// The first transcript that holds these words.
    fn transcript_of(&self, words: &str) -> String {
        let entries = std::fs::read_dir(self.work().join(".transcripts")).unwrap();
        let mut files = entries.map(|it| it.unwrap().path());
        let file = files.find(|it| {
            it.extension().is_some_and(|it| it == "jsonl")
                && std::fs::read_to_string(it).unwrap().contains(words)
        });
        file.unwrap().to_str().unwrap().to_owned()
    }
}
