//! Looks at the paths of calls, link by link, and judges long shell commands. A leaf of the turn
//! supervisor.

use std::sync::Arc;

use crate::{session::context::SessionContext, world::real_paths::found};
use ennead_runtime::{
    ids::ToolUseId,
    ports::BoxFuture,
    step7_permission_gate::{
        CommandOrder, Judged, PathKind, ResolvedPath, path_resolution::resolve,
    },
    turn::TurnInput,
};

/// Resolves a path and returns what the turn is to be given. A path costs one `lstat` per part, about a microsecond
/// each, done in place.
pub(crate) fn look(
    shared: Arc<SessionContext>,
    cwd: String,
    call: ToolUseId,
    given: String,
) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let path = Box::new(resolve(&given, &cwd, &shared.facts.home, &mut found));
        TurnInput::PathResolved { call, path }
    })
}

/// Judges a shell command on a thread where nobody waits, and returns what the turn is to be given.
pub(crate) fn judge(call: ToolUseId, order: Box<CommandOrder>) -> BoxFuture<'static, TurnInput> {
    Box::pin(async move {
        let judged = tokio::task::spawn_blocking(move || order.judge()).await;
        let judged = Box::new(judged.unwrap_or_else(|_| Judged::crashed()));
        TurnInput::CommandJudged { call, judged }
    })
}

/// The input in place of a path that could not be looked at.
pub(crate) fn unknown(given: String, kind: PathKind) -> ResolvedPath {
    ResolvedPath {
        lexical: given.clone(),
        real: given.clone(),
        passed: vec![given.clone()],
        given,
        kind,
    }
}
