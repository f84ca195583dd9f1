//! A world for the tests of tools: a workspace in a temporary directory, and calls into it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ennead_runtime::{
    ids::ShellId,
    ports::{
        BoxFuture, Cancel, Clock, CommittedOutcome, HostProcess, Tool, ToolContext, WorkGuard,
        shells::{BackgroundShell, Detached, KeepShells, ShellStatus, ShellsFull},
    },
    redaction::{NumberSecrets, Redactor},
    step1_settings_resolution::ShellSettings,
    step7_permission_gate::{
        ResolvedPath,
        path_resolution::{self, PathEntry},
    },
    time::Timestamp,
    tool::{Access, ToolCall, ToolErrorKind, ToolMemory, ToolOutcome},
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    built_in::{BuiltIn, Declared},
    shells::Shells,
};

#[derive(Debug)]
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

#[derive(Debug, Default)]
pub(crate) struct Switch {
    on: AtomicBool,
    changed: Arc<Notify>,
}

impl Switch {
    pub(crate) fn cancel(&self) {
        self.on.store(true, Ordering::SeqCst);
        self.changed.notify_one();
    }
}

impl Cancel for Switch {
    fn is_cancelled(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        let changed = self.changed.clone();
        Box::pin(async move { changed.notified().await })
    }
}

/// The commands of a session in the background; `held` counts the guards that are kept.
#[derive(Debug, Default)]
pub(crate) struct TestShells {
    pub(crate) shells: Shells,
    pub(crate) held: Arc<()>,
}

impl KeepShells for TestShells {
    fn new_name(&self) -> ShellId {
        self.shells.new_name()
    }

    fn keep(
        &self,
        settings: ShellSettings,
        shell: Arc<dyn BackgroundShell>,
    ) -> Result<WorkGuard, ShellsFull> {
        self.shells.keep(settings, shell)?;
        Ok(WorkGuard::new(Arc::clone(&self.held)))
    }

    fn find(&self, shell: &ShellId) -> Option<Arc<dyn BackgroundShell>> {
        self.shells.find(shell)
    }

    fn running(&self) -> Vec<ShellStatus> {
        self.shells.running()
    }
}

/// Runs hosted work in tasks of the test's runtime.
#[derive(Debug, Default)]
pub(crate) struct TaskHost {
    pub(crate) shells: TestShells,
    /// Each task, and whether it was detached.
    pub(crate) tasks: Mutex<Vec<(tokio::task::JoinHandle<()>, Detached)>>,
}

impl HostProcess for TaskHost {
    #[expect(clippy::disallowed_methods, reason = "stands for the actor of a command")]
    fn host(&self, work: BoxFuture<'static, ()>, detached: Detached) {
        self.tasks.lock().unwrap().push((tokio::spawn(work), detached));
    }

    fn shells(&self) -> &dyn KeepShells {
        &self.shells
    }
}

/// Numbers every secret alike.
#[derive(Debug)]
struct OneNumber;

impl NumberSecrets for OneNumber {
    fn number(&self, _: &'static str, _: &[u8]) -> Option<u32> {
        Some(1)
    }
}

/// A workspace, what the session remembers, and everything a call needs.
pub(crate) struct World {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) context: ToolContext,
    pub(crate) hidden: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let spill = root.with_file_name("spill");
        let mut context = ToolContext::new(
            "session".into(),
            root.to_str().unwrap(),
            std::env::temp_dir().to_str().unwrap(),
            Arc::new(Switch::default()),
            Arc::new(StoppedClock),
        );
        context.spill_directory = spill.to_str().unwrap().into();
        context.redactor = Some(Redactor::new(Arc::default(), Arc::new(OneNumber)));
        context.redacts_results = true;
        Self { _directory: directory, root, context, hidden: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().into()
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        self.path(name)
    }

    pub(crate) fn content(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.root.join(name)).unwrap()).unwrap()
    }

    /// Starts a call as the dispatcher would, with the path that the gate would have looked at.
    pub(crate) fn start<B: BuiltIn>(&self, input: Value) -> BoxFuture<'static, ToolOutcome> {
        let tool = Declared::<B>::new();
        let text = input.to_string();
        assert_eq!(tool.check_input(&text), Ok(()));
        let path = match &tool.spec().access {
            Access::ReadPath { field } | Access::WritePath { field } => {
                let given = input.get(&**field).and_then(Value::as_str);
                Some(resolve(given.unwrap_or(&self.context.workspace)))
            }
            _ => None,
        };
        let call = ToolCall::new("toolu_1".into(), tool.spec().name.clone(), text);
        let hidden = self.hidden.clone().into();
        let mut context = self.context.clone();
        context.committed = CommittedOutcome::default();
        Box::pin(Declared::<B>::call(&call, path, hidden, context))
    }

    /// Runs a call to its end and remembers what it notes.
    pub(crate) async fn run<B: BuiltIn>(&mut self, input: Value) -> ToolOutcome {
        let outcome = self.start::<B>(input).await;
        let mut memory = ToolMemory::clone(&self.context.memory);
        outcome.notes.iter().for_each(|note| memory.fold(note));
        self.context.memory = Arc::new(memory);
        assert!(!outcome.text.is_empty());
        outcome
    }

    /// Runs a call that succeeds.
    #[track_caller]
    pub(crate) fn ok<B: BuiltIn>(&mut self, input: Value) -> ToolOutcome {
        let outcome = block_on(self.run::<B>(input));
        assert_eq!(outcome.error, None, "{}", outcome.text);
        outcome
    }

    /// Runs a call that fails, and returns what the model reads.
    #[track_caller]
    pub(crate) fn failed<B: BuiltIn>(&mut self, input: Value) -> String {
        let outcome = block_on(self.run::<B>(input));
        assert_eq!(outcome.error, Some(ToolErrorKind::Failed), "{}", outcome.text);
        outcome.text
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn structured(outcome: &ToolOutcome) -> Value {
    serde_json::from_str(outcome.structured.as_deref().unwrap()).unwrap()
}

/// Returns where a path leads, as the gate receives it.
pub(crate) fn resolve(given: &str) -> ResolvedPath {
    path_resolution::resolve(given, "/", "/", &mut |path| {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { return PathEntry::Missing };
        match metadata.file_type() {
            kind if kind.is_symlink() => {
                PathEntry::Link(std::fs::read_link(path).unwrap().to_str().unwrap().into())
            }
            kind if kind.is_dir() => PathEntry::Directory,
            kind if kind.is_file() => PathEntry::File,
            _ => PathEntry::Special,
        }
    })
}
