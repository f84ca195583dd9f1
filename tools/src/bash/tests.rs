//! Bash against real processes.
//!
//! Built under `#[cfg(test)]` only.

use std::{fs, io::Read as _, sync::Arc, time::Duration};

use ennead_runtime::{
    ports::WorkGuard,
    sandbox::{Sandbox, SandboxPlaces, SandboxSettings},
    tool::{ToolErrorKind, ToolOutcome},
};
use serde_json::json;
use tokio::{io::AsyncReadExt, net::unix::pipe, sync::oneshot};

use super::{
    Bash,
    process::{Ending, Followed, Order, Running, exports},
};
use crate::{
    edit::Edit,
    test_support::{Switch, World, block_on, structured},
};

fn bash(world: &mut World, command: &str) -> ToolOutcome {
    block_on(world.run::<Bash>(json!({"command": command})))
}

#[track_caller]
fn check(world: &mut World, command: &str, error: Option<ToolErrorKind>, text: &str) {
    let outcome = bash(world, command);
    assert_eq!((outcome.error, outcome.text.as_str()), (error, text), "{command}");
}

// REQ: TOL-5
#[test]
fn both_outputs_come_in_the_order_they_were_written() {
    let mut world = World::new();
    check(&mut world, "echo 1; echo 2 >&2; echo 3", None, "1\n2\n3");
    check(&mut world, "true", None, "(no output)");
    let outcome = bash(&mut world, "echo x; exit 3");
    assert_eq!((outcome.exit_code, outcome.text.as_str()), (Some(3), "Exit code 3\nx"));
    check(&mut world, "kill -9 $$", Some(ToolErrorKind::Failed), "Exit code 137");
    check(&mut world, "cat; echo end", None, "end");
}

// REQ: TOL-8
#[test]
fn there_is_no_terminal_and_a_session_of_its_own() {
    let mut world = World::new();
    let open = "(: < /dev/tty) 2>/dev/null && echo terminal || echo none";
    check(&mut world, open, None, "none");
    check(
        &mut world,
        "set -- $(cut -d' ' -f5,6 /proc/$$/stat); [ $1 = $$ ] && [ $2 = $$ ]",
        None,
        "(no output)",
    );
}

#[test]
fn the_environment_says_who_runs_the_command() {
    let mut world = World::new();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    world.context.env = vec![variable("HOME", ""), variable("MINE", "7")].into();
    let command = "echo $CLAUDECODE $CLAUDE_CODE_SESSION_ID $MINE ${HOME-unset}";
    check(&mut world, command, None, "1 session 7 unset");
}
#[test]
fn exit_code_one_is_an_answer_of_searches_and_a_failure_of_others() {
    let mut world = World::new();
    world.file("f", "x\n");
    let outcome = bash(&mut world, "grep nope f");
    assert_eq!((outcome.error, outcome.exit_code), (None, Some(1)));
    check(&mut world, "false", Some(ToolErrorKind::Failed), "Exit code 1");
    // A stand-in, as not every machine has pgrep.
    world.file("pgrep", "#!/bin/sh\nexit 1\n");
    check(&mut world, "sh ./pgrep nope", Some(ToolErrorKind::Failed), "Exit code 1");
    let outcome = bash(&mut world, "grep nope none");
    assert!(outcome.text.starts_with("Exit code 2\n"), "{}", outcome.text);
}
// REQ: TOL-8
#[test]
fn the_directory_is_kept_inside_the_workspace_and_reset_outside() {
    let mut world = World::new();
    world.file("sub dir/f", "");
    let (root, sub) = (world.root.display().to_string(), world.path("sub dir"));
    check(&mut world, "cd /; echo there", None, &format!("there\nShell cwd was reset to {root}"));
    check(&mut world, "pwd", None, &root);
    check(&mut world, "cd 'sub dir'; false", Some(ToolErrorKind::Failed), "Exit code 1");
    check(&mut world, "pwd", None, &sub);
    check(&mut world, "exit 0", None, "(no output)");
    check(&mut world, "cd /", None, &format!("Shell cwd was reset to {root}"));
    assert_eq!(world.context.memory.cwd.as_deref(), Some(root.as_str()));
}

#[test]
fn a_workspace_that_vanished_does_not_stop_the_shell() {
    let mut world = World::new();
    fs::remove_dir_all(&world.root).unwrap();
    check(&mut world, "echo here", None, "here");
}

#[test]
fn a_temporary_directory_with_odd_characters_is_no_hindrance() {
    let world = World::new();
    let cwd_file = world.root.join("it's a \"$HOME\" `dir`");
    let order = Order {
        id: &"t".into(),
        command: "set -o noclobber; cd /usr; false",
        leaves_sandbox: false,
        cwd: &world.root,
        cwd_file: &cwd_file,
        max_chars: 100,
    };
    fs::write(&cwd_file, "").unwrap();
    let ran = block_on(async {
        let mut running = Running::start(&order, &world.context).await.unwrap();
        let never = std::future::pending::<std::convert::Infallible>();
        let Followed::Ended(ending) = running.follow(never, |_| ()).await.unwrap();
        running.finish(ending).await.unwrap()
    });
    assert_eq!((ran.ending, ran.capture.head()), (Ending::Exited(1), String::new()));
    assert_eq!(fs::read_to_string(&cwd_file).unwrap(), "/usr\n");
}

