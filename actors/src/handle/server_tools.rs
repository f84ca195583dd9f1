//! Calls of MCP servers that the program makes itself.

use ennead_runtime::ids::ToolName;
use serde_json::{Map, Value};

use super::session_handle::SessionHandle;
use crate::session::tools::SessionTools;

/// The tools of a session's MCP servers, for calls that the model does not make. Holds nothing of the session but these.
#[derive(Clone, Debug)]
pub struct ServerTools(SessionTools);

impl ServerTools {
    /// Returns those of this session. Tools of servers that are still starting join when these have answered.
    pub fn of(session: &SessionHandle) -> Self {
        Self(session.callable.clone())
    }

    /// Calls the tool of this name (`mcp__server__tool`), and returns the texts of its result. No rule is asked.
    ///
    /// # Errors
    ///
    /// Why there is no result, in words; what the tool says went wrong.
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<String, String> {
        let found = self.0.get(&ToolName::from(tool));
        let answer = found.and_then(|it| it.call_at_server(arguments));
        answer.ok_or("the session has no such tool of a server")?.await
    }
}
