//! The demonstration: the simulated model surveys a directory with real tools and sub-agents.
//!
//! The model is a playbook (`survey`) behind a real HTTP server on loopback; everything else is
//! what any session has. Folders that are not the reader's own work are hidden by deny rules.

use std::{
    fmt, fs, io,
    num::NonZeroU32,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead::{
    Endpoint, Ennead, Events, OpenError, OptionError, Options, RunError, RunOutcome, SessionHandle,
    SessionOptions, StartError,
    internal::{Simulator, embedded, prepare},
    settings::Settings,
    testing::Playbook,
};
use ennead_runtime::{
    event::{Event, Numbered},
    ports::Tool,
    run::RunRequest,
};
use ennead_simulated::PlaybookError;
use futures::future::{self, Either};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::simulate;

/// What a survey leaves out, wherever it lies.
pub const HIDDEN: [&str; 4] = [".git", "target", "node_modules", ".transcripts"];

/// Turns that the coordinator may take. It sees 250 files a turn while it looks for folders, so
/// the default of 25 would end at a few thousand.
const MAX_TURNS: NonZeroU32 = NonZeroU32::new(150).unwrap();

/// Sub-agents of one survey; the playbook sends at most 45.
const MAX_AGENTS: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// A demonstration to be run.
pub struct Demo {
    root: PathBuf,
    transcripts: Option<PathBuf>,
    tools: Vec<Arc<dyn Tool>>,
}

impl fmt::Debug for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demo").field("root", &self.root).finish_non_exhaustive()
    }
}

/// What a demonstration left.
#[derive(Debug)]
pub struct DemoOutcome {
    /// How the coordinator's run ended; its text is the summary.
    pub outcome: RunOutcome,
    /// The coordinator's transcript; those of its sub-agents lie next to it.
    pub transcript: PathBuf,
}

/// Why there is no demonstration. One line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// A file that is hidden from the model cannot be named in a rule.
    #[error(transparent)]
    Rule(#[from] OptionError),
    /// There is nothing to survey.
    #[error("cannot survey {}: {cause}", path.display())]
    NoDirectory {
        /// Directory that cannot be surveyed.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// Its path cannot be put into a prompt.
    #[error("cannot survey {}: its path holds a line break or is not UTF-8", path.display())]
    NoName {
        /// Directory whose name cannot be put into a prompt.
        path: PathBuf,
    },
    /// No place for transcripts.
    #[error("cannot write transcripts to {}: {cause}", path.display())]
    NoTranscripts {
        /// Directory that transcripts were to be written to.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The simulated model cannot be served.
    #[error("cannot serve the simulated model on 127.0.0.1: {0}")]
    Serve(io::Error),
    /// The playbook of this build is broken.
    #[error(transparent)]
    Playbook(#[from] PlaybookError),
    /// The runtime does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The run left no outcome.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Demo {
    /// Makes a survey of `root`. Transcripts go to `.transcripts` in it, or to a directory for temporary files when
    /// that cannot be written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), transcripts: None, tools: Vec::new() }
    }

    /// Writes the transcripts to this directory.
    #[must_use]
    pub fn transcripts(mut self, directory: impl Into<PathBuf>) -> Self {
        self.transcripts = Some(directory.into());
        self
    }

    /// Adds a tool, or replaces the one of the same name.
    #[must_use]
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Runs it. `watch` sees every event of the coordinator and, wrapped, of its sub-agents;
    /// `opened` is given the session once, for the one that wants to interrupt it.
    ///
    /// # Errors
    ///
    /// [`DemoError`]. A run that ended badly is not an error: see its outcome.
    pub async fn run(
        self,
        opened: impl FnOnce(SessionHandle),
        mut watch: impl FnMut(&Numbered),
    ) -> Result<DemoOutcome, DemoError> {
        let survey = self.prepare()?;
        let (listener, server) = listen().await?;
        let stop = CancellationToken::new();
        let conversation = async {
            let ennead = Ennead::start(Options::default()).await?;
            let session = ennead.open(survey.session(&server)?).await?;
            opened(session.clone());
            let mut events = session.events();
            let run = std::pin::pin!(session.run(survey.request()));
            let watching = std::pin::pin!(watch_run(&mut events, &mut watch));
            let outcome = match future::select(run, watching).await {
                Either::Left((outcome, watching)) => {
                    if outcome.is_ok() {
                        watching.await;
                    }
                    outcome
                }
                Either::Right(((), run)) => run.await,
            };
            let transcript = session.transcript().to_owned();
            session.close().await;
            ennead.shutdown().await;
            Ok(DemoOutcome { outcome: outcome?, transcript })
        };
        let conversation = async {
            let result = conversation.await;
            stop.cancel();
            result
        };
        let serving = simulate::serve(simulator()?, listener, stop.clone());
        let (served, result) = future::join(serving, conversation).await;
        served.map_err(DemoError::Serve)?;
        result
    }

    /// Looks at the places, before anything is started.
    pub(super) fn prepare(self) -> Result<Survey, DemoError> {
        let Self { root, transcripts, tools } = self;
        let no_directory = |cause| DemoError::NoDirectory { path: root.clone(), cause };
        let real = root.canonicalize().map_err(no_directory)?;
        fs::read_dir(&real).map_err(no_directory)?;
        let name = real.to_str().filter(|it| !it.contains(['\n', '\r'])).map(str::to_owned);
        let name = name.ok_or(DemoError::NoName { path: real.clone() })?;
        let transcripts = match transcripts {
            Some(path) => match writable(&path) {
                Ok(()) => path,
                Err(cause) => return Err(DemoError::NoTranscripts { path, cause }),
            },
            None => default_transcripts(&real)?,
        };
        // The session sees the place as it really is.
        let transcripts = transcripts.canonicalize().unwrap_or(transcripts);
        Ok(Survey { root: real, name, transcripts, tools })
    }
}

/// A survey whose places are known.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    root: PathBuf,
    name: String,
    pub(super) transcripts: PathBuf,
    tools: Vec<Arc<dyn Tool>>,
}

impl Survey {
    /// Returns the prompt that the playbook answers.
    pub(super) fn prompt(&self) -> String {
        format!("Survey the directory {}", self.name)
    }

    /// Returns the directory that is surveyed.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn request(&self) -> RunRequest {
        RunRequest::new(self.prompt()).origin("demo")
    }

    /// Makes the options of the survey's session, whose model is at `server`.
    ///
    /// # Errors
    ///
    /// When the name of a hidden file makes no rule.
    pub(super) fn session(&self, server: &str) -> Result<SessionOptions, OptionError> {
        let settings =
            Settings::new().model("simulated").max_turns(MAX_TURNS).max_agents(MAX_AGENTS);
        let mut options = SessionOptions::new(&self.root, Endpoint::messages(server, None))
            .settings(settings)
            .transcripts(&self.transcripts);
        for name in HIDDEN {
            options = options.deny(&format!("Read({name})"))?;
        }
        for tool in &self.tools {
            options = options.tool(Arc::clone(tool));
        }
        Ok(options)
    }
}

