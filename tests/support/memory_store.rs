//! A transcript store without files, as an embedder would write one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead::{
    data::{Holder, Lease, StoreError},
    transcript::{TranscriptLog, TranscriptStore},
};

/// Keeps transcripts in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    texts: BTreeMap<PathBuf, Vec<u8>>,
    /// Locks that were ever taken, with the last holder.
    holders: BTreeMap<PathBuf, Holder>,
    held: BTreeSet<PathBuf>,
}

impl MemoryStore {
    /// All that is kept, by name.
    pub(crate) fn texts(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.kept.lock().unwrap().texts.clone()
    }
}

impl TranscriptStore for MemoryStore {
    fn open(&self, name: &Path) -> Result<Box<dyn TranscriptLog>, StoreError> {
        self.kept.lock().unwrap().texts.entry(name.to_owned()).or_default();
        Ok(Box::new(MemoryLog { name: name.to_owned(), store: self.clone() }))
    }

    fn read(&self, name: &Path) -> Result<Vec<u8>, StoreError> {
        self.kept.lock().unwrap().texts.get(name).cloned().ok_or(StoreError::Missing)
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        self.kept.lock().unwrap().texts.insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let kept = self.kept.lock().unwrap();
        Ok(kept.texts.keys().filter(|it| it.parent() == Some(directory)).cloned().collect())
    }

    fn lock(&self, name: &Path, holder: &Holder) -> Result<Lease, StoreError> {
        let mut kept = self.kept.lock().unwrap();
        let last = kept.holders.get(name).cloned();
        if !kept.held.insert(name.to_owned()) {
            return Err(StoreError::Locked { holder: last });
        }
        let mut holder = holder.clone();
        holder.epoch = last.map_or(0, |it| it.epoch) + 1;
        let epoch = holder.epoch;
        kept.holders.insert(name.to_owned(), holder);
        Ok(Lease::new(epoch, MemoryLock { name: name.to_owned(), kept: Arc::clone(&self.kept) }))
    }
}

/// A lock that is held.
struct MemoryLock {
    name: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.kept.lock().unwrap().held.remove(&self.name);
    }
}

#[derive(Debug)]
struct MemoryLog {
    name: PathBuf,
    store: MemoryStore,
}

impl MemoryLog {
    fn text<T>(&self, use_it: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        use_it(self.store.kept.lock().unwrap().texts.entry(self.name.clone()).or_default())
    }
}

impl TranscriptLog for MemoryLog {
    fn n_bytes(&mut self) -> Result<u64, StoreError> {
        Ok(self.text(|it| it.len() as u64))
    }

    fn read(&mut self, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        let bound = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        Ok(self.text(|it| it.iter().skip(bound(offset)).take(bound(max)).copied().collect()))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<usize, StoreError> {
        self.text(|it| it.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn attach(&mut self, name: &Path, text: &[u8]) -> Result<(), StoreError> {
        self.store.write(name, text)
    }

    fn sync(&mut self) -> Box<dyn FnOnce() -> Result<(), StoreError> + Send> {
        Box::new(|| Ok(()))
    }
}
