//! Tools that wait, fail and count.

use std::sync::{Arc, Mutex};

use ennead::tool::{Access, Concurrency, CustomTool, Tool, ToolOutcome};
use ennead_runtime::ports::{HostProcess, WorkGuard, shells::Detached};

use super::barrier::Barrier;

/// What the tools of a test share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workshop {
    /// Calls of `wait` block here.
    pub(crate) wait: Barrier,
    /// Calls of `other` block here.
    pub(crate) other: Barrier,
    /// Calls of `wait_blocking` block here, on a thread.
    pub(crate) thread: Barrier,
    /// What calls of `hoard` have kept.
    pub(crate) hoard: Arc<Mutex<Vec<WorkGuard>>>,
    /// What the last call of `host` was given to run processes.
    pub(crate) processes: Arc<Mutex<Option<Arc<dyn HostProcess>>>>,
    /// Tools by name, in the order in which they were run.
    pub(crate) runs: Arc<Mutex<Vec<String>>>,
}

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},"size":{"type":"integer"}}}"#;

impl Workshop {
    /// All tools.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let together = Concurrency::Together { max: 10 };
        let echo = self.note("echo");
        let look = self.note("look");
        let asked = self.note("asked");
        let (wait, other) = (self.wait.clone(), self.other.clone());
        let (wait_noted, other_noted) = (self.note("wait"), self.note("other"));
        let (thread, thread_noted) = (self.thread.clone(), self.note("settle"));
        let (hoard, slow) = (Arc::clone(&self.hoard), self.thread.clone());
        let (processes, waiting) = (Arc::clone(&self.processes), self.wait.clone());
        let panic_noted = self.note("panics");
        let tools = [
            CustomTool::raw("echo", "Says that it ran.", SCHEMA, move |input, _| {
                echo(&input);
                let size = serde_json::from_str::<serde_json::Value>(&input).unwrap()["size"]
                    .as_u64()
                    .unwrap_or(0);
                let text = format!("ran {input}{}", "x".repeat(usize::try_from(size).unwrap()));
                async move { ToolOutcome::ok(text) }
            })
            .access(Access::Free)
            .concurrency(together)
            .output_cap(Some(10_000_000))
            .build(),
            CustomTool::raw("look", "Looks at a path.", SCHEMA, move |input, _| {
                look(&input);
                async { ToolOutcome::ok("looked") }
            })
            .read_only()
            .access(Access::ReadPath { field: "path".into() })
            .build(),
            CustomTool::raw("asked", "Needs a permission.", SCHEMA, move |input, _| {
                asked(&input);
                async { ToolOutcome::ok("was asked") }
            })
            .build(),
            CustomTool::raw("wait", "Waits.", SCHEMA, move |input, _| {
                wait_noted(&input);
                let wait = wait.clone();
                async move {
                    wait.pass().await;
                    ToolOutcome::ok("waited")
                }
            })
            .access(Access::Free)
            .concurrency(together)
            .build(),
            CustomTool::raw("other", "Waits elsewhere.", SCHEMA, move |input, _| {
                other_noted(&input);
                let other = other.clone();
                async move {
                    other.pass().await;
                    ToolOutcome::ok("waited elsewhere")
                }
            })
            .access(Access::Free)
            .build(),
            CustomTool::raw("settle", "Is done, and then waits on a thread.", SCHEMA, {
                move |input, context| {
                    thread_noted(&input);
                    let thread = thread.clone();
                    async move {
                        let work = tokio::task::spawn_blocking(move || {
                            context.committed.set(ToolOutcome::ok("it is done"));
                            thread.pass_blocking();
                            drop(context.guard);
                        });
                        work.await.unwrap();
                        ToolOutcome::ok("it is done and over")
                    }
                }
            })
            .access(Access::Free)
            .build(),
            CustomTool::raw("hoard", "Never lets go.", SCHEMA, move |_, context| {
                hoard.lock().unwrap().push(context.guard);
                std::future::pending()
            })
            .access(Access::Free)
            .build(),
            CustomTool::raw("host", "Hosts work that heeds nobody.", SCHEMA, move |_, context| {
                let host = context.processes.unwrap();
                let (waiting, hold) = (waiting.clone(), context.guard);
                let work = Box::pin(async move {
                    let _hold = hold;
                    waiting.pass().await;
                });
                host.host(work, Detached::default());
                *processes.lock().unwrap() = Some(host);
                std::future::pending()
            })
            .access(Access::Free)
            .build(),
            CustomTool::raw("slow_write", "Writes on a thread.", SCHEMA, move |_, context| {
                let slow = slow.clone();
                async move {
                    let work = tokio::task::spawn_blocking(move || {
                        slow.pass_blocking();
                        if !context.cancel.is_cancelled() {
                            let file = std::path::Path::new(&*context.workspace).join("written");
                            std::fs::write(file, "too late").unwrap();
                        }
                        drop(context.guard);
                    });
                    work.await.unwrap();
                    ToolOutcome::ok("written")
                }
            })
            .access(Access::Free)
            .build(),
            CustomTool::raw("panics", "Panics.", SCHEMA, move |input, _| {
                panic_noted(&input);
                async { panic!("a tool panics") }
            })
            .access(Access::Free)
            .concurrency(together)
            .build(),
        ];
        tools.into_iter().map(|it| Arc::new(it.unwrap()) as Arc<dyn Tool>).collect()
    }

    /// How often a tool was run.
    pub(crate) fn n_runs(&self, tool: &str) -> usize {
        self.runs.lock().unwrap().iter().filter(|it| *it == tool).count()
    }

    fn note(&self, tool: &'static str) -> impl Fn(&str) + Send + Sync + 'static {
        let runs = Arc::clone(&self.runs);
        move |_| runs.lock().unwrap().push(tool.to_owned())
    }
}

/// A tool that waits until a test lets it through.
pub(crate) fn wait_at(name: &str, barrier: &Barrier) -> Arc<dyn Tool> {
    let barrier = barrier.clone();
    let wait = CustomTool::raw(name, "Waits.", r#"{"type":"object"}"#, move |_, _| {
        let barrier = barrier.clone();
        async move {
            barrier.pass().await;
            ToolOutcome::ok("waited")
        }
    });
    Arc::new(wait.access(Access::Free).build().unwrap())
}
