//! Watches files for hooks of FileChanged, and fires these.
//!
//! What is watched follows from the settings of the last turn that began, its working directory, and what hooks have
//! named. The handlers are not waited for: nothing depends on what they answer but what is watched. So nothing of this is
//! recorded but their ends.

use std::{mem, sync::Arc};

use super::{ClosePhase, Machine, SessionEffect, SpawnEffect};
use crate::{
    event::Event,
    hook::{
        self, FileChange, Firing, HookEvent, HookHandler, HookWait, MAX_WATCHED, MAX_WATCHED_PATH,
        Matcher, NotWatched, WatchReach, WatchedFile,
    },
    run::facts::SessionFacts,
    step7_permission_gate::path_resolution::lexical,
    turn::effect::WatchOrder,
};

/// What is watched, and by what.
#[derive(Debug)]
pub(super) struct FileWatch {
    /// By which settings, and where.
    order: WatchOrder,
    /// What hooks have named.
    named: Vec<WatchedFile>,
    watched: Arc<[WatchedFile]>,
    /// What is not watched, of which there was an alert.
    refused: Vec<NotWatched>,
}

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

impl FileWatch {
    /// Returns the files to be watched, and what is not.
    fn files(&self, facts: &SessionFacts) -> (Vec<WatchedFile>, Vec<NotWatched>) {
        let WatchOrder { derived, cwd, .. } = &self.order;
        let handlers = derived.settings().hooks.get(&HookEvent::FileChanged);
        // Nobody would be told of a change.
        let Some(handlers) = handlers.filter(|it| !it.is_empty()) else {
            return Default::default();
        };
        let of_handler = |it: &HookHandler| {
            let reach = match it.scope.is_of_repository() {
                true => WatchReach::Workspace,
                false => WatchReach::Anywhere,
            };
            let names = match &it.matcher {
                Matcher::Names(names) => names.clone(),
                Matcher::Any | Matcher::Pattern(_) => Vec::new(),
            };
            let file = move |name| WatchedFile { path: format!("{cwd}/{name}"), reach };
            names.into_iter().map(file)
        };
        let all = handlers.iter().flat_map(of_handler).chain(self.named.iter().cloned());
        let (mut files, mut refused) = (Vec::<WatchedFile>::new(), Vec::new());
        for file in all {
            let file = match checked(file, facts) {
                Ok(file) => file,
                Err(why) => {
                    if !refused.contains(&why) {
                        refused.push(why);
                    }
                    continue;
                }
            };
            let n_files = files.len();
            match files.iter_mut().find(|it| it.path == file.path) {
                Some(known) if file.reach == WatchReach::Anywhere => known.reach = file.reach,
                Some(_) => {}
                None if n_files < MAX_WATCHED => files.push(file),
                None => {
                    refused.push(NotWatched::TooMany(file.path));
                    break;
                }
            }
        }
        (files, refused)
    }
}

/// Takes a path as it leads by text, if it may be watched.
fn checked(file: WatchedFile, facts: &SessionFacts) -> Result<WatchedFile, NotWatched> {
    let WatchedFile { path, reach } = file;
    let cut = |path: String| path[..path.floor_char_boundary(80)].to_owned();
    if MAX_WATCHED_PATH < path.len() {
        return Err(NotWatched::TooLong(cut(path)));
    }
    if !path.starts_with('/') || path.contains('\0') {
        return Err(NotWatched::Relative(cut(path)));
    }
    let path = lexical(&path, "/", "/");
    match reach {
        WatchReach::Nothing => Err(NotWatched::Untrusted(path)),
        WatchReach::Workspace if !is_within(&path, facts) => Err(NotWatched::Outside(path)),
        WatchReach::Workspace | WatchReach::Anywhere => Ok(WatchedFile { path, reach }),
    }
}

/// Whether a path leads into the workspace by text.
fn is_within(path: &str, facts: &SessionFacts) -> bool {
    let real = facts.real.get(&*facts.workspace).map(String::as_str);
    let mut spellings = [Some(&*facts.workspace), real].into_iter().flatten();
    spellings.any(|it| path.strip_prefix(it).is_some_and(|below| below.starts_with('/')))
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
