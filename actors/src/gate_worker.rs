//! Looks at the paths of calls, link by link. A leaf of the turn supervisor.

use std::sync::Arc;

use crate::{session::shared::Shared, world::real_paths::found};
use ennead_runtime::{
    ids::ToolUseId,
    ports::BoxFuture,
    step7_permission_gate::{PathKind, ResolvedPath, path_resolution::resolve},
    turn::Input,
};

/// Resolves a path and returns what the turn is to be given. A path costs one `lstat` per part, about a microsecond
/// each, done in place.
pub(crate) fn look(
    shared: Arc<Shared>,
    cwd: String,
    call: ToolUseId,
    given: String,
) -> BoxFuture<'static, Input> {
    Box::pin(async move {
        let path = Box::new(resolve(&given, &cwd, &shared.facts.home, &mut found));
        Input::PathResolved { call, path }
    })
}

/// What stands for a path that could not be looked at.
pub(crate) fn unknown(given: String, kind: PathKind) -> ResolvedPath {
    ResolvedPath {
        lexical: given.clone(),
        real: given.clone(),
        passed: vec![given.clone()],
        given,
        kind,
    }
}
