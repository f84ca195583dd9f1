//! The command `ennead`: one prompt from a shell, a demonstration, and tools to look at transcripts.
//!
//! The only part of ennead that prints. Everything else returns text, events or errors; here they
//! go to standard output and standard error, and the end becomes an exit code.

mod args;
mod bench;
mod config;
mod conformance;
mod demo;
mod doctor;
mod endpoint;
mod evaluate;
mod mcp;
mod print;
mod prompter;
mod rules;
mod screen;
mod serve;
mod show;
mod simulate;
mod stream;
mod transcripts;
mod trusted;

use std::process::ExitCode;

use args::{Args, Command};
use ennead_command::{
    exit::{self, Exit, Failure},
    signals,
};
use ennead_tools::withdrawn_keys;

// Turns make many small blocks on several threads. Measured against mimalloc: the CPU of a round is
// the same while sessions are few; a thousand that wait take a fifth less memory, and with it the
// CPU of touching that memory.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(ended) = ennead_tools::process_tree::reaper::serve() {
        return ended;
    }
    // Before anything else, as it may start this program once more.
    let kept = withdrawn_keys::withdraw().and_then(|()| withdrawn_keys::hide_memory());
    if let Err(error) = kept {
        show::problem(&format!("commands can read the keys of this process: {error}"));
    }
    if std::env::var_os("RUST_LOG").is_some_and(|it| !it.is_empty()) {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_writer(std::io::stderr)
            .init();
    }
    let exit = match args::read() {
        Ok(Some(args)) => run(args),
        Ok(None) => Ok(Exit::Success),
        Err(failure) => Err(failure),
    };
    match exit {
        Ok(exit) => exit.into(),
        Err(failure) => {
            show::problem(&failure.to_string());
            failure.exit.into()
        }
    }
}

fn run(args: Args) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let exit = runtime.block_on(async {
        signals::let_large_writes_fail();
        match args.command {
            Some(Command::Demo(demo)) => demo::run(demo).await,
            Some(Command::Trace { file, html: None }) => transcripts::trace(&file),
            Some(Command::Trace { file, html: Some(page) }) => transcripts::page(&file, page),
            Some(Command::Verify { files }) => transcripts::verify(&files),
            Some(Command::Simulate(simulate)) => simulate::run(simulate).await,
            Some(Command::Serve(serve)) => serve::run(*serve).await,
            Some(Command::Bench(bench)) => bench::run(bench).await,
            Some(Command::Doctor(doctor)) => doctor::run(&doctor),
            Some(Command::Evaluate(args)) => evaluate::run(&args),
            Some(Command::Config(config)) => config::run(&config, &args.print).await,
            Some(Command::Conformance { dir, out }) => conformance::run(&dir, out.as_deref()),
            None if stream::is_asked_for(&args.print) => stream::run(args.print).await,
            None => print::run(args.print).await,
        }
    });
    // Reading standard input cannot be broken off; nobody waits for it.
    runtime.shutdown_background();
    exit
}
