//! Checks inputs against schemas where that is not light, looks at the paths of calls, link by link, and
//! judges long shell commands. A leaf of the turn supervisor.

use std::{fs::File, io::Read as _, sync::Arc};

use crate::{
    session::context::SessionContext,
    world::real_paths::{EYES, look_up},
};
use ennead_runtime::{
    ids::ToolUseId,
    input_schema,
    ports::BoxFuture,
    step7_permission_gate::{
        CommandOrder, Judged, PathKind, ResolvedPath,
        path_resolution::{PathEntry, resolve},
    },
    tool::ToolCall,
    turn::{MAX_PLAN_BYTES, TurnInput},
};

/// Bytes of all inputs of a turn that are read where others wait.
const LIGHT_BYTES: usize = 64 * 1024;

/// A call, and what is wrong with its input.
pub(crate) type CheckedCall = (ToolCall, Result<(), String>);

/// Returns whether the inputs of these calls can be checked where others wait.
pub(crate) fn is_light(session_context: &SessionContext, calls: &[ToolCall]) -> bool {
    let n_bytes: usize = calls.iter().map(|it| it.input.len()).sum();
    n_bytes <= LIGHT_BYTES
        && calls.iter().all(|call| {
            let tool = session_context.tools.get(&call.name);
            tool.is_none_or(|it| input_schema::is_light(&it.spec().input_schema, &call.input))
        })
}

/// Checks the inputs of the first calls, as many as are let in.
pub(crate) fn check(
    session_context: &SessionContext,
    calls: Vec<ToolCall>,
    n_let_in: usize,
) -> Vec<CheckedCall> {
    let check = |(place, call): (usize, ToolCall)| {
        let tool = session_context.tools.get(&call.name).filter(|_| place < n_let_in);
        let checked = tool.map_or(Ok(()), |it| {
            it.check_input(&call.input)?;
            session_context.redaction.check_input(it.spec(), &call.input)
        });
        (call, checked)
    };
    calls.into_iter().enumerate().map(check).collect()
}

/// Checks the inputs on a thread of its own.
pub(crate) async fn check_on_thread(
    session_context: Arc<SessionContext>,
    calls: Vec<ToolCall>,
    n_let_in: usize,
) -> Vec<CheckedCall> {
    let kept = calls.clone();
    let checked =
        tokio::task::spawn_blocking(move || check(&session_context, calls, n_let_in)).await;
    checked.unwrap_or_else(|_| unchecked(kept))
}

/// Makes the results of a check of inputs that was broken off.
pub(crate) fn unchecked(calls: Vec<ToolCall>) -> Vec<CheckedCall> {
    let why = || Err("the check of the input crashed".to_owned());
    calls.into_iter().map(|it| (it, why())).collect()
}

/// Resolves a path and returns what the turn is to be given. A path costs one `lstat` per part, about a microsecond
/// each, done in place.
pub(crate) fn look(
    session_context: Arc<SessionContext>,
    cwd: String,
    call: ToolUseId,
    given: String,
) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let path = Box::new(resolve(&given, &cwd, &session_context.facts.home, &mut look_up));
        TurnInput::PathResolved { call, path }
    })
}

/// Judges a shell command on a thread that may block, and returns what the turn is to be given.
pub(crate) fn judge(call: ToolUseId, order: Box<CommandOrder>) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let judged = tokio::task::spawn_blocking(move || order.judge(EYES)).await;
        let judged = Box::new(judged.unwrap_or_else(|_| Judged::crashed()));
        TurnInput::CommandJudged { call, judged }
    })
}

/// Reads a plan on a thread that may block, and returns what the turn is to be given.
pub(crate) fn read_plan(call: ToolUseId, file: String) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let plan = tokio::task::spawn_blocking(move || plan_of(&file)).await.ok().flatten();
        TurnInput::PlanRead { call, plan }
    })
}

/// The text of a file that is not a link, unless it is blank or longer than a person is shown.
fn plan_of(file: &str) -> Option<String> {
    if look_up(file) != PathEntry::File {
        return None;
    }
    let (mut text, max) = (String::new(), MAX_PLAN_BYTES as u64);
    let n_read = File::open(file).ok()?.take(max + 1).read_to_string(&mut text).ok()?;
    (n_read <= MAX_PLAN_BYTES && !text.trim().is_empty()).then_some(text)
}

/// Makes the input in place of a path that could not be looked at.
pub(crate) fn unknown(given: String, kind: PathKind) -> ResolvedPath {
    ResolvedPath::unresolved(given, kind)
}