#[test]
fn a_directory_that_vanished_does_not_stop_the_next_command() {
    let mut world = World::new();
    world.file("sub/f", "");
    bash(&mut world, "cd sub");
    fs::remove_dir_all(world.root.join("sub")).unwrap();
    let root = world.root.display().to_string();
    check(&mut world, "pwd", None, &root);
    assert_eq!(world.context.memory.cwd.as_deref(), Some(root.as_str()));
}
#[test]
fn variables_are_not_kept() {
    let mut world = World::new();
    bash(&mut world, "export A=1");
    check(&mut world, "echo ${A-empty}", None, "empty");
}
// REQ: TOL-8
#[test]
fn long_output_goes_to_a_file_and_of_a_failure_both_ends_are_shown() {
    let mut world = World::new();
    let outcome = bash(&mut world, "seq 1 100000");
    assert_eq!(outcome.error, None);
    let result = structured(&outcome);
    let path = result["persistedOutputPath"].as_str().unwrap();
    assert!(outcome.text.contains(path) && outcome.text.chars().count() < 3000);
    let all: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), all);
    assert_eq!(result["persistedOutputSize"], all.len());
    fs::remove_file(path).unwrap();

    for command in ["seq 1 100000; false", "seq 1 5000; false"] {
        let outcome = bash(&mut world, command);
        assert_eq!(outcome.error, Some(ToolErrorKind::Failed));
        assert!(outcome.text.starts_with("Exit code 1\n1\n2\n"), "{}", &outcome.text[..50]);
        assert!(outcome.text.ends_with("000"), "{command}");
        assert!(outcome.text.chars().count() <= 10_050);
        assert!(!fs::exists(path).unwrap());
    }
}

#[test]
fn output_at_the_limit_is_shown_whole_and_one_more_is_not() {
    let mut world = World::new();
    for (n, whole) in [(30_000, true), (30_001, false)] {
        let outcome = bash(&mut world, &format!("head -c {n} /dev/zero | tr '\\0' x"));
        assert_eq!(outcome.truncation.is_none(), whole);
        assert_eq!(outcome.text.chars().count() == n, whole);
    }
}
#[test]
fn a_file_that_a_simple_command_printed_may_be_edited() {
    let cases = [
        ("cat f", Some(false)),
        ("cat 'f'", Some(false)),
        ("head -n 1 f", Some(true)),
        ("sed -n '1,2p' f", Some(true)),
        ("grep x f", Some(true)),
        ("cat f | head", None),
        ("cat < f", None),
        ("cat f f", None),
        ("true f", None),
    ];
    for (command, partial) in cases {
        let mut world = World::new();
        let path = world.file("f", "x\ny\n");
        bash(&mut world, command);
        let seen = world.context.memory.files.get(&path).map(|seen| seen.partial);
        assert_eq!(seen, partial, "{command}");
        let input = json!({"file_path": path, "old_string": "x", "new_string": "z"});
        let outcome = block_on(world.run::<Edit>(input));
        assert_eq!(outcome.error.is_none(), partial.is_some(), "{command}: {}", outcome.text);
    }
}

/// Sends a word when the last holder is gone.
struct Released(Option<oneshot::Sender<()>>);

impl Drop for Released {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

/// A FIFO that a process of the command holds open for writing; its end is the end of them all.
async fn holders(world: &World) -> pipe::Receiver {
    let path = world.root.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    pipe::OpenOptions::new().open_receiver(path).unwrap()
}

/// A process that left session, group and parent, says that it is there, and stays.
const RUNAWAY: &str = "(setsid sh -c 'exec 3>fifo; echo there >&3; setsid sleep 1000 & exec sleep 1000' \
     >/dev/null 2>&1 &) ; sleep 1000";

async fn said_there(fifo: &mut pipe::Receiver) {
    let mut word = [0; 6];
    fifo.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"there\n");
}

async fn all_gone(fifo: &mut pipe::Receiver) {
    assert_eq!(fifo.read(&mut [0; 1]).await.unwrap(), 0);
}
// REQ: TOL-8
#[tokio::test]
async fn a_runaway_is_gone_after_a_timeout() {
    let world = World::new();
    let mut fifo = holders(&world).await;
    let mut run = world.start::<Bash>(json!({"command": RUNAWAY, "timeout": 100_000}));
    tokio::select! {
        outcome = &mut run => panic!("{outcome:?}"),
        () = said_there(&mut fifo) => {}
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(100_000)).await;
    let outcome = run.await;
    tokio::time::resume();
    assert_eq!(outcome.error, Some(ToolErrorKind::TimedOut));
    assert!(outcome.text.contains("within 100000 ms"), "{}", outcome.text);
    assert_eq!(structured(&outcome)["timedOutAfterMs"], 100_000);
    all_gone(&mut fifo).await;
}

