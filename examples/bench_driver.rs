//! Drives sessions against a scripted model server, for measuring the runtime itself.
//!
//! The server's answers decide what happens: each session gets one prompt, runs one tool as often
//! as it is told, and ends. Everything is on: default permission mode with one allow rule for the
//! tool, transcripts on disk, gate, shaper chain, supervision. Prints `READY`, waits for a line,
//! runs, prints `DONE {…}`, waits for another line. Without `--base-url` it says how it is used.
//!
//! The transcripts stay in `ennead-bench-…` in the temporary directory for `ennead verify`; a run
//! removes those of runs that are more than a day old. Not younger ones: some file systems (ext4
//! without a journal) pass over inodes deleted in the last minutes one by one whenever a file is
//! made, and the next run would be billed a millisecond per session for the tidiness of this one.

#![allow(clippy::print_stdout, reason = "the driver speaks through its standard output")]
#![allow(clippy::disallowed_methods, reason = "the driver stands outside the tree and measures")]

use std::{
    io::{BufRead, Write},
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunRequest, SessionOptions,
    data::MessageKind,
    settings::{Durability, Settings},
    tool::{Concurrency, CustomTool, Tool, ToolEffect},
};
use futures::stream::{FuturesUnordered, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;

/// The allocator of the command.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Limits that no measurement meets.
const MAX_TURNS: NonZeroU32 = NonZeroU32::new(1000).unwrap();
const MAX_TOOL_CALLS: NonZeroU32 = NonZeroU32::new(100).unwrap();
const MAX_PARALLEL_CALLS: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// What the directories of runs begin with.
const PREFIX: &str = "ennead-bench-";

/// Input of the tool: which step, and how long it takes.
#[derive(Deserialize, JsonSchema)]
struct Step {
    /// The number of the step.
    i: u64,
    /// Milliseconds to wait.
    ms: u64,
}

/// How sessions are spread over threads; `BENCH_PLACEMENT` chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// `percore`: a runtime and an `Ennead` per core.
    PerCore,
    /// `threads`: one `Ennead` with threads of its own.
    Threads,
    /// `stealing`: one `Ennead` on the work-stealing runtime.
    Stealing,
}

struct Flags {
    base_url: String,
    n: usize,
    total: usize,
    k: usize,
    fan: usize,
    history_bytes: usize,
    stream: bool,
    threads: usize,
    oneshot: bool,
    durability: Durability,
    placement: Spread,
}

impl Flags {
    fn n_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.threads == 0 { cores } else { self.threads }
    }

    fn parse() -> Option<Self> {
        let args: Vec<String> = std::env::args().collect();
        let get = |name: &str| {
            args.iter().position(|it| it == name).and_then(|it| args.get(it + 1)).cloned()
        };
        let number = |name: &str, otherwise: usize| {
            get(name).and_then(|it| it.parse().ok()).unwrap_or(otherwise)
        };
        let n = number("--n", 1);
        let env = |name: &str| std::env::var(name).unwrap_or_default();
        Some(Self {
            base_url: get("--base-url")?,
            n,
            total: number("--total", n).max(n),
            k: number("--k", 2),
            fan: number("--fan", 1),
            history_bytes: number("--history-bytes", 0),
            stream: number("--stream", 1) != 0,
            threads: number("--threads", 0),
            oneshot: args.iter().any(|it| it == "--oneshot"),
            durability: match env("BENCH_DURABILITY").as_str() {
                "turn" => Durability::Turn,
                "entry" => Durability::Entry,
                _ => Durability::Process,
            },
            placement: match env("BENCH_PLACEMENT").as_str() {
                "threads" => Spread::Threads,
                "stealing" => Spread::Stealing,
                _ => Spread::PerCore,
            },
        })
    }
}

fn bench_tool() -> Result<Arc<dyn Tool>, Box<dyn std::error::Error>> {
    let tool =
        CustomTool::typed("bench_tool", "Does the step asked for.", |step: Step, _| async move {
            if 0 < step.ms {
                tokio::time::sleep(Duration::from_millis(step.ms)).await;
            }
            Ok(format!("ok {}", step.i))
        });
    let tool = tool.effect(ToolEffect::SideEffects).concurrency(Concurrency::Together { max: 64 });
    Ok(Arc::new(tool.build()?))
}

struct Driver {
    ennead: Ennead,
    flags: Arc<Flags>,
    tool: Arc<dyn Tool>,
    workspace: PathBuf,
    history: String,
}

