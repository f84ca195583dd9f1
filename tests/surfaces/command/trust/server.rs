//! A model server on a plain socket that keeps every byte that came.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::super::{Ended, TestDirs};

/// The key that it is asked with.
pub(super) const KEY: &str = "sk-test-0123456789abcdef0123456789";

/// What it answers with: status and body, by the number of the request, from 0.
type Script = dyn Fn(usize) -> (u16, Value) + Send + Sync;

/// See the module. Its thread ends with the process.
pub(super) struct Bytes {
    address: String,
    came: Arc<Mutex<Vec<String>>>,
}

impl Bytes {
    pub(super) fn start(script: impl Fn(usize) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (came, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(script));
        let all = Arc::clone(&came);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, script) = (Arc::clone(&all), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &all, &*script));
            }
        });
        Self { address, came }
    }

    /// One that answers `done`.
    pub(super) fn done() -> Self {
        Self::start(|_| (200, says("done")))
    }

    /// One that has a command run first.
    pub(super) fn running(command: &str) -> Self {
        let input = json!({ "command": command });
        Self::start(move |n| (200, if n == 0 { calls("Bash", &input) } else { says("done") }))
    }

    /// A command that asks it.
    pub(super) fn command(&self, place: &TestDirs, args: &[&str]) -> Command {
        let mut command = place.command(&[&["--model", "m", "-p", "hello"], args].concat());
        command.env("ANTHROPIC_BASE_URL", &self.address).env("ANTHROPIC_API_KEY", KEY);
        command
    }

    pub(super) fn run(&self, place: &TestDirs, args: &[&str]) -> Ended {
        self.command(place, args).output().unwrap().into()
    }

    /// The requests, heads included.
    pub(super) fn requests(&self) -> Vec<String> {
        self.came.lock().unwrap().clone()
    }
}

fn says(text: &str) -> Value {
    message(&json!({"type": "text", "text": text}), "end_turn")
}

pub(super) fn calls(tool: &str, input: &Value) -> Value {
    message(&json!({"type": "tool_use", "id": "t", "name": tool, "input": input}), "tool_use")
}

fn message(block: &Value, stop: &str) -> Value {
    json!({
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
        "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

fn serve(mut stream: TcpStream, all: &Mutex<Vec<String>>, script: &Script) {
    while let Some(request) = read(&mut stream) {
        let n = {
            let mut all = all.lock().unwrap();
            all.push(request);
            all.len() - 1
        };
        let (status, body) = script(n);
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 {status} said\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

pub(in super::super) fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|it| it.strip_prefix("content-length:"))?;
            if length.trim().parse::<usize>().ok()? <= body.len() {
                return Some(text);
            }
        }
        let mut buffer = [0; 65536];
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}
