//! What runs when a session itself fires hooks, outside of any turn: the type alone. `end_hooks` makes it at the end of the
//! session, and `file_watch` when files have changed.

use std::sync::Arc;

use crate::{
    hook::{HookHandler, HookInput},
    sandbox::Sandbox,
    step1_settings_resolution::Certificates,
};

/// What runs for an event of the session itself, all at the same time.
#[derive(Clone, Debug)]
pub struct SessionFiring {
    /// The handlers, each with the limit that holds for it here.
    pub handlers: Vec<HookHandler>,
    /// What the handlers read on standard input.
    pub input: HookInput,
    /// The directory that they run in; absolute.
    pub cwd: Arc<str>,
    /// Variables for them. One without a value is taken away.
    pub env: Arc<[(String, String)]>,
    /// What confines those of a repository, if anything does.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Who vouches for servers that are asked.
    pub certificates: Certificates,
}
