//! Calls the tool of an MCP server for one hook handler: what it answers is read as a command's output is.

use std::sync::Arc;

use ennead_runtime::{
    hook::{HandlerOutput, HookHandler, McpHook},
    ports::Tool,
};

use super::{clock::TimeSource, hook_http::output_of};

/// Bytes of an input that is filled in where other sessions wait: well under a millisecond.
const SHORT_INPUT: usize = 32 * 1024;

/// Calls the tool of a handler, for as long as that may take. `tool` is what the session has under its name.
pub(crate) async fn call(
    handler: &HookHandler,
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    input: Arc<str>,
    time: TimeSource<'_>,
) -> HandlerOutput {
    output_of(handler, &hook.shown(), answer(hook, tool, input), time).await
}

/// Returns the texts of the answer.
async fn answer(
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    input: Arc<str>,
) -> Result<String, String> {
    let tool = tool.ok_or("the session has no such server, or it has no such tool")?;
    let arguments = if input.len() + hook.n_bytes() <= SHORT_INPUT {
        hook.input_with(&input)
    } else {
        let hook = hook.clone();
        let filled = tokio::task::spawn_blocking(move || hook.input_with(&input)).await;
        filled.unwrap_or_else(|_| Err("its input could not be made".into()))
    };
    let answer = tool.call_at_server(arguments?).ok_or("it is not a tool of a server")?;
    answer.await
}
