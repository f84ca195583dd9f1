//! Model servers whose answers are scripted, and sessions whose waits move the clock.

use std::sync::{Arc, Mutex};

use ennead::{
    Ennead, Event, Options, Placement, RunOutcome, SessionHandle, SessionOptions,
    settings::Durability,
    testing::ManualClock,
    tool::{Access, CustomTool, ToolOutcome},
    transcript,
};
use tempfile::TempDir;

use crate::support::{
    model_server::{Ask, ModelServer, Patience, Reply},
    scripted::{NOW, until_end},
};

/// A server, and what it was asked.
pub(super) struct Model {
    server: ModelServer,
    asked: Arc<Mutex<Vec<Ask>>>,
}

impl Model {
    pub(super) async fn start(script: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Self {
        let asked: Arc<Mutex<Vec<Ask>>> = Arc::default();
        let log = Arc::clone(&asked);
        let server = ModelServer::start(move |ask| {
            log.lock().unwrap().push(ask.clone());
            script(ask)
        });
        Self { server: server.await, asked }
    }

    /// Gives these answers in turn, the last one over and over.
    pub(super) async fn says(replies: Vec<Reply>) -> Self {
        Self::start(move |ask| replies[(ask.number - 1).min(replies.len() - 1)].clone()).await
    }

    pub(super) fn asked(&self) -> Vec<Ask> {
        self.asked.lock().unwrap().clone()
    }

    /// The models that were asked for, in turn.
    pub(super) fn models(&self) -> Vec<String> {
        self.asked().iter().map(|it| it.model().to_owned()).collect()
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
        let mut endpoints =
            models.iter().zip(names).map(|(model, name)| model.server.endpoint(name));
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
