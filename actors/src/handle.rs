//! What an embedder holds: the handle of a process, which opens sessions, that of a session, and what the
//! user of the process trusts.

pub(crate) mod ennead;
mod process;
pub(crate) mod server_tools;
mod session_handle;
pub(crate) mod trust;

pub use session_handle::SessionHandle;