impl Driver {
    /// One session from its opening to its end: tool runs and the last text.
    async fn session(&self, number: usize) -> Result<(usize, String), String> {
        let endpoint = Endpoint::messages(&self.flags.base_url, Some("none"));
        let limits = Settings::new()
            .max_turns(MAX_TURNS)
            .max_tool_calls(MAX_TOOL_CALLS)
            .max_parallel_calls(MAX_PARALLEL_CALLS);
        let mut options = SessionOptions::new(&self.workspace, endpoint)
            .model("mock")
            .durability(self.flags.durability)
            .settings(limits)
            .allow("bench_tool")
            .map_err(|it| it.to_string())?;
        options.tools = vec![Arc::clone(&self.tool)];
        options.system_prompt = Some("You are a benchmark agent.".into());
        options.streams = self.flags.stream;
        if !self.history.is_empty() {
            options.id = Some(self.earlier(number)?.into());
        }
        let session = self.ennead.open(options).await.map_err(|it| it.to_string())?;
        let prompt = format!("Use the tool as asked, then answer. BENCHSID:{number} go");
        let outcome = session.run(RunRequest::new(prompt)).await.map_err(|it| it.to_string())?;
        session.close().await;
        if let Some(error) = outcome.error {
            return Err(error);
        }
        let results = outcome.messages.iter().filter(|it| it.kind == MessageKind::ToolResults);
        let ok = results.filter(|it| {
            it.blocks.iter().any(|it| {
                it.as_tool_result().is_some_and(|(_, text, bad)| !bad && text.starts_with("ok"))
            })
        });
        Ok((ok.count(), outcome.text))
    }

    /// Leaves an earlier conversation on disk, as another program would have, to go on with.
    fn earlier(&self, number: usize) -> Result<String, String> {
        let id = format!("00000000-0000-7000-8000-{number:012x}");
        let root = self.workspace.join(".transcripts");
        std::fs::create_dir_all(&root).map_err(|it| it.to_string())?;
        let file = root.join(format!("{id}.jsonl"));
        std::fs::write(file, self.history.replace("SESSION", &id)).map_err(|it| it.to_string())?;
        Ok(id)
    }
}

/// A past conversation of this many bytes, as transcript lines without seals.
fn history(bytes: usize) -> String {
    let line = "In the earlier step we looked at the module and noted what it does, line by line. ";
    let (user, assistant) = (line.repeat(8), line.repeat(40));
    let mut lines = String::new();
    let mut parent = "null".to_owned();
    for i in 0..bytes / (user.len() + assistant.len()) {
        for (kind, text) in [("user", &user), ("assistant", &assistant)] {
            let uuid = format!("\"{i}-{kind}\"");
            lines.push_str(&format!(
                "{{\"type\":\"{kind}\",\"uuid\":{uuid},\"parentUuid\":{parent},\"sessionId\":\"SESSION\",\
                 \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"isSidechain\":false,\"message\":\
                 {{\"role\":\"{kind}\",\"content\":[{{\"type\":\"text\",\"text\":\"[{i}] {text}\"}}]}}}}\n"
            ));
            parent = uuid;
        }
    }
    lines
}

fn wait_for_line() {
    let mut line = String::new();
    // At the end of input there is nothing to wait for.
    let _ended = std::io::stdin().lock().read_line(&mut line);
}

fn say(text: &str) {
    println!("{text}");
    let _closed = std::io::stdout().flush();
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(flags) = Flags::parse() else {
        say("usage: bench_driver --base-url URL [--n N --total T --k K --fan F --history-bytes H]");
        return Ok(());
    };
    let runs = std::env::temp_dir();
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let name = format!("{PREFIX}{}-{}", since_1970.as_millis(), std::process::id());
    let workspace = runs.join(name);
    std::fs::create_dir_all(&workspace)?;
    let flags = Arc::new(flags);
    let begun = match flags.placement {
        Spread::PerCore => per_core(&flags, &workspace),
        Spread::Threads => one_runtime(&flags, &workspace, Placement::Threads(flags.n_threads())),
        Spread::Stealing => one_runtime(&flags, &workspace, Placement::Ambient),
    };
    let (tally, wall_s) = begun?;
    let (ok, total, mut errors) = (tally.ok, flags.total, tally.errors);
    errors.truncate(3);
    let done = serde_json::json!({ "ok": ok, "total": total, "wall_s": wall_s, "errors": errors });
    say(&format!("DONE {done}"));
    if !flags.oneshot {
        wait_for_line();
    }
    remove_old(&runs)?;
    Ok(())
}

