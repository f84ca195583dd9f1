//! `bench --passive` and `bench --transcript`: what is measured in a process of its own.

use std::{path::Path, process::Command};

use ennead_command::{
    bench::{Known, Prepared, Resumed},
    exit::{Exit, Failure},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{failure, print};
use crate::args;

/// Makes the sessions and has another process measure them, or is that process.
pub(super) async fn run(args: &args::BenchArgs) -> Result<Exit, Failure> {
    if let Some(made) = &args.made {
        return match args.transcript {
            Some(_) => one_line(&Resumed::measure(made).await.map_err(|it| failure(&it))?),
            None => one_line(&Known::measure(made).await.map_err(|it| failure(&it))?),
        };
    }
    if let Some(megabytes) = args.transcript {
        let prepared = Resumed::prepare(u64::from(megabytes) * 1_000_000).await;
        let prepared = prepared.map_err(|it| failure(&it))?;
        let mut resumed: Vec<Resumed> = Vec::new();
        for _ in 0..3 {
            resumed.push(measured("--transcript", megabytes, &prepared.directory).await?);
        }
        return print(args.json, &resumed, resumed_table);
    }
    let n_sessions = args.passive.unwrap_or_default();
    let prepared: Prepared = Known::prepare(n_sessions).await.map_err(|it| failure(&it))?;
    let known: Known = measured("--passive", n_sessions, &prepared.directory).await?;
    print(args.json, &known, known_table)
}

fn one_line(figures: &impl Serialize) -> Result<Exit, Failure> {
    let json = serde_json::to_string(figures).map_err(|it| Failure::of(Exit::RunFailed, &it))?;
    crate::show::result(&json)?;
    Ok(Exit::Success)
}

/// Has this program measure what lies in a directory.
async fn measured<T: DeserializeOwned + Send + 'static>(
    flag: &str,
    n: u32,
    directory: &Path,
) -> Result<T, Failure> {
    let failed = |it: &dyn std::error::Error| Failure::of(Exit::RunFailed, it);
    let program = std::env::current_exe().map_err(|it| failed(&it))?;
    let mut command = Command::new(program);
    command.args(["bench", flag, &n.to_string(), "--made"]).arg(directory);
    command.stderr(std::process::Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.map_err(|it| failed(&it))?.map_err(|it| failed(&it))?;
    serde_json::from_slice(&output.stdout).map_err(|it| failed(&it))
}

fn known_table(it: &Known) -> String {
    let (before, known) = (it.before_kib, it.known_kib);
    format!(
        "{} sessions of a server, none of them an actor\n\
         resident memory without them   {before} KiB\n\
         resident memory with them      {known} KiB\n\
         each                           {} bytes\n\
         until the server was ready     {} ms\n",
        it.n_sessions,
        it.bytes_each(),
        it.start_ms
    )
}

fn resumed_table(resumed: &Vec<Resumed>) -> String {
    let title = ["transcript, MB", "index", "open, ms", "peak of memory, KiB"];
    let [bytes, index, open, peak] = title;
    let mut text = format!("{bytes:<18}{index:>8}{open:>12}{peak:>22}\n");
    for it in resumed {
        let tenths = it.n_bytes / 100_000;
        let (bytes, index) =
            (format!("{}.{}", tenths / 10, tenths % 10), if it.is_indexed { "yes" } else { "no" });
        text.push_str(&format!("{bytes:<18}{index:>8}{:>12}{:>22}\n", it.open_ms, it.peak_kib));
    }
    text
}
