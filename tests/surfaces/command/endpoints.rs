//! Which model servers the command asks: those of its environment, of the user's settings, and of other clouds.

use std::{
    fs,
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

use super::{CommandDirs, Ended, Simulation, processes::LIMIT};

/// A request as a server has it.
struct Request {
    /// The first line: method, path and version of HTTP.
    line: String,
    authorization: Option<String>,
    body: Value,
}

impl Request {
    /// Reads one, or nothing where the connection is closed.
    fn read(reader: &mut impl std::io::BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|it| *it != 0)?;
        let (mut length, mut authorization) = (0, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|it| *it != 0)?;
            let Some((name, value)) = header.trim().split_once(": ") else { break };
            match name {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => authorization = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Some(Self { line: line.trim().to_owned(), authorization, body })
    }
}

/// A gateway of a cloud: it tells what it is asked, and has a server of the Messages API answer; with none it refuses.
fn gateway(behind: Option<String>) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(request) = Request::read(&mut BufReader::new(&stream)) else { continue };
            let answer = match &behind {
                Some(server) => answer_of(server, &request),
                None => b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    .into(),
            };
            if tell.send(request).is_err() {
                return;
            }
            // Who has gone meanwhile needs no answer.
            let _gone = stream.write_all(&answer);
        }
    });
    (address, received)
}

/// What the server behind a gateway answers, for the model that the path names.
fn answer_of(server: &str, request: &Request) -> Vec<u8> {
    let mut body = request.body.clone();
    let model = request.line.split(['/', ':', ' ']).rev().nth(3).unwrap_or_default();
    (body["model"], body["stream"]) = (model.into(), true.into());
    body.as_object_mut().unwrap().remove("anthropic_version");
    let body = body.to_string();
    let mut behind = TcpStream::connect(server.trim_start_matches("http://")).unwrap();
    let n = body.len();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: right\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {n}\r\nconnection: close\r\n\r\n"
    );
    behind.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = Vec::new();
    behind.read_to_end(&mut answer).unwrap();
    answer
}

fn ended(command: &mut Command) -> Ended {
    command.output().unwrap().into()
}

