//! Questions about calls that a tool of an MCP server answers (`--permission-prompt-tool mcp__server__tool`): one in the
//! program, or one of the session.

use std::sync::{Arc, OnceLock};

use ennead::{
    OptionError, SessionHandle, SessionOptions,
    internal::ServerTools,
    permission::{Approver, PermissionAnswer, PermissionMode, Question},
    tool::BoxFuture,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    callbacks::{ShownCalls, ShownInput, mode_of, read_answer, with_mode},
    mcp::HostServer,
};

/// Asks a tool whether a call may run. Whatever goes wrong is a denial.
#[derive(Clone, Debug)]
pub(crate) struct ToolApprover {
    tool: AskedTool,
    shown: ShownCalls,
    modes: mpsc::UnboundedSender<PermissionMode>,
}

/// The tool that is asked.
#[derive(Clone, Debug)]
pub(crate) enum AskedTool {
    /// One of a server in the program, by its name there.
    OfProgram(HostServer, String),
    /// One of the session, by its name there. The session's tools are there once it is open.
    OfSession(Arc<OnceLock<ServerTools>>, String),
}

impl AskedTool {
    /// Returns the text that it answers with, or why there is none, in words.
    async fn text_of(&self, asked: Value) -> Result<String, String> {
        match self {
            Self::OfProgram(server, tool) => server.text_of(tool, asked).await,
            Self::OfSession(tools, tool) => {
                let Value::Object(asked) = asked else { return Err("it takes an object".into()) };
                let tools = tools.get().ok_or("the session is not open yet")?;
                tools.call(tool, asked).await
            }
        }
    }
}

/// Answers of a tool of a session that no program is shown.
#[derive(Debug)]
pub struct AskedInSession {
    of_session: Arc<OnceLock<ServerTools>>,
    modes: mpsc::UnboundedReceiver<PermissionMode>,
}

impl AskedInSession {
    /// Has this tool, which the model may not call, answer the questions of a session that is not opened yet.
    ///
    /// # Errors
    ///
    /// The name is none of a tool.
    pub fn by(tool: &str, options: SessionOptions) -> Result<(Self, SessionOptions), OptionError> {
        let (sender, modes) = mpsc::unbounded_channel();
        let of_session = Arc::new(OnceLock::new());
        let asked = AskedTool::OfSession(Arc::clone(&of_session), tool.to_owned());
        let approver = ToolApprover::new(asked, ShownCalls::unwatched(), sender);
        let options = options.deny(tool)?.approver(Arc::new(approver));
        Ok((Self { of_session, modes }, options))
    }

    /// Gives the tool its session, and the session the modes that the tool changes it to, until it ends.
    pub async fn follow(mut self, session: SessionHandle) {
        // It is set once.
        let _first = self.of_session.set(ServerTools::of(&session));
        while let Some(mode) = self.modes.recv().await {
            // A session that is gone has no mode.
            let _gone = session.set_mode(mode).await;
        }
    }
}

impl ToolApprover {
    /// Asks this tool, after the calls were shown to the program. Modes that its answers change to are sent.
    pub(crate) fn new(
        tool: AskedTool,
        shown: ShownCalls,
        modes: mpsc::UnboundedSender<PermissionMode>,
    ) -> Self {
        Self { tool, shown, modes }
    }
}

impl Approver for ToolApprover {
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer> {
        let Self { tool, shown, modes } = self.clone();
        Box::pin(async move {
            let call = question.call;
            shown.wait(call.id.as_str()).await;
            let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
            let shown = ShownInput { value: input.clone(), is_cut: false };
            let asked = json!({"tool_name": call.name, "input": input, "tool_use_id": call.id});
            match tool.text_of(asked).await {
                Ok(text) => {
                    // A text that is not JSON gives no permission.
                    let read = move || serde_json::from_str(&text).unwrap_or_default();
                    let answer: Value = spawn_blocking(read).await.unwrap_or_default();
                    let given = read_answer(&answer, &shown);
                    with_mode(given, mode_of(&answer), &call.name, &modes)
                }
                Err(why) => PermissionAnswer::deny(format!("no permission was given: {why}")),
            }
        })
    }
}
