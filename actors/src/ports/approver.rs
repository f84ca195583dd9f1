//! What answers questions for an embedder.

use std::fmt;

use ennead_runtime::{
    approval::{PermissionAnswer, Question},
    ports::BoxFuture,
};

/// Answers questions: a person at a terminal, a client of a server, an embedder's rules.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Answers one question. Dropped when the turn ends, or when somebody else has answered.
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer>;
}
