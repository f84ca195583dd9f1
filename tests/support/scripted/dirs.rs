//! A directory for each test, and sessions in it on the scripted model.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead::{
    Endpoint, Ennead, Event, Options, Placement, RunOutcome, SessionHandle, SessionOptions,
    data::Numbered, testing::ManualClock,
};
use serde_json::Value;
use tempfile::TempDir;

use super::Scripted;
use crate::support::{event_order::EventOrder, until::within};

/// What clocks say in these tests: 2026-09-21.
pub(crate) const NOW: u64 = 1_790_000_000_000;

/// The id of every session that is opened here.
pub(crate) const SESSION: &str = "5f1c0000-0000-4000-8000-0000000000aa";

/// A directory for a workspace, a home and transcripts.
pub(crate) struct TestDirs {
    directory: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl TestDirs {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["workspace", "home", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory, clock: Arc::new(ManualClock::at(NOW)) }
    }

    /// An absolute path in it; `workspace/…`, `home/…`, `outside/…`, `transcripts/…`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    /// The same as text.
    pub(crate) fn text(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }

    /// Writes a file there.
    pub(crate) fn write(&self, path: &str, text: &str) -> String {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// Writes an executable script there.
    pub(crate) fn script(&self, path: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let file = self.write(path, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// What an `Ennead` on this model is started with.
    pub(crate) fn options(&self, model: &Arc<Scripted>) -> Options {
        Options::default()
            .placement(Placement::Ambient)
            .seed(7)
            .clock(self.clock.clone())
            .transport(model.clone())
    }

    pub(crate) async fn start(&self, model: &Arc<Scripted>) -> Ennead {
        Ennead::start(self.options(model)).await.unwrap()
    }

    /// Returns options of a session in these directories, on the scripted model.
    pub(crate) fn session(&self) -> SessionOptions {
        let endpoint = Endpoint::messages("http://model.test", None);
        let mut options = SessionOptions::new(self.path("workspace"), endpoint);
        options.home = Some(self.path("home"));
        options.transcripts = Some(self.path("transcripts"));
        options.id = Some(SESSION.into());
        options
    }

    /// The lines of the transcript as JSON, those of several records record by record.
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines(&self.path(&format!("transcripts/{SESSION}.jsonl")))
    }

    /// The lines of the transcript as they are.
    pub(crate) fn whole_lines(&self) -> Vec<Value> {
        let file = self.path(&format!("transcripts/{SESSION}.jsonl"));
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    /// The transcripts of sub-agents, by path.
    pub(crate) fn sidechains(&self) -> Vec<PathBuf> {
        let directory = self.path(&format!("transcripts/{SESSION}/subagents"));
        let entries =
            fs::read_dir(directory).map(|it| it.flatten().collect()).unwrap_or_else(|_| Vec::new());
        let mut files: Vec<_> = entries.into_iter().map(|it| it.path()).collect();
        files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        files.sort();
        files
    }

    /// Runs one prompt in one session of one `Ennead`.
    pub(crate) async fn run(&self, model: &Arc<Scripted>, options: SessionOptions) -> RunOutcome {
        self.run_with_events(model, options).await.0
    }

    /// The same, with what it told.
    pub(crate) async fn run_with_events(
        &self,
        model: &Arc<Scripted>,
        options: SessionOptions,
    ) -> (RunOutcome, Vec<Event>) {
        let ennead = self.start(model).await;
        let session = ennead.open(options).await.unwrap();
        let mut events = session.events();
        let outcome = session.prompt("go").await.unwrap();
        let seen = until_end(&mut events).await;
        finish(ennead, session).await;
        (outcome, seen)
    }
}

/// The lines of a transcript as JSON, those of several records record by record.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|it| panic!("{}: {it}", file.display()));
    text.lines().flat_map(apart).collect()
}

/// What is on a line of a transcript: a message, or each of its records as it would be on a line of its own.
pub(crate) fn apart(line: &str) -> Vec<Value> {
    let mut first: Value = serde_json::from_str(line).unwrap();
    let Some(Value::Array(then)) = first.as_object_mut().unwrap().remove("then") else {
        return vec![first];
    };
    let of_line = |name: &&str| first.get(*name).map(|it| ((*name).to_owned(), it.clone()));
    let frame = ["type", "v", "at", "run", "turn", "seq"].iter().filter_map(of_line);
    let frame: serde_json::Map<_, _> = frame.collect();
    let whole = then.into_iter().map(|mut record| {
        let own = std::mem::take(record.as_object_mut().unwrap());
        Value::Object(frame.clone().into_iter().chain(own).collect())
    });
    let rest: Vec<Value> = whole.collect();
    [first].into_iter().chain(rest).collect()
}

/// Returns the events up to the end of the run, each of which has its place in the order.
pub(crate) async fn until_end(events: &mut ennead::Events) -> Vec<Event> {
    let (mut seen, mut order) = (Vec::new(), EventOrder::default());
    while let Some(next) = within("the end of a run", events.next()).await {
        let Numbered { event, stands_for, .. } = next;
        order.take(&event, stands_for == 1);
        let is_end = matches!(event, Event::RunFinished { .. } | Event::RunLost { .. });
        seen.push(event);
        if is_end {
            break;
        }
    }
    seen
}

/// Closes a session and its `Ennead`.
pub(crate) async fn finish(ennead: Ennead, session: SessionHandle) {
    session.close().await;
    ennead.shutdown().await;
}

/// Returns the texts of all alerts among these events.
pub(crate) fn alerts(seen: &[Event]) -> Vec<String> {
    let alerts = seen.iter().filter_map(|it| match it {
        Event::Alert { what } => Some(what.to_string()),
        _ => None,
    });
    alerts.collect()
}
