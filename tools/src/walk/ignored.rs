//! What ignore files leave out of a search.
//!
//! The files are a repository's own, so they are read here and not by the walk: only regular files, no
//! more bytes and lines than a person writes, and no pattern that [`globs::check`] refuses. What is over
//! a bound is passed over, as a line that cannot be read is. Otherwise the rules are those of the `ignore`
//! crate: `.ignore` before `.gitignore` before `.git/info/exclude`, the nearest directory first, and what is
//! git's counts up to the directory of the repository.

use std::{
    collections::HashMap,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{globs, locked::Locked as _, paths};

/// Bytes of one ignore file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// Patterns of one ignore file that count.
const MAX_LINES: usize = 5_000;

/// Which ignore files count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IgnoreFiles {
    /// No ignore file counts.
    None,
    /// Only files named `.gitignore` count.
    OfGit,
    /// `.ignore`, `.gitignore` and `.git/info/exclude`.
    All,
}

/// The ignore files of a walk, read as it comes to them.
#[derive(Debug)]
pub(super) struct Ignored {
    files: IgnoreFiles,
    levels: Mutex<HashMap<PathBuf, Arc<IgnoreLevel>>>,
}

/// The ignore files of one directory, and the directory above.
#[derive(Debug)]
struct IgnoreLevel {
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
    above: Option<Arc<IgnoreLevel>>,
}

impl Ignored {
    pub(super) fn new(files: IgnoreFiles) -> Self {
        Self { files, levels: Mutex::default() }
    }

    /// Returns whether the ignore files of its directory, and of those above, leave a path out.
    pub(super) fn leaves_out(&self, path: &Path, is_dir: bool) -> bool {
        let Some(parent) = path.parent().filter(|_| self.files != IgnoreFiles::None) else {
            return false;
        };
        let level = self.level(parent);
        let levels = || std::iter::successors(Some(&level), |it| it.above.as_ref());
        let mut of_ignore = levels().map(|it| it.ignore.matched(path, is_dir));
        if let Some(found) = of_ignore.find(|it| !it.is_none()) {
            return found.is_ignore();
        }
        // The directory of a repository is the last one whose git files count.
        let mut above_repository = false;
        let of_git: Vec<&Arc<IgnoreLevel>> = levels()
            .take_while(|it| !std::mem::replace(&mut above_repository, it.is_repository))
            .collect();
        let gitignores = of_git.iter().map(|it| it.gitignore.matched(path, is_dir));
        let excludes = of_git.iter().map(|it| it.exclude.matched(path, is_dir));
        gitignores.chain(excludes).find(|it| !it.is_none()).is_some_and(|it| it.is_ignore())
    }

    fn level(&self, directory: &Path) -> Arc<IgnoreLevel> {
        // Every change is one insertion.
        let mut levels = self.levels.locked();
        let mut missing = Vec::new();
        let mut above = None;
        for directory in directory.ancestors() {
            if let Some(level) = levels.get(directory) {
                above = Some(Arc::clone(level));
                break;
            }
            missing.push(directory);
        }
        for directory in missing.into_iter().rev() {
            let level = Arc::new(self.read(directory, above.take()));
            levels.insert(directory.to_owned(), Arc::clone(&level));
            above = Some(level);
        }
        above.unwrap_or_else(|| Arc::new(self.read(directory, None)))
    }

    fn read(&self, directory: &Path, above: Option<Arc<IgnoreLevel>>) -> IgnoreLevel {
        let read = |name: &str| patterns(directory, &directory.join(name));
        let is_all = self.files == IgnoreFiles::All;
        let is_repository = directory.join(".git").exists();
        IgnoreLevel {
            ignore: if is_all { read(".ignore") } else { Gitignore::empty() },
            gitignore: read(".gitignore"),
            exclude: if is_all && is_repository {
                read(".git/info/exclude")
            } else {
                Gitignore::empty()
            },
            is_repository,
            above,
        }
    }
}

/// The patterns of a file, relative to a directory; none when it cannot be read.
fn patterns(directory: &Path, file: &Path) -> Gitignore {
    let Ok(opened) = paths::open_file(file) else { return Gitignore::empty() };
    let mut bytes = Vec::new();
    if opened.take(MAX_BYTES).read_to_end(&mut bytes).is_err() {
        return Gitignore::empty();
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{feff}').lines().take(MAX_LINES) {
        if globs::check(line).is_ok() {
            // A line that is not a pattern counts for nothing.
            let _unreadable = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
