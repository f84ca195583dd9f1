//! The files in which hooks leave lines for later commands (`CLAUDE_ENV_FILE`).
//!
//! A file is there only as long as its handler runs. What it holds then is kept in memory, so that nothing but hooks
//! changes what commands begin with.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once},
};

use ennead_runtime::hook::{
    ExportRun, ExportingHandler, ExportsRefused, HookExports, MAX_EXPORT_BYTES, ShellExports,
};
use ennead_tools::{locked::Locked as _, own_file, process_tree::new_mark};
use tokio::task::spawn_blocking;

use crate::groundwork::files::{in_directory, private};

/// What hooks of a session have its commands begin with. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct SessionExports {
    known: Arc<Mutex<KnownExports>>,
    /// What an earlier process left is removed once.
    swept: Arc<Once>,
}

/// How the names of the files begin.
const FILE_NAME: &str = "hook-env";

#[derive(Debug, Default)]
struct KnownExports {
    of_hooks: HookExports,
    /// What follows from that.
    for_shell: ShellExports,
}

/// The file of a handler that runs. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ExportFile {
    exports: SessionExports,
    handler: ExportingHandler,
    run: ExportRun,
    file: RemovedFile,
}

#[derive(Debug)]
struct RemovedFile(PathBuf);

impl Drop for RemovedFile {
    fn drop(&mut self) {
        // The handler may have removed it.
        let _gone = fs::remove_file(&self.0);
    }
}

impl Default for SessionExports {
    fn default() -> Self {
        Self { known: Arc::default(), swept: Arc::new(Once::new()) }
    }
}

impl SessionExports {
    /// Returns what a command begins with.
    pub(crate) fn for_shell(&self) -> ShellExports {
        self.known.locked().for_shell.clone()
    }

    /// Makes the file of a handler that is about to run, with what it wrote before. `None`: it cannot be made, and the
    /// handler has none.
    pub(crate) async fn begin(
        &self,
        handler: ExportingHandler,
        directory: &str,
    ) -> Option<ExportFile> {
        let run = self.change(|it| it.begin(&handler));
        let directory = PathBuf::from(directory);
        let (text, swept) = (Arc::clone(&run.before), Arc::clone(&self.swept));
        let made = spawn_blocking(move || {
            swept.call_once(|| sweep(&directory));
            made(directory.join(format!("{}.sh", new_mark(FILE_NAME))), &text)
        });
        let file = made.await.ok()?.ok()?;
        Some(ExportFile { exports: self.clone(), handler, run, file })
    }

    fn change<T>(&self, change: impl FnOnce(&mut HookExports) -> T) -> T {
        let mut known = self.known.locked();
        let changed = change(&mut known.of_hooks);
        known.for_shell = known.of_hooks.for_shell();
        changed
    }
}

impl ExportFile {
    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.file.0
    }

    /// Takes what the file holds when the handler has ended.
    ///
    /// # Errors
    ///
    /// [`ExportsRefused`]: it cannot be taken, and what was there before stays.
    pub(crate) async fn end(self) -> Result<(), ExportsRefused> {
        let Self { exports, handler, run, file } = self;
        let read = spawn_blocking(move || read(&file)).await;
        let after = read.ok().and_then(Result::ok).ok_or(ExportsRefused::Unreadable)?;
        exports.change(|it| it.end(&handler, &run, &after))
    }
}

fn made(path: PathBuf, text: &str) -> io::Result<RemovedFile> {
    let mut file = in_directory(&path, |it| private().write(true).create_new(true).open(it))?;
    let made = RemovedFile(path);
    file.write_all(text.as_bytes())?;
    Ok(made)
}

/// Reads one byte more than is taken, so that what is too long is known to be so.
fn read(file: &RemovedFile) -> io::Result<Vec<u8>> {
    own_file::read(&file.0, MAX_EXPORT_BYTES as u64 + 1)
}

/// Removes the files of handlers that a process left which was killed.
fn sweep(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|it| it.file_name().to_string_lossy().starts_with(FILE_NAME)) {
        // What cannot be removed stays, for its owner alone.
        let _left = fs::remove_file(entry.path());
    }
}