// REQ: TOL-8
#[tokio::test]
async fn a_runaway_is_gone_before_a_dropped_call_lets_go_of_its_hold() {
    let mut world = World::new();
    let (sender, released) = oneshot::channel();
    world.context.guard = WorkGuard::new(Released(Some(sender)));
    let mut fifo = holders(&world).await;
    let mut run = world.start::<Bash>(json!({"command": RUNAWAY}));
    world.context.guard = WorkGuard::new(());
    tokio::select! {
        outcome = &mut run => panic!("{outcome:?}"),
        () = said_there(&mut fifo) => {}
    }
    drop(run);
    released.await.unwrap();
    // Not a moment later: the end of the FIFO is already there.
    let mut rest = Vec::new();
    let mut file = fs::File::from(fifo.into_nonblocking_fd().unwrap());
    assert_eq!(file.read_to_end(&mut rest).unwrap(), 0);
}

#[test]
fn a_call_that_is_cancelled_already_starts_nothing() {
    let mut world = World::new();
    let switch = Arc::new(Switch::default());
    switch.cancel();
    world.context.cancel = switch;
    let outcome = bash(&mut world, "touch made");
    assert_eq!(outcome.error, Some(ToolErrorKind::Interrupted));
    assert!(!world.root.join("made").exists());
}

// REQ: TOL-8
#[tokio::test]
async fn a_runaway_is_gone_after_a_cancel() {
    let mut world = World::new();
    let switch = Arc::new(Switch::default());
    world.context.cancel = switch.clone();
    let mut fifo = holders(&world).await;
    let mut run = world.start::<Bash>(json!({"command": RUNAWAY}));
    tokio::select! {
        outcome = &mut run => panic!("{outcome:?}"),
        () = said_there(&mut fifo) => switch.cancel(),
    }
    assert_eq!(run.await.error, Some(ToolErrorKind::Interrupted));
    all_gone(&mut fifo).await;
}

// REQ: TOL-8
#[test]
fn a_runaway_is_gone_also_when_the_runtime_is() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut run = world.start::<Bash>(json!({"command": RUNAWAY}));
    let fifo = runtime.block_on(async {
        let mut fifo = holders(&world).await;
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            () = said_there(&mut fifo) => {}
        }
        fifo.into_nonblocking_fd().unwrap()
    });
    drop(runtime);
    drop(run);
    let mut rest = Vec::new();
    assert_eq!(fs::File::from(fifo).read_to_end(&mut rest).unwrap(), 0);
}

// REQ: TOL-8
#[test]
fn what_is_left_in_the_background_ends_with_the_command() {
    let mut world = World::new();
    let outcome = bash(&mut world, "sleep 1000 & echo started");
    let text = "started\n1 processes were still running in the background and were ended.";
    assert_eq!((outcome.error, outcome.text.as_str()), (None, text));
}

#[test]
fn a_command_that_cannot_be_started_is_an_error() {
    let mut world = World::new();
    let long = format!("true {}", "x".repeat(200_000));
    let why = world.failed::<Bash>(json!({"command": long}));
    assert!(why.starts_with("Cannot run a shell"), "{why}");
    assert!(world.failed::<Bash>(json!({"command": "a\u{0}b"})).contains("NUL"));
}

// REQ: TOL-8
#[cfg(target_os = "linux")]
#[test]
fn what_left_its_session_and_parent_is_found_without_a_reaper_too() {
    let mut world = World::new();
    let seconds = format!("1000.{}", std::process::id());
    let command = format!("(setsid sh -c \"sleep {seconds} & exit\" &)");
    for round in 0..20 {
        assert_eq!(bash(&mut world, &command).error, None);
        let alive = fs::read_dir("/proc").unwrap().flatten().filter(|it| {
            let line = fs::read(it.path().join("cmdline")).unwrap_or_default();
            line.starts_with(format!("sleep\0{seconds}\0").as_bytes())
        });
        assert_eq!(alive.count(), 0, "round {round}");
    }
}

// REQ: HKS-1, TOL-8
#[test]
fn command_begins_with_the_lines_of_hooks_and_is_numbered_without_them() {
    let mut world = World::new();
    world.context.exports = "export A='1\n2'\nf() { echo \"$A\"; }\n".into();
    check(&mut world, "f; echo ${ENNEAD_EXPORTS-gone}", None, "1\n2\ngone");
    let outcome = bash(&mut world, "true\nnope");
    assert!(outcome.text.contains("line 2: nope"), "{}", outcome.text);
    // Where there is a sandbox that this command is not in, lines of a repository do not count.
    let settings = SandboxSettings { enabled: true, ..SandboxSettings::default() };
    let places = SandboxPlaces { workspace: "/w", home: "/home/u", transcripts: None };
    world.context.sandbox = Sandbox::of(&settings, &[], places).map(Arc::new);
    let confined = world.context.sandbox.as_ref().unwrap().policy.clone();
    assert_eq!(exports(&world.context, Some(&confined)), &*world.context.exports);
    assert_eq!(exports(&world.context, None), "");
}
