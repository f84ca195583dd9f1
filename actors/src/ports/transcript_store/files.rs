//! Transcripts in the file system, readable by their owner alone.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_tools::own_file::{NO_LINK, is_link};

use super::{
    Holder, Lease, StoreError, SyncWork, TranscriptLog, TranscriptStore, in_place,
    lock::SessionLock,
};
use crate::groundwork::files;

/// Keeps transcripts as files; the name is the path.
///
/// ```
/// use ennead::transcript::{FileStore, TranscriptStore};
///
/// let directory = tempfile::tempdir()?;
/// assert!(FileStore::default().list(&directory.path().join("none"))?.is_empty());
/// # Ok::<(), ennead::data::StoreError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FileStore {}

fn a_link() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is a link, and nothing is written through links",
    )
}

fn no_regular_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Reads what is under a name, unless that would be waited for or has no end.
fn read_with(
    name: &Path,
    read: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, StoreError> {
    let read = fs::metadata(name).and_then(|it| {
        // A pipe would be waited for, and a device may have no end.
        let is_readable = it.is_file() || it.is_dir();
        if is_readable { read() } else { Err(no_regular_file()) }
    });
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing,
        _ => StoreError::Failed(error),
    })
}

impl TranscriptStore for FileStore {
    fn open(&self, name: &Path) -> Result<Box<dyn TranscriptLog>, StoreError> {
        let file = files::in_directory(name, |path| {
            // Open for both, so that a pipe waits for nobody; and not through a link, which a command of the session may
            // have put there.
            let file = files::private()
                .read(true)
                .append(true)
                .create(true)
                .custom_flags(NO_LINK)
                .open(path)
                .map_err(|it| if is_link(&it) { a_link() } else { it })?;
            // What is written into a pipe or a device is not there to be read again.
            if file.metadata()?.is_file() { Ok(file) } else { Err(no_regular_file()) }
        })?;
        Ok(Box::new(FileLog { path: name.to_owned(), file: Arc::new(file), unsynced: Vec::new() }))
    }

    fn read(&self, name: &Path) -> Result<Vec<u8>, StoreError> {
        read_with(name, || fs::read(name))
    }

    fn read_range(&self, name: &Path, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        read_with(name, || {
            let mut file = File::open(name)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(max).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(files::write_whole(name, bytes).map(drop)?)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
        match fs::read_dir(directory) {
            Ok(entries) => Ok(entries.flatten().map(|it| it.path()).collect()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn lock(&self, name: &Path, holder: &Holder) -> Result<Lease, StoreError> {
        let lock = SessionLock::take(name, holder)?;
        let (epoch, file) = (lock.epoch(), lock.identity());
        let name = name.to_owned();
        Ok(Lease::new(epoch, lock).watched(move || file.is_some_and(|it| it.is_replaced_at(&name))))
    }
}

/// A transcript file that is open for appending.
#[derive(Debug)]
pub(super) struct FileLog {
    path: PathBuf,
    file: Arc<File>,
    /// Texts that are written and may not be on disk.
    unsynced: Vec<Arc<File>>,
}

impl TranscriptLog for FileLog {
    fn n_bytes(&mut self) -> Result<u64, StoreError> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&mut self, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<usize, StoreError> {
        Ok(append_to(&*self.file, bytes)?)
    }

    fn attach(&mut self, name: &Path, text: &[u8]) -> Result<(), StoreError> {
        if !name.exists() {
            self.unsynced.push(Arc::new(files::write_whole(name, text)?));
        }
        Ok(())
    }

    fn sync(&mut self) -> SyncWork {
        let mut files = std::mem::take(&mut self.unsynced);
        files.push(Arc::clone(&self.file));
        Box::new(move || Ok(files.iter().try_for_each(|file| file.sync_data())?))
    }

    fn ensure_in_place(&mut self, n_bytes: u64) -> Result<(), StoreError> {
        if let Some(file) = in_place::restored(&self.file, &self.path, n_bytes)? {
            self.file = Arc::new(file);
        }
        Ok(())
    }

    fn is_in_place(&self, n_bytes: u64) -> bool {
        in_place::is_in_place(&self.file, &self.path, n_bytes)
    }
}

/// Appends bytes, mostly in one write, and returns how many. After one that fell short the next says why: a full
/// disk takes what fits and refuses the rest.
fn append_to(mut file: impl Write, bytes: &[u8]) -> io::Result<usize> {
    let mut n_written = 0;
    while let Some(rest) = bytes.get(n_written..).filter(|it| !it.is_empty()) {
        match file.write(rest) {
            Ok(0) => break,
            Ok(n) => n_written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_written)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A file whose first writes are cut short or fail as the test says; later ones are whole.
    #[derive(Debug, Default)]
    struct Medium {
        kept: Vec<u8>,
        writes: VecDeque<io::Result<usize>>,
    }

    impl Write for Medium {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = self.writes.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.kept.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // REQ: SES-2
    #[test]
    fn write_that_takes_only_a_part_is_gone_on_with() {
        let full = || Err(io::ErrorKind::StorageFull.into());
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        for (writes, expected, kept) in [
            (vec![], Ok(6), "abcdef"),
            (vec![Ok(2), Ok(1)], Ok(6), "abcdef"),
            (vec![interrupted(), Ok(2), interrupted()], Ok(6), "abcdef"),
            (vec![Ok(4), Ok(0)], Ok(4), "abcd"),
            (vec![Ok(4), full()], Err(io::ErrorKind::StorageFull), "abcd"),
        ] {
            let mut medium = Medium { writes: writes.into(), ..Medium::default() };
            let appended = append_to(&mut medium, b"abcdef").map_err(|it| it.kind());
            assert_eq!((appended, &medium.kept[..]), (expected, kept.as_bytes()));
        }
    }
}
