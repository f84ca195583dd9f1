//! Many agents in one process: opens 500 sessions, prompts them all at once, and says how long it
//! took and what a session weighs.
//!
//! The model is the simulated one, so what is measured is the harness with its nine steps, actors
//! and transcripts, and the writing and reading of the simulated bytes. Another number of sessions
//! may be given as argument. Figures mean something in a release build only:
//! `cargo run --release --example many_sessions`.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::time::Duration;

use ennead::{
    Clock, Endpoint, Ennead, Options, RunOutcome, SessionOptions, SystemClock,
    settings::Durability, testing::Playbook,
};
use futures::future::try_join_all;
use rustix::process::{Resource, getrlimit, setrlimit};

/// One call of a tool, then an answer: two turns.
const PLAYBOOK: &str = r#"
[[rule]]
name = "looks"
when.turns = 0
reply = [{ tool = "Glob", input = { pattern = "*" } }]

[[rule]]
name = "tells"
reply = [{ text = "{{ results[0].text }}" }]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_sessions: u32 = std::env::args().nth(1).map_or(Ok(500), |it| it.parse())?;
    raise_open_files()?;
    let workspace = tempfile::tempdir()?;
    let transcripts = tempfile::tempdir()?;
    std::fs::write(workspace.path().join("readme.txt"), "the only file here\n")?;

    let clock = SystemClock::new();
    let before = resident_kib();
    let ennead = Ennead::start(Options::simulated(Playbook::parse(PLAYBOOK, "many")?)).await?;

    let start = clock.elapsed();
    let sessions = try_join_all((0..n_sessions).map(|_| {
        let mut options = SessionOptions::new(workspace.path(), Endpoint::simulated())
            .isolated()
            .durability(Durability::Process);
        options.transcripts = Some(transcripts.path().to_owned());
        ennead.open(options)
    }))
    .await?;
    let opened = clock.elapsed().saturating_sub(start);
    println!(
        "opened {n_sessions} sessions in {opened:?}: {:.0} per second",
        rate(n_sessions, opened)
    );
    report("idle", before, n_sessions);

    let start = clock.elapsed();
    let prompts = sessions.iter().map(|it| it.prompt("Which files are here?"));
    let outcomes = try_join_all(prompts).await?;
    let outcomes: Result<Vec<_>, _> = outcomes.into_iter().map(RunOutcome::into_answer).collect();
    let outcomes = outcomes?;
    let ran = clock.elapsed().saturating_sub(start);
    let n_turns: u32 = outcomes.iter().map(|it| it.outcome.turns).sum();
    let n_right = outcomes.iter().filter(|it| it.text.contains("readme.txt")).count();
    println!(
        "ran {n_turns} turns in {ran:?}: {:.0} sessions and {:.0} turns per second",
        rate(n_sessions, ran),
        rate(n_turns, ran),
    );
    println!("{n_right} of {n_sessions} found the file");
    report("after its run", before, n_sessions);

    ennead.shutdown().await;
    if n_right != outcomes.len() {
        return Err("not every session found the file".into());
    }
    Ok(())
}

/// A session keeps its transcript and its lock open. Many systems allow 1024 open files unless a
/// process asks for more.
fn raise_open_files() -> std::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

fn rate(n: u32, took: Duration) -> f64 {
    f64::from(n) / took.as_secs_f64()
}

fn report(when: &str, before: Option<u64>, n_sessions: u32) {
    let grown = resident_kib().zip(before).map(|(now, before)| now.saturating_sub(before));
    match grown.and_then(|it| it.checked_div(n_sessions.into())) {
        Some(kib) => println!("a session weighs {kib} KiB {when}"),
        None => println!("what a session weighs is not known here: there is no /proc/self/status"),
    }
}

/// Resident memory of this process, as the kernel counts it; `None` where it has no such file.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|it| it.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
