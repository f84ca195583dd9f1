//! Looks at the paths of calls, link by link. A leaf of the turn supervisor.

use std::{fs, os::unix::fs::FileTypeExt, sync::Arc};

use ennead_runtime::{
    ids::ToolUseId,
    ports::BoxFuture,
    step7_permission_gate::{
        PathKind, ResolvedPath,
        path_resolution::{Found, resolve},
    },
    turn::Input,
};
use ractor::ActorRef;

use crate::{session::shared::Shared, turn_supervisor::TurnMsg};

/// Resolves a path and tells the turn. A path costs one `lstat` per part, about a microsecond
/// each, done in place.
pub(crate) fn look(
    shared: Arc<Shared>,
    cwd: String,
    call: ToolUseId,
    given: String,
    turn: ActorRef<TurnMsg>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let path = Box::new(resolve(&given, &cwd, &shared.facts.home, &mut found));
        let _gone = turn.cast(TurnMsg::Input(Input::PathResolved { call, path }));
    })
}

/// What lies at an absolute path of this machine, the last link not followed.
pub fn found(path: &str) -> Found {
    let Ok(meta) = fs::symlink_metadata(path) else { return Found::Missing };
    let kind = meta.file_type();
    if kind.is_symlink() {
        // A link that cannot be read leads nowhere that could be judged.
        let target = fs::read_link(path).ok().and_then(|it| it.into_os_string().into_string().ok());
        return target.map_or(Found::Special, Found::Link);
    }
    if kind.is_dir() {
        Found::Directory
    } else if kind.is_file() {
        Found::File
    } else {
        debug_assert!(
            kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
        );
        Found::Special
    }
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
