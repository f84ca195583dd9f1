//! A server on a socket, with a model that says what the test wants.

use std::{path::PathBuf, sync::Arc};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionOptions,
    serve::{Role, ServeOptions, Server},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::client::{HttpReply, Stream, ask};
use crate::support::scripted::Scripted;

pub(crate) struct Rig {
    pub(crate) directory: Arc<TempDir>,
    pub(crate) model: Arc<Scripted>,
    pub(crate) server: Server,
    pub(crate) address: String,
    /// The tokens of a user and a viewer of one tenant, of a user of another, and of an admin.
    pub(crate) user: String,
    pub(crate) viewer: String,
    pub(crate) other: String,
    pub(crate) admin: String,
}

impl Rig {
    pub(crate) async fn start(model: Arc<Scripted>) -> Self {
        Self::start_with(model, |it| it).await
    }

    pub(crate) async fn start_with(
        model: Arc<Scripted>,
        change: impl FnOnce(ServeOptions) -> ServeOptions,
    ) -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), model, change).await
    }

    /// Starts a server in a directory that another one may have left.
    pub(crate) async fn start_in(
        directory: Arc<TempDir>,
        model: Arc<Scripted>,
        change: impl FnOnce(ServeOptions) -> ServeOptions,
    ) -> Self {
        let options = Options::default().placement(Placement::Ambient).transport(model.clone());
        let ennead = Ennead::start(options).await.unwrap();
        let session = SessionOptions::new(".", Endpoint::messages("http://model.test", None))
            .home(directory.path().join("home"))
            .isolated();
        let (work, state) = (directory.path().join("work"), directory.path().join("state"));
        let options = change(ServeOptions::new(work, state, session));
        let server = Server::start(ennead, options).await.unwrap();
        let roles = [
            ("user", "acme", Role::User),
            ("viewer", "acme", Role::Viewer),
            ("other", "globex", Role::User),
            ("admin", "operator", Role::Admin),
        ];
        let tokens = roles.map(|(name, tenant, role)| {
            // The tokens of a server before cannot be read any more.
            server.tokens().remove(name).unwrap();
            server.tokens().add(name, tenant, role).unwrap()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (it, router) = (server.clone(), server.app());
        tokio::spawn(async move { it.listen(listener, None, router).await.unwrap() });
        let [user, viewer, other, admin] = tokens;
        Self { directory, model, server, address, user, viewer, other, admin }
    }

    /// Sends a request with this token.
    pub(crate) async fn ask_as(&self, token: &str, line: &str, body: Option<Value>) -> HttpReply {
        let bearer = format!("Bearer {token}");
        ask(&self.address, line, &[("Authorization", &bearer)], body.as_ref()).await
    }

    pub(crate) async fn ask(&self, line: &str, body: Option<Value>) -> HttpReply {
        self.ask_as(&self.user, line, body).await
    }

    /// Sends a request with more headers.
    pub(crate) async fn ask_with(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> HttpReply {
        let bearer = format!("Bearer {}", self.user);
        let headers: Vec<_> =
            [("Authorization", &*bearer)].into_iter().chain(headers.to_vec()).collect();
        ask(&self.address, line, &headers, body.as_ref()).await
    }

    pub(crate) async fn stream(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Stream {
        let bearer = format!("Bearer {}", self.user);
        let headers: Vec<_> =
            [("Authorization", &*bearer)].into_iter().chain(headers.to_vec()).collect();
        Stream::open(&self.address, line, &headers, body.as_ref()).await
    }

    /// A new session; its path.
    pub(crate) async fn session(&self, body: Value) -> String {
        let made = self.ask("POST /v1/sessions", Some(body)).await.ok(201);
        format!("/v1/sessions/{}", made["id"].as_str().unwrap())
    }

    /// Runs a prompt to its end; the run.
    pub(crate) async fn run(&self, session: &str, prompt: &str) -> Value {
        let line = format!("POST {session}/runs");
        let body = json!({ "prompt": prompt });
        self.ask_with(&line, &[("Prefer", "wait=60")], Some(body)).await.ok(200)
    }

    /// The directory of a session of the user.
    pub(crate) fn work(&self, directory: &str) -> PathBuf {
        self.directory.path().join("work/acme").join(directory)
    }
}
