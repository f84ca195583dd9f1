//! Questions about calls that a tool of an MCP server in the program answers
//! (`--permission-prompt-tool mcp__server__tool`).

use ennead::{
    permission::{Approver, PermissionAnswer, PermissionMode, Question},
    tool::BoxFuture,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    callbacks::{ShownCalls, ShownInput, mode_of, read_answer, with_mode},
    mcp::HostServer,
};

/// Asks a tool whether a call may run. Whatever goes wrong is a denial.
#[derive(Clone, Debug)]
pub(crate) struct ToolApprover {
    server: HostServer,
    tool: String,
    shown: ShownCalls,
    modes: mpsc::UnboundedSender<PermissionMode>,
}

impl ToolApprover {
    /// Asks this tool of the server, by its name there, after the calls were shown to the program. Modes that
    /// its answers change to are sent.
    pub(crate) fn new(
        server: HostServer,
        tool: &str,
        shown: ShownCalls,
        modes: mpsc::UnboundedSender<PermissionMode>,
    ) -> Self {
        Self { server, tool: tool.to_owned(), shown, modes }
    }
}

impl Approver for ToolApprover {
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer> {
        let Self { server, tool, shown, modes } = self.clone();
        Box::pin(async move {
            let call = question.call;
            shown.wait(call.id.as_str()).await;
            let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
            let shown = ShownInput { value: input.clone(), is_cut: false };
            let asked = json!({"tool_name": call.name, "input": input, "tool_use_id": call.id});
            match server.text_of(&tool, asked).await {
                Ok(text) => {
                    // A text that is not JSON gives no permission.
                    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                    let given = read_answer(&answer, &shown);
                    with_mode(given, mode_of(&answer), &call.name, &modes)
                }
                Err(why) => PermissionAnswer::deny(format!("no permission was given: {why}")),
            }
        })
    }
}
