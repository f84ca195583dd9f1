//! Model servers whose answers are scripted, and sessions whose waits move the clock.

use std::{
    ops::Deref,
    sync::{Arc, Mutex},
};

use ennead::{
    Ennead, Event, Options, Placement, RunOutcome, SessionHandle, SessionOptions,
    settings::Durability,
    testing::ManualClock,
    tool::{Access, CustomTool, ToolOutcome},
    transcript,
};
use tempfile::TempDir;

use crate::support::{
    model_server::{ModelServer, Patience, Reply},
    scripted::{Asked, NOW, Scripted, model, replies, until_end},
};

/// A server whose model keeps what it was asked.
pub(super) struct Model(ModelServer);

impl Model {
    pub(super) async fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self(ModelServer::serve(model(script)).await)
    }

    /// Gives these answers in turn, the last one over and over.
    pub(super) async fn says(all: Vec<Reply>) -> Self {
        Self(ModelServer::serve(replies(all)).await)
    }
}

impl Deref for Model {
    type Target = Scripted;

    fn deref(&self) -> &Scripted {
        self.0.model()
    }
}

/// Sessions in a directory of their own whose waits move the clock.
pub(super) struct World {
    pub(super) ennead: Ennead,
    directory: TempDir,
    pub(super) touched: Arc<Mutex<usize>>,
}

impl World {
    pub(super) async fn start() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let options = Options::default()
            .placement(Placement::Ambient)
            .seed(7)
            .clock(clock.clone())
            .timer(clock)
            .transport(Patience::new());
        let ennead = Ennead::start(options).await.unwrap();
        Self { ennead, directory: TempDir::new().unwrap(), touched: Arc::default() }
    }

    /// A session on this model, and on others after it.
    pub(super) fn session(&self, models: &[&Model]) -> SessionOptions {
        let touched = Arc::clone(&self.touched);
        let touch = CustomTool::raw("Touch", "Counts.", r#"{"type":"object"}"#, move |_, _| {
            *touched.lock().unwrap() += 1;
            async { ToolOutcome::ok("touched") }
        });
        let names = ["here", "there", "elsewhere"];
        let mut endpoints = models.iter().zip(names).map(|(model, name)| model.0.endpoint(name));
        let mut options = SessionOptions::new(self.directory.path(), endpoints.next().unwrap())
            .isolated()
            .durability(Durability::Process)
            .model("first");
        options.fallbacks = endpoints.collect();
        options.tools = vec![Arc::new(touch.access(Access::Free).build().unwrap())];
        options
    }

    /// Runs one prompt.
    pub(super) async fn run(
        &self,
        options: SessionOptions,
    ) -> (RunOutcome, Vec<Event>, SessionHandle) {
        let session = self.ennead.open(options).await.unwrap();
        let mut events = session.events();
        let outcome = session.prompt("go").await.unwrap();
        let told = until_end(&mut events).await;
        session.close().await;
        verify(&session);
        (outcome, told, session)
    }
}

#[track_caller]
pub(super) fn verify(session: &SessionHandle) {
    transcript::verify(session.transcript()).unwrap_or_else(|it| panic!("{it}"));
}
