//! Model servers whose answers are scripted, and sessions that turn from one to the other.

use std::ops::Deref;

use ennead::{Event, RunOutcome, SessionHandle, SessionOptions, transcript};

use crate::support::{
    clocked::ClockedSessions,
    model_server::{ModelServer, Reply},
    scripted::{Asked, Scripted, model, replies, until_end},
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

impl ClockedSessions {
    /// A session on this model, and on others after it.
    pub(super) fn session(&self, models: &[&Model]) -> SessionOptions {
        let names = ["here", "there", "elsewhere"];
        let mut endpoints = models.iter().zip(names).map(|(model, name)| model.0.endpoint(name));
        let mut options = self.options(endpoints.next().unwrap());
        options.fallbacks = endpoints.collect();
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
        let seen = until_end(&mut events).await;
        session.close().await;
        verify(&session);
        (outcome, seen, session)
    }
}

#[track_caller]
pub(super) fn verify(session: &SessionHandle) {
    transcript::verify(session.transcript()).unwrap_or_else(|it| panic!("{it}"));
}
