//! The server as a process: signals, restarts, tokens on the command line, and TLS.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{HttpReply, Stream, ask};
use crate::support::{
    command::{CommandDirs, Simulation, first_line},
    until::until,
};

const PLAYBOOK: &str = r#"
[[rule]]
name = "goes on"
when.prompt.regex = "had to stop"
reply = [{ text = "went on" }]

[[rule]]
name = "turns without end"
when.prompt = "turn"
pace.head_ms = 2000
reply = [{ tool = "Glob", input = { pattern = "*" } }]

[[rule]]
name = "an answer that never comes"
when.prompt = "stall"
fault = { action = "stall", before_head = true }

[[rule]]
name = "writes"
when.prompt.regex = "^write"
when.answers = 0
reply = [{ tool = "Write", input = { file_path = "new.txt", content = "hello" } }]

[[rule]]
name = "waits"
when.prompt.regex = "^wait"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "echo x >> begun; sleep 1000" } }]

[[rule]]
name = "looks"
when.prompt.regex = "^look"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "sh ./look.sh" } }]

[[rule]]
name = "shows what it saw"
when.prompt.regex = "^look"
reply = [{ text = "{{ new_results|join }}" }]

[[rule]]
name = "says"
reply = [{ text = "said {{ prompt }}" }]
"#;

/// A model server and a directory, for one server after another.
pub(super) struct ServeDirs {
    dirs: CommandDirs,
    model: Simulation,
}

impl ServeDirs {
    pub(super) fn new() -> Self {
        let dirs = CommandDirs::new();
        let model = Simulation::playing(&dirs, PLAYBOOK);
        Self { dirs, model }
    }

    /// A path in the working directory.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dirs.work().join(path)
    }

    /// The directory of the tenant.
    pub(super) fn tenant(&self) -> PathBuf {
        self.path("ennead-server").join("work").join("acme")
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        self.model.command(&self.dirs, args)
    }

    /// A token of a tenant.
    pub(super) fn token(&self, name: &str) -> String {
        let made = self.command(&["serve", "token", "add", name, "--tenant", "acme"]).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    pub(super) fn serve(&self) -> Process {
        self.serve_with(&["--drain", "8", "--notice", "0"])
    }

    /// Starts a server that may open few files unless it asks for more.
    pub(super) fn serve_with(&self, more: &[&str]) -> Process {
        let script = r#"ulimit -S -n 256 && exec "$0" serve --listen 127.0.0.1:0 "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_ennead")]).args(more);
        let mut command = self.model.reached_by(self.dirs.in_place(command));
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let line = first_line(&mut child);
        let address = line.strip_prefix("http://").unwrap_or_else(|| panic!("{line}")).to_owned();
        Process { child, address }
    }
}

/// A server that runs.
pub(super) struct Process {
    child: Child,
    pub(super) address: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that failed leaves nobody behind. One that has ended is not there any more.
        drop((self.child.kill(), self.child.wait()));
    }
}

impl Process {
    pub(super) async fn ask(&self, token: &str, line: &str, body: Option<Value>) -> HttpReply {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", &*bearer), ("Prefer", "wait=60")];
        ask(&self.address, line, &headers, body.as_ref()).await
    }

    pub(super) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process; its exit code.
    pub(super) async fn end(mut self) -> Option<i32> {
        let mut code = None;
        until("it ends", async || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        })
        .await;
        code.and_then(|it| it.code())
    }
}