/// Binds a loopback port; `(listener, base address)`.
pub(super) async fn listen() -> Result<(TcpListener, String), DemoError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(DemoError::Serve)?;
    let address = listener.local_addr().map_err(DemoError::Serve)?;
    Ok((listener, format!("http://{address}")))
}

/// Makes the model of the demonstration.
pub(super) fn simulator() -> Result<Arc<Simulator>, DemoError> {
    let playbook = embedded("survey").unwrap_or_else(|| Playbook::parse("", "survey"))?;
    Ok(Simulator::new(playbook))
}

/// Shows the events of a run until it has ended.
async fn watch_run(events: &mut Events, watch: &mut impl FnMut(&Numbered)) {
    while let Some(event) = events.next().await {
        watch(&event);
        if is_last(&event) {
            return;
        }
    }
}

/// Returns whether no run is active after this event. Of a listener that was slow, the end of the run may lie in the
/// gap.
pub(super) fn is_last(event: &Numbered) -> bool {
    match &event.event {
        Event::RunFinished { .. } | Event::RunLost { .. } => true,
        Event::Lagged { run, .. } => run.is_none(),
        _ => false,
    }
}

fn default_transcripts(root: &Path) -> Result<PathBuf, DemoError> {
    let path = root.join(".transcripts");
    // What the surveyed directory brings under this name may lead anywhere.
    if prepare(&path).is_ok() && writable(&path).is_ok() {
        return Ok(path);
    }
    match tempfile::Builder::new().prefix("ennead-demo-").tempdir() {
        Ok(dir) => Ok(dir.keep()),
        Err(cause) => Err(DemoError::NoTranscripts { path: std::env::temp_dir(), cause }),
    }
}

/// Makes the directory and tries whether files can be made in it.
fn writable(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ennead::internal::{CAPACITY, EventHub};

    use super::*;

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Demo::new("/nowhere/at/all").prepare().unwrap_err().to_string();
        assert!(error.starts_with("cannot survey /nowhere/at/all: "), "{error}");
    }

    // REQ: TRN-11
    #[tokio::test]
    async fn run_whose_last_event_is_in_a_hole_is_watched_to_its_end() {
        let hub = EventHub::new(None);
        let mut events = hub.subscribe();
        hub.publish(Event::RunStarted { run: "r".into(), woken: false });
        for turn in 1..=2 * CAPACITY as u32 {
            hub.publish(Event::TurnStarted { turn });
        }
        hub.publish(Event::RunFinished { run: "r".into(), reason: "no_pending_tools" });
        let mut seen = Vec::new();
        let mut watch = |it: &Numbered| seen.push(it.event.clone());
        let watching = watch_run(&mut events, &mut watch);
        tokio::time::timeout(Duration::from_secs(60), watching).await.expect("it has an end");
        assert!(matches!(seen.last(), Some(Event::Lagged { run: None, .. })), "{:?}", seen.last());
    }

    #[test]
    fn transcripts_go_where_they_are_asked_to() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("mine");
        let survey = Demo::new(dir.path()).transcripts(&inside).prepare().unwrap();
        assert_eq!(survey.transcripts, inside.canonicalize().unwrap());
        assert_eq!(survey.session("http://x").unwrap().transcripts, Some(survey.transcripts));
    }
}
