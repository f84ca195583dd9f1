//! `-p` on a terminal: a real one for the command, and a screen that draws what it is sent.

use std::{
    io::{Read, Write},
    process::{Child, Command},
    sync::{Arc, mpsc},
    time::Duration,
};

use pty_process::{Size, blocking};
use serde_json::{Value, json};

use super::{CommandDirs, Simulation, text, with_input};

/// Long enough for a loaded machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "silent"
when.prompt.regex = "^silent"
fault = { action = "stall", before_head = true }

[[rule]]
name = "begins and stalls"
when.prompt.regex = "^stall"
reply = [{ text = "It begins with these words, and then nothing more is said, although much more was to come." }]
delta = 4
fault = { action = "stall", at = 1500 }

[[rule]]
name = "breaks off, then is whole"
when.prompt.regex = "^broken"
reply = [{ text = "It begins with these words, and it ends with those, after a break in the middle of it all." }]
delta = 4
faults = [{ action = "reset", at = 1500 }]

[[rule]]
name = "hostile"
when.prompt.regex = "^hostile"
reply = [{ text = "one\u001b[2J\u001b]0;owned\u0007 two\u202e\rthree\u009b31m four" }]
delta = 3

[[rule]]
name = "writes"
when.prompt.regex = "^write"
when.answers = 0
reply = [{ text = "I write." }, { tool = "Write", input = { file_path = "new.txt", content = "hello\n" } }]

[[rule]]
name = "touches"
when.prompt.regex = "^twice"
when.answers = { max = 1 }
reply = [{ tool = "Bash", input = { command = "touch made" } }]

[[rule]]
name = "echo"
reply = [{ text = "{{ model }}: {{ prompt }}" }]
"#;

/// A command on a terminal of its own.
struct Terminal {
    pty: Arc<blocking::Pty>,
    child: Child,
    bytes: mpsc::Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that was sent.
    raw: Vec<u8>,
}

impl Terminal {
    /// Fifty rows, so that nothing scrolls away.
    fn start(mut command: Command, columns: u16) -> Self {
        let (pty, pts) = blocking::open().unwrap();
        pty.resize(Size::new(50, columns)).unwrap();
        command.env_remove("TERM").env("TERM", "xterm-256color");
        Self::spawn(command, columns, pty, pts)
    }

    fn spawn(command: Command, columns: u16, pty: blocking::Pty, pts: blocking::Pts) -> Self {
        // Those of the test are pipes.
        let mut own = Command::new(command.get_program());
        own.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => own.env(name, value),
                None => own.env_remove(name),
            };
        }
        let child = blocking::Command::from(own).spawn(pts).unwrap();
        let (pty, (sender, bytes)) = (Arc::new(pty), mpsc::channel());
        let reader = Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when nobody has the other side open any more.
            while let Ok(n @ 1..) = (&*reader).read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pty, child, bytes, screen: vt100::Parser::new(50, columns, 0), raw: Vec::new() }
    }

    /// What is on the screen, lines that were wrapped in one piece.
    fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until these words are on the screen.
    #[track_caller]
    fn until(&mut self, words: &str) {
        while !self.contents().contains(words) {
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("no `{words}` ({error}) in:\n{}", self.contents()),
            }
        }
    }

    /// Waits until these words are on the screen so often.
    #[track_caller]
    fn until_count(&mut self, words: &str, n: usize) {
        while self.contents().matches(words).count() < n {
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("{n} times `{words}` ({error}) in:\n{}", self.contents()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.screen.process(bytes);
    }

    fn type_in(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    fn press_ctrl_c(&self) {
        (&*self.pty).write_all(b"\x03").unwrap();
    }

    /// Waits for the end; gives back the exit code and what is on the screen then.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String, String) {
        loop {
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("{error}:\n{}", self.contents()),
            }
        }
        let code = self.child.wait().unwrap().code();
        (code, self.contents(), String::from_utf8_lossy(&self.raw).into_owned())
    }
}

fn on_terminal(place: &CommandDirs, server: &Simulation, args: &[&str], columns: u16) -> Terminal {
    Terminal::start(server.command(place, &[args, &["--model", "m"]].concat()), columns)
}

/// No line of progress is left, and the last lines name the session and its transcript.
#[track_caller]
fn check_end(place: &CommandDirs, contents: &str) {
    assert!(!contents.contains("step "), "{contents}");
    let one_line = contents.replace('\n', "");
    let file = place.transcript(".transcripts");
    let id = file.file_stem().unwrap().to_str().unwrap();
    assert_eq!(one_line.matches(&format!("session {id}")).count(), 1, "{contents}");
    assert_eq!(one_line.matches(&format!("transcript {}", text(&file))).count(), 1, "{contents}");
}

