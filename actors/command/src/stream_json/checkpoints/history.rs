//! What lies on disk: the index of prompts and files, and the bytes that files had.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use ennead_runtime::digest::Digest;
use ennead_tools::source_file::{ReadError, open_chosen};
use serde::{Deserialize, Serialize};

use super::RewindError;

/// Bytes of a file that are kept at most.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// A line of the index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The files after this one were changed in answer to this prompt.
    Prompt { id: String },
    /// A file is about to be changed for the first time since.
    File { path: PathBuf, was: CheckpointState },
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckpointState {
    /// Nothing lay at the path.
    Missing,
    /// Bytes of this digest, with these permissions.
    Kept { digest: Digest, mode: u32 },
    /// It was too large.
    TooLarge,
}

/// The checkpoints of one directory.
#[derive(Debug)]
pub(super) struct History {
    pub(super) directory: PathBuf,
    /// Files that were kept since the last prompt; `None` before the first.
    pub(super) since: Option<BTreeSet<PathBuf>>,
}

impl History {
    fn index(&self) -> PathBuf {
        self.directory.join("index.jsonl")
    }

    pub(super) fn note(&self, entry: &Entry) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut options = OpenOptions::new();
        let mut index = options.create(true).append(true).mode(0o600).open(self.index())?;
        index.write_all(format!("{}\n", serde_json::to_string(entry)?).as_bytes())
    }

    pub(super) fn keep(&mut self, path: &Path) -> io::Result<()> {
        if self.since.as_ref().is_none_or(|it| it.contains(path)) {
            return Ok(());
        }
        let was = match open_chosen(path) {
            Err(ReadError::Missing) => CheckpointState::Missing,
            // No tool changes what is not a regular file.
            Err(ReadError::NotRegular | ReadError::MadeUp) => return Ok(()),
            Err(error) => return Err(error.into()),
            Ok(opened) => match opened.read(MAX_BYTES) {
                Err(ReadError::TooLarge { .. }) => CheckpointState::TooLarge,
                Err(error) => return Err(error.into()),
                Ok(bytes) => {
                    let digest = Digest::of(&bytes);
                    let copy = self.directory.join(digest.to_string());
                    if !copy.exists() {
                        replace_file(&copy, &bytes, 0o600)?;
                    }
                    CheckpointState::Kept {
                        digest,
                        mode: fs::metadata(path)?.permissions().mode() & 0o7777,
                    }
                }
            },
        };
        self.note(&Entry::File { path: path.to_owned(), was })?;
        self.since.iter_mut().for_each(|it| _ = it.insert(path.to_owned()));
        Ok(())
    }

    /// The first state of each file that was changed since a prompt.
    pub(super) fn since_prompt(
        &self,
        prompt: &str,
    ) -> Result<BTreeMap<PathBuf, CheckpointState>, RewindError> {
        let text = fs::read_to_string(self.index()).unwrap_or_default();
        let entries = text.lines().filter_map(|it| serde_json::from_str(it).ok());
        let is_it = |it: &Entry| matches!(it, Entry::Prompt { id } if id == prompt);
        let mut since = entries.skip_while(|it| !is_it(it)).peekable();
        if since.peek().is_none() {
            return Err(RewindError::UnknownPrompt(prompt.into()));
        }
        let mut states = BTreeMap::new();
        for entry in since {
            if let Entry::File { path, was } = entry {
                states.entry(path).or_insert(was);
            }
        }
        Ok(states)
    }

    /// What a file is to hold; `None`: there is to be none.
    pub(super) fn content(
        &self,
        path: &Path,
        state: &CheckpointState,
    ) -> Result<Option<(Vec<u8>, u32)>, RewindError> {
        // A link that was put there since would lead elsewhere.
        let parent = path.parent().unwrap_or(path);
        if parent.canonicalize().is_ok_and(|it| it != parent) {
            return Err(RewindError::Moved(path.to_owned()));
        }
        match state {
            CheckpointState::Missing => Ok(None),
            CheckpointState::TooLarge => Err(RewindError::NotKept(path.to_owned())),
            CheckpointState::Kept { digest, mode } => {
                let copy = self.directory.join(digest.to_string());
                let bytes = fs::read(&copy)
                    .map_err(|error| RewindError::Io { path: copy.clone(), error })?;
                if Digest::of(&bytes) == *digest {
                    Ok(Some((bytes, *mode)))
                } else {
                    Err(RewindError::NotKept(path.to_owned()))
                }
            }
        }
    }
}

/// Makes a file what it was.
pub(super) fn restore(path: &Path, content: Option<&(Vec<u8>, u32)>) -> io::Result<()> {
    match content {
        Some((bytes, mode)) => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            replace_file(path, bytes, *mode)
        }
        None => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}

/// Puts a file in the place of another one, whole or not at all.
fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.persist(path).map_err(|it| it.error)?;
    Ok(())
}