// REQ: RUN-9, SUR-5
#[tokio::test]
async fn server_that_is_told_to_end_settles_its_runs_and_the_next_one_takes_everything_up() {
    let place = ServeDirs::new();
    let token = place.token("ci");
    let server = place.serve();
    let bearer = format!("Bearer {token}");
    let session = async |server: &Process, directory: &str| {
        let body = json!({ "directory": directory });
        let made = server.ask(&token, "POST /v1/sessions", Some(body)).await.ok(201);
        format!("/v1/sessions/{}", made["id"].as_str().unwrap())
    };
    // One that asks for leave, and one whose turn does not end by itself: its call was allowed.
    let asks = session(&server, "asks").await;
    let hangs = session(&server, "hangs").await;
    let headers = [("Authorization", &*bearer)];
    let body = json!({ "prompt": "write" });
    let mut events =
        Stream::open(&server.address, &format!("GET {asks}/events"), &headers, None).await;
    let line = format!("POST {asks}/runs");
    let asked_run = ask(&server.address, &line, &headers, Some(&body)).await.ok(202);
    let asked = events.until("permission_asked").await;
    let mut events =
        Stream::open(&server.address, &format!("GET {hangs}/events"), &headers, None).await;
    let line = format!("POST {hangs}/runs");
    let body = json!({ "prompt": "wait" });
    let hung_run = ask(&server.address, &line, &headers, Some(&body)).await.ok(202);
    let question = events.until("permission_asked").await;
    let line = format!("POST /v1/approvals/{}", question["key"]["id"].as_str().unwrap());
    let answer = |question: &Value| {
        let key = &question["key"];
        json!({ "allow": true, "digest": key["digest"], "epoch": key["epoch"] })
    };
    assert_eq!(server.ask(&token, &line, Some(answer(&question))).await.status, 204);
    let begun = place.tenant().join("hangs/begun");
    until("the command runs", async || begun.exists()).await;
    let queued = json!({ "prompt": "later" });
    let line = format!("POST {hangs}/runs");
    let queued = ask(&server.address, &line, &headers, Some(&queued)).await.ok(202);

    server.send(Signal::TERM);
    until("it is not ready", async || {
        ask(&server.address, "GET /readyz", &[], None).await.status == 503
    })
    .await;
    let refused = server.ask(&token, &line, Some(json!({ "prompt": "new" }))).await;
    assert_eq!(refused.code(), "draining");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.end().await, Some(0));

    let server = place.serve();
    let open = server.ask(&token, "GET /v1/approvals", None).await;
    let mut open = open.ok(200);
    until("the question is open again", async || {
        // Asked faster than a token may, it is refused for a moment.
        open = server.ask(&token, "GET /v1/approvals", None).await.json();
        open["approvals"].as_array().is_some_and(|it| it.len() == 1)
    })
    .await;
    let question = &open["approvals"][0];
    assert_eq!(question["id"], asked["key"]["id"]);
    let answer = json!({ "allow": true, "digest": question["digest"], "epoch": question["epoch"] });
    let line = format!("POST /v1/approvals/{}", question["id"].as_str().unwrap());
    assert_eq!(server.ask(&token, &line, Some(answer)).await.status, 204);
    let shown =
        |session: &str, run: &Value| format!("GET {session}/runs/{}", run.as_str().unwrap());
    let run = server.ask(&token, &shown(&asks, &asked_run["id"]), None).await.ok(200);
    assert_eq!(run["outcome"]["is_success"], true, "{run}");
    let written = place.tenant().join("asks/new.txt");
    assert_eq!(std::fs::read_to_string(written).unwrap(), "hello");
    let hung = server.ask(&token, &shown(&hangs, &hung_run["id"]), None).await.ok(200);
    assert_eq!(hung["state"], "continued", "{hung}");
    let next = server.ask(&token, &shown(&hangs, &hung["continued_by"]), None).await.ok(200);
    assert_eq!(next["outcome"]["text"], "went on");
    let queued = server.ask(&token, &shown(&hangs, &queued["id"]), None).await.ok(200);
    let text = queued["outcome"]["text"].as_str().unwrap();
    assert!(text.ends_with("later"), "{text}");
    assert!(next["ended_at"].as_u64() <= queued["started_at"].as_u64());
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));
    let transcripts = place.path("ennead-server/state/transcripts/acme");
    for file in std::fs::read_dir(transcripts).unwrap().map(|it| it.unwrap().path()) {
        if file.extension().is_some_and(|it| it == "jsonl") {
            let checked = place.command(&["verify", file.to_str().unwrap()]).output().unwrap();
            assert!(checked.status.success(), "{checked:?}");
        }
    }
}

// REQ: RUN-9
#[tokio::test]
async fn load_balancers_are_told_of_the_end_before_a_run_is_refused() {
    let place = ServeDirs::new();
    let token = place.token("ci");
    let server = place.serve_with(&["--drain", "8", "--notice", "600"]);
    let made = server.ask(&token, "POST /v1/sessions", Some(json!({}))).await.ok(201);
    let line = format!("POST /v1/sessions/{}/runs", made["id"].as_str().unwrap());
    server.send(Signal::TERM);
    until("it is not ready", async || {
        ask(&server.address, "GET /readyz", &[], None).await.status == 503
    })
    .await;
    let run = server.ask(&token, &line, Some(json!({ "prompt": "late" }))).await.ok(200);
    assert_eq!(run["outcome"]["is_success"], true, "{run}");
    // The second signal ends the notice.
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));
}

