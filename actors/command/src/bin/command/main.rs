//! The command `ennead`: one prompt from a shell, a demonstration, and tools to look at transcripts.
//!
//! The only part of ennead that prints. Everything else returns text, events or errors; here they
//! go to standard output and standard error, and the end becomes an exit code.

mod args;
mod bench;
mod chosen;
mod config;
mod conformance;
mod demo;
mod doctor;
mod endpoint;
mod evaluate;
mod history;
mod host;
mod mcp;
mod observed;
mod print;
mod program;
mod prompter;
mod rules;
mod screen;
mod serve;
mod show;
mod simulate;
mod stream;
#[cfg(feature = "otlp")]
mod telemetry;
mod transcripts;
mod trusted;
mod vault;

use std::process::ExitCode;

use args::{Args, Command};
use ennead::{Ennead, Environment};
use ennead_command::{
    exit::{Exit, Failure},
    signals,
};
use observed::Observed;

// Turns make many small blocks on several threads. Measured against mimalloc: the CPU of a round is
// the same while sessions are few; a thousand that wait take a fifth less memory, and with it the
// CPU of touching that memory.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A host has a thread for each program, and for what each of them waits for.
const MAX_BLOCKING_THREADS: usize = 4096;

fn main() -> ExitCode {
    if let Some(ended) = Ennead::serve_helper() {
        return ended;
    }
    // Before anything else, as it may start this program once more.
    if let Err(error) = Environment::withdraw_keys() {
        show::problem(&format!("commands can read the keys of this process: {error}"));
    }
    let exit = match host::attached() {
        Ok(None) => match args::read() {
            Ok(Some(args)) => run(args),
            Ok(None) => Ok(Exit::Success),
            Err(failure) => Err(failure),
        },
        Ok(Some(exit)) => Ok(exit),
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
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let observed = Observed::begin(&runtime, &args.print.protocol.log)?;
    let exit = runtime.block_on(async {
        signals::let_large_writes_fail();
        match args.command {
            Some(Command::Demo(demo)) => demo::run(demo).await,
            Some(Command::Trace { file, html: None }) => transcripts::trace(&file),
            Some(Command::Trace { file, html: Some(page) }) => transcripts::page(&file, page),
            Some(Command::Verify { files, vault_keys }) => transcripts::verify(&files, &vault_keys),
            Some(Command::Vault(it)) => vault::vault(&it.command),
            Some(Command::Simulate(simulate)) => simulate::run(simulate).await,
            Some(Command::Serve(serve)) => serve::run(*serve).await,
            Some(Command::Host) => host::run().await,
            Some(Command::Bench(bench)) => bench::run(bench).await,
            Some(Command::Doctor(doctor)) => doctor::run(&doctor).await,
            Some(Command::Evaluate(args)) => evaluate::run(&args),
            Some(Command::History(history)) => history::run(&history),
            Some(Command::Config(config)) => config::run(&config, &args.print).await,
            Some(Command::Conformance { dir, out }) => conformance::run(&dir, out.as_deref()),
            None if stream::is_asked_for(&args.print) => stream::run(args.print).await,
            None => print::run(args.print).await,
        }
    });
    observed.end();
    // Reading standard input cannot be broken off, so it is not waited for.
    runtime.shutdown_background();
    exit
}
