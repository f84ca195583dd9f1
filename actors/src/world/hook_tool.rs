//! Calls the tool of an MCP server for one hook handler: what it answers is read as a command's output is.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    hook::{HandlerEnd, HandlerOutput, HookHandler, McpHook},
    ports::Tool,
    saturating::Saturating as _,
};

use super::clock::{TimeSource, within};

/// Bytes of an input that is filled in where other sessions wait: well under a millisecond.
const SHORT_INPUT: usize = 32 * 1024;

/// Calls the tool of a handler, for as long as that may take. `tool` is what the session has under its name.
pub(crate) async fn call(
    handler: &HookHandler,
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    input: Arc<str>,
    TimeSource { clock, timer }: TimeSource<'_>,
) -> HandlerOutput {
    let started = clock.elapsed();
    let limit = Duration::from_millis(handler.timeout_ms);
    let answered = within(timer, limit, answer(handler, hook, tool, input)).await;
    let took = clock.elapsed().saturating_sub(started);
    let (ended, stdout, stderr) = match answered {
        Some(Ok(text)) => (HandlerEnd::Exited(0), text, String::new()),
        Some(Err(why)) => (HandlerEnd::Unusable, String::new(), format!("{}: {why}", hook.shown())),
        None => {
            let why = format!("no answer within {} ms", handler.timeout_ms);
            (HandlerEnd::TimedOut, String::new(), why)
        }
    };
    HandlerOutput::new(ended, stdout, stderr, u64::saturating(took.as_millis()))
}

/// Returns the texts of the answer.
async fn answer(
    handler: &HookHandler,
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    input: Arc<str>,
) -> Result<String, String> {
    // The server may be one of the user's, which acts with the user's credentials and asks no rule.
    if handler.scope.is_of_repository() {
        return Err("hooks of a repository call no tools".into());
    }
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