/// Removes what runs left more than a day ago.
fn remove_old(runs: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(runs)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if Duration::from_secs(24 * 3600) < age {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// What came of the sessions.
#[derive(Default)]
struct Tally {
    ok: usize,
    errors: Vec<String>,
}

type Ended = Result<(Tally, f64), Box<dyn std::error::Error>>;

/// One thread per core, each with a runtime, an `Ennead` and its share of the sessions: nobody
/// ever wakes another thread. This is how a server with a thread per core embeds ennead.
fn per_core(flags: &Arc<Flags>, workspace: &Path) -> Ended {
    let n_threads = flags.n_threads().min(flags.n);
    let next = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Barrier::new(n_threads + 1));
    let threads: Vec<_> = (0..n_threads)
        .map(|place| {
            let (flags, workspace) = (Arc::clone(flags), workspace.to_owned());
            let (next, gate) = (Arc::clone(&next), Arc::clone(&gate));
            std::thread::spawn(move || -> Result<Tally, String> {
                let runtime = ennead::Placement::runtime_builder().build();
                runtime.map_err(|it| it.to_string())?.block_on(async {
                    let driver = Driver::start(&flags, &workspace, Placement::Ambient).await;
                    let warm = match &driver {
                        Ok(driver) => driver.warm_up(place, n_threads).await,
                        Err(error) => Err(error.clone()),
                    };
                    gate.wait();
                    gate.wait();
                    warm?;
                    let share = flags.n / n_threads + usize::from(place < flags.n % n_threads);
                    Ok(driver?.pump(share, &next).await)
                })
            })
        })
        .collect();
    gate.wait();
    ready(flags);
    let started = Instant::now();
    gate.wait();
    let mut tally = Tally::default();
    for thread in threads {
        let part = thread.join().map_err(|_| "a thread panicked")??;
        tally.ok += part.ok;
        tally.errors.extend(part.errors);
    }
    Ok((tally, started.elapsed().as_secs_f64()))
}

/// One runtime for the driver; sessions live on it, or on threads of the `Ennead`.
fn one_runtime(flags: &Arc<Flags>, workspace: &Path, placement: Placement) -> Ended {
    let mut builder = match placement {
        Placement::Ambient => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    if placement == Placement::Ambient {
        builder.worker_threads(flags.n_threads());
    }
    builder.enable_all().build()?.block_on(async {
        let driver = Driver::start(flags, workspace, placement).await?;
        driver.warm_up(0, 1).await?;
        ready(flags);
        let started = Instant::now();
        let tally = driver.pump(flags.n, &AtomicUsize::new(0)).await;
        Ok((tally, started.elapsed().as_secs_f64()))
    })
}

fn ready(flags: &Flags) {
    if !flags.oneshot {
        say("READY");
        wait_for_line();
    }
}

impl Driver {
    async fn start(
        flags: &Arc<Flags>,
        workspace: &Path,
        placement: Placement,
    ) -> Result<Self, String> {
        let options = Options::default().placement(placement);
        Ok(Self {
            ennead: Ennead::start(options).await.map_err(|it| it.to_string())?,
            tool: bench_tool().map_err(|it| it.to_string())?,
            history: history(flags.history_bytes),
            workspace: workspace.to_owned(),
            flags: Arc::clone(flags),
        })
    }

    /// Three sessions among all threads, so that first-use costs are not billed to the run.
    async fn warm_up(&self, place: usize, n_threads: usize) -> Result<(), String> {
        let mine = (0..3).filter(|it| it % n_threads == place && !self.flags.oneshot);
        for i in mine {
            self.session(1_000_000_000 + i).await?;
        }
        Ok(())
    }

    /// Runs sessions until none is left, this many of them at once.
    async fn pump(&self, at_once: usize, next: &AtomicUsize) -> Tally {
        let want = if self.flags.k == 0 { 0 } else { self.flags.k * self.flags.fan };
        let (mut tally, mut live) = (Tally::default(), FuturesUnordered::new());
        loop {
            while live.len() < at_once {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if self.flags.total <= number {
                    break;
                }
                live.push(self.session(number));
            }
            match live.next().await {
                None => return tally,
                Some(Ok((tools, text))) if tools == want && text.contains("BENCH-DONE") => {
                    tally.ok += 1;
                }
                Some(Ok((tools, text))) => {
                    let text: String = text.chars().take(80).collect();
                    tally.errors.push(format!("{tools} tool runs (want {want}), text {text:?}"));
                }
                Some(Err(error)) => tally.errors.push(error),
            }
        }
    }
}
