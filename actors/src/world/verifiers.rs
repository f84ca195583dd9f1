//! The way from hook handlers to the agents that verify for them.

use std::{fmt, sync::Arc, time::Duration};

use ennead_runtime::ports::{AgentOrder, AgentReport, BoxFuture};

/// Starts agents that verify.
pub(crate) trait Verify: Send + Sync + fmt::Debug {
    /// Has an agent verify for a hook handler, which ends by itself when it has worked for so long. Dropping the future
    /// stops it.
    fn verify(&self, order: AgentOrder, limit: Duration) -> BoxFuture<'static, AgentReport>;
}

/// What starts the agents that verify for the handlers of one firing.
#[derive(Debug)]
pub(crate) struct Verifiers {
    /// The way to the session.
    pub(crate) port: Arc<dyn Verify>,
    /// Names the firing within its run.
    pub(crate) firing: String,
    /// The model that is asked where a handler names none; `None`: the session's own.
    pub(crate) model: Option<String>,
}