// REQ: SUR-2, OUT-5
#[test]
fn answer_is_on_the_screen_before_it_is_complete_and_ctrl_c_ends_the_run() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let mut terminal = on_terminal(&place, &server, &["-p", "stall"], 80);
    // Nothing comes after it, so it was not held back for the end.
    terminal.until("It begins with");
    terminal.press_ctrl_c();
    let (code, contents, _) = terminal.end();
    assert_eq!(code, Some(130), "{contents}");
    assert!(contents.contains("Error: interrupted"), "{contents}");
    check_end(&place, &contents);
    assert_eq!(place.run(&["verify", text(&place.transcript(".transcripts"))]).code, Some(0));
}

// REQ: SUR-2
#[test]
fn line_of_progress_stands_while_nothing_is_said_and_goes_without_a_trace() {
    for columns in [12, 80] {
        let place = CommandDirs::new();
        let server = Simulation::playing(&place, PLAYBOOK);
        let mut terminal = on_terminal(&place, &server, &["-p", "silent"], columns);
        let line = "turn 1, step 5 model_call";
        // Cut to the width, so that it can be erased.
        terminal.until(&line[..line.len().min(usize::from(columns) - 3)]);
        terminal.press_ctrl_c();
        let (code, contents, _) = terminal.end();
        assert_eq!(code, Some(130), "{contents}");
        assert!(!contents.contains("turn 1"), "{contents}");
        if columns == 80 {
            check_end(&place, &contents);
        }
    }
}

// REQ: SUR-2, OUT-3
#[test]
fn answer_stands_there_once_at_every_width() {
    for columns in [10, 40, 80, 300] {
        let place = CommandDirs::new();
        let server = Simulation::playing(&place, PLAYBOOK);
        let prompt = format!("what {}", "words ".repeat(12).trim_end());
        let (code, contents, _) = on_terminal(&place, &server, &["-p", &prompt], columns).end();
        assert_eq!(code, Some(0), "{contents}");
        let one_line = contents.replace('\n', "");
        assert_eq!(one_line.matches(&format!("m: {prompt}")).count(), 1, "{columns}: {contents}");
        check_end(&place, &contents);
    }
}

// REQ: MDL-7, SUR-2
#[test]
fn answer_that_broke_off_is_visibly_withdrawn_and_what_replaces_it_comes_once() {
    for columns in [40, 120] {
        let place = CommandDirs::new();
        let server = Simulation::playing(&place, PLAYBOOK);
        let (code, contents, _) = on_terminal(&place, &server, &["-p", "broken"], columns).end();
        assert_eq!(code, Some(0), "{contents}");
        let mark = "[withdrawn: the answer above does not count]";
        let one_line = contents.replace('\n', "");
        assert_eq!(one_line.matches(mark).count(), 1, "{contents}");
        let (before, after) = one_line.split_once(mark).unwrap();
        assert!(before.contains("It begins") && !before.contains("of it all."), "{contents}");
        let whole = "It begins with these words, and it ends with those, after a break in the middle of it all.";
        assert_eq!(after.matches(whole).count(), 1, "{contents}");
        assert_eq!(after.matches("It begins").count(), 1, "{contents}");
        assert_eq!(after.matches("retry 1 of 10 in").count(), 1, "{contents}");
        check_end(&place, &contents);
    }
}

// REQ: OUT-2
#[test]
fn answer_cannot_command_the_terminal_and_a_pipe_gets_it_without_sequences() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let (code, contents, raw) = on_terminal(&place, &server, &["-p", "hostile"], 80).end();
    assert_eq!(code, Some(0), "{contents}");
    assert!(contents.contains("one two\nthree four"), "{contents}");
    for sequence in ["\x1b[2J", "\x1b]", "owned", "\u{202e}", "\u{9b}"] {
        assert!(!raw.contains(sequence), "{sequence:?} in {raw:?}");
    }
    let args = ["-p", "hostile", "--model", "m"];
    let piped = with_input(server.command(&place, &args), b"");
    assert_eq!(piped.stdout, "one two\rthree four\n");
    let args = [&args[..], &["--output-format", "json"]].concat();
    let json = server.run(&place, &args).stdout;
    assert!(json.trim_end().chars().all(|it| !it.is_control() && it != '\u{202e}'), "{json:?}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let hostile = "one\u{1b}[2J\u{1b}]0;owned\u{7} two\u{202e}\rthree\u{9b}31m four";
    assert_eq!(json["result"], hostile);
}

