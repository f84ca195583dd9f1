//! In place of a connection, in a build without the feature `mcp`: a server that is configured is
//! reported as one that cannot be connected to, with this as the reason.

use std::{convert::Infallible, sync::Arc};

use ennead_runtime::{
    mcp::{result::CallResult, spec::Listed},
    ports::{ReportProgress, Transport, WorkGuard},
};
use serde_json::{Map, Value};

use super::{
    CallError,
    launch::{ConnectError, ServerLaunch},
};

/// A connection, of which there is none in this build.
#[derive(Debug)]
pub struct Connection(Infallible);

/// The way to call tools of a [`Connection`].
#[derive(Clone, Debug)]
pub struct Caller(Infallible);

/// Fails always, since this build leaves servers out.
///
/// # Errors
///
/// [`ConnectError::LeftOut`].
pub async fn connect(
    _: &ServerLaunch,
    _: Option<Arc<dyn Transport>>,
    _: WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    Err(ConnectError::LeftOut)
}

impl Connection {
    /// Returns the way to call its tools.
    pub fn caller(&self) -> Caller {
        match self.0 {}
    }

    /// Waits until the server is gone, and says how it ended.
    pub async fn wait_for_end(&mut self) -> String {
        match self.0 {}
    }

    /// Returns whether the server has ended because it wants a login.
    pub fn needs_auth(&self) -> bool {
        match self.0 {}
    }

    /// Ends the connection, and with it the server.
    pub async fn close(self) {
        match self.0 {}
    }
}

impl Caller {
    /// Calls a tool by its name there.
    ///
    /// # Errors
    ///
    /// None; there is no server.
    pub async fn call(
        &self,
        _: String,
        _: Map<String, Value>,
        _: Option<Arc<dyn ReportProgress>>,
        _: impl Future<Output = ()>,
    ) -> Option<Result<CallResult, CallError>> {
        match self.0 {}
    }
}
