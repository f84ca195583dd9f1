//! What commands start ends with them: whichever way it goes, and however the command `ennead` ends.
//!
//! `ENNEAD_TRIALS` sets how often each way to leave a process behind is taken; 8 times unless set.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{CommandDirs, Simulation, text};
use crate::support::processes::fifo;

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "runs a command so many times"
when.prompt.regex = '^\d+ times: '
when.answers = 0
let.parts = "prompt|capture('(\\d+) times: (.*)')"
reply = [{ each = "range(parts[1]|int)", tool = "Bash", input = { command = "{{ parts[2] }} # {{ item }}" } }]

[[rule]]
name = "leaves processes, by a number of calls"
when.prompt.regex = '^\d+ ways: '
when.answers = 0
let.parts = "prompt|capture('(\\d+) ways: (.*)')"
reply = [{ each = "range(parts[1]|int)", tool = "Bash", input = { command = "{{ parts[2] }} # {{ item }}" } }]

[[rule]]
name = "looks for them when the calls have ended"
when.prompt.regex = '^\d+ ways: '
when.answers = 1
let.parts = "prompt|capture('sleep (1000\\.\\d+)')"
reply = [{ tool = "Bash", input = { command = "for it in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $it 2>/dev/null | grep -a '^sleep {{ parts[1] }}'; done > left; test -e left" } }]

[[rule]]
name = "done"
when.prompt.regex = '^\d+ (times|ways): '
reply = [{ text = "done" }]

[[rule]]
name = "runs a command in the background, and waits"
when.prompt.regex = '^behind: '
when.answers = 0
let.parts = "prompt|capture('behind: (.*)')"
reply = [
  { tool = "Bash", input = { command = "{{ parts[1] }}", run_in_background = true } },
  { tool = "Bash", input = { command = "sleep 1000" } },
]

[[rule]]
name = "looks"
when.prompt.regex = '^look'
reply = [{ text = "looked" }]

[[rule]]
name = "goes on for ever, with much to say"
when.prompt = "on and on"
reply = [{ text = "{{ range(1000)|join(' and on ') }}" }, { tool = "Glob", input = { pattern = "*" } }]
"#;

/// How long anything may take that is waited for.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Ways to leave `sleep SECONDS` after. The last one keeps nothing by which it could be known: no
/// session, group, parent, environment, directory or file.
const WAYS: [(&str, &str); 5] = [
    ("setsid", "(setsid sh -c \"sleep SECONDS & exit\" &)"),
    (
        "double fork",
        "((sleep SECONDS & exit) & exit); sh -c 'sh -c \"sleep SECONDS & exit\" & exit'",
    ),
    ("nohup", "nohup sleep SECONDS >/dev/null 2>&1 &"),
    ("disown", "sleep SECONDS & disown"),
    (
        "daemon",
        "setsid env -i setsid sh -c 'cd /; (exec </dev/null >/dev/null 2>&1; sleep SECONDS & exit)& exit' &",
    ),
];

/// Calls of one answer; fewer than one turn may have.
const CALLS: usize = 20;

/// Processes whose command line holds this.
fn living(words: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(words).then(|| format!("{:?}: {line}", entry.file_name()))
    });
    lines.collect()
}

/// `ennead -p` that may run any command.
fn ennead(server: &Simulation, place: &CommandDirs, prompt: &str) -> Command {
    server.command(place, &["-p", prompt, "--permission-mode", "bypassPermissions"])
}

