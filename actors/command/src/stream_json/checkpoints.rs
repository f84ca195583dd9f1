//! File checkpoints: what tools found in a file before they changed it for the first time after a prompt, so that `rewind_files` can put it back.
//!
//! Next to the transcript lies `file-history/`: an index, one line for each prompt and each file, and the bytes that
//! files had. So a later process can go back as well. What commands change is not kept.

mod history;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use ennead::{
    permission::Permit,
    tool::{BoxFuture, Tool, ToolContext, ToolOutcome, ToolSpec},
};
use ennead_runtime::tool::ToolErrorKind;
use ennead_tools::locked::Locked as _;
use tokio::task::spawn_blocking;

use self::history::{Entry, History, MAX_BYTES, restore};

/// Tools whose changes are kept.
const CHANGING: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Why files are not put back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RewindError {
    /// Nothing was kept for the prompt.
    #[error("no file checkpoint is kept for message {0}")]
    UnknownPrompt(String),
    /// A file was too large to be kept.
    #[error("{} had more than {MAX_BYTES} bytes and was not kept", .0.display())]
    NotKept(PathBuf),
    /// The directory of a file is another one by now.
    #[error("{} does not lie where it did", .0.display())]
    Moved(PathBuf),
    /// The file system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file that could not be read or written.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        error: io::Error,
    },
}

/// Returns where files of a session are kept, by its transcript.
pub fn directory_of(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join("file-history")
}

/// Keeps files of a session. Clones are one.
#[derive(Clone, Debug)]
pub struct Checkpoints(Arc<Mutex<History>>);

impl Checkpoints {
    /// Keeps files in this directory, which is made when it is needed.
    pub fn new(directory: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(History { directory, since: None })))
    }

    /// Returns the tools, of which those that change files keep what they find.
    #[must_use]
    pub fn watching(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let watched = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
            if CHANGING.contains(&tool.spec().name.as_str()) {
                Arc::new(CheckpointedTool { tool, checkpoints: self.clone() })
            } else {
                tool
            }
        };
        tools.into_iter().map(watched).collect()
    }

    /// Keeps files for another session.
    pub(super) fn follow(&self, directory: PathBuf) {
        let mut history = self.lock();
        if history.directory != directory {
            *history = History { directory, since: None };
        }
    }

    /// Begins a prompt: changes belong to it from now on. Writes a line on the thread of the caller.
    ///
    /// # Errors
    ///
    /// Those of the file system; nothing is kept for the prompt then.
    pub(super) fn begin(&self, prompt: &str) -> io::Result<()> {
        let mut history = self.lock();
        history.since = None;
        history.note(&Entry::Prompt { id: prompt.into() })?;
        history.since = Some(BTreeSet::new());
        Ok(())
    }

    /// Restores every file that was changed since the prompt to the state that it had then; returns them. Nothing is
    /// changed where one of them was not kept. Reads and writes files on the thread of the caller.
    pub(super) fn rewind(&self, prompt: &str) -> Result<Vec<PathBuf>, RewindError> {
        let mut history = self.lock();
        let states = history.since_prompt(prompt)?;
        let mut found = Vec::with_capacity(states.len());
        for (path, state) in states {
            let content = history.content(&path, &state)?;
            found.push((path, content));
        }
        for (path, content) in &found {
            restore(path, content.as_ref())
                .map_err(|error| RewindError::Io { path: path.clone(), error })?;
        }
        // What is changed from here on is kept anew.
        history.since = history.since.as_ref().map(|_| BTreeSet::new());
        Ok(found.into_iter().map(|it| it.0).collect())
    }

    /// Keeps a file that is about to be changed.
    fn keep(&self, path: &Path) -> io::Result<()> {
        self.lock().keep(path)
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.locked()
    }
}

/// A tool that keeps a file before it changes it.
#[derive(Debug)]
struct CheckpointedTool {
    tool: Arc<dyn Tool>,
    checkpoints: Checkpoints,
}

