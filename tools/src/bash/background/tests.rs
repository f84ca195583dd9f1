//! Commands in the background against real processes; the tasks of the runtime represent the
//! session.

use std::{fs, num::NonZeroU64, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::ShellId,
    ports::{
        HostProcess, WorkGuard,
        shells::{BackgroundShell, ShellState},
    },
    step1_settings_resolution::ShellSettings,
    tool::{ToolErrorKind, ToolOutcome},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::oneshot,
};

use crate::{
    bash::{Bash, BashOutput, KillShell},
    test_support::{TaskHost, World, block_on, structured},
};

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(60);

struct ShellRig {
    world: World,
    host: Arc<TaskHost>,
}

impl ShellRig {
    fn new(settings: ShellSettings) -> Self {
        let (mut world, host) = (World::new(), Arc::new(TaskHost::default()));
        world.context.processes = Some(host.clone());
        world.context.shell = settings;
        Self { world, host }
    }

    async fn start(&mut self, command: &str) -> ToolOutcome {
        let input = json!({"command": command, "run_in_background": true});
        self.world.run::<Bash>(input).await
    }

    async fn read(&mut self, shell: &str, filter: Option<&str>) -> ToolOutcome {
        let input = match filter {
            None => json!({"bash_id": shell}),
            Some(filter) => json!({"bash_id": shell, "filter": filter}),
        };
        self.world.run::<BashOutput>(input).await
    }

    fn find(&self, shell: &str) -> Arc<dyn BackgroundShell> {
        self.host.shells().find(&ShellId::from(shell)).unwrap()
    }

    /// Waits for the end of the task that owns the first command.
    async fn ended(&self) {
        let (task, detached) = self.host.tasks.lock().unwrap().remove(0);
        assert!(detached.is_detached());
        tokio::time::timeout(LIMIT, task).await.unwrap().unwrap();
    }

    /// A pipe between a command and the test.
    fn pipe(&self, name: &str) -> Pipe {
        let path = self.world.root.join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Pipe(path)
    }
}

/// A pipe with a name. No thread is blocked by it, so a command that never opens its end fails the
/// test and cannot keep it from ending.
struct Pipe(std::path::PathBuf);

impl Pipe {
    /// The end that the test reads.
    fn reader(&self) -> Reader {
        Reader(pipe::OpenOptions::new().open_receiver(&self.0).unwrap())
    }

    /// Lets a command go on that reads a line from the pipe, now or later. The pipe keeps the line
    /// until the result is dropped.
    async fn write_line(&self) -> pipe::Sender {
        // As a reader too, so that opening it does not need the command's end.
        let mut sender = pipe::OpenOptions::new().read_write(true).open_sender(&self.0).unwrap();
        sender.write_all(b"\n").await.unwrap();
        sender
    }
}

struct Reader(pipe::Receiver);

impl Reader {
    /// Waits for the first byte.
    async fn opened(&mut self) {
        tokio::time::timeout(LIMIT, self.0.read_u8()).await.unwrap().unwrap();
    }

    /// Waits until nobody has the pipe open for writing any more.
    async fn closed(mut self) {
        let mut rest = Vec::new();
        let read = self.0.read_to_end(&mut rest);
        tokio::time::timeout(LIMIT, read).await.unwrap().unwrap();
    }
}

// REQ: TOL-6, TOL-8
#[test]
fn output_is_read_once_and_by_filter_and_the_end_is_shown() {
    let mut rig = ShellRig::new(ShellSettings::default());
    let (up, go) = (rig.pipe("up"), rig.pipe("go"));
    block_on(async {
        let mut up = up.reader();
        let command =
            "echo one; echo two; echo > up; read line < go; echo three; echo four; exit 3";
        let (kept, let_go) = oneshot::channel::<()>();
        rig.world.context.guard = WorkGuard::new(kept);
        let started = rig.start(command).await;
        assert_eq!(started.error, None);
        rig.world.context.guard = WorkGuard::new(());
        let gone = tokio::time::timeout(LIMIT, let_go).await;
        assert!(gone.expect("its turn does not wait for it").is_err());
        let result = structured(&started);
        assert_eq!(result["backgroundTaskId"], "bash_1");
        let path = result["persistedOutputPath"].as_str().unwrap().to_owned();
        assert!(started.text.contains("bash_1") && started.text.contains(&path));
        assert_eq!(rig.host.shells().running().len(), 1);
        up.opened().await;
        let mut seen = String::new();
        while !seen.contains("two") {
            let read = rig.read("bash_1", None).await;
            assert!(read.text.starts_with("bash_1 (`echo one;"), "{}", read.text);
            assert!(read.text.contains("is running."), "{}", read.text);
            seen.push_str(structured(&read)["output"].as_str().unwrap());
        }
        assert_eq!(seen, "one\ntwo\n");
        assert!(rig.read("bash_1", None).await.text.ends_with("\n(no new output)"));
        let _line = go.write_line().await;
        rig.ended().await;
        assert!(!rig.find("bash_1").is_end_known());
        let read = rig.read("bash_1", Some("^f")).await;
        assert!(read.text.ends_with("ended with exit code 3.\nfour"), "{}", read.text);
        let result = structured(&read);
        assert_eq!((&result["status"], &result["exitCode"]), (&json!("failed"), &json!(3)));
        assert!(rig.find("bash_1").is_end_known());
        assert!(rig.read("bash_1", None).await.text.ends_with("(no new output)"));
        assert_eq!(fs::read_to_string(path).unwrap(), "one\ntwo\nthree\nfour\n");
        assert_eq!(rig.host.shells().running(), []);
    });
}

