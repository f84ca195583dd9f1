//! How far a server of a session is.

use serde::Serialize;

/// How far a server of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// It has not listed its tools yet. The session works without them.
    Pending,
    /// It has listed its tools; they are the session's, now or with the next turn.
    Connected,
    /// It cannot be had, and the session goes on without it.
    Failed,
    /// It cannot be had: it answers only those who have logged in, which is not done here.
    #[serde(rename = "needs-auth")]
    NeedsAuth,
}

impl ServerState {
    /// Returns the stable code, for a surface that shows it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
        }
    }
}
