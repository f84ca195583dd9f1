//! Watches files for hooks of FileChanged, and fires these.
//!
//! What is watched follows from the settings of the last turn that began, its working directory, and what hooks have
//! named. The handlers are not waited for: nothing depends on what they answer but what is watched. So nothing of this is
//! recorded but their ends. `watched` chooses the files; the session's actor looks at them.

use std::{mem, sync::Arc};

use super::{
    ClosePhase, Machine, SessionEffect, SpawnEffect,
    watched::{FileWatch, is_within},
};
use crate::{
    event::Event,
    hook::{self, FileChange, Firing, HookEvent, HookHandler, HookWait, WatchedFile},
    turn::effect::WatchOrder,
};

impl Machine {
    /// Watches files by other settings, or in another directory.
    pub(super) fn watch(&mut self, mut order: WatchOrder) {
        let named = order.named.take();
        match &mut self.watch {
            Some(watch) => {
                watch.order = order;
                watch.named = named.unwrap_or(mem::take(&mut watch.named));
            }
            None => {
                let (named, watched, refused) = (named.unwrap_or_default(), [].into(), Vec::new());
                self.watch = Some(Box::new(FileWatch { order, named, watched, refused }));
            }
        }
        self.watch_again();
    }

    /// Watches what a hook has named, in place of what hooks named before.
    pub(super) fn watch_named(&mut self, named: Vec<WatchedFile>) {
        if let Some(watch) = &mut self.watch {
            watch.named = named;
            self.watch_again();
        }
    }

    fn watch_again(&mut self) {
        let facts = &self.conversation.facts;
        let Some(watch) = &mut self.watch else { return };
        let (watched, refused) = watch.files(facts);
        for why in refused.iter().filter(|it| !watch.refused.contains(it)) {
            let what = why.to_string().into();
            self.effects.push(SessionEffect::Publish(Event::Alert { what }));
        }
        watch.refused = refused;
        if watched != *watch.watched && self.closing == ClosePhase::No {
            watch.watched = watched.into();
            self.look_again();
        }
    }

    /// Has another one look after the files that are watched.
    pub(super) fn look_again(&mut self) {
        if let Some(watch) = self.watch.as_ref().filter(|_| self.closing == ClosePhase::No) {
            let files = Arc::clone(&watch.watched);
            self.effects.push(SpawnEffect::WatchFiles { files }.into());
        }
    }

    /// Fires the hooks of files that have changed.
    pub(super) fn files_changed(&mut self, changes: Vec<FileChange>) {
        let Some(watch) = self.watch.as_ref().filter(|_| self.closing == ClosePhase::No) else {
            return;
        };
        let WatchOrder { derived, cwd, .. } = &watch.order;
        for FileChange { path, kind } in changes {
            // It may be about what is not watched any more.
            if watch.watched.iter().all(|it| it.path != path) {
                continue;
            }
            let is_inside = is_within(&path, &self.conversation.facts);
            let firing = Firing::FileChanged { path: path.as_str().into(), kind }.into_owned();
            let table = &derived.settings().hooks;
            let found = hook::matching(table, HookEvent::FileChanged, firing.subject(""));
            let may_run = |it: &&HookHandler| is_inside || !it.scope.is_of_repository();
            let handlers: Vec<_> = found.into_iter().filter(may_run).map(not_waited_for).collect();
            if !handlers.is_empty() {
                let firing = self.session_firing(derived, Arc::clone(cwd), handlers, firing);
                self.effects.push(SpawnEffect::FireHooks(Box::new(firing)).into());
            }
        }
    }
}

/// The handler, as one that nothing waits for.
fn not_waited_for(handler: &HookHandler) -> HookHandler {
    let wait = match handler.wait {
        HookWait::Rewaking => HookWait::Rewaking,
        HookWait::Waited | HookWait::Detached => HookWait::Detached,
    };
    HookHandler {
        wait,
        timeout_ms: handler.timeout_ms.min(hook::MAX_DETACHED_MS),
        ..handler.clone()
    }
}
