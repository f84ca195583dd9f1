//! The scripted model on a socket, as a command asks it, with every byte that came.

use std::process::Command;

use serde_json::json;

use super::super::{CommandDirs, Ended};
use crate::support::{
    model_server::ModelServer,
    scripted::{Reply, call, replies, text},
};

/// The key that it is asked with.
pub(super) const KEY: &str = "sk-test-0123456789abcdef0123456789";

/// A model server that keeps the head and the body of each request.
pub(super) struct Bytes(ModelServer);

impl Bytes {
    /// Gives these replies in turn, the last one over and over.
    pub(super) fn start(all: Vec<Reply>) -> Self {
        Self(ModelServer::on_a_thread(replies(all)))
    }

    /// One that answers `done`.
    pub(super) fn done() -> Self {
        Self::start(vec![text("done")])
    }

    /// One that has a command run first.
    pub(super) fn running(command: &str) -> Self {
        Self::start(vec![call("t", "Bash", json!({ "command": command })), text("done")])
    }

    /// A command that asks it.
    pub(super) fn command(&self, place: &CommandDirs, args: &[&str]) -> Command {
        let mut command = place.command(&[&["--model", "m", "-p", "hello"], args].concat());
        command.env("ANTHROPIC_BASE_URL", self.0.address()).env("ANTHROPIC_API_KEY", KEY);
        command
    }

    pub(super) fn run(&self, place: &CommandDirs, args: &[&str]) -> Ended {
        self.command(place, args).output().unwrap().into()
    }

    /// The requests, heads included.
    pub(super) fn requests(&self) -> Vec<String> {
        let asked = self.0.model().asked();
        asked.into_iter().map(|it| format!("{}{}", it.head, it.text)).collect()
    }
}
