//! Replaying a transcript with what its vault holds, as far as there is a key and a vault.

use std::path::Path;

use ennead_runtime::transcript::{
    lines::FileLines,
    replay::{ReplayError, Replayed, StoredTexts, replay_lines, replay_restored},
    restore::Restorations,
};

#[cfg(feature = "vault")]
use super::opened::VaultKeys;
#[cfg(feature = "vault")]
use crate::ports::transcript_store::layout::vault_of;
use crate::{ports::transcript_store::TranscriptStore, storage::transcripts::TranscriptError};

/// Opens the vaults of transcripts; without keys it opens none.
#[derive(Default)]
pub(crate) struct VaultOpener {
    #[cfg(feature = "vault")]
    keys: Option<VaultKeys>,
}

/// What is known of what a transcript does not have.
#[derive(Default)]
pub(crate) struct VaultFindings {
    known: Restorations,
    gaps: Vec<String>,
    /// There is no vault, though a key was given.
    is_missing: bool,
}

impl VaultOpener {
    /// Opens by the texts of these secret keys.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::NoVaultKey`].
    #[cfg(feature = "vault")]
    pub(crate) fn new(keys: &[String]) -> Result<Self, TranscriptError> {
        let why = |error: ennead_runtime::redaction::NotAVaultKey| TranscriptError::NoVaultKey {
            why: error.to_string(),
        };
        Ok(Self { keys: Some(VaultKeys::read(keys).map_err(why)?) })
    }

    /// Opens the vault of a transcript; `is_named`: the caller asks for this one, and has a key of it.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::WrongVaultKey`], [`TranscriptError::Unreadable`].
    #[cfg(feature = "vault")]
    pub(crate) fn vault_of(
        &self,
        store: &dyn TranscriptStore,
        transcript: &Path,
        is_named: bool,
    ) -> Result<VaultFindings, TranscriptError> {
        use crate::ports::transcript_store::StoreError;

        let Some(keys) = &self.keys else { return Ok(VaultFindings::default()) };
        let vault = vault_of(transcript);
        let bytes = match store.read(&vault) {
            Ok(bytes) => bytes,
            Err(StoreError::Missing) => {
                return Ok(VaultFindings { is_missing: true, ..VaultFindings::default() });
            }
            Err(error) => {
                return Err(TranscriptError::Unreadable { file: vault, cause: error.into() });
            }
        };
        let opened = keys.open(&bytes);
        if is_named && opened.is_of_other_keys() {
            return Err(TranscriptError::WrongVaultKey { vault });
        }
        Ok(VaultFindings { gaps: opened.gaps(), known: opened.known, is_missing: false })
    }

    /// Opens nothing: there are no keys.
    #[cfg(not(feature = "vault"))]
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
    pub(crate) fn vault_of(
        &self,
        _: &dyn TranscriptStore,
        _: &Path,
        _: bool,
    ) -> Result<VaultFindings, TranscriptError> {
        Ok(VaultFindings::default())
    }
}

impl VaultFindings {
    /// Replays a transcript, and says what kept that from being exact. Where only a part of the secrets is known, lines may
    /// follow from those that the record does not have: it is then replayed without any.
    ///
    /// # Errors
    ///
    /// [`ReplayError`], of the replay without secrets.
    pub(crate) fn replayed(
        self,
        lines: &FileLines<'_>,
        stored: StoredTexts<'_>,
    ) -> Result<(Replayed, Vec<String>), ReplayError> {
        let Self { known, mut gaps, is_missing } = self;
        let replayed = if known.is_empty() {
            replay_lines(lines, stored)?
        } else {
            match replay_restored(lines, stored, &known) {
                Ok(replayed) => replayed,
                Err(error) => {
                    let replayed = replay_lines(lines, stored)?;
                    // The line alone: how it differs would show what the model was shown.
                    gaps.push(format!("line {} does not follow from what it holds", error.line()));
                    replayed
                }
            }
        };
        if is_missing && replayed.up_to_redaction != 0 {
            gaps.push("it is missing".to_owned());
        }
        Ok((replayed, gaps))
    }
}