/// The command, started by another program that becomes it.
fn started_by(mut program: Command, command: &Command) -> Command {
    program.arg(command.get_program()).args(command.get_args());
    program.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Takes one way, this many times, and returns how many processes are left of it: after the calls, while
/// the command still runs, and after its end.
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn leave(
    server: &Simulation,
    place: &CommandDirs,
    (name, way): (&str, &str),
    n_calls: usize,
) -> usize {
    // Told apart from those of other tests, and of other processes that run these.
    let seconds = format!("1000.{}{}", std::process::id(), name.len());
    let prompt = format!("{n_calls} ways: {}", way.replace("SECONDS", &seconds));
    let ended = ennead(server, place, &prompt).output().unwrap();
    assert!(ended.status.success(), "{name}: {ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "done\n", "{name}");
    let after_calls = fs::read_to_string(place.work().join("left")).unwrap().lines().count();
    // The command lines of shells say it, too.
    let left = living(&format!("sleep {seconds}"));
    for it in &left {
        println!("{name}: {it}");
    }
    after_calls + left.len()
}

// REQ: TOL-8
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn no_process_outlives_its_call_whichever_way_it_goes() {
    let n_trials: usize =
        std::env::var("ENNEAD_TRIALS").ok().and_then(|it| it.parse().ok()).unwrap_or(8);
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    for way in WAYS {
        let mut n_left = 0;
        for begun in (0..n_trials).step_by(CALLS) {
            n_left += leave(&server, &place, way, CALLS.min(n_trials - begun));
        }
        println!("{}: {n_trials} calls, {n_left} processes left", way.0);
        assert_eq!(n_left, 0, "{}", way.0);
    }
    check_transcripts(&place);
}

fn check_transcripts(place: &CommandDirs) {
    for entry in fs::read_dir(place.work().join(".transcripts")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|it| it == "jsonl") {
            let verified = place.run(&["verify", text(&file)]);
            assert_eq!(verified.code, Some(0), "{verified:?}");
        }
    }
}

/// Whether a pipe has been opened for writing, and then that nobody has it open any more.
pub(super) fn watch(path: &Path) -> mpsc::Receiver<()> {
    fifo(path);
    let (path, (tell, received)) = (path.to_owned(), mpsc::channel());
    std::thread::spawn(move || {
        let mut file = File::open(path).unwrap();
        tell.send(()).unwrap();
        file.read_to_end(&mut Vec::new()).unwrap();
        tell.send(()).unwrap();
    });
    received
}

/// A command whose processes hold the pipe `alive` open: one in the shell's session and group, and one
/// that has left both and its parent.
const HELD: &str = "1 times: exec 9> alive; (setsid sh -c \"sleep 1000 & exit\" &); sleep 1000";

/// Sends a signal while a command runs; gives back how `ennead` ended, once no process is left.
fn end_by(signal: Signal) -> (CommandDirs, std::process::ExitStatus) {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let held = watch(&place.work().join("alive"));
    // A shell has what it runs in the background ignore SIGQUIT, which is passed on.
    let mut program = Command::new("env");
    program.arg("--default-signal=HUP,QUIT");
    let mut child = started_by(program, &ennead(&server, &place, HELD)).spawn().unwrap();
    held.recv_timeout(LIMIT).unwrap();
    send(&child, signal);
    let status = child.wait().unwrap();
    held.recv_timeout(LIMIT)
        .unwrap_or_else(|_| panic!("{signal:?}: a process of the command is left"));
    (place, status)
}

// REQ: TOL-8
#[test]
fn no_process_outlives_a_killed_ennead() {
    let (_, status) = end_by(Signal::KILL);
    assert_eq!(status.signal(), Some(9));
}

// REQ: TOL-8, HKS-1
#[test]
fn no_process_of_a_hook_outlives_an_ennead_that_is_ended_while_the_hook_runs() {
    let n_trials = 12;
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let command = "trap '' TERM; exec 9> alive; (setsid sh -c 'sleep 1000 & exit' &); sleep 1000";
    let hooks = json!([{"hooks": [{"type": "command", "command": command}]}]);
    place.file(".claude/settings.json", &json!({"hooks": {"UserPromptSubmit": hooks}}).to_string());
    for trial in 0..n_trials {
        let pipe = place.work().join("alive");
        let held = watch(&pipe);
        let mut child = ennead(&server, &place, "hello").arg("--trust").spawn().unwrap();
        held.recv_timeout(LIMIT).unwrap();
        send(&child, Signal::TERM);
        child.wait().unwrap();
        held.recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("a process of the hook is left, trial {trial}"));
        fs::remove_file(pipe).unwrap();
    }
}

// REQ: TOL-8
#[test]
fn no_background_command_outlives_a_killed_ennead_by_two_seconds_and_the_next_says_it_is_gone() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let held = watch(&place.work().join("alive"));
    let command = HELD.replace("1 times: ", "behind: ");
    let id = "5f1c0000-0000-4000-8000-00000000000c";
    let ask = |prompt: &str| {
        let mut command = ennead(&server, &place, prompt);
        command.args(["--session-id", id]);
        command
    };
    let mut child = ask(&command).spawn().unwrap();
    held.recv_timeout(LIMIT).unwrap();
    let transcript = place.transcript(".transcripts");
    let recorded = || fs::read_to_string(&transcript).unwrap();
    // The command runs before it is on record that it runs in the background.
    let (_never, pause) = mpsc::channel::<()>();
    let n_looks = (0..300).position(|_| {
        recorded().contains(r#""kind":"shell""#)
            || pause.recv_timeout(Duration::from_millis(100)).is_ok()
    });
    assert!(n_looks.is_some(), "{}", recorded());
    send(&child, Signal::KILL);
    child.wait().unwrap();
    held.recv_timeout(Duration::from_secs(2)).expect("a process of the command is left");
    let looked = ask("look").output().unwrap();
    assert!(looked.status.success(), "{looked:?}");
    assert!(recorded().contains("bash_1") && recorded().contains("is gone: what ran it ended"));
    check_transcripts(&place);
}

// REQ: SUR-2, TOL-8
#[test]
fn sighup_and_sigquit_end_the_run_in_order_and_leave_no_process() {
    for signal in [Signal::HUP, Signal::QUIT] {
        let (place, status) = end_by(signal);
        assert_eq!(status.code(), Some(143), "{signal:?}");
        check_transcripts(&place);
    }
}

// REQ: SUR-2
#[test]
fn sighup_that_was_ignored_from_the_start_stays_so() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let held = watch(&place.work().join("alive"));
    let command = ennead(&server, &place, "1 times: exec 9> alive; read line < go");
    fifo(&place.work().join("go"));
    let mut nohup = started_by(Command::new("nohup"), &command);
    let child = nohup.spawn().unwrap();
    held.recv_timeout(LIMIT).unwrap();
    send(&child, Signal::HUP);
    fs::write(place.work().join("go"), "\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "done\n");
}

// REQ: SES-2, SUR-2
#[test]
fn limit_on_the_size_of_files_is_an_error_of_the_session_and_not_the_end_of_the_process() {
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, PLAYBOOK);
    let command = ennead(&server, &place, "on and on");
    let mut limited = place.command(&[]);
    limited = {
        // 32 or 64 KiB, as the shell counts.
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""]).arg(limited.get_program());
        shell.args(command.get_args()).current_dir(place.work());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    };
    let ended = limited.output().unwrap();
    let recorded = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(recorded.contains("the limit on the size of files is reached"), "{recorded}");
}