// REQ: PRM-5, SUR-2
#[test]
fn denied_call_names_the_flag_and_the_flag_allows_it() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let mut terminal = on_terminal(&place, &server, &["-p", "write"], 500);
    terminal.until("[y]es, [n]o");
    terminal.type_in("perhaps\n");
    terminal.until("perhaps");
    terminal.type_in("n\n");
    let (code, contents, _) = terminal.end();
    assert_eq!(code, Some(0), "{contents}");
    assert!(contents.contains("I write."), "{contents}");
    assert!(!place.work().join("new.txt").exists());
    let line = contents.lines().find(|it| it.contains("a call of Write was denied")).unwrap();
    let rule = line.split("--allowed-tools '").nth(1).unwrap().split('\'').next().unwrap();
    let ended = server.run(&place, &["-p", "write", "--model", "m", "--allowed-tools", rule]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(place.work().join("new.txt").exists(), "{rule}: {ended:?}");
    // Piped, nothing is told that was not told before.
    assert_eq!(ended.stderr, "");
}

// REQ: PRM-5, PRM-3, SUR-2
#[test]
fn person_at_the_terminal_says_yes_or_always_and_is_asked_once() {
    for (keys, n_asked) in [("y\n", 2), ("a\n", 1)] {
        let place = CommandDirs::new();
        let server = Simulation::playing(&place, PLAYBOOK);
        let mut terminal = on_terminal(&place, &server, &["-p", "twice"], 200);
        for n in 1..=n_asked {
            terminal.until_count("[y]es, [n]o", n);
            assert!(terminal.contents().contains("touch made"), "{}", terminal.contents());
            terminal.type_in(keys);
        }
        let (code, contents, _) = terminal.end();
        assert_eq!(code, Some(0), "{contents}");
        assert_eq!(contents.matches("[y]es, [n]o").count(), n_asked, "{contents}");
        assert!(place.work().join("made").exists(), "{contents}");
        let hostile = std::fs::read_to_string(place.transcript(".transcripts")).unwrap();
        assert_eq!(hostile.matches(r#""surface":"terminal""#).count(), n_asked, "{hostile}");
    }
}

// REQ: PRM-5, SUR-2
#[test]
fn ctrl_c_at_a_question_ends_the_run_and_nothing_runs() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let mut terminal = on_terminal(&place, &server, &["-p", "write"], 200);
    terminal.until("[y]es, [n]o");
    terminal.press_ctrl_c();
    let (code, contents, _) = terminal.end();
    assert_eq!(code, Some(130), "{contents}");
    assert!(!place.work().join("new.txt").exists());
}

// REQ: SUR-2
#[test]
fn failure_is_told_once_on_a_terminal_and_a_plain_one_gets_no_sequences() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let mut command = server.command(&place, &["-p", "a", "--model", "m"]);
    command.env("ANTHROPIC_API_KEY", "wrong");
    let (code, contents, _) = Terminal::start(command, 300).end();
    assert_eq!(code, Some(3), "{contents}");
    assert_eq!(contents.matches("accept").count(), 1, "{contents}");
    assert!(!contents.contains("API error"), "{contents}");

    let (pty, pts) = blocking::open().unwrap();
    pty.resize(Size::new(50, 80)).unwrap();
    let mut command = server.command(&place, &["-p", "a", "--model", "m"]);
    command.env("TERM", "dumb");
    let (code, contents, raw) = Terminal::spawn(command, 80, pty, pts).end();
    assert_eq!((code, contents.trim_end()), (Some(0), "m: a"), "{contents}");
    assert!(!raw.contains('\x1b'), "{raw:?}");
}

// REQ: SES-6, SES-8
#[test]
fn typed_prompt_is_in_the_history_of_all_directories_without_its_secrets() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let prompt = "tell of sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMN";
    let (code, contents, _) = on_terminal(&place, &server, &["-p", prompt], 80).end();
    assert_eq!(code, Some(0), "{contents}");
    on_terminal(&place, &server, &["-p", "and\nagain"], 80).end();
    place.file("../home/.claude/commands/loud.md", "Say it: $0!");
    for called in ["/loud hello", &format!("/loud {}", &prompt[8..])] {
        let (code, contents, _) = on_terminal(&place, &server, &["-p", called], 80).end();
        assert_eq!((code, contents.contains("Say it: ")), (Some(0), true), "{contents}");
    }
    // Nobody typed this one.
    assert_eq!(server.run(&place, &["-p", "by a script", "--model", "m"]).code, Some(0));
    let listed = place.run(&["history", "--json"]).stdout;
    let prompts: Vec<Value> = listed.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(prompts.len(), 4, "{listed}");
    let first = prompts[0]["display"].as_str().unwrap();
    assert!(first.starts_with("tell of ") && !first.contains("abcdefghijkl"), "{first}");
    assert_eq!(prompts[1]["display"], "and\nagain");
    // The argument was a secret, which the text of the command holds no more.
    assert_eq!(
        (&prompts[2]["display"], &prompts[3]["display"]),
        (&json!("/loud hello"), &json!("/loud"))
    );
    let newest = place.run(&["history", "--number", "1", "--project", "."]).stdout;
    assert!(newest.ends_with("  /loud\n") && newest.lines().count() == 1, "{newest}");
    assert_eq!(place.run(&["history", "--project", ".transcripts"]).stdout, "");
}
