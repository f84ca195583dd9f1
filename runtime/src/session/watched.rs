//! Which files are watched for hooks, and which are not: a function of settings, directory and names. `file_watch` asks it and
//! fires the hooks.

use std::sync::Arc;

use crate::{
    hook::{
        HookEvent, HookHandler, MAX_WATCHED, MAX_WATCHED_PATH, Matcher, NotWatched, WatchReach,
        WatchedFile,
    },
    run::facts::SessionFacts,
    step7_permission_gate::path_resolution::lexical,
    turn::effect::WatchOrder,
};

/// What is watched, and by what.
#[derive(Debug)]
pub(super) struct FileWatch {
    /// By which settings, and where.
    pub(super) order: WatchOrder,
    /// What hooks have named.
    pub(super) named: Vec<WatchedFile>,
    pub(super) watched: Arc<[WatchedFile]>,
    /// What is not watched, of which there was an alert.
    pub(super) refused: Vec<NotWatched>,
}

impl FileWatch {
    /// Returns the files to be watched, and what is not.
    pub(super) fn files(&self, facts: &SessionFacts) -> (Vec<WatchedFile>, Vec<NotWatched>) {
        let WatchOrder { derived, cwd, .. } = &self.order;
        let handlers = derived.settings().hooks.get(&HookEvent::FileChanged);
        // No handler would receive a change.
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

/// Returns whether a path leads into the workspace by text.
pub(super) fn is_within(path: &str, facts: &SessionFacts) -> bool {
    let real = facts.real.get(&*facts.workspace).map(String::as_str);
    let mut spellings = [Some(&*facts.workspace), real].into_iter().flatten();
    spellings.any(|it| path.strip_prefix(it).is_some_and(|below| below.starts_with('/')))
}