fn user_settings(place: &CommandDirs, settings: &Value) {
    let path = place.dir.path().join("home/.claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings.to_string()).unwrap();
}

// REQ: MDL-8, TRN-4
#[test]
fn users_settings_name_the_model_server_and_those_of_a_repository_do_not() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let env = json!({"env": {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "right"}});
    let args = ["-p", "hey", "--model", "m"];

    place.file(".claude/settings.json", &env.to_string());
    place.file(".claude/settings.local.json", &env.to_string());
    let of_repository = ended(place.command(&args).arg("--trust"));
    assert!(of_repository.stderr.contains("no real model is asked"), "{of_repository:?}");

    let of_options = ended(place.command(&args).args(["--settings", &env.to_string()]));
    assert_eq!((of_options.code, &*of_options.stdout), (Some(0), "m: hey\n"), "{of_options:?}");

    user_settings(&place, &env);
    let of_user = ended(&mut place.command(&args));
    assert_eq!((of_user.code, &*of_user.stdout), (Some(0), "m: hey\n"), "{of_user:?}");
    assert!(!of_user.stderr.contains("no real model"), "{of_user:?}");
    // A key of the environment is not sent to a server that settings name with a token.
    user_settings(
        &place,
        &json!({"env": {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_AUTH_TOKEN": "wrong"}}),
    );
    let refused = ended(place.command(&args).env("ANTHROPIC_API_KEY", "right"));
    assert_eq!(refused.code, Some(3), "{refused:?}");
    user_settings(&place, &env);
    let shown = ended(&mut place.command(&["config", "--explain"]));
    assert!(shown.stdout.contains("env.ANTHROPIC_API_KEY = (set)"), "{shown:?}");

    let without_user = ended(place.command(&args).args(["--setting-sources", "project"]));
    assert!(without_user.stderr.contains("no real model is asked"), "{without_user:?}");
}

// REQ: MDL-8
#[test]
fn providers_of_a_list_are_turned_to_in_their_order() {
    let place = CommandDirs::new();
    let full = Simulation::playing(&place, "[[rule]]\nname = \"gone\"\nfault = { status = 529 }\n");
    let server = Simulation::start(&place);
    let args = ["-p", "hey", "--model", "m", "--output-format", "json"];
    let mut command = place.command(&args);
    command.env("ENNEAD_PROVIDER", "anthropic,openai-chat");
    command.env("ANTHROPIC_BASE_URL", &full.address);
    command.env("OPENAI_BASE_URL", format!("{}/v1", server.address)).env("OPENAI_API_KEY", "right");
    let chain = ended(&mut command);
    assert_eq!(chain.code, Some(0), "{chain:?}");
    let result: Value = serde_json::from_str(&chain.stdout).unwrap();
    assert_eq!(result["result"], "m: hey", "{result}");
    assert_eq!(result["fallback"]["provider"], "openai-chat", "{result}");

    // Nor is one that is away a reason not to begin.
    command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1").env("ANTHROPIC_API_KEY", "any");
    command.args(["--settings", r#"{"ennead":{"maxRetries":0}}"#]);
    let away = ended(&mut command);
    let result: Value = serde_json::from_str(&away.stdout).unwrap();
    assert_eq!((away.code, &result["result"]), (Some(0), &json!("m: hey")), "{away:?}");

    // One of a list that has no key is no provider that is silently left out.
    let lacking = ended(command.env_remove("OPENAI_BASE_URL").env_remove("OPENAI_API_KEY"));
    assert_eq!(lacking.code, Some(2), "{lacking:?}");
    assert!(lacking.stderr.contains("OPENAI_API_KEY"), "{lacking:?}");
}

// REQ: MDL-8
#[test]
fn vertex_is_asked_in_its_project_for_the_model_of_the_path() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let (address, asked) = gateway(Some(server.address.clone()));
    let mut command = place.command(&["-p", "hey", "--model", "claude-test"]);
    command.env("CLAUDE_CODE_USE_VERTEX", "1").env("ANTHROPIC_VERTEX_BASE_URL", address + "/v1");
    command.env("ANTHROPIC_VERTEX_PROJECT_ID", "p-1").env("CLOUD_ML_REGION", "eu");
    let found = ended(command.env("GOOGLE_OAUTH_ACCESS_TOKEN", "token-of-google"));
    assert_eq!((found.code, &*found.stdout), (Some(0), "claude-test: hey\n"), "{found:?}");
    let request = asked.recv_timeout(LIMIT).unwrap();
    let path =
        "/v1/projects/p-1/locations/eu/publishers/anthropic/models/claude-test:streamRawPredict";
    assert_eq!(request.line, format!("POST {path} HTTP/1.1"));
    assert_eq!(request.authorization.as_deref(), Some("Bearer token-of-google"));
    assert_eq!(request.body["anthropic_version"], "vertex-2023-10-16");
    assert!(request.body["model"].is_null());
}

// REQ: MDL-8
#[test]
fn bedrock_is_asked_for_the_model_of_the_path_and_wants_its_own_names() {
    let place = CommandDirs::new();
    let (address, asked) = gateway(None);
    let model = "us.anthropic.claude-test-v1:0";
    let bedrock = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("ENNEAD_PROVIDER", "bedrock").env("ANTHROPIC_BEDROCK_BASE_URL", &address);
        command.env("AWS_BEARER_TOKEN_BEDROCK", "token-of-aws");
        ended(&mut command)
    };
    let refused = bedrock(&["-p", "hey", "--model", model]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("check AWS_BEARER_TOKEN_BEDROCK"), "{refused:?}");
    let request = asked.recv_timeout(LIMIT).unwrap();
    let line = request.line.replace("%3A", ":");
    assert_eq!(line, format!("POST /model/{model}/invoke-with-response-stream HTTP/1.1"));
    assert_eq!(request.authorization.as_deref(), Some("Bearer token-of-aws"));
    assert_eq!(request.body["anthropic_version"], "bedrock-2023-05-31");

    let unnamed = bedrock(&["-p", "hey"]);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    assert!(unnamed.stderr.contains("no model is named for bedrock"), "{unnamed:?}");
}

// REQ: MDL-8, SUR-3
#[test]
fn betas_of_the_flag_reach_each_provider_of_a_list() {
    let place = CommandDirs::new();
    let full = Simulation::playing(&place, "[[rule]]\nname = \"gone\"\nfault = { status = 529 }\n");
    let (address, asked) = gateway(None);
    let args = ["-p", "hey", "--model", "us.anthropic.claude-test-v1:0", "--betas", "one-1, two-2"];
    let mut command = place.command(&args);
    command.env("ENNEAD_PROVIDER", "anthropic,bedrock").env("ANTHROPIC_BASE_URL", &full.address);
    command.env("ANTHROPIC_BEDROCK_BASE_URL", &address).env("AWS_BEARER_TOKEN_BEDROCK", "any");
    let refused = ended(command.args(["--settings", r#"{"ennead":{"maxRetries":0}}"#]));
    let request = asked.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{refused:?}"));
    assert_eq!(request.body["anthropic_beta"], json!(["one-1", "two-2"]), "{refused:?}");
}
