//! The vault next to a transcript: what was taken out of its lines where the model was shown secrets.
//!
//! `<session>/vault`, and `agent-<id>.vault` next to the transcript of a sub-agent, made with the first secret. Each write appends a line:
//!
//! ```text
//! {"v":1,"key":"4f1c8a3b90d2e6f7","sealed":"…base64…"}
//! ```
//!
//! `sealed` is a sealed box of libsodium: to the public key of the settings, with a key pair of its own that is
//! forgotten. So this process can add to a vault, and neither it nor who takes it over can read what is in it. `key` names the
//! public key. Lines are written before those of the transcript that they are about; one too many does no harm.
//!
//! A vault that cannot be written to fails no session: what could not be written is kept and tried again with
//! the next lines, up to [`MAX_UNWRITTEN`] bytes. One that is replaced by something else gets no more of them. It is forced
//! to disk with the transcript, so a write that waits for the disk waits for both.

#[cfg(feature = "vault")]
pub(crate) mod opened;
pub(crate) mod replayed;

use std::{borrow::Cow, io, path::PathBuf, sync::Arc};

use ennead_runtime::{
    redaction::VaultKey,
    transcript::{
        entry::{Line, LineFrame, StoredText},
        restore::SecretsTaken,
    },
};

use crate::ports::transcript_store::{StoreError, SyncWork, TranscriptLog, TranscriptStore};

/// Sealed bytes that are kept while they cannot be written.
const MAX_UNWRITTEN: usize = 1024 * 1024;

/// A vault that is added to.
#[derive(Debug)]
pub(crate) struct VaultFile {
    key: VaultKey,
    path: PathBuf,
    store: Arc<dyn TranscriptStore>,
    /// Opened with the first secret.
    log: Option<Box<dyn TranscriptLog>>,
    /// Bytes that it has at least.
    n_bytes: u64,
    /// It may end in the middle of a line.
    is_torn: bool,
    /// Of the write that is being made.
    taken: SecretsTaken,
    /// Lines that are sealed and not written.
    unwritten: Vec<u8>,
    /// The last write failed, which was reported.
    is_failing: bool,
    /// Something was written that may not be on disk.
    is_dirty: bool,
    /// Somebody put something else in its place.
    is_replaced: bool,
}

impl VaultFile {
    /// Makes the vault of a transcript. Nothing is written before there is a secret.
    pub(crate) fn new(key: VaultKey, path: PathBuf, store: Arc<dyn TranscriptStore>) -> Self {
        Self {
            key,
            path,
            store,
            log: None,
            n_bytes: 0,
            is_torn: false,
            taken: SecretsTaken::default(),
            unwritten: Vec::new(),
            is_failing: false,
            is_dirty: false,
            is_replaced: false,
        }
    }

    /// Notes what was taken out of a text before it was stored.
    pub(crate) fn note_text(&mut self, original: &StoredText, written: &StoredText) {
        self.taken.note_text(original, written);
    }

    /// Notes what was taken out of lines, given as they will be on the file, and with each whether it shares the line of the
    /// one before. Then all that was noted is sealed and written.
    pub(crate) fn keep_lines(&mut self, sealed: &[u8], lines: &[(&Line, bool)], frame: &LineFrame) {
        self.taken.note_lines(sealed, lines, frame);
        let (taken, n_before) = (std::mem::take(&mut self.taken), self.unwritten.len());
        if !taken.is_empty() {
            match entry(&self.key, &taken) {
                Some(line) if !self.is_replaced => {
                    self.unwritten.extend_from_slice(line.as_bytes())
                }
                _ => self.report_loss(),
            }
        }
        self.write();
        if MAX_UNWRITTEN < self.unwritten.len() {
            self.unwritten.truncate(n_before);
            self.report_loss();
        }
    }

    fn report_loss(&self) {
        tracing::warn!(path = %self.path.display(), "secrets of a write are lost to the vault");
    }

    /// Writes what is not written.
    pub(crate) fn write(&mut self) {
        if self.unwritten.is_empty() || self.is_replaced {
            return;
        }
        match self.append() {
            Ok(()) => {
                self.unwritten = Vec::new();
                self.is_failing = false;
            }
            Err(error) => {
                self.is_torn = true;
                if !std::mem::replace(&mut self.is_failing, true) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "the vault cannot be written; it is tried again");
                }
            }
        }
    }

    fn append(&mut self) -> Result<(), StoreError> {
        let log = match &mut self.log {
            Some(log) => log,
            None => {
                let mut log = self.store.open(&self.path)?;
                self.n_bytes = log.n_bytes()?;
                let last = self.n_bytes.checked_sub(1).map(|it| log.read(it, 1)).transpose()?;
                self.is_torn = last.is_some_and(|it| it != b"\n");
                self.log.insert(log)
            }
        };
        let mut bytes = Cow::Borrowed(&self.unwritten);
        if self.is_torn {
            bytes.to_mut().insert(0, b'\n');
        }
        self.is_dirty = true;
        let n_written = log.append(&bytes)?;
        self.n_bytes += n_written as u64;
        if n_written != bytes.len() {
            return Err(StoreError::Failed(io::ErrorKind::WriteZero.into()));
        }
        self.is_torn = false;
        Ok(())
    }

    /// Returns the work that brings what was written to disk, where there is any. What it cannot do is logged: no turn
    /// fails with a vault.
    pub(crate) fn sync(&mut self) -> Option<SyncWork> {
        let log = self.log.as_mut().filter(|_| std::mem::take(&mut self.is_dirty))?;
        let (work, path) = (log.sync(), self.path.clone());
        Some(Box::new(move || {
            if let Err(error) = work() {
                tracing::warn!(path = %path.display(), %error, "the vault cannot be forced to disk");
            }
            Ok(())
        }))
    }

    /// Makes sure that readers find what was written under its name. Where something else is there, nothing is added to
    /// that: it may be anything.
    pub(crate) fn ensure_in_place(&mut self) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.ensure_in_place(self.n_bytes) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the vault was replaced, and nothing more is kept in it");
            self.log = None;
            self.is_replaced = true;
            self.unwritten = Vec::new();
        }
    }
}

/// Returns the line of an entry; `None` if it cannot be sealed.
#[cfg(feature = "vault")]
fn entry(key: &VaultKey, taken: &SecretsTaken) -> Option<String> {
    use base64::Engine as _;
    use crypto_box::{PublicKey, aead::OsRng};

    let taken = serde_json::to_vec(taken).ok()?;
    let sealed = PublicKey::from(*key.bytes()).seal(&mut OsRng, &taken).ok()?;
    let sealed = base64::engine::general_purpose::STANDARD.encode(sealed);
    Some(format!("{{\"v\":1,\"key\":\"{}\",\"sealed\":\"{sealed}\"}}\n", name_of(key)))
}

/// Without the feature a session has no vault ([`Redaction::vault`](super::redaction::Redaction::vault)).
#[cfg(not(feature = "vault"))]
fn entry(_: &VaultKey, _: &SecretsTaken) -> Option<String> {
    None
}

/// What names a public key in a vault.
#[cfg(feature = "vault")]
fn name_of(key: &VaultKey) -> String {
    let digest = ennead_runtime::digest::Digest::of(key.bytes()).to_string();
    digest.get(..16).unwrap_or_default().to_owned()
}

#[cfg(feature = "vault")]
#[cfg(test)]
mod tests;
