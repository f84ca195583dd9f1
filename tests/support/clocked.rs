//! Sessions on a socket whose waits move the clock.

use std::sync::{Arc, Mutex};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionOptions,
    settings::Durability,
    testing::ManualClock,
    tool::{Access, CustomTool, ToolOutcome},
};
use tempfile::TempDir;

use super::{model_server::Patience, scripted::NOW};

/// An `Ennead` whose sessions share a directory and a tool that counts its calls.
pub(crate) struct ClockedSessions {
    pub(crate) ennead: Ennead,
    pub(crate) directory: TempDir,
    /// Calls of the tool `Touch`.
    pub(crate) touched: Arc<Mutex<usize>>,
}

impl ClockedSessions {
    pub(crate) async fn start() -> Self {
        Self::start_with(|options| options).await
    }

    /// The same with other options.
    pub(crate) async fn start_with(change: impl FnOnce(Options) -> Options) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let options = Options::default()
            .placement(Placement::Ambient)
            .seed(7)
            .clock(clock.clone())
            .timer(clock)
            .transport(Patience::new());
        let ennead = Ennead::start(change(options)).await.unwrap();
        Self { ennead, directory: TempDir::new().unwrap(), touched: Arc::default() }
    }

    /// Returns options of a session that has the tool.
    pub(crate) fn options(&self, endpoint: Endpoint) -> SessionOptions {
        let touched = Arc::clone(&self.touched);
        let touch = CustomTool::raw("Touch", "Counts.", r#"{"type":"object"}"#, move |_, _| {
            *touched.lock().unwrap() += 1;
            async { ToolOutcome::ok("touched") }
        });
        SessionOptions::new(self.directory.path(), endpoint)
            .isolated()
            .durability(Durability::Process)
            .model("first")
            .tools(vec![Arc::new(touch.access(Access::Free).build().unwrap())])
    }
}
