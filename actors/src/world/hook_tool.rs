//! Calls the tool of an MCP server for one hook handler: what it answers is read as a command's output is.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    hook::{HandlerEnd, HandlerOutput, HookHandler, McpHook},
    ports::Tool,
    saturating::Saturating as _,
};

use super::{
    clock::{TimeSource, within},
    hook_process::{HandlerContext, MAX_OUTPUT},
};

/// Bytes of an input that is filled in where other sessions wait: well under a millisecond.
const SHORT_INPUT: usize = 32 * 1024;

/// Calls the tool of a handler, for as long as that may take. `tool` is what the session has under its name.
pub(crate) async fn call(
    handler: &HookHandler,
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    context: &HandlerContext,
    input: Arc<str>,
    TimeSource { clock, timer }: TimeSource<'_>,
) -> HandlerOutput {
    let started = clock.elapsed();
    let limit = Duration::from_millis(handler.timeout_ms);
    let answered = within(timer, limit, answer(handler, hook, tool, context, input)).await;
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

/// Returns the texts of the answer, up to what a command may write.
async fn answer(
    handler: &HookHandler,
    hook: &McpHook,
    tool: Option<Arc<dyn Tool>>,
    context: &HandlerContext,
    input: Arc<str>,
) -> Result<String, String> {
    // A server works outside of the sandbox.
    if context.sandbox_of(handler).is_some() {
        return Err("the sandbox lets hooks of a repository call no tool".into());
    }
    let tool = tool.ok_or("the session has no such server, or it has no such tool")?;
    let arguments = if input.len() <= SHORT_INPUT {
        hook.input_with(&input)
    } else {
        let hook = hook.clone();
        let filled = tokio::task::spawn_blocking(move || hook.input_with(&input)).await;
        filled.unwrap_or_else(|_| Err("its input could not be made".into()))
    };
    let answer = tool.call_at_server(arguments?).ok_or("it is not a tool of a server")?;
    let bounded = |mut text: String| {
        text.truncate(text.floor_char_boundary(usize::saturating(MAX_OUTPUT)));
        text
    };
    answer.await.map(bounded).map_err(bounded)
}