// REQ: TOL-8
#[test]
fn killed_command_leaves_no_process_and_no_guard() {
    let mut rig = ShellRig::new(ShellSettings::default());
    let alive = rig.pipe("alive");
    block_on(async {
        let mut alive = alive.reader();
        rig.start("exec 9> alive; echo >&9; (setsid sleep 1000 &); sleep 1000").await;
        alive.opened().await;
        let killed = rig.world.run::<KillShell>(json!({"shell_id": "bash_1"})).await;
        assert_eq!(killed.error, None, "{}", killed.text);
        assert!(structured(&killed)["message"].as_str().unwrap().contains("was killed"));
        alive.closed().await;
        rig.ended().await;
        assert_eq!(rig.find("bash_1").status().state, ShellState::Killed);
        assert!(rig.find("bash_1").is_end_known());
        assert_eq!(Arc::strong_count(&rig.host.shells.held), 1);
        let again = rig.world.run::<KillShell>(json!({"shell_id": "bash_1"})).await;
        assert_eq!(again.error, Some(ToolErrorKind::Failed));
        let none = rig.world.run::<KillShell>(json!({"shell_id": "bash_7"})).await;
        assert!(none.text.contains("no command bash_7"), "{}", none.text);
    });
}

// REQ: TOL-8
#[test]
fn command_at_its_time_limit_goes_on_unless_that_makes_no_sense_or_is_off() {
    let (mut off, mut none) = (ShellSettings::default(), ShellSettings::default());
    (off.background_at_limit, none.max_background) = (false, 0);
    let slow = "echo begun; read line < gate; echo over";
    let cases = [
        (ShellSettings::default(), slow, true),
        (off, slow, false),
        (none, slow, false),
        (ShellSettings::default(), "sleep 1000", false),
        (ShellSettings::default(), "git version; read line < gate", false),
    ];
    for (settings, command, goes_on) in cases {
        let mut rig = ShellRig::new(settings);
        let gate = rig.pipe("gate");
        block_on(async {
            let input = json!({"command": command, "timeout": 300});
            let outcome = rig.world.run::<Bash>(input).await;
            let result = structured(&outcome);
            assert_eq!(result["timedOutAfterMs"], 300, "{command}");
            assert_eq!(result["backgroundTaskId"].is_string(), goes_on, "{command}");
            if !goes_on {
                assert_eq!(outcome.error, Some(ToolErrorKind::TimedOut), "{command}");
                return;
            }
            assert_eq!(outcome.error, None);
            assert!(outcome.text.contains("0.3s timeout"), "{}", outcome.text);
            assert_eq!(Arc::strong_count(&rig.host.shells.held), 2);
            let _line = gate.write_line().await;
            rig.ended().await;
            let read = rig.read("bash_1", None).await;
            assert!(read.text.ends_with("exit code 0.\nbegun\nover"), "{}", read.text);
        });
    }
}

// REQ: TOL-8
#[test]
fn number_and_time_in_the_background_are_bounded() {
    let mut settings = ShellSettings::default();
    (settings.max_background, settings.max_background_seconds) = (1, NonZeroU64::new(1));
    let mut rig = ShellRig::new(settings);
    block_on(async {
        assert_eq!(rig.start("sleep 1000").await.error, None);
        let second = rig.start("echo never").await;
        assert_eq!(second.error, Some(ToolErrorKind::Failed));
        assert!(second.text.contains("1 commands run in the background"), "{}", second.text);
        rig.ended().await;
        assert_eq!(rig.find("bash_1").status().state, ShellState::TimedOut);
        assert_eq!(rig.start("true").await.error, None, "its place is free again");
    });
    rig.world.context.env =
        vec![("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".to_owned(), "1".to_owned())].into();
    let refused = block_on(rig.start("true"));
    assert!(refused.text.contains("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"), "{}", refused.text);
    rig.world.context.env = Arc::default();
    rig.world.context.processes = None;
    assert_eq!(block_on(rig.start("true")).error, Some(ToolErrorKind::Failed));
}

// REQ: TOL-8
#[test]
fn flood_of_a_gigabyte_fills_no_more_than_its_file() {
    let mut rig = ShellRig::new(ShellSettings::default());
    block_on(async {
        let started = rig.start("yes | head -c 1000000000; echo end").await;
        let path = structured(&started)["persistedOutputPath"].as_str().unwrap().to_owned();
        rig.ended().await;
        assert_eq!(fs::metadata(&path).unwrap().len(), 64 << 20);
        let status = rig.find("bash_1").status();
        assert_eq!((status.state, status.n_bytes), (ShellState::Exited(0), 1_000_000_004));
        let read = rig.read("bash_1", None).await;
        assert!(read.text.ends_with("y\nend"), "{}", &read.text[read.text.len() - 100..]);
        assert!(read.text.chars().count() < 33_000);
        assert!(read.truncation.is_some());
        let read = rig.read("bash_1", None).await;
        assert!(read.text.ends_with("(no new output)"), "it was read");
    });
}

// REQ: TOL-8
#[test]
fn command_whose_owner_is_dropped_is_gone() {
    let mut rig = ShellRig::new(ShellSettings::default());
    let alive = rig.pipe("alive");
    block_on(async {
        let mut alive = alive.reader();
        rig.start("exec 9> alive; echo >&9; sleep 1000").await;
        alive.opened().await;
        let (task, _) = rig.host.tasks.lock().unwrap().remove(0);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        alive.closed().await;
        assert_eq!(rig.find("bash_1").status().state, ShellState::Lost);
        let ended = rig.host.shells.shells.take_ended();
        assert_eq!((ended.len(), ended[0].is_known), (1, false));
        assert_eq!(rig.host.shells.shells.take_ended(), []);
    });
}