// REQ: SUR-5, TOL-10
#[tokio::test]
async fn operator_reads_what_commands_reach_unless_settings_say_whether_they_are_confined() {
    for (settings, is_noted) in [("{}", true), (r#"{"sandbox": {"enabled": false}}"#, false)] {
        let place = ServeDirs::new();
        place.token("ci");
        place.dirs.file("../home/.claude/settings.json", settings);
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--notice", "0"]);
        let mut child = command.spawn().unwrap();
        first_line(&mut child);
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(said.contains("Commands of sessions are not confined"), is_noted, "{said}");
    }
}

// REQ: SUR-5
#[tokio::test]
async fn address_that_others_reach_is_refused_without_tls_and_without_a_token() {
    let place = ServeDirs::new();
    let refused = |args: &[&str], why: &str| {
        let ended = place.command(args).output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{text}");
        assert!(text.contains(why), "{text}");
    };
    refused(&["serve", "--listen", "0.0.0.0:0"], "TLS is needed");
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, private) = (place.path("cert.pem"), place.path("key.pem"));
    std::fs::write(&cert, key.cert.pem()).unwrap();
    std::fs::write(&private, key.signing_key.serialize_pem()).unwrap();
    let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", private.to_str().unwrap()];
    refused(&[&["serve", "--listen", "0.0.0.0:0"], &tls[..]].concat(), "there is no token");
    refused(&["serve", "--tls-cert", "none.pem", "--tls-key", "none.pem"], "none.pem");
    // On loopback it speaks TLS with them.
    place.token("ci");
    let args = [&["serve", "--listen", "127.0.0.1:0"], &tls[..]].concat();
    let mut child = place.command(&args).stderr(Stdio::null()).spawn().unwrap();
    let line = first_line(&mut child);
    let address = line.strip_prefix("https://").unwrap_or_else(|| panic!("{line}"));
    let answered = over_tls(address, key.cert.der().clone()).await;
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What `/healthz` answers over TLS.
async fn over_tls(
    address: &str,
    certificate: rustls::pki_types::CertificateDer<'static>,
) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut socket = connector.connect("localhost".try_into().unwrap(), socket).await.unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

// REQ: SUR-5
#[tokio::test]
async fn second_server_in_a_directory_is_refused_and_tokens_are_listed_without_their_secret() {
    let place = ServeDirs::new();
    let token = place.token("ci");
    let server = place.serve();
    let second = place.command(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(5), "{second:?}");
    let listed = place.command(&["serve", "token", "list"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "ci\tacme\tuser\n");
    let removed = place.command(&["serve", "token", "remove", "ci"]).output().unwrap();
    assert!(removed.status.success());
    assert_eq!(server.ask(&token, "GET /v1/sessions", None).await.code(), "unauthorized");
    server.send(Signal::TERM);
    assert_eq!(server.end().await, Some(0));
}

// REQ: SUR-5
#[tokio::test]
async fn demonstration_runs_inside_a_server_that_can_be_asked() {
    let place = ServeDirs::new();
    let work = place.path("project");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("a.txt"), "text").unwrap();
    let mut child =
        place.command(&["demo", "--serve", "project"]).stderr(Stdio::null()).spawn().unwrap();
    let page = first_line(&mut child);
    let (address, token) = page.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
    let server = Process { address: address.to_owned(), child };
    // The survey begins with the first that asks.
    let mut list = json!(null);
    until("the survey begins", async || {
        list = server.ask(token, "GET /v1/sessions", None).await.ok(200);
        list["sessions"].as_array().is_some_and(|it| it.len() == 1)
    })
    .await;
    let session = format!("/v1/sessions/{}", list["sessions"][0]["id"].as_str().unwrap());
    let runs = server.ask(token, &format!("GET {session}/runs"), None).await.ok(200);
    let line = format!("GET {session}/runs/{}", runs["runs"][0]["id"].as_str().unwrap());
    let run = server.ask(token, &line, None).await.ok(200);
    assert_eq!((&run["state"], &run["outcome"]["is_success"]), (&json!("finished"), &json!(true)));
    server.send(Signal::INT);
    assert_eq!(server.end().await, Some(0));
}
