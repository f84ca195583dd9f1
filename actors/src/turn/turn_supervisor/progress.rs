//! The way from a running call to the listeners of its session.

use std::sync::Arc;

use ennead_runtime::{
    event::Event,
    ids::{ToolName, ToolUseId},
    ports::{Progress, ReportProgress},
};

use crate::session::context::SessionContext;

/// Publishes what one call says of its progress.
pub(super) struct ProgressPort {
    pub(super) session_context: Arc<SessionContext>,
    pub(super) call: ToolUseId,
    pub(super) tool: ToolName,
}

impl ReportProgress for ProgressPort {
    fn report(&self, progress: Progress) {
        let Progress { percent, text, .. } = progress;
        let (call, tool) = (self.call.clone(), self.tool.clone());
        self.session_context.hub.publish(Event::ToolProgress { call, tool, percent, text });
    }
}

impl std::fmt::Debug for ProgressPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgressPort").field("call", &self.call).finish_non_exhaustive()
    }
}
