//! Looks after files that hooks wait for, in a leaf that lives as long as some are watched. Which files these are the machine
//! decides (`runtime/src/session/watched.rs`); `watcher` holds the leaf and what it knows.
//!
//! It looks again and again: one look costs a few microseconds for each file, and there is no thread and no handle of
//! the operating system for it.

use std::{path::Path, sync::Arc, time::Duration};

use ennead_runtime::{
    hook::{FileChange, WatchedFile},
    session::{SessionFiring, SessionInput},
};
use ennead_tools::locked::Locked as _;
use ractor::ActorRef;

use super::{SessionMsg, SessionState, watcher::FileWatcher};
use crate::{
    groundwork::{
        directory::ActorKind,
        supervision::{HandlerResult, spawn_leaf},
    },
    turn::hook_runner::{FiringRequest, HookMsg},
    world::watched_files::{changes, look},
};

/// The time from one look to the next.
const INTERVAL: Duration = Duration::from_secs(1);

fn of_files(changes: Vec<FileChange>) -> SessionMsg {
    SessionMsg::Watch(SessionInput::FilesChanged(changes))
}

impl SessionState {
    /// Watches these files in place of those that were watched before.
    pub(super) async fn watch_files(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        files: Arc<[WatchedFile]>,
    ) -> HandlerResult {
        let known = self.watcher.take().map(|it| Arc::clone(&it.known)).unwrap_or_default();
        if files.is_empty() {
            return Ok(());
        }
        let back = myself.clone();
        let timer = Arc::clone(&self.session_context.world.timer);
        let workspace = Arc::clone(&self.session_context.facts.workspace);
        let (watched, seen_before) = (files, Arc::clone(&known));
        let work = Box::pin(async move {
            loop {
                let (files, workspace) = (Arc::clone(&watched), Arc::clone(&workspace));
                let seen =
                    tokio::task::spawn_blocking(move || look(&files, Path::new(&*workspace))).await;
                // It has no way to fail but a panic: then the next look finds what this one did not.
                if let Ok(seen) = seen {
                    let found = changes(&mut seen_before.locked(), seen);
                    if !found.is_empty() && back.cast(of_files(found)).is_err() {
                        return;
                    }
                }
                timer.sleep(INTERVAL).await;
            }
        });
        let job = self.session_context.job(ActorKind::FileWatcher, work);
        let leaf = spawn_leaf(job, myself.get_cell()).await?;
        self.watcher = Some(Box::new(FileWatcher { leaf, known }));
        Ok(())
    }

    /// Starts handlers that are not waited for.
    pub(super) async fn fire_hooks(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        firing: SessionFiring,
    ) -> HandlerResult {
        let runner = self.hook_runner(myself).await?.actor().clone();
        let request = FiringRequest::new(&self.session_context, firing);
        // When the runner is gone, so are the handlers that are not waited for.
        let _gone = runner.cast(HookMsg::Fire(Box::new(request)));
        Ok(())
    }
}
