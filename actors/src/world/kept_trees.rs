//! The trees of working directories, listed once for all sessions in them as long as they do not change.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead_runtime::ports::Clock as _;
use ennead_tools::locked::Locked as _;

use super::{
    clock::SystemClock,
    compiled_patterns::CompiledPatterns,
    file_states::{FilesLook, PathState},
    source_files::SessionDirs,
    tree::{PlaceTree, tree},
};

/// Trees that are kept, of some kilobytes each.
const MAX_TREES: usize = 64;

/// Directories that a tree which is kept was read from, at most: a look at it looks at each.
const MAX_DIRECTORIES: usize = 8;

#[derive(Clone, Debug)]
struct KeptTree {
    top: PathBuf,
    /// Patterns of what is hidden in it.
    hidden: Arc<[String]>,
    /// The directories that it was read from, each as it was before.
    directories: Arc<[(PathBuf, PathState)]>,
    text: Arc<str>,
}

impl KeptTree {
    fn is_of(&self, top: &Path, hidden: &[String]) -> bool {
        self.top == top && *self.hidden == *hidden
    }
}

/// The last trees of working directories, the oldest first.
#[derive(Debug, Default)]
pub(super) struct KeptTrees(Mutex<Vec<KeptTree>>);

impl KeptTrees {
    /// Returns the tree of a session's directory, where the directories in it are as they were when it was listed. Costs a look
    /// at each of them; where not all that changes them is reported, none is found.
    pub(super) fn find(&self, dirs: &SessionDirs, look: FilesLook<'_>) -> Option<String> {
        self.at(dirs.directory(), &dirs.hidden, look)
    }

    /// Lists the tree of a session's directory, and keeps it.
    pub(super) fn list(&self, dirs: &SessionDirs, patterns: &CompiledPatterns) -> String {
        let now_ns = i128::from(SystemClock::new().now().0) * 1_000_000;
        let hidden = patterns.of(&dirs.hidden);
        let tree = tree(dirs.directory(), hidden.as_deref());
        self.keep(dirs.directory(), &dirs.hidden, &tree, now_ns);
        tree.text
    }

    /// Returns the kept tree of this directory, if no directory in it has changed since.
    fn at(&self, top: &Path, hidden: &[String], look: FilesLook<'_>) -> Option<String> {
        let kept = self.0.locked().iter().find(|it| it.is_of(top, hidden)).cloned()?;
        let is_same = |it: &(PathBuf, PathState)| look.reported(&it.0) == Some(it.1);
        kept.directories.iter().all(is_same).then(|| kept.text.as_ref().to_owned())
    }

    /// Keeps a tree that was listed after `now_ns`, in nanoseconds since 1970. A tree with a directory that had only just been
    /// changed by then is not kept: a further change of that directory could bear the same time and would not be noticed.
    fn keep(&self, top: &Path, hidden: &Arc<[String]>, tree: &PlaceTree, now_ns: i128) {
        let is_settled = |it: &(PathBuf, PathState)| it.1.is_settled(now_ns);
        let Some(directories) = tree.directories.as_deref() else { return };
        if MAX_DIRECTORIES < directories.len() || !directories.iter().all(is_settled) {
            return;
        }
        let (hidden, text) = (Arc::clone(hidden), tree.text.as_str().into());
        let kept = KeptTree { top: top.to_owned(), hidden, directories: directories.into(), text };
        let mut trees = self.0.locked();
        trees.retain(|it| !it.is_of(&kept.top, &kept.hidden));
        if MAX_TREES <= trees.len() {
            trees.remove(0);
        }
        trees.push(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::world::file_states::FileStates;

    /// Long after all that a test does.
    fn later() -> i128 {
        i128::from(SystemClock::new().now().0 + 60_000) * 1_000_000
    }

    // REQ: CTX-3
    #[test]
    fn tree_is_kept_until_one_of_its_directories_changes() {
        let place = tempfile::tempdir().unwrap();
        let (top, inner) = (place.path().canonicalize().unwrap(), place.path().join("src"));
        fs::create_dir_all(inner.join("deep")).unwrap();
        let (trees, hidden) = (KeptTrees::default(), Arc::from([]));
        let states = FileStates::watching();
        let found = || trees.at(&top, &hidden, states.look());
        let keep = |now_ns| trees.keep(&top, &hidden, &tree(&top, None), now_ns);
        keep(later() - 60_000_000_000);
        assert_eq!(found(), None, "it was only just changed");
        keep(later());
        assert_eq!(found().unwrap(), "src/\n  deep/");
        fs::write(inner.join("deep/below"), "").unwrap();
        assert!(found().is_some(), "nothing of that directory is shown");
        fs::write(inner.join("a.rs"), "").unwrap();
        assert_eq!(found(), None);
        keep(later());
        assert_eq!(found().unwrap(), "src/\n  a.rs\n  deep/");
        let others: Arc<[String]> = Arc::from(["//x/**".to_owned()]);
        assert_eq!(trees.at(&top, &others, states.look()), None);
        assert_eq!(trees.at(&top, &hidden, FileStates::default().look()), None, "not reported");
        fs::remove_dir_all(&inner).unwrap();
        assert_eq!(found(), None);
    }

    #[test]
    fn trees_that_are_kept_are_few_and_of_few_directories() {
        let place = tempfile::tempdir().unwrap();
        let (trees, hidden) = (KeptTrees::default(), Arc::from([]));
        for n in 0..=MAX_TREES {
            let top = place.path().join(n.to_string());
            fs::create_dir(&top).unwrap();
            trees.keep(&top, &hidden, &tree(&top, None), later());
        }
        assert_eq!(trees.0.locked().len(), MAX_TREES);
        let wide = place.path().join("wide");
        for n in 0..MAX_DIRECTORIES {
            fs::create_dir_all(wide.join(n.to_string())).unwrap();
        }
        trees.keep(&wide, &hidden, &tree(&wide, None), later());
        assert_eq!(trees.at(&wide, &hidden, FileStates::watching().look()), None);
    }
}
