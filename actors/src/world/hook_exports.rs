//! The files in which hooks leave lines for later commands (`CLAUDE_ENV_FILE`).
//!
//! A file is there only as long as its handler runs. What it holds then is kept in memory, so that nothing but hooks
//! changes what commands begin with.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead_runtime::hook::{
    ExportingHandler, ExportsRefused, HookExports, MAX_EXPORT_BYTES, ShellExports,
};
use ennead_tools::{locked::Locked as _, process_tree::new_mark};
use tokio::task::spawn_blocking;

use crate::groundwork::files::{in_directory, private};

/// What hooks of a session have its commands begin with. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionExports(Arc<Mutex<KnownExports>>);

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
    before: Arc<str>,
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

impl SessionExports {
    /// Returns what a command begins with.
    pub(crate) fn for_shell(&self) -> ShellExports {
        self.0.locked().for_shell.clone()
    }

    /// Makes the file of a handler that is about to run, with what it wrote before. `None`: it cannot be made, and the
    /// handler has none.
    pub(crate) async fn begin(
        &self,
        handler: ExportingHandler,
        directory: &str,
    ) -> Option<ExportFile> {
        let before = self.change(|it| it.begin(&handler));
        let path = Path::new(directory).join(format!("{}.sh", new_mark("hook-env")));
        let text = Arc::clone(&before);
        let made = spawn_blocking(move || made(path, &text)).await.ok()?;
        let file = made.ok()?;
        Some(ExportFile { exports: self.clone(), handler, before, file })
    }

    fn change<T>(&self, change: impl FnOnce(&mut HookExports) -> T) -> T {
        let mut known = self.0.locked();
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
        let Self { exports, handler, before, file } = self;
        let read = spawn_blocking(move || read(&file)).await;
        let after = read.ok().and_then(Result::ok).ok_or(ExportsRefused::Unreadable)?;
        exports.change(|it| it.end(&handler, &before, &after))
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
    // A pipe in its place would hold this thread until something opens the other end.
    if !fs::symlink_metadata(&file.0)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(&file.0)?.take(MAX_EXPORT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