impl Tool for CheckpointedTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.tool.check_input(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let real = permit.path().map(|it| PathBuf::from(&it.real));
        let checkpoints = self.checkpoints.clone();
        let tool = Arc::clone(&self.tool);
        Box::pin(async move {
            if let Some(real) = real {
                // What could not be put back is not changed.
                let kept = spawn_blocking(move || checkpoints.keep(&real)).await;
                if let Err(why) = kept.map_err(io::Error::other).flatten() {
                    let text = format!("The file cannot be kept before it is changed: {why}.");
                    return ToolOutcome::failed(ToolErrorKind::Failed, text);
                }
            }
            tool.run(permit, context).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, Checkpoints) {
        let place = tempfile::tempdir().unwrap();
        let work = place.path().canonicalize().unwrap().join("work");
        fs::create_dir(&work).unwrap();
        let kept = Checkpoints::new(place.path().join("s/file-history"));
        (place, work, kept)
    }

    // REQ: SUR-3
    #[test]
    fn files_are_as_they_were_when_the_prompt_began_in_a_later_process_too() {
        let (place, work, kept) = place();
        let (a, b, c) = (work.join("a"), work.join("b"), work.join("deep/c"));
        fs::write(&a, "one").unwrap();
        fs::set_permissions(&a, fs::Permissions::from_mode(0o755)).unwrap();
        // Before the first prompt nothing is kept.
        kept.keep(&a).unwrap();
        kept.begin("p1").unwrap();
        kept.keep(&a).unwrap();
        fs::write(&a, "two").unwrap();
        kept.keep(&a).unwrap();
        fs::write(&a, "three").unwrap();
        kept.begin("p2").unwrap();
        for (path, text) in [(&a, "four"), (&b, "new")] {
            kept.keep(path).unwrap();
            fs::write(path, text).unwrap();
        }
        kept.keep(&c).unwrap();
        fs::create_dir(work.join("deep")).unwrap();
        fs::write(&c, "x").unwrap();
        assert_eq!(kept.rewind("p2").unwrap(), [a.clone(), b.clone(), c.clone()]);
        assert_eq!(fs::read_to_string(&a).unwrap(), "three");
        assert!(!b.exists() && !c.exists());
        let later = Checkpoints::new(place.path().join("s/file-history"));
        later.rewind("p1").unwrap();
        assert_eq!(fs::read_to_string(&a).unwrap(), "one");
        assert_eq!(fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o755);
        let unknown = later.rewind("p3").unwrap_err();
        assert!(matches!(unknown, RewindError::UnknownPrompt(_)), "{unknown}");
        later.follow(place.path().join("other"));
        assert!(later.rewind("p1").is_err());
    }

    // REQ: SUR-3, TOL-6
    #[test]
    fn every_built_in_tool_that_changes_a_file_it_names_keeps_it() {
        use ennead::tool::{Access, builtin_tools};
        use ennead_tools::registry::optional_tools;
        let (_place, _work, kept) = place();
        let changing = |it: &Arc<dyn Tool>| matches!(it.spec().access, Access::WritePath { .. });
        let tools: Vec<_> =
            builtin_tools().into_iter().chain(optional_tools()).filter(changing).collect();
        let names: Vec<_> = tools.iter().map(|it| it.spec().name.to_string()).collect();
        assert_eq!(names, ["Write", "Edit", "NotebookEdit", "MultiEdit"]);
        for (tool, kept) in tools.iter().zip(kept.watching(tools.clone())) {
            assert!(!Arc::ptr_eq(tool, &kept), "{}", tool.spec().name);
        }
    }

    // REQ: SUR-3
    #[test]
    fn nothing_is_put_back_where_one_file_cannot_be() {
        let (place, work, kept) = place();
        let (large, small) = (work.join("large"), work.join("small"));
        let file = fs::File::create(&large).unwrap();
        file.set_len(MAX_BYTES + 1).unwrap();
        fs::write(&small, "one").unwrap();
        kept.begin("p").unwrap();
        kept.keep(&large).unwrap();
        kept.keep(&small).unwrap();
        fs::write(&small, "two").unwrap();
        let error = kept.rewind("p").unwrap_err();
        assert!(matches!(error, RewindError::NotKept(_)), "{error}");
        assert_eq!(fs::read_to_string(&small).unwrap(), "two");
        // Opening a pipe would wait for its writer; tools refuse it.
        let pipe = work.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        kept.keep(&pipe).unwrap();
        // A directory that has become a link leads elsewhere.
        let inner = work.join("inner");
        fs::create_dir(&inner).unwrap();
        kept.begin("q").unwrap();
        kept.keep(&inner.join("x")).unwrap();
        fs::remove_dir(&inner).unwrap();
        fs::write(place.path().join("x"), "outside").unwrap();
        symlink(place.path(), &inner).unwrap();
        let error = kept.rewind("q").unwrap_err();
        assert!(matches!(error, RewindError::Moved(_)), "{error}");
        assert_eq!(fs::read_to_string(place.path().join("x")).unwrap(), "outside");
    }
}
